"""Wins by force: against a search that looks at every line, and who finds them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from azjax.arena import ask
from azjax.expansion import facts, random_positions, rows, size
from azjax.players import Player, make_player
from azjax.step import make_mesh
from azjax.tactics import Wins, find_wins, share_found, wins_in_one, wins_in_two
from envs.connect_four import ConnectFour
from envs.core import Game
from envs.tic_tac_toe import GAME


def at(game: Game, *actions: int):
    state = game.init(jax.random.key(0))
    for action in actions:
        state = game.step(state, jnp.int32(action))
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)


def winning(game, states, find):
    return np.flatnonzero(find(game, states, facts(game, states).legal)[0]).tolist()


def test_three_in_a_row_is_a_win_in_one():
    #   X X .
    #   O O .
    assert winning(GAME, at(GAME, 0, 3, 1, 4), wins_in_one) == [2]
    assert winning(GAME, at(GAME, 0, 3, 1), wins_in_one) == []  # O to move has one mark


def test_two_threats_at_once_are_a_win_in_two():
    #   X . O
    #   . O .   the corner stops O's diagonal and gives X two lines
    #   . . X
    assert winning(GAME, at(GAME, 0, 4, 8, 2), wins_in_two) == [6]
    assert winning(GAME, at(GAME, 0, 4, 8), wins_in_two) == []  # O has one mark
    assert winning(GAME, at(GAME, 0, 1), wins_in_two) == []  # X has one: a win takes three moves


def plain(game, state, moves):
    """The moves that win within `moves` moves of the mover's own, and those that win in exactly one."""
    mover = int(game.to_move(state))

    def wins(state, left):
        if bool(game.terminated(state)):
            return float(game.returns(state)[mover]) > 0
        if left == 0 and int(game.to_move(state)) == mover:
            return False
        legal = np.flatnonzero(np.asarray(game.legal_action_mask(state)))
        mine = int(game.to_move(state)) == mover
        lines = (wins(game.step(state, jnp.int32(a)), left - mine) for a in legal)
        return any(lines) if mine else all(lines)

    legal = np.flatnonzero(np.asarray(game.legal_action_mask(state)))
    return [int(a) for a in legal if wins(game.step(state, jnp.int32(a)), moves - 1)]


@pytest.mark.parametrize("game", [GAME, ConnectFour(max_plies=42)], ids=lambda game: game.id)
def test_wins_are_those_of_a_plain_search(game):
    states = random_positions(game, 24, 5).states
    legal = facts(game, states).legal
    one, two = wins_in_one(game, states, legal), wins_in_two(game, states, legal)
    # As many of each kind: won in one, in two, and in neither.
    kinds = np.where(one.any(1), 1, np.where(two.any(1), 2, 0))
    chosen = np.concatenate([np.flatnonzero(kinds == kind)[:8] for kind in (0, 1, 2)])
    assert len(chosen) > 18
    states, one, two = rows(states, chosen), one[chosen], two[chosen]
    step = jax.jit(game.step)
    for number in range(size(states)):
        state = rows(states, number)
        assert np.flatnonzero(one[number]).tolist() == plain(Jitted(game, step), state, 1)
        if not one[number].any():
            assert np.flatnonzero(two[number]).tolist() == plain(Jitted(game, step), state, 2)


class Jitted:
    """A game whose rules are compiled, for a search of one position after the other."""

    def __init__(self, game, step):
        self.step = step
        self.to_move, self.terminated = game.to_move, jax.jit(game.terminated)
        self.returns, self.legal_action_mask = game.returns, jax.jit(game.legal_action_mask)


@pytest.fixture(scope="module")
def wins():
    return find_wins(GAME, 40)


def test_sets_of_positions_are_different_and_won_no_sooner(wins):
    one, two = wins
    assert (one.moves, two.moves) == (1, 2) and len(one.winning) == 40 and 5 < len(two.winning) <= 40
    for found in wins:
        said = facts(GAME, found.states)
        assert found.winning.any(1).all() and not (found.winning & ~said.legal).any()
    assert not wins_in_one(GAME, two.states, facts(GAME, two.states).legal).any()
    again = find_wins(GAME, 40)
    assert all(np.array_equal(a.winning, b.winning) for a, b in zip(again, wins, strict=True))


def test_the_share_that_a_player_finds(wins):
    mesh = make_mesh(1)
    one, two = wins
    player = make_player(GAME, "solver", lambda directory, step: None)
    solver = share_found(player, one, mesh)
    assert solver["share"] == 1.0 and solver["found"] == solver["positions"] == 40 and solver["ci95"][1] == 1.0
    # It may win more slowly than in two; then it is not counted.
    hits = two.winning[np.arange(len(two.winning)), ask(player, two.states, mesh)]
    assert share_found(player, two, mesh)["found"] == hits.sum() > 0.8 * len(hits)
    lowest = Player("lowest", lambda p, k, s: jnp.argmax(jax.vmap(GAME.legal_action_mask)(s), -1).astype(jnp.int32), ())
    expected = one.winning[np.arange(40), facts(GAME, one.states).legal.argmax(1)].mean()
    assert share_found(lowest, one, mesh)["share"] == expected < 0.9
    nothing = share_found(lowest, Wins(2, rows(one.states, slice(0, 0)), one.winning[:0]), mesh)
    assert nothing == {"moves": 2, "positions": 0, "found": 0, "share": None, "ci95": None}


def test_a_move_of_ones_own_in_between_counts_as_a_reply_made_well(double_turns):
    start = at(double_turns)
    assert winning(double_turns, start, wins_in_one) == []
    assert winning(double_turns, start, wins_in_two) == [1]


@pytest.mark.slow
def test_mates_are_those_that_python_chess_finds():
    chess = pytest.importorskip("chess")
    game = envs.make("chess")

    def mates(board, moves):
        """The moves that mate at once, or after which every reply allows that."""
        found = []
        for move in list(board.legal_moves):
            board.push(move)
            over = board.is_game_over()
            if board.is_checkmate() if moves == 1 else not over and all(answered(board, r) for r in board.legal_moves):
                found.append(move.uci())
            board.pop()
        return sorted(found)

    def answered(board, reply):
        board = board.copy()
        board.push(reply)
        return bool(mates(board, 1))

    for wins in find_wins(game, 8, games=48, rounds=1):
        assert len(wins.winning) == 8
        for number, winning in enumerate(wins.winning):
            state = rows(wins.states, number)
            board = chess.Board(game.render(state).splitlines()[-1])
            assert bool(mates(board, 1)) == (wins.moves == 1)
            assert sorted(game.move_name(state, int(a)) for a in np.flatnonzero(winning)) == mates(board, wins.moves)
