"""Whole steps of training, self-play and updates, beside the same steps with mctx's search, in turns."""

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from azjax.bench.report import comparison, machine
from azjax.config import RunConfig
from azjax.players import LoadedRun, check_run_game
from azjax.presets import preset
from azjax.step import RunState, Step, make_mesh
from azjax.train import choose_devices, resolve
from envs.core import Game

LEAST_TURNS = 3


def bench_train(
    game: Game, run: LoadedRun | None, *, seconds: float, say: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Measures plies a second of whole steps at the sizes of a run's configuration, with our search and with mctx's.

    Games start together and spread out over a warm-up of a quarter of the time; updates do their work from the first
    step on, whether or not a game is finished.

    Args:
      game: the rules.
      run: whose configuration and network; None for the quick preset and a fresh network.
      seconds: of all turns; there are LEAST_TURNS at least, in each of which both sides make a step.
      say: is told what is going on.

    Returns:
      {"device", "cores", "rows": [...], "step": {"selfplay_seconds", "learning_seconds", "compile_seconds"}} of our
      steps, medians; a fused step cannot tell the first two apart, and all is self-play.

    Raises:
      ValueError: the run is of another game, or its sizes do not fit these devices.
    """
    if run is not None:
        check_run_game(run.config, game, "--run")
    config = resolve(run.config if run is not None else preset("quick", game.id), game)
    mesh = make_mesh(choose_devices(config))
    sides = [
        Step(dataclasses.replace(config, search=dataclasses.replace(config.search, implementation=name)), game, mesh)
        for name in ("azjax", "mctx")
    ]
    say(f"{game.id}, {config.selfplay.lanes} games on {mesh.size} x {mesh.devices.flat[0].device_kind}: compiling")
    states, compiled = [], []
    for step in sides:
        started = time.perf_counter()
        states.append(_first(step, config, run))
        compiled.append(time.perf_counter() - started)
    say("warming up")
    started = time.perf_counter()
    while time.perf_counter() - started < seconds / 4:
        states[0], _ = sides[0](states[0])
    states[1] = dataclasses.replace(states[1], lanes=jax.tree.map(lambda leaf: leaf.copy(), states[0].lanes))

    times: list[list[tuple[float, float]]] = [[], []]
    started = time.perf_counter()
    while len(times[1]) < LEAST_TURNS or time.perf_counter() - started < seconds:
        for side, step in enumerate(sides):
            states[side], _ = step(states[side])
            times[side].append(step.seconds)
        say(f"turn {len(times[1])}: {sum(times[0][-1]):.2f} s a step, with mctx {sum(times[1][-1]):.2f} s")
    plies = config.selfplay.lanes * config.selfplay.plies
    rates = [plies / statistics.median(map(sum, taken)) for taken in times]
    case = (
        f"train {game.id}, {config.search.algorithm}, {config.search.simulations} simulations, "
        f"{config.selfplay.lanes} games, {config.learner.updates} updates of {config.learner.batch}"
    )
    selfplay, learning = (statistics.median(part) for part in zip(*times[0], strict=True))
    return {
        **machine(mesh.size),
        "rows": [comparison(case, rates[0], rates[1], "the same steps with mctx's search", "plies/s")],
        "step": {
            "selfplay_seconds": round(selfplay, 4),
            "learning_seconds": round(learning, 4),
            "compile_seconds": round(compiled[0], 1),
        },
    }


def _first(step: Step, config: RunConfig, run: LoadedRun | None) -> RunState:
    """Compiles a step by taking one, from which training goes on."""
    state = step.init(jax.random.key(config.seed))
    if run is not None:
        # Copies: a step gives its state away.
        learner = dataclasses.replace(state.learner, variables=jax.tree.map(jnp.array, run.variables))
        state = dataclasses.replace(state, learner=learner)
    return step(state)[0]
