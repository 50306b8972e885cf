"""Connect Four: discs behind a blue wall; a move is a column."""

import functools

import numpy as np

from azjax.boards.drawing import Drawing, Zone
from azjax.boards.squares import Squares
from azjax.boards.svg import INK, MUTED, circle, rect, ring, tag, text
from envs.bitboard import Grid
from envs.connect_four import ConnectFour, ConnectFourState

_ROWS, _COLUMNS = 6, 7
_SQUARES = Squares(_ROWS, _COLUMNS, 62, 10, 44)
_WALL, _HOLE, _RED, _YELLOW = "#1f5fa8", "#e9f0f8", "#d6372b", "#f5c518"
LEGEND = (
    "Red is the first player's, yellow the second's. A black ring marks the last disc; at the end, every four in a row."
)


def draw(game: ConnectFour, state: ConnectFourState, before: ConnectFourState | None, action: int | None) -> Drawing:
    """Draws a position; four in a row are ringed, else the last disc."""
    del game, before
    grid = Grid(_ROWS, _COLUMNS)
    sides = grid.members(state.mine), grid.members(state.theirs)
    first, second = sides if int(state.ply) % 2 == 0 else sides[::-1]
    parts = []
    for square in range(_ROWS * _COLUMNS):
        x, y = _SQUARES.middle(square)
        parts.append(circle(x, y, 25, _RED if first[square] else _YELLOW if second[square] else _HOLE))
    marked = _fours(first) | _fours(second)
    if not marked and action is not None:
        marked = {min(square for square in range(action, 42, 7) if first[square] or second[square])}
    parts += [ring(*_SQUARES.middle(square), 14, INK, 3) for square in sorted(marked)]
    zones = [
        Zone(
            id=str(column + 1),
            shape=tag("rect", x=10 + 62 * column, y=10, width=62, height=_SQUARES.height + 34),
            x=41 + 62 * column,
            y=75 if not (first | second)[column] else 28,
            room=54,
        )
        for column in range(_COLUMNS)
    ]
    ground = [rect(10, 44, _SQUARES.width, _SQUARES.height, _WALL, rx=12)]
    ground += [text(41 + 62 * column, 26, column + 1, 15, MUTED) for column in range(_COLUMNS)]
    return Drawing(
        width=_SQUARES.width + 20,
        height=_SQUARES.height + 56,
        ground="".join(ground),
        pieces="".join(parts),
        zones=tuple(zones),
        about=f"Connect Four after {int(state.ply)} moves",
    )


def _fours(discs: np.ndarray) -> set[int]:
    """Returns the squares of every four in a row."""
    return {square for four in _all_fours() if discs[list(four)].all() for square in four}


@functools.cache
def _all_fours() -> tuple[tuple[int, ...], ...]:
    fours = []
    for row in range(_ROWS):
        for column in range(_COLUMNS):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                if row + 3 * down < _ROWS and 0 <= column + 3 * right < _COLUMNS:
                    fours.append(tuple((row + i * down) * _COLUMNS + column + i * right for i in range(4)))
    return tuple(fours)
