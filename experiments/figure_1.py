"""Figure 1 of the AlphaZero paper at the size of the machine: Elo over training, with outside players as anchors.

    python -m experiments.figure_1 [--budget smoke|minutes|hour|full] [--games hex,size=5 ultimate_tic_tac_toe ...]
    python -m experiments.figure_1 --plan [--on 80GB] [--measure | --rate N]

Every game is learned with one set of hyper-parameters. In the paper only the noise was scaled by the number of legal
moves; Gumbel's search, which the budgets use, needs none, so that nothing differs at all (`--plan` shows the paper's
own recipe, whose noise does). Then checkpoints of the run play the game's anchors and one another, and are rated
together. The table says at which step each anchor was passed, and how far the rating ever fell. In the paper Stockfish
was first passed after 300,000 steps, Elmo after 110,000 and AlphaGo Lee after 74,000 (Silver et al. 2018).

Each game is a run of its own under --runs, and matches are kept beside it: run again, the experiment goes on.
"""

import dataclasses
import functools
import itertools
import json
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

import envs
from azjax.checkpoint import Checkpoints
from azjax.config import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    NetworkConfig,
    ReplayConfig,
    RunConfig,
    SearchConfig,
    SelfPlayConfig,
)
from azjax.curves import largest_drop, passed, write_training
from azjax.evaluation import agent_player, training_points
from azjax.opponents import any_player
from azjax.outside import AnyPlayer
from azjax.presets import preset
from azjax.rating import fit_ratings
from azjax.report import ANCHORS, CURVE, EloPoint, save_json, save_picture
from azjax.rundir import load_run
from azjax.step import make_mesh
from azjax.train import use_devices
from experiments.ledger import Ledger, Roster, results
from experiments.paper_scale import PaperScale, show_plan
from experiments.provenance import markdown, merged, provenance, publish, say, where
from experiments.trained import Stopped, slug, trained

RESULTS = Path(__file__).parent / "results" / "figure_1"
ROLLOUTS = ("random", "uct:100", "uct:400", "uct:1600")
GAMES: dict[str, tuple[str, ...]] = {
    "connect_four": (*ROLLOUTS, "solver"),
    "othello,size=6": ROLLOUTS,
    "othello": ROLLOUTS,
    "go,size=5": ("random", "uct:400", "gtp:gnugo,level=1", "gtp:gnugo,level=10"),
    "go_9x9": ("random", "uct:400", "gtp:gnugo,level=1", "gtp:gnugo,level=10"),
    "hex,size=5": ROLLOUTS,
    "hex,size=6": ROLLOUTS,
    "hex,size=7": ROLLOUTS,
    "ultimate_tic_tac_toe": ROLLOUTS,
    "chess": (
        "random",
        "uci:stockfish,skill=0,nodes=10",
        "uci:stockfish,skill=0,nodes=100",
        "uci:stockfish,skill=5,nodes=1000",
        "uci:stockfish,skill=20,nodes=10000",
    ),
    "shogi": (
        "random",
        "usi:fairy-stockfish,skill=-20,nodes=100",
        "usi:fairy-stockfish,skill=-10,nodes=100",
        "usi:fairy-stockfish,skill=0,nodes=1000",
    ),
}
"""Every game of the figure and its anchors; uct:400 has rating 0, or the second where it is not there."""
SMOKE = {"hex,size=3": ("random", "uct:8", "solver")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """How much is done for each game."""

    steps: int
    points: int  # of the curve
    lanes: int
    network: NetworkConfig
    simulations: int  # in self-play
    batch: int
    rated_simulations: int  # of the agent in rated games
    games: int  # a pair
    rollouts: int  # anchors with more are left out


_MLP = NetworkConfig(kind="equivariant_mlp", width=192)
BUDGETS = {
    "smoke": Budget(
        steps=4, points=2, lanes=16, network=NetworkConfig(kind="equivariant_mlp", width=16), simulations=4, batch=32,
        rated_simulations=4, games=4, rollouts=8,
    ),
    "minutes": Budget(
        steps=120, points=6, lanes=512, network=_MLP, simulations=16, batch=512, rated_simulations=100, games=40,
        rollouts=400,
    ),
    "hour": Budget(
        steps=1500, points=10, lanes=1024, network=_MLP, simulations=16, batch=1024, rated_simulations=400, games=100,
        rollouts=1600,
    ),
    "full": Budget(
        steps=20_000, points=20, lanes=4096, network=NetworkConfig(kind="resnet", blocks=10, channels=128),
        simulations=32, batch=4096, rated_simulations=800, games=200, rollouts=1600,
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(PaperScale):
    """Trains every game with one set of hyper-parameters and rates its checkpoints beside outside players."""

    budget: Literal["smoke", "minutes", "hour", "full"] = "smoke"
    """Of each game. smoke: a few games of Hex on 3 x 3. minutes, hour: on two CPU cores. full: on an accelerator."""
    games: tuple[str, ...] = ()
    """Some of the games in place of all."""
    seed: int = 0
    runs: Path = Path("runs")
    """Where the runs are."""
    out: Path | None = None
    """Where the results go; experiments/results/figure_1, of budget smoke beside the runs."""


def configuration(budget: Budget, game: str, seed: int) -> RunConfig:
    """Returns a game's training: alike for all but for the longest game, which replay must hold."""
    every = max(1, budget.steps // budget.points)
    positions = budget.lanes * 8
    return RunConfig(
        game=game,
        seed=seed,
        steps=budget.steps,
        network=budget.network,
        search=SearchConfig(algorithm="gumbel", simulations=budget.simulations, considered_actions=8),
        selfplay=SelfPlayConfig(lanes=budget.lanes, plies=8, temperature_plies=20, opening_plies=4),
        replay=ReplayConfig(plies=max(256, envs.make(game).max_plies + 1)),
        learner=LearnerConfig(
            batch=budget.batch,
            updates=max(1, 7 * positions // (4 * budget.batch)),
            learning_rate=2e-3,
            outcome_weight=0.6,
            symmetry="none" if budget.network.kind == "equivariant_mlp" else "training",
        ),
        evaluation=EvaluationConfig(
            final_games=2, checkpoints=1, anchors=("random",), simulations=budget.rated_simulations
        ),
        checkpoint=CheckpointConfig(every=every, keep=2, keep_every=every),
    )


def anchors(game: str, budget: Budget) -> list[str]:
    """Returns who a game's checkpoints are rated with."""
    words = GAMES.get(game) or SMOKE[game]
    return [word for word in words if not word.startswith("uct:") or int(word.removeprefix("uct:")) <= budget.rollouts]


def zero(words: list[str]) -> str:
    """Returns the anchor whose rating is 0: one that wins and loses, as random does not."""
    return "uct:400" if "uct:400" in words else words[1]


def measure(options: Options, word: str) -> dict[str, Any]:
    """Trains a game (or goes on) and rates its checkpoints; what was found once is read again.

    Raises:
      Stopped: a signal stopped the training.
    """
    budget = BUDGETS[options.budget]
    folder = options.runs / f"figure_1-{options.budget}-{options.seed}" / slug(word)
    found = folder / "figure.json"
    if found.is_file():
        return json.loads(found.read_text(encoding="utf-8"))
    run = trained(configuration(budget, word, options.seed), folder / "run")
    game, ledger = envs.make(word), Ledger(folder / "matches.jsonl")
    every = max(1, budget.steps // budget.points)
    saved = Checkpoints(run.checkpoints_path).saved_steps()
    steps = {f"step {step}": step for step in saved if step % every == 0 or step == budget.steps}
    others = anchors(word, budget)

    def make(name: str) -> AnyPlayer:
        if name in steps:
            return agent_player(game, load_run(str(run.path), steps[name]), name)
        return any_player(game, name, load_run)

    pairs = [*itertools.product(steps, others), *itertools.pairwise(steps), *itertools.combinations(others, 2)]
    with Roster(make) as roster:
        matches = [ledger.play(game, a, b, roster, games=budget.games, mesh=make_mesh(0)) for a, b in pairs]
    ratings = fit_ratings(results(matches), anchors={zero(others): 0.0})
    rated = {player.name: player for player in ratings.players}
    points = training_points(run, {step: (rated[name].elo, *rated[name].ci95) for name, step in steps.items()})
    elos = {name: rated[name].elo for name in others}
    fell = largest_drop(points)
    last = next(reversed(steps))
    report = {
        "game": word,
        "budget": options.budget,
        "seed": options.seed,
        **provenance(),
        "simulations": budget.rated_simulations,
        "games_a_pair": budget.games,
        "points": [dataclasses.asdict(point) for point in points],
        "anchors": {name: {"elo": elos[name], "ci95": list(rated[name].ci95)} for name in others},
        "passed": {name: passed_steps(points, elo) for name, elo in elos.items()},
        "last": {match["b"]: match for row in matches if (match := row["match"])["a"] == last},
        "drop": {"elo": fell.elo, "start": fell.start.step, "end": fell.end.step},
        "given_up": [row["match"]["given_up"] for row in matches if row["match"]["given_up"]],
    }
    save_json(found, report)
    return report


def passed_steps(points: list[EloPoint], elo: float) -> dict[str, int | None]:
    """Returns the steps at which a curve came above a rating."""
    when = passed(points, elo)
    return {
        "first": None if when.first is None else when.first.step,
        "for_good": None if when.for_good is None else when.for_good.step,
    }


def rows_of(games: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row for each point of each curve."""
    named = [(report, point) for report in games.values() for point in report["points"]]
    return [
        {name: report[name] for name in ("game", "budget", "seed")}
        | {name: round(value, 1) for name, value in point.items()}
        for report, point in named
    ]


def table(games: dict[str, dict[str, Any]]) -> str:
    """Returns, game by game, when each anchor was passed, what the last checkpoint scored, and the largest drop."""
    text = "# Figure 1: Elo over training\n\n"
    text += "Elo is relative to an anchor of the same game, so that numbers of two games cannot be compared.\n"
    for name, report in games.items():
        last = report["points"][-1]
        text += (
            f"\n## {name}\n\n{last['step']} steps, {last['games']:,} games and {last['evaluations']:,} evaluations of "
            f"the network in {last['seconds']:,.0f} s of training; rated with {report['simulations']} simulations a "
            f"move, {report['games_a_pair']} games a pair. At the end {last['elo']:+.0f} Elo "
            f"({last['lo']:+.0f} to {last['hi']:+.0f}). Largest drop: {report['drop']['elo']:.0f} Elo"
        )
        text += (
            f", from step {report['drop']['start']} to {report['drop']['end']}.\n\n"
            if report["drop"]["elo"]
            else ".\n\n"
        )
        lines = [
            ["anchor", "Elo", "first passed at step", "for good from step", "last checkpoint's score"],
            ["---"] * 5,
        ]
        for anchor, rated in report["anchors"].items():
            when, match = report["passed"][anchor], report["last"][anchor]
            steps = ["not passed" if when[one] is None else f"{when[one]}" for one in ("first", "for_good")]
            low, high = match["ci95"]
            score = f"{match['score']:.1%} ({low:.1%} to {high:.1%})"
            ends = "" if rated["ci95"][0] == rated["ci95"][1] else " ({:+.0f} to {:+.0f})".format(*rated["ci95"])
            lines.append([f"`{anchor}`", f"{rated['elo']:+.0f}{ends}", *steps, score])
        text += markdown(lines)
        if report["given_up"]:
            lost = sum(one["games"] for those in report["given_up"] for one in those)
            text += f"\n{lost} games were given up or forfeited, which results.json tells.\n"
        text += f"\n{where([report])}.\n"
    return text


def draw(path: Path, games: dict[str, dict[str, Any]]) -> None:
    """Draws a panel for each game: Elo over evaluations of the network in self-play, and the anchors."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    columns = min(3, len(games))
    shape = (-(-len(games) // columns), columns)
    figure = Figure(figsize=(4.6 * shape[1], 3.6 * shape[0]), dpi=110, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels = list(np.atleast_1d(figure.subplots(*shape)).flat)
    for axes in panels[len(games) :]:
        axes.set_axis_off()
    for axes, (name, report) in zip(panels, games.items(), strict=False):
        x, elo, lo, hi = ([point[one] for point in report["points"]] for one in ("evaluations", "elo", "lo", "hi"))
        axes.fill_between(x, lo, hi, color=CURVE, alpha=0.2, linewidth=0)
        axes.plot(x, elo, color=CURVE, marker="o", markersize=4)
        for number, (anchor, rated) in enumerate(report["anchors"].items()):
            color, dashes = ANCHORS[number % len(ANCHORS)]
            axes.axhline(rated["elo"], color=color, linestyle=dashes, linewidth=1.2, label=anchor)
        axes.set(title=name, xlabel="evaluations in self-play", ylabel="Elo", xlim=(0, None))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.legend(loc="best", frameon=False, fontsize="x-small")
    save_picture(path, canvas)


def main(options: Options) -> int:
    """Trains (or goes on), rates and writes game by game; returns the exit status."""
    use_devices(0)
    smoke = options.budget == "smoke"
    out = options.out or (options.runs / "figure_1-smoke-results" if smoke else RESULTS)
    known = SMOKE if smoke else GAMES
    words = options.games or tuple(known)
    for word in words:
        if word not in known:
            raise ValueError(f"--games: got {word}, expected some of {' '.join(known)}")
    if options.plan:
        return show_plan(options, [preset("paper", word) for word in options.games or GAMES], out)
    for word in words:
        say(f"{word}:")
        try:
            report = measure(options, word)
        except Stopped as stopped:
            return stopped.status
        games = merged(out, "games", {f"{word}, budget {options.budget}, seed {options.seed}": report})
        publish(out, {"games": games}, rows_of(games), table(games), functools.partial(draw, games=games))
        points = [EloPoint(**point) for point in report["points"]]
        others = {name: rated["elo"] for name, rated in report["anchors"].items()}
        (out / slug(word)).mkdir(exist_ok=True)
        write_training(out / slug(word), points, others, f"{word}, budget {options.budget}, seed {options.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
