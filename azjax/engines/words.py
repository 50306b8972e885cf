"""The words that name engines: `gtp:gnugo,level=1`, `uci:stockfish,skill=0,nodes=100`.

KIND:COMMAND,OPTION=VALUE,... COMMAND is a program on PATH or in /usr/games, or a path, with its arguments if it has
any. Options of the match are the same for all engines; every other option is the engine's own.
"""

import dataclasses
import math
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence

_DEBIAN_GAMES = "/usr/games"  # where Debian puts engines, often not on PATH
_MOST_PROCESSES = 256


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineSpec:
    """An engine, and how it is to play."""

    word: str
    kind: str  # "gtp", "uci" or "usi"
    command: tuple[str, ...]
    own: Mapping[str, str]  # the engine's own options
    nodes: int | None = None  # of a move
    depth: int | None = None
    seconds: float | None = None  # of a move
    resign: int | None = None  # give up after RESIGN_MOVES moves in a row at this many centipawns below 0
    patience: float = 60.0  # seconds over its time, after which it is taken to hang
    processes: int = 8  # at most, which is also how many games are played side by side


def parse_engine(word: str, argument: str, options: Sequence[tuple[str, str]]) -> EngineSpec:
    """Takes an engine's word apart.

    Args:
      word: all of it.
      argument: what follows "KIND:", up to the first comma.
      options: names and values.

    Raises:
      ValueError: there is no such program, or a value is not what its option takes.
    """
    kind, given = word.partition(":")[0], dict(options)

    def number(name: str, least: float, most: float = math.inf) -> float | None:
        text = given.pop(name, None)
        try:
            value = None if text is None else float(text)
        except ValueError:
            value = math.nan
        if value is not None and not least <= value <= most:
            upper = "" if most == math.inf else f" and at most {most:g}"
            raise ValueError(f"player {word!r}: got {name} {text!r}, expected a number of at least {least:g}{upper}")
        return value

    def whole(name: str, least: int, most: float = math.inf) -> int | None:
        text, value = given.get(name), number(name, least, most)
        if value is not None and value != int(value):
            raise ValueError(f"player {word!r}: got {name} {text!r}, expected a whole number")
        return None if value is None else int(value)

    processes = whole("processes", 1, _MOST_PROCESSES)
    patience = number("patience", 0.01, 1e6)
    return EngineSpec(
        word=word,
        kind=kind,
        command=find_engine(word, argument),
        nodes=whole("nodes", 1, 2**62),
        depth=whole("depth", 1, 1000),
        seconds=number("seconds", 0.001, 1e6),
        resign=whole("resign", 1, 1e6),
        patience=60.0 if patience is None else patience,
        processes=max(8, 2 * (os.cpu_count() or 1)) if processes is None else processes,
        own=given,
    )


def find_engine(word: str, command: str) -> tuple[str, ...]:
    """Returns the command with the program's path in place of its name.

    Raises:
      ValueError: no such program.
    """
    try:
        name, *arguments = shlex.split(command)
    except ValueError:
        raise ValueError(
            f"player: got {word!r}, expected a program such as {_EXAMPLES[word.partition(':')[0]]}"
        ) from None
    path = shutil.which(name) or shutil.which(name, path=_DEBIAN_GAMES)
    if path is None:
        raise ValueError(
            f"player {word!r}: got {name!r}, which is no program on PATH or in {_DEBIAN_GAMES}; "
            "install it, or give its path"
        )
    return (path, *arguments)


_EXAMPLES = {
    "gtp": "gtp:gnugo,level=1",
    "uci": "uci:stockfish,skill=0,nodes=100",
    "usi": "usi:fairy-stockfish,skill=-10",
}
