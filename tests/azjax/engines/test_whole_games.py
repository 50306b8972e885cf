"""Our agent against itself through each protocol, by the clock, to the end; others' rules judge every move.

`pytest -m record -s tests/azjax/engines/test_whole_games.py` plays 100 games of each and prints what became of them.
The slow tests play the beginning of one, by a longer clock: the machine may do other things. An engine's clock runs
from the writing of its `go` or `genmove` to the reading of its move.
"""

import abc
import dataclasses
import sys
import time
from collections import Counter

import pytest

from azjax.engines.process import EngineProcess
from tests.programs import needs_gnugo

COLOURS = ("black", "white")  # of GTP
START_SECONDS = 300.0
MOST_PLIES, FEW_PLIES = 600, 60


@dataclasses.dataclass(frozen=True)
class Control:
    """Seconds of a game for each side, seconds that each move adds, and seconds that each move has besides."""

    main: float
    increment: float = 0.0
    per_move: float = 0.0


@dataclasses.dataclass
class Tally:
    """What became of the games."""

    games: int = 0
    plies: int = 0
    illegal: int = 0
    late: int = 0
    seconds: float = 0.0
    least_left: float = float("inf")  # on any clock after a move
    ends: Counter[str] = dataclasses.field(default_factory=Counter)


class Side(abc.ABC):
    """An engine's process, asked for moves."""

    def __init__(self, protocol: str, run: str, control: Control):
        self.protocol, self.control = protocol, control
        # As users start it: what the tests say to XLA makes programs that compile soon and run slowly.
        start = ["env", "-u", "XLA_FLAGS", "-u", "PJRT_NPROC", sys.executable]
        self.process = EngineProcess([*start, "-m", "azjax", "engine", protocol, "--run", run])

    def read(self, head: str) -> str:
        """Returns the next line that begins with this word."""
        deadline = time.monotonic() + START_SECONDS
        while not (line := self.process.read_line(deadline, f"gave no {head}")).startswith(head):
            pass
        return line

    @abc.abstractmethod
    def new_game(self) -> None: ...

    @abc.abstractmethod
    def show(self, moves: list[str], left: list[float]) -> None:
        """Says all that comes before the clock starts."""

    @abc.abstractmethod
    def move(self, moves: list[str], left: list[float]) -> str: ...


class GtpSide(Side):
    def tell(self, line: str) -> str:
        self.process.send(line)
        answer = self.read("=")
        assert self.process.read_line(time.monotonic() + 5, "ended no answer") == ""
        return answer.removeprefix("=").strip()

    def new_game(self) -> None:
        self.tell("reg_genmove b")  # loaded and compiled
        self.tell(f"time_settings {self.control.main:g} 0 0")
        self.tell("clear_board")

    def show(self, moves: list[str], left: list[float]) -> None:
        if moves:
            self.tell(f"play {COLOURS[(len(moves) - 1) % 2]} {moves[-1]}")
        mover = len(moves) % 2
        self.tell(f"time_left {COLOURS[mover]} {int(left[mover])} 0")

    def move(self, moves: list[str], left: list[float]) -> str:
        return self.tell(f"genmove {COLOURS[len(moves) % 2]}")


class UciSide(Side):
    def new_game(self) -> None:
        self.process.send("ucinewgame" if self.protocol == "uci" else "usinewgame")
        self.process.send("isready")
        self.read("readyok")

    def show(self, moves: list[str], left: list[float]) -> None:
        self.process.send(f"position startpos moves {' '.join(moves)}")

    def move(self, moves: list[str], left: list[float]) -> str:
        names = ("wtime", "btime") if self.protocol == "uci" else ("btime", "wtime")
        words = " ".join(f"{name} {int(1000 * seconds)}" for name, seconds in zip(names, left, strict=True))
        step = int(1000 * self.control.increment)
        words += f" winc {step} binc {step}" if self.protocol == "uci" else f" byoyomi {1000 * self.control.per_move:g}"
        self.process.send(f"go {words}")
        return self.read("bestmove").split()[1]


class Judge(abc.ABC):
    """The rules, by somebody else."""

    @abc.abstractmethod
    def new_game(self) -> None: ...

    @abc.abstractmethod
    def play(self, moves: list[str]) -> bool:
        """Plays the last of the moves; returns whether it is legal."""

    @abc.abstractmethod
    def end(self, moves: list[str]) -> str | None:
        """Returns how the game has ended; None: it goes on."""

    def close(self) -> None:
        """Ends what the judge has started."""
        return


class Package(Judge):
    """A package with python-chess's interface."""

    package: str
    reader: str  # of Move: what makes one of its text

    def new_game(self) -> None:
        self.rules = pytest.importorskip(self.package)
        self.board = self.rules.Board()

    def play(self, moves: list[str]) -> bool:
        legal = (move := getattr(self.rules.Move, self.reader)(moves[-1])) in self.board.legal_moves
        if legal:
            self.board.push(move)
        return legal


class PythonChess(Package):
    package, reader = "chess", "from_uci"

    def end(self, moves: list[str]) -> str | None:
        outcome = self.board.outcome()  # five repetitions, 75 moves: past what ends a game by our rules
        return None if outcome is None else outcome.termination.name.lower()


class PythonShogi(Package):
    package, reader = "shogi", "from_usi"

    def end(self, moves: list[str]) -> str | None:
        if self.board.is_checkmate() or self.board.is_stalemate():
            return "checkmate"
        return "repetition" if self.board.is_fourfold_repetition() else None


class GnuGo(Judge):
    """Its board alone, by positional superko."""

    def __init__(self, size: int):
        import envs
        from azjax.engines.gtp import GtpEngine
        from azjax.engines.words import parse_engine

        self.engine = GtpEngine(envs.make(f"go,size={size}"), parse_engine("gtp:gnugo", "gnugo", ()))

    def new_game(self) -> None:
        self.engine.new_game(0)

    def play(self, moves: list[str]) -> bool:
        from azjax.engines.process import EngineFailure

        try:
            self.engine._show(moves)
        except EngineFailure:
            return False
        return True

    def end(self, moves: list[str]) -> str | None:
        return "two passes" if [move.lower() for move in moves[-2:]] == ["pass", "pass"] else None

    def close(self) -> None:
        self.engine.close()


def play_games(sides: list[Side], judge: Judge, games: int) -> Tally:
    tally, began, control = Tally(), time.perf_counter(), sides[0].control
    most_plies = MOST_PLIES if games > 1 else FEW_PLIES
    for number in range(games):
        moves: list[str] = []
        left = [control.main, control.main]
        judge.new_game()
        for side in sides:
            side.new_game()
        end = None
        while end is None and len(moves) < most_plies:
            mover = len(moves) % 2
            side = sides[(number + mover) % 2]
            side.show(moves, left)
            asked = time.perf_counter()
            move = side.move(moves, left)
            took = time.perf_counter() - asked
            left[mover] += control.increment - max(took - control.per_move, 0.0)
            tally.least_left = min(tally.least_left, left[mover] + control.per_move)
            moves.append(move)
            if left[mover] < 0:
                end, tally.late = "time", tally.late + 1
            elif not judge.play(moves):
                end, tally.illegal = f"illegal {move}", tally.illegal + 1
            else:
                end = judge.end(moves)
        tally.games, tally.plies = tally.games + 1, tally.plies + len(moves)
        tally.ends[end or f"{most_plies} plies"] += 1
    tally.seconds = time.perf_counter() - began
    for side in sides:
        side.process.close("quit")
    judge.close()
    print(tally)
    return tally


def check(tally: Tally, games: int) -> None:
    assert (tally.games, tally.illegal, tally.late) == (games, 0, 0), tally
    assert tally.plies > 10 * games


many = pytest.mark.parametrize(
    "games", [pytest.param(1, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.record)]
)


@many
@needs_gnugo
def test_games_of_go_through_gtp(go_run, games):
    control = Control(main=6.0 if games > 1 else 30.0)
    check(play_games([GtpSide("gtp", go_run, control) for _ in range(2)], GnuGo(5), games), games)


@many
def test_games_of_chess_through_uci(chess_run, games):
    control = Control(main=2.0, increment=0.05) if games > 1 else Control(main=20.0, increment=0.1)
    check(play_games([UciSide("uci", chess_run, control) for _ in range(2)], PythonChess(), games), games)


@many
def test_games_of_shogi_through_usi(shogi_run, games):
    control = Control(main=4.0 if games > 1 else 20.0, per_move=0.1)
    check(play_games([UciSide("usi", shogi_run, control) for _ in range(2)], PythonShogi(), games), games)
