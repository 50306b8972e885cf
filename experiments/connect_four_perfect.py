"""How near does Connect Four's agent come to perfect play, and when? Moves that keep the exact value, by checkpoint.

    python -m experiments.connect_four_perfect [--budget smoke|quick|full|paper] [--positions 2000] [--runs DIR]
                                               [--out DIR] [--plan]

The agents are the checkpoints that a run has kept; the run is trained, or gone on with, under --runs. Budget quick is
the preset of this name, which two cores train in some six minutes, full the same recipe with five times as many steps;
paper is AlphaZero's own constants (--plan shows what they need).

Every checkpoint moves in the same positions, spread evenly over the plies of random games: by its policy alone, and
with PUCT and Gumbel at 64 and at 800 simulations. bitbully says what each move is worth (AGPL, not part of azjax: pip
install bitbully; it runs in a process of its own). Told is the share of moves that keep the value, of all positions and
of the critical ones, in which some move would not. The aim is 99.8 % of all at 800 simulations.
"""

import dataclasses
import hashlib
import itertools
import json
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import envs
from azjax.checkpoint import Checkpoints
from azjax.config import CheckpointConfig, RunConfig, SearchConfig
from azjax.curves import COLORS, MARKERS, tidy
from azjax.expansion import row_bytes
from azjax.oracle import ValuesFn, oracle
from azjax.perfect import PlyShare, kept_values
from azjax.players import LoadedRun, Player, run_player
from azjax.presets import preset
from azjax.report import save_json, save_picture
from azjax.rundir import RunDirectory, load_run
from azjax.step import make_mesh
from azjax.train import train, use_devices
from envs.core import Game, State
from experiments.paper_scale import plan_report, plan_text
from experiments.provenance import markdown, provenance, publish, say

RESULTS = Path(__file__).parent / "results" / "connect_four_perfect"
AIM = 0.998
SIMULATIONS = {"smoke": (2, 4), "quick": (64, 800), "full": (64, 800), "paper": (64, 800)}
SEARCHES = {"policy": "policy", "puct": "PUCT", "gumbel": "Gumbel"}
POLICY = ("policy", 0)
"""The policy alone: a search of no simulations."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Holds Connect Four's agents against exact values."""

    budget: Literal["smoke", "quick", "full", "paper"] = "smoke"
    """smoke: tic-tac-toe, the same way; quick and full: for two cores; paper: AlphaZero's constants."""
    positions: int = 2000
    """At most."""
    runs: Path = Path("runs")
    """Where the runs are."""
    out: Path | None = None
    """Where the results go; budget smoke: into the run, else experiments/results/connect_four_perfect/BUDGET."""
    plan: bool = False
    """Show what the training run needs, and do nothing."""


def configuration(budget: str) -> RunConfig:
    """Returns the run whose checkpoints are asked."""
    if budget == "paper":
        return preset("paper", "connect_four")
    config = preset("quick", "connect_four")
    if budget == "quick":
        return config
    if budget == "full":
        often = CheckpointConfig(every=100, keep=2, keep_every=200)
        return dataclasses.replace(config, preset="connect_four_perfect", steps=5 * config.steps, checkpoint=often)
    return dataclasses.replace(
        config,
        game="tic_tac_toe",
        preset="connect_four_perfect-smoke",
        steps=4,
        network=dataclasses.replace(config.network, width=16),
        search=SearchConfig(algorithm="gumbel", simulations=4, considered_actions=4),
        selfplay=dataclasses.replace(config.selfplay, lanes=16, plies=8, opening_plies=0),
        replay=dataclasses.replace(config.replay, plies=32),
        learner=dataclasses.replace(config.learner, batch=32, updates=2),
        evaluation=dataclasses.replace(config.evaluation, final_games=2, simulations=4, anchors=("random",)),
        checkpoint=dataclasses.replace(config.checkpoint, every=2, keep_every=2),
    )


def run_path(budget: str, runs: Path) -> Path:
    """Returns the run's directory; of the budget quick that of `azjax train connect_four`."""
    return runs / ("connect_four-quick" if budget == "quick" else f"connect_four_perfect-{budget}")


def remembered(values: ValuesFn, path: Path) -> ValuesFn:
    """Returns `values` with a memory in a file: the same positions are not asked about twice."""

    def look(states: State) -> np.ndarray:
        key = hashlib.sha256(row_bytes(states).tobytes()).hexdigest()
        if path.is_file():
            with np.load(path) as kept:
                if str(kept["key"]) == key:
                    return kept["values"]
        found = values(states)
        np.savez(path, key=np.array(key), values=found)
        return found

    return look


def make_asked(game: Game, agent: LoadedRun, search: str, simulations: int) -> Player:
    """Returns the agent with a search of so many simulations, or its policy alone."""
    options = {"search": search} | ({"simulations": str(simulations)} if simulations else {})
    return run_player(game, agent, title(search, simulations), options)


def title(search: str, simulations: int) -> str:
    """Returns the name of a search."""
    return f"{SEARCHES[search]} {simulations}" if simulations else SEARCHES[search]


def ask_checkpoints(
    run: RunDirectory, config: RunConfig, values: ValuesFn, simulations: tuple[int, ...], positions: int
) -> list[dict[str, Any]]:
    """Returns a row for each kept checkpoint, search and number of simulations.

    Rows are kept in the run's perfect.json: who was asked is not asked again.
    """
    game, mesh = envs.make(config.game), make_mesh(0)
    kept = run.path / "perfect.json"
    rows: list[dict[str, Any]] = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else []
    known = {(row["step"], row["search"], row["simulations"], row["asked"]): row for row in rows}
    trained = {row["step"]: row for row in run.rows() if "games_in_step" in row}
    found = []
    for step in Checkpoints(run.checkpoints_path).saved_steps():
        for search, number in (POLICY, *itertools.product(("puct", "gumbel"), simulations)):
            if (step, search, number, positions) not in known:
                player = make_asked(game, load_run(str(run.path), step), search, number)
                *plies, everything = kept_values(game, player, values, mesh, positions=positions)
                row = {
                    "step": step,
                    "training_seconds": round(trained[step]["seconds"], 1),
                    "selfplay_games": trained[step]["games"],
                    "search": search,
                    "simulations": number,
                    "asked": positions,
                    **share_fields(everything),
                    "plies": [[share.ply, share.positions, share.kept] for share in plies],
                }
                known[step, search, number, positions] = row
                save_json(kept, list(known.values()))
                say(f"step {step}, {player.name}: {row['share']:.2%} of all, {row['critical_share']:.2%} of critical")
            found.append(known[step, search, number, positions])
    return found


def share_fields(share: PlyShare) -> dict[str, Any]:
    """Returns the counts and shares of all positions as columns."""
    said = share.to_json()
    fields = {name: said[name] for name in ("positions", "kept", "critical", "critical_kept")}
    for name in ("", "critical_"):
        low, high = said[f"{name}ci95"]
        ends = {f"{name}share": said[f"{name}share"], f"{name}low": low, f"{name}high": high}
        fields |= {end: round(value, 5) for end, value in ends.items()}
    return fields


def reached(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Returns the first row in which a search of the most simulations reaches the aim, None if none does."""
    most = max(row["simulations"] for row in rows)
    those = [row for row in rows if row["simulations"] == most and row["share"] >= AIM]
    return min(those, key=lambda row: row["step"]) if those else None


def table(report: dict[str, Any]) -> str:
    """Returns the shares of every checkpoint in Markdown."""
    rows = report["rows"]
    cases = list(dict.fromkeys((row["search"], row["simulations"]) for row in rows))
    lines = [["step", "training, s", "positions", *(title(*case) for case in cases)], ["---"] * (3 + len(cases))]
    by_step = {(row["step"], row["search"], row["simulations"]): row for row in rows}
    for step in sorted({row["step"] for row in rows}):
        seconds = f"{by_step[step, *POLICY]['training_seconds']:.0f}"
        for kind, name in (("all", ""), ("critical", "critical_")):
            those = [[by_step[step, *case][f"{name}{end}"] for end in ("share", "low", "high")] for case in cases]
            cells = [f"{share:.1%} ({low:.1%} to {high:.1%})" for share, low, high in those]
            lines.append([str(step), seconds, kind, *cells])
    first, most = report["reached"], max(simulations for _, simulations in cases)
    aim = (
        f"The aim, {AIM:.1%} of all at {most} simulations, is not reached."
        if first is None
        else f"The aim, {AIM:.1%} of all at {most} simulations, is reached at step {first['step']}, after"
        f" {first['training_seconds']:.0f} s of training, by {SEARCHES[first['search']]}."
    )
    last = by_step[max(row["step"] for row in rows), "puct", most]
    worst = sorted(last["plies"], key=lambda ply: ply[2] / ply[1])[:3]
    weak = ", ".join(f"{ply} ({kept} of {number})" for ply, number, kept in worst)
    return (
        f"# Moves of {report['game']}'s agent that keep the exact value, budget {report['budget']}\n\n"
        + markdown(lines)
        + f"\n{aim} {last['positions']:,} different positions of random games, spread over the plies, of which"
        f" {last['critical']:,} are critical; 95 % intervals. Plies at which the last agent with {most}"
        f" simulations of PUCT keeps least: {weak}. {report['device']}, {report['cores']} cores, {report['date']},"
        f" commit {report['commit']}, seed {report['seed']} (run) and 0 (positions). The seconds of training hold what"
        " other work on the machine took.\n" + "".join(f"\n{plan_text(plan)}\n" for plan in report["plans"])
    )


def draw(path: Path, report: dict[str, Any]) -> None:
    """Draws the shares of values given away over the time of training, of all positions and of critical ones."""
    figure = Figure(figsize=(10, 4), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    rows = report["rows"]
    for axes, name in zip(figure.subplots(1, 2), ("", "critical_"), strict=True):
        for index, case in enumerate(dict.fromkeys((row["search"], row["simulations"]) for row in rows)):
            those = [row for row in rows if (row["search"], row["simulations"]) == case]
            lost, low, high = (
                100 * (1 - np.array([row[f"{name}{end}"] for row in those])) for end in ("share", "high", "low")
            )
            axes.errorbar(
                [row["training_seconds"] / 60 for row in those],
                lost,
                (lost - low, high - lost),
                color=COLORS[index],
                marker=MARKERS[index],
                capsize=3,
                label=title(*case),
            )
        which = "critical positions" if name else "all positions"
        axes.set(xlabel="minutes of training", title=which, ylim=(0, None), xlim=(0, None))
        tidy(axes)
    figure.axes[0].axhline(100 * (1 - AIM), color="#444444", linestyle=":", label=f"aim, {AIM:.1%} kept")
    figure.axes[0].set(ylabel="moves that give value away, %")
    figure.axes[0].legend(loc="best", frameon=False)
    save_picture(path, canvas)


def main(options: Options) -> int:
    """Trains (or goes on), asks and writes; returns the exit status."""
    use_devices(0)
    config = configuration(options.budget)
    if options.plan:
        print(plan_text(plan_report(config)))
        return 0
    run = RunDirectory(run_path(options.budget, options.runs))
    with oracle(envs.make(config.game)) as values:  # before training: it says at once if bitbully is missing
        if status := train(config, run.path):
            return status
        memory = remembered(values, run.path / "perfect.npz")
        rows = ask_checkpoints(run, config, memory, SIMULATIONS[options.budget], options.positions)
    report = {
        "budget": options.budget,
        "game": config.game,
        "seed": config.seed,
        **provenance(),
        "aim": AIM,
        "reached": reached(rows),
        "plans": [plan_report(configuration("paper"))] if options.budget != "smoke" else [],
        "rows": rows,
    }
    out = options.out or (run.path / "results" if options.budget == "smoke" else RESULTS / options.budget)
    flat = [{name: value for name, value in row.items() if name != "plies"} for row in rows]
    publish(out, report, flat, table(report), lambda path: draw(path, report))
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
