"""How strong does the preset `quick` make Crosshair, and when? Several seeds, each checkpoint against uct:400.

    python -m experiments.crosshair_quick [--budget smoke|full] [--seeds 0 1 2] [--games 1000] [--out DIR]

Every seed is a run of its own under --runs (seed 0: that of `make train`), gone on with where it is not finished. Then
the agents of the checkpoints that were kept play uct:400, with 400 simulations each, both seats of random openings of
two plies: the last one --games games, the earlier ones a fifth of them. Scores are pooled over the seeds. The source's
claim (the Crosshair article): 72 % in 60 games, after six minutes of training on 16 threads and a graphics card.
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, Literal

import tyro

import envs
from azjax.arena import play_match
from azjax.checkpoint import Checkpoints
from azjax.config import RunConfig, SearchConfig
from azjax.evaluation import agent_player
from azjax.players import make_player
from azjax.presets import preset
from azjax.rating import score_interval
from azjax.rundir import RunDirectory, load_run
from azjax.step import make_mesh
from azjax.train import train, use_devices
from experiments.provenance import markdown, merged, publish, say, where

RESULTS = Path(__file__).parent / "results" / "crosshair_quick"
OPPONENT = {"full": "uct:400", "smoke": "uct:8"}
CLAIM = 0.72


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Trains and measures Crosshair's quick preset."""

    budget: Literal["smoke", "full"] = "smoke"
    """smoke: a few games on a small board, the same way."""
    seeds: tuple[int, ...] = (0, 1, 2)
    games: int = 1000
    """Of the last checkpoint of a seed."""
    runs: Path = Path("runs")
    """Where the runs are."""
    out: Path | None = None
    """Where the results go; budget full: experiments/results/crosshair_quick, else into the first run."""


def configuration(budget: str, seed: int) -> RunConfig:
    """Returns the preset, or a few games on a small board that take the same way."""
    config = preset("quick", "crosshair")
    if budget == "full":
        return dataclasses.replace(config, seed=seed)
    return dataclasses.replace(
        config,
        game="crosshair,size=4",
        seed=seed,
        steps=4,
        search=SearchConfig(algorithm="gumbel", simulations=4, considered_actions=4),
        selfplay=dataclasses.replace(config.selfplay, lanes=16, plies=8),
        replay=dataclasses.replace(config.replay, plies=32),
        learner=dataclasses.replace(config.learner, batch=32, updates=2),
        evaluation=dataclasses.replace(config.evaluation, final_games=2, simulations=4, anchors=("random",)),
        checkpoint=dataclasses.replace(config.checkpoint, every=2, keep_every=2),
    )


def matches(run: RunDirectory, config: RunConfig, opponent: str, games: int) -> list[dict[str, Any]]:
    """Plays the kept checkpoints of a finished run; returns a row for each.

    Rows are kept in the run's matches.json: a match that was played is not played again.
    """
    game, mesh = envs.make(config.game), make_mesh(0)
    simulations = int(opponent.removeprefix("uct:"))
    other = make_player(game, opponent, load_run)
    kept = config.checkpoint.keep_every
    steps = [s for s in Checkpoints(run.checkpoints_path).saved_steps() if s == config.steps or s % kept == 0]
    trained = {row["step"]: row for row in run.rows() if "games_in_step" in row}
    played = run.path / "matches.json"
    rows: list[dict[str, Any]] = json.loads(played.read_text(encoding="utf-8")) if played.is_file() else []
    found = []
    for step in steps:
        wanted = games if step == config.steps else max(2, games // 10 * 2)
        known = [row for row in rows if (row["step"], row["games"]) == (step, wanted)]
        if known:
            found.append(known[0])
            continue
        agent = load_run(str(run.path), step)
        searching = dataclasses.replace(
            agent.config, evaluation=dataclasses.replace(agent.config.evaluation, simulations=simulations)
        )
        player = agent_player(game, agent._replace(config=searching), f"step {step}")
        match = play_match(game, player, other, games=wanted, mesh=mesh, seed=1)
        row = {
            "seed": config.seed,
            "step": step,
            "selfplay_games": trained[step]["games"],
            "training_seconds": round(trained[step]["seconds"], 1),
            "games": wanted,
            "wins": match.wins,
            "draws": match.draws,
            "losses": match.losses,
            "distinct": match.distinct,
            "match_seconds": round(match.seconds, 1),
        }
        rows.append(row)
        found.append(row)
        played.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        say(f"seed {config.seed}, step {step}: {match.wins} won, {match.draws} drawn, {match.losses} lost")
    return found


def pooled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds up the seeds' matches at each step; returns rows with the score and its 95 % interval."""
    found = []
    for step in sorted({row["step"] for row in rows}):
        here = [row for row in rows if row["step"] == step]
        wins, draws, losses = (sum(row[name] for row in here) for name in ("wins", "draws", "losses"))
        score, low, high = score_interval(wins, draws, losses)
        found.append(
            {
                "step": step,
                "seeds": len(here),
                "selfplay_games": round(sum(row["selfplay_games"] for row in here) / len(here)),
                "training_seconds": round(sum(row["training_seconds"] for row in here) / len(here), 1),
                "games": wins + draws + losses,
                "score": round(score, 4),
                "low": round(low, 4),
                "high": round(high, 4),
            }
        )
    return found


def table(report: dict[str, Any]) -> str:
    """Returns the pooled scores, and each seed's last, in Markdown."""
    lines = [["step", "training, s", "games of self-play", f"score against {report['opponent']}", "games"], ["---"] * 5]
    for row in report["pooled"]:
        score = f"{row['score']:.1%} ({row['low']:.1%} to {row['high']:.1%})"
        lines.append(
            [str(row["step"]), f"{row['training_seconds']:.0f}", f"{row['selfplay_games']:,}", score, str(row["games"])]
        )
    last = report["pooled"][-1]["step"]
    ends = [row for seed in report["seeds"].values() for row in seed["matches"] if row["step"] == last]
    seeds = "; ".join(f"seed {row['seed']}: {row['wins']}-{row['draws']}-{row['losses']}" for row in ends)
    return (
        "# Crosshair, preset quick\n\n"
        + markdown(lines)
        + f"\n95 % intervals; means over {len(ends)} seeds. Won-drawn-lost at step {last}, {seeds}. "
        + f"{report['game']}, {where(report['seeds'].values())}.\n"
    )


def draw(path: Path, report: dict[str, Any]) -> None:
    """Draws the pooled score over the seconds of training."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = report["pooled"]
    seconds, score, low, high = ([row[name] for row in rows] for name in ("training_seconds", "score", "low", "high"))
    figure = Figure(figsize=(6, 4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.fill_between(seconds, low, high, color="#0072B2", alpha=0.2, linewidth=0, label="95 % interval")
    axes.plot(seconds, score, "o-", color="#0072B2", label=f"quick, against {report['opponent']}")
    axes.axhline(CLAIM, color="#D55E00", linestyle="--", label="the Crosshair article, against its UCT")
    axes.set(xlabel="seconds of training", ylabel="score", ylim=(0, 1), xlim=(0, None))
    axes.yaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(loc="lower right", frameon=False)
    FigureCanvasAgg(figure).print_png(str(path))


def main(options: Options) -> int:
    """Trains (or goes on), plays and writes; returns the exit status."""
    use_devices(0)
    found = {}
    name = "crosshair-quick" if options.budget == "full" else "crosshair_quick-smoke"
    opponent = OPPONENT[options.budget]
    for seed in options.seeds:
        config = configuration(options.budget, seed)
        run = RunDirectory(options.runs / (f"{name}-{seed}" if seed else name))
        if status := train(config, run.path):
            return status
        found[f"{seed}"] = {"matches": matches(run, config, opponent, options.games)}
    out = options.out or (RESULTS if options.budget == "full" else options.runs / name / "results")
    seeds = dict(sorted(merged(out, "seeds", found).items(), key=lambda item: int(item[0])))
    rows = [row for seed in seeds.values() for row in seed["matches"]]
    report = {"game": config.game, "opponent": opponent, "pooled": pooled(rows), "seeds": seeds}
    publish(out, report, rows, table(report), lambda path: draw(path, report))
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
