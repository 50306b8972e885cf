"""Policy and value networks. The only file that imports Flax.

Linen, not NNX: `apply(variables, x)` is a pure function of a pytree, the form that scan, donation, shard_map and the
search's callbacks want. Nothing outside depends on the choice.
"""

import functools
import importlib
import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from azjax.config import NetworkConfig
from azjax.types import Variables
from envs.core import Game, State

VALUE_LOGITS = {"expected_outcome": 1, "win_draw_loss": 3, "binary": 1}


class Mlp(nn.Module):
    """Dense network with residual blocks: for Crosshair's 294 inputs 114,290 parameters, as in its author's article.

    h = relu(W x + b); block: h = relu(h + W2 relu(W1 h + b1) + b2); policy W h + b; value W relu(W h + b) + b. The
    observation is flattened row by row: against plane by plane that is a permutation of the first layer's rows.
    """

    num_actions: int
    num_value_logits: int
    config: NetworkConfig

    @nn.compact
    def __call__(self, observation: jax.Array, train: bool) -> tuple[jax.Array, jax.Array]:
        del train
        config = self.config
        hidden = nn.relu(nn.Dense(config.width)(observation.reshape(observation.shape[0], -1)))
        for _ in range(config.blocks):
            inner = nn.relu(nn.Dense(config.width)(hidden))
            hidden = nn.relu(hidden + nn.Dense(config.width)(inner))
        policy_logits = nn.Dense(self.num_actions)(hidden)
        value = nn.relu(nn.Dense(config.value_width)(hidden))
        return policy_logits, nn.Dense(self.num_value_logits)(value)


class ResNet(nn.Module):
    """The paper's residual network: conv 3x3, batch norm, ReLU; blocks of two with a skip; two heads.

    Source: AlphaZero, Methods: Representation, with AlphaGo Zero's heads: policy conv 1x1 to 2 planes (or conv 3x3 and
    one plane per kind of move), value conv 1x1 to 1 plane and a hidden dense layer; all before the outputs with batch
    norm and ReLU. Convolutions have no bias: batch norm has one.
    """

    num_actions: int
    num_value_logits: int
    config: NetworkConfig
    axis_name: str | None

    @nn.compact
    def __call__(self, observation: jax.Array, train: bool) -> tuple[jax.Array, jax.Array]:
        config = self.config
        height, width = observation.shape[1:3]
        norm = functools.partial(
            nn.BatchNorm,
            use_running_average=not train,
            momentum=0.9,
            axis_name=self.axis_name if config.sync_statistics and train else None,
        )

        def conv(x: jax.Array, channels: int, size: int) -> jax.Array:
            return norm()(nn.Conv(channels, (size, size), use_bias=False)(x))

        hidden = nn.relu(conv(observation, config.channels, 3))
        for _ in range(config.blocks):
            inner = nn.relu(conv(hidden, config.channels, 3))
            hidden = nn.relu(hidden + conv(inner, config.channels, 3))
        if config.policy_planes:
            planes, rest = divmod(self.num_actions, height * width)
            if rest:
                raise ValueError(
                    f"network.policy_planes: got {self.num_actions} actions on {height * width} squares, "
                    "expected a multiple (set network.policy_planes to False)"
                )
            tower = nn.relu(conv(hidden, config.channels, 3))
            policy_logits = nn.Conv(planes, (1, 1))(tower).reshape(observation.shape[0], -1)
        else:
            tower = nn.relu(conv(hidden, 2, 1)).reshape(observation.shape[0], -1)
            policy_logits = nn.Dense(self.num_actions)(tower)
        value = nn.relu(conv(hidden, 1, 1)).reshape(observation.shape[0], -1)
        value = nn.relu(nn.Dense(config.value_width)(value))
        return policy_logits, nn.Dense(self.num_value_logits)(value)


def _module(config: NetworkConfig, num_actions: int, axis_name: str | None) -> nn.Module:
    value_logits = VALUE_LOGITS[config.value_head]
    if config.kind == "mlp":
        return Mlp(num_actions, value_logits, config)
    if config.kind == "resnet":
        return ResNet(num_actions, value_logits, config, axis_name)
    module_name, _, class_name = config.kind.partition(":")
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"network.kind: got {config.kind!r}, which cannot be imported: {error}") from None
    return cls(num_actions=num_actions, num_value_logits=value_logits, config=config)


def init(config: NetworkConfig, game: Game, rng_key: jax.Array) -> Variables:
    """Returns fresh variables: {"params": ...} and, with batch norm, {"batch_stats": ...}."""
    observation = jnp.zeros((1, *game.observation_shape), jnp.float32)
    return dict(_module(config, game.num_actions, None).init(rng_key, observation, False))


def apply(
    config: NetworkConfig,
    num_actions: int,
    variables: Variables,
    observation: jax.Array,
    train: bool,
    axis_name: str | None = None,
) -> tuple[tuple[jax.Array, jax.Array], Any]:
    """Runs the network.

    Args:
      config: which network.
      num_actions: A.
      variables: of `init`.
      observation: float32[M, H, W, F].
      train: batch norm uses this batch's statistics and updates the running ones.
      axis_name: mesh axis over which `sync_statistics` averages.

    Returns:
      ((policy logits float32[M, A] in the network's frame, value logits float32[M, V]), new batch statistics or {}).
    """
    module = _module(config, num_actions, axis_name)
    if train and "batch_stats" in variables:
        output, updated = module.apply(variables, observation, True, mutable=["batch_stats"])
        return output, updated["batch_stats"]
    output: Any = module.apply(variables, observation, train)
    return output, variables.get("batch_stats", {})


def value_of(config: NetworkConfig, value_logits: jax.Array) -> jax.Array:
    """Returns the mover's expected outcome float32[...] in [-1, 1] from logits float32[..., V]."""
    if config.value_head == "win_draw_loss":
        probs = jax.nn.softmax(value_logits)
        return probs[..., 0] - probs[..., 2]
    if config.value_head == "binary":
        return 2 * jax.nn.sigmoid(value_logits[..., 0]) - 1
    return jnp.tanh(value_logits[..., 0])


def num_parameters(variables: Variables) -> int:
    """Returns how many numbers are trained (statistics not counted)."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(variables["params"]))


def evaluate(
    config: NetworkConfig,
    game: Game,
    variables: Variables,
    rng_key: jax.Array,
    states: State,
    random_symmetry: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """Evaluates positions: the one place where the network's frame meets the game's actions.

    Args:
      config, game, variables: the network.
      rng_key: consumed; draws the symmetry.
      states: [B, ...].
      random_symmetry: look at each position through a symmetry drawn anew (AlphaGo Zero).

    Returns:
      (logits float32[B, A] by action, value float32[B] in [-1, 1], the mover's view).
    """
    observation = jax.vmap(game.observe)(states)
    index = jax.vmap(game.policy_index)(states).astype(jnp.int32)
    if random_symmetry:
        chosen = jax.random.randint(rng_key, (observation.shape[0],), 0, len(game.symmetries))
        observation, permutation = transform(game, observation, chosen)
        # The network's policy there is policy[permutation]; so entry i of the policy here stands at inverse[i].
        inverse = jnp.argsort(permutation, axis=-1)
        index = jnp.take_along_axis(inverse, index, axis=-1)
    (policy_logits, value_logits), _ = apply(config, game.num_actions, variables, observation, False)
    return jnp.take_along_axis(policy_logits, index, axis=-1), value_of(config, value_logits)


def transform(game: Game, observation: jax.Array, chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Applies symmetry chosen[m] to observation m.

    Args:
      game: gives the symmetries.
      observation: float32[M, H, W, F].
      chosen: int32[M], index into game.symmetries.

    Returns:
      (float32[M, H, W, F], int32[M, A]: the policy of the result is policy[permutation]).
    """
    shape = game.observation_shape
    with jax.ensure_compile_time_eval():
        entries = jnp.arange(math.prod(shape), dtype=jnp.float32).reshape(shape)
        tables = [np.asarray(symmetry.observation(entries)).reshape(-1) for symmetry in game.symmetries]
    for number, table in enumerate(tables):
        if not np.array_equal(np.sort(table), np.arange(table.size)):
            raise ValueError(f"symmetries: number {number} of {game.id} does not permute the observation's entries")
    # One gather: 0.3 us a sample, against 13 us for choosing among all transformed observations.
    order = jnp.asarray(np.stack(tables), jnp.int32)[chosen]
    transformed = jnp.take_along_axis(observation.reshape(observation.shape[0], -1), order, axis=-1)
    permutations = jnp.asarray(np.stack([symmetry.permutation for symmetry in game.symmetries]), jnp.int32)
    return transformed.reshape(observation.shape), permutations[chosen]
