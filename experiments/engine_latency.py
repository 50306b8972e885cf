"""How soon do the engines answer: `stop`, `quit`, `isready` while they think, and a time for a move?

    python -m experiments.engine_latency [--uci DIR] [--usi DIR] [--gtp DIR] [--samples 50] [--starts 5] [--out DIR]

Each run given is served by `azjax engine` in a process of its own and spoken to over pipes, as programs do. What is
timed is the time from the writing of a line to the reading of the last line of its answer; `quit` is timed to the end
of the process. A sample of `stop` comes after a search of 0.05 to 0.5 s; its move is then played, so that the
samples are of the positions of a game with a tree that is kept. A move's time is told as what it takes over the time
that was given. `quit while loading` comes 0.3 s after a search is asked of a fresh process, which compiles then.

"""

import dataclasses
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tyro

from azjax.engines.process import EngineProcess
from experiments.provenance import markdown, provenance, say, where, write_results

RESULTS = Path(__file__).parent / "results" / "engine_latency"
MOVE_SECONDS = (0.1, 0.5)
"""Of moves for which a time is given; GTP has whole seconds only and is asked for its clock."""
_START_SECONDS = 300.0
_GAME = 30
"""Plies, after which the next game begins."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Times the answers of engines."""

    uci: Path | None = None
    """A run of chess."""
    usi: Path | None = None
    """A run of shogi."""
    gtp: Path | None = None
    """A run of Go."""
    samples: int = 50
    """Of every line that a process can be asked again."""
    starts: int = 5
    """Processes that are ended, for each way."""
    seed: int = 0
    """Of the lengths of searches."""
    out: Path = RESULTS
    """Where the results go."""


class Conversation:
    """An engine's process; answers are timed."""

    def __init__(self, protocol: str, run: Path):
        self.protocol = protocol
        self._process = EngineProcess([sys.executable, "-m", "azjax", "engine", protocol, "--run", str(run)])

    def tell(self, line: str) -> None:
        self._process.send(line)

    def until(self, *heads: str) -> str:
        """Returns the first line that begins with one of these words; of GTP the answer is read to its end."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            line = self._process.read_line(deadline, "gave no answer")
            if line.startswith(heads):
                break
        while self.protocol == "gtp" and self._process.read_line(deadline, "gave no end"):
            pass
        return line

    def ask(self, line: str, *heads: str) -> float:
        """Returns the seconds from a line to the end of its answer."""
        began = time.perf_counter()
        self.tell(line)
        self.until(*heads)
        return time.perf_counter() - began

    def quit(self) -> float:
        """Returns the seconds from `quit` to the end of the process."""
        began = time.perf_counter()
        self.tell("quit")
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        seconds = time.perf_counter() - began
        self._process.close()
        return seconds

    def begin(self) -> None:
        """Sees that everything is loaded and compiled."""
        if self.protocol == "gtp":
            self.ask("reg_genmove b", "=")
        else:
            self.ask(self.protocol, f"{self.protocol}ok")
            self.ask("isready", "readyok")

    def think(self) -> None:
        """Begins a search without an end."""
        self.tell("lz-analyze 50" if self.protocol == "gtp" else "go infinite")

    def think_for_long(self) -> None:
        """Begins to think about a move, for a minute or more."""
        if self.protocol == "gtp":
            self.ask("time_settings 36000 0 0", "=")
        self.tell("genmove b" if self.protocol == "gtp" else "go movetime 60000")


def time_searches(talk: Conversation, samples: int, rng: random.Random) -> dict[str, list[float]]:
    """Times the end of endless searches, what is asked during them, and moves by the clock."""
    return (_gtp_searches if talk.protocol == "gtp" else _uci_searches)(talk, samples, rng)


def _uci_searches(talk: Conversation, samples: int, rng: random.Random) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"stop": [], "isready while it thinks": []}
    moves: list[str] = []

    def move(line: str) -> float:
        """Returns the seconds from a line to the move, which goes into the game."""
        began = time.perf_counter()
        talk.tell(line)
        words = talk.until("bestmove").split()
        seconds = time.perf_counter() - began
        moves.append(words[1])
        if len(moves) > _GAME:
            moves.clear()
            talk.tell("ucinewgame" if talk.protocol == "uci" else "usinewgame")
        talk.tell(f"position startpos moves {' '.join(moves)}")
        return seconds

    talk.tell("position startpos")
    for _ in range(samples):
        talk.think()
        time.sleep(rng.uniform(0.05, 0.5))
        times["isready while it thinks"].append(talk.ask("isready", "readyok"))
        times["stop"].append(move("stop"))
    for seconds in MOVE_SECONDS:
        name = f"a move in {seconds:g} s, over"
        words = f"movetime {1000 * seconds:g}" if talk.protocol == "uci" else f"byoyomi {1000 * seconds:g}"
        times[name] = [move(f"go {words}") - seconds for _ in range(samples)]
    return times


def _gtp_searches(talk: Conversation, samples: int, rng: random.Random) -> dict[str, list[float]]:
    name = "a move in 1 s, over"
    times: dict[str, list[float]] = {"stop": [], "stop of an analysis": [], name: []}
    talk.ask("time_settings 3600 0 0", "=")
    for number in range(samples):
        if number % (_GAME // 2) == 0:
            talk.ask("clear_board", "=")
        talk.tell(f"1 genmove {'bw'[number % 2]}")
        time.sleep(rng.uniform(0.05, 0.5))
        times["stop"].append(talk.ask("2 stop", "=1"))
        talk.until("=2")
        talk.tell("3 lz-analyze 10")
        time.sleep(rng.uniform(0.05, 0.5))
        times["stop of an analysis"].append(talk.ask("4 protocol_version", "=4"))
    talk.ask("time_settings 0 1 1", "=")
    talk.ask("clear_board", "=")
    for number in range(min(samples, _GAME)):
        times[name].append(talk.ask(f"genmove {'bw'[number % 2]}", "=") - 1)
    return times


def time_quits(protocol: str, run: Path, starts: int, rng: random.Random) -> dict[str, list[float]]:
    """Times the end of processes that do nothing, think, or load."""
    times: dict[str, list[float]] = {"quit": [], "quit while it thinks": [], "quit while loading": []}
    for _ in range(starts):
        for name, seconds in times.items():
            talk = Conversation(protocol, run)
            if name == "quit while loading":
                time.sleep(1.0)  # Python itself
                talk.think()
                time.sleep(0.3)
            else:
                talk.begin()
                if name == "quit while it thinks":
                    talk.think_for_long()
                time.sleep(rng.uniform(0.2, 0.6))
            seconds.append(talk.quit())
    return times


def row(protocol: str, name: str, seconds: list[float]) -> dict[str, Any]:
    """Returns what is told of some times, in milliseconds."""
    ordered = sorted(1000 * second for second in seconds)
    return {
        "protocol": protocol,
        "what": name,
        "samples": len(ordered),
        "median": round(statistics.median(ordered), 1),
        "p95": round(ordered[max(0, -(-95 * len(ordered) // 100) - 1)], 1),
        "most": round(ordered[-1], 1),
    }


def table(rows: list[dict[str, Any]], origin: dict[str, Any]) -> str:
    """Returns the rows as text."""
    heads = ["protocol", "from the line to the end of its answer", "samples", "median, ms", "95th percentile", "most"]
    lines = [heads, ["---"] * len(heads), *([str(value) for value in row.values()] for row in rows)]
    return f"# Latency of the engines\n\n{markdown(lines)}\n{where([origin])}.\n"


def main(options: Options) -> int:
    """Measures and writes; returns the exit status."""
    runs = {name: run for name in ("uci", "usi", "gtp") if (run := getattr(options, name)) is not None}
    if not runs:
        raise ValueError("got no run, expected --uci DIR, --usi DIR or --gtp DIR")
    rows, rng = [], random.Random(options.seed)
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", cache)  # so that the second start is quicker
        for protocol, run in runs.items():
            talk = Conversation(protocol, run)
            talk.begin()
            times = time_searches(talk, options.samples, rng)
            talk.quit()
            times |= time_quits(protocol, run, options.starts, rng)
            for name, seconds in times.items():
                rows.append(row(protocol, name, seconds))
                say(" ".join(map(str, rows[-1].values())))
    origin = provenance() | {"load": [round(load, 2) for load in os.getloadavg()]}
    report = {**origin, "runs": {name: run.name for name, run in runs.items()}, "seed": options.seed, "rows": rows}
    write_results(options.out, report, rows, table(rows, origin))
    print((options.out / "results.md").read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
