"""Alpha-beta against plain minimax: of a depth, and to the end of the game."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.search import alphabeta_search, game_model
from envs.random_games import random_games
from envs.tic_tac_toe import GAME as TIC_TAC_TOE

KEY = jax.random.key(0)
GAMES = 24
LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
WEIGHTS = np.random.default_rng(0).standard_normal((18, 10)).astype(np.float32)


def evaluate(params, rng_key, states):
    board = jax.vmap(TIC_TAC_TOE.observe)(states).reshape(-1, 18)
    out = jnp.sin(3 * board @ WEIGHTS)
    return out[:, :9], 0.9 * out[:, 9]


MODEL = game_model(TIC_TAC_TOE, evaluate)


def plain_value(mine, theirs):
    """The evaluation of a position, by its stones."""
    board = np.zeros((9, 2), np.float32)
    board[list(mine), 0] = 1
    board[list(theirs), 1] = 1
    return float(0.9 * np.sin(3 * board.reshape(-1) @ WEIGHTS)[9])


@functools.cache
def minimax(mine, theirs, depth):
    """(value, best moves) of the player to move; depth None: to the end of the game."""
    if any(set(line) <= theirs for line in LINES):
        return -1.0, ()
    empty = [square for square in range(9) if square not in mine | theirs]
    if not empty:
        return 0.0, ()
    if depth == 0:
        return plain_value(mine, theirs), ()
    deeper = None if depth is None else depth - 1
    values = {move: -minimax(theirs, mine | {move}, deeper)[0] for move in empty}
    best = max(values.values())
    return best, tuple(move for move, value in values.items() if value > best - 1e-4)


@functools.cache
def positions(plies):
    """States [24] after random plies, those that are over replaced by the first that is not; and their stones."""
    games = random_games(TIC_TAC_TOE, jax.random.split(KEY, GAMES), np.random.default_rng(plies))
    states = next(itertools.islice(games, plies, None)).state
    over = np.asarray(jax.vmap(TIC_TAC_TOE.terminated)(states))
    rows = np.where(over, np.flatnonzero(~over)[0], np.arange(GAMES))
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf)[rows], states)
    boards = np.asarray(jax.vmap(TIC_TAC_TOE.observe)(states)).reshape(GAMES, 9, 2)
    return states, [tuple(frozenset(np.flatnonzero(board[:, k]).tolist()) for k in (0, 1)) for board in boards]


@functools.partial(jax.jit, static_argnums=(1, 2))
def search(states, evaluations, depth):
    return alphabeta_search((), KEY, MODEL.root((), KEY, states), MODEL.recurrent, evaluations, depth)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_depth_that_is_finished_has_minimaxs_value(depth):
    states, stones = positions(3)
    found = search(states, 5000, depth)
    for game, (mine, theirs) in enumerate(stones):
        value, best = minimax(mine, theirs, depth)
        # A win that is proven earlier ends the search.
        assert found.depth[game] == depth or found.solved[game]
        if not found.solved[game]:
            np.testing.assert_allclose(found.value[game], value, atol=1e-4)
        assert int(found.action[game]) in best or found.solved[game]


@pytest.mark.parametrize("plies", [2, 4, 5])
def test_games_are_solved(plies):
    states, stones = positions(plies)
    found = search(states, 20_000, 9)
    assert found.solved.all() and (found.evaluations < 20_000).all()
    for game, (mine, theirs) in enumerate(stones):
        value, best = minimax(mine, theirs, None)
        assert float(found.value[game]) == value
        assert int(found.action[game]) in best


def test_the_budget_is_kept_and_gives_a_legal_move():
    states, _ = positions(2)
    legal = np.asarray(jax.vmap(TIC_TAC_TOE.legal_action_mask)(states))
    depths = []
    for evaluations in (1, 5, 40, 400):
        found = search(states, evaluations, 9)
        assert (np.asarray(found.evaluations) <= evaluations).all()
        assert legal[np.arange(GAMES), found.action].all()
        depths.append(float(found.depth.mean()))
    assert depths[0] == 0 and depths == sorted(depths) and depths[-1] > 2


def test_a_game_is_searched_as_if_it_were_alone():
    states, _ = positions(4)
    together = search(states, 200, 9)
    one = search(jax.tree.map(lambda leaf: leaf[5:6], states), 200, 9)
    for a, b in zip(together, one, strict=True):
        np.testing.assert_array_equal(a[5], b[0])
