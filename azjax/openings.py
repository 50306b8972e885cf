"""Random openings: the first plies of a game, drawn evenly among the legal moves."""

import jax
import jax.numpy as jnp

from azjax.search import random_action
from envs.core import Game, State


def merge(where: jax.Array, a: State, b: State) -> State:
    """Returns game by game a where `where` bool[B], else b."""
    return jax.tree.map(lambda x, y: jnp.where(where.reshape(-1, *(1,) * (x.ndim - 1)), x, y), a, b)


def random_openings(
    game: Game, rng_key: jax.Array, number: int, plies: int, length: jax.Array | None = None
) -> tuple[State, jax.Array]:
    """Plays random moves from the start of `number` games; a game stops before the move that would end it.

    Args:
      game: the rules.
      rng_key: consumed.
      number: B.
      plies: the most moves of an opening.
      length: int32[B], how many each game gets; None: `plies` each.

    Returns:
      (states [B], the moves int32[B, plies], -1 where none was played).
    """
    states = jax.vmap(game.init)(jax.random.split(jax.random.fold_in(rng_key, 0), number))
    wanted = jnp.full((number,), plies, jnp.int32) if length is None else length

    def ply(carry: tuple[State, jax.Array], index: jax.Array) -> tuple[tuple[State, jax.Array], jax.Array]:
        states, going = carry
        mask = jax.vmap(game.legal_action_mask)(states)
        action = random_action(jax.random.fold_in(rng_key, index), mask)
        moved = jax.vmap(game.step)(states, action)
        going = going & (index <= wanted) & ~jax.vmap(game.terminated)(moved)
        return (merge(going, moved, states), going), jnp.where(going, action, -1)

    start = (states, jnp.ones((number,), jnp.bool_))
    (states, _), actions = jax.lax.scan(ply, start, jnp.arange(1, plies + 1, dtype=jnp.int32))
    return states, actions.T
