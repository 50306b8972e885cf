"""Black Hole: given games and endgames, a plain Python count of the rings, statistics of random play."""

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.black_hole import BlackHole, BlackHoleState

_DATA = Path(__file__).parents[1] / "data"
_GAMES = json.loads((_DATA / "blackhole_games.json").read_text())
_ENDGAMES = json.loads((_DATA / "blackhole_endgames.json").read_text())
_ROWS = sorted({game["rows"] for game in _GAMES})


def _neighbours(rows, cell):
    r, c = next((r, cell - r * (r + 1) // 2) for r in range(rows) if cell < (r + 1) * (r + 2) // 2)
    around = [(r, c - 1), (r, c + 1), (r - 1, c - 1), (r - 1, c), (r + 1, c), (r + 1, c + 1)]
    return [a * (a + 1) // 2 + b for a, b in around if 0 <= b <= a < rows]


@functools.cache
def _rings(rows, hole):
    """Returns the cells at each distance from the hole, by breadth-first search."""
    rings, seen = [[hole]], {hole}
    while rings[-1]:
        rings.append([])
        for cell in rings[-2]:
            for other in _neighbours(rows, cell):
                if other not in seen:
                    seen.add(other)
                    rings[-1].append(other)
    return rings[1:-1]


def _result(rows, tiles, tie_break):
    """Returns player 0's return on a full board of signed tiles."""
    for ring in _rings(rows, tiles.index(0))[: None if tie_break == "rings" else 1]:
        total = sum(tiles[cell] for cell in ring)
        if total:
            return -1 if total > 0 else 1
    return 0


@functools.partial(jax.jit, static_argnums=0)
def _replay(game, actions):
    """Returns the states [T + 1, B] of games of int32[T, B] actions."""

    def body(state, action):
        after = jax.vmap(game.step)(state, action)
        return after, after

    start = jax.vmap(game.init)(jax.random.split(jax.random.key(0), actions.shape[1]))
    _, states = jax.lax.scan(body, start, actions)
    return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), start, states)


@pytest.mark.parametrize("rows", _ROWS)
def test_given_games(rows):
    games = [game for game in _GAMES if game["rows"] == rows]
    game = BlackHole(rows)
    actions = np.array([given["actions"] for given in games], np.int32).T
    states = _replay(game, actions)
    over = np.asarray(jax.vmap(jax.vmap(game.terminated))(states))
    assert over[-1].all()
    assert not over[:-1].any()
    end = jax.tree.map(lambda leaf: leaf[-1], states)
    by_rings = jax.jit(jax.vmap(game.returns))(end)
    by_ring_1 = jax.jit(jax.vmap(BlackHole(rows, "none").returns))(end)
    for lane, given in enumerate(games):
        assert by_rings[lane].tolist() == [given["reward_p0"], -given["reward_p0"]]
        assert by_ring_1[lane].tolist() == [given["ring1_only"], -given["ring1_only"]]
        tiles = np.asarray(end.tiles[lane]).tolist()
        assert tiles.index(0) == given["hole"]
        for ring, sums in zip(_rings(rows, given["hole"]), given["ring_sums"], strict=True):
            assert sum(tiles[cell] for cell in ring) == sums[0] - sums[1]


@pytest.mark.parametrize("number", range(len(_ENDGAMES)))
def test_given_endgames(number):
    """Minimax over every order in which the cells can be filled."""
    endgame = _ENDGAMES[number]
    game = BlackHole(endgame["rows"])
    empty = sorted(set(range(game.num_actions)) - set(endgame["actions"]))
    assert sorted(map(int, endgame["action_values_p0"])) == empty
    orders, shape = [[]], []
    for left in range(len(empty), 1, -1):
        orders = [[*order, cell] for order in orders for cell in empty if cell not in order]
        shape.append(left)
    actions = np.concatenate([np.tile(endgame["actions"], (len(orders), 1)), np.array(orders)], axis=1)
    state = jax.tree.map(lambda leaf: leaf[-1], _replay(game, actions.T.astype(np.int32)))
    values = np.asarray(jax.jit(jax.vmap(game.returns))(state))[:, 0].reshape(shape)
    for depth in reversed(range(1, len(shape))):
        player = (endgame["to_move"] + depth) % 2
        values = values.max(-1) if player == 0 else values.min(-1)
    expected = [endgame["action_values_p0"][str(cell)] for cell in empty]
    assert values.tolist() == expected
    assert (values.max() if endgame["to_move"] == 0 else values.min()) == endgame["value_p0"]


@pytest.mark.parametrize("rows", [5, 6, 9, 10, 22])
def test_rings_decide_nearest_first(rows):
    """Full boards of tiles 1 and -1, on which sums often tie for several rings, equal the plain count."""
    games = 300
    rng = np.random.default_rng(rows)
    cells = rows * (rows + 1) // 2
    tiles = rng.choice([-1, 1], (games, cells)).astype(np.int8)
    # Each second board: the rings around the hole balanced, as far as a ring that is drawn, where their size allows.
    for lane in range(games):
        hole = int(rng.integers(cells))
        tiles[lane, hole] = 0
        if lane % 2:
            rings = _rings(rows, hole)
            for ring in rings[: rng.integers(len(rings) + 1)]:
                tiles[lane, ring] = [(-1) ** n for n in range(len(ring))]
                if len(ring) % 2:
                    tiles[lane, ring[-1]] = 2
                    tiles[lane, ring[0]] = -1 if len(ring) > 1 else 2
    for tie_break in ("rings", "none"):
        game = BlackHole(rows, tie_break)
        state = BlackHoleState(jnp.asarray(tiles), jnp.full(games, cells - 1, jnp.int16))
        returns = np.asarray(jax.jit(jax.vmap(game.returns))(state))[:, 0]
        decided = 0
        for lane in range(games):
            board = tiles[lane].tolist()
            rings = _rings(rows, board.index(0))
            sums = [sum(board[cell] for cell in ring) for ring in rings]
            if tie_break == "rings" and not any(sums[: rows - 2]) and any(sums):
                continue  # in a game the last ring never decides: both totals are the same
            assert returns[lane] == _result(rows, board, tie_break)
            decided += 1
        assert decided > games / 4


@pytest.mark.parametrize("rows", [5, 6, 9, 10, 21])
def test_near_ring_outweighs_the_largest_far_one(rows):
    """Ring 1 differs by one; ring 2 holds one player's largest tiles alone."""
    game = BlackHole(rows)
    near, far, *others = _rings(rows, game.num_actions // 2)
    tiles = np.zeros(game.num_actions, np.int8)
    tiles[near] = [(-1) ** n for n in range(len(near))]
    tiles[near[0]] += 1 - sum(tiles[near])  # the sum is 1 now
    tiles[far] = -np.maximum(game.tiles_each - np.arange(len(far)), 1)
    for ring in others:
        tiles[ring] = -1
    for sign in (1, -1):
        state = BlackHoleState(jnp.asarray(sign * tiles), jnp.int16(game.num_actions - 1))
        assert game.returns(state).tolist() == [-sign, sign]


def test_statistics_of_random_play(random_play):
    """Rows 5, measured over 40,000 games: P0 .503, P1 .496, draws .0008; by ring 1 alone .055 are drawn."""
    game = BlackHole(5)
    play = random_play(game, games=20000)
    first = play.returns[:, 0]
    assert (play.plies == 14).all()
    assert abs((first == 1).mean() - 0.5) < 0.015
    assert abs((first == -1).mean() - 0.5) < 0.015
    assert (first == 0).mean() < 0.002
    by_ring_1 = np.asarray(jax.vmap(BlackHole(5, "none").returns)(play.state(-1, slice(None))))[:, 0]
    assert abs((by_ring_1 == 0).mean() - 0.055) < 0.007
    assert (by_ring_1[by_ring_1 != 0] == first[by_ring_1 != 0]).all()


def _compare_with_twin(rows, play):
    """Requires equal legal moves, tiles and results; returns the number of positions."""
    tiles, cells = play.states.tiles.tolist(), rows * (rows + 1) // 2
    legal = [[np.flatnonzero(mask).tolist() for mask in masks] for masks in play.masks]
    positions = 0
    for lane in range(len(play.plies)):
        board = [0] * cells
        moves = play.moves(lane)
        assert len(moves) == cells - 1
        for ply in range(cells):
            assert legal[ply][lane] == [cell for cell in range(cells) if not board[cell]] * (ply < cells - 1)
            assert tiles[ply][lane] == board
            positions += 1
            if ply < len(moves):
                board[moves[ply]] = (ply // 2 + 1) * (1 if ply % 2 == 0 else -1)
        assert play.returns[lane, 0] == _result(rows, board, "rings")
    return positions


def test_random_games_equal_the_twin(random_play):
    for rows in (6, 9):
        assert _compare_with_twin(rows, random_play(BlackHole(rows), games=320, seed=rows)) > 6000


@pytest.mark.record
def test_a_million_positions_equal_the_twin(random_play):
    positions = 0
    for seed in range(100, 110):
        for rows, games in ((5, 2000), (6, 2000), (9, 500), (10, 200)):
            positions += _compare_with_twin(rows, random_play(BlackHole(rows), games, seed=seed))
        print(f"{positions} positions equal", flush=True)
    assert positions > 1_000_000


def test_observation_planes():
    game = BlackHole(5)
    state = game.init(jax.random.key(0))
    step = jax.jit(game.step)
    for cell in (0, 4, 14):  # +1 on top, -1 in the middle of row 3, +2 at the lower right
        state = step(state, jnp.int32(cell))
    mine, theirs, empty, board, tile, first = np.moveaxis(np.asarray(game.observe(state)), -1, 0)
    on_board = np.tri(5)
    expected = np.zeros((5, 5), np.float32)
    expected[2, 1] = 1 / 7
    np.testing.assert_allclose(mine, expected, rtol=1e-6)
    expected = np.zeros((5, 5), np.float32)
    expected[0, 0], expected[4, 4] = 1 / 7, 2 / 7
    np.testing.assert_allclose(theirs, expected, rtol=1e-6)
    assert empty.tolist() == (on_board - (mine + theirs > 0)).tolist()
    assert board.tolist() == on_board.tolist()
    np.testing.assert_allclose(tile, np.full((5, 5), 2 / 7), rtol=1e-6)  # player 1 places tile 2 now
    assert not first.any()
    assert game.observe(game.init(jax.random.key(0)))[..., 5].all()


@pytest.mark.parametrize("rows", [5, 6])
def test_history_is_the_boards_of_the_plies_before(rows):
    game, plain = BlackHole(rows, history=4), BlackHole(rows)
    order = np.random.default_rng(rows).permutation(game.num_actions)[: game.max_plies]
    states = _replay(game, order[:, None].astype(np.int32))
    for ply in range(game.max_plies + 1):
        state = jax.tree.map(lambda leaf, ply=ply: leaf[ply, 0], states)
        seen = np.asarray(game.observe(state))
        assert seen.shape == game.observation_shape
        np.testing.assert_array_equal(seen[..., :6], plain.observe(state))
        for ago in range(1, 4):
            before = max(ply - ago, 0)
            earlier = jax.tree.map(lambda leaf, at=before: leaf[at, 0], states)
            mine, theirs = np.moveaxis(np.asarray(plain.observe(earlier)), -1, 0)[:2]
            if ago % 2:  # there the other player was to move
                mine, theirs = theirs, mine
            np.testing.assert_array_equal(seen[..., 4 + 2 * ago], mine)
            np.testing.assert_array_equal(seen[..., 5 + 2 * ago], theirs)


@pytest.mark.parametrize("history", [0, 17, 2.0, True, "4"])
def test_an_impossible_history_is_refused(history):
    with pytest.raises(
        ValueError, match=r"black_hole: history: got .*, expected a whole number of boards from 1 to 16"
    ):
        BlackHole(5, history=history)


@pytest.mark.parametrize("rows", [2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22])
def test_symmetries_keep_neighbours(rows):
    cells = rows * (rows + 1) // 2
    neighbours = [set(_neighbours(rows, cell)) for cell in range(cells)]
    permutations = {tuple(symmetry.permutation.tolist()) for symmetry in BlackHole(rows).symmetries}
    assert len(permutations) == 6
    for permutation in permutations:
        assert sorted(permutation) == list(range(cells))
        for cell in range(cells):
            assert {permutation[other] for other in neighbours[cell]} == neighbours[permutation[cell]]


def test_board_and_names():
    game = BlackHole(2)
    state = game.init(jax.random.key(0))
    assert game.render(state) == " 1    .  a\n 2  .   .  b\n   next: +1"
    assert [game.action_name(cell) for cell in range(3)] == ["a1", "a2", "b2"]
    for cell in (1, 2):
        state = game.step(state, jnp.int32(cell))
    assert game.render(state) == " 1   ( ) a\n 2  +1  -1 b"
    names = [BlackHole(22).action_name(cell) for cell in range(253)]
    assert len(set(names)) == 253
    assert names[-1] == "v22"


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 7, 8, 11, 12, -2, 23, 2.5, True, "6", None])
def test_unplayable_rows_are_refused(rows):
    with pytest.raises(ValueError, match=r"black_hole: rows: got .*, expected one of 2, 5, 6, 9, 10, 13, 14, 17"):
        BlackHole(rows)


@pytest.mark.parametrize(("rows", "tiles"), [(2, 1), (5, 7), (6, 10), (9, 22), (10, 27)])
def test_tiles_each(rows, tiles):
    game = BlackHole(rows)
    assert game.tiles_each == tiles
    assert game.max_plies == 2 * tiles == game.num_actions - 1


def test_unknown_tie_break_is_refused():
    with pytest.raises(ValueError, match="black_hole: tie_break: got 'coin', expected 'rings' or 'none'"):
        BlackHole(5, "coin")
