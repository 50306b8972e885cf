"""What a search thinks of each move, written on the board: a disc as dark as its share of visits, numbers, arrows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from azjax.boards.drawing import Drawing
from azjax.boards.svg import INK, PAPER, circle, line, polygon, text

_DISC, _ARROW = "#7b3fa0", "#7b3fa0"
_LEAST_ROOM = 22
"""Below this a zone has no room for numbers."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A move and what is said of it."""

    zones: tuple[str, ...]
    share: float  # in [0, 1]: how strongly it is marked
    lines: tuple[str, ...] = ()  # short texts, the most important first


def draw_marks(drawing: Drawing, marks: Sequence[Mark], *, arrows: int = 5) -> str:
    """Returns what `Drawing.svg(over=...)` draws above the pieces.

    Args:
      drawing: the position.
      marks: those without zones are left out; of moves from zone to zone only the first `arrows` are drawn.
    """
    parts: list[str] = []
    on_squares = [mark for mark in marks if len(mark.zones) == 1]
    on_ways = sorted((mark for mark in marks if len(mark.zones) > 1), key=lambda mark: -mark.share)
    for mark in on_squares:
        zone = drawing.zone(mark.zones[0])
        if mark.share > 0:
            radius = 0.46 * zone.room
            opacity = 0.15 + 0.6 * mark.share
            parts.append(circle(zone.x, zone.y, radius, _DISC, fill_opacity=opacity))
        if zone.room >= _LEAST_ROOM:
            parts += _written(zone.x, zone.y, zone.room, mark)
    for mark in reversed(on_ways[:arrows]):
        start, end = drawing.zone(mark.zones[0]), drawing.zone(mark.zones[-1])
        parts += _arrow((start.x, start.y), (end.x, end.y), 3 + 7 * mark.share, 0.35 + 0.5 * mark.share)
    for mark in on_ways[:arrows]:
        end = drawing.zone(mark.zones[-1])
        if end.room >= _LEAST_ROOM:
            parts += _written(end.x, end.y, end.room, mark)
    return "".join(parts)


def _written(x: float, y: float, room: float, mark: Mark) -> list[str]:
    fits = 3 if room >= 44 else 2 if room >= 34 else 1
    lines = mark.lines[:fits]
    size = min(13.0, room / 3.4) if fits > 1 else min(11.0, room / 2.6)
    top = y - (len(lines) - 1) * 0.55 * size
    parts = []
    for i, words in enumerate(lines):
        # A pale edge keeps dark letters readable on any piece.
        parts.append(
            text(x, top + 1.1 * size * i, words, size, INK, stroke=PAPER, stroke_width=3, paint_order="stroke")
        )
    return parts


def _arrow(start: tuple[float, float], end: tuple[float, float], width: float, opacity: float) -> list[str]:
    away = math.hypot(end[0] - start[0], end[1] - start[1])
    if away < 1:
        return []
    along = (end[0] - start[0]) / away, (end[1] - start[1]) / away
    head = 2.2 * width + 4
    neck = end[0] - head * along[0], end[1] - head * along[1]
    side = -along[1] * (width + 3), along[0] * (width + 3)
    corners = [end, (neck[0] + side[0], neck[1] + side[1]), (neck[0] - side[0], neck[1] - side[1])]
    return [
        line(*start, *neck, _ARROW, width, opacity=opacity, stroke_linecap="round"),
        polygon(corners, _ARROW, opacity=opacity),
    ]
