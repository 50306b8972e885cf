"""One game's search in pieces is the search in one piece, and what it knew of a move it still knows after it."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.search import game_model, puct_policy, single
from azjax.search.single import TreeSearch
from azjax.search.tree import NO_NODE, ROOT
from envs.tic_tac_toe import GAME as TIC_TAC_TOE

KEY = jax.random.key(0)


def evaluate(params, rng_key, states):
    """Logits and values that differ from position to position."""
    board = jax.vmap(TIC_TAC_TOE.observe)(states).reshape(-1, 18)
    weights = jax.random.normal(jax.random.key(3), (18, 10))
    out = jnp.sin(3 * board @ weights)
    return out[:, :9], 0.5 * out[:, 9]


MODEL = game_model(TIC_TAC_TOE, evaluate)


def after(*moves):
    state = TIC_TAC_TOE.init(KEY)
    for move in moves:
        state = TIC_TAC_TOE.step(state, jnp.int32(move))
    return state


@pytest.fixture(scope="module")
def searcher():
    return TreeSearch(TIC_TAC_TOE, MODEL, (), capacity=120, chunk=7)


def same(one, other):
    np.testing.assert_array_equal(one.visits, other.visits)
    np.testing.assert_allclose(one.qvalues, other.qvalues, atol=1e-5)
    np.testing.assert_allclose(one.prior, other.prior, atol=1e-6)
    assert one.value == pytest.approx(other.value, abs=1e-5)
    assert one.principal_variation == other.principal_variation


def test_a_search_in_pieces_is_the_search_in_one(searcher):
    searcher.start(after(4, 0))
    assert searcher.grow(10) == 10 and searcher.grow(30) == 30
    states = jax.tree.map(lambda leaf: leaf[None], after(4, 0))
    policy = jax.jit(
        lambda: puct_policy((), KEY, MODEL.root((), KEY, states), MODEL.recurrent, 40, dirichlet_fraction=0.0)
    )
    whole = policy()
    look = searcher.look()
    np.testing.assert_array_equal(look.visits, whole.search_tree.summary().visit_counts[0])
    np.testing.assert_allclose(look.value, whole.search_tree.node_values[0, 0], atol=1e-6)
    assert look.action == whole.action[0] == look.principal_variation[0] and look.simulations == 40
    assert look.prior.sum() == pytest.approx(1) and (look.prior[[4, 0]] == 0).all()


@pytest.mark.parametrize("simulations", [40, 100])
def test_a_tree_is_given_another_root_block_by_block(monkeypatch, simulations):
    monkeypatch.setattr(single, "_BLOCK", 8)
    search = TreeSearch(TIC_TAC_TOE, MODEL, (), capacity=100)  # 101 nodes: the last block reaches back
    search.start(after(4, 0))
    assert search.grow(simulations) == simulations
    before, best = jax.tree.map(np.array, search._tree), search.look().action
    kept = [int(before.children[ROOT, 0, best])]
    for node in range(kept[0] + 1, simulations + 1):
        if before.parents[node, 0] in kept:
            kept.append(node)
    assert search.advance(best) and len(kept) == search._used > 10
    now = jax.tree.map(np.array, search._tree)
    for name in ("visits", "qvalues", "prior_logits", "node_values"):
        np.testing.assert_array_equal(getattr(now, name)[: len(kept)], getattr(before, name)[kept])
    for place, old in enumerate(kept):
        assert [NO_NODE if child == NO_NODE else kept[child] for child in now.children[place, 0]] == before.children[
            old, 0
        ].tolist()
    assert now.parents[ROOT, 0] == NO_NODE
    assert [kept[parent] for parent in now.parents[1 : len(kept), 0]] == before.parents[kept[1:], 0].tolist()
    assert not now.visits[len(kept) :].any() and (now.children[len(kept) :] == NO_NODE).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_kept_tree_goes_on_as_a_search_from_there_would(searcher, seed):
    moves = np.random.default_rng(seed).permutation(9)[:2].tolist()
    searcher.start(after(*moves))
    searcher.grow(60)
    best = searcher.look()
    assert searcher.advance(best.action)
    kept = searcher.look()
    assert kept.simulations == best.visits[best.action] - 1 > 5
    assert kept.principal_variation == best.principal_variation[1:]
    again = TreeSearch(TIC_TAC_TOE, MODEL, (), capacity=120, chunk=7)
    again.start(after(*moves, best.action))
    again.grow(kept.simulations)
    same(kept, again.look())
    assert searcher.room >= 120 - 60
    searcher.grow(40), again.grow(40)
    same(searcher.look(), again.look())
    # And a second time.
    second = searcher.look().action
    if searcher.advance(second):
        again.start(after(*moves, best.action, second))
        again.grow(searcher.look().simulations)
        same(searcher.look(), again.look())


def test_a_wave_of_one_is_a_simulation(searcher):
    """By the wave's own code: a simulation that does not fill a wave of 2 is a wave of one."""
    searcher.start(after(4, 0))
    searcher.grow(21)
    waves = TreeSearch(TIC_TAC_TOE, MODEL, (), capacity=120, chunk=1, wave=2)
    waves.start(after(4, 0))
    assert waves.grow(21) == 21
    same(searcher.look(), waves.look())


@pytest.mark.parametrize("wave", [4, pytest.param(16, marks=pytest.mark.slow)])
def test_waves_keep_the_trees_books(wave):
    search = TreeSearch(TIC_TAC_TOE, MODEL, (), capacity=120, chunk=48, wave=wave)
    search.start(after(4, 0))
    assert search.grow(100) == 100
    look, tree = search.look(), search._tree
    assert look.simulations == 100 and look.prior[[4, 0]].sum() == 0 and look.visits[[4, 0]].sum() == 0
    visits, qvalues, children, values, counts, raw, discounts, rewards = (
        np.asarray(field[:, 0])
        for field in (
            tree.visits,
            tree.qvalues,
            tree.children,
            tree.node_values,
            tree.node_visits,
            tree.raw_values,
            tree.discounts,
            tree.rewards,
        )
    )
    for node in range(101):
        taken = np.flatnonzero(visits[node])
        below = children[node, taken]
        assert (below > 0).all()
        of_edge = rewards[below] + discounts[below] * values[below]
        np.testing.assert_allclose(qvalues[node, taken], of_edge, atol=1e-5)  # no loss is left of any walk
        if len(taken):
            # Its own evaluation counts once, and again for every walk of one wave that ended there besides the first.
            own = counts[node] - visits[node].sum()
            assert own >= 1
            mean = (own * raw[node] + (visits[node, taken] * of_edge).sum()) / counts[node]
            np.testing.assert_allclose(values[node], mean, atol=1e-5)
    # A wave spreads out: its walks are not all one.
    first = TreeSearch(TIC_TAC_TOE, MODEL, (), capacity=120, chunk=wave, wave=wave)
    first.start(after(4, 0))
    first.grow(wave)
    assert (first.look().visits > 0).sum() >= min(wave, 7) / 2


def test_waves_find_a_win_in_one():
    search = TreeSearch(TIC_TAC_TOE, MODEL, (), capacity=64, chunk=16, wave=8)
    search.start(after(0, 3, 1, 4))
    search.grow()
    assert search.look().action == 2 and search.look().qvalues[2] == 1
    assert search.advance(search.look().action) is False


def test_before_the_first_simulation_the_prior_decides(searcher):
    searcher.start(after())
    look = searcher.look()
    assert look.action == int(np.argmax(look.prior)) and look.simulations == 0 and len(look.principal_variation) == 1


def test_time_and_room_end_a_search(searcher):
    searcher.start(after())
    assert searcher.grow(seconds=0.0) == 7  # one call, so that there is something to say
    started = time.perf_counter()
    searcher.grow(seconds=0.02)
    assert time.perf_counter() - started < 5
    searcher.grow()
    assert searcher.room == 0 and searcher.grow() == 0 and searcher.grow(5) == 0
    assert searcher.look().visits.sum() == 120


def test_a_win_in_one_is_found(searcher):
    searcher.start(after(0, 3, 1, 4))  # X wins at 2
    searcher.grow(60)
    look = searcher.look()
    assert look.action == 2 and look.qvalues[2] == 1 and look.value > 0.5
    assert not searcher.advance(2)  # the game is over
    with pytest.raises(ValueError, match="got no position"):
        searcher.look()


def test_a_move_never_tried_needs_a_new_start(searcher):
    searcher.start(after())
    assert not searcher.advance(0)
    with pytest.raises(ValueError, match="got no position"):
        searcher.grow(1)


@pytest.mark.parametrize("wrong", [{"capacity": 0}, {"capacity": 5, "chunk": 0}, {"capacity": 5, "wave": 0}])
def test_sizes_below_1_are_refused(wrong):
    with pytest.raises(ValueError, match="expected at least 1"):
        TreeSearch(TIC_TAC_TOE, MODEL, (), **wrong)


@pytest.mark.parametrize("wave", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_over_slots_it_is_the_same_search(searcher, wave):
    model = game_model(TIC_TAC_TOE, evaluate, masked=False)
    plain = searcher if wave == 1 else TreeSearch(TIC_TAC_TOE, MODEL, (), capacity=120, chunk=7, wave=wave)
    narrow = TreeSearch(TIC_TAC_TOE, model, (), capacity=120, chunk=7, wave=wave, slots=9)
    for search in (plain, narrow):
        search.start(after(4, 0))
        search.grow(42)
    same(plain.look(), narrow.look())
    action = plain.look().action
    assert plain.advance(action) and narrow.advance(action)
    same(plain.look(), narrow.look())
    assert not narrow.advance(4)  # taken, so in no slot


def test_only_as_many_moves_as_there_are_slots_are_searched():
    model = game_model(TIC_TAC_TOE, evaluate, masked=False)
    search = TreeSearch(TIC_TAC_TOE, model, (), capacity=60, slots=3)
    search.start(after(4, 0))
    search.grow(50)
    look = search.look()
    assert (look.visits > 0).sum() == 3 and look.visits.sum() == 50
    full = TreeSearch(TIC_TAC_TOE, MODEL, (), capacity=60)
    full.start(after(4, 0))
    assert set(np.flatnonzero(look.visits)) == set(np.argsort(full.look().prior)[-3:])


def test_lines_are_the_moves_in_order_of_their_visits(searcher):
    searcher.start(after(4, 0))
    assert searcher.variations(3) == []
    searcher.grow(60)
    look, lines = searcher.look(), searcher.variations(3)
    assert lines[0].moves == look.principal_variation and len(lines) == 3
    assert [line.visits for line in lines] == sorted(look.visits, reverse=True)[:3]
    for line in lines:
        move = line.moves[0]
        assert line.visits == look.visits[move] and line.q == pytest.approx(look.qvalues[move])
        assert line.prior == pytest.approx(look.prior[move])


def test_a_search_of_some_moves_alone(searcher):
    searcher.start(after(4, 0), only=[1, 8, 4])  # 4 is taken
    searcher.grow(40)
    look = searcher.look()
    assert set(np.flatnonzero(look.visits)) == {1, 8} and look.prior.sum() == pytest.approx(1)
    searcher.advance(8)
    searcher.grow(30)
    assert len(np.flatnonzero(searcher.look().prior)) == 6  # below the root every move is there
