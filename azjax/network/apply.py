"""From a configuration to a network that is a pure function of its variables.

Linen, not NNX: `apply(variables, x)` is a pure function of a pytree, the form that scan, donation, shard_map and the
search's callbacks want. Nothing outside this package depends on the choice, nor imports Flax.
"""

import importlib
import math
import os
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax.config import NetworkConfig
from azjax.network.equivariant import EquivariantMlp
from azjax.network.mlp import Mlp
from azjax.network.resnet import ResNet
from azjax.types import Variables
from envs.core import Game
from envs.own import importing_from

VALUE_LOGITS = {"expected_outcome": 1, "win_draw_loss": 3, "binary": 1}


def _module(config: NetworkConfig, game: Game, axis_name: str | None) -> nn.Module:
    num_actions, value_logits = game.num_actions, VALUE_LOGITS[config.value_head]
    if config.kind == "mlp":
        return Mlp(num_actions, value_logits, config)
    if config.kind == "equivariant_mlp":
        return EquivariantMlp(game, value_logits, config)
    if config.kind == "resnet":
        return ResNet(num_actions, value_logits, config, axis_name)
    module_name, _, class_name = config.kind.partition(":")
    try:
        with importing_from(os.getcwd()):
            cls = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"network.kind: got {config.kind!r}, which cannot be imported: {error}") from None
    return cls(num_actions=num_actions, num_value_logits=value_logits, config=config)


def init(config: NetworkConfig, game: Game, rng_key: jax.Array) -> Variables:
    """Returns fresh variables: {"params": ...} and, with batch norm, {"batch_stats": ...}."""
    observation = jnp.zeros((1, *game.observation_shape), jnp.float32)
    return dict(_module(config, game, None).init(rng_key, observation, False))


def apply(
    config: NetworkConfig,
    game: Game,
    variables: Variables,
    observation: jax.Array,
    train: bool,
    axis_name: str | None = None,
) -> tuple[tuple[jax.Array, jax.Array], Any]:
    """Runs the network.

    Args:
      config: which network.
      game: gives the number of actions A and the symmetries.
      variables: of `init`.
      observation: float32[M, H, W, F].
      train: batch norm uses this batch's statistics and updates the running ones.
      axis_name: mesh axis over which `sync_statistics` averages.

    Returns:
      ((policy logits float32[M, A] in the network's frame, value logits float32[M, V]), new batch statistics or {}).
    """
    module = _module(config, game, axis_name)
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
