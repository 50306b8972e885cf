"""Random games of one compiled scan, for tests that compare whole games or their statistics."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.core import (
    RULES_BOUND,
    Game,
    State,
    absorb,
    check_max_plies,
    register_state,
    two_player_returns,
)

pytest.register_assert_rewrite("tests.envs.openspiel")


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


@register_state
class DiceState:
    scores: jax.Array  # int8[2]
    ply: jax.Array  # int8[]
    rolling: jax.Array  # bool[]


@dataclasses.dataclass(frozen=True)
class Dice(Game):
    """Two moves each: add 0 or 1, then a die adds 0 (probability .25) or 1. The higher score wins."""

    max_plies: int = RULES_BOUND

    id, num_actions, max_legal_actions, observation_shape, has_chance = "dice", 2, 2, (1, 1, 3), True

    def __post_init__(self):
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, 4))

    def init(self, rng_key):
        return DiceState(jnp.zeros(2, jnp.int8), jnp.int8(0), jnp.bool_(False))

    def step(self, state, action):
        scores = state.scores + jnp.where(np.arange(2) == self.to_move(state), action, 0).astype(jnp.int8)
        return absorb(self.terminated(state) | state.rolling, state, DiceState(scores, state.ply, jnp.bool_(True)))

    def step_chance(self, state, outcome):
        scores = state.scores + jnp.where(np.arange(2) == self.to_move(state), outcome, 0).astype(jnp.int8)
        moved = DiceState(scores, state.ply + jnp.int8(1), jnp.bool_(False))
        return absorb(~state.rolling, state, moved)

    def is_chance(self, state):
        return state.rolling

    def chance_probs(self, state):
        return jnp.array([0.25, 0.75], jnp.float32)

    def legal_action_mask(self, state):
        return jnp.broadcast_to(~state.rolling & ~self.terminated(state), (2,))

    def to_move(self, state):
        return (state.ply % 2).astype(jnp.int32)

    def terminated(self, state):
        return state.ply >= self.max_plies

    def truncated(self, state):
        return self.terminated(state) & (state.ply < 4)

    def returns(self, state):
        lead = state.scores[0].astype(jnp.int32) - state.scores[1]
        return two_player_returns((state.ply == 4) & (lead != 0), winner=(lead < 0).astype(jnp.int32))

    def observe(self, state):
        numbers = jnp.stack([state.scores[0], state.scores[1], state.ply])
        return numbers.astype(jnp.float32).reshape(self.observation_shape)


@pytest.fixture
def dice_game() -> Dice:
    """A game with chance, for what the games of `envs` do not have."""
    return Dice()
