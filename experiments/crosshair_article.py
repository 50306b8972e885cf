"""The Crosshair article's recipe: ten generations of 220 games at 450 simulations, and what each generation learned.

    python -m experiments.crosshair_article [--budget smoke|full] [--run DIR] [--out DIR]

Training is the preset `paper`, in a run directory: stopped and started again it goes on. Of every generation three
numbers are taken, each in the article too:

- score against uct:400, 60 games from both seats (of the run's own evaluation)
- top-1: how often the raw policy's first choice is that of the final agent's search of 450 simulations
- winner: how often the value head knows who will win

The last two are over all plies of 500 games that the final agent plays against itself after training
(azjax/generations.py).
"""

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import envs
from azjax.arena import play_match
from azjax.config import RunConfig
from azjax.evaluation import agent_player
from azjax.generations import HeldOut, Share, judge, play_held_out
from azjax.players import LoadedRun, make_player
from azjax.presets import preset
from azjax.rundir import RunDirectory, load_run
from azjax.step import make_mesh
from azjax.tournament import match_json
from azjax.train import train, use_devices
from envs.core import Game
from experiments.provenance import provenance, say, write_results

RESULTS = Path(__file__).parent / "results" / "crosshair_article"
ARTICLE = {"score": (0.35, 0.72), "top_1": (0.19, 0.48), "winner": (0.50, 0.70)}
"""The article's first and last generation."""
TITLES = {"score": "score against {}", "top_1": "policy's first choice is the search's", "winner": "winner predicted"}
HELD_OUT_GAMES = {"full": 500, "smoke": 8}


def configuration(budget: str, seed: int) -> RunConfig:
    """Returns the article's recipe, or a few games on a small board that take the same way."""
    config = preset("paper", "crosshair")
    if budget == "full":
        return dataclasses.replace(config, seed=seed)
    return dataclasses.replace(
        config,
        game="crosshair,size=4",
        seed=seed,
        steps=2,
        search=dataclasses.replace(config.search, simulations=8),
        selfplay=dataclasses.replace(config.selfplay, lanes=16, plies=20),
        replay=dataclasses.replace(config.replay, plies=32),
        learner=dataclasses.replace(config.learner, batch=32, updates=8),
        evaluation=dataclasses.replace(
            config.evaluation, games=4, final_games=4, simulations=8, checkpoints=1, anchors=("uct:8",)
        ),
    )


def scores(run: RunDirectory, opponent: str) -> dict[int, dict[str, Any]]:
    """Returns the evaluations against `opponent` during the run, by generation; a stop can have left one out."""
    found: dict[int, dict[str, Any]] = {}
    for row in run.rows():
        match = row.get("evaluation")
        if match and match["b"] == opponent and match["a"] == f"step {row['step']}":
            found.setdefault(row["step"], match)  # a later one of the same step is of the rating at the end
    return found


def measure(game: Game, agent: LoadedRun, opponent: str) -> dict[str, Any]:
    """Plays what the run's evaluation plays after a generation."""
    player, other = agent_player(game, agent, f"step {agent.step}"), make_player(game, opponent, load_run)
    wanted = agent.config.evaluation
    match = play_match(
        game,
        player,
        other,
        games=wanted.games,
        mesh=make_mesh(0),
        seed=agent.step,
        opening_plies=wanted.opening_plies,
    )
    return match_json(match)


def generations(run: RunDirectory, config: RunConfig, games: HeldOut) -> list[dict[str, Any]]:
    """Returns a row for each generation."""
    game, opponent = envs.make(config.game), config.evaluation.anchors[-1]
    judged = judge(game, config)
    by_step = scores(run, opponent)
    trained = {row["step"]: row for row in run.rows() if "games_in_step" in row}
    rows = []
    for step in range(1, config.steps + 1):
        agent = load_run(str(run.path), step)
        shares = judged(agent.variables, games)
        match = by_step.get(step) or measure(game, agent, opponent)
        shares["score"] = Share(match["score"], *match["ci95"])
        row = {"generation": step, "games": trained[step]["games"], "seconds": trained[step]["seconds"]}
        for name in ARTICLE:
            row |= {name: shares[name].value, f"{name}_low": shares[name].low, f"{name}_high": shares[name].high}
        rows.append({name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()})
        say(f"generation {step}: " + ", ".join(f"{name} {row[name]:.1%}" for name in ARTICLE))
    return rows


def table(report: dict[str, Any]) -> str:
    """Returns the generations beside the article's, in Markdown."""
    names = [TITLES[name].format(report["opponent"]) for name in ARTICLE]
    lines = [["generation", "games", *names], ["---"] * (2 + len(names))]
    for row in report["generations"]:
        cells = [f"{row[n]:.1%} ({row[f'{n}_low']:.1%} to {row[f'{n}_high']:.1%})" for n in ARTICLE]
        lines.append([str(row["generation"]), f"{row['games']:,}", *cells])
    for when, number in (("first", 0), ("last", 1)):
        lines.append([f"article, {when}", "", *(f"{ends[number]:.0%}" for ends in ARTICLE.values())])
    text = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    held_out = report["held_out"]
    return (
        f"# The Crosshair article's recipe, budget {report['budget']}\n\n{text}\n"
        f"95 % intervals; held out: {held_out['games']} games ({held_out['distinct']} distinct), "
        f"{held_out['positions']:,} positions. {report['game']}, {report['device']}, {report['cores']} cores, "
        f"{report['date']}, commit {report['commit']}, seeds {report['seeds']['run']} (run) and "
        f"{report['seeds']['held_out']} (held out).\n"
    )


def _draw(path: Path, report: dict[str, Any]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = report["generations"]
    steps = [row["generation"] for row in rows]
    figure = Figure(figsize=(12, 4), dpi=150, layout="constrained")
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(ARTICLE))), ARTICLE, strict=True):
        value, low, high = (np.array([row[f"{name}{end}"] for row in rows]) for end in ("", "_low", "_high"))
        axes.errorbar(steps, value, (value - low, high - value), color="#0072B2", marker="o", capsize=3, label="azjax")
        axes.plot((steps[0], steps[-1]), ARTICLE[name], "s--", color="#D55E00", fillstyle="none", label="article")
        axes.set(xlabel="generation", title=TITLES[name].format(report["opponent"]), ylim=(0, 1))
        axes.yaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(color="#dddddd", linewidth=0.6)
    figure.axes[0].legend(loc="best", frameon=False)
    FigureCanvasAgg(figure).print_png(str(path))


def main(argv: Sequence[str] | None = None) -> int:
    """Trains (or goes on), measures and writes; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m experiments.crosshair_article", description=(__doc__ or "")[:110])
    parser.add_argument("--budget", choices=tuple(HELD_OUT_GAMES), default="smoke")
    parser.add_argument("--run", type=Path, help="the run's directory; runs/crosshair_article-BUDGET when left out")
    parser.add_argument("--out", type=Path, help=f"full: {RESULTS.relative_to(RESULTS.parents[2])}; smoke: the run's")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    run = RunDirectory(options.run or Path("runs") / f"crosshair_article-{options.budget}")
    out = options.out or (RESULTS if options.budget == "full" else run.path / "results")
    config = configuration(options.budget, options.seed)
    use_devices(config.devices)
    if status := train(config, run.path):
        return status

    started = time.perf_counter()
    games, held_out_seed = HELD_OUT_GAMES[options.budget], options.seed + 1
    say(f"playing {games} held-out games")
    held_out = play_held_out(envs.make(config.game), load_run(str(run.path), config.steps), games, held_out_seed)
    rows = generations(run, config, held_out)
    report = {
        "budget": options.budget,
        "game": config.game,
        "opponent": config.evaluation.anchors[-1],
        **provenance(),
        "seeds": {"run": options.seed, "held_out": held_out_seed},
        "seconds": {"training": rows[-1]["seconds"], "held_out": round(time.perf_counter() - started, 1)},
        "held_out": {
            "games": games,
            "positions": int(held_out.playing.sum()),
            "distinct": len({tuple(moves) for moves in np.where(held_out.playing, held_out.actions, -1).T.tolist()}),
        },
        "article": ARTICLE,
        "generations": rows,
    }
    write_results(out, report, rows, table(report))
    _draw(out / "results.png", report)
    print(table(report))
    say(f"wrote {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
