"""What the servers of the three protocols share: lines come in while the agent thinks, in slices between them.

One thread does everything, in the order of the lines; another only reads them. So nothing is half done when a line is
answered, and `stop` waits for one slice at most (azjax/thinker.py).
"""

import abc
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from azjax.servers.turn import Limits, Turn

if TYPE_CHECKING:
    from azjax.thinker import Thinker

LONGEST_LINE = 1 << 16
"""In characters; a game of 512 plies takes 3,000."""

QUIT_SECONDS = 0.2
"""After `quit` a search has this time to come to its end by itself, as one does whose commands were piped in."""

MOST_WAVE = 256
"""Positions that are evaluated at a time, at most: each walk after the first of them knows less."""

_MOST_LATER = 10_000

Say = Callable[[str], None]
"""Takes a line to write, without its end."""


class NoAgent(Exception):
    """The agent cannot be loaded, or not for this protocol; the message says why."""


class LoadFn(Protocol):
    """Gives the agent; takes seconds, for it imports JAX and reads a checkpoint."""

    def __call__(self) -> "Thinker": ...


class Server(abc.ABC):
    """An agent behind a protocol."""

    def __init__(
        self,
        load: LoadFn,
        say: Say,
        clock: Callable[[], float] = time.perf_counter,
        simulations: int | None = None,
        resign: float | None = None,
    ):
        """Loads nothing yet.

        Args:
          load: gives the agent.
          say: where lines go.
          clock: seconds.
          simulations: of a search without limits; None: the run's own.
          resign: it gives up where the best move's value, from -1 to 0, is below this; None: never.
        """
        self._load, self._say, self._clock = load, say, clock
        self._thinker: Thinker | None = None
        self._simulations, self._resign = simulations, resign
        self._turn: Turn | None = None
        self._later: deque[str] = deque()  # lines that wait for the end of the search
        self._quits_at: float | None = None
        self._leaves = False  # when nothing is left to do
        self.over = False
        """The conversation has ended."""

    @property
    def thinking(self) -> bool:
        """Whether `work` has something to do."""
        return self._turn is not None

    @property
    def waiting(self) -> bool:
        """Whether only a line can go on with the search: it has no end and the tree is full."""
        turn = self._turn
        return turn is not None and turn.exhausted and turn.limits.infinite and self._quits_at is None

    def hear(self, line: str) -> None:
        """Takes a line; answers at once, or begins to think."""
        # Control characters are dropped, but tabs part words (GTP section 2.2).
        kept = (char if char.isprintable() else " " if char == "\t" else "" for char in line[: LONGEST_LINE + 1])
        line = "".join(kept).strip()
        self._take(line if len(line) <= LONGEST_LINE else f"{line[:60]}...")
        self._go_on()

    def end_of_input(self) -> None:
        """Says that no line will come: an endless search ends now, another one by itself."""
        if self._turn is None:
            self.over = True
        elif self._turn.limits.infinite:
            self._quit()
        else:
            self._leaves = True

    def work(self) -> None:
        """Thinks for a slice; answers when that was the last."""
        turn = self._turn
        if turn is None:
            return
        ended = turn.work()
        if ended or (self._quits_at is not None and self._clock() >= self._quits_at):
            self._finish()
            self._go_on()
        else:
            self._report(turn)

    def warm_up(self) -> None:
        """Loads the agent and compiles, so that the next command need not wait for it."""
        self._agent().warm_up()

    def _agent(self) -> "Thinker":
        """Returns the agent; raises NoAgent, which ends the conversation."""
        if self._thinker is None:
            try:
                self._thinker = self._load()
            except ValueError as error:
                raise NoAgent(str(error)) from None
        return self._thinker

    def _gives_up(self, turn: Turn, value: float) -> bool:
        """Whether a best move of this value is not worth making; an endless search is about no move of a game."""
        return self._resign is not None and value < self._resign and not turn.limits.infinite

    def _begin(self, limits: Limits, kind: str = "") -> None:
        """Begins to think about the agent's position, which must not be over."""
        self._turn = Turn(self._agent(), limits, self._clock, kind)
        self._turn.make_room()

    def _default_limits(self) -> Limits:
        return Limits(simulations=self._simulations or self._agent().simulations)

    def _finish(self) -> None:
        """Ends the search and answers."""
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.at_least_one()
            self._answer(turn)

    def _go_on(self) -> None:
        """Takes the lines that waited for the end of a search."""
        while self._later and not self.over and (self._turn is None or self._turn.limits.infinite):
            self._take(self._later.popleft())
        if self._turn is None and (self._leaves or self._quits_at is not None):
            self.over = True

    def _postpone(self, line: str) -> None:
        """Keeps a line until the search has ended; of too many that come before it the last are lost."""
        if len(self._later) < _MOST_LATER:
            self._later.append(line)

    def _quit(self) -> None:
        """Ends the conversation, a little later if there is a search that may yet come to its end."""
        if self._turn is None:
            self.over = True
        else:
            self._quits_at = self._clock() + (0.0 if self._turn.limits.infinite else QUIT_SECONDS)

    @abc.abstractmethod
    def last_words(self, line: str) -> str | None:
        """Returns what is to be written if this line ends the conversation while nothing can be answered; None: it does
        not end it. Called by another thread.
        """

    @abc.abstractmethod
    def _take(self, line: str) -> None:
        """Takes a line of printable characters."""

    @abc.abstractmethod
    def _report(self, turn: Turn) -> None:
        """Says what is known meanwhile, if it is time to."""

    @abc.abstractmethod
    def _answer(self, turn: Turn) -> None:
        """Says what was found; something was."""
