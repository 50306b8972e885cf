"""Othello against a plain Python twin and OpenSpiel, known counts of positions, and games whose result is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.othello import GAME, Othello, OthelloState
from tests.envs.openspiel import compare_with_openspiel

_PASS = 64
_DIRECTIONS = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0)]


class Twin:
    """Othello on a dictionary of squares."""

    def __init__(self, size):
        high = size // 2
        self.size, self.mover, self.over = size, 0, False
        self.discs = {(high - 1, high - 1): 1, (high, high): 1, (high - 1, high): 0, (high, high - 1): 0}

    def turned(self, square, player):
        found = []
        for down, right in _DIRECTIONS:
            row, (r, c) = [], square
            while True:
                r, c = r + down, c + right
                if self.discs.get((r, c)) != 1 - player:
                    break
                row.append((r, c))
            if self.discs.get((r, c)) == player:
                found += row
        return found

    def placements(self, player):
        squares = [(r, c) for r in range(self.size) for c in range(self.size)]
        return [square for square in squares if square not in self.discs and self.turned(square, player)]

    def legal(self):
        if self.over:
            return []
        return [r * self.size + c for r, c in self.placements(self.mover)] or [self.size**2]

    def play(self, action):
        if action < self.size**2:
            square = divmod(action, self.size)
            for turned in self.turned(square, self.mover):
                self.discs[turned] = self.mover
            self.discs[square] = self.mover
        self.mover = 1 - self.mover
        self.over = not (self.placements(0) or self.placements(1))

    def squares(self, player):
        return sorted(r * self.size + c for (r, c), owner in self.discs.items() if owner == player)

    def result(self):
        counts = [len(self.squares(player)) for player in (0, 1)]
        return [float(np.sign(counts[0] - counts[1])), float(np.sign(counts[1] - counts[0]))]


def _discs(game, play):
    """Returns bool[2, T + 1, B, squares]: Black's discs, White's."""

    def unpack(state):
        mine, theirs = game.grid.unpack(state.mine), game.grid.unpack(state.theirs)
        black_moves = game.to_move(state) == 0
        return jnp.where(black_moves, mine, theirs), jnp.where(black_moves, theirs, mine)

    return jax.device_get(jax.jit(jax.vmap(jax.vmap(unpack)))(play.states))


def _compare_with_twin(game, play):
    discs = _discs(game, play)
    positions = 0
    for lane in range(len(play.plies)):
        twin = Twin(game.size)
        moves = play.moves(lane)
        for ply in range(len(moves) + 1):
            assert np.flatnonzero(play.masks[ply, lane]).tolist() == twin.legal()
            for player in (0, 1):
                assert np.flatnonzero(discs[player][ply, lane]).tolist() == twin.squares(player)
            positions += 1
            if ply < len(moves):
                twin.play(moves[ply])
        assert twin.over
        assert play.returns[lane].tolist() == twin.result()
    return positions


def _replay(moves, game=GAME):
    step = jax.jit(game.step)
    states = [game.init(jax.random.key(0))]
    for move in moves:
        states.append(step(states[-1], jnp.int32(move)))
    return states


def _parsed(text):
    """Reads "e6f4--": two letters a move, "--" a pass."""
    words = [text[at : at + 2] for at in range(0, len(text), 2)]
    return [GAME.parse_action("pass" if word == "--" else word) for word in words]


def test_random_games_equal_twin_and_openspiel(random_play):
    play = random_play(GAME, games=40)
    assert _compare_with_twin(GAME, play) > 2000
    assert compare_with_openspiel(play, "othello") > 2000


@pytest.mark.slow
def test_many_random_games_equal_twin_and_openspiel(random_play):
    play = random_play(GAME, games=500, seed=1)
    assert _compare_with_twin(GAME, play) > 25_000
    assert compare_with_openspiel(play, "othello") > 25_000


@pytest.mark.record
def test_a_million_positions_equal_twin_and_openspiel(random_play):
    positions = 0
    for seed in range(100, 109):
        play = random_play(GAME, games=2000, seed=seed)
        positions += compare_with_openspiel(play, "othello")
        _compare_with_twin(GAME, play)
        print(f"{positions} positions equal", flush=True)
    assert positions > 1_000_000


@pytest.mark.parametrize(
    ("size", "games"),
    [(4, 60), (6, 20), (12, 1), *(pytest.param(size, 4, marks=pytest.mark.slow) for size in (10, 12, 18, 32))],
)
def test_other_sizes_equal_the_twin(size, games, random_play):
    game = Othello(size)
    positions = _compare_with_twin(game, random_play(game, games, seed=2))
    assert positions > games * min(size**2 - 16, 8)


def _state(rows, mover):
    """Reads a drawn board: X Black's discs, O White's."""
    text = "".join(rows.split())
    size = round(len(text) ** 0.5)
    game = Othello(size)
    black, white = (game.grid.pack(np.array([mark == disc for mark in text])) for disc in "XO")
    mine, theirs = (black, white) if mover == 0 else (white, black)
    return game, OthelloState(mine, theirs, jnp.int16(mover), jnp.bool_(False))


def test_all_eight_directions_turn_and_gaps_and_edges_do_not():
    rows = """
        X . . X . . X .
        . O . O . O . .
        . . O O O . . .
        X O O . O O . X
        . . O O O . . .
        . O . O . O . .
        O . . O . . X .
        . . . X . . . .
    """
    game, state = _state(rows, mover=0)
    after = jax.jit(game.step)(state, jnp.int32(27))
    expected = """
        X . . X . . X .
        . X . X . X . .
        . . X X X . . .
        X X X X O O . X
        . . O X X . . .
        . O . X . X . .
        O . . X . . X .
        . . . X . . . .
    """
    assert game.grid.unpack(after.theirs).tolist() == [mark == "X" for mark in "".join(expected.split())]
    assert game.grid.unpack(after.mine).tolist() == [mark == "O" for mark in "".join(expected.split())]


def test_rows_do_not_wrap_round_the_edges():
    rows = """
        . . . .
        . . O O
        X . . .
        . . . .
    """
    game, state = _state(rows, mover=0)
    assert np.flatnonzero(game.legal_action_mask(state)).tolist() == [16]  # nothing but to pass


def test_shortest_wipe_out():
    """pitfall: a side without discs. Nine moves after which White has none, and the board is far from full."""
    states = _replay(_parsed("e6f4e3f6g5d6e7f5c5"))
    assert not any(bool(GAME.terminated(state)) for state in states[:-1])
    assert bool(GAME.terminated(states[-1]))
    assert int(states[-1].mine.count()) == 0
    assert GAME.returns(states[-1]).tolist() == [1, -1]
    assert not GAME.legal_action_mask(states[-1]).any()


def test_pass_is_legal_only_without_a_placement_and_turns_nothing():
    rows = """
        . O X .
        . . X .
        . . . .
        . . . .
    """
    game, state = _state(rows, mover=1)
    assert np.flatnonzero(game.legal_action_mask(state)).tolist() == [3, 11]
    rows = """
        X O . .
        . . . .
        . . . .
        . . . .
    """
    game, state = _state(rows, mover=1)
    assert np.flatnonzero(game.legal_action_mask(state)).tolist() == [16]
    step = jax.jit(game.step)
    after = step(state, jnp.int32(16))
    assert not bool(game.terminated(after))
    assert int(game.to_move(after)) == 0
    assert np.flatnonzero(game.legal_action_mask(after)).tolist() == [2]
    assert (int(after.mine.count()), int(after.theirs.count())) == (1, 1)
    end = step(after, jnp.int32(2))
    assert game.returns(end).tolist() == [1, -1]


def test_perft():
    """Known counts of move sequences (OEIS A124004)."""
    assert _perft(6) == [4, 12, 56, 244, 1396, 8200]


@pytest.mark.slow
def test_deep_perft():
    assert _perft(8)[6:] == [55092, 390216]


def _perft(depth):
    step = jax.jit(jax.vmap(GAME.step))
    legal = jax.jit(jax.vmap(GAME.legal_action_mask))
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[None], GAME.init(jax.random.key(0)))
    counts = []
    for _ in range(depth):
        parents, actions = np.nonzero(_chunked(legal, state))
        counts.append(len(actions))
        chosen = jax.tree.map(lambda leaf, parents=parents: leaf[parents], state)
        state = _chunked(step, chosen, actions.astype(np.int32))
    return counts


def _chunked(function, *arguments, size=4096):
    """Calls a batched function on chunks of one size, so that it is compiled once."""
    length = jax.tree.leaves(arguments)[0].shape[0]
    results = []
    for start in range(0, length, size):
        part = jax.tree.map(lambda leaf, s=start: np.resize(leaf[s : s + size], (size, *leaf.shape[1:])), arguments)
        results.append(jax.tree.map(lambda leaf, s=start: np.asarray(leaf)[: length - s], function(*part)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *results)


def test_four_by_four_is_won_by_white_with_eleven_to_three():
    """The solved value of the 4 x 4 board, by looking at every position."""
    game = Othello(4)
    every = np.arange(17, dtype=np.int32)
    step = jax.jit(jax.vmap(jax.vmap(game.step, in_axes=(None, 0)), in_axes=(0, None)))

    def look(state):
        margin = (state.mine.count() - state.theirs.count()) * (1 - 2 * game.to_move(state))
        return game.legal_action_mask(state), game.terminated(state), margin

    look = jax.jit(jax.vmap(look))
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(jax.random.key(0)))
    layers = []
    while len(state.ply):
        mask, over, margin = _chunked(look, state)
        children = _chunked(lambda part: step(part, every), state, size=256)
        children = jax.tree.map(lambda leaf, mask=mask: leaf[mask], children)
        key = children.mine.words[0].astype(np.uint64) << np.uint64(16) | children.theirs.words[0]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        layers.append((mask, over, margin, inverse))
        state = jax.tree.map(lambda leaf, first=first: leaf[first], children)
    values = np.zeros(0, np.int32)
    for ply in reversed(range(len(layers))):
        mask, over, margin, inverse = layers[ply]
        table = np.full(mask.shape, -99 if ply % 2 == 0 else 99)
        table[mask] = values[inverse]
        values = np.where(over, margin, table.max(-1) if ply % 2 == 0 else table.min(-1))
    assert values.tolist() == [3 - 11]


@pytest.mark.slow
def test_rules_are_alike_under_all_eight_symmetries(random_play):
    """Also under the four that do not keep the starting position, which check_game does not replay."""
    play = random_play(GAME, games=8, seed=3)
    every_eighth = jax.tree.map(lambda leaf: leaf[:-1:8].reshape(-1, *leaf.shape[2:]), play.states)
    actions = play.actions[::8].reshape(-1)
    returns = jax.vmap(GAME.returns)
    step, legal, observe = (jax.jit(jax.vmap(f)) for f in (GAME.step, GAME.legal_action_mask, GAME.observe))
    for symmetry in GAME.symmetries:
        transform = jax.vmap(symmetry.observation)
        seen = transform(observe(every_eighth))
        moved = OthelloState(
            jax.vmap(GAME.grid.pack)(seen[..., 0].reshape(-1, 64) > 0),
            jax.vmap(GAME.grid.pack)(seen[..., 1].reshape(-1, 64) > 0),
            every_eighth.ply,
            every_eighth.over,
        )
        assert (legal(moved) == legal(every_eighth)[:, symmetry.permutation]).all()
        after, images = step(every_eighth, actions), np.argsort(symmetry.permutation)[actions].astype(np.int32)
        image_after = step(moved, images)
        assert (observe(image_after) == transform(observe(after))).all()
        assert (image_after.over == after.over).all()
        assert (returns(image_after) == returns(after)).all()


def test_board_and_names():
    states = _replay(_parsed("d3"))
    assert GAME.render(states[-1]).splitlines() == [
        "   a b c d e f g h",
        " 1 . . . . . . . .",
        " 2 . . . . . . . .",
        " 3 . . + X + . . .",
        " 4 . . . X X . . .",
        " 5 . . + X O . . .",
        " 6 . . . . . . . .",
        " 7 . . . . . . . .",
        " 8 . . . . . . . .",
        "X 4, O 1",
    ]
    mine, theirs = np.moveaxis(np.asarray(GAME.observe(states[-1])), -1, 0)
    assert np.argwhere(mine).tolist() == [[4, 4]]
    assert np.argwhere(theirs).tolist() == [[2, 3], [3, 3], [3, 4], [4, 3]]
    assert (GAME.action_name(_PASS), GAME.parse_action("Pass"), GAME.parse_action("h8")) == ("pass", _PASS, 63)


@pytest.mark.parametrize("size", [2, 5, 34, 8.0, True, "8"])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ValueError, match=r"othello: size: got .*, expected an even number from 4 to 32"):
        Othello(size)
