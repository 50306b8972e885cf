"""Evaluation of positions: the one place where the network's frame meets the game's actions."""

import jax
import jax.numpy as jnp
import numpy as np

from azjax.config import NetworkConfig
from azjax.network.apply import apply, value_of
from azjax.network.symmetry import observation_tables
from azjax.types import Variables
from envs.core import Game, State


def evaluate(
    config: NetworkConfig,
    game: Game,
    variables: Variables,
    rng_key: jax.Array,
    states: State,
    random_symmetry: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """Evaluates positions.

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
    (policy_logits, value_logits), _ = apply(config, game, variables, observation, False)
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
    # One gather: 0.3 us a sample, against 13 us for choosing among all transformed observations.
    order = jnp.asarray(np.stack(observation_tables(game)))[chosen]
    transformed = jnp.take_along_axis(observation.reshape(observation.shape[0], -1), order, axis=-1)
    permutations = jnp.asarray(np.stack([symmetry.permutation for symmetry in game.symmetries]), jnp.int32)
    return transformed.reshape(observation.shape), permutations[chosen]
