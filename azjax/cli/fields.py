"""Kinds of options that several commands have, and checks of their values."""

import os
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import FlagCreatePairsOff, Positional, arg

from azjax.presets import PRESETS

Seat = Literal["first", "second"]
Json = Annotated[bool, FlagCreatePairsOff]
Game = Positional[Annotated[str, arg(metavar="GAME")]]
Player = Positional[Annotated[str, arg(metavar="PLAYER")]]
Directory = Annotated[Path | None, arg(metavar="DIR")]
Agent = Annotated[str | None, arg(metavar="FILE|NAME")]
Preset = Annotated[str | None, arg(metavar=f"{{{','.join(PRESETS)}}}")]
Optional = Annotated[int | None, arg(metavar="INT")]


MOST_SIMULATIONS = 2**31 - 2
"""What int32 counts; how large a tree may be, its game decides."""
MOST_GAMES = 10_000_000
"""Games, positions and lines of a list: their records lie in memory."""
MOST_LANES = 2**20
MOST_STEP = 2**31 - 1
MOST_PLIES = 2**31 - 2


def check_even(games: int) -> None:
    if games < 2 or games % 2:
        raise ValueError(f"--games: got {games}, expected an even number of at least 2 (both seats of each opening)")
    check_between("games", games, 2, MOST_GAMES)


def check_between(name: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise ValueError(f"--{name}: got {value}, expected at {f'least {least}' if value < least else f'most {most}'}")


def check_opening(plies: int | None, listed: Path | None) -> None:
    check_between("opening-plies", plies, 0, MOST_PLIES)
    if plies is not None and listed is not None:
        raise ValueError(f"--opening-plies and --openings: got both ({plies}, {listed}), expected one of them")


def check_seed(seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise ValueError(f"--seed: got {seed}, expected a whole number from 0 to 2^32 - 1")


def check_folder(name: str, path: Path | None) -> None:
    """Refuses what can be no directory to write into: said before the work, not after it."""
    if path is None:
        return
    there = next(part for part in (path, *path.absolute().parents) if part.exists())
    if not there.is_dir():
        raise ValueError(f"--{name}: got {path}, where {there} is a file; expected a directory, or a new one's name")
    if not os.access(there, os.W_OK):
        raise ValueError(f"--{name}: got {path}, and {there} cannot be written to; expected a directory that can be")


def check_file(name: str, path: Path | None) -> None:
    """Refuses what can be no file to write, with its directory made where there is none."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"--{name}: got {path}, which is a directory; expected a file's name")
    check_folder(name, path.parent)
