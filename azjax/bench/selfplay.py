"""Self-play beside the network alone, and beside the same self-play with mctx's policy, in turns."""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
from jax.sharding import Mesh, PartitionSpec

from azjax import network
from azjax.bench.report import comparison, machine
from azjax.config import RunConfig
from azjax.players import LoadedRun, check_run_game
from azjax.presets import preset
from azjax.search.tree import NO_NODE
from azjax.selfplay import Lanes, count, play_ply, search_policy, start_lanes
from azjax.step import AXIS, make_mesh
from azjax.train import resolve
from azjax.types import Variables
from envs.core import Game

ROUNDS = 6
"""Turns of each side, so that what else the machine does meets both."""
FORWARD_REPEATS = 64
"""Evaluations in one call of the network's program."""


SelfPlayFn = Callable[[Variables, jax.Array, Lanes], tuple[Lanes, jax.Array, Any]]
"""(variables, rng_key, lanes [B]) -> (lanes after a ply, new nodes int32[D], metrics)."""


@dataclasses.dataclass(kw_only=True)
class Tally:
    """What one side did in its turns."""

    seconds: float = 0.0
    plies: int = 0  # in every lane; of the network alone: batches
    nodes: int = 0  # new nodes; of the network alone: positions


def bench_selfplay(
    game: Game,
    run: LoadedRun | None,
    *,
    lanes: int,
    simulations: int,
    seconds: float,
    algorithm: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measures self-play against the network alone, and against the same self-play with mctx's policy.

    Self-play is in its steady state: lanes are warmed up for two games, so that they stand at all stages. Nodes are
    counted in every search's tree: a simulation that ends at a terminal node seen before evaluates nothing. The network
    alone evaluates batches of as many positions as there are lanes.

    Args:
      game: the rules.
      run: whose network and search constants; None for a fresh network of the quick preset.
      lanes: games side by side, over all devices.
      simulations: of each search.
      seconds: of self-play; a third of it for each reference.
      algorithm: puct (beside mctx.muzero_policy) or gumbel (beside mctx.gumbel_muzero_policy); None: the run's own.
      say: is told what is going on.

    Returns:
      {"device", "cores", "rows": [{"case", "ours", "reference", "reference_name", "unit", "ratio"}], ...}.

    Raises:
      ValueError: the run is of another game, or lanes do not divide by the devices.
    """
    mesh = make_mesh(0)
    if lanes % mesh.size:
        raise ValueError(f"--lanes: got {lanes}, expected a multiple of the {mesh.size} devices")
    config = _config(game, run, lanes, simulations, algorithm)
    fresh_key, lanes_key, warm_key, key = jax.random.split(jax.random.key(0), 4)
    variables = run.variables if run is not None else network.init(config.network, game, fresh_key)
    say(f"{game.id}, {lanes} games on {mesh.size} x {mesh.devices.flat[0].device_kind}: compiling")
    ours = _selfplay(config, game, mesh)
    theirs = None if game.has_chance else _selfplay(config, game, mesh, _theirs(config))  # mctx has no dice here
    forward = _forward(config, game, mesh)

    state = start_lanes(game, lanes_key, lanes)
    say("warming up")
    for ply in range(min(2 * game.max_plies, 200)):
        state, _, _ = jax.block_until_ready(ours(variables, jax.random.fold_in(warm_key, ply), state))
    observations = jax.jit(jax.vmap(game.observe))(state.state)
    jax.block_until_ready(forward(variables, observations))
    if theirs:
        jax.block_until_ready(theirs(variables, key, state))

    by_ours, by_mctx, alone = Tally(), Tally(), Tally()
    for turn in range(ROUNDS):
        turn_key = jax.random.fold_in(key, turn)
        state = _play_for(by_ours, seconds / ROUNDS, ours, variables, turn_key, state)
        if theirs:
            _play_for(by_mctx, seconds / ROUNDS / 3, theirs, variables, turn_key, state)
        _evaluate_for(alone, seconds / ROUNDS / 3, forward, variables, observations)
        say(
            f"turn {turn + 1} of {ROUNDS}: {by_ours.nodes / by_ours.seconds:,.0f} new nodes/s,"
            f" the network alone {alone.nodes / alone.seconds:,.0f}/s"
        )
    asked = lanes * simulations  # in a ply
    algorithm = config.search.algorithm
    case = f"self-play {game.id}, {config.network.kind}, {algorithm}, {simulations} simulations, {lanes} games"
    return {
        **machine(mesh.size),
        "rows": [
            comparison(
                case,
                by_ours.nodes / by_ours.seconds,
                alone.nodes / alone.seconds,
                "the network alone",
                "new nodes/s",
            ),
            comparison(
                case,
                asked * by_ours.plies / by_ours.seconds,
                asked * by_mctx.plies / by_mctx.seconds if theirs else None,
                f"the same self-play with mctx.{'gumbel_' if algorithm == 'gumbel' else ''}muzero_policy",
                "simulations/s",
            ),
        ],
        "new_nodes_per_simulation": round(by_ours.nodes / (asked * by_ours.plies), 4),
        "weights": "fresh" if run is None else f"of step {run.step}",
    }


def _theirs(config: RunConfig) -> functools.partial:
    """Returns mctx's policy with the run's constants."""
    search = config.search
    if search.algorithm == "gumbel":
        # Without rescaling mctx takes Q from -1 to 1: twice as wide. What is added to all alike does not matter.
        qtransform = functools.partial(
            mctx.qtransform_completed_by_mix_value,
            value_scale=search.c_scale if search.rescale_values else search.c_scale / 2,
            maxvisit_init=search.c_visit,
            rescale_values=search.rescale_values,
        )
        return functools.partial(
            mctx.gumbel_muzero_policy,
            max_num_considered_actions=search.considered_actions,
            qtransform=qtransform,
        )
    return functools.partial(
        mctx.muzero_policy,
        dirichlet_fraction=search.dirichlet_fraction,
        dirichlet_alpha=search.dirichlet_alpha,
        pb_c_init=search.c_init if search.c_puct is None else search.c_puct,
        pb_c_base=search.c_base,
    )


def _config(game: Game, run: LoadedRun | None, lanes: int, simulations: int, algorithm: str | None = None) -> RunConfig:
    if run is not None:
        check_run_game(run.config, game, "--run")
    base = run.config if run is not None else preset("quick", game.id, game.max_plies)
    algorithm = algorithm or base.search.algorithm
    changed = dataclasses.replace(
        base,
        search=dataclasses.replace(
            base.search, algorithm=algorithm, simulations=simulations, implementation="azjax", parallel=False
        ),
        selfplay=dataclasses.replace(base.selfplay, lanes=lanes),
    )
    return resolve(changed, game)


def _selfplay(
    config: RunConfig, game: Game, mesh: Mesh, run: Callable[..., mctx.PolicyOutput] | None = None
) -> SelfPlayFn:
    """Compiles one ply of self-play over the mesh; `run` as in `search_policy`."""
    search = search_policy(config, game, explore=True, run=run)

    def ply(variables: Variables, rng_key: jax.Array, lanes: Lanes) -> tuple[Lanes, jax.Array, Any]:
        nodes = []

        def counting(*args: Any) -> Any:
            output = search(*args)
            nodes.append(jnp.sum(output.search_tree.parents != NO_NODE, dtype=jnp.int32))
            return output

        rng_key = jax.random.fold_in(rng_key, jax.lax.axis_index(AXIS))
        lanes, result = play_ply(config, game, counting, variables, rng_key, lanes)
        # Metrics of the positions too, so that XLA computes all that replay would be given.
        return lanes, nodes[0][None], jax.tree.map(lambda value: value[None], count(result))

    equal, split = PartitionSpec(), PartitionSpec(AXIS)
    mapped = jax.shard_map(
        ply, mesh=mesh, in_specs=(equal, equal, split), out_specs=(split, split, split), check_vma=False
    )
    return jax.jit(mapped)


def _forward(config: RunConfig, game: Game, mesh: Mesh) -> Callable[[Variables, jax.Array], jax.Array]:
    """Compiles FORWARD_REPEATS evaluations of a batch, each of other observations than the one before."""

    def evaluate(variables: Variables, observations: jax.Array) -> jax.Array:
        def once(observations: jax.Array, _: Any) -> tuple[jax.Array, None]:
            (logits, value), _ = network.apply(config.network, game, variables, observations, False)
            # A trace of both outputs in the next input, or XLA would evaluate once.
            trace = 1e-9 * (jnp.max(logits, axis=1) + value[:, 0])
            return observations + trace[:, None, None, None], None

        return jax.lax.scan(once, observations, None, length=FORWARD_REPEATS)[0]

    equal, split = PartitionSpec(), PartitionSpec(AXIS)
    return jax.jit(jax.shard_map(evaluate, mesh=mesh, in_specs=(equal, split), out_specs=split, check_vma=False))


def _play_for(
    tally: Tally, seconds: float, program: SelfPlayFn, variables: Variables, rng_key: jax.Array, lanes: Lanes
) -> Lanes:
    """Plays for `seconds`, at least one ply, and returns the lanes afterwards."""
    started, nodes = time.perf_counter(), 0
    while True:
        lanes, new, _ = program(variables, jax.random.fold_in(rng_key, tally.plies), lanes)
        nodes += int(new.sum())  # waits for the ply
        tally.plies += 1
        passed = time.perf_counter() - started
        if passed >= seconds:
            tally.seconds, tally.nodes = tally.seconds + passed, tally.nodes + nodes
            return lanes


def _evaluate_for(
    tally: Tally, seconds: float, program: Callable[..., jax.Array], variables: Variables, observations: jax.Array
) -> None:
    started = time.perf_counter()
    while True:
        jax.block_until_ready(program(variables, observations))
        tally.plies += FORWARD_REPEATS
        tally.nodes += FORWARD_REPEATS * observations.shape[0]
        passed = time.perf_counter() - started
        if passed >= seconds:
            tally.seconds += passed
            return
