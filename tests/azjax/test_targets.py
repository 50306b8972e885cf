import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.config import LearnerConfig
from azjax.targets import make_sample, outcome_for, value_target
from azjax.types import Position, Sample
from envs.crosshair import Crosshair
from envs.random_games import random_games
from envs.tic_tac_toe import GAME as TIC_TAC_TOE

KEY = jax.random.key(0)
CROSSHAIR = Crosshair(size=5)


def test_z_is_the_movers_return():
    returns = jnp.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0], [0.0, 0.0], [0.25, -0.25]])
    z = outcome_for(returns, jnp.array([0, 1, 0, 1, 1, 1], jnp.int8))
    np.testing.assert_array_equal(z, [1, -1, -1, 1, 0, -0.25])


def test_the_value_target_mixes_outcome_and_search():
    sample = Sample(
        observation=jnp.zeros((2, 1, 1, 1)),
        policy=jnp.zeros((2, 1)),
        legal=jnp.ones((2, 1), bool),
        outcome=jnp.array([1.0, -1.0]),
        root_value=jnp.array([0.2, 0.4]),
        value_mask=jnp.ones(2, bool),
    )
    np.testing.assert_array_equal(value_target(LearnerConfig(), sample), [1, -1])
    np.testing.assert_allclose(value_target(LearnerConfig(outcome_weight=0.75), sample), [0.8, -0.65], atol=1e-6)


@pytest.fixture(scope="module")
def crosshair_positions():
    """Positions [20] of both players with random weights on the legal squares, kept as self-play keeps them."""
    rng = np.random.default_rng(0)
    states, weights, movers = [], [], []
    for turn in random_games(CROSSHAIR, jax.random.split(KEY, 4), rng):
        legal = turn.position.legal_action_mask
        random = rng.random(legal.shape) * legal
        states.append(turn.state)
        weights.append(random / random.sum(-1, keepdims=True))
        movers.append(turn.position.to_move)
        if turn.number == 4:
            break
    return Position(
        state=jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states),
        search_weights=jnp.concatenate(weights).astype(jnp.float16),
        root_value=jnp.linspace(-1, 1, 20),
        mover=jnp.concatenate(movers).astype(jnp.int8),
    )


def sample_of(game, position, rng_key):
    size = position.mover.shape[0]
    outcome, has_outcome = jnp.linspace(-1, 1, size), jnp.arange(size) % 2 == 0
    return jax.jit(functools.partial(make_sample, game))(position, outcome, has_outcome, rng_key)


@pytest.mark.parametrize("rng_key", [None, jax.random.key(1)])
def test_targets_stand_in_the_networks_frame(crosshair_positions, rng_key):
    sample = sample_of(CROSSHAIR, crosshair_positions, rng_key)
    # Plane 2 of the observation marks the legal squares as the network sees them.
    legal_plane = np.asarray(sample.observation[..., 2]).reshape(20, 25) == 1
    assert 2 < legal_plane.sum(-1).min() < legal_plane.sum(-1).max()
    np.testing.assert_array_equal(sample.legal, legal_plane)
    np.testing.assert_array_equal(np.asarray(sample.policy) > 0, legal_plane)
    np.testing.assert_allclose(np.asarray(sample.policy).sum(-1), 1, atol=1e-6)


def test_blues_target_is_transposed(crosshair_positions):
    sample = sample_of(CROSSHAIR, crosshair_positions, None)
    weights = np.asarray(crosshair_positions.search_weights, np.float32).reshape(-1, 5, 5)
    policy = np.asarray(sample.policy).reshape(-1, 5, 5)
    blue = np.asarray(crosshair_positions.mover) == 1
    assert blue.sum() == 8
    np.testing.assert_allclose(policy[~blue], weights[~blue], atol=1e-3)
    np.testing.assert_allclose(policy[blue], weights[blue].transpose(0, 2, 1), atol=1e-3)


def test_outcomes_and_values_pass_unchanged(crosshair_positions):
    sample = sample_of(CROSSHAIR, crosshair_positions, jax.random.key(1))
    np.testing.assert_array_equal(sample.outcome, jnp.linspace(-1, 1, 20))
    np.testing.assert_array_equal(sample.root_value, jnp.linspace(-1, 1, 20))
    np.testing.assert_array_equal(sample.value_mask, np.arange(20) % 2 == 0)


def test_a_symmetry_moves_board_and_target_alike():
    """A target on the only mark of the board stays on that mark, through all eight symmetries of the square."""
    state = TIC_TAC_TOE.step(TIC_TAC_TOE.init(KEY), jnp.int32(1))
    weights = jnp.zeros(9, jnp.float16).at[1].set(1)
    one = Position(state=state, search_weights=weights, root_value=jnp.float32(0), mover=jnp.int8(1))
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], 256, 0), one)
    sample = sample_of(TIC_TAC_TOE, many, jax.random.key(1))
    theirs = np.asarray(sample.observation[..., 1]).reshape(256, 9)
    np.testing.assert_array_equal(sample.policy, theirs)
    np.testing.assert_array_equal(sample.legal, theirs == 0)
    assert {int(square) for square in theirs.argmax(-1)} == {1, 3, 5, 7}
    still = sample_of(TIC_TAC_TOE, many, None)
    assert (np.asarray(still.observation[..., 1]).reshape(256, 9).argmax(-1) == 1).all()


def test_weights_kept_as_float16_sum_to_one_again():
    weights = jnp.full((1, 9), 1 / 9, jnp.float16)
    assert abs(float(weights.astype(jnp.float32).sum()) - 1) > 1e-5
    position = Position(
        state=jax.tree.map(lambda leaf: leaf[None], TIC_TAC_TOE.init(KEY)),
        search_weights=weights,
        root_value=jnp.zeros(1),
        mover=jnp.zeros(1, jnp.int8),
    )
    np.testing.assert_allclose(sample_of(TIC_TAC_TOE, position, None).policy, np.full((1, 9), 1 / 9), atol=1e-7)
