"""Self-play beside the network alone, and beside the same self-play with mctx's policy, in turns."""

import dataclasses
import functools
import statistics
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
PLIES = 4
"""Plies in one call of self-play's program: a step of training is one program of many plies too."""


SelfPlayFn = Callable[[Variables, jax.Array, Lanes], tuple[Lanes, jax.Array, Any]]
"""(variables, rng_key, lanes [B]) -> (lanes after the plies, new nodes int32[D], metrics of each ply)."""


@dataclasses.dataclass
class Tally:
    """What one side did in its turns."""

    seconds: list[float] = dataclasses.field(default_factory=list)  # of each call of its program
    nodes: int = 0  # new nodes, in all of them; of the network alone: positions

    def per_second(self, number: float) -> float:
        """Returns the rate of what a call does `number` times, by the median of the calls."""
        return number / statistics.median(self.seconds)

    def nodes_per_second(self) -> float:
        return self.per_second(self.nodes / len(self.seconds))


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
    ours = _selfplay(config, game, mesh, PLIES)
    theirs = None if game.has_chance else _selfplay(config, game, mesh, PLIES, _theirs(config))  # mctx has no dice here
    forward = _forward(config, game, mesh)

    state = start_lanes(game, lanes_key, lanes)
    say("warming up")
    for call in range(-(-min(2 * game.max_plies, 200) // PLIES)):
        state, _, _ = jax.block_until_ready(ours(variables, jax.random.fold_in(warm_key, call), state))
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
            f"turn {turn + 1} of {ROUNDS}: {by_ours.nodes_per_second():,.0f} new nodes/s,"
            f" the network alone {alone.nodes_per_second():,.0f}/s"
        )
    asked = lanes * simulations * PLIES  # in a call
    algorithm = config.search.algorithm
    case = f"self-play {game.id}, {config.network.kind}, {algorithm}, {simulations} simulations, {lanes} games"
    return {
        **machine(mesh.size),
        "rows": [
            comparison(
                case,
                by_ours.nodes_per_second(),
                alone.nodes_per_second(),
                "the network alone",
                "new nodes/s",
            ),
            comparison(
                case,
                by_ours.per_second(asked),
                by_mctx.per_second(asked) if theirs else None,
                f"the same self-play with mctx.{'gumbel_' if algorithm == 'gumbel' else ''}muzero_policy",
                "simulations/s",
            ),
        ],
        "new_nodes_per_simulation": round(by_ours.nodes / (asked * len(by_ours.seconds)), 4),
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
    config: RunConfig, game: Game, mesh: Mesh, plies: int, run: Callable[..., mctx.PolicyOutput] | None = None
) -> SelfPlayFn:
    """Compiles plies of self-play over the mesh; `run` as in `search_policy`."""
    search = search_policy(config, game, explore=True, run=run)

    def ply(variables: Variables, lanes: Lanes, rng_key: jax.Array) -> tuple[Lanes, Any]:
        nodes = []

        def counting(*args: Any) -> Any:
            output = search(*args)
            nodes.append(jnp.sum(output.search_tree.parents != NO_NODE, dtype=jnp.int32))
            return output

        lanes, result = play_ply(config, game, counting, variables, rng_key, lanes)
        # Metrics of the positions too, so that XLA computes all that replay would be given.
        return lanes, (nodes[0], count(result))

    def play(variables: Variables, rng_key: jax.Array, lanes: Lanes) -> tuple[Lanes, jax.Array, Any]:
        keys = jax.random.split(jax.random.fold_in(rng_key, jax.lax.axis_index(AXIS)), plies)
        lanes, (nodes, counts) = jax.lax.scan(functools.partial(ply, variables), lanes, keys)
        return lanes, jnp.sum(nodes, keepdims=True), jax.tree.map(lambda values: values[None], counts)

    equal, split = PartitionSpec(), PartitionSpec(AXIS)
    mapped = jax.shard_map(
        play, mesh=mesh, in_specs=(equal, equal, split), out_specs=(split, split, split), check_vma=False
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
    """Plays for `seconds`, at least one call, and returns the lanes afterwards."""
    ends = time.perf_counter() + seconds
    while True:
        key = jax.block_until_ready(jax.random.fold_in(rng_key, len(tally.seconds)))
        started = time.perf_counter()
        lanes, new, _ = jax.block_until_ready(program(variables, key, lanes))
        tally.seconds.append(time.perf_counter() - started)
        tally.nodes += int(new.sum())
        if time.perf_counter() >= ends:
            return lanes


def _evaluate_for(
    tally: Tally, seconds: float, program: Callable[..., jax.Array], variables: Variables, observations: jax.Array
) -> None:
    ends = time.perf_counter() + seconds
    while True:
        started = time.perf_counter()
        jax.block_until_ready(program(variables, observations))
        tally.seconds.append(time.perf_counter() - started)
        tally.nodes += FORWARD_REPEATS * observations.shape[0]
        if time.perf_counter() >= ends:
            return
