"""Boards of squares: where each stands, their names along the edges, and bits as arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from azjax.boards.drawing import Zone
from azjax.boards.svg import MUTED, number, rect, tag, text

EDGE = 26
"""Width of the margin that holds the letters and numbers."""


@dataclass(frozen=True)
class Squares:
    """Rows and columns of squares; index = row * columns + column, row 0 on top."""

    rows: int
    columns: int
    side: float
    left: float = EDGE
    top: float = EDGE

    @property
    def width(self) -> float:
        return self.columns * self.side

    @property
    def height(self) -> float:
        return self.rows * self.side

    def corner(self, index: int) -> tuple[float, float]:
        """Returns the upper left corner of a square."""
        row, column = divmod(index, self.columns)
        return self.left + column * self.side, self.top + row * self.side

    def middle(self, index: int) -> tuple[float, float]:
        """Returns the middle of a square."""
        x, y = self.corner(index)
        return x + self.side / 2, y + self.side / 2

    def filled(self, index: int, fill: str, **attributes: Any) -> str:
        """Returns a square in a colour."""
        return rect(*self.corner(index), self.side, self.side, fill, **attributes)

    def labels(self, column_of: Callable[[int], str], row_of: Callable[[int], str], away: float = 0) -> str:
        """Returns the names of columns above and of rows to the left, farther `away` where something lies between."""
        size = min(14, 0.5 * self.side)
        above = [
            text(self.left + (column + 0.5) * self.side, self.top - 12 - away, column_of(column), size, MUTED)
            for column in range(self.columns)
        ]
        beside = [
            text(self.left - 13 - away, self.top + (row + 0.5) * self.side, row_of(row), size, MUTED)
            for row in range(self.rows)
        ]
        return "".join(above + beside)

    def zones(self, name: Callable[[int], str]) -> tuple[Zone, ...]:
        """Returns a zone for each square."""
        return tuple(self._zone(index, name(index)) for index in range(self.rows * self.columns))

    def _zone(self, index: int, name: str) -> Zone:
        (left, top), (x, y) = self.corner(index), self.middle(index)
        shape = tag("rect", x=left, y=top, width=self.side, height=self.side)
        return Zone(id=name, shape=shape, x=x, y=y, room=self.side)


def side_of(squares: int, least: float = 14) -> float:
    """Returns the side of a square of which so many make a board about 440 wide."""
    return max(least, float(number(min(64, 440 / squares))))
