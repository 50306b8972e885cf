"""Ultimate tic-tac-toe against a plain Python twin and OpenSpiel, and games whose result is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.ultimate_tic_tac_toe import GAME

_ROWS = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class Twin:
    """Nine lists of nine cells; everything is worked out anew after each move."""

    def __init__(self):
        self.boards = [[None] * 9 for _ in range(9)]
        self.moves = []

    @staticmethod
    def winner(nine):
        owners = {nine[a] for a, b, c in _ROWS if nine[a] == nine[b] == nine[c] and nine[a] is not None}
        assert len(owners) < 2
        return next(iter(owners), None)

    def owners(self):
        return [self.winner(board) for board in self.boards]

    def open(self):
        owners = self.owners()
        return [b for b in range(9) if owners[b] is None and None in self.boards[b]]

    def over(self):
        return self.winner(self.owners()) is not None or not self.open()

    def legal(self):
        if self.over():
            return []
        boards = self.open()
        if self.moves and self.moves[-1] % 9 in boards:
            boards = [self.moves[-1] % 9]
        return [b * 9 + cell for b in boards for cell in range(9) if self.boards[b][cell] is None]

    def play(self, action):
        self.boards[action // 9][action % 9] = len(self.moves) % 2
        self.moves.append(action)

    def result(self):
        return {None: [0, 0], 0: [1, -1], 1: [-1, 1]}[self.winner(self.owners())]

    def planes(self):
        """Returns float[9, 9, 5] as the mover sees the page."""
        mover, owners, legal = len(self.moves) % 2, self.owners(), self.legal()
        planes = np.zeros((9, 9, 5))
        for action in range(81):
            board, cell = divmod(action, 9)
            at = (board // 3 * 3 + cell // 3, board % 3 * 3 + cell % 3)
            mark, owner = self.boards[board][cell], owners[board]
            planes[at] = [mark == mover, mark == 1 - mover, owner == mover, owner == 1 - mover, action in legal]
        return planes


def _compare_with_twin(play):
    observations = jax.device_get(jax.jit(jax.vmap(jax.vmap(GAME.observe)))(play.states))
    positions = 0
    for lane in range(len(play.plies)):
        twin = Twin()
        moves = play.moves(lane)
        for ply in range(len(moves) + 1):
            assert np.flatnonzero(play.masks[ply, lane]).tolist() == twin.legal()
            assert (observations[ply, lane] == twin.planes()).all()
            positions += 1
            if ply < len(moves):
                twin.play(moves[ply])
        assert twin.over()
        assert play.returns[lane].tolist() == twin.result()
    return positions


def _compare_with_openspiel(play):
    """OpenSpiel asks for a board first where the mover may choose it, then for a cell."""
    import pyspiel

    referee = pyspiel.load_game("ultimate_tic_tac_toe")
    positions = 0
    for lane in range(len(play.plies)):
        state = referee.new_initial_state()
        for ply, move in enumerate(play.moves(lane)):
            assert not state.is_terminal()
            assert state.current_player() == ply % 2
            boards, cells = np.divmod(np.flatnonzero(play.masks[ply, lane]), 9)
            if len(set(boards.tolist())) > 1 or (ply and not _is_bound(play, ply, lane)):
                assert state.legal_actions() == sorted(set(boards.tolist()))
                state.apply_action(move // 9)
            assert state.legal_actions() == cells[boards == move // 9].tolist()
            state.apply_action(move % 9)
            positions += 1
        assert state.is_terminal()
        assert play.returns[lane].tolist() == state.returns()
    return positions


def _is_bound(play, ply, lane):
    """The last mark's cell names a board that is still open (one open board alone may also be a free choice)."""
    return not play.states.closed[ply, lane] >> play.actions[ply - 1, lane] % 9 & 1


def _replay(moves):
    """Replays moves written as (board, cell)."""
    step = jax.jit(GAME.step)
    states = [GAME.init(jax.random.key(0))]
    for board, cell in moves:
        states.append(step(states[-1], jnp.int32(board * 9 + cell)))
    return states


def _legal(state):
    return np.flatnonzero(GAME.legal_action_mask(state)).tolist()


def test_random_games_equal_twin_and_openspiel(random_play):
    play = random_play(GAME, games=60)
    assert _compare_with_twin(play) > 3000
    assert _compare_with_openspiel(play) > 3000
    assert {tuple(result) for result in play.returns.tolist()} == {(1, -1), (-1, 1), (0, 0)}


@pytest.mark.slow
def test_many_random_games_equal_twin_and_openspiel(random_play):
    play = random_play(GAME, games=500, seed=1)
    assert _compare_with_twin(play) > 25_000
    assert _compare_with_openspiel(play) > 25_000


@pytest.mark.record
def test_a_million_positions_equal_twin_and_openspiel(random_play):
    positions = 0
    for seed in range(100, 118):
        play = random_play(GAME, games=1000, seed=seed)
        positions += _compare_with_openspiel(play)
        _compare_with_twin(play)
        print(f"{positions} positions equal", flush=True)
    assert positions > 1_000_000


def test_the_game_goes_on_after_a_small_board_is_won():
    """pitfall: X owns board 2 and O must play in board 7."""
    states = _replay([(2, 8), (8, 2), (2, 6), (6, 2), (2, 7)])
    assert int(states[-1].theirs_won) == 1 << 2
    assert not bool(GAME.terminated(states[-1]))
    assert _legal(states[-1]) == list(range(63, 72))


def test_closed_destination_gives_every_open_board():
    states = _replay([(2, 8), (8, 2), (2, 6), (6, 2), (2, 7), (7, 2)])
    taken = {8 * 9 + 2, 6 * 9 + 2, 7 * 9 + 2}
    assert _legal(states[-1]) == [action for action in range(81) if action // 9 != 2 and action not in taken]


# Games of uniform random play, numbered board * 9 + cell, as the twin and OpenSpiel judge them.
_DRAW = """
    58 43 66 34 68 51 59 47 25 65 22 38 21 31 44 77 50 46 13 39 33 62 80 72 8 73 9 5 48 27 4 36 2 23 52 67 37 12 29 18 3
    35 76 41 45 6 55 17 79 70 63 1 11 24 54 7 64 10 14 53 74 19 16 71 75 61 69 56 20 26 78 57 42 60 0 40 49 15
"""
_WON_WITH_THE_LAST_BOARD = """
    0 2 24 62 79 69 60 56 19 15 55 12 30 34 67 43 65 26 75 29 18 1 13 38 25 70 64 9 4 40 37 36 8 80 76 44 74 20 23 46 63
    21 33 61 22 50 48 28 73 49 52 59 53 51 45 47 32 31
"""


def _replay_text(text):
    return _replay([divmod(int(action), 9) for action in text.split()])


def test_nothing_left_to_play_is_a_draw_and_full_boards_count_for_nobody():
    """pitfall: without a legal move the game is drawn, though cells of won boards are empty."""
    states = _replay_text(_DRAW)
    assert not any(bool(GAME.terminated(state)) for state in states[:-1])
    end = states[-1]
    assert bool(GAME.terminated(end))
    assert not bool(GAME.truncated(end))
    assert GAME.returns(end).tolist() == [0, 0]
    assert _legal(end) == []
    marked = np.asarray(end.mine.count() + end.theirs.count())
    assert marked == len(states) - 1 < 81
    undecided = int(end.closed) & ~(int(end.mine_won) | int(end.theirs_won))
    assert undecided
    planes = np.asarray(GAME.observe(end)).reshape(3, 3, 3, 3, 5).transpose(0, 2, 1, 3, 4).reshape(9, 9, 5)
    for board in range(9):
        if undecided >> board & 1:
            assert (planes[board, :, :2].sum(-1) == 1).all()
            assert not planes[board, :, 2:].any()


def test_the_last_open_board_wins():
    states = _replay_text(_WON_WITH_THE_LAST_BOARD)
    assert int(states[-1].closed) == 0b111111111
    assert not bool(GAME.terminated(states[-2]))
    assert GAME.returns(states[-1]).tolist() == [-1, 1]


def test_first_move_anywhere_and_then_where_it_points():
    states = _replay([(4, 0), (0, 0)])
    assert _legal(states[0]) == list(range(81))
    assert _legal(states[1]) == list(range(9))
    assert _legal(states[2]) == list(range(1, 9))  # sent to the board it is in


def test_board_and_names():
    states = _replay([(3, 8), (8, 0)])
    assert GAME.render(states[-1]).splitlines() == [
        "  a b c   d e f   g h i",
        "1 + + + | . . . | . . .",
        "2 + + + | . . . | . . .",
        "3 + + + | . . . | . . .",
        "  ------+-------+------",
        "4 . . . | . . . | . . .",
        "5 . . . | . . . | . . .",
        "6 . . X | . . . | . . .",
        "  ------+-------+------",
        "7 . . . | . . . | O . .",
        "8 . . . | . . . | . . .",
        "9 . . . | . . . | . . .",
        "boards won: ... / ... / ...",
    ]
    assert GAME.render(_replay([(2, 8), (8, 2), (2, 6), (6, 2), (2, 7)])[-1]).endswith("boards won: ..X / ... / ...")
    assert (GAME.action_name(35), GAME.parse_action("G7"), GAME.parse_action("i9")) == ("c6", 72, 80)
