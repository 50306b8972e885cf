import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.search import (
    first_argmax,
    is_illegal,
    mask_logits,
    puct_scores,
    sample_move,
    select_puct,
    select_ucb1,
    temperature_weights,
)
from azjax.search.gumbel import completed_qvalues, considered_visits, select_gumbel_interior, select_gumbel_root
from azjax.search.selection import prior_weights, weights_to_logits

KEY = jax.random.key(0)
GAMES = 4096
SAMPLE_MOVES = jax.jit(sample_move)
SELECT_PUCT = jax.jit(select_puct, static_argnames=("c_init", "c_base", "c_puct"))
SELECT_UCB1 = jax.jit(select_ucb1)
SELECT_FIRST = jax.jit(first_argmax)


def node(logits, visits, qvalues) -> mctx.Tree:
    """A tree of one node, as `search` shows it to a selection function."""
    visits = jnp.asarray(visits, jnp.int32)[None]
    return mctx.Tree(
        node_visits=jnp.array([1 + visits.sum()], jnp.int32),
        raw_values=jnp.zeros(1),
        node_values=jnp.zeros(1),
        parents=jnp.array([-1]),
        action_from_parent=jnp.array([-1]),
        children_index=jnp.where(visits > 0, 1, -1),
        children_prior_logits=jnp.array([logits], jnp.float32),
        children_visits=visits,
        children_rewards=jnp.zeros((1, len(logits))),
        children_discounts=jnp.ones((1, len(logits))),
        children_values=jnp.array([qvalues], jnp.float32),
        embeddings=None,
        root_invalid_actions=jnp.zeros(len(logits)),
        extra_data=None,
    )


def puct(logits, visits, qvalues, c_init=1.25, c_base=19652.0, c_puct=None) -> int:
    tree = node(logits, visits, qvalues)
    return int(SELECT_PUCT(KEY, tree, jnp.int32(0), c_init=c_init, c_base=c_base, c_puct=c_puct))


def test_puct_scores_are_those_of_the_paper():
    # N = 1 + 4 counts the node's own evaluation: c = log(19658 / 19652) + 1.25 = 1.2503053; c sqrt(5) = 2.7957677.
    scores = puct_scores(
        jnp.array([0.5, 0.3, 0.2]), jnp.array([3, 1, 0]), jnp.array([0.1, 0.2, 0.0]), jnp.int32(5), 1.25, 19652.0, None
    )
    # .1 + 2.7957677 * .5 / 4,  .2 + 2.7957677 * .3 / 2,  0 + 2.7957677 * .2
    np.testing.assert_allclose(scores, [0.4494710, 0.6193652, 0.5591535], rtol=2e-6)


def test_weights_are_probabilities_and_tell_what_is_illegal():
    logits = mask_logits(jnp.array([2.0 + np.log(0.6), 5.0, 2.0 + np.log(0.4)]), jnp.array([True, False, True]))
    np.testing.assert_allclose(prior_weights(logits), [0.6, -1.0, 0.4], rtol=1e-6)
    back = weights_to_logits(prior_weights(logits))
    np.testing.assert_allclose(back[jnp.array([0, 2])], np.log([0.6, 0.4]), rtol=1e-6)
    assert is_illegal(back).tolist() == [False, True, False]
    # A probability that is too small for a float is no illegal action.
    assert is_illegal(weights_to_logits(prior_weights(jnp.array([0.0, -200.0])))).tolist() == [False, False]


def test_an_illegal_action_is_not_taken_where_nothing_explores():
    logits = mask_logits(jnp.zeros(3), jnp.array([True, True, False]))
    assert puct(np.asarray(logits), [1, 1, 0], [-0.3, -0.2, 0.0], c_puct=0.0) == 1


def test_the_exploration_rate_grows_with_visits():
    score = functools.partial(puct_scores, jnp.array([1.0]), jnp.array([0]), jnp.array([0.0]))
    # N = 10000: (log(29653 / 19652) + 1.25) * 100 = (0.4113842 + 1.25) * 100
    np.testing.assert_allclose(score(jnp.int32(10_000), 1.25, 19652.0, None), [166.13842], rtol=1e-5)
    np.testing.assert_allclose(score(jnp.int32(10_000), 1.25, 19652.0, 2.0), [200.0], rtol=1e-6)


def test_puct_takes_raw_qvalues():
    # Rescaled among siblings (0 and 1 for the worst and the best), action 1 would have been far ahead.
    logits = np.log([0.6, 0.4])
    assert puct(logits, [1, 1], [0.01, 0.02]) == 0
    assert puct(logits, [1, 1], [-0.2, 0.2]) == 1


def test_the_first_choice_follows_the_prior():
    assert puct(np.log([0.2, 0.5, 0.3]), [0, 0, 0], [0, 0, 0]) == 1


def test_an_action_never_taken_counts_as_a_draw():
    # Not as a loss (which favours taken actions) and not as the parent's value.
    assert puct(np.log([0.5, 0.5]), [2, 0], [-0.9, 0]) == 1
    assert puct(np.log([0.9, 0.1]), [9, 0], [0.9, 0]) == 0


def test_ties_go_to_the_lowest_action():
    assert puct([0.0] * 4, [1, 0, 0, 0], [0] * 4) == 1
    assert puct([0.0] * 4, [1, 1, 1, 1], [0] * 4) == 0


def test_illegal_actions_are_never_selected():
    legal = jnp.array([False, True, False, True])
    logits = np.asarray(mask_logits(jnp.array([50.0, -3.0, 50.0, -4.0]), legal))
    assert puct(logits, [0, 0, 0, 0], [0] * 4) == 1
    assert puct(logits, [0, 9, 0, 0], [0, -1, 0, 0]) == 3
    logits = np.asarray(mask_logits(jnp.array([0.9, 0.3, 0.9, 0.4]), legal))
    tree = node(logits, [0, 1, 0, 0], [0] * 4)
    assert int(SELECT_UCB1(KEY, tree, jnp.int32(0), exploration=1.0)) == 3


def test_ucb1_scores():
    def chosen(visits, qvalues, exploration):
        tree = node([0.1, 0.9, 0.5], visits, qvalues)
        return int(SELECT_UCB1(KEY, tree, jnp.int32(0), exploration=exploration))

    # ln 6 = 1.791759; c = 1: .9 + sqrt(ln 6 / 3) = 1.672821, .2 + sqrt(ln 6 / 1) = 1.538566, .7 + sqrt(ln 6 / 2) =
    # 1.646509; c = 2: 2.445641, 2.877131, 2.593018.
    assert chosen([3, 1, 2], [0.9, 0.2, 0.7], 1.0) == 0
    assert chosen([3, 1, 2], [0.9, 0.2, 0.7], 2.0) == 1
    # 1.672821 against .75 + .946509 = 1.696509
    assert chosen([3, 1, 2], [0.9, 0.2, 0.75], 1.0) == 2


def test_ucb1_tries_everything_first_in_the_order_of_the_prior():
    tree = node([0.1, 0.9, 0.5], [0, 0, 0], [0, 0, 0])
    assert int(SELECT_UCB1(KEY, tree, jnp.int32(0), exploration=0.5)) == 1
    tree = node([0.1, 0.9, 0.0], [0, 500, 0], [0, 1.0, 0])
    assert int(SELECT_UCB1(KEY, tree, jnp.int32(0), exploration=0.5)) == 0
    tree = node([0.1, 0.9, 0.0], [1, 500, 0], [-1.0, 1.0, 0])
    assert int(SELECT_UCB1(KEY, tree, jnp.int32(0), exploration=0.5)) == 2


@pytest.mark.parametrize(
    ("scores", "index"),
    [
        ([0.0, 3.0, 1.0, 3.0], 1),
        ([-np.inf, -np.inf, -np.inf], 0),
        ([-np.inf, -2.0, -1e30], 1),
        ([5.0], 0),
        ([np.finfo(np.float32).min, -np.inf], 0),
    ],
)
def test_first_argmax(scores, index):
    assert int(first_argmax(jnp.array(scores, jnp.float32))) == index == int(np.argmax(scores))


def test_first_argmax_of_many_actions():
    scores = np.random.default_rng(0).integers(0, 300, (64, 11_259)).astype(np.float32)
    np.testing.assert_array_equal(jax.vmap(first_argmax)(jnp.asarray(scores)), scores.argmax(-1))


def test_masked_logits_are_known_as_illegal_and_finite():
    masked = mask_logits(jnp.array([1e4, -1e4, 3.0]), jnp.array([True, True, False]))
    np.testing.assert_array_equal(is_illegal(masked), [False, False, True])
    assert np.isfinite(jax.nn.softmax(masked)).all()
    nothing_legal = mask_logits(jnp.array([1.0, 2.0]), jnp.array([False, False]))
    np.testing.assert_allclose(jax.nn.softmax(nothing_legal), [0.5, 0.5])


@pytest.mark.parametrize(
    ("temperature", "weights"),
    [
        (1.0, [4 / 9, 2 / 9, 0, 1 / 9, 2 / 9]),
        (0.5, [16 / 25, 4 / 25, 0, 1 / 25, 4 / 25]),
        # square roots 2, 1.4142136, 0, 1, 1.4142136 over their sum 5.8284271
        (2.0, [0.3431458, 0.2426407, 0, 0.1715729, 0.2426407]),
        (0.0, [1, 0, 0, 0, 0]),
    ],
)
def test_temperature_weights(temperature, weights):
    np.testing.assert_allclose(temperature_weights(jnp.array([4, 2, 0, 1, 2]), temperature), weights, atol=1e-6)


def test_a_small_temperature_does_not_overflow():
    weights = temperature_weights(jnp.array([800, 799, 0, 1]), 1e-3)
    np.testing.assert_allclose(weights, [0.7774, 0.2226, 0, 0], atol=1e-3)  # (799 / 800)^1000 = 0.2863
    assert np.isfinite(temperature_weights(jnp.array([0, 0, 0, 0]), 1.0)).all()


def test_moves_are_drawn_by_visit_count():
    visits = jnp.broadcast_to(jnp.array([30, 0, 60, 10]), (GAMES, 4))
    legal = jnp.broadcast_to(jnp.array([True, True, True, True]), (GAMES, 4))
    drawn = np.bincount(SAMPLE_MOVES(KEY, visits, legal, 1.0), minlength=4)
    assert drawn[1] == 0
    expected = GAMES * np.array([0.3, 0.6, 0.1])
    assert np.sum((drawn[[0, 2, 3]] - expected) ** 2 / expected) < 13.8  # chi-square, 2 degrees: p = 0.001


def test_the_temperature_is_each_games_own_and_zero_takes_the_first_most_visited():
    visits = jnp.broadcast_to(jnp.array([1, 5, 0, 5]), (GAMES, 4))
    legal = jnp.ones((GAMES, 4), bool)
    temperature = jnp.where(jnp.arange(GAMES) < 256, 0.0, 1.0)
    drawn = np.asarray(SAMPLE_MOVES(KEY, visits, legal, temperature))
    assert (drawn[:256] == 1).all()
    assert {0, 1, 3} == set(drawn[256:].tolist())


def test_a_move_is_legal_even_without_visits():
    legal = jnp.array([[False, False, True, False]] * GAMES)
    for temperature in (0.0, 1.0):
        assert (np.asarray(SAMPLE_MOVES(KEY, jnp.zeros((GAMES, 4), jnp.int32), legal, temperature)) == 2).all()


# ---- Gumbel's rules


@pytest.mark.parametrize("num_simulations", [1, 2, 8, 16, 33, 64])
def test_sequential_halving_spends_the_budget_as_mctx_does(num_simulations):
    """The schedule by its visible effect: mctx's root selection, over the whole of a search with fixed values."""
    rng = np.random.default_rng(num_simulations)
    actions, considered, games = 7, 5, 16
    logits, gumbel = rng.normal(size=(2, games, actions)).astype(np.float32)
    values = rng.uniform(-1, 1, (games, actions)).astype(np.float32)
    invalid = (rng.random((games, actions)) < 0.3).astype(np.float32)
    invalid[:, 0] = 0
    arguments = {"num_simulations": num_simulations, "max_num_considered_actions": considered}

    @jax.jit
    def both(visits):
        def one(logits, gumbel, values, invalid, visits):
            tree = node(logits, visits, jnp.where(visits > 0, values, 0))
            tree = tree.replace(root_invalid_actions=invalid, extra_data=mctx.GumbelMuZeroExtraData(root_gumbel=gumbel))
            ours = select_gumbel_root(KEY, tree, jnp.int32(0), **arguments)
            return ours, mctx.gumbel_muzero_root_action_selection(KEY, tree, jnp.int32(0), **arguments)

        return jax.vmap(one)(logits, gumbel, values, invalid, visits)

    visits = np.zeros((games, actions), np.int32)
    for _ in range(num_simulations):
        ours, theirs = both(visits)
        np.testing.assert_array_equal(ours, theirs)
        visits[np.arange(games), ours] += 1
    assert (visits[invalid > 0] == 0).all()


def test_visits_of_sequential_halving():
    # m = 4, N = 8: two phases of 4; each of 4 actions once, then each of the best 2 twice more.
    np.testing.assert_array_equal(considered_visits(4, 8)[4], [0, 0, 0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(considered_visits(4, 8)[1], range(8))  # one action: all of them
    np.testing.assert_array_equal(considered_visits(16, 16)[16], [0] * 16)


def test_completed_qvalues_by_hand():
    # Priors .5 .25 .25; action 0 taken once (Q .6), action 2 three times (Q -.2); the node's own value is .1. Prior
    # mean of the taken: (.5 .6 + .25 -.2) / .75 = 1/3; mixed: (.1 + 4/3) / 5 = .2866667 for action 1.
    # To [0, 1]: 1, .4866667 / .8 = .6083333, 0; times .1 (50 + 3) = 5.3.
    tree = node(np.log([0.5, 0.25, 0.25]), [1, 0, 3], [0.6, 0, -0.2])
    tree = tree.replace(raw_values=jnp.array([0.1]))
    np.testing.assert_allclose(completed_qvalues(tree, jnp.int32(0)), [5.3, 3.2241667, 0], atol=1e-5)
    # The paper's constants for board games: (Q + 1) / 2 = .8, .6433333, .4; times 1 (50 + 3) = 53.
    paper = completed_qvalues(tree, jnp.int32(0), value_scale=1.0, maxvisit_init=50.0, rescale=False)
    np.testing.assert_allclose(paper, [42.4, 34.0966667, 21.2], atol=1e-4)


@pytest.mark.parametrize("num_actions", [2, 9, 49])
def test_gumbel_below_the_root_chooses_as_mctx_does(num_actions):
    rng = np.random.default_rng(num_actions)
    games = 256
    logits = rng.normal(size=(games, num_actions)).astype(np.float32)
    legal = (rng.random((games, num_actions)) < 0.7) | (np.arange(num_actions) == 0)
    visits = rng.integers(0, 4, (games, num_actions)) * legal
    qvalues = (rng.uniform(-1, 1, (games, num_actions)) * (visits > 0)).astype(np.float32)

    @jax.jit
    @jax.vmap
    def both(logits, legal, visits, qvalues):
        tree = node(mask_logits(logits, legal), visits, qvalues)
        where = (KEY, tree, jnp.int32(0), jnp.int32(1))
        transformed = completed_qvalues(tree, jnp.int32(0)), mctx.qtransform_completed_by_mix_value(tree, jnp.int32(0))
        return select_gumbel_interior(*where), mctx.gumbel_muzero_interior_action_selection(*where), *transformed

    ours, theirs, qvalues_here, qvalues_there = both(logits, legal, visits, qvalues)
    np.testing.assert_allclose(qvalues_here, qvalues_there, atol=1e-4)
    np.testing.assert_array_equal(ours, theirs)
    assert legal[np.arange(games), ours].all()


def test_the_first_of_the_largest():
    assert [int(SELECT_FIRST(jnp.array(row))) for row in ([0.0, 2, 2], [-jnp.inf] * 3, [1.0, jnp.nan, 2])] == [1, 0, 2]
