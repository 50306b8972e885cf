"""The plan of a run: what it needs of a device's memory, and how much work a step is, before anything is compiled."""

import dataclasses
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh
from rich import box
from rich.table import Table

from azjax import network
from azjax.accelerators import Accelerators
from azjax.config import RunConfig
from azjax.search import begin_search, game_model, num_slots
from azjax.search.parallel import halving_phases
from azjax.search.tree import plant
from azjax.step import AXIS, RunState, Step
from envs.core import Game, num_bytes

USABLE = 0.9
"""Share of a device's memory that a plan may fill; the rest is for code, fragmentation and the arena."""

POLICY_ARRAYS = 3
"""Arrays as wide as the policy that an update holds besides the network's."""

MOST_ENTRIES = 2**31 - 1
"""Edges of all trees of a device: the search's indices are int32."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bytes:
    """Memory on one device."""

    lanes: int  # the games in progress
    tree: int  # one search in every lane, and the evaluation of its leaves
    replay: int
    parameters: int  # with batch statistics and the gate's copy
    optimizer: int
    activations: int  # of an update: its samples, what the network keeps for the gradient, the losses
    gradients: int

    @property
    def kept(self) -> int:
        """What is there from step to step."""
        return self.lanes + self.replay + self.parameters + self.optimizer

    @property
    def change(self) -> int:
        """What the end of an update takes: all new numbers beside the old ones, and the gradients.

        The old ones stay until the new are known to be finite. The gradients are averaged in one row, of which about
        half is there a second time while it is taken apart.
        """
        return self.optimizer + round(2.5 * self.gradients)

    @property
    def update(self) -> int:
        """What an update takes: its way back and its end come in turn."""
        return max(self.activations + self.gradients, self.change)

    @property
    def total(self) -> int:
        """What is in use at once: the search and an update come in turn."""
        return self.kept + max(self.tree, self.update)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Work:
    """What one step does, over all devices."""

    positions: int
    simulations: int
    samples: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """Memory on each device, and work of a step."""

    config: RunConfig
    devices: int
    device_kind: str
    device_bytes: int  # of each device
    bytes: Bytes
    work: Work
    checkpoint_bytes: int  # of all devices
    idle: int  # devices beside these that are left out, see `usable_devices`

    @property
    def fits(self) -> bool:
        """Whether the run needs no more than the share USABLE of a device's memory."""
        return self.bytes.total <= USABLE * self.device_bytes

    def to_json(self) -> dict[str, Any]:
        """Gives {"bytes": {"lanes", ..., "total"}, "device_bytes", "fits"} of each device, and more."""
        return {
            "game": self.config.game,
            "preset": self.config.preset,
            "devices": self.devices,
            "idle_devices": self.idle,
            "device_kind": self.device_kind,
            "bytes": dataclasses.asdict(self.bytes) | {"total": self.bytes.total},
            "device_bytes": self.device_bytes,
            "fits": self.fits,
            "checkpoint_bytes": self.checkpoint_bytes,
            "steps": self.config.steps,
            "step": dataclasses.asdict(self.work),
        }


def usable_devices(config: RunConfig, devices: int) -> int:
    """Returns how many of `devices` a run uses that does not say it: the most that lanes and batch divide by."""
    both = math.gcd(config.selfplay.lanes, config.learner.batch)
    return next(number for number in range(devices, 0, -1) if both % number == 0)


def make_plan(config: RunConfig, game: Game, num_devices: int = 1, on: Accelerators | None = None) -> Plan:
    """Adds up the shapes of a run. Compiles and allocates nothing.

    Args:
      config: the run.
      game: its rules.
      num_devices: devices that lanes and batch are split over.
      on: devices in the place of this machine's, as many of them as a run would use.

    Raises:
      ValueError: a game does not fit into the replay, or the network does not fit the game.
    """
    device, there = jax.local_devices()[0], len(jax.devices())
    if on is None:
        # On CPU the devices of a machine share its memory.
        memory = device_memory(device) // (num_devices if device.platform == "cpu" else 1)
        on = Accelerators(num_devices, device.device_kind, memory)
    else:
        num_devices, there = config.devices or usable_devices(config, on.count), on.count
    if config.search.dirichlet_alpha is None:  # a number that no shape depends on
        config = dataclasses.replace(config, search=dataclasses.replace(config.search, dirichlet_alpha=1.0))
    lanes, samples = (math.ceil(n / num_devices) for n in (config.selfplay.lanes, config.learner.batch))
    entries = (config.search.simulations + 1) * (num_slots(game, config.search.slots) or game.num_actions)
    if lanes * entries > MOST_ENTRIES:
        raise ValueError(
            f"selfplay.lanes: got {config.selfplay.lanes}, {lanes} on each of {num_devices} devices, whose trees have"
            f" {lanes * entries:,} edges; expected at most {MOST_ENTRIES // entries} lanes a device (an index has 31"
            " bits), or fewer search.simulations"
        )
    mesh = Mesh([device], (AXIS,), axis_types=(AxisType.Auto,))
    one_lane = dataclasses.replace(config, selfplay=dataclasses.replace(config.selfplay, lanes=1))
    state = jax.eval_shape(Step(one_lane, game, mesh).init, jax.eval_shape(lambda: jax.random.key(0)))
    parameters = num_bytes(state.learner.variables)
    drawn = num_bytes(state.replay.positions) // config.replay.plies * samples * config.learner.updates
    return Plan(
        config=config,
        devices=num_devices,
        device_kind=on.kind,
        device_bytes=on.bytes,
        bytes=Bytes(
            lanes=num_bytes(state.lanes) * lanes,
            tree=_tree(config, game, state, lanes) + _evaluation(config, game, state, lanes),
            replay=num_bytes(state.replay) * lanes,
            parameters=parameters + num_bytes(state.best),
            optimizer=num_bytes(state.learner.opt_state),
            activations=_update(config, game, state, samples) + drawn,
            gradients=parameters,
        ),
        work=Work(
            positions=config.selfplay.lanes * config.selfplay.plies,
            simulations=config.selfplay.lanes * config.selfplay.plies * config.search.simulations,
            samples=config.learner.batch * config.learner.updates,
        ),
        checkpoint_bytes=config.selfplay.lanes * (num_bytes(state.lanes) + num_bytes(state.replay))
        + num_bytes((state.learner, state.best)),
        idle=0 if config.devices else there - num_devices,
    )


def check_fits(plan: Plan) -> None:
    """Refuses a plan that cannot fit.

    Raises:
      ValueError: one line: what it needs, what there is, and the largest number that fits.
    """
    if plan.fits:
        return
    config, need = plan.config, plan.bytes
    room = USABLE * plan.device_bytes
    lanes, samples = (math.ceil(n / plan.devices) for n in (config.selfplay.lanes, config.learner.batch))
    left = room - need.parameters - need.optimizer
    shown = f"needs {text(need.total)} on each of {plan.devices} devices of {text(plan.device_bytes)}"
    kept_by_lane, searched_by_lane = (need.lanes + need.replay) / lanes, need.tree / lanes

    def largest_batch(room: float) -> int:
        most = (room - need.gradients) * samples / need.activations if need.change <= room else 0
        return _largest(config.learner.batch, plan.devices, most)

    most_lanes = min(left / (kept_by_lane + searched_by_lane), (left - need.update) / kept_by_lane)
    if of_lanes := _largest(config.selfplay.lanes, plan.devices, most_lanes):
        raise ValueError(
            f"selfplay.lanes: got {config.selfplay.lanes}, which {shown}; expected at most {of_lanes}"
            " (or a shorter replay.plies, or fewer search.simulations)"
        )
    if of_batch := largest_batch(left - kept_by_lane * lanes):
        raise ValueError(f"learner.batch: got {config.learner.batch}, which {shown}; expected at most {of_batch}")
    half_lanes = _largest(config.selfplay.lanes, plan.devices, left / 2 / (kept_by_lane + searched_by_lane))
    half_batch = largest_batch(left / 2)
    if half_lanes and half_batch:
        raise ValueError(
            f"selfplay.lanes and learner.batch: got {config.selfplay.lanes} and {config.learner.batch}, which {shown};"
            f" expected less of both, such as {half_lanes} and {half_batch}"
        )
    raise ValueError(
        f"network: got {config.network.kind}, which {shown}; expected a smaller one (network.channels, network.blocks)"
    )


def _largest(most: int, devices: int, fitting: float) -> int:
    """Returns the largest multiple of `devices` up to `fitting` a device and `most` in all; 0 if none is."""
    return devices * max(math.floor(min(fitting, most / devices)), 0)


def device_memory(device: jax.Device) -> int:
    """Returns a device's memory in bytes; of a CPU, what this process may use of the machine's."""
    stats = device.memory_stats()
    if stats and stats.get("bytes_limit"):
        return int(stats["bytes_limit"])
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")]
    allowed = [int(path.read_text()) for path in limits if path.is_file() and path.read_text().strip().isdigit()]
    return min([machine, *allowed])


def plan_table(plan: Plan) -> Table:
    """Lays the plan out for people."""
    work, steps = plan.work, plan.config.steps
    caption = (
        f"{plan.devices} x {plan.device_kind}, {text(plan.device_bytes)} each: "
        + ("fits" if plan.fits else "does NOT fit")
        + "\nthe search's tree and an update are in use in turn: the larger counts"
        + f"\na checkpoint: {text(plan.checkpoint_bytes)}"
        + f"\na step: {work.positions:,} positions, {work.simulations:,} simulations, {work.samples:,} samples"
        + f"\n{steps:,} steps: {steps * work.positions:,} positions, {steps * work.simulations:,} simulations,"
        + f" {steps * work.samples:,} samples"
    )
    if plan.idle:
        caption += (
            f"\nonly {plan.devices} of {plan.devices + plan.idle} devices used: selfplay.lanes"
            f" {plan.config.selfplay.lanes} and learner.batch {plan.config.learner.batch} are multiples of no more"
        )
    title = f"{plan.config.game}, {plan.config.preset}"
    table = Table(box=box.SIMPLE_HEAD, title=title, caption=caption, caption_justify="left", pad_edge=False)
    table.add_column("on each device")
    table.add_column("memory", justify="right")
    for name, size in dataclasses.asdict(plan.bytes).items():
        table.add_row(name, text(size))
    table.add_row("total", text(plan.bytes.total))
    return table


def text(size: float) -> str:
    """Returns bytes as people read them: 3.2 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def _tree(config: RunConfig, game: Game, state: RunState, lanes: int) -> int:
    """Returns the bytes of the search trees of `lanes` games; twice for mctx's loop, which updates none in place."""

    def planted(states: Any) -> Any:
        def evaluate(params: Any, rng_key: jax.Array, states: Any) -> tuple[jax.Array, jax.Array]:
            return jnp.zeros((lanes, game.num_actions)), jnp.zeros((lanes,))

        root = begin_search(game, game_model(game, evaluate), None, jax.random.key(0), states, config.search.slots).root
        return plant(root, nodes)

    lanes, nodes = _searched(config, game, lanes)
    states = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((lanes, *leaf.shape[1:]), leaf.dtype), state.lanes.state)
    copies = 2 if config.search.implementation == "mctx" else 1
    return round(num_bytes(jax.eval_shape(planted, states)) * (copies + config.search.parallel / 2))


def _searched(config: RunConfig, game: Game, lanes: int) -> tuple[int, int]:
    """Returns how many trees grow side by side in `lanes` games, and the nodes of each.

    In parallel each considered action of a root has its own; the half that is kept after a phase is copied.
    """
    if not config.search.parallel:
        return lanes, config.search.simulations + 1
    width = num_slots(game, config.search.slots) or game.num_actions
    phases = halving_phases(min(config.search.considered_actions, width), config.search.simulations)
    return lanes * phases[0][0], 1 + sum(each for _, each in phases)


def _evaluation(config: RunConfig, game: Game, state: RunState, batch: int) -> int:
    """Returns the bytes of an evaluation of `batch` positions: a layer's input and output, and what it is added to."""
    observation, layers = _layers(config, game, state, _searched(config, game, batch)[0])
    return observation + 3 * max(size for _, size in layers)


def _update(config: RunConfig, game: Game, state: RunState, batch: int) -> int:
    """Returns the bytes of an update on `batch` positions.

    A gradient keeps of a dense layer its product and what the nonlinearity makes of it, of a convolution the normalised
    values too, and on the way back there is the gradient with respect to each of these but the last. Targets, legal
    moves and losses are as wide as the policy. The factors are fitted to XLA's own analysis of nine programs.
    """
    observation, layers = _layers(config, game, state, batch)
    kept = sum((3 if is_convolution else 2) * size for is_convolution, size in layers)
    way_back = max((2 if is_convolution else 1) * size for is_convolution, size in layers)
    return observation + kept + way_back + POLICY_ARRAYS * 4 * batch * game.num_actions


def _layers(config: RunConfig, game: Game, state: RunState, batch: int) -> tuple[int, list[tuple[bool, int]]]:
    """Returns the bytes of `batch` observations, and of each layer's product: (is it a convolution, bytes)."""
    observation = jax.ShapeDtypeStruct((batch, *game.observation_shape), jnp.float32)

    def forward(variables: Any, observation: jax.Array) -> Any:
        return network.apply(config.network, game, variables, observation, True, None)

    traced = jax.make_jaxpr(forward)(state.learner.variables, observation)
    return num_bytes(observation), list(_products(traced.jaxpr))


def _products(jaxpr: Any) -> Iterator[tuple[bool, int]]:
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("dot_general", "conv_general_dilated"):
            is_convolution = equation.primitive.name == "conv_general_dilated"
            yield is_convolution, sum(num_bytes(variable.aval) for variable in equation.outvars)
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            yield from _products(inner)
