"""Connect Four against a plain Python twin and OpenSpiel, and games whose result is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.connect_four import GAME
from tests.envs.openspiel import compare_with_openspiel

_FULL = "2 1 1 1 3 1 4 1 6 5 7 2 3 4 5 6 7 7 6 5 4 3 2 7 6 5 4 3 2 2 3 4 5 6 7 7 6 5 4 3 2 1"


def _replay(columns):
    step = jax.jit(GAME.step)
    states = [GAME.init(jax.random.key(0))]
    for column in columns:
        states.append(step(states[-1], jnp.int32(column)))
    return states


def _drop(board, column, player):
    """Puts a disc on board int[6][7] (row 0 on top); returns whether it makes four in a row."""
    row = max(r for r in range(6) if board[r][column] is None)
    board[row][column] = player
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        length = 1
        for sign in (1, -1):
            r, c = row + sign * down, column + sign * right
            while 0 <= r < 6 and 0 <= c < 7 and board[r][c] == player:
                length, r, c = length + 1, r + sign * down, c + sign * right
        if length >= 4:
            return True
    return False


def test_second_player_wins_with_the_last_disc():
    """pitfall: a win on the 42nd ply taken for a draw."""
    states = _replay([int(column) - 1 for column in _FULL.split()])
    assert len(states) == 43
    assert not any(bool(GAME.terminated(state)) for state in states[:-1])
    assert bool(GAME.terminated(states[-1]))
    assert GAME.returns(states[-1]).tolist() == [-1, 1]
    assert not bool(GAME.truncated(states[-1]))


@pytest.mark.parametrize(
    ("columns", "winner"),
    [
        ([0, 0, 1, 1, 2, 2, 3], 0),  # row
        ([6, 0, 6, 0, 6, 0, 6], 0),  # column
        ([0, 1, 1, 2, 2, 3, 2, 3, 3, 6, 3], 0),  # rising
        ([6, 5, 5, 4, 4, 3, 4, 3, 3, 0, 3], 0),  # falling
        ([0, 3, 0, 4, 1, 5, 1, 6], 1),
    ],
)
def test_each_direction_wins(columns, winner):
    states = _replay(columns)
    assert not bool(GAME.terminated(states[-2]))
    assert bool(GAME.terminated(states[-1]))
    assert int(GAME.returns(states[-1])[winner]) == 1


def test_rows_do_not_wrap():
    states = _replay([4, 0, 5, 0, 6, 1, 0])  # squares 4, 5, 6 of the lowest row and 0 of one above it
    assert not bool(GAME.terminated(states[-1]))


def _compare_with_twin(play):
    """Requires equal legal moves, discs and results; returns the number of positions."""
    boards = jax.device_get(jax.jit(jax.vmap(jax.vmap(_disc_planes)))(play.states)).astype(bool)
    positions = 0
    for lane in range(len(play.plies)):
        board = [[None] * 7 for _ in range(6)]
        won = False
        moves = play.moves(lane)
        for ply in range(len(moves) + 1):
            legal = [not won and board[0][column] is None for column in range(7)]
            assert play.masks[ply, lane].tolist() == legal
            assert boards[ply, lane].tolist() == [[[disc == 0, disc == 1] for disc in row] for row in board]
            positions += 1
            if ply < len(moves):
                won = _drop(board, moves[ply], ply % 2)
                assert not won or ply == len(moves) - 1
        assert won or len(moves) == 42
        assert play.returns[lane, 0] == (0 if not won else 1 if len(moves) % 2 else -1)
    return positions


def test_random_games_equal_twin_and_openspiel(random_play):
    play = random_play(GAME, games=200)
    assert _compare_with_twin(play) > 4000
    assert compare_with_openspiel(play, "connect_four") > 4000


@pytest.mark.slow
def test_many_random_games_equal_twin_and_openspiel(random_play):
    play = random_play(GAME, games=1200, seed=1)
    assert _compare_with_twin(play) > 25_000
    assert compare_with_openspiel(play, "connect_four") > 24_000


@pytest.mark.record
def test_a_million_positions_equal_twin_and_openspiel(random_play):
    positions = 0
    for seed in range(100, 125):
        play = random_play(GAME, games=2000, seed=seed)
        positions += compare_with_openspiel(play, "connect_four")
        _compare_with_twin(play)
        print(f"{positions} positions equal", flush=True)
    assert positions > 1_000_000


def _disc_planes(state):
    """Returns float32[6, 7, 2]: player 0's discs, player 1's."""
    planes = GAME.observe(state)
    return jnp.where(GAME.to_move(state) == 0, planes, planes[..., ::-1])


def test_statistics_of_random_play(random_play):
    """Uniform random play: the first player wins .556 of the games, .0026 are drawn, 21.3 plies a game."""
    play = random_play(GAME, games=20000)
    assert abs((play.returns[:, 0] == 1).mean() - 0.556) < 0.015
    draws = play.returns[:, 0] == 0
    assert 20 < draws.sum() < 100
    assert (play.plies[draws] == 42).all()
    assert abs(play.plies.mean() - 21.3) < 0.3


def test_board_and_names():
    states = _replay([3, 3, 2])
    assert GAME.render(states[-1]).splitlines()[-3:] == [". . . O . . .", ". . X X . . .", "1 2 3 4 5 6 7"]
    assert [GAME.action_name(action) for action in range(7)] == list("1234567")
    assert GAME.parse_action("7") == 6
    mine, theirs = np.moveaxis(np.asarray(GAME.observe(states[-1])), -1, 0)
    assert np.argwhere(mine).tolist() == [[4, 3]]
    assert np.argwhere(theirs).tolist() == [[5, 2], [5, 3]]
