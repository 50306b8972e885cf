"""Black Hole: numbered tiles on a triangle; at the end the hole, and around it the rings that decide."""

import numpy as np

from azjax.boards.drawing import Drawing, Zone
from azjax.boards.svg import FIRST, INK, MARK, MUTED, PAPER, SECOND, circle, ring, tag, text
from envs.black_hole import BlackHole, BlackHoleState
from envs.core import column_name

_EMPTY = "#eceae4"
_SHADES = ("#f6c343", "#f9d98a", "#fcebc0", "#fdf4dd")
"""Rings 1, 2, 3, and those farther out."""
LEGEND = (
    "Tiles count by their numbers; red is the first player's, blue the second's, and above stands "
    "the tile that comes next. At the end the hole is black, the rings around it are the paler the farther "
    "they are, and their sums stand below."
)


def draw(game: BlackHole, state: BlackHoleState, before: BlackHoleState | None, action: int | None) -> Drawing:
    """Draws a position; of a finished one each ring in a shade, with the players' sums."""
    del before
    step = min(68.0, 420 / game.rows)
    rise = 0.87 * step
    width, top = game.rows * step + 60, 34
    tiles = np.asarray(state.tiles).astype(int)
    rows, columns = np.tril_indices(game.rows)
    xs, ys = width / 2 + (columns - rows / 2) * step, top + rows * rise + step / 2
    over = int(state.ply) == game.num_actions - 1
    radius = (0.36 if over else 0.42) * step  # at the end the rings' shades show around the tiles
    ground = [circle(x, y, 0.5 * step, _EMPTY) for x, y in zip(xs, ys, strict=True)]
    for row in range(game.rows):
        y = top + row * rise + step / 2
        left, right = width / 2 - row / 2 * step, width / 2 + row / 2 * step
        ground.append(text(left - 0.72 * step, y, row + 1, 13, MUTED))
        ground.append(text(right + 0.62 * step, y - 0.5 * step, column_name(row), 13, MUTED))
    parts, sums = [], []
    if over:
        hole = int(np.flatnonzero(tiles == 0)[0])
        down, right = rows - rows[hole], columns - columns[hole]
        distance = np.maximum(np.maximum(down, right), 0) - np.minimum(np.minimum(down, right), 0)
        for cell, away in enumerate(distance):
            if away:
                shade = _SHADES[min(int(away), len(_SHADES)) - 1]
                parts.append(circle(xs[cell], ys[cell], 0.5 * step, shade))
        sums = [
            (int(tiles[(distance == k) & (tiles > 0)].sum()), int(-tiles[(distance == k) & (tiles < 0)].sum()))
            for k in range(1, int(distance.max()) + 1)
        ]
        parts.append(circle(xs[hole], ys[hole], 0.46 * step, "#111111", stroke=MARK, stroke_width=3))
    for cell, tile in enumerate(tiles):
        if tile:
            parts.append(circle(xs[cell], ys[cell], radius, FIRST if tile > 0 else SECOND))
            parts.append(text(xs[cell], ys[cell], abs(tile), 0.42 * step, PAPER, font_weight="bold"))
    if action is not None:
        parts.append(ring(xs[action], ys[action], radius, INK, 3))
    bottom = top + (game.rows - 1) * rise + step + 8
    if over:
        rings, told = (sums, "ring") if game.tie_break == "rings" else (sums[:1], "next to the hole")
        deciding = next((k for k, (first, second) in enumerate(rings) if first != second), None)
        for k, (first, second) in enumerate(rings if deciding is None else rings[: deciding + 1]):
            name = f"{told} {k + 1}" if told == "ring" else told
            verdict = ", the lower sum wins" if k == deciding else ""
            parts.append(text(width / 2, bottom + 20 * k + 6, f"{name}: red {first}, blue {second}{verdict}", 15))
    else:
        first_moves = int(state.ply) % 2 == 0
        x = width - 44
        parts.append(text(x, 26, "next", 13, MUTED))
        parts.append(circle(x, 56, 20, FIRST if first_moves else SECOND))
        parts.append(text(x, 56, int(state.ply) // 2 + 1, 19, PAPER, font_weight="bold"))
    zones = tuple(
        Zone(
            id=game.action_name(cell),
            shape=tag("circle", cx=float(xs[cell]), cy=float(ys[cell]), r=0.48 * step),
            x=float(xs[cell]),
            y=float(ys[cell]),
            room=0.8 * step,
        )
        for cell in range(game.num_actions)
    )
    return Drawing(
        width=width,
        height=bottom + 20 * min(game.rows - 1, 3) if game.tie_break == "rings" else bottom + 20,
        ground="".join(ground),
        pieces="".join(parts),
        zones=zones,
        about=f"Black Hole after {int(state.ply)} moves",
    )
