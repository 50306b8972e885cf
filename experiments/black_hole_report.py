"""What experiments/black_hole_article.py tells: every number with its interval, as rows, tables and a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from azjax.report import save_picture
from experiments.provenance import markdown, where

VALUE = {1.0: "won", 0.0: "drawn", -1.0: "lost"}


def rows_of(parts: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns every measured number with its interval, a row each."""
    rows: list[dict[str, Any]] = []

    def add(part: str, player: str, measure: str, games: int, value: float, ends: Sequence[float | None]) -> None:
        low, high = (None if end is None else round(end, 4) for end in ends)
        rows.append(
            {"part": part, "player": player, "measure": measure, "games": games, "value": round(value, 4)}
            | {"low": low, "high": high}
        )

    for name, part in parts.items():
        for player in part.get("ratings", {}).get("players", ()):
            add(name, player["name"], "Elo", player["games"], player["elo"], player["ci95"])
        for player, shares in part.get("kept", {}).items():
            whole = shares[-1]
            add(name, player, "value kept", whole["positions"], whole["share"], whole["ci95"])
            if whole["critical"]:
                share, ends = whole["critical_share"], whole["critical_ci95"]
                add(name, player, "value kept, critical", whole["critical"], share, ends)
        for match in part.get("openings", ()):
            for seat in ("first", "second"):
                found = match[seat]
                games = found["wins"] + found["draws"] + found["losses"]
                against = f"{part['agent']} against {match['opponent']}"
                add(name, against, f"score, moving {seat}", games, found["score"], found["ci95"])
    return rows


def table(report: dict[str, Any]) -> str:
    """Returns all parts in Markdown."""
    text = "# The Black Hole article\n"
    for name, part in report["parts"].items():
        text += f"\n## {name}\n\n"
        if "proof" in part:
            proof = part["proof"]
            worth = "; ".join(f"{' '.join(one['moves'])}: {VALUE[one['value']]}" for one in proof["openings"])
            text += (
                f"First moves of {proof['rows']} rows, those that are images of one another together, by alpha-beta to "
                f"the end of every line: {worth} ({proof['seconds']:.0f} s).\n\n"
            )
        lines = [["player", "measure", "value", "95 % interval", "games or positions"], ["---"] * 5]
        for row in rows_of({name: part}):
            shown = "{:+.0f}" if row["measure"] == "Elo" else "{:.1%}"
            ends = [None if row[end] is None else shown.format(row[end]) for end in ("low", "high")]
            interval = "" if None in ends else "anchor" if row["low"] == row["high"] else f"{ends[0]} to {ends[1]}"
            lines.append([row["player"], row["measure"], shown.format(row["value"]), interval, f"{row['games']:,}"])
        text += markdown(lines)
        lines = [
            ["training", "steps", "games", "training, s", "gate matches, s", "gate matches", "passed"],
            ["---"] * 7,
        ]
        for one in part["trainings"]:
            numbers = (one["steps"], one["games"], one["training_seconds"], one["gate_seconds"])
            counts = [f"{one['gate_matches']}", f"{one['gate_passed']}"] if one["gate_matches"] else ["", ""]
            lines.append([one["training"], *(f"{number:,.0f}" for number in numbers), *counts])
        text += "\n" + markdown(lines)
        played = f", {part['games_a_pair']} games a pair, {part['title']}" if "ratings" in part else ""
        text += f"\nBudget {part['budget']}, seed {part['seed']}{played}. {where([part])}.\n"
    return text


def draw(path: Path, parts: dict[str, dict[str, Any]]) -> None:
    """Draws the ratings, a panel each."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rated = {name: part["ratings"]["players"][::-1] for name, part in parts.items() if "ratings" in part}
    if not rated:
        return
    longest = max(map(len, rated.values()))
    figure = Figure(figsize=(7 * len(rated), 1.2 + 0.3 * longest), dpi=110, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    for axes, (name, players) in zip(np.atleast_1d(figure.subplots(1, len(rated))), rated.items(), strict=True):
        for height, player in enumerate(players):
            low, high = (player["elo"] if end is None else end for end in player["ci95"])
            axes.plot((low, high), (height, height), color="#0072B2", alpha=0.5, linewidth=3)
            axes.plot(player["elo"], height, "o", color="#0072B2", markersize=4)
        axes.set_yticks(range(len(players)), [player["name"] for player in players])
        axes.set(xlabel="Elo, plain UCT = 0, with its 95 % interval", title=name)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    save_picture(path, canvas)
