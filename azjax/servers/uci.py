"""A server of UCI (chess) and of USI, its sister for shogi, which differ in a few words."""

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from azjax import __version__
from azjax.servers.server import MOST_WAVE, LoadFn, Say, Server
from azjax.servers.turn import MOVE_OVERHEAD, Limits, Turn, centipawns, seconds_for_move

if TYPE_CHECKING:
    from azjax.thinker import MoveLine

_REPORT_SECONDS = 1.0
_MOST_MILLISECONDS = 10**9
_MOST_COMPLAINTS = 3  # about one line
_STATEFUL = ("position", "go", "setoption", "ucinewgame", "usinewgame", "ponderhit")


@dataclasses.dataclass(frozen=True)
class Dialect:
    """The words in which the two protocols differ."""

    name: str
    position: str  # introduces a position as text
    position_words: int  # of that text
    new_game: str
    sides: tuple[str, str]  # prefixes of player 0's and player 1's clocks
    option_prefix: str  # of the options that the protocol itself defines
    nothing: str  # the move when there is none


UCI = Dialect("uci", "fen", 6, "ucinewgame", ("w", "b"), "", "(none)")
USI = Dialect("usi", "sfen", 4, "usinewgame", ("b", "w"), "USI_", "resign")


@dataclasses.dataclass(frozen=True)
class _Spin:
    """An option that is a whole number."""

    default: int
    least: int
    most: int


class UciServer(Server):
    """An agent that plays chess or shogi."""

    def __init__(
        self,
        dialect: Dialect,
        load: LoadFn,
        say: Say,
        clock: Callable[[], float] = time.perf_counter,
        simulations: int | None = None,
        resign: float | None = None,
        megabytes: int = 64,
        wave: int = 1,
    ):
        """Loads nothing yet.

        Args:
          dialect: UCI or USI.
          load, say, clock, simulations: as `Server`'s.
          resign: as `Server`'s; for USI alone, as UCI has no word for it.
          megabytes: what the agent's tree has.
          wave: positions that the agent evaluates at a time.
        """
        super().__init__(load, say, clock, simulations, resign)
        self._dialect = dialect
        self._spins = {
            f"{dialect.option_prefix}Hash": _Spin(megabytes, 1, megabytes),
            "MultiPV": _Spin(1, 1, 500),
            "Simulations": _Spin(simulations or 0, 0, 10**9),  # of a search without limits; 0: the run's own
            "Move Overhead": _Spin(round(1000 * MOVE_OVERHEAD), 0, 60_000),
            "Wave": _Spin(wave, 1, MOST_WAVE),
        }
        self._values = {name: spin.default for name, spin in self._spins.items()}
        self._ponder: Sequence[str] | None = None  # the words of the `go` that began it
        self._withheld: str | None = None  # an answer that is known, and waits for `stop`
        self._position: tuple[str | None, list[str]] = (None, [])

    def last_words(self, line: str) -> str | None:
        return "" if line.split()[:1] == ["quit"] else None

    def _take(self, line: str) -> None:
        # Words before the first that is a command are passed over, as the protocols ask for.
        words = line.split()
        while words and words[0] not in self._commands:
            del words[0]
        if not words:
            return
        name, *rest = words
        if name in _STATEFUL:
            self._give_withheld()
        if self._turn is not None and name in _STATEFUL and not (name == "ponderhit" and self._ponder is not None):
            if not self._turn.limits.infinite:
                self._postpone(line)
                return
            self._finish()  # a program that forgot `stop`
        try:
            self._commands[name](self, rest)
        except ValueError as error:
            self._complain(error)

    def _complain(self, error: ValueError | str) -> None:
        self._say(f"info string error: {error}")

    def _do_hello(self, words: list[str]) -> None:
        self._say(f"id name azjax {__version__}")
        self._say("id author the azjax authors")
        for name, spin in self._spins.items():
            self._say(f"option name {name} type spin default {spin.default} min {spin.least} max {spin.most}")
        self._say(f"option name {self._dialect.option_prefix}Ponder type check default false")
        self._say(f"{self._dialect.name}ok")

    def _do_isready(self, words: list[str]) -> None:
        if self._turn is None:
            self.warm_up()
        self._say("readyok")

    def _do_setoption(self, words: list[str]) -> None:
        text = " ".join(words)
        name, _, value = text.removeprefix("name ").partition(" value ")
        if not text.startswith("name "):
            raise ValueError(f"setoption: got {text[:60]!r}, expected setoption name NAME value VALUE")
        if name.lower() == f"{self._dialect.option_prefix}ponder".lower():
            return  # says only that `go ponder` may come
        known = next((option for option in self._spins if option.lower() == name.lower()), None)
        if known is None:
            raise ValueError(f"setoption: got {name[:60]!r}, expected one of {', '.join(self._spins)}")
        self._values[known] = _number(known, value, self._spins[known].least, self._spins[known].most)
        self._simulations = self._values["Simulations"] or None
        if known.endswith("Hash"):
            self._agent().use_megabytes(self._values[known])
        elif known == "Wave":
            self._agent().use_wave(self._values[known])

    def _do_new_game(self, words: list[str]) -> None:
        self._position = (None, [])
        if self._thinker is not None:
            self._thinker.forget()

    def _do_position(self, words: list[str]) -> None:
        before, moves = words, []
        if "moves" in words:
            index = words.index("moves")
            before, moves = words[:index], words[index + 1 :]
        if before[:1] == ["startpos"]:
            start = None
        elif before[:1] == [self._dialect.position]:
            start = " ".join(before[1 : 1 + self._dialect.position_words])
        else:
            raise ValueError(
                f"position: got {' '.join(before)[:60]!r}, expected startpos or {self._dialect.position} and a position"
            )
        self._agent().place(start, moves)
        self._position = (start, moves)

    def _do_go(self, words: list[str]) -> None:
        if self._dialect is USI and "mate" in words:
            self._say("checkmate notimplemented")
            return
        agent = self._agent()
        agent.place(*self._position)
        limits, chosen = self._limits(words)
        if agent.over:
            self._withheld = f"bestmove {agent.any_move() or self._dialect.nothing}"
            if not limits.infinite and "ponder" not in words:
                self._give_withheld()
            return
        agent.think_about(chosen)
        self._ponder = words if "ponder" in words else None
        self._begin(Limits(infinite=True) if self._ponder is not None else limits)

    def _give_withheld(self) -> None:
        answer, self._withheld = self._withheld, None
        if answer is not None:
            self._say(answer)

    def _do_ponderhit(self, words: list[str]) -> None:
        if self._turn is not None and self._ponder is not None:
            limits, _ = self._limits([word for word in self._ponder if word != "ponder"])
            self._ponder = None
            self._begin(limits)

    def _do_stop(self, words: list[str]) -> None:
        self._give_withheld()
        if any(line.split()[:1] == ["go"] for line in self._later):
            self._postpone("stop")  # it came after a search that has yet to begin
        elif self._turn is not None:
            self._finish()

    def _do_quit(self, words: list[str]) -> None:
        if self._later:
            self._leaves = True
        else:
            self._quit()

    def _do_nothing(self, words: list[str]) -> None:
        """Takes a command that changes nothing: debug, register, gameover."""

    _commands: dict[str, Callable[["UciServer", list[str]], None]]

    def _limits(self, words: Sequence[str]) -> tuple[Limits, list[str] | None]:
        """Returns what the words of `go` ask for, and the moves to think about if it says which.

        Words that are wrong are told and passed over: who says `go` waits for a move.
        """
        wanted = _read_go(words)
        chosen = None if wanted.moves is None else [*wanted.moves]
        wrong = wanted.wrong
        if chosen is not None:
            legal = set(self._agent().legal_words())
            wrong += [
                f"searchmoves: got {move[:60]!r}, which is not legal there" for move in chosen if move not in legal
            ]
            chosen = [move for move in chosen if move in legal] or None
        for error in wrong[:_MOST_COMPLAINTS]:
            self._complain(error)
        numbers = wanted.numbers
        if wanted.infinite:
            return Limits(infinite=True), chosen
        side = self._dialect.sides[self._agent().to_move]
        seconds, overhead = None, self._values["Move Overhead"] / 1000
        if "movetime" in numbers:
            seconds = seconds_for_move(0.0, per_move=numbers["movetime"] / 1000, overhead=overhead)
        elif f"{side}time" in numbers or "byoyomi" in numbers:
            seconds = seconds_for_move(
                numbers.get(f"{side}time", 0) / 1000,
                numbers.get(f"{side}inc", 0) / 1000,
                moves_to_go=numbers.get("movestogo"),
                per_move=numbers.get("byoyomi", 0) / 1000,
                overhead=overhead,
            )
        nodes, depth = numbers.get("nodes"), numbers.get("depth")
        if nodes is None and depth is None and seconds is None:
            return self._default_limits(), chosen
        return Limits(simulations=None if nodes is None else max(nodes, 1), seconds=seconds, depth=depth), chosen

    def _report(self, turn: Turn) -> None:
        if turn.since_said() >= _REPORT_SECONDS:
            self._say_info(turn)

    def _say_info(self, turn: Turn) -> "MoveLine":
        """Tells what is known; returns the best line."""
        turn.spoke()
        seconds = turn.seconds
        rate = round(turn.added / seconds) if seconds > 0 else 0
        several = self._values["MultiPV"]
        lines = turn.thinker.thought(several).lines
        deepest = max(len(line.moves) for line in lines)
        for number, line in enumerate(lines, 1):
            rank = f"multipv {number} " if several > 1 else ""
            self._say(
                f"info depth {len(line.moves)} seldepth {deepest} {rank}score cp {centipawns(line.q)} "
                f"nodes {turn.added} nps {rate} time {round(1000 * seconds)} pv {' '.join(line.moves)}"
            )
        return lines[0]

    def _answer(self, turn: Turn) -> None:
        self._ponder = None
        best = self._say_info(turn)
        if self._gives_up(turn, best.q):
            self._say("bestmove resign")
        else:
            self._say(f"bestmove {best.moves[0]}" + (f" ponder {best.moves[1]}" if len(best.moves) > 1 else ""))


UciServer._commands = {
    "uci": UciServer._do_hello,
    "usi": UciServer._do_hello,
    "isready": UciServer._do_isready,
    "setoption": UciServer._do_setoption,
    "ucinewgame": UciServer._do_new_game,
    "usinewgame": UciServer._do_new_game,
    "position": UciServer._do_position,
    "go": UciServer._do_go,
    "ponderhit": UciServer._do_ponderhit,
    "stop": UciServer._do_stop,
    "quit": UciServer._do_quit,
    "debug": UciServer._do_nothing,
    "register": UciServer._do_nothing,
    "gameover": UciServer._do_nothing,
}

_GO_NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "movetime", "byoyomi", "nodes", "depth", "mate")
_GO_WORDS = (*_GO_NUMBERS, "infinite", "ponder", "searchmoves")


class _Go(NamedTuple):
    """What the words of `go` say."""

    numbers: dict[str, int]
    moves: list[str] | None  # to think about, alone
    infinite: bool
    wrong: list[str]  # of each word that could not be read, what is wrong with it


def _read_go(words: Sequence[str]) -> _Go:
    numbers: dict[str, int] = {}
    moves: list[str] | None = None
    wrong: list[str] = []
    waiting = deque(words)
    while waiting:
        word = waiting.popleft()
        if word == "searchmoves":
            moves = []
            while waiting and waiting[0] not in _GO_WORDS:
                moves.append(waiting.popleft())
        elif word in _GO_NUMBERS:
            value = waiting.popleft() if waiting and waiting[0] not in _GO_WORDS else ""
            try:
                numbers[word] = _number(word, value, -_MOST_MILLISECONDS, 2**62)
            except ValueError as error:
                wrong.append(str(error))
        elif word not in _GO_WORDS:
            wrong.append(f"go: got {word[:60]!r}, expected nodes, movetime, infinite, a clock or nothing")
    return _Go(numbers, moves, "infinite" in words, wrong)


def _number(name: str, text: str, least: int, most: int) -> int:
    try:
        value = int(text) if len(text) < 25 else None
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        raise ValueError(f"{name}: got {text[:60]!r}, expected a whole number from {least} to {most}")
    return value
