"""Crosshair: given games and moves replayed, a plain Python twin, exact small boards, statistics of random play."""

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.crosshair import GAME, Crosshair, CrosshairState

_DATA = Path(__file__).parents[1] / "data"
_GAMES = json.loads((_DATA / "crosshair_games.json").read_text())
_UNITS = json.loads((_DATA / "crosshair_units.json").read_text())


class Twin:
    """Crosshair from the rules, with sets of squares (row, column): slow, and nothing shared with the real one."""

    def __init__(self, size, diagonal_pinch=False):
        self.size, self.last, self.winner = size, None, None
        self.stones = [set(), set()]
        self.mover = 0
        self.directions = [(-1, 0), (1, 0), (0, -1), (0, 1)]
        if diagonal_pinch:
            self.directions += [(-1, -1), (-1, 1), (1, -1), (1, 1)]

    def legal(self):
        if self.winner is not None:
            return []
        squares = [(r, c) for r in range(self.size) for c in range(self.size)]
        empty = [square for square in squares if square not in self.stones[0] | self.stones[1]]
        if self.last is None:
            return empty
        row, column = self.last
        return [(r, c) for r, c in empty if r == row or c == column] or empty

    def play(self, square):
        """Places a stone; returns the squares that changed colour."""
        own, enemy = self.stones[self.mover], self.stones[1 - self.mover]
        own.add(square)
        r, c = square
        flipped = {
            (r + dr, c + dc)
            for dr, dc in self.directions
            if (r + dr, c + dc) in enemy and (r + 2 * dr, c + 2 * dc) in own
        }
        own |= flipped
        enemy -= flipped
        while wave := self._checkerboards(own, enemy):
            own |= wave
            enemy -= wave
            flipped |= wave
        if self._joined(own):
            self.winner = self.mover
        self.last, self.mover = square, 1 - self.mover
        return flipped

    def _checkerboards(self, own, enemy):
        """Returns the enemy's stones of all 2 x 2 checkerboards."""
        turned = set()
        for r in range(self.size - 1):
            for c in range(self.size - 1):
                falling, rising = {(r, c), (r + 1, c + 1)}, {(r, c + 1), (r + 1, c)}
                for a, b in ((falling, rising), (rising, falling)):
                    if a <= own and b <= enemy:
                        turned |= b
        return turned

    def _joined(self, own):
        axis = self.mover
        reached = [square for square in own if square[axis] == 0]
        seen = set(reached)
        while reached:
            r, c = reached.pop()
            if (r, c)[axis] == self.size - 1:
                return True
            for square in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
                if square in own and square not in seen:
                    seen.add(square)
                    reached.append(square)
        return False


def _stones(game, state):
    """Returns bool[squares] of Red and of Blue."""
    return game.grid.unpack(state.red), game.grid.unpack(state.blue)


def _board(letters):
    return np.array([{"R": 1, "B": -1, ".": 0}[letter] for row in letters for letter in row])


@functools.cache
def _step():
    return jax.jit(GAME.step)


def test_given_games():
    """Every ply of the given games: number of legal moves, stones flipped, then the board and the winner."""
    lengths = np.array([len(game["actions"]) for game in _GAMES])
    actions = np.zeros((49, len(_GAMES)), np.int32)
    for lane, game in enumerate(_GAMES):
        actions[: len(game["actions"]), lane] = game["actions"]

    def body(state, action):
        after = jax.vmap(GAME.step)(state, action)
        seen = jax.vmap(lambda state: (GAME.legal_action_mask(state), *_stones(GAME, state)))
        return after, (*seen(state), *seen(after)[1:])

    start = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), len(_GAMES)))
    end, (legal, red, blue, red_after, blue_after) = jax.device_get(
        jax.jit(functools.partial(jax.lax.scan, body))(start, actions)
    )
    returns = jax.vmap(GAME.returns)(end)
    for lane, game in enumerate(_GAMES):
        plies = lengths[lane]
        assert legal[:plies, lane].sum(-1).tolist() == game["legal_counts"]
        assert all(legal[ply, lane, action] for ply, action in enumerate(game["actions"]))
        flips = (red & blue_after | blue & red_after)[:plies, lane].sum(-1)
        assert flips.tolist() == game["flips"]
        board = red_after[-1, lane].astype(int) - blue_after[-1, lane]
        assert board.tolist() == game["board"]
        assert returns[lane].tolist() == [game["winner"], -game["winner"]]
    assert (jax.vmap(GAME.terminated)(end)).all()


@pytest.mark.parametrize("unit", _UNITS, ids=[unit["name"] for unit in _UNITS])
def test_given_moves(unit):
    board = _board(unit["board"])
    ply = 0 if unit["mover"] == "R" else 1
    state = CrosshairState(
        red=GAME.grid.pack(board == 1),
        blue=GAME.grid.pack(board == -1),
        last=jnp.int16(-1 if unit["last"] is None else unit["last"]),
        ply=jnp.int16(ply),
        winner=jnp.int8(-1),
    )
    assert np.flatnonzero(GAME.legal_action_mask(state)).tolist() == unit["legal"]
    after = _step()(state, jnp.int32(unit["move"]))
    red, blue = (np.asarray(stones) for stones in _stones(GAME, after))
    assert (red.astype(int) - blue).tolist() == _board(unit["after"]).tolist()
    turned = np.flatnonzero((blue & (board == 1)) | (red & (board == -1)))
    assert sorted(turned.tolist()) == sorted({*unit["pinched"], *unit["crosscut"]})
    assert len(turned) == unit["flips"]
    assert bool(GAME.terminated(after)) == (unit["winner"] is not None)


def _compare_with_twin(game, play):
    """Requires equal legal moves, stones, flips and results; returns the number of positions."""
    red, blue = jax.device_get(jax.jit(jax.vmap(jax.vmap(functools.partial(_stones, game))))(play.states))
    observe = jax.jit(jax.vmap(jax.vmap(game.observe)))
    flips_planes = np.asarray(observe(play.states))[..., 3] * 8

    def indices(squares):
        return sorted(r * game.size + c for r, c in squares)

    positions = 0
    for lane in range(len(play.plies)):
        twin = Twin(game.size, game.diagonal_pinch)
        moves = play.moves(lane)
        for ply in range(len(moves) + 1):
            legal = indices(twin.legal())
            assert np.flatnonzero(play.masks[ply, lane]).tolist() == legal
            assert np.flatnonzero(red[ply, lane]).tolist() == indices(twin.stones[0])
            assert np.flatnonzero(blue[ply, lane]).tolist() == indices(twin.stones[1])
            positions += 1
            if ply < len(moves):
                action = moves[ply]
                plane = flips_planes[ply, lane] if ply % 2 == 0 else flips_planes[ply, lane].T
                turned = twin.play(divmod(action, game.size))
                assert plane.reshape(-1)[action] == len(turned)
                assert np.flatnonzero(flips_planes[ply, lane]).size <= len(legal)
        assert twin.winner is not None
        assert play.returns[lane].tolist() == ([1, -1] if twin.winner == 0 else [-1, 1])
    return positions


@pytest.mark.parametrize(
    ("game", "games"),
    [
        (Crosshair(), 60),
        (Crosshair(diagonal_pinch=True), 30),
        (Crosshair(5), 60),
        (Crosshair(5, diagonal_pinch=True), 60),
        pytest.param(Crosshair(), 600, marks=pytest.mark.slow),
        pytest.param(Crosshair(diagonal_pinch=True), 200, marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "id", str(value)),
)
def test_random_games_equal_the_twin(game, games, random_play):
    positions = _compare_with_twin(game, random_play(game, games, seed=1))
    assert positions > (20_000 if games == 600 else 1000)


@pytest.mark.record
def test_a_million_positions_equal_the_twin(random_play):
    positions = 0
    for seed in range(100, 125):
        positions += _compare_with_twin(GAME, random_play(GAME, 1000, seed=seed))
        print(f"{positions} positions equal", flush=True)
    assert positions > 1_000_000


@pytest.mark.slow
def test_random_play_has_the_known_statistics(random_play):
    """Uniform random play, measured over 300,000 games: 40.8 plies, Red wins .524, no draw, 8.07 legal moves."""
    play = random_play(GAME, games=20000, seed=2)
    assert abs(play.plies.mean() - 40.8) < 0.3
    red_wins = play.returns[:, 0] == 1
    assert abs(red_wins.mean() - 0.524) < 0.015
    assert (np.abs(play.returns) == 1).all()  # no draws
    counts = play.masks.sum(-1)
    assert abs(counts[counts > 0].mean() - 8.07) < 0.1
    full = play.plies == 49
    assert full.sum() > 100
    assert red_wins[full].all()  # a full board was completed by Red, and joins exactly one pair of sides
    red, blue = (
        np.asarray(stones) for stones in jax.vmap(functools.partial(_stones, GAME))(play.state(-1, slice(None)))
    )
    assert not (red & blue).any()


def _first_move_values(game):
    """Returns Red's value of each first move: all positions forwards, ply by ply, then their values backwards."""
    squares = game.num_actions
    every_action = np.arange(squares, dtype=np.int32)
    step = jax.jit(jax.vmap(jax.vmap(game.step, in_axes=(None, 0)), in_axes=(0, None)))
    look = jax.jit(jax.vmap(lambda state: (game.legal_action_mask(state), state.winner)))
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(jax.random.key(0)))
    layers = []
    chunk = 4096
    while len(state.ply):
        count = len(state.ply)
        masks, winners, children = [], [], []
        for start in range(0, count, chunk):
            size = min(chunk, count - start)
            part = jax.tree.map(lambda leaf, s=start: np.resize(leaf[s : s + chunk], (chunk, *leaf.shape[1:])), state)
            mask, winner = (np.asarray(leaf)[:size] for leaf in look(part))
            after = step(part, every_action)
            children.append(jax.tree.map(lambda leaf, n=size, m=mask: np.asarray(leaf)[:n][m], after))
            masks.append(mask)
            winners.append(winner)
        after = jax.tree.map(lambda *leaves: np.concatenate(leaves), *children)
        key = after.red.words[0].astype(np.uint64) << np.uint64(squares) | after.blue.words[0]
        key = key << np.uint64(8) | after.last.astype(np.uint8)
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        layers.append((np.concatenate(masks), np.concatenate(winners), inverse))
        state = jax.tree.map(lambda leaf, f=first: leaf[f], after)
    values = np.zeros(0, np.int8)
    for ply in reversed(range(len(layers))):
        mask, winner, inverse = layers[ply]
        worst = np.int8(-2 if ply % 2 == 0 else 2)
        table = np.full(mask.shape, worst)
        table[mask] = values[inverse]
        best = table.max(-1) if ply % 2 == 0 else table.min(-1)
        values = np.where(winner >= 0, 1 - 2 * winner, best).astype(np.int8)
    return table[0]


@pytest.mark.parametrize(("size", "value"), [(1, 1), (2, -1), (3, 1), pytest.param(4, -1, marks=pytest.mark.slow)])
def test_small_boards_are_won_by_the_last_mover(size, value):
    """2 x 2 Blue, 3 x 3 Red, 4 x 4 Blue, after every first move."""
    assert _first_move_values(Crosshair(size)).tolist() == [value] * size**2


def test_observation_planes():
    """All six planes of one position: Blue, to move, sees the board transposed."""
    game = Crosshair(3)
    state = game.init(jax.random.key(0))
    planes = np.moveaxis(np.asarray(game.observe(state)), -1, 0)
    assert planes[2].all()
    assert not planes[[0, 1, 3, 4, 5]].any()
    for move in (4, 1, 2):  # Red in the middle, Blue above it, Red at the upper right
        state = game.step(state, jnp.int32(move))
    # R: (1, 1), (0, 2); B: (0, 1). Blue may play in row 0 or column 2: (0, 0), (1, 2), (2, 2).
    mine, theirs, legal, flips, last, ply = np.moveaxis(np.asarray(game.observe(state)), -1, 0)
    assert mine.tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert theirs.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert legal.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 1]]
    # (1, 2) makes a checkerboard with (0, 1) against (0, 2) and (1, 1): both turn. The plane holds flips / 8.
    assert flips.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0.25, 0]]
    assert last.tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    assert np.unique(ply).tolist() == [np.float32(3) / np.float32(9)]
    assert game.policy_index(state).tolist() == [0, 3, 6, 1, 4, 7, 2, 5, 8]


def test_wildcard_turn_and_crosshair(random_play):
    """Where row and column of the last stone are full, every empty square is legal; it happens in .9 % of turns."""
    play = random_play(GAME, games=2000, seed=3)
    last = np.asarray(play.states.last)[:-1]
    rows, columns = np.divmod(np.arange(49), 7)
    in_lines = (rows == last[..., None] // 7) | (columns == last[..., None] % 7)
    masks = play.masks[:-1]
    turns = masks.any(-1) & (last >= 0)
    wildcard = turns & ~(masks & in_lines).any(-1)
    assert not (masks & ~in_lines)[turns & ~wildcard].any()
    assert abs(wildcard.sum() / turns.sum() - 0.009) < 0.003


@pytest.mark.parametrize("size", [0, 33, -1, 2.5, True, "7"])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ValueError, match=r"crosshair: size: got .*, expected a whole number from 1 to 32"):
        Crosshair(size)
