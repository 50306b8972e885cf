"""Random games of any Game, side by side, with all that the game says about each position."""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.core import Game, State


class Position(NamedTuple):
    """All that a game says about one position."""

    legal_action_mask: jax.Array
    legal_actions: jax.Array
    to_move: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    returns: jax.Array
    observation: jax.Array
    policy_index: jax.Array
    is_chance: jax.Array


class Turn(NamedTuple):
    """B games after `number` events (moves or chance outcomes)."""

    number: int
    state: State  # numpy arrays [B, ...]
    position: Position  # numpy arrays [B, ...]
    event: np.ndarray  # int32[B], what is played next


def look(game: Game, state: State) -> Position:
    """Returns all that `game` says about one position."""
    return Position(
        game.legal_action_mask(state),
        game.legal_actions(state),
        game.to_move(state),
        game.terminated(state),
        game.truncated(state),
        game.returns(state),
        game.observe(state),
        game.policy_index(state),
        game.is_chance(state),
    )


def apply_event(game: Game, state: State, event: jax.Array) -> State:
    """Returns the state after an action, or after a chance outcome where the state is a chance state."""
    moved = game.step(state, event)
    if not game.has_chance:
        return moved
    drawn = game.step_chance(state, event)
    return jax.tree.map(functools.partial(jnp.where, game.is_chance(state)), drawn, moved)


def random_games(game: Game, init_keys: jax.Array, rng: np.random.Generator) -> Iterator[Turn]:
    """Yields the turns of games from `init_keys` key[B] for ever: a game that is over goes on getting actions."""

    # Separate programs: each part is compiled once.
    look_all = jax.jit(jax.vmap(functools.partial(look, game)))
    apply_all = jax.jit(jax.vmap(functools.partial(apply_event, game)))
    state = jax.jit(jax.vmap(game.init))(init_keys)
    number = 0
    while True:
        said = jax.device_get(look_all(state))
        event = _random_events(game, state, said, rng)
        yield Turn(number, jax.device_get(state), said, event)
        state = apply_all(state, event)
        number += 1


def _random_events(game: Game, state: State, position: Position, rng: np.random.Generator) -> np.ndarray:
    """Returns int32[B]: a legal action, an outcome in a chance state, any action once the game is over."""
    playable = position.legal_action_mask | ~position.legal_action_mask.any(-1, keepdims=True)
    events = np.argmax(playable * rng.uniform(0.5, 1, playable.shape), -1)
    if game.has_chance:
        probs = np.asarray(jax.vmap(game.chance_probs)(state))
        outcomes = np.argmax(probs / rng.exponential(size=probs.shape), -1)
        events = np.where(position.is_chance, outcomes, events)
    return events.astype(np.int32)
