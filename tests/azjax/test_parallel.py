"""Sequential halving with phases side by side, against plain halving over searches of single actions."""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.search import gumbel_policy, search
from azjax.search.gumbel import select_gumbel_interior
from azjax.search.parallel import halving_phases
from tests.azjax.test_search import Dream, masks

KEY = jax.random.key(7)
GAMES = 8


@pytest.mark.parametrize(
    ("considered", "simulations", "phases"),
    [
        (16, 64, [(16, 1), (8, 2), (4, 4), (2, 8)]),
        (16, 400, [(16, 6), (8, 12), (4, 25), (2, 50), (2, 4)]),
        (4, 8, [(4, 1), (2, 2)]),
        (4, 10, [(4, 1), (2, 2), (2, 1)]),
        (7, 16, [(7, 1), (3, 1), (2, 2), (2, 1)]),
        (1, 5, [(1, 5)]),
        (16, 3, [(3, 1)]),
        (2, 1, [(1, 1)]),
    ],
)
def test_phases_share_the_budget(considered, simulations, phases):
    assert halving_phases(considered, simulations) == phases
    assert sum(actions * each for actions, each in phases) <= simulations


def test_evaluations_one_after_the_other_are_15_for_64_simulations():
    dream, calls = Dream(20), []

    def recurrent(params, rng_key, action, place):
        jax.debug.callback(lambda number: calls.append(int(number)), jnp.int32(action.shape[0]))
        return dream.recurrent(params, rng_key, action, place)

    root = dream.root(2)
    policy = jax.jit(lambda key: gumbel_policy((), key, root, recurrent, 64, parallel=True))
    output = jax.block_until_ready(policy(KEY))
    jax.effects_barrier()
    assert sorted(calls, reverse=True) == [32] * 1 + [16] * 2 + [8] * 4 + [4] * 8
    visits = np.asarray(output.search_tree.children_visits[:, 0])
    assert (np.sort(visits, axis=1)[:, -16:] == [1] * 8 + [3] * 4 + [7] * 2 + [15] * 2).all()
    assert (visits.sum(1) == 64).all()


def values_of_single_actions(dream, root, most):
    """Q of each root action after 1 ... most simulations that all begin with it: float[most, B, A]."""

    @functools.partial(jax.jit, static_argnums=1)
    def after(action, simulations):
        tree = search(
            (),
            KEY,
            root=root,
            recurrent_fn=dream.recurrent,
            root_action_selection_fn=lambda rng_key, tree, node: action,
            interior_action_selection_fn=select_gumbel_interior,
            num_simulations=simulations,
        )
        return tree.qvalues(jnp.zeros(GAMES, jnp.int32))[:, action]

    actions = jnp.arange(dream.num_actions)
    tables = [jax.vmap(after, in_axes=(0, None))(actions, number).T for number in range(1, most + 1)]
    return np.stack([np.asarray(table) for table in tables])


def plain_halving(logits, gumbel, raw_value, values, phases):
    """Sequential halving of one game in numpy; returns (visits int[A], Q float[A], the action played)."""
    num_actions = len(logits)
    visits, qvalues, done = np.zeros(num_actions, int), np.zeros(num_actions), 0
    prior = np.exp(logits - logits.max())
    prior /= prior.sum()

    def score():
        taken = visits > 0
        mixed = raw_value
        if taken.any():
            mean = (prior * qvalues)[taken].sum() / prior[taken].sum()
            mixed = (raw_value + visits.sum() * mean) / (visits.sum() + 1)
        completed = np.where(taken, qvalues, mixed)
        spread = max(completed.max() - completed.min(), 1e-8)
        return gumbel + logits - logits.max() + 0.1 * (50 + visits.max()) * (completed - completed.min()) / spread

    left = np.arange(num_actions)
    for actions, each in phases:
        left = left[np.argsort(-score()[left], kind="stable")][:actions]
        done += each
        visits[left] = done
        qvalues[left] = values[done - 1, left]
    return visits, qvalues, left[np.argmax(score()[left])]


@pytest.mark.parametrize(
    ("num_actions", "considered", "simulations"), [(9, 4, 24), pytest.param(20, 16, 64, marks=pytest.mark.slow)]
)
def test_survivors_are_those_of_plain_halving(num_actions, considered, simulations):
    dream = Dream(num_actions)
    root = dream.root(GAMES)
    phases = halving_phases(considered, simulations)
    values = values_of_single_actions(dream, root, sum(each for _, each in phases))
    policy = functools.partial(gumbel_policy, max_num_considered_actions=considered, parallel=True)
    output = jax.jit(lambda key: policy((), key, root, dream.recurrent, simulations))(KEY)
    # The draw of mctx's policy, which ours repeats.
    gumbel = np.asarray(jax.random.gumbel(jax.random.split(KEY)[1], root.prior_logits.shape))
    summary = output.search_tree.summary()
    for game in range(GAMES):
        logits, raw_value = np.asarray(root.prior_logits[game], np.float64), float(root.value[game])
        visits, qvalues, action = plain_halving(logits, gumbel[game], raw_value, values[:, game], phases)
        np.testing.assert_array_equal(summary.visit_counts[game], visits)
        np.testing.assert_allclose(np.where(visits > 0, summary.qvalues[game], 0), qvalues, atol=1e-5)
        assert output.action[game] == action
        expected = (raw_value + (visits * qvalues).sum()) / (1 + visits.sum())
        np.testing.assert_allclose(summary.value[game], expected, atol=1e-5)


def test_illegal_actions_get_no_visit_and_are_not_played():
    dream = Dream(9, illegal_share=0.3)
    root, invalid = dream.root(16), masks(9)
    invalid = invalid.at[5].set(1).at[5, 3].set(0)  # one game with a single legal move
    policy = functools.partial(gumbel_policy, max_num_considered_actions=8, parallel=True)
    output = jax.jit(lambda key: policy((), key, root, dream.recurrent, 32, invalid_actions=invalid))(KEY)
    visits = np.asarray(output.search_tree.children_visits[:, mctx.Tree.ROOT_INDEX])
    assert (visits[np.asarray(invalid) > 0] == 0).all() and visits[5, 3] == 1 + 2 + 5 + 3
    assert (np.asarray(invalid)[np.arange(16), output.action] == 0).all() and output.action[5] == 3
    assert (np.asarray(output.action_weights)[np.asarray(invalid) > 0] == 0).all()
    np.testing.assert_allclose(output.action_weights.sum(1), 1, atol=1e-5)
