"""Exact values: against plain minimax, known results of small games, and a player who never loses what it has."""

import functools
import re

import jax
import numpy as np
import pytest

from azjax import solver
from azjax.arena import play_match
from azjax.expansion import expand, facts, random_positions, row_bytes, rows, size
from azjax.players import make_player
from azjax.solver import action_values, look_up, position_hashes, solve, solve_from
from azjax.step import make_mesh
from azjax.tactics import wins_in_one
from envs.backgammon import Backgammon
from envs.core import state_bytes
from envs.crosshair import Crosshair
from envs.hex import Hex
from envs.tic_tac_toe import GAME

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


@functools.cache
def minimax(board: tuple[int, ...]) -> int:
    """The value for the player to move of tic-tac-toe, +1 and -1 being the marks; without azjax."""
    mover = 1 if board.count(0) % 2 else -1
    if any(board[a] == board[b] == board[c] == -mover for a, b, c in LINES):
        return -1
    if 0 not in board:
        return 0
    return max(-minimax((*board[:i], mover, *board[i + 1 :])) for i in range(9) if not board[i])


@pytest.fixture(scope="module")
def solution():
    return solve(GAME)


@pytest.fixture(scope="module")
def positions():
    return random_positions(GAME, 200, 0)


def boards(states):
    """Tuples of +1 (first player), -1, 0."""
    seen = np.asarray(jax.vmap(GAME.observe)(states)).reshape(size(states), 9, -1)
    mover = np.where(facts(GAME, states).mover == 0, 1, -1)[:, None]
    return [tuple(row) for row in (mover * (seen[:, :, 0] - seen[:, :, 1])).astype(int).tolist()]


def test_every_position_of_tic_tac_toe_is_found(solution):
    # 5,478 positions can be reached, those in which the game is over included.
    assert solution.hashes.shape == (5478, 2) and solution.values.shape == (5478,)
    assert set(np.unique(solution.values)) == {-1.0, 0.0, 1.0}


def test_positions_from_some_beginnings_have_the_same_values(solution, positions):
    starts = rows(positions.states, positions.ply == 4)
    part = solve_from(GAME, starts)
    assert size(starts) < len(part.values) < len(solution.values)
    np.testing.assert_array_equal(look_up(part, starts), look_up(solution, starts))
    # What is not after them is not there.
    assert np.isnan(look_up(part, rows(positions.states, positions.ply == 3))).all()
    with pytest.raises(ValueError, match="which has more than 50 positions"):
        solve_from(GAME, starts, 50)


def test_values_are_minimaxs(solution, positions):
    found = np.asarray(jax.jit(look_up)(solution, positions.states))
    assert size(positions.states) > 500
    assert found.tolist() == [minimax(board) for board in boards(positions.states)]
    values, ends = jax.jit(functools.partial(action_values, GAME))(solution, positions.states)
    values = np.asarray(values)
    legal = facts(GAME, positions.states).legal
    assert (np.isneginf(values) == ~legal).all()
    np.testing.assert_array_equal(values.max(1), found)
    np.testing.assert_array_equal(ends & (values == 1), wins_in_one(GAME, positions.states, legal))


def test_a_position_that_is_not_there_has_no_value(solution):
    other = jax.tree.map(lambda leaf: leaf[None], GAME.init(jax.random.key(0)))
    other = type(other)(**{**vars(other), "ply": other.ply + 7})
    assert np.isnan(look_up(solution, other)).all()


def test_small_games_have_the_values_that_are_known():
    # Hex without swap is the first player's; with it the second takes a first move that wins. Crosshair of one square:
    # the first stone fills the board.
    assert value_of(Hex(size=2, swap=False)) == 1.0 and value_of(Hex(size=3, swap=False)) == 1.0
    assert value_of(Hex(size=2)) == -1.0
    game = Crosshair(size=2)
    assert value_of(game) == plain_value(game, game.init(jax.random.key(0)))


def value_of(game):
    start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(jax.random.key(0)))
    return float(look_up(solve(game), start)[0])


def plain_value(game, state):
    """Minimax by the game's own functions, one position at a time."""
    if bool(game.terminated(state)):
        return float(game.returns(state)[int(game.to_move(state))])
    best = -1.0
    for action in np.flatnonzero(np.asarray(game.legal_action_mask(state))):
        after = game.step(state, np.int32(action))
        sign = 1 if int(game.to_move(after)) == int(game.to_move(state)) else -1
        best = max(best, sign * plain_value(game, after))
    return best


def test_players_who_move_twice_running_keep_the_sign(double_turns):
    start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], double_turns.init(jax.random.key(0)))
    assert float(look_up(solve(double_turns), start)[0]) == 1.0  # two strikes in the first turn
    values, ends = action_values(double_turns, solve(double_turns), start)
    assert values[0].tolist() == [-1.0, 1.0]  # who waits leaves both strikes to the other
    assert not ends.any()


def test_positions_and_what_follows_them():
    found = random_positions(GAME, 50, 3)
    said = facts(GAME, found.states)
    assert not said.over.any() and len(np.unique(row_bytes(found.states))) == size(found.states)
    after = expand(GAME, found.states, said.legal)
    assert size(after.states) == said.legal.sum() == len(after.parent)
    for number in (0, 7, size(after.states) - 1):
        before = rows(found.states, after.parent[number])
        expected = GAME.step(before, after.action[number])
        same = jax.tree.map(lambda a, b, at=number: np.array_equal(a[at], b), after.states, expected)
        assert all(jax.tree.leaves(same))
    assert len(np.unique(position_hashes(GAME, found.states))) == size(found.states)
    assert row_bytes(rows(found.states, slice(0, 0))).shape == (0,)


def test_the_solver_never_loses_at_tic_tac_toe():
    def no_run(directory, step):
        raise AssertionError("no run is needed")

    solver = make_player(GAME, "solver", no_run)
    others = [make_player(GAME, word, no_run) for word in ("random", "uct:40")]
    for other in others:
        match = play_match(GAME, solver, other, games=40, mesh=make_mesh(1), opening_plies=0, lanes=20)
        assert match.losses == 0 and match.distinct > 20
    assert match.draws > 10


@pytest.mark.parametrize(
    ("game", "word", "message"),
    [
        (GAME, "solver:3", "player: got 'solver:3', expected solver without an argument"),
        (GAME, "solver,depth=3", "player 'solver,depth=3': got option 'depth=3', expected no options"),
        (Backgammon(), "solver", "game: got backgammon, which has dice, expected one without"),
    ],
)
def test_what_cannot_be_solved_is_refused(game, word, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        make_player(game, word, lambda directory, step: None)


def test_a_layer_made_in_parts_is_the_same(solution, monkeypatch):
    monkeypatch.setattr(solver, "PART", 100)
    start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], GAME.init(jax.random.key(0)))
    jax.tree.map(np.testing.assert_array_equal, solve_from(GAME, start), solution)


def test_a_layer_that_is_too_large_is_not_made_to_its_end(monkeypatch):
    made = []
    monkeypatch.setattr(solver, "PART", 500)
    monkeypatch.setattr(solver, "expand", lambda *given: made.append(expand(*given)) or made[-1])
    game = Hex(swap=False)  # 121 positions after a move, 14,520 moves more
    with pytest.raises(ValueError, match=r"solver: got hex,swap=false, which has more than 1,000 positions"):
        solve(game, 1000)
    assert len(made[0].parent) == 121 and sum(len(part.parent) for part in made) < 2000
    monkeypatch.setattr(solver, "MOST_BYTES", 99 * state_bytes(game) + 1)
    with pytest.raises(ValueError, match=r"more than 99 positions"):
        solve_from(game, rows(made[0].states, slice(0, 1)))


def test_a_game_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match=r"solver: got tic_tac_toe, which has more than 1,000 positions"):
        solve(GAME, 1000)
