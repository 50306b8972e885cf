"""Chance: dice are rolled between moves, for a batch of games.

An outcome is followed by a move or by the game's end, never by another outcome (`check_game` tries it): a game with
several dice rolls them as one.
"""

import functools

import jax
import jax.numpy as jnp

from envs.core import Game, State


def num_outcomes(game: Game) -> int:
    """Returns C, the length of `chance_probs`; 0 for a game without chance."""
    if not game.has_chance:
        return 0
    return jax.eval_shape(lambda: game.chance_probs(game.init(jax.random.key(0)))).shape[0]


def step_event(game: Game, state: State, event: jax.Array) -> State:
    """Returns the position after an event int32[]: action a is event a, outcome c is event num_actions + c."""
    if not game.has_chance:
        return game.step(state, event)
    moved = game.step(state, jnp.minimum(event, game.num_actions - 1))
    drawn = game.step_chance(state, jnp.maximum(event - game.num_actions, 0))
    return jax.tree.map(functools.partial(jnp.where, event >= game.num_actions), drawn, moved)


def event_name(game: Game, state: State, event: int) -> str:
    """Returns an event of `step_event` as people write it (host side): a move's name, or an outcome in parentheses."""
    return game.move_name(state, event) if event < game.num_actions else f"({event - game.num_actions})"


def play_chance(game: Game, rng_key: jax.Array, states: State) -> tuple[State, jax.Array]:
    """Draws an outcome in every game that waits for one.

    Args:
      game: the rules.
      rng_key: consumed.
      states: [B, ...].

    Returns:
      (states [B, ...] none of which is a chance state, the outcomes int32[B], -1 where none was drawn).
    """
    batch_size = jax.tree.leaves(states)[0].shape[0]
    if not game.has_chance:
        return states, jnp.full((batch_size,), -1, jnp.int32)

    def one(rng_key: jax.Array, state: State) -> tuple[State, jax.Array]:
        waits = game.is_chance(state)
        outcome = jax.random.categorical(rng_key, jnp.log(game.chance_probs(state))).astype(jnp.int32)
        drawn = game.step_chance(state, outcome)
        return jax.tree.map(functools.partial(jnp.where, waits), drawn, state), jnp.where(waits, outcome, -1)

    return jax.vmap(one)(jax.random.split(rng_key, batch_size), states)


def start_games(game: Game, rng_key: jax.Array, number: int) -> tuple[State, jax.Array]:
    """Returns `number` new games whose first move can be made, and their first outcomes int32[number] (-1: none)."""
    states = jax.vmap(game.init)(jax.random.split(rng_key, number))
    return play_chance(game, jax.random.fold_in(rng_key, number), states)


def step_games(game: Game, rng_key: jax.Array, states: State, actions: jax.Array) -> tuple[State, jax.Array]:
    """Makes a move in each of B games and draws the outcome it leads to; returns what `play_chance` does."""
    return play_chance(game, rng_key, jax.vmap(game.step)(states, actions))
