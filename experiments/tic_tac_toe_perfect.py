"""Does a trained agent ever lose at tic-tac-toe? Plays it against every possible sequence of replies, from both seats.

    python -m experiments.tic_tac_toe_perfect [--budget smoke|quick] [--simulations 64] [--runs DIR] [--out DIR]

The agent is the run of the preset `quick` under --runs (that of `azjax train tic_tac_toe`), trained or gone on with
where it is not finished. It plays without noise, so that its move in a position is always the same: the games below are
all there are.
"""

import dataclasses
import sys
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import envs
from azjax.config import NetworkConfig, RunConfig
from azjax.players import Player, run_player
from azjax.presets import preset
from azjax.report import save_picture
from azjax.rundir import load_run
from azjax.train import use_devices
from envs.core import Game, State
from experiments.provenance import markdown, provenance, publish, say, where
from experiments.trained import Stopped, trained

RESULTS = Path(__file__).parent / "results" / "tic_tac_toe_perfect"
CHUNK = 512
"""Positions the agent is asked about in one call."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Plays tic-tac-toe against every sequence of replies."""

    budget: Literal["smoke", "quick"] = "smoke"
    """smoke: a few games, the same way; quick: the preset of this name."""
    simulations: int = 64
    """A move of the agent's."""
    runs: Path = Path("runs")
    """Where the runs are."""
    out: Path | None = None
    """Where the results go; budget quick: experiments/results/tic_tac_toe_perfect, else into the run."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcomes:
    """Games by their result, the agent's view."""

    wins: int = 0
    draws: int = 0
    losses: int = 0


def play_every_reply(game: Game, player: Player, seat: int) -> Outcomes:
    """Plays `player` in `seat` (0 or 1) against every sequence of replies."""
    choose, step = jax.jit(player.choose), jax.jit(jax.vmap(game.step))
    ask = jax.jit(lambda states: tuple(jax.vmap(f)(states) for f in (game.terminated, game.returns, game.to_move)))
    legal = jax.jit(jax.vmap(game.legal_action_mask))
    states = jax.tree.map(lambda leaf: leaf[None], game.init(jax.random.key(0)))
    outcomes = Outcomes()
    while (number := len(jax.tree.leaves(states)[0])) > 0:
        over, returns, mover = map(np.asarray, ask(states))
        results = returns[over, seat]
        outcomes = Outcomes(
            wins=outcomes.wins + int((results > 0).sum()),
            draws=outcomes.draws + int((results == 0).sum()),
            losses=outcomes.losses + int((results < 0).sum()),
        )
        if over.any():
            states = _rows(states, np.flatnonzero(~over))
        elif mover[0] == seat:
            states = step(
                states, jnp.concatenate([_choose(choose, player, states, at) for at in range(0, number, CHUNK)])
            )
        else:
            row, action = np.nonzero(np.asarray(legal(states)))
            states = step(_rows(states, row), jnp.asarray(action, jnp.int32))
    return outcomes


def _rows(states: State, rows: np.ndarray) -> State:
    return jax.tree.map(lambda leaf: leaf[rows], states)


def _choose(choose: Any, player: Player, states: State, start: int) -> jax.Array:
    """Asks for the actions of CHUNK positions from `start` on; the last call repeats its last position."""
    number = len(jax.tree.leaves(states)[0])
    rows = np.minimum(np.arange(start, start + CHUNK), number - 1)
    return choose(player.params, jax.random.key(0), _rows(states, rows))[: number - start]


def configuration(budget: str) -> RunConfig:
    """Returns the preset, or a few games that take the same way."""
    config = preset("quick", "tic_tac_toe")
    if budget == "quick":
        return config
    return dataclasses.replace(
        config,
        preset="tic_tac_toe_perfect-smoke",
        steps=2,
        network=NetworkConfig(kind="mlp", width=16),
        selfplay=dataclasses.replace(config.selfplay, lanes=16),
        learner=dataclasses.replace(config.learner, batch=32, updates=2),
        evaluation=dataclasses.replace(config.evaluation, every=0, final_games=2, checkpoints=1),
    )


def table(report: dict[str, Any]) -> str:
    """Returns the outcomes of each seat in Markdown."""
    lines = [["the agent moves", "won", "drawn", "lost"], ["---"] * 4]
    lines += [[row["seat"], *(f"{row[name]}" for name in ("wins", "draws", "losses"))] for row in report["rows"]]
    return (
        "# Tic-tac-toe against every sequence of replies\n\n"
        + markdown(lines)
        + f"\nAll games there are, {report['simulations']} simulations a move without noise. Step {report['step']} of"
        f" {report['preset']}, {report['training_seconds']:.0f} s of training, seed {report['seed']}."
        f" {where([report])}.\n"
    )


def draw(path: Path, rows: list[dict[str, Any]]) -> None:
    """Draws the outcomes of each seat as bars."""
    figure = Figure(figsize=(6, 2), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes, left = figure.add_subplot(), np.zeros(len(rows))
    for name, color in (("wins", "#0072B2"), ("draws", "#999999"), ("losses", "#D55E00")):
        numbers = np.array([row[name] for row in rows])
        axes.barh([row["seat"] for row in rows], numbers, left=left, color=color, label=name)
        left += numbers
    axes.set(xlabel="games")
    axes.legend(loc="best", frameon=False)
    save_picture(path, canvas)


def main(options: Options) -> int:
    """Trains (or goes on), plays and writes; returns the exit status."""
    use_devices(0)
    config = configuration(options.budget)
    directory = options.runs / ("tic_tac_toe-quick" if options.budget == "quick" else "tic_tac_toe_perfect-smoke")
    try:
        run = trained(config, directory)
    except Stopped as stopped:
        return stopped.status
    game, agent = envs.make("tic_tac_toe"), load_run(str(run.path), config.steps)
    player = run_player(game, agent, "agent", {"simulations": str(options.simulations)})
    rows = []
    for seat, name in enumerate(("first", "second")):
        outcomes = play_every_reply(game, player, seat)
        say(f"moving {name}: {outcomes}")
        rows.append({"seat": name, **dataclasses.asdict(outcomes)})
    last = [row for row in run.rows() if "games_in_step" in row][-1]
    report = {
        "budget": options.budget,
        "preset": config.preset,
        "seed": config.seed,
        "step": agent.step,
        "training_seconds": round(last["seconds"], 1),
        "simulations": options.simulations,
        **provenance(),
        "rows": rows,
    }
    out = options.out or (RESULTS if options.budget == "quick" else run.path / "results")
    publish(out, report, rows, table(report), lambda path: draw(path, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
