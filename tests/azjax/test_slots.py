"""A tree over legal slots is the tree over all actions, with the rows shortened."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import network
from azjax.config import LearnerConfig, NetworkConfig, ReplayConfig, RunConfig, SearchConfig, SelfPlayConfig
from azjax.search import gumbel_policy, mask_logits, num_slots, puct_policy, slotted
from azjax.selfplay import draw_move, play_ply, search_policy, start_lanes
from azjax.step import Step, make_mesh
from azjax.targets import make_sample
from envs.random_games import random_games
from envs.tic_tac_toe import GAME as TIC_TAC_TOE
from envs.tic_tac_toe import TicTacToe
from tests.azjax.test_search import Dream

KEY = jax.random.key(3)
GAMES = 16


def after(plies, seed):
    """States [32] of tic-tac-toe after random plies."""
    games = random_games(TIC_TAC_TOE, jax.random.split(KEY, 32), np.random.default_rng(seed))
    return jax.tree.map(jnp.asarray, next(itertools.islice(games, plies, None)).state)


def legal_of(dream, width):
    """place -> int16[B, width], the dream's legal actions, padded with -1."""

    def one(mask):
        return jnp.nonzero(mask, size=width, fill_value=-1)[0].astype(jnp.int16)

    return lambda place: jax.vmap(one)(dream.legal(place.path))


@pytest.mark.parametrize("implementation", ["azjax", pytest.param("mctx", marks=pytest.mark.slow)])
def test_a_tree_over_slots_is_the_tree_over_actions(implementation):
    dream = Dream(49, illegal_share=0.7)
    root = dream.root(GAMES)
    policy = functools.partial(puct_policy, dirichlet_fraction=0.0, implementation=implementation)
    dense = jax.jit(lambda key: policy((), key, root, dream.recurrent, 24))(KEY)
    narrow = slotted(root, dream.recurrent, legal_of(dream, 30))
    slots = jax.jit(lambda key: policy((), key, narrow.root, narrow.recurrent_fn, 24))(KEY)
    actions = np.asarray(narrow.actions)
    rows = np.arange(GAMES)[:, None]
    there = actions >= 0
    assert there.any(1).all() and not there.all()
    np.testing.assert_array_equal(actions[np.arange(GAMES), slots.action], dense.action)
    dense_visits = np.asarray(dense.search_tree.summary().visit_counts)
    slot_visits = np.asarray(slots.search_tree.summary().visit_counts)
    np.testing.assert_array_equal(slot_visits[there], dense_visits[rows, actions][there])
    assert (slot_visits[~there] == 0).all() and (slot_visits.sum(1) == dense_visits.sum(1)).all()
    for name in ("node_visits", "parents"):
        np.testing.assert_array_equal(getattr(slots.search_tree, name), getattr(dense.search_tree, name))
    np.testing.assert_allclose(slots.search_tree.node_values, dense.search_tree.node_values, atol=1e-6)
    assert (np.asarray(narrow.prior_cut) == 0).all()


def test_a_width_below_the_legal_moves_keeps_the_likeliest_and_says_what_was_cut():
    logits = jnp.log(jnp.array([[0.1, 0.4, 0.05, 0.3, 0.15], [0.2, 0.2, 0.2, 0.2, 0.2]]))
    root = mctx.RootFnOutput(prior_logits=logits, value=jnp.zeros(2), embedding=jnp.zeros(2))
    legal = jnp.array([[0, 1, 2, 3, 4], [1, 3, -1, -1, -1]], jnp.int16)
    narrow = slotted(root, None, lambda _: legal, width=3)
    np.testing.assert_array_equal(narrow.actions, [[1, 3, 4], [1, 3, -1]])
    np.testing.assert_allclose(narrow.prior_cut, [0.15, 0], atol=1e-6)
    np.testing.assert_allclose(
        jax.nn.softmax(narrow.root.prior_logits)[0], np.array([0.4, 0.3, 0.15]) / 0.85, atol=1e-6
    )
    np.testing.assert_allclose(jax.nn.softmax(narrow.root.prior_logits)[1], [0.5, 0.5, 0], atol=1e-6)


CONFIG = RunConfig(
    game="tic_tac_toe",
    network=NetworkConfig(width=16, blocks=1, value_width=8),
    search=SearchConfig(simulations=12, dirichlet_alpha=1.0, slots=4),
    selfplay=SelfPlayConfig(lanes=16, plies=3, temperature_plies=2),
    replay=ReplayConfig(plies=16),
    learner=LearnerConfig(batch=16, updates=1),
)


def test_which_games_have_slots():
    @dataclasses.dataclass(frozen=True)
    class Wide(TicTacToe):
        num_actions = 129

    assert num_slots(TIC_TAC_TOE) is None and num_slots(Wide()) == 9
    assert num_slots(TIC_TAC_TOE, CONFIG.search.slots) == 4
    assert num_slots(TIC_TAC_TOE, wanted=50) == 9


@pytest.mark.parametrize("algorithm", ["puct", pytest.param("gumbel", marks=pytest.mark.slow)])
def test_moves_and_targets_are_legal_actions(algorithm):
    config = dataclasses.replace(CONFIG, search=dataclasses.replace(CONFIG.search, algorithm=algorithm))
    variables = network.init(config.network, TIC_TAC_TOE, KEY)
    advance = jax.jit(
        functools.partial(play_ply, config, TIC_TAC_TOE, search_policy(config, TIC_TAC_TOE, explore=True))
    )
    lanes = start_lanes(TIC_TAC_TOE, KEY, 16)
    for ply in range(5):
        before = lanes.state
        lanes, result = advance(variables, jax.random.key(ply), lanes)
        marks = np.asarray(jax.vmap(TIC_TAC_TOE.observe)(lanes.state)).sum((1, 2, 3))
        np.testing.assert_array_equal(marks, lanes.ply)  # an illegal move would have put no mark
        position = jax.tree.map(np.asarray, result.position)
        legal = np.asarray(jax.vmap(TIC_TAC_TOE.legal_action_mask)(before))
        kept = position.slot_actions >= 0
        assert kept.shape == (16, 4) and (kept.sum(1) == np.minimum(legal.sum(1), 4)).all()
        assert legal[np.arange(16)[:, None], position.slot_actions][kept].all()
        assert (position.search_weights[~kept] == 0).all()
        np.testing.assert_allclose(position.search_weights.astype(np.float32).sum(1), 1, atol=2e-3)
        assert ((result.prior_cut > 0) == (legal.sum(1) > 4)).all()


@pytest.mark.slow
def test_without_exploring_the_best_slots_action_plays():
    config = dataclasses.replace(CONFIG, search=dataclasses.replace(CONFIG.search, algorithm="gumbel", slots=9))
    dense = dataclasses.replace(config, search=dataclasses.replace(config.search, slots=None))
    variables = network.init(config.network, TIC_TAC_TOE, KEY)
    states = after(3, seed=0)
    one, other = (
        jax.jit(search_policy(c, TIC_TAC_TOE, explore=False))(variables, KEY, states, jnp.zeros(()))
        for c in (config, dense)
    )
    np.testing.assert_array_equal(one.action, other.action)
    drawn = jax.jit(draw_move)(KEY, one, 1.0)
    legal = np.asarray(jax.vmap(TIC_TAC_TOE.legal_action_mask)(states))
    assert legal[np.arange(32), drawn].all() and (drawn != one.action).any()


def test_targets_of_slots_are_those_of_actions():
    states = after(4, seed=1)
    lanes = start_lanes(TIC_TAC_TOE, KEY, 32)
    lanes = dataclasses.replace(lanes, state=states)
    config = dataclasses.replace(CONFIG, search=dataclasses.replace(CONFIG.search, slots=9))
    policy = search_policy(config, TIC_TAC_TOE, explore=True)
    variables = network.init(config.network, TIC_TAC_TOE, KEY)
    _, result = jax.jit(functools.partial(play_ply, config, TIC_TAC_TOE, policy))(variables, KEY, lanes)
    by_slot = result.position
    rows = np.arange(32)[:, None]
    dense = np.zeros((32, 10), np.float16)
    dense[rows, by_slot.slot_actions] = by_slot.search_weights  # -1 is the tenth, dropped
    by_action = dataclasses.replace(by_slot, search_weights=jnp.asarray(dense[:, :9]), slot_actions=None)
    sample = jax.jit(functools.partial(make_sample, TIC_TAC_TOE))
    one, other = (sample(p, jnp.zeros(32), jnp.ones(32, bool), KEY) for p in (by_slot, by_action))
    np.testing.assert_allclose(one.policy, other.policy, atol=1e-6)
    np.testing.assert_array_equal(one.legal, other.legal)
    np.testing.assert_allclose(one.policy.sum(1), 1, atol=1e-5)
    assert (np.asarray(one.policy)[~np.asarray(one.legal)] == 0).all()


def test_a_step_learns_from_slots_and_reports_the_prior_cut():
    step = Step(CONFIG, TIC_TAC_TOE, make_mesh(1))
    state = step.init(KEY)
    for _ in range(4):
        state, metrics = step(state)
    assert 0 < float(metrics["prior_cut"].mean()) < 0.6
    assert float(metrics["applied"].mean()) == 1 and np.isfinite(metrics["loss"]).all()
    assert float(metrics["target_legal_mass"].mean()) == pytest.approx(1, abs=1e-3)


def test_gumbel_over_slots_masks_what_is_no_slot():
    logits = mask_logits(jnp.zeros((1, 3)), jnp.array([[True, False, True]]))
    root = mctx.RootFnOutput(prior_logits=logits, value=jnp.zeros(1), embedding=jnp.zeros(1))
    legal = jnp.array([[0, 2, -1]], jnp.int16)

    def recurrent(params, rng_key, action, place):
        output = mctx.RecurrentFnOutput(
            reward=action.astype(jnp.float32), discount=jnp.zeros(1), prior_logits=logits, value=jnp.zeros(1)
        )
        return output, place

    narrow = slotted(root, recurrent, lambda _: legal)
    output = jax.jit(lambda key: gumbel_policy((), key, narrow.root, narrow.recurrent_fn, 8, gumbel_scale=0.0))(KEY)
    assert int(output.action[0]) == 1  # slot 1 is action 2, whose reward is 2
    assert output.action_weights[0, 2] == 0
