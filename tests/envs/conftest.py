"""Random games of one compiled scan, for tests that compare whole games or their statistics."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.core import Game, State


class RandomPlay(NamedTuple):
    """B games of T plies; after a game's end its actions are illegal and change nothing."""

    actions: np.ndarray  # int32[T, B]
    states: Any  # T + 1 positions: each leaf [T + 1, B, ...]
    masks: np.ndarray  # bool[T + 1, B, A]
    plies: np.ndarray  # int32[B]
    returns: np.ndarray  # float32[B, 2]

    def moves(self, lane: int) -> list[int]:
        return self.actions[: self.plies[lane], lane].tolist()

    def state(self, ply: int, lane: int) -> State:
        return jax.tree.map(lambda leaf: leaf[ply, lane], self.states)


def _play(game: Game, games: int, seed: int = 0) -> RandomPlay:
    def body(state: State, noise: jax.Array) -> tuple[State, Any]:
        mask = jax.vmap(game.legal_action_mask)(state)
        actions = jnp.argmax(mask * noise, axis=-1).astype(jnp.int32)
        return jax.vmap(game.step)(state, actions), (state, mask, actions)

    @jax.jit
    def run(noise: jax.Array) -> Any:
        start = jax.vmap(game.init)(jax.random.split(jax.random.key(0), games))
        end, (states, masks, actions) = jax.lax.scan(body, start, noise)
        states = jax.tree.map(lambda leaves, last: jnp.concatenate([leaves, last[None]]), states, end)
        last_mask = jax.vmap(game.legal_action_mask)(end)[None]
        return actions, states, jnp.concatenate([masks, last_mask]), jax.vmap(game.returns)(end)

    noise = np.random.default_rng(seed).uniform(0.5, 1, (game.max_plies, games, game.num_actions)).astype(np.float32)
    actions, states, masks, returns = jax.device_get(run(noise))
    return RandomPlay(actions, states, masks, masks.any(-1).sum(0), returns)


@pytest.fixture
def random_play() -> Callable[..., RandomPlay]:
    """random_play(game, games, seed=0) -> RandomPlay."""
    return _play
