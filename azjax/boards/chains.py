"""Stones that are joined, for games in which two sides of the board are to be connected."""

from collections.abc import Iterable

Cell = tuple[int, int]
"""Row and column."""
SIDES = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""Steps to the squares that share a side."""
HEXAGON = (*SIDES, (-1, 1), (1, -1))
"""Steps to the cells that share a side on Hex's rhombus."""


def joined(stones: Iterable[Cell], steps: Iterable[Cell], size: int, *, across: bool) -> set[Cell]:
    """Returns the stones of all chains that join two opposite sides.

    Args:
      stones: of one player.
      steps: to a cell's neighbours.
      size: rows and columns of the board.
      across: from the left column to the right one; else from the top row to the bottom one.
    """
    left, found = set(stones), set()
    while left:
        waiting, chain = [left.pop()], set()
        while waiting:
            row, column = waiting.pop()
            chain.add((row, column))
            near = {(row + down, column + right) for down, right in steps} & left
            left -= near
            waiting += near
        ends = {cell[across] for cell in chain}
        if {0, size - 1} <= ends:
            found |= chain
    return found
