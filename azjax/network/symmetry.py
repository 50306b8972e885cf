"""A game's symmetries as tables."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from envs.core import Game


def observation_tables(game: Game) -> list[np.ndarray]:
    """Returns, for each symmetry, index int32[H W F]: a flattened observation x becomes x[index].

    Raises:
      ValueError: a symmetry does something else than permute the observation's entries.
    """
    shape = game.observation_shape
    with jax.ensure_compile_time_eval():
        entries = jnp.arange(math.prod(shape), dtype=jnp.float32).reshape(shape)
        tables = [np.asarray(symmetry.observation(entries)).reshape(-1) for symmetry in game.symmetries]
    for number, table in enumerate(tables):
        if not np.array_equal(np.sort(table), np.arange(table.size)):
            raise ValueError(f"symmetries: number {number} of {game.id} does not permute the observation's entries")
    return [table.astype(np.int32) for table in tables]
