"""One step of a run: P plies in every lane, then U updates. The table of contents of azjax, and its SPMD program.

`step(run_state) -> (run_state, metrics)` runs over the mesh axis "data": lanes and replay are split over the devices,
everything else is equal on all of them, gradients are averaged.

Fused, the step is one compiled program. Split, the plies are one, and each update is a call of another on the first
device alone, where the devices' samples stand side by side under vmap with the same axis name: the same numbers. "auto"
splits on CPU and fuses on accelerators. On CPU a convolution's gradient inside a scan is some 30 times slower than
alone (jax issue 12868), and devices of one process wait for each other's gradients inside XLA's only thread pool, which
stops for ever when it has no more threads than devices (a larger pool makes self-play half as fast).
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from azjax import network
from azjax.config import RunConfig
from azjax.learner import Learner, learning_rate, start_learner, update
from azjax.replay import Drawn, Replay, draw, start_replay, write
from azjax.selfplay import Lanes, count, play_ply, position_shapes, resign_share, search_policy, start_lanes
from azjax.types import Metrics, Variables
from envs.core import Game, register_state

AXIS = "data"


@register_state
class RunState:
    """Everything that a run needs to go on; checkpoints hold it whole. Lane axes are global (all devices)."""

    learner: Learner
    best: Variables  # the gate's holder; {} without a gate
    lanes: Lanes  # [B]
    replay: Replay  # [L, B]
    rng_key: jax.Array  # the run's root key: never consumed, folded with step and device
    step: jax.Array  # int32[], steps done


def make_mesh(num_devices: int) -> Mesh:
    """Returns a mesh over the first `num_devices` devices (0: all).

    Raises:
      ValueError: there are fewer.
    """
    devices = jax.devices()
    wanted = num_devices or len(devices)
    if wanted > len(devices):
        raise ValueError(f"devices: got {wanted}, expected at most {len(devices)} ({devices[0].platform} devices here)")
    return Mesh(np.array(devices[:wanted]), (AXIS,), axis_types=(AxisType.Auto,))


def _specs() -> RunState:
    """Returns, as a prefix of RunState, how each part lies on the mesh."""
    equal: Any = PartitionSpec()
    lanes: Any = PartitionSpec(AXIS)
    rows: Any = PartitionSpec(None, AXIS)
    replay = Replay(positions=rows, outcome=rows, has_outcome=rows, head=equal, filled=equal, pending=lanes)
    return RunState(learner=equal, best=equal, lanes=lanes, replay=replay, rng_key=equal, step=equal)


def _split(name: str, total: int, num_devices: int) -> int:
    if total % num_devices:
        raise ValueError(f"{name}: got {total}, expected a multiple of the {num_devices} devices")
    return total // num_devices


class Step:
    """The compiled programs of a run: `init`, and the step itself."""

    def __init__(self, config: RunConfig, game: Game, mesh: Mesh):
        """Traces nothing yet.

        Raises:
          ValueError: lanes or batch do not divide by the devices, or a whole game does not fit into replay.
        """
        self.config, self.game, self.mesh = config, game, mesh
        self.num_lanes = _split("selfplay.lanes", config.selfplay.lanes, mesh.size)
        self.num_samples = _split("learner.batch", config.learner.batch, mesh.size)
        self.total_updates = max(config.steps * config.learner.updates, 1)
        self.policy = search_policy(config, game, explore=True)
        platform = mesh.devices.flat[0].platform
        self.fused = platform != "cpu" if config.learner.fused == "auto" else config.learner.fused == "true"
        self.fused |= jax.process_count() > 1
        self.seconds = (0.0, 0.0)  # of the last step: self-play, learning (a fused step cannot tell: all, 0)
        self._learning_rate = learning_rate(config.learner, self.total_updates)
        specs, equal, per_device = _specs(), PartitionSpec(), PartitionSpec(AXIS)

        def spmd(function: Any, in_specs: Any, out_specs: Any, donate: tuple[int, ...]) -> Any:
            # check_vma=False: the search's loops start from constants that are the same on all devices.
            mapped = jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
            return jax.jit(mapped, donate_argnums=donate)

        self.init = jax.jit(self._init, out_shardings=self.shardings())
        in_specs = (equal, equal, specs.lanes, specs.replay, equal, equal)
        self._play = spmd(self._play_plies, in_specs, (specs.lanes, specs.replay, per_device), (2, 3))
        self._draw = spmd(self._draw_all, (specs.replay, equal, equal), per_device, ())
        self._update: Any = jax.jit(self._update_side_by_side, donate_argnums=(0,))
        self._step = spmd(self._fused_step, (specs,), (specs, per_device), (0,))
        self._next = jax.jit(lambda step: step + 1)

    def learning_rate(self, updates: int) -> float:
        """Returns the rate of the update after `updates` applied ones."""
        return float(np.asarray(self._learning_rate(updates), np.float32))

    def programs(self, like: RunState) -> list[Callable[[], None]]:
        """Returns what compiles the step ahead of time, a call a program, to be run side by side.

        Args:
          like: shapes of the state, as jax.eval_shape(step.init, key) gives them.
        """
        one = SingleDeviceSharding(self.mesh.devices.flat[0])
        like = self.placed(like)

        def on(sharding: Any, tree: Any) -> Any:
            return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)

        def play() -> None:
            lowered = self._play.lower(
                like.learner.variables, like.best, like.lanes, like.replay, like.rng_key, like.step
            )
            self._play = lowered.compile()

        def draw_all() -> None:
            self._draw = self._draw.lower(like.replay, like.rng_key, like.step).compile()

        def learn() -> None:
            drawn, keys = jax.eval_shape(self._draw, like.replay, like.rng_key, like.step)
            number = jax.ShapeDtypeStruct((), jnp.int32, sharding=one)
            self._update = self._update.lower(on(one, like.learner), on(one, drawn), on(one, keys), number).compile()

        def fused() -> None:
            self._step = self._step.lower(like).compile()

        if self.fused:
            return [fused]
        return [play, learn, draw_all] if self.config.learner.updates else [play]

    def placed(self, like: RunState) -> RunState:
        """Returns `like` as shapes with the shardings of the mesh, as checkpoints want it to restore."""

        def place(sharding: Any, part: Any) -> Any:
            return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), part)

        return jax.tree.map(place, self.shardings(), like)

    def shardings(self) -> Any:
        """Returns RunState's shardings, a prefix of it."""
        is_spec = lambda leaf: isinstance(leaf, PartitionSpec)  # noqa: E731
        return jax.tree.map(lambda spec: NamedSharding(self.mesh, spec), _specs(), is_leaf=is_spec)

    def __call__(self, state: RunState) -> tuple[RunState, Metrics]:
        """Runs one step; `state` is donated. Metrics are per device: [D] for sums and means over plies or updates."""
        started = time.perf_counter()
        if self.fused:
            state, metrics = jax.block_until_ready(self._step(state))
            self.seconds = (time.perf_counter() - started, 0.0)
            return state, metrics
        lanes, replay, metrics = self._play(
            state.learner.variables, state.best, state.lanes, state.replay, state.rng_key, state.step
        )
        jax.block_until_ready(metrics)
        played = time.perf_counter()
        learner = state.learner
        if self.config.learner.updates:
            one, equal = SingleDeviceSharding(self.mesh.devices.flat[0]), NamedSharding(self.mesh, PartitionSpec())
            drawn, symmetry_keys = jax.device_put(self._draw(replay, state.rng_key, state.step), one)
            learner, all_learned = jax.device_put(learner, one), []
            for number in range(self.config.learner.updates):
                learner, learned = self._update(learner, drawn, symmetry_keys, np.int32(number))
                all_learned.append(learned)
            learner = jax.block_until_ready(jax.device_put(learner, equal))
            metrics = metrics | {k: sum(learned[k] for learned in all_learned) / len(all_learned) for k in learned}
        self.seconds = (played - started, time.perf_counter() - played)
        state = dataclasses.replace(state, learner=learner, lanes=lanes, replay=replay, step=self._next(state.step))
        return state, metrics

    def _init(self, rng_key: jax.Array) -> RunState:
        network_key, lanes_key, run_key = jax.random.split(rng_key, 3)
        variables = network.init(self.config.network, self.game, network_key)
        selfplay = self.config.selfplay
        lanes = start_lanes(self.game, lanes_key, selfplay.lanes, selfplay.opening_plies, resign_share(selfplay))
        learner = start_learner(self.config, variables, self.total_updates)
        positions = position_shapes(self.config, self.game, lanes.state)
        return RunState(
            learner=learner,
            best=variables if self.config.gate.every else {},
            lanes=lanes,
            replay=start_replay(positions, self.config.replay.plies, self.game.max_plies),
            rng_key=run_key,
            step=jnp.int32(0),
        )

    def _ply(self, variables: Variables, rng_key: jax.Array, lanes: Lanes) -> Any:
        return play_ply(self.config, self.game, self.policy, variables, rng_key, lanes)

    def _key(self, rng_key: jax.Array, step: jax.Array, purpose: int) -> jax.Array:
        for number in (step, jax.lax.axis_index(AXIS), purpose):
            rng_key = jax.random.fold_in(rng_key, number)
        return rng_key

    def _play_plies(
        self, variables: Variables, best: Variables, lanes: Lanes, replay: Replay, rng_key: jax.Array, step: jax.Array
    ) -> tuple[Lanes, Replay, Metrics]:
        actor = best if self.config.selfplay.actor == "best" else variables

        def ply(carry: tuple[Lanes, Replay], key: jax.Array) -> tuple[tuple[Lanes, Replay], Metrics]:
            lanes, replay = carry
            lanes, result = self._ply(actor, key, lanes)
            return (lanes, write(replay, result)), count(result)

        keys = jax.random.split(self._key(rng_key, step, 0), self.config.selfplay.plies)
        (lanes, replay), counts = jax.lax.scan(ply, (lanes, replay), keys)
        is_count = {name: jnp.issubdtype(values.dtype, jnp.integer) for name, values in counts.items()}
        metrics = {name: (jnp.sum if is_count[name] else jnp.mean)(counts[name])[None] for name in counts}
        return lanes, replay, metrics

    def _draw_all(self, replay: Replay, rng_key: jax.Array, step: jax.Array) -> tuple[Drawn, jax.Array]:
        """Draws this device's samples of all U updates, and a key for the symmetries of each: [1, U, ...]."""
        number = jnp.arange(self.config.learner.updates, dtype=jnp.int32)
        keys = jax.vmap(lambda n: jax.random.split(jax.random.fold_in(self._key(rng_key, step, 1), n)))(number)
        drawn = jax.lax.map(lambda key: draw(replay, key, self.num_samples), keys[:, 0])
        return jax.tree.map(lambda leaf: leaf[None], (drawn, keys[:, 1]))

    def _update_once(self, learner: Learner, drawn: Drawn, symmetry_key: jax.Array) -> tuple[Learner, Metrics]:
        return update(self.config, self.game, self.total_updates, learner, drawn, symmetry_key, AXIS)

    def _update_side_by_side(
        self, learner: Learner, drawn: Drawn, symmetry_keys: jax.Array, number: jax.Array
    ) -> tuple[Learner, Metrics]:
        """Does on one device what `_update_once` does on all: the leading axis of `drawn` [D, U, ...] is the mesh's."""
        drawn, keys = jax.tree.map(lambda leaf: leaf[:, number], (drawn, symmetry_keys))
        side_by_side = jax.vmap(self._update_once, in_axes=(None, 0, 0), out_axes=(None, 0), axis_name=AXIS)
        return side_by_side(learner, drawn, keys)

    def _fused_step(self, state: RunState) -> tuple[RunState, Metrics]:
        lanes, replay, metrics = self._play_plies(
            state.learner.variables, state.best, state.lanes, state.replay, state.rng_key, state.step
        )
        learner = state.learner
        if self.config.learner.updates:
            drawn, keys = jax.tree.map(lambda leaf: leaf[0], self._draw_all(replay, state.rng_key, state.step))
            learner, learned = jax.lax.scan(
                lambda learner, sample: self._update_once(learner, *sample), learner, (drawn, keys)
            )
            metrics = metrics | {name: jnp.mean(values)[None] for name, values in learned.items()}
        state = dataclasses.replace(state, learner=learner, lanes=lanes, replay=replay, step=state.step + 1)
        return state, metrics
