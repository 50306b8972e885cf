"""Toy games for what the games of `envs` do not have."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from envs.core import RULES_BOUND, Game, absorb, check_max_plies, register_state, two_player_returns


@register_state
class TurnsState:
    ply: jax.Array  # int32[]
    struck: jax.Array  # bool[], the move before was a strike
    winner: jax.Array  # int32[], -1 while nobody has won


@dataclasses.dataclass(frozen=True)
class DoubleTurns(Game):
    """Each turn is two moves of one player: 0 waits, 1 strikes. Two strikes in one turn win; after two turns: draw."""

    max_plies: int = RULES_BOUND

    id, num_actions, max_legal_actions, observation_shape = "double_turns", 2, 2, (1, 1, 4)

    def __post_init__(self):
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, 4))

    def init(self, rng_key):
        return TurnsState(jnp.int32(0), jnp.bool_(False), jnp.int32(-1))

    def step(self, state, action):
        second = state.ply % 2 == 1
        won = second & state.struck & (action == 1)
        moved = TurnsState(state.ply + 1, ~second & (action == 1), jnp.where(won, self.to_move(state), -1))
        return absorb(self.terminated(state), state, moved)

    def legal_action_mask(self, state):
        return jnp.broadcast_to(~self.terminated(state), (2,))

    def to_move(self, state):
        return (state.ply // 2) % 2

    def terminated(self, state):
        return (state.winner >= 0) | (state.ply >= self.max_plies)

    def truncated(self, state):
        return (state.winner < 0) & (state.ply >= self.max_plies) & (state.ply < 4)

    def returns(self, state):
        return two_player_returns(state.winner >= 0, state.winner)

    def observe(self, state):
        seen = jnp.stack([state.ply % 2, state.struck.astype(jnp.int32), state.ply, self.to_move(state)])
        return seen.astype(jnp.float32).reshape(self.observation_shape)


@register_state
class LossState:
    ply: jax.Array  # int32[]


@dataclasses.dataclass(frozen=True)
class EveryMoveLoses(Game):
    """Who moves first has lost, whichever of the three moves it is."""

    id, num_actions, max_legal_actions, observation_shape, max_plies = "every_move_loses", 3, 3, (1, 1, 1), 1

    def init(self, rng_key):
        return LossState(jnp.int32(0))

    def step(self, state, action):
        return absorb(self.terminated(state), state, LossState(state.ply + 1))

    def legal_action_mask(self, state):
        return jnp.broadcast_to(~self.terminated(state), (3,))

    def to_move(self, state):
        return state.ply % 2

    def terminated(self, state):
        return state.ply >= 1

    def returns(self, state):
        return two_player_returns(self.terminated(state), jnp.int32(1))

    def observe(self, state):
        return state.ply.astype(jnp.float32).reshape(self.observation_shape)


@pytest.fixture(scope="session")
def double_turns() -> DoubleTurns:
    return DoubleTurns()


@pytest.fixture(scope="session")
def every_move_loses() -> EveryMoveLoses:
    return EveryMoveLoses()
