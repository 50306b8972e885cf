"""The Crosshair article's recipe: ten generations of 220 games at 450 simulations, and what each generation learned.

    python -m experiments.crosshair_article [--budget smoke|full] [--seeds 0 1 2] [--runs DIR] [--out DIR] [--plan]

Training is the preset `paper`, a run of its own for every seed under --runs: stopped and started again it goes on. Two
cores are enough for it, so that budget full is the article's own scale; --plan shows what it needs. Of every generation
three numbers are taken, each in the article too:

- score against uct:400, 60 games from both seats (of the run's own evaluation)
- top-1: how often the raw policy's first choice is that of the final agent's search of 450 simulations
- winner: how often the value head knows who will win

The last two are over all plies of 500 games that the final agent plays against itself after training
(azjax/generations.py). Beside them stand the seconds of a generation's stages (the article: 18 of self-play, 4 of
learning, 18 of its arena), Red's share of the games, their length (the article: 27 plies), and what our own recipe,
the preset `quick`, reaches in the article's six minutes (experiments/crosshair_quick.py).
"""

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

import envs
from azjax.arena import play_match
from azjax.config import RunConfig
from azjax.evaluation import agent_player, keep_games
from azjax.generations import HeldOut, Share, judge, play_held_out
from azjax.players import LoadedRun, make_player
from azjax.presets import preset
from azjax.rating import score_interval
from azjax.rundir import RunDirectory, load_run
from azjax.step import make_mesh
from azjax.tournament import match_json
from azjax.train import train, use_devices
from envs.core import Game
from envs.game_files import read_games
from experiments.paper_scale import plan_report, plan_text
from experiments.provenance import markdown, merged, publish, say, where

RESULTS = Path(__file__).parent / "results" / "crosshair_article"
OURS = Path(__file__).parent / "results" / "crosshair_quick" / "results.json"
ARTICLE = {"score": (0.35, 0.72), "top_1": (0.19, 0.48), "winner": (0.50, 0.70)}
"""The article's first and last generation."""
ARTICLE_SECONDS = {"self-play": 18, "learning": 4, "arena": 18}
"""Of one generation, on 16 threads and a graphics card."""
ARTICLE_LENGTH = 27
TITLES = {"score": "score against {}", "top_1": "policy's first choice is the search's", "winner": "winner predicted"}
HELD_OUT_GAMES = {"full": 500, "smoke": 8}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Repeats the Crosshair article."""

    budget: Literal["smoke", "full"] = "smoke"
    """smoke: a few games on a small board, the same way."""
    seeds: tuple[int, ...] = (0, 1, 2)
    runs: Path = Path("runs")
    """Where the runs are."""
    out: Path | None = None
    """Where the results go; budget full: experiments/results/crosshair_article, else into the first run."""
    plan: bool = False
    """Show what a run needs, and do nothing."""


def configuration(budget: str, seed: int) -> RunConfig:
    """Returns the article's recipe, or a few games on a small board that take the same way.

    The rating of the run's end is no part of the article: it has 40 games a pair.
    """
    config = preset("paper", "crosshair")
    if budget == "full":
        evaluation = dataclasses.replace(config.evaluation, final_games=40)
        return dataclasses.replace(config, seed=seed, evaluation=evaluation)
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


def measure(run: RunDirectory, game: Game, agent: LoadedRun, opponent: str) -> dict[str, Any]:
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
    keep_games(run, game, match)
    return match_json(match)


def generations(run: RunDirectory, config: RunConfig, games: HeldOut) -> list[dict[str, Any]]:
    """Returns a row for each generation of one seed."""
    game, opponent = envs.make(config.game), config.evaluation.anchors[-1]
    judged = judge(game, config)
    by_step = scores(run, opponent)
    trained = {row["step"]: row for row in run.rows() if "games_in_step" in row}
    rows = []
    for step in range(1, config.steps + 1):
        agent = load_run(str(run.path), step)
        shares = judged(agent.variables, games)
        match = by_step.get(step) or measure(run, game, agent, opponent)
        shares["score"] = Share(match["score"], *match["ci95"])
        now, before = trained[step], trained.get(step - 1)
        row = {
            "seed": config.seed,
            "generation": step,
            "games": now["games"],
            "seconds": now["seconds"],
            "selfplay_seconds": now["selfplay_seconds"] - (before["selfplay_seconds"] if before else 0),
            "learning_seconds": now["learning_seconds"] - (before["learning_seconds"] if before else 0),
            "arena_seconds": match["seconds"],
            "decided": now["decided_in_step"],
            "red_wins": now["first_player_wins_in_step"],
            "wins": match["wins"],
            "draws": match["draws"],
            "losses": match["losses"],
        }
        for name in ARTICLE:
            row |= {name: shares[name].value, f"{name}_low": shares[name].low, f"{name}_high": shares[name].high}
        rows.append({name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()})
        say(f"seed {config.seed}, generation {step}: " + ", ".join(f"{name} {row[name]:.1%}" for name in ARTICLE))
    return rows


def lengths(run: RunDirectory, config: RunConfig) -> dict[str, float]:
    """Returns the mean plies of the last generation's games against each anchor, their random openings counted."""
    agent, plies = f"step {config.steps}", {anchor: [] for anchor in config.evaluation.anchors}
    for path in sorted(run.games_path.glob("*.jsonl")):
        for record in read_games(path):
            opponents = set(record.players) - {agent}
            if agent in record.players and opponents <= set(plies):
                plies[opponents.pop()].append(len(record.actions))
    return {anchor: round(float(np.mean(found)), 2) for anchor, found in plies.items() if found}


def one_seed(config: RunConfig, run: RunDirectory, budget: str) -> dict[str, Any]:
    """Measures a finished run; what was measured is kept in its article.json and not measured again."""
    kept = run.path / "article.json"
    if kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))
    number = HELD_OUT_GAMES[budget]
    say(f"seed {config.seed}: playing {number} held-out games")
    started = time.perf_counter()
    held_out = play_held_out(envs.make(config.game), load_run(str(run.path), config.steps), number, config.seed + 1)
    played = time.perf_counter() - started
    red = int((held_out.returns[:, 0] > 0).sum())
    found = {
        "seed": config.seed,
        "held_out": {
            "seed": config.seed + 1,
            "games": number,
            "positions": int(held_out.playing.sum()),
            "distinct": len({tuple(moves) for moves in np.where(held_out.playing, held_out.actions, -1).T.tolist()}),
            "red_wins": red,
            "seconds": round(played, 1),
        },
        "generations": generations(run, config, held_out),
        "lengths": lengths(run, config),
    }
    kept.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return found


def pooled(seeds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row for each generation over all seeds.

    Scores are of all seeds' games; of the other two shares it is the seeds' mean, and the lowest and highest seed.
    """
    rows = []
    for same in zip(*(seed["generations"] for seed in seeds), strict=True):
        score = score_interval(*(sum(row[name] for row in same) for name in ("wins", "draws", "losses")))
        row: dict[str, Any] = {
            "generation": same[0]["generation"],
            "games": round(sum(row["games"] for row in same) / len(same)),
            **dict(zip(("score", "score_low", "score_high"), score, strict=True)),
        }
        for name in ("top_1", "winner"):
            values = [row[name] for row in same]
            row |= {name: sum(values) / len(values), f"{name}_low": min(values), f"{name}_high": max(values)}
        rows.append({name: round(value, 4) for name, value in row.items()})
    return rows


def stages(seeds: list[dict[str, Any]]) -> dict[str, float]:
    """Returns the mean seconds of a generation's stages."""
    rows = [row for seed in seeds for row in seed["generations"]]
    columns = {"self-play": "selfplay_seconds", "learning": "learning_seconds", "arena": "arena_seconds"}
    return {name: round(sum(row[column] for row in rows) / len(rows), 1) for name, column in columns.items()}


def red_shares(seeds: list[dict[str, Any]]) -> dict[str, tuple[float, float, float]]:
    """Returns Red's share with its 95 % interval: of self-play's games, and of those held out."""
    rows = [row for seed in seeds for row in seed["generations"]]
    counts = {
        "self-play": (sum(row["red_wins"] for row in rows), sum(row["decided"] for row in rows)),
        "held out": tuple(sum(seed["held_out"][name] for seed in seeds) for name in ("red_wins", "games")),
    }
    return {name: score_interval(won, 0, number - won) for name, (won, number) in counts.items() if number}


def mean_lengths(seeds: list[dict[str, Any]]) -> dict[str, float]:
    """Returns the mean plies of games: held out, and the final agent's against each anchor."""
    held_out = [seed["held_out"] for seed in seeds]
    found = {"held out": sum(one["positions"] for one in held_out) / sum(one["games"] for one in held_out)}
    for opponent in seeds[0]["lengths"]:
        found[f"against {opponent}"] = float(np.mean([seed["lengths"][opponent] for seed in seeds]))
    return {name: round(value, 1) for name, value in found.items()}


def table(report: dict[str, Any]) -> str:
    """Returns the generations beside the article's, and what else the article tells, in Markdown."""
    names = [TITLES[name].format(report["opponent"]) for name in ARTICLE]
    lines = [["generation", "games", *names], ["---"] * (2 + len(names))]
    for row in report["generations"]:
        cells = [f"{row[n]:.1%} ({row[f'{n}_low']:.1%} to {row[f'{n}_high']:.1%})" for n in ARTICLE]
        lines.append([str(row["generation"]), f"{row['games']:,}", *cells])
    for when, number in (("first", 0), ("last", 1)):
        lines.append([f"article, {when}", "", *(f"{ends[number]:.0%}" for ends in ARTICLE.values())])
    seconds, ours = report["stages"], report["ours"]
    beside = [["", "azjax", "article"], ["---"] * 3]
    beside += [[f"{name}, s a generation", f"{seconds[name]:.1f}", f"{ARTICLE_SECONDS[name]}"] for name in seconds]
    beside += [
        [f"Red's share, {name}", f"{share:.1%} ({low:.1%} to {high:.1%})", ""]
        for name, (share, low, high) in report["red"].items()
    ]
    beside += [
        [f"plies a game, {name}", f"{plies:.1f}", f"{ARTICLE_LENGTH}"] for name, plies in report["plies"].items()
    ]
    score = f"{ours['score']:.1%} ({ours['low']:.1%} to {ours['high']:.1%}) of {ours['games']:,} games"
    last = f"{ARTICLE['score'][1]:.0%} of 60 games"
    beside.append(
        [f"our recipe `quick`, {ours['training_seconds']:.0f} s of training: against {ours['opponent']}", score, last]
    )
    seeds = report["seeds"].values()
    held_out = [one["held_out"] for one in seeds]
    said = [f"{one['games']} games ({one['distinct']} distinct), {one['positions']:,} positions" for one in held_out]
    return (
        f"# The Crosshair article's recipe, budget {report['budget']}\n\n"
        + markdown(lines)
        + f"\n{len(seeds)} seeds. The score is of all seeds' games, with its 95 % interval; the other two"
        " are means over the seeds, and the lowest and the highest.\n\n"
        + markdown(beside)
        + f"\nHeld out: {'; '.join(said)}. {report['game']}, seeds {', '.join(report['seeds'])} (held-out games: each"
        f" seed + 1). {where(seeds)}. The stages' seconds hold what other work on the machine took. Our recipe's score"
        f" is the preset `quick`'s, of {ours['seeds']} seeds ({ours['measured']})."
        f"\n\n{plan_text(report['plan'])}\n"
    )


def our_six_minutes() -> dict[str, Any]:
    """Returns the last row of experiments/crosshair_quick.py's committed results."""
    report = json.loads(OURS.read_text(encoding="utf-8"))
    return report["pooled"][-1] | {"opponent": report["opponent"], "measured": where(report["seeds"].values())}


def draw(path: Path, report: dict[str, Any]) -> None:
    """Draws the three shares over the generations: the seeds, their mean and the article's two ends."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = report["generations"]
    steps = [row["generation"] for row in rows]
    figure = Figure(figsize=(12, 4), dpi=150, layout="constrained")
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(ARTICLE))), ARTICLE, strict=True):
        for seed in report["seeds"].values():
            values = [row[name] for row in seed["generations"]]
            axes.plot(steps, values, color="#0072B2", alpha=0.3, linewidth=1)
        value, low, high = (np.array([row[f"{name}{end}"] for row in rows]) for end in ("", "_low", "_high"))
        label = f"azjax, {len(report['seeds'])} seeds"
        axes.errorbar(steps, value, (value - low, high - value), color="#0072B2", marker="o", capsize=3, label=label)
        axes.plot((steps[0], steps[-1]), ARTICLE[name], "s--", color="#D55E00", fillstyle="none", label="article")
        axes.set(xlabel="generation", title=TITLES[name].format(report["opponent"]), ylim=(0, 1))
        axes.yaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(color="#dddddd", linewidth=0.6)
    figure.axes[0].legend(loc="best", frameon=False)
    FigureCanvasAgg(figure).print_png(str(path))


def main(options: Options) -> int:
    """Trains (or goes on), measures and writes; returns the exit status."""
    use_devices(0)
    config = configuration(options.budget, options.seeds[0])
    plan = plan_report(config)
    if options.plan:
        print(plan_text(plan))
        return 0
    first, found = options.runs / f"crosshair_article-{options.budget}", {}
    for seed in options.seeds:
        config = configuration(options.budget, seed)
        run = RunDirectory(first.with_name(f"{first.name}-{seed}") if seed else first)
        if status := train(config, run.path):
            return status
        found[f"{seed}"] = one_seed(config, run, options.budget)
    out = options.out or (RESULTS if options.budget == "full" else first / "results")
    by_seed = merged(out, "seeds", found)
    seeds = [by_seed[name] for name in sorted(by_seed, key=int)]
    report = {
        "budget": options.budget,
        "game": config.game,
        "opponent": config.evaluation.anchors[-1],
        "article": {"generations": ARTICLE, "seconds": ARTICLE_SECONDS, "plies": ARTICLE_LENGTH},
        "ours": our_six_minutes(),
        "plan": plan,
        "stages": stages(seeds),
        "red": red_shares(seeds),
        "plies": mean_lengths(seeds),
        "generations": pooled(seeds),
        "seeds": {f"{seed['seed']}": seed for seed in seeds},
    }
    rows = [row for seed in seeds for row in seed["generations"]]
    publish(out, report, rows, table(report), lambda path: draw(path, report))
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
