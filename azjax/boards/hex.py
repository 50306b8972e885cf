"""Hex: a rhombus of hexagons whose sides have the colours of the players who join them."""

import math

import numpy as np

from azjax.boards.chains import HEXAGON, joined
from azjax.boards.drawing import Drawing, Zone
from azjax.boards.svg import FIRST, LIT, MUTED, PAPER, SECOND, circle, points, polygon, tag, text
from envs.core import column_name
from envs.hex import Hex, HexState

_EMPTY, _EDGE = "#f1eee7", "#8d8676"
LEGEND = (
    "Red is the first player's, blue the second's; each joins the two sides of its colour. A white dot marks "
    "the last stone; lit, at the end: the chain that has won."
)


def draw(game: Hex, state: HexState, before: HexState | None, action: int | None) -> Drawing:
    """Draws a position; the last stone has a dot, the chain that has won is lit."""
    del before, action
    size = game.size
    across = min(46.0, 520 / (1.5 * size))  # from side to side of a hexagon
    radius = across / math.sqrt(3)
    left, top = 34 + across / 2, 34 + radius

    def middle(row: float, column: float) -> tuple[float, float]:
        return left + (column + row / 2) * across, top + row * 1.5 * radius

    def corner(row: int, column: int, turn: int) -> tuple[float, float]:
        x, y = middle(row, column)
        angle = math.radians(60 * turn - 90)  # 0 points up, then clockwise
        return x + radius * math.cos(angle), y + radius * math.sin(angle)

    ground = []
    for of_first in (True, False):
        for last in (False, True):
            edge: list[tuple[float, float]] = []
            for i in range(size):
                row, column = ((size - 1) * last, i) if of_first else (i, (size - 1) * last)
                turns = {
                    (True, False): (5, 0, 1),
                    (True, True): (4, 3, 2),
                    (False, False): (5, 4),
                    (False, True): (1, 2),
                }
                edge += [corner(row, column, turn) for turn in turns[of_first, last]]
            path = "M" + "L".join(points([end]) for end in edge)
            ground.append(
                tag(
                    "path",
                    d=path,
                    stroke=FIRST if of_first else SECOND,
                    stroke_width=0.34 * across,
                    fill="none",
                    stroke_linejoin="round",
                    stroke_linecap="round",
                )
            )
    zones = []
    for row in range(size):
        for column in range(size):
            corners = [corner(row, column, turn) for turn in range(6)]
            ground.append(polygon(corners, _EMPTY, stroke=_EDGE))
            x, y = middle(row, column)
            shape = tag("polygon", points=points(corners))
            zones.append(Zone(id=game.action_name(row * size + column), shape=shape, x=x, y=y, room=0.9 * across))
    for i in range(size):
        x, y = middle(-1, i)
        ground.append(text(x, y, column_name(i), min(14, 0.4 * across), MUTED))
        x, y = middle(i, -1)
        ground.append(text(x, y, i + 1, min(14, 0.4 * across), MUTED))
    signs = np.sign(np.asarray(state.chains).astype(int)) * (1 - 2 * (int(state.ply) % 2))
    parts = []
    chain = set()
    for sign in (1, -1):
        stones = [divmod(int(cell), size) for cell in np.flatnonzero(signs == sign)]
        chain |= joined(stones, HEXAGON, size, across=sign < 0)
    parts += [
        polygon([corner(row, column, turn) for turn in range(6)], LIT, stroke=_EDGE) for row, column in sorted(chain)
    ]
    for cell in np.flatnonzero(signs):
        x, y = middle(*divmod(int(cell), size))
        parts.append(circle(x, y, 0.41 * across, FIRST if signs[cell] > 0 else SECOND))
        if cell == int(state.last):
            parts.append(circle(x, y, 0.12 * across, PAPER))
    return Drawing(
        width=left + 1.5 * (size - 1) * across + across / 2 + 16,
        height=top + 1.5 * (size - 1) * radius + radius + 16,
        ground="".join(ground),
        pieces="".join(parts),
        zones=tuple(zones),
        about=f"Hex after {int(state.ply)} moves: red joins top and bottom, blue left and right",
    )
