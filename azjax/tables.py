"""Cells of tables for terminals of 80 columns: names that break where a word of theirs ends, and numbers."""

import re
from collections.abc import Iterable, Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text


class Name:
    """A name such as run:runs/crosshair-quick,simulations=400, in lines that end after a comma, a slash or a space."""

    def __init__(self, name: str):
        self._name, self._parts = name, parts_of(name)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [""]
        for part in self._pieces(options.max_width):
            if lines[-1] and len(lines[-1]) + len(part.rstrip()) > options.max_width:
                lines.append("")
            lines[-1] += part
        yield Text("\n".join(lines), overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(max(map(len, self._parts)), len(self._name))

    def _pieces(self, width: int) -> Iterator[str]:
        for part in self._parts:
            # Words longer than the column end after a full stop or an underscore.
            yield from [part] if len(part.rstrip()) <= width else re.findall(r"[^._]*[._]|[^._]+", part)


def parts_of(name: str) -> list[str]:
    """Returns the pieces of a name between which a line may end."""
    return re.findall(r"[^,/ ]*[,/ ]|[^,/ ]+", name) or [""]


def narrowest(names: Iterable[str], least: int = 1, most: int = 24) -> int:
    """Returns the width that a column needs in order to break no piece of its names, `most` at most."""
    return max(least, min(most, max((len(part) for name in names for part in parts_of(name)), default=0)))


def number(value: float) -> str:
    """Returns five digits, never an exponent for a large number: 1.4156, 50,859 or 141,560."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.5g}"
