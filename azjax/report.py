"""What a run leaves for people to read: the rating table, elo.png, report.md and ratings.json."""

import itertools
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from azjax.rating import PlayerRating, Ratings, score_interval
from azjax.tables import Name, narrowest

# Okabe and Ito's colours, which stay apart for colour-blind readers; the dashes tell the lines apart in grey.
CURVE = "#0072B2"
ANCHORS = (
    ("#D55E00", (0, (6, 2))),
    ("#007355", (0, (2, 2))),
    ("#A0527F", (0, (6, 2, 1, 2))),
    ("#444444", (0, (1, 1))),
)


@dataclass(frozen=True, kw_only=True)
class EloPoint:
    """The agent's rating at one moment of its training."""

    step: int
    games: int  # self-play games finished by then
    seconds: float  # since training began, earlier sessions of the run included
    elo: float
    lo: float  # the ends of the 95 % interval, infinite where unknown
    hi: float
    evaluations: int = 0  # of the network in self-play: simulations, and the positions that they started from


@dataclass(frozen=True, kw_only=True)
class MatchRecord:
    """A match's result, from a's side."""

    a: str
    b: str
    wins: int
    draws: int
    losses: int
    distinct: int  # games that differ from one another


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """What was trained, on what, and what it took."""

    run: str  # the run directory, as a command would name it
    game: str
    preset: str
    parameters: int  # of the network
    device: str  # such as "2 x TPU v4"
    versions: Mapping[str, str]  # package -> version
    steps: int
    updates: int
    games: int
    plies: int
    simulations: int
    selfplay_seconds: float
    learning_seconds: float
    evaluation_seconds: float
    evaluation_simulations: int  # of the agent in the games that rate it
    seconds: float  # all of it: compiling and saving too
    commands: Mapping[str, str]  # what for -> command line, such as "play against it"


def ratings_table(ratings: Ratings) -> Table:
    """Lays the ratings out for a terminal of 80 columns or a plain text file, the strongest first."""
    table = Table(box=box.SIMPLE_HEAD, caption=_shared_parameters(ratings), caption_justify="left", pad_edge=False)
    table.add_column("", justify="right", no_wrap=True)
    names = [player.name for player in ratings.players]
    table.add_column("player", overflow="fold", min_width=narrowest(names, 12))
    for heading in ("Elo", "95 % interval", "games", "score"):
        table.add_column(heading, justify="right", no_wrap=True)
    for rank, player in enumerate(ratings.players, 1):
        table.add_row(str(rank), Name(player.name), *_rating_cells(player))
    return table


def head_to_head_table(ratings: Ratings) -> Table:
    """Lays out each two players' games for a terminal of 80 columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading, names in (("player", {pair.a for pair in ratings.pairs}), ("opponent", {p.b for p in ratings.pairs})):
        table.add_column(heading, overflow="fold", min_width=narrowest(names, 10, 16))
    for heading in ("won", "drawn", "lost", "score", "95 % interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    for pair in ratings.pairs:
        score, lo, hi = score_interval(pair.wins, pair.draws, pair.losses)
        counts = (f"{count:,}" for count in (pair.wins, pair.draws, pair.losses))
        table.add_row(Name(pair.a), Name(pair.b), *counts, f"{100 * score:.1f} %", _percent_interval(lo, hi))
    return table


def write_ratings(path: str | os.PathLike[str], ratings: Ratings) -> None:
    """Writes ratings.json, which holds `Ratings.to_json`."""
    save_json(path, ratings.to_json())


def write_report(
    path: str | os.PathLike[str],
    summary: RunSummary,
    *,
    ratings: Ratings | None = None,
    matches: Sequence[MatchRecord] = (),
    picture: str | None = None,
) -> None:
    """Writes report.md.

    Args:
        path: the file; one that is there is replaced at once.
        summary: what was trained.
        ratings: of the evaluation's players, if any were rated.
        matches: the evaluation's matches; their intervals are score_interval's.
        picture: the Elo picture's path relative to the report, if there is one.
    """
    sections = [_training(summary), _totals(summary)]
    if ratings is not None:
        sections.append(_ratings(ratings))
    if matches:
        sections.append(_matches(matches))
    if picture is not None:
        sections.append(f"## Strength over training\n\n![Elo over the games of training]({picture})\n")
    if summary.commands:
        lines = "".join(f"# {purpose}\n{command}\n" for purpose, command in summary.commands.items())
        sections.append(f"## What to do next\n\n```sh\n{lines}```\n")
    _replace(path, "\n".join(sections).encode())


def elo_picture(
    path: str | os.PathLike[str], points: Sequence[EloPoint], anchors: Mapping[str, float], title: str
) -> None:
    """Draws Elo over training games with its 95 % band, a labelled line at each anchor, and minutes along the top.

    Args:
        path: where the PNG of 1200 x 750 pixels goes.
        points: at least one, in any order.
        anchors: name -> Elo of the players that the ratings are relative to.
        title: stands above the picture.
    """
    if not points:
        raise ValueError("elo_picture: got no points, expected at least one")
    # The classes and not pyplot, whose global figures a notebook's reader would see and a server's memory would keep.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, MaxNLocator

    points = sorted(points, key=lambda point: (point.games, point.step))
    games, elo = np.array([point.games for point in points]), np.array([point.elo for point in points])
    lo, hi = np.array([point.lo for point in points]), np.array([point.hi for point in points])
    figure = Figure(figsize=(8, 5), dpi=150, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()

    known = np.isfinite(lo) & np.isfinite(hi)
    if known.any():
        axes.fill_between(games, lo, hi, where=known, color=CURVE, alpha=0.2, linewidth=0, label="95 % interval")
        axes.vlines(games[known], lo[known], hi[known], color=CURVE, alpha=0.45, linewidth=1)
    axes.plot(games, elo, color=CURVE, marker="o", markersize=4, linewidth=1.8, label="agent")
    finite = np.concatenate([elo, lo[known], hi[known], list(anchors.values())])
    margin = 0.06 * max(float(np.ptp(finite)), 50.0)
    bottom, top = float(finite.min()) - margin, float(finite.max()) + 1.5 * margin
    heights = _apart(anchors.values(), 0.045 * (top - bottom))
    for i, (name, value) in enumerate(anchors.items()):
        color, dashes = ANCHORS[i % len(ANCHORS)]
        axes.axhline(value, color=color, linestyle=dashes, linewidth=1.3, zorder=1)
        axes.annotate(
            f" {name}  {_whole(value):.0f}",
            (1, heights[i]),
            xycoords=("axes fraction", "data"),
            color=color,
            va="center",
        )
    axes.set_ylim(bottom, max([top, *heights]))
    end = max(float(games[-1]), 1.0)
    axes.set_xlim(-0.02 * end, 1.02 * end)
    axes.set(xlabel="self-play games", ylabel="Elo", title=title)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="best", frameon=False)
    _minutes_along_the_top(axes, points)
    save_picture(path, canvas)


def ratings_picture(path: str | os.PathLike[str], ratings: Ratings, title: str) -> None:
    """Draws each player's Elo with its 95 % interval, the strongest at the top.

    Args:
        path: where the PNG goes, 1200 pixels wide and as high as the players need.
        ratings: at least one player; an infinite end of an interval is not drawn.
        title: stands above the picture.
    """
    if not ratings.players:
        raise ValueError("ratings_picture: got no players, expected at least one")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.4 + 0.4 * len(ratings.players)), dpi=150, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for row, player in enumerate(ratings.players):
        low, high = (end if math.isfinite(end) else player.elo for end in player.ci95)
        axes.plot([low, high], [row, row], color=CURVE, alpha=0.45, linewidth=3, solid_capstyle="butt")
        axes.plot([player.elo], [row], "o", color=CURVE, markersize=6)
        axes.annotate(f"{_whole(player.elo):.0f}", (player.elo, row), (0, 7), textcoords="offset points", ha="center")
    axes.set_yticks(range(len(ratings.players)), [player.name.replace("$", r"\$") for player in ratings.players])
    axes.set_ylim(len(ratings.players) - 0.5, -0.7)
    axes.set(xlabel="Elo, with its 95 % interval", title=title)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    save_picture(path, canvas)


def save_picture(path: str | os.PathLike[str], canvas: Any) -> None:
    """Writes a canvas of matplotlib as PNG, whole or not at all."""
    image = BytesIO()
    canvas.print_png(image)
    _replace(path, image.getvalue())


def save_json(path: str | os.PathLike[str], content: Any) -> None:
    """Writes a JSON file, whole or not at all; numbers must be finite."""
    _replace(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def _minutes_along_the_top(axes, points: Sequence[EloPoint]) -> None:
    """A second scale above the axes. Both scales must grow from point to point, so other points are left out."""
    games, minutes = [points[0].games], [points[0].seconds / 60]
    for point in points[1:]:
        if point.games > games[-1] and point.seconds / 60 > minutes[-1]:
            games.append(point.games)
            minutes.append(point.seconds / 60)
    if len(games) < 2:
        return
    # One more segment as steep as the average at either end, for the margins of the axes.
    reach, pace = games[-1] - games[0], minutes[-1] - minutes[0]
    games = [games[0] - reach, *games, games[-1] + reach]
    minutes = [minutes[0] - pace, *minutes, minutes[-1] + pace]
    top = axes.secondary_xaxis(
        "top", functions=(lambda x: np.interp(x, games, minutes), lambda x: np.interp(x, minutes, games))
    )
    top.set_xlabel("minutes", fontsize="small", color="#555555")
    top.tick_params(labelsize="small", colors="#555555")
    top.spines["top"].set_visible(False)


def _apart(values: Iterable[float], distance: float) -> list[float]:
    """Heights for labels of these values, each raised until it is this far above the next lower one."""
    values = list(values)
    heights = list(values)
    order = sorted(range(len(values)), key=values.__getitem__)
    for lower, upper in itertools.pairwise(order):
        heights[upper] = max(heights[upper], heights[lower] + distance)
    return heights


def _training(summary: RunSummary) -> str:
    rows = [
        ("game", f"`{summary.game}`"),
        ("preset", f"`{summary.preset}`"),
        ("run", f"`{summary.run}`"),
        ("network", f"{summary.parameters:,} parameters"),
        ("device", summary.device),
        ("rated at", f"{summary.evaluation_simulations:,} simulations a move"),
        ("versions", ", ".join(f"{package} {version}" for package, version in summary.versions.items())),
    ]
    return f"# {summary.game}, {summary.preset}\n\n" + _markdown(("", "trained"), rows)


def _totals(summary: RunSummary) -> str:
    counts = ("steps", "updates", "games", "plies", "simulations")
    times = [
        ("self-play", summary.selfplay_seconds),
        ("learning", summary.learning_seconds),
        ("evaluation while training", summary.evaluation_seconds),
        ("in all, without the rating below", summary.seconds),
    ]
    rows = [(name, f"{getattr(summary, name):,}") for name in counts]
    rows += [(f"time: {name}", _duration(seconds)) for name, seconds in times]
    return "## Totals\n\n" + _markdown(("", "total"), rows)


def _ratings(ratings: Ratings) -> str:
    rows = [(f"`{player.name}`", *_rating_cells(player)) for player in ratings.players]
    return (
        "## Ratings\n\n"
        + _markdown(("player", "Elo", "95 % interval", "games", "score"), rows)
        + f"\n{_shared_parameters(ratings)} BayesElo's model, 400 Elo to the factor 10 in odds, from evaluation games"
        " only; the intervals are relative to the anchors.\n"
    )


def _matches(matches: Sequence[MatchRecord]) -> str:
    rows = []
    for match in matches:
        score, lo, hi = score_interval(match.wins, match.draws, match.losses)
        games = match.wins + match.draws + match.losses
        counts = f"{match.wins} / {match.draws} / {match.losses}"
        distinct = f"{match.distinct} of {games}"
        rows.append(
            (f"`{match.a}`", f"`{match.b}`", counts, f"{100 * score:.1f} %", _percent_interval(lo, hi), distinct)
        )
    headings = ("player", "opponent", "won / drawn / lost", "score", "95 % interval", "distinct games")
    return "## Matches\n\n" + _markdown(headings, rows)


def _rating_cells(player: PlayerRating) -> tuple[str, str, str, str]:
    lo, hi = player.ci95
    if lo == hi:
        interval = "anchor"
    elif math.isfinite(lo) and math.isfinite(hi):
        interval = f"{lo:+.0f} … {hi:+.0f}"
    else:
        interval = "unbounded"
    return f"{_whole(player.elo):+.0f}", interval, f"{player.games:,}", f"{100 * player.score:.1f} %"


def _percent_interval(lo: float, hi: float) -> str:
    return f"{100 * lo:.1f} – {100 * hi:.1f} %"


def _shared_parameters(ratings: Ratings) -> str:
    return f"Moving first is worth {_whole(ratings.advantage):+.0f} Elo; draw_elo {ratings.draw_elo:.0f}."


def _markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {whole % 60:02d} s"


def _replace(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes the file whole or not at all: a reader, or a crash in between, sees the old one or the new one."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _whole(elo: float) -> float:
    """Rounds to a whole number, which has no sign where it is 0."""
    return round(elo, 0) + 0.0
