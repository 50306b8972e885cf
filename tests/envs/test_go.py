"""Go: given games and positions, directed cases of each rule, a plain Python twin at every ply of random games."""

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.go import Go, GoState

_DATA = Path(__file__).parents[1] / "data"
_GAMES, _SPECIAL, _SUPERKO = (
    json.loads((_DATA / f"go_{name}.json").read_text()) for name in ("games", "special", "superko")
)
_LETTERS = {"X": 1, "O": -1, ".": 0}


class Twin:
    """Go from the rules: whole boards, flood fills, a set of all boards so far. Slow, shares nothing with envs.go."""

    def __init__(self, size, suicide=False):
        self.size, self.suicide = size, suicide
        self.board = (0,) * size**2
        self.boards = [self.board]
        self.mover, self.passes = 1, 0

    def beside(self, point):
        r, c = divmod(point, self.size)
        inside = [(a, b) for a, b in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1))]
        return [a * self.size + b for a, b in inside if 0 <= a < self.size and 0 <= b < self.size]

    def region(self, board, point):
        """Returns the points of a point's colour that are joined to it, and all points beside them."""
        inside, border, todo = {point}, set(), [point]
        while todo:
            for other in self.beside(todo.pop()):
                if board[other] != board[point]:
                    border.add(other)
                elif other not in inside:
                    inside.add(other)
                    todo.append(other)
        return inside, border

    def liberties(self, board, point):
        return [other for other in self.region(board, point)[1] if board[other] == 0]

    def after(self, point):
        """Returns the board after a stone of the mover, or None where that is not legal."""
        if self.board[point] != 0:
            return None
        board = list(self.board)
        board[point] = self.mover
        for other in self.beside(point):
            if board[other] == -self.mover and not self.liberties(board, other):
                for stone in self.region(board, other)[0]:
                    board[stone] = 0
        if not self.liberties(board, point):
            if not self.suicide:
                return None
            for stone in self.region(board, point)[0]:
                board[stone] = 0
        return None if tuple(board) in self.boards else tuple(board)

    def over(self):
        return self.passes == 2 or len(self.boards) > 2 * self.size**2

    def legal(self):
        if self.over():
            return []
        return [*(p for p in range(self.size**2) if self.after(p) is not None), self.size**2]

    def play(self, action):
        self.passes = self.passes + 1 if action == self.size**2 else 0
        self.board = self.board if action == self.size**2 else self.after(action)
        self.boards.append(self.board)
        self.mover = -self.mover

    def area(self):
        total = sum(self.board)
        for point in range(self.size**2):
            if self.board[point] == 0:
                colours = {self.board[other] for other in self.region(self.board, point)[1]}
                total += sum(colours) if len(colours) == 1 else 0
        return total

    def planes(self):
        """Returns the 17 planes that the mover sees."""
        seen = [self.boards[-1 - t] if t < len(self.boards) else self.boards[0] for t in range(8)]
        planes = [[stone == colour for stone in board] for board in seen for colour in (self.mover, -self.mover)]
        return np.array([*planes, [self.mover == 1] * self.size**2], np.float32)


@functools.cache
def _compiled(game):
    return jax.jit(game.step), jax.jit(game.legal_action_mask)


def _replay(game, actions, state=None):
    """Returns the state after the actions, each of which must be legal."""
    step, legal = _compiled(game)
    state = game.init(jax.random.key(0)) if state is None else state
    for action in actions:
        assert legal(state)[action], game.action_name(action)
        state = step(state, jnp.int32(action))
    return state


def _legal(game, state):
    return np.flatnonzero(_compiled(game)[1](state)).tolist()


def _stones(game, state):
    return np.sign(np.asarray(game.board.on_board(state.chains))).tolist()


def _rows(game, state):
    return [line.split()[1:] for line in game.render(state).splitlines()[1:]]


def _position(game, rows, to_move="X"):
    """Returns the state of a board given as rows of X, O and dots, without a past."""
    board = [_LETTERS[letter] for row in rows for letter in row]
    twin = Twin(game.size)
    codes = np.zeros(game.size**2, np.int16)
    for point in np.flatnonzero(board):
        chain = twin.region(board, point)[0]
        codes[point] = board[point] * (2 * (max(chain) + 1) + (len(twin.liberties(board, point)) == 1))
    state = game.init(jax.random.key(0))
    ply = 0 if to_move == "X" else 1
    chains = jnp.asarray(np.pad(codes, game.size))
    return GoState(
        chains=chains,
        boards=jnp.asarray(np.array([{1: 1, -1: 2, 0: 0}[stone] for stone in board], np.uint16)),
        hashes=state.hashes.at[:, ply].set(game.board.hash(chains)),
        ply=jnp.int16(ply),
        passes=jnp.int8(0),
    )


def _area(game, state):
    """Returns Black's area minus White's."""
    return int(game.board.area(state.chains, jnp.bool_(True)))


def _point(game, vertex):
    return game.parse_action(vertex)


@pytest.mark.parametrize("number", range(len(_GAMES)))
def test_given_games(number):
    """They were played under the simple ko rule: what is illegal here makes an earlier board, and nothing else."""
    given = _GAMES[number]
    game = Go(given["size"])
    step, legal = _compiled(game)
    state = game.init(jax.random.key(0))
    boards = [_stones(game, state)]
    for action in given["actions"]:
        may = bool(legal(state)[action])
        state = step(state, jnp.int32(action))
        boards.append(_stones(game, state))
        assert may == (action == given["size"] ** 2 or boards[-1] not in boards[:-1])
    assert _stones(game, state) == given["final_board"]
    assert _area(game, state) == given["area_black_minus_white"]
    lead = given["area_black_minus_white"] - 7.5
    if given["ended_by"] == "two passes or move limit":
        assert bool(game.terminated(state))
        assert not bool(game.truncated(state))
        assert game.returns(state)[0] == np.sign(lead)


@pytest.mark.parametrize("case", _SUPERKO, ids=lambda case: f"{case['size']}x{case['size']}-{case['cycle_plies']}")
@pytest.mark.parametrize("suicide", [False, True])
def test_given_superko(case, suicide):
    game = Go(case["size"], suicide=suicide)
    state = _replay(game, case["actions"])
    assert (case["forbidden"] in _legal(game, state)) == case["positional_legal"]


@pytest.mark.parametrize(
    ("size", "actions", "forbidden"),
    [
        (2, "0 1 2 3 0 2", 0),  # legal under the simple ko rule
        (3, "5 1 7 4 2 8", 5),  # legal under situational superko
        (3, "3 7 1 5 4 6 8", 7),
        (4, "0 4 8 12 10 14 2 13 6 11 3 7 15", 11),
        (4, "10 6 7 5 14 2 3 12 9 8 0 11 3 15", 7),  # legal under the simple ko rule
    ],
)
def test_superko_beyond_the_simple_ko(size, actions, forbidden):
    """pitfall: superko moves that are legal and then lose."""
    game = Go(size)
    state = _replay(game, [int(action) for action in actions.split()])
    assert forbidden not in _legal(game, state)
    twin = Twin(size)
    for action in actions.split():
        twin.play(int(action))
    assert _legal(game, state) == twin.legal()


@pytest.mark.parametrize("case", _SPECIAL, ids=lambda case: case["name"])
def test_given_positions(case):
    if case["kind"] == "score":
        game = Go(5)
        state = _position(game, case["rows"])
        assert _area(game, state) == case["area_black_minus_white"]
        ended = _replay(game, [25, 25], state)
        assert game.returns(ended)[0] == np.sign(case["with_komi_7_5"])
    else:
        for suicide, key in ((False, "suicide_forbidden"), (True, "suicide_allowed")):
            game = Go(5, suicide=suicide)
            state = _position(game, case["rows"], case["to_move"])
            assert (case["move"] in _legal(game, state)) == case[key]


def test_ko_is_retaken_after_a_move_elsewhere():
    game = Go(5)
    state = _position(game, [".XO..", "X.XO.", ".XO..", ".....", "....."], to_move="O")
    taken = _replay(game, [6], state)
    assert _rows(game, taken)[1] == list("XO.O.")
    assert 7 not in _legal(game, taken)
    later = _replay(game, [24, 20], taken)
    assert 7 in _legal(game, later)
    again = _replay(game, [7], later)
    assert _rows(game, again)[1] == list("X.XO.")
    assert 6 not in _legal(game, again)


def test_sending_two_and_returning_one():
    """White gives two stones and would take one back, which makes the board from before, with Black to move now.

    Legal under the simple ko rule, which looks at single stones alone, and under situational superko.
    """
    game = Go(5)
    sent = _replay(game, [0, 2], _position(game, [".O.O.", "XXO..", ".....", ".....", "....."], to_move="O"))
    assert _rows(game, sent)[:2] == [list("..XO."), list("XXO..")]
    assert _legal(game, sent) == [0, 4, *range(8, 26)]  # not 1
    assert 1 in _legal(game, _replay(game, [24, 20], sent))


def test_triple_ko():
    """Six captures, each of which is legal, but the last, which would close the circle."""
    ko = ([".XO.....", "X.XO....", ".XO....."], [".XO.....", "XO.O....", ".XO....."])  # Black's, White's
    rows = [f"{row}." for owner in (0, 1, 0) for row in ko[owner]]
    game = Go(9)
    state = _position(game, rows, to_move="O")
    circle = ["B8", "C5", "B2", "C8", "B5"]
    for capture in circle:
        assert _point(game, capture) in _legal(game, state)
        state = _replay(game, [_point(game, capture)], state)
    assert int(np.abs(_stones(game, state)).sum()) == 21
    assert _point(game, "C2") not in _legal(game, state)
    passed = _replay(game, [81, 81 - 1], state)  # a pass changes nothing; White's stone in the corner does
    assert _point(game, "C2") in _legal(game, passed)


def test_a_pass_repeats_the_board_and_is_legal():
    game = Go(5)
    taken = _replay(game, [6], _position(game, [".XO..", "X.XO.", ".XO..", ".....", "....."], to_move="O"))
    assert 7 not in _legal(game, taken)
    passed = _replay(game, [25], taken)
    assert not bool(game.terminated(passed))
    assert 7 in _legal(game, _replay(game, [24], passed))  # White's stone at E1 is new on the board
    assert 7 in _legal(game, passed)  # White's own ko, filled
    assert bool(game.terminated(_replay(game, [25], passed)))


def test_suicide_of_two_stones_that_repeats_the_board():
    """With a pass in between the two stones leave the board as it was; with another stone they do not."""
    rows = ["..X..", "XX...", ".....", ".....", "....."]
    for suicide in (False, True):
        game = Go(5, suicide=suicide)
        for between, legal in ((25, False), (24, suicide)):
            state = _replay(game, [0, between], _position(game, rows, to_move="O"))
            assert (1 in _legal(game, state)) == legal


def test_snapback():
    """White throws a stone in, Black takes it and is taken: no repetition, the boards differ."""
    game = Go(5)
    thrown = _replay(game, [0], _position(game, ["..XO.", "XXXO.", "OOOO.", ".....", "....."], to_move="O"))
    taken = _replay(game, [1], thrown)
    assert _rows(game, taken)[:2] == [list(".XXO."), list("XXXO.")]
    after = _replay(game, [0], taken)
    assert _rows(game, after)[:2] == [list("O..O."), list("...O.")]
    _check_chains(game, after)


def test_several_chains_are_captured_at_once():
    game = Go(5)
    state = _position(game, [".XOX.", "XO.OX", ".XOX.", "..X..", "....."])
    state = _replay(game, [7], state)
    assert _rows(game, state) == [list(row) for row in (".X.X.", "X.X.X", ".X.X.", "..X..", ".....")]
    # Each black chain beside the four points has liberties again, and White may play there or not.
    assert (np.abs(np.asarray(game.board.on_board(state.chains))) & 1 == 0).all()
    assert 7 not in _legal(game, state)


def test_captures_free_other_chains_from_atari():
    """Both black chains beside the captured stone were in atari, and neither is part of the capturing chain."""
    game = Go(5)
    rows = ["OXOX.", "OXOXO", ".OXOO", "..O..", "....."]
    board = [_LETTERS[letter] for row in rows for letter in row]
    twin = Twin(5)
    twin.board, twin.boards = tuple(board), [tuple(board)]
    state = _position(game, rows)
    for action in twin.legal()[:-1]:
        after = _compiled(game)[0](state, jnp.int32(action))
        assert _stones(game, after) == list(twin.after(action))
        _check_chains(game, after)


def test_suicide_of_several_stones():
    rows = ["OX...", ".X...", "X....", ".....", "....."]
    state = _position(Go(5), rows, to_move="O")
    assert 5 not in _legal(Go(5), state)
    game = Go(5, suicide=True)
    after = _replay(game, [5], _position(game, rows, to_move="O"))
    assert _rows(game, after)[0] == list(".X...")
    assert _rows(game, after)[1] == list(".X...")
    _check_chains(game, after)
    # Black's three stones stand as they did; White may play into the corner again, alone or not.
    assert {0, 5} <= set(_legal(game, after))


def test_suicide_of_one_stone_repeats_the_board():
    game = Go(5, suicide=True)
    state = _position(game, [".X...", "X....", ".....", ".....", "....."], to_move="O")
    assert 0 not in _legal(game, state)


def test_suicide_that_empties_the_board_is_a_repetition():
    game = Go(2, suicide=True)
    state = _replay(game, [0, 4, 1, 4, 2, 4])
    assert _legal(game, state) == [4]


def test_full_board_but_one_point():
    game = Go(5)
    state = _position(game, ["XXXXX", "XXXXX", "XX.XX", "XXXXX", "XXXXX"])
    assert _legal(game, state) == [25]  # Black would take off its own chain
    state = _position(game, ["XXXXX", "XXXXX", "XX.XX", "XXXXX", "XXXXX"], to_move="O")
    after = _replay(game, [12], state)
    assert _stones(game, after) == [-1 if point == 12 else 0 for point in range(25)]
    assert _area(game, after) == -25


def test_points_between_both_colours_count_for_neither():
    """As in a seki: White's chain in the middle and Black's beside it share two liberties."""
    game = Go(5)
    rows = [".XO.O", "XXOOO", "XO.XO", "XOOXX", "XO.X."]
    state = _position(game, rows)
    twin = Twin(5)
    twin.board = tuple(_LETTERS[letter] for row in rows for letter in row)
    stones = sum(twin.board)
    assert _area(game, state) == twin.area() == stones + 1 - 1 + 1  # A5 and E1 Black's, D5 White's; C3 and C1 nobody's


def test_two_passes_end_the_game():
    game = Go(5)
    state = _replay(game, [12, 25, 0, 25])
    assert not bool(game.terminated(state))
    state = _replay(game, [25], state)
    assert bool(game.terminated(state))
    assert _legal(game, state) == []
    assert game.returns(state).tolist() == [1, -1]


@pytest.mark.parametrize(("komi", "returns"), [(0, [0, 0]), (0.5, [-1, 1]), (-1, [1, -1])])
def test_equal_score_is_a_draw(komi, returns):
    """pitfall: a tie that goes to White."""
    game = Go(5, komi=komi)
    assert game.returns(_replay(game, [25, 25])).tolist() == returns


@pytest.mark.parametrize(
    ("komi", "returns"),
    [(24, [1, -1]), (25, [0, 0]), (26, [-1, 1]), (25 + 1e-9, [-1, 1]), (25 - 1e-9, [1, -1]), (-1e30, [1, -1])],
)
def test_whole_komi_can_be_reached(komi, returns):
    game = Go(5, komi=komi)
    assert game.returns(_replay(game, [12, 25, 25])).tolist() == returns


def test_the_last_ply_ends_and_scores_the_game():
    game = Go(2, komi=0)
    state = _replay(game, [4, 0, 4, 3, 4, 1, 2])  # Black's stone takes three
    assert not bool(game.terminated(state))
    state = _replay(game, [1], state)
    assert int(state.ply) == 8
    assert bool(game.terminated(state))
    assert not bool(game.truncated(state))
    assert game.returns(state).tolist() == [0, 0]


def _check_chains(game, state):
    """Requires that equal codes are equal chains, and odd ones those with one liberty."""
    twin = Twin(game.size)
    codes = np.asarray(game.board.on_board(state.chains)).tolist()
    board = np.sign(codes).tolist()
    expected = {}
    for point in np.flatnonzero(board).tolist():
        chain = frozenset(twin.region(board, point)[0])
        assert {codes[stone] for stone in chain} == {codes[point]}
        assert (codes[point] & 1) == (len(twin.liberties(board, point)) == 1)
        expected.setdefault(codes[point], chain)
        assert expected[codes[point]] == chain
    frame = np.asarray(state.chains)
    assert not frame[: game.size].any()
    assert not frame[-game.size :].any()


def compare_with_the_twin(game, play, lanes, chains_every=1):
    """Requires equal legal moves, boards, planes and results at every ply; returns the number of positions."""
    observe = jax.jit(jax.vmap(game.observe))
    positions = 0
    for lane in range(lanes):
        twin = Twin(game.size, game.suicide)
        moves = play.moves(lane)
        states = jax.tree.map(lambda leaf, lane=lane: leaf[:, lane], play.states)
        planes = np.asarray(observe(states))
        stones = np.sign(states.chains[:, game.size : -game.size])
        for ply in range(len(moves) + 1):
            assert np.flatnonzero(play.masks[ply, lane]).tolist() == twin.legal()
            assert stones[ply].tolist() == list(twin.board)
            assert np.array_equal(np.moveaxis(planes[ply], -1, 0).reshape(17, -1), twin.planes())
            if ply % chains_every == 0:
                _check_chains(game, jax.tree.map(lambda leaf, ply=ply: leaf[ply], states))
            positions += 1
            if ply < len(moves):
                twin.play(moves[ply])
        assert twin.over()
        assert play.returns[lane].tolist() == [np.sign(twin.area() - game.komi), -np.sign(twin.area() - game.komi)]
    return positions


@pytest.mark.parametrize(
    ("game", "games"),
    [(Go(2, komi=1), 100), (Go(3, suicide=True), 60), (Go(4, komi=0), 25), (Go(5, suicide=True), 15)],
    ids=lambda value: getattr(value, "id", str(value)),
)
def test_random_games_equal_the_twin(game, games, random_play):
    assert compare_with_the_twin(game, random_play(game, games), games) > 350


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "games"),
    [
        (Go(3), 400),
        (Go(4, suicide=True), 200),
        (Go(5, komi=0), 150),
        (Go(7), 15),
        (Go(9, suicide=True), 8),
        (Go(19), 1),
    ],
    ids=lambda value: getattr(value, "id", str(value)),
)
def test_more_random_games_equal_the_twin(game, games, random_play):
    compare_with_the_twin(game, random_play(game, games, seed=1), games)


def test_planes_before_the_first_move_are_zeros():
    game = Go(5)
    state = game.init(jax.random.key(0))
    assert np.asarray(game.observe(state)).sum((0, 1)).tolist() == [0] * 16 + [25]
    state = _replay(game, [7, 25])
    planes = np.asarray(game.observe(state)).sum((0, 1)).tolist()
    assert planes == [1, 0, 1, 0] + [0] * 12 + [25]


@pytest.mark.parametrize(
    ("name", "vertices"),
    [
        ("go_9x9", {0: "A9", 7: "H9", 8: "J9", 80: "J1", 72: "A1", 81: "pass"}),
        ("go_19x19", {0: "A19", 18: "T19", 360: "T1", 3 * 19 + 15: "Q16", 361: "pass"}),
        ("go,size=25", {0: "A25", 24: "Z25", 625: "pass"}),
    ],
)
def test_vertices(name, vertices):
    game = envs.make(name)
    assert {action: game.action_name(action) for action in vertices} == vertices
    assert {game.parse_action(vertex.lower()): vertex for vertex in vertices.values()} == vertices
    with pytest.raises(ValueError, match="move: got 'I5', expected one of this game's moves, such as 'A"):
        game.parse_action("I5")


def test_board():
    game = Go(3)
    assert game.render(_replay(game, [0, 5])).splitlines() == ["   A B C", " 3 X . .", " 2 . . O", " 1 . . ."]


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("go_9x9,komi=7.0", "go_9x9,komi=7"),
        ("go,size=9,komi=7.5", "go_9x9"),
        ("go", "go_19x19"),
        ("go,size=7,suicide=true", "go,size=7,suicide=true"),
        ("go_13x13,max_plies=100", "go_13x13,max_plies=100"),
        ("go_13x13,max_plies=338", "go_13x13"),
    ],
)
def test_names(name, identity):
    assert envs.make(name).id == identity
    assert envs.make(identity) == envs.make(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("go,size=1", "go: size: got 1, expected a whole number from 2 to 25"),
        ("go,size=26", "go: size: got 26, expected"),
        ("go_9x9,size=7", "game go_9x9: option: got 'size', expected one of komi, suicide, max_plies"),
        ("go_9x9,komi=big", "go: komi: got 'big', expected a number such as 7.5"),
        ("go_9x9,komi=1e999", "go: komi: got inf, expected a number"),
        ("go_9x9,suicide=1", "go: suicide: got 1, expected true or false"),
    ],
)
def test_wrong_options(name, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name)


def test_hashes_tell_stones_apart():
    """Stones and pairs of stones of a colour all differ; the word of the colour's own names a stone that is added."""
    game = Go(9)
    words = game.board._zobrist.astype(np.uint32)
    upper = np.triu_indices(81, 1)
    for colour in (0, 1):
        pairs = (words[colour][:, upper[0]] + words[colour][:, upper[1]]).astype(np.uint64)
        keys = np.concatenate([words[colour].astype(np.uint64), pairs], axis=1)
        assert len(np.unique(keys[0] << np.uint64(32) | keys[1])) == 81 + 81 * 40
        own = jnp.asarray(words[colour, colour])
        now = own[3] + own[50]
        assert game.board.one_stone_more(own + now, now).tolist() == list(range(1, 82))
        assert not game.board.one_stone_more(jnp.stack([now, own[3], own[50]]), now).any()  # none more, one fewer
        other = jnp.asarray(words[1 - colour, colour])
        assert not game.board.one_stone_more(other + now, now).any()  # the other colour's stones make no difference


def test_nothing_is_looked_up_by_index():
    """What an accelerator does badly: step, mask and planes are passes over all points and two loops, mostly idle."""
    game = Go(9)

    def work(state, action):
        after = game.step(state, action)
        return after, game.legal_action_mask(after), game.observe(after)

    states = jax.eval_shape(jax.vmap(game.init), jax.random.split(jax.random.key(0), 8))
    text = jax.jit(jax.vmap(work)).lower(states, jax.ShapeDtypeStruct((8,), jnp.int32)).as_text()
    for word in ("gather", "scatter", "sort", "dynamic_slice", "dynamic_update_slice"):
        assert f"stablehlo.{word}" not in text
    assert text.count("stablehlo.while") == 2


def test_without_its_past_a_board_goes_on():
    game = Go(size=3, max_plies=4)
    state = game.init(jax.random.key(0))
    for word in ("A1", "B2", "A2", "pass"):
        state = game.step(state, jnp.int32(game.parse_action(word)))
    assert bool(game.terminated(state)) and not game.legal_action_mask(state).any()
    on = game.without_past(state)
    assert game.render(on) == game.render(state) and int(game.to_move(on)) == int(game.to_move(state)) == 0
    legal = np.asarray(game.legal_action_mask(on))
    assert sorted(game.action_name(action) for action in np.flatnonzero(legal)) == "A3 B1 B3 C1 C2 C3 pass".split()
    on = game.step(on, jnp.int32(game.parse_action("pass")))  # the second in a row
    assert bool(game.terminated(on))
    with pytest.raises(ValueError, match="two passes have ended the game"):
        game.without_past(on)
