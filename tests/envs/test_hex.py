"""Hex against a plain Python twin and OpenSpiel, both with the swap, and positions whose result is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.hex import GAME, Hex
from tests.envs.openspiel import compare_with_openspiel

_NEIGHBOURS = [(-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0)]


class Twin:
    """Hex on a dictionary of cells; who has joined their sides is searched for anew after every move."""

    def __init__(self, size, swap):
        self.size, self.swap, self.ply, self.winner = size, swap, 0, None
        self.stones = {}

    def legal(self):
        if self.winner is not None:
            return []
        empty = [cell for cell in range(self.size**2) if divmod(cell, self.size) not in self.stones]
        return empty + [self.size**2] * (self.swap and self.ply == 1)

    def play(self, action):
        mover = self.ply % 2
        if action == self.size**2:
            ((row, column),) = self.stones
            self.stones = {(column, row): mover}
        else:
            self.stones[divmod(action, self.size)] = mover
        self.ply += 1
        for chain in self.chains(mover):
            along = [cell[mover] for cell in chain]
            if 0 in along and self.size - 1 in along:
                self.winner = mover

    def chains(self, player):
        left = {cell for cell, owner in self.stones.items() if owner == player}
        found = []
        while left:
            waiting, chain = [left.pop()], set()
            while waiting:
                row, column = waiting.pop()
                chain.add((row, column))
                near = {(row + down, column + right) for down, right in _NEIGHBOURS} & left
                left -= near
                waiting += near
            found.append(chain)
        return found


def _compare_with_twin(game, play):
    """Compares legal moves, stones and results; the numbers must part the stones into the chains."""
    positions = 0
    for lane in range(len(play.plies)):
        twin = Twin(game.size, game.swap)
        moves = play.moves(lane)
        for ply in range(len(moves) + 1):
            assert np.flatnonzero(play.masks[ply, lane]).tolist() == twin.legal()
            numbers = play.states.chains[ply, lane].reshape(game.size, game.size)
            numbers = numbers if ply % 2 == 0 else -numbers
            for player, sign in ((0, 1), (1, -1)):
                chains = twin.chains(player)
                assert sorted(map(tuple, np.argwhere(sign * numbers > 0))) == sorted(set().union(*chains))
                if twin.winner is None:
                    named = [{int(numbers[cell]) for cell in chain} for chain in chains]
                    assert all(len(names) == 1 for names in named)
                    joined = [names for names in named if sign * min(names, key=abs) in (1, 2)]
                    assert len(set().union(*named)) == len(named) - len(joined) + len(set().union(*joined))
            positions += 1
            if ply < len(moves):
                twin.play(moves[ply])
        assert play.returns[lane].tolist() == ([1, -1] if twin.winner == 0 else [-1, 1])
    return positions


def _compare_with_openspiel(game, play):
    swaps = sum(move == game.size**2 for lane in range(len(play.plies)) for move in play.moves(lane))
    return compare_with_openspiel(play, "hex", {"board_size": game.size, "swap": game.swap}), swaps


def _replay(game, moves):
    step = jax.jit(game.step)
    states = [game.init(jax.random.key(0))]
    for move in moves:
        states.append(step(states[-1], jnp.int32(move)))
    return states


def _legal(game, state):
    return np.flatnonzero(game.legal_action_mask(state)).tolist()


def test_random_games_equal_twin_and_openspiel(random_play):
    play = random_play(GAME, games=24)
    assert _compare_with_twin(GAME, play) > 2000
    positions, _ = _compare_with_openspiel(GAME, play)
    assert positions > 2000


@pytest.mark.parametrize(("size", "swap", "games"), [(2, True, 40), (3, True, 100), (5, True, 100), (5, False, 50)])
def test_small_boards_equal_twin_and_openspiel(size, swap, games, random_play):
    game = Hex(size, swap)
    play = random_play(game, games)
    _compare_with_twin(game, play)
    positions, swaps = _compare_with_openspiel(game, play)
    assert positions > 3 * games
    assert (swaps > 0) == swap


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "swap", "games", "positions"),
    [(11, True, 250, 20_000), (4, True, 800, 8_000), (7, False, 200, 6_000), (13, True, 30, 3_000)],
)
def test_many_random_games_equal_twin_and_openspiel(size, swap, games, positions, random_play):
    game = Hex(size, swap)
    play = random_play(game, games, seed=1)
    assert _compare_with_twin(game, play) > positions
    assert _compare_with_openspiel(game, play)[0] > positions


@pytest.mark.record
def test_a_million_positions_equal_twin_and_openspiel(random_play):
    positions = swaps = 0
    for seed in range(100, 111):
        play = random_play(GAME, games=1000, seed=seed)
        _compare_with_twin(GAME, play)
        compared, swapped = _compare_with_openspiel(GAME, play)
        positions, swaps = positions + compared, swaps + swapped
        print(f"{positions} positions equal, {swaps} swaps", flush=True)
    assert positions > 1_000_000
    assert swaps > 50


def test_first_player_joins_top_and_bottom_and_second_left_and_right():
    game = Hex(3)
    states = _replay(game, [1, 3, 4, 5, 7])
    assert not any(bool(game.terminated(state)) for state in states[:-1])
    assert bool(game.terminated(states[-1]))
    assert game.returns(states[-1]).tolist() == [1, -1]
    assert _legal(game, states[-1]) == []
    states = _replay(game, [0, 3, 1, 4, 8, 5])
    assert not any(bool(game.terminated(state)) for state in states[:-1])
    assert game.returns(states[-1]).tolist() == [-1, 1]


def test_cells_touch_along_one_diagonal_only():
    game = Hex(2)
    assert bool(game.terminated(_replay(game, [1, 0, 2])[-1]))  # (0, 1) and (1, 0) are neighbours
    assert not bool(game.terminated(_replay(game, [0, 1, 3])[-1]))  # (0, 0) and (1, 1) are not


def test_one_stone_joins_three_chains():
    """The middle cell's neighbours (1, 2), (2, 3) and (3, 1) are of three chains: left and inside, right, inside."""
    game = Hex(5, swap=False)
    blue = {(1, 2), (1, 1), (1, 0), (2, 3), (2, 4), (3, 1)}
    red = [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (4, 4), (4, 2)]
    moves = [r * 5 + c for pair in zip(red, [*blue, (2, 2)], strict=True) for r, c in pair]
    states = _replay(game, moves)
    assert not bool(game.terminated(states[-2]))
    assert game.returns(states[-1]).tolist() == [-1, 1]
    numbers = np.asarray(states[-1].chains)  # player 0 is to move: player 1's are negative
    assert np.unique(numbers[numbers < 0]).tolist() == [-1]


def test_swap_mirrors_the_stone_and_it_belongs_to_the_swapper():
    """pitfall: the stone keeps its cell or its colour."""
    states = _replay(GAME, [2 * 11 + 5, 121])
    first, swapped = states[1:]
    assert _legal(GAME, first) == [cell for cell in range(122) if cell != 27]
    assert int(GAME.to_move(swapped)) == 0
    signs = np.sign(np.asarray(swapped.chains).astype(int)).reshape(11, 11)
    assert np.argwhere(signs).tolist() == [[5, 2]]
    assert signs[5, 2] == -1  # player 0 is to move and has no stone
    assert _legal(GAME, swapped) == [cell for cell in range(121) if cell != 5 * 11 + 2]


def test_swapped_stone_touches_the_swappers_side():
    game = Hex(3)
    states = _replay(game, [1, 9, 8, 4, 7, 5])  # (0, 1) becomes (1, 0); player 1 fills row 1
    assert not bool(game.terminated(states[-2]))
    assert game.returns(states[-1]).tolist() == [-1, 1]
    states = _replay(game, [8, 9, 1, 6, 4, 7])  # the corner (2, 2) is its own mirror image; row 2
    assert game.returns(states[-1]).tolist() == [-1, 1]


def test_no_swap_but_on_the_second_ply():
    game = Hex(3)
    states = _replay(game, [4, 0, 1, 2])
    assert [bool(game.legal_action_mask(state)[9]) for state in states] == [False, True, False, False, False]
    assert Hex(3, swap=False).num_actions == 9
    assert (Hex(3).max_plies, Hex(3, swap=False).max_plies) == (10, 9)


def test_longest_game_fills_the_board_after_a_swap():
    game = Hex(3)
    states = _replay(game, [6, 9, 7, 0, 4, 8, 6, 3, 5, 1])  # (2, 0) becomes (0, 2); the last stone closes row 0
    assert not any(bool(game.terminated(state)) for state in states[:-1])
    assert (np.asarray(states[-1].chains) != 0).all()
    assert game.returns(states[-1]).tolist() == [-1, 1]
    assert not bool(game.truncated(states[-1]))


def test_one_cell_is_won_at_once():
    game = Hex(1)
    assert game.returns(_replay(game, [0])[-1]).tolist() == [1, -1]


def test_observation_planes():
    """Player 1 sees the board transposed, so that "mine" joins top and bottom."""
    game = Hex(3)
    states = _replay(game, [1, 5])
    mine, theirs, second, can_swap = np.moveaxis(np.asarray(game.observe(states[1])), -1, 0)
    assert np.argwhere(mine).tolist() == []
    assert np.argwhere(theirs).tolist() == [[1, 0]]
    assert second.all() and can_swap.all()
    assert game.policy_index(states[1]).tolist() == [0, 3, 6, 1, 4, 7, 2, 5, 8, 9]
    mine, theirs, second, can_swap = np.moveaxis(np.asarray(game.observe(states[2])), -1, 0)
    assert np.argwhere(mine).tolist() == [[0, 1]]
    assert np.argwhere(theirs).tolist() == [[1, 2]]
    assert not second.any() and not can_swap.any()
    assert game.policy_index(states[2]).tolist() == list(range(10))


def test_board_and_names():
    states = _replay(Hex(3), [1, 5])
    expected = ["   a b c   X joins top-bottom, O left-right", " 1  . X .", "  2  . . O", "   3  . . ."]
    assert [Hex(3).render(state).splitlines() for state in states[1:]][-1] == expected
    assert Hex(3).render(states[1]).splitlines()[1:3] == [*expected[1:2], "  2  . . ."]
    assert (GAME.action_name(121), GAME.parse_action("SWAP"), GAME.parse_action("k11")) == ("swap", 121, 120)


@pytest.mark.parametrize("size", [0, 33, -1, 7.0, True, "7"])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ValueError, match=r"hex: size: got .*, expected a whole number from 1 to 32"):
        Hex(size)


def test_impossible_swap_is_refused():
    with pytest.raises(ValueError, match="hex: swap: got 1, expected true or false"):
        Hex(3, swap=1)
