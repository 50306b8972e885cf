"""Tic-tac-toe: the whole game tree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.tic_tac_toe import GAME


def test_whole_tree_has_its_known_sizes():
    """5,478 positions; 255,168 games, of which 131,184 are won by player 0, 77,904 by player 1, 46,080 drawn."""
    step = jax.jit(jax.vmap(jax.vmap(GAME.step, in_axes=(None, 0))))
    look = jax.jit(jax.vmap(lambda state: (GAME.legal_action_mask(state), GAME.terminated(state), GAME.returns(state))))
    every_action = np.broadcast_to(np.arange(9, dtype=np.int32), (5478, 9))
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[None], GAME.init(jax.random.key(0)))
    paths = np.ones(1, np.int64)
    positions, games = 0, {1.0: 0, -1.0: 0, 0.0: 0}
    for ply in range(10):
        count = len(paths)
        positions += count
        padded = jax.tree.map(lambda leaf, n=count: np.resize(leaf, (5478, *leaf.shape[1:])), state)
        mask, over, returns = (np.asarray(leaf)[:count] for leaf in look(padded))
        for result in games:
            games[result] += int(paths[over & (returns[:, 0] == result)].sum())
        if ply == 9:
            break
        after = jax.tree.map(lambda leaf, n=count, m=mask: np.asarray(leaf)[:n][m], step(padded, every_action))
        keys = after.mine.words[0].astype(np.int64) << 9 | after.theirs.words[0]
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        paths = np.bincount(inverse, weights=np.repeat(paths, mask.sum(-1))).astype(np.int64)
        state = jax.tree.map(lambda leaf, f=first: leaf[f], after)
    assert positions == 5478
    assert games == {1.0: 131184, -1.0: 77904, 0.0: 46080}


@pytest.mark.parametrize(
    ("moves", "returns"),
    [
        ([0, 3, 1, 4, 2], [1, -1]),  # top row
        ([0, 1, 4, 2, 8], [1, -1]),  # falling diagonal
        ([0, 2, 1, 4, 8, 6], [-1, 1]),  # rising diagonal, player 1
        ([0, 1, 8, 4, 7, 6, 2, 5, 3], [0, 0]),  # full board
        ([0, 1, 2, 4, 3, 5, 7, 6, 8], [0, 0]),
        ([0, 1, 2, 3, 4, 5, 7, 6, 8], [1, -1]),  # the last square wins: no draw
    ],
)
def test_results(moves, returns):
    state = GAME.init(jax.random.key(0))
    step = jax.jit(GAME.step)
    for ply, move in enumerate(moves):
        assert not GAME.terminated(state)
        assert int(GAME.to_move(state)) == ply % 2
        state = step(state, jnp.int32(move))
    assert GAME.terminated(state)
    assert GAME.returns(state).tolist() == returns


def test_observation_is_the_movers():
    state = GAME.step(GAME.step(GAME.step(GAME.init(jax.random.key(0)), 4), 0), 5)  # crosses e5, f5; noughts a1
    mine, theirs = np.moveaxis(np.asarray(GAME.observe(state)), -1, 0)  # player 1 is to move
    assert mine.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert theirs.tolist() == [[0, 0, 0], [0, 1, 1], [0, 0, 0]]
    assert GAME.render(state) == "  a b c\n1 O . .\n2 . X X\n3 . . ."


def test_names():
    assert [GAME.action_name(action) for action in range(9)] == "a1 b1 c1 a2 b2 c2 a3 b3 c3".split()
    assert GAME.parse_action(" C2 ") == 5
    with pytest.raises(ValueError, match="move: got 'd1', expected one of this game's moves, such as 'a1'"):
        GAME.parse_action("d1")
