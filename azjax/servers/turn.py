"""One search of a server, from the command that asks for it to its answer: how long it may take, and how far it is."""

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azjax.thinker import Thinker

MOVE_OVERHEAD = 0.1
"""Seconds of a move that are not thought in: of 50 moves on an idle machine the slowest lost 42 ms so."""

_MOVES_TO_GO = 30  # that the time left is shared among, where nobody says how many
_LARGEST_SHARE = 0.8  # of the time left that a single move may take


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """What ends a search, whichever comes first."""

    simulations: int | None = None
    seconds: float | None = None
    depth: int | None = None  # length of the line that is expected
    infinite: bool = False  # nothing but a command


def seconds_for_move(
    left: float,
    increment: float = 0.0,
    *,
    moves_to_go: int | None = None,
    per_move: float = 0.0,
    overhead: float = MOVE_OVERHEAD,
) -> float:
    """Returns the time to take for a move.

    Args:
      left: seconds on the clock.
      increment: seconds that each move adds.
      moves_to_go: moves until more time comes; None: the rest of the game.
      per_move: seconds that each move has besides (byo-yomi).
      overhead: seconds that each move loses on the way to and fro. An increment pays for them first: otherwise the
        clock would run down to where a moment's delay loses the game.
    """
    usable = max(left - overhead, 0.0)
    moves = max(1, min(moves_to_go or _MOVES_TO_GO, _MOVES_TO_GO))
    wanted = max(usable / moves + 0.8 * increment - overhead, 0.0)
    return max(min(wanted, _LARGEST_SHARE * usable) + max(per_move - overhead, 0.0), 0.01)


class Turn:
    """A search in progress."""

    def __init__(self, thinker: "Thinker", limits: Limits, clock: Callable[[], float], kind: str = ""):
        self.thinker, self.limits, self.kind = thinker, limits, kind
        self.added = 0
        """Simulations since it began."""
        self.exhausted = False
        """The tree is full."""
        self._clock, self._began = clock, clock()
        self._said = self._began

    def make_room(self) -> None:
        """Drops the tree if there is less room in it than this search, or an eighth of the tree, takes."""
        eighth = self.thinker.capacity // 8
        if self.thinker.room < min(self.limits.simulations or eighth, eighth):
            self.thinker.drop()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return self._clock() - self._began

    def since_said(self) -> float:
        """Returns the seconds since it `spoke`, or began."""
        return self._clock() - self._said

    def spoke(self) -> None:
        """Takes down that something was said of the search."""
        self._said = self._clock()

    def work(self) -> bool:
        """Thinks for a slice; returns whether the search has come to its end."""
        limits = self.limits
        if not self._is_over():
            wanted = None if limits.simulations is None else limits.simulations - self.added
            left = math.inf if limits.seconds is None else limits.seconds - self.seconds
            done = self.thinker.think(wanted, left)
            self.added += done
            self.exhausted = done == 0
        return self._is_over()

    def at_least_one(self) -> None:
        """Adds a simulation if there was none, so that there is something to say."""
        if self.added == 0 and not self.exhausted:
            self.added = self.thinker.think(1)

    def _is_over(self) -> bool:
        limits = self.limits
        if limits.infinite:
            return False
        return (
            self.exhausted
            or (limits.simulations is not None and self.added >= limits.simulations)
            or (limits.seconds is not None and self.seconds >= limits.seconds and self.added > 0)
            or (limits.depth is not None and self.added > 0 and self._depth() >= limits.depth)
        )

    def _depth(self) -> int:
        return len(self.thinker.thought().lines[0].moves)


def centipawns(value: float) -> int:
    """Returns a value in [-1, 1] as the advantage that has this expected score, 100 a pawn.

    The expected score s = (value + 1) / 2 is that of a difference of 400 log10(s / (1 - s)) Elo, and 100 Elo are taken
    for a pawn; at most 10,000.
    """
    score = min(max((value + 1) / 2, 0.0), 1.0)
    if score in (0.0, 1.0):
        return 10_000 if score else -10_000
    return round(min(max(400 * math.log10(score / (1 - score)), -10_000), 10_000))
