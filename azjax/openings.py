"""Random openings: the first plies of a game, drawn evenly among the legal moves."""

import jax
import jax.numpy as jnp

from azjax.search import random_action
from envs.chance import start_games, step_games
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
      (states [B], what was played int32[B, plies], -1 where nothing). In a game with chance also the outcomes, as
      num_actions + outcome: int32[B, 1 + 2 plies], the first roll, then move and roll by turns.
    """
    states, first_roll = start_games(game, jax.random.fold_in(rng_key, 0), number)
    wanted = jnp.full((number,), plies, jnp.int32) if length is None else length

    def ply(carry: tuple[State, jax.Array], index: jax.Array) -> tuple[tuple[State, jax.Array], jax.Array]:
        states, going = carry
        mask = jax.vmap(game.legal_action_mask)(states)
        key = jax.random.fold_in(rng_key, index)
        action = random_action(key, mask)
        moved, rolled = step_games(game, jax.random.fold_in(key, 1), states, action)
        going = going & (index <= wanted) & ~jax.vmap(game.terminated)(moved)
        played = jnp.stack([action, _as_event(game, rolled)]) if game.has_chance else action[None]
        return (merge(going, moved, states), going), jnp.where(going, played, -1)

    start = (states, jnp.ones((number,), jnp.bool_))
    (states, _), played = jax.lax.scan(ply, start, jnp.arange(1, plies + 1, dtype=jnp.int32))
    played = jnp.moveaxis(played, -1, 0).reshape(number, -1)
    if game.has_chance:
        played = jnp.concatenate([_as_event(game, first_roll)[:, None], played], axis=1)
    return states, played


def _as_event(game: Game, outcome: jax.Array) -> jax.Array:
    return jnp.where(outcome >= 0, game.num_actions + outcome, -1)
