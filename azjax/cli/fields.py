"""Kinds of options that several commands have, and checks of their values."""

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import FlagCreatePairsOff, Positional, arg

from azjax.presets import PRESETS

Seat = Literal["first", "second"]
Json = Annotated[bool, FlagCreatePairsOff]
Game = Positional[Annotated[str, arg(metavar="GAME")]]
Player = Positional[Annotated[str, arg(metavar="PLAYER")]]
Directory = Annotated[Path | None, arg(metavar="DIR")]
Preset = Annotated[str | None, arg(metavar=f"{{{','.join(PRESETS)}}}")]
Optional = Annotated[int | None, arg(metavar="INT")]


def check_even(games: int) -> None:
    if games < 2 or games % 2:
        raise ValueError(f"--games: got {games}, expected an even number of at least 2 (both seats of each opening)")


def check_at_least(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise ValueError(f"--{name}: got {value}, expected at least {least}")


def check_opening(plies: int | None, listed: Path | None) -> None:
    check_at_least("opening-plies", plies, 0)
    if plies is not None and listed is not None:
        raise ValueError(f"--opening-plies and --openings: got both ({plies}, {listed}), expected one of them")


def check_seed(seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise ValueError(f"--seed: got {seed}, expected a whole number from 0 to 2^32 - 1")
