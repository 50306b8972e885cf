"""Curves over one axis, with bands and points, and a legend."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from azjax.boards.drawing import frame
from azjax.boards.svg import INK, MUTED, circle, line, points, polygon, rect, tag, text

COLOURS = ("#0072B2", "#D55E00", "#007355", "#A0527F", "#8a6d00", "#444444")
"""Okabe and Ito's, which stay apart for colour-blind readers."""
_DASHES = (None, "7 3", "2 2", "8 3 2 3", "12 4", "1 3")
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 560, 58, 14, 30, 40


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points (x, y), perhaps with intervals; a y that is not finite leaves a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dots: bool = False


def draw_curves(
    curves: Sequence[Curve],
    *,
    title: str,
    x_label: str,
    y_range: tuple[float, float] | None = None,
    from_zero: bool = False,
    marker: float | None = None,
    height: int = 240,
) -> str:
    """Returns an SVG document.

    Args:
      curves: their colours and dashes follow their order.
      title: above.
      x_label: below.
      y_range: of the vertical axis; None: as the curves need it.
      from_zero: then at least from 0 on.
      marker: an x at which a vertical line stands.
      height: of the picture, which is 560 wide, without names for which there is no room beside the title.
    """
    xs = [x for curve in curves for x in curve.x]
    ys = [
        y for curve in curves for part in (curve.y, curve.low or (), curve.high or ()) for y in part if math.isfinite(y)
    ]
    parts = [text(_LEFT, 15, title, 14, INK, text_anchor="start", font_weight="bold")]
    if not ys:
        parts.append(text(_WIDTH / 2, height / 2, "nothing yet", 14, MUTED))
        return frame(_WIDTH, height, title, "".join(parts))
    x_low, x_high = min(xs), max(xs)
    if x_low == x_high:
        x_low, x_high = x_low - 1, x_high + 1
    x_least = 1.0 if all(float(x).is_integer() for x in xs) else 0.0
    y_low, y_high = y_range or (min([*ys, 0.0] if from_zero else ys), max(ys))
    if y_high - y_low < 1e-9 * max(abs(y_high), 1):
        y_low, y_high = y_low - 0.5, y_high + 0.5
    wide, tall = _WIDTH - _LEFT - _RIGHT, height - _TOP - _BOTTOM
    legend, deep = _legend(curves, title) if len(curves) > 1 else ([], 0)
    top, height = _TOP + deep, height + deep

    def at(x: float, y: float) -> tuple[float, float]:
        share = (min(max(y, y_low), y_high) - y_low) / (y_high - y_low)
        return _LEFT + (x - x_low) / (x_high - x_low) * wide, top + (1 - share) * tall

    parts.append(rect(_LEFT, top, wide, tall, "#fbfbfa", stroke="#d8d8d4"))
    for value in _ticks(y_low, y_high, 5):
        y = at(x_low, value)[1]
        parts.append(line(_LEFT, y, _WIDTH - _RIGHT, y, "#e4e4e0"))
        parts.append(text(_LEFT - 6, y, _short(value), 11, MUTED, text_anchor="end"))
    for value in _ticks(x_low, x_high, 6, x_least):
        x = min(at(value, y_low)[0], _WIDTH - 3.4 * len(_short(value)))  # the last one ends inside the picture
        parts.append(text(x, height - _BOTTOM + 12, _short(value), 11, MUTED))
    parts.append(text(_LEFT + wide / 2, height - 10, x_label, 12, MUTED))
    if marker is not None and x_low <= marker <= x_high:
        x = at(marker, y_low)[0]
        parts.append(line(x, top, x, top + tall, "#e0a100", 2))
    for number, curve in enumerate(curves):
        parts += _drawn(curve, COLOURS[number % len(COLOURS)], _DASHES[number % len(_DASHES)], at)
    return frame(_WIDTH, height, title, "".join(parts + legend))


def _drawn(curve: Curve, colour: str, dash: str | None, at) -> list[str]:
    parts = []
    if curve.low is not None and curve.high is not None:
        band = [(x, low, high) for x, low, high in zip(curve.x, curve.low, curve.high, strict=True)]
        band = [ends for ends in band if all(map(math.isfinite, ends))]
        if len(band) > 1:
            corners = [at(x, high) for x, _, high in band] + [at(x, low) for x, low, _ in reversed(band)]
            parts.append(polygon(corners, colour, fill_opacity=0.15))
        parts += [line(*at(x, low), *at(x, high), colour, 1.2, opacity=0.6) for x, low, high in band]
    shown: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(curve.x, curve.y, strict=True):
        if math.isfinite(y):
            shown[-1].append(at(x, y))
        elif shown[-1]:
            shown.append([])
    for piece in shown:
        if len(piece) > 1:
            parts.append(
                tag("polyline", points=points(piece), fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dash)
            )
        if curve.dots or len(piece) == 1:
            parts += [circle(x, y, 3, colour) for x, y in piece]
    return parts


def _legend(curves: Sequence[Curve], title: str) -> tuple[list[str], int]:
    """Returns the names beside the title where there is room, else in lines below it; and how much they take there."""
    widths = [7.2 * len(curve.name) + 30 for curve in curves]
    beside = 8.2 * len(title) + sum(widths) <= _WIDTH - _LEFT - _RIGHT
    parts, x, y = [], _WIDTH - _RIGHT - sum(widths) if beside else float(_LEFT), 16 if beside else 34
    for number, (curve, width) in enumerate(zip(curves, widths, strict=True)):
        if not beside and x > _LEFT and x + width > _WIDTH:
            x, y = float(_LEFT), y + 18
        colour = COLOURS[number % len(COLOURS)]
        parts.append(line(x, y, x + 20, y, colour, 2.5, stroke_dasharray=_DASHES[number % len(_DASHES)]))
        parts.append(text(x + 25, y, curve.name, 12, INK, text_anchor="start"))
        x += width
    return parts, 0 if beside else y - 16


def _ticks(low: float, high: float, most: int, least: float = 0.0) -> list[float]:
    """Returns round numbers between two ends, at least so far apart."""
    rough = max((high - low) / most, least)
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _short(value: float) -> str:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.4g}{name}"
    return f"{round(value, 6):.4g}"
