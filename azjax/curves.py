"""Pictures of strength against what it costs, each with a JSON file of its numbers."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from azjax.report import ANCHORS, CURVE, EloPoint, save_json, save_picture

COLORS = (CURVE, *(color for color, _ in ANCHORS), "#E69F00", "#56B4E9")
"""Okabe and Ito's, which stay apart for colour-blind readers."""
MARKERS = "osD^vPX"


def finite(number: float) -> float | None:
    """Returns the number, None if JSON has none for it."""
    return number if math.isfinite(number) else None


def write_training(directory: Path, points: Sequence[EloPoint], others: Mapping[str, float], title: str) -> None:
    """Draws Elo against training steps, games, minutes and evaluations: training.png, and training.json.

    Args:
      directory: where both go.
      points: at least one; an infinite end of an interval is not drawn.
      others: name -> Elo of the players that were rated with them.
      title: stands above.
    """
    figure = Figure(figsize=(10, 7), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    elo = np.array([point.elo for point in points])
    lo = np.array([point.lo if math.isfinite(point.lo) else point.elo for point in points])
    hi = np.array([point.hi if math.isfinite(point.hi) else point.elo for point in points])
    scales = {
        "training steps": [point.step for point in points],
        "self-play games": [point.games for point in points],
        "minutes": [point.seconds / 60 for point in points],
        "evaluations of the network in self-play": [point.evaluations for point in points],
    }
    for axes, (name, values) in zip(figure.subplots(2, 2, sharey=True).flat, scales.items(), strict=True):
        axes.fill_between(values, lo, hi, color=CURVE, alpha=0.2, linewidth=0)
        axes.plot(values, elo, color=CURVE, marker="o", markersize=4)
        for number, (player, value) in enumerate(others.items()):
            color, dashes = ANCHORS[number % len(ANCHORS)]
            axes.axhline(value, color=color, linestyle=dashes, linewidth=1.2, label=plain(player))
        axes.set(xlabel=name, xlim=(0, 1.03 * max(*values, 1e-3)))
        if name != "minutes":
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        tidy(axes)
    figure.supylabel("Elo, with its 95 % interval")
    figure.suptitle(title)
    if others:
        figure.axes[0].legend(loc="best", frameon=False, fontsize="small")
    save_picture(directory / "training.png", canvas)
    rows = [dataclasses.asdict(point) | {"lo": finite(point.lo), "hi": finite(point.hi)} for point in points]
    save_json(directory / "training.json", {"title": title, "points": rows, "others": dict(others)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Passed:
    """When a curve of ratings passed another player."""

    first: EloPoint | None  # the first point above that player
    for_good: EloPoint | None  # the first from which on all are above


def passed(points: Sequence[EloPoint], elo: float) -> Passed:
    """Returns when the points, in the order of training, came above a rating; None where they never did."""
    above = [point.elo > elo for point in points]
    tail = len(above) - next((n for n, one in enumerate(reversed(above)) if not one), len(above))
    return Passed(
        first=next((point for point, one in zip(points, above, strict=True) if one), None),
        for_good=points[tail] if tail < len(points) else None,
    )


class Drop(NamedTuple):
    """A fall of the rating while training went on."""

    elo: float  # how far, 0 where the rating never fell
    start: EloPoint  # the best point before
    end: EloPoint  # the worst after it


def largest_drop(points: Sequence[EloPoint]) -> Drop:
    """Returns the largest fall from a point to a later one, of at least one point in the order of training."""
    best, found = points[0], Drop(0.0, points[0], points[0])
    for point in points:
        if best.elo - point.elo > found.elo:
            found = Drop(best.elo - point.elo, best, point)
        best = max(best, point, key=lambda one: one.elo)
    return found


def plain(text: str) -> str:
    """Returns the text as matplotlib shows it letter by letter."""
    return text.replace("$", r"\$")


def tidy(axes: Any) -> None:
    """Draws a light grid and takes away what frames the axes above and on the right."""
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
