"""Tic-tac-toe: crosses and noughts on three by three squares."""

import numpy as np

from azjax.boards.drawing import Drawing
from azjax.boards.squares import EDGE, Squares
from azjax.boards.svg import FIRST, INK, LIT, SECOND, cross, line, ring
from envs.bitboard import Grid
from envs.core import column_name
from envs.tic_tac_toe import TicTacToe, TicTacToeState

_SQUARES = Squares(3, 3, 110)
_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
LEGEND = "Lit: the last mark; at the end, the three in a row."


def draw(game: TicTacToe, state: TicTacToeState, before: TicTacToeState | None, action: int | None) -> Drawing:
    """Draws a position; a line that won is lit, else the last mark."""
    del before
    crosses, noughts = both_sides(Grid(3, 3), state)
    won = [square for three in _LINES for side in (crosses, noughts) if side[list(three)].all() for square in three]
    lit = won or ([action] if action is not None else [])
    parts = [_SQUARES.filled(square, LIT) for square in lit]
    left, end = EDGE, EDGE + 330
    for at in (EDGE + 110, EDGE + 220):
        parts += [line(left, at, end, at, INK, 3), line(at, left, at, end, INK, 3)]
    for square in range(9):
        x, y = _SQUARES.middle(square)
        if crosses[square]:
            parts.append(cross(x, y, 32, FIRST, 11))
        elif noughts[square]:
            parts.append(ring(x, y, 33, SECOND, 11))
    return Drawing(
        width=EDGE + 336,
        height=EDGE + 336,
        ground=_SQUARES.labels(column_name, lambda row: str(row + 1)),
        pieces="".join(parts),
        zones=_SQUARES.zones(game.action_name),
        about=f"Tic-tac-toe after {int(state.ply)} moves",
    )


def both_sides(grid: Grid, state: TicTacToeState) -> tuple[np.ndarray, np.ndarray]:
    """Returns the squares of player 0 and of player 1, bool[squares] each."""
    sides = grid.members(state.mine), grid.members(state.theirs)
    return sides if int(state.ply) % 2 == 0 else sides[::-1]
