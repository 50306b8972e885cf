"""Shogi on devices: perft, python-shogi at every ply of random games, directed cases of each rule, planes by a twin."""

import collections
import functools
import json
import random
import re
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shogi

from envs.shogi import sfen, usi
from envs.shogi.actions import NUM_ACTIONS, action_of, move_of
from envs.shogi.game import Shogi
from envs.shogi.position import HAND, KINDS, Line
from envs.shogi.state import DRAWN, LOST, WON

_PERFT = json.loads((Path(__file__).parents[1] / "data" / "shogi_perft.json").read_text())
_GAME = Shogi()
_START = sfen.write(*sfen.START)
_LANES = 64  # of all batches but the largest: one program serves all
_KING_AND_ROOK = "k8/9/9/9/9/9/9/9/K7R b - 1"

# Games from the start, and positions in which drops, pins, checks or repetitions are common.
STARTS = [
    *[_START] * 4,
    "ln1g3nl/1r3kg2/p2p1p1p1/2pspSp1p/1p7/P2P2P1P/1PPSPP1P1/2G1KGR2/LN5NL b BPbs 1",
    "1+N3s1n1/5k2l/l+P2g1bp1/2pP1p2p/p2ppNS2/LB6P/1pS1g2PL/3KPR2S/1R1G1NG2 b P4p 1",
    "4k4/9/9/9/9/9/9/9/4K4 b RB2G2S2N2L9Prb2g2s2n2l9p 1",
    "4k4/4p4/9/9/4b4/4R4/9/4P4/4K4 b 2G2S9Pr 1",
    "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/9/LNSGKGSNL w RBrb 200",
    "4k4/3gpg3/9/9/4L4/4l4/9/3GPG3/4K4 b RBSNPrbsnp 1",
    _KING_AND_ROOK,
    "k8/9/9/9/9/9/9/9/K7R b - 1",
    "4k4/9/4P4/9/9/9/9/9/4K4 b P2p 500",
    "k8/1S7/9/9/9/9/9/8r/K8 w 2P2p 1",
    "lnsgkgsnl/1r5b1/p1ppppppp/9/1p7/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1",
]


class Play(NamedTuple):
    """B games of T plies; a game that is over stays as it is."""

    actions: np.ndarray  # int32[T, B]
    slots: np.ndarray  # int16[T, B, K]
    mask_agrees: np.ndarray  # bool[T, B], the legal mask has just the slots
    result: np.ndarray  # int8[T, B]
    repetitions: np.ndarray  # uint32[T, B]
    over: np.ndarray  # bool[T, B]
    returns: np.ndarray  # float32[T, B, 2]


@functools.cache
def _programs(game):
    def look(state):
        slots, mask = game.legal_actions(state), game.legal_action_mask(state)
        marked = jnp.zeros(NUM_ACTIONS + 1, bool).at[slots.astype(jnp.int32)].set(True)[:NUM_ACTIONS]
        times = state.repetitions & 15
        return slots, (marked == mask).all(), state.result, times, game.terminated(state), game.returns(state)

    def body(states, drawn):
        seen = jax.vmap(look)(states)
        # One lane in four plays one of its first two moves: pieces go to and fro, and positions come again.
        number = (seen[0] >= 0).sum(-1)
        number = jnp.where(np.arange(len(number)) % 4 == 0, jnp.minimum(number, 2), number)
        slot = (drawn * number).astype(jnp.int32)
        actions = jnp.maximum(jnp.take_along_axis(seen[0], slot[:, None], 1)[:, 0], 0).astype(jnp.int32)
        return jax.vmap(game.step)(states, actions), (actions, seen)

    @jax.jit
    def run(states, drawn):
        states, (actions, seen) = jax.lax.scan(body, states, drawn)
        return states, actions, seen

    return run


@functools.cache
def _placed(game, text):
    return jax.device_get(game.parse_position(text))


def _stacked(game, texts):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *(_placed(game, text) for text in texts))


def random_play(game, texts, plies, seed):
    """Plays random games from positions given as SFEN; `plies` is a multiple of 64."""
    states, draws, parts = _stacked(game, texts), np.random.default_rng(seed), []
    for _ in range(0, plies, 64):
        drawn = draws.uniform(size=(64, len(texts))).astype(np.float32)
        states, actions, seen = jax.device_get(_programs(game)(states, drawn))
        parts.append((actions, *seen))
    return Play(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@functools.cache
def _python_shogis_action(word, turn):
    return action_of(usi.parse_move(word), turn)


class Referee:
    """python-shogi's board, and what it does not know: who gave check all the time."""

    def __init__(self, text):
        self.board = shogi.Board(text)
        self.times, self.first, self.checks = collections.Counter(), {}, []
        self._count()

    def _count(self):
        board = self.board
        hands = [tuple(hand[kind] for kind in range(1, 8)) for hand in board.pieces_in_hand]
        self.key = (tuple(board.pieces), *board.occupied.by_color, *hands, board.turn)
        self.times[self.key] += 1
        self.first.setdefault(self.key, len(self.checks))

    def legal(self):
        turn, moves = self.board.turn, list(self.board.legal_moves)
        return {_python_shogis_action(move.usi(), turn): move for move in moves if not self._mates_by_pawn(move)}

    def _mates_by_pawn(self, move):
        """A pawn dropped to mate is illegal; python-shogi allows it where only a pinned piece could take it."""
        if move.drop_piece_type != shogi.PAWN:
            return False
        self.board.push(move)
        mates = self.board.is_checkmate()
        self.board.pop()
        return mates

    def result(self, legal):
        """Returns the result in the mover's view, the limit of 512 plies left out."""
        if not legal:
            return LOST
        if self.times[self.key] < 4:
            return 0
        since = self.checks[self.first[self.key] :]
        mine, theirs = all(since[-2::-2]), all(since[-1::-2])
        return DRAWN if mine == theirs else WON if theirs else LOST

    def push(self, move):
        self.board.push(move)
        self.checks.append(self.board.is_check())
        self._count()


def compare_with_python_shogi(play, texts):
    """Requires equal legal moves, results and repetition counts at every ply; returns the number, and what was seen."""
    positions, seen = 0, collections.Counter()
    assert play.mask_agrees.all()
    for lane, text in enumerate(texts):
        referee = Referee(text)
        for ply in range(len(play.actions)):
            legal, place = referee.legal(), (text, ply, referee.board.sfen())
            result = referee.result(legal)
            over = result != 0 or referee.board.move_number > 512
            slots = play.slots[ply, lane]
            assert slots[slots >= 0].tolist() == ([] if over else sorted(legal)), place
            assert play.repetitions[ply, lane] == referee.times[referee.key], place
            assert (play.result[ply, lane], play.over[ply, lane]) == (result, over), place
            sign = {LOST: -1, WON: 1}.get(result, 0)
            assert play.returns[ply, lane, referee.board.turn] == sign, place
            assert play.returns[ply, lane, 1 - referee.board.turn] == -sign, place
            positions += 1
            if over:
                seen[result] += 1
                break
            move = legal[int(play.actions[ply, lane])]
            seen["drop"] += move.drop_piece_type is not None
            seen["promotion"] += bool(move.promotion)
            referee.push(move)
            seen["check"] += referee.checks[-1]
    return positions, seen


def _texts(number):
    return [STARTS[index % len(STARTS)] for index in range(number)]


def test_random_games_equal_python_shogi():
    positions, seen = compare_with_python_shogi(random_play(_GAME, _texts(_LANES), 64, 0), _texts(20))
    assert positions >= 700
    assert min(seen["drop"], seen["promotion"], seen["check"]) > 20
    assert seen[LOST] + seen[DRAWN] > 0


@pytest.mark.slow
def test_more_random_games_equal_python_shogi():
    texts, positions, seen = _texts(_LANES), 0, collections.Counter()
    for seed in range(1, 4):
        compared, found = compare_with_python_shogi(random_play(_GAME, texts, 256, seed), texts)
        positions, seen = positions + compared, seen + found
    assert positions >= 20_000
    assert min(seen[LOST], seen[DRAWN], seen[0]) > 0


def test_games_of_a_side_that_mostly_checks():
    """Perpetual check is rare in random games: here one side checks when it can, and the results are the twin's."""
    step, _, _ = _compiled()
    draw, endings = random.Random(1), collections.Counter()
    for text in [_KING_AND_ROOK, "k8/9/9/9/9/9/9/7K1/8r w - 1", "1k7/9/9/9/9/9/9/9/K6RR b - 1"] * 4:
        placed = sfen.parse(text)
        state, line = _GAME.parse_position(text), Line(placed.position, placed.ply)
        checker = placed.position.turn
        while not (outcome := line.outcome()) and len(line.checks) < 60:
            assert not _GAME.terminated(state)
            moves = sorted(line.legal_moves(), key=usi.write_move)
            if line.position.turn == checker and draw.random() < 0.97:
                moves = [move for move in moves if line.position.play(move).in_check()] or moves
            move = draw.choice(moves[:2])
            state = step(state, jnp.int32(action_of(move, line.position.turn)))
            line.play(move)
        assert bool(_GAME.terminated(state)) == (outcome is not None)
        if outcome:
            winner, reason = outcome
            endings[reason] += 1
            assert _GAME.returns(state).tolist() == ([0, 0] if winner is None else [1 - 2 * winner, 2 * winner - 1])
    assert min(endings["perpetual check"], endings["repetition"]) > 0, endings


def test_a_pawn_whose_only_captor_is_pinned_mates_and_may_not_be_dropped():
    text = "4kbR1p/pp1P1p1+P1/2+Pg+P1n1N/lG1s1r1PP/s4PG2/4g2+p1/N1p6/LP+n5+l/b2+s1sK2 b L4P 207"
    referee = Referee(text)
    drop = _python_shogis_action("P*5b", referee.board.turn)
    assert shogi.Move.from_usi("P*5b") in referee.board.legal_moves and drop not in referee.legal()
    mask = np.asarray(_GAME.legal_action_mask(_GAME.parse_position(text)))
    assert np.flatnonzero(mask).tolist() == sorted(referee.legal())


@pytest.mark.record
def test_a_hundred_thousand_positions():
    """Prints how many positions were equal: run with -s."""
    texts, positions, seed, seen = _texts(_LANES), 0, 1000, collections.Counter()
    while positions < 100_000:
        compared, found = compare_with_python_shogi(random_play(_GAME, texts, 256, seed), texts)
        positions, seen, seed = positions + compared, seen + found, seed + 1
        print(f"shogi: {positions} positions equal, {dict(seen)}", flush=True)


@functools.cache
def _perft_programs(batch):
    del batch
    game = Shogi(max_plies=8)  # a short past, for memory
    return game, jax.jit(jax.vmap(game.step)), jax.jit(jax.vmap(game.moves))


def perft(texts, depth, batch=256):
    """Returns for each position the number of move sequences."""
    game, step, moves = _perft_programs(batch)
    counts = np.zeros(len(texts), np.int64)
    stack = [(_stacked(game, texts), np.arange(len(texts)), depth)]
    while stack:  # depth first in chunks, so that memory stays small
        states, origins, left = stack.pop()
        if len(origins) > batch:
            stack.append((jax.tree.map(lambda leaf: leaf[batch:], states), origins[batch:], left))
            states, origins = jax.tree.map(lambda leaf: leaf[:batch], states), origins[:batch]
        padded = jax.tree.map(lambda leaf: np.resize(leaf, (batch, *leaf.shape[1:])), states)
        mask = np.asarray(moves(padded))[: len(origins)]
        if left == 1:
            np.add.at(counts, origins, mask.sum(1))
            continue
        parents, actions = np.nonzero(mask)
        for start in range(0, len(actions), batch):
            chosen = parents[start : start + batch]
            inputs = jax.tree.map(lambda leaf, chosen=chosen: np.resize(leaf[chosen], (batch, *leaf.shape[1:])), states)
            moved = step(inputs, np.resize(actions[start : start + batch].astype(np.int32), batch))
            moved = jax.tree.map(lambda leaf, chosen=chosen: np.asarray(leaf)[: len(chosen)], moved)
            stack.append((moved, origins[chosen], left - 1))
    return counts.tolist()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_perft(depth):
    """The counts are cshogi's."""
    cases = [case for case in _PERFT if len(case["perft"]) >= depth and case["perft"][depth - 1] < 200_000]
    assert perft([case["sfen"] for case in cases], depth) == [case["perft"][depth - 1] for case in cases]


@pytest.mark.slow
def test_larger_perft():
    for name, depth in (("midgame drops", 3), ("start", 4), ("max-593", 3)):
        case = next(case for case in _PERFT if case["name"] == name)
        assert perft([case["sfen"]], depth, 2048) == [case["perft"][depth - 1]]


@pytest.mark.record
@pytest.mark.parametrize("depth", [4, 5])
def test_all_perft(depth):
    """Prints the counts: run with -s."""
    for case in _PERFT:
        if len(case["perft"]) >= depth:
            assert perft([case["sfen"]], depth, 2048) == [case["perft"][depth - 1]]
            print(f"{case['name']}: perft {depth} is {case['perft'][depth - 1]}", flush=True)


@functools.cache
def _compiled(game=_GAME):
    return jax.jit(game.step), jax.jit(game.legal_action_mask), jax.jit(game.observe)


def _replay(words, text=_START, game=_GAME):
    """Returns the state after moves, each of which must be legal."""
    step, mask, _ = _compiled(game)
    state = game.parse_position(text)
    for word in words.split():
        action = game.parse_move(state, word)
        assert mask(state)[action], word
        state = step(state, jnp.int32(action))
    return state


def _legal_names(text):
    state = _GAME.parse_position(text)
    return {_GAME.move_name(state, action) for action in np.flatnonzero(_compiled()[1](state)).tolist()}


@pytest.mark.parametrize("partitionable", [False, True])
def test_fourfold_repetition(partitionable):
    """Neither the PRNG's setting nor who moves first in the cycle matters."""
    with jax.threefry_partitionable(partitionable):
        step, mask, _ = _compiled()
        state = _GAME.init(jax.random.key(0))
        for word in ("2h3h 8b7b 3h2h 7b8b " * 3).split():
            assert not _GAME.terminated(state)
            action = _GAME.parse_move(state, word)
            assert mask(state)[action]
            state = step(state, jnp.int32(action))
        assert int(state.ply) == 12
        assert int(state.result) == DRAWN
        assert _GAME.terminated(state) and not _GAME.truncated(state)
        assert _GAME.returns(state).tolist() == [0, 0]
        assert not mask(state).any()


@pytest.mark.parametrize(
    ("text", "words", "plies", "result", "returns"),
    [
        (_KING_AND_ROOK, "1i1a 9a9b 1a1b 9b9a" + " 1b1a 9a9b 1a1b 9b9a" * 9, 13, WON, [-1, 1]),
        (_KING_AND_ROOK, "1i1h 9a8a 1h1a 8a8b 1a1b 8b8a" + " 1b1a 8a8b 1a1b 8b8a" * 9, 15, WON, [-1, 1]),
        # One of the rook's two moves is quiet: a draw.
        ("k8/8R/9/9/9/9/9/9/K8 b - 1", "1b1c 9a9b 1c1b 9b9a " * 3, 12, DRAWN, [0, 0]),
        # White checks, and makes the last move.
        ("k7r/9/9/9/9/9/9/9/K8 w - 2", "1a1i 9i9h 1i1h 9h9i" + " 1h1i 9i9h 1i1h 9h9i" * 9, 13, WON, [1, -1]),
        # White checks, and Black makes the last move.
        ("k8/9/9/9/9/9/9/K8/8r w - 2", "1i1h 9h9i 1h1i 9i9h " * 3, 12, LOST, [1, -1]),
    ],
)
def test_perpetual_check_loses(text, words, plies, result, returns):
    step, mask, _ = _compiled()
    state, line = _GAME.parse_position(text), Line(*sfen.parse(text)[:1])
    for word in words.split():
        if _GAME.terminated(state):
            break
        action = _GAME.parse_move(state, word)
        assert mask(state)[action], word
        state = step(state, jnp.int32(action))
        line.play(usi.parse_move(word))
        assert bool(_GAME.terminated(state)) == (line.outcome() is not None)
    assert _GAME.terminated(state)
    assert len(line.checks) == plies
    assert _GAME.returns(state).tolist() == returns
    assert int(state.result) == result


@pytest.mark.parametrize(
    ("text", "number", "absent", "present"),
    [
        ("lnspkpsnl/7b1/ppppGpppp/9/9/9/PPPP1PPPP/1B5R1/LNSGKGSNL b P 1", 40, {"P*5b"}, set()),
        ("lnsgkgsnl/7b1/ppppppppp/9/9/9/PPPP1PPPP/1B5R1/LNSGKGSNL b P 1", 35, set(), {"P*5b"}),
        ("8k/9/7L1/7N1/9/9/9/9/8K b P 1", 76, {"P*1b"}, {"P*1c"}),
        ("8k/9/7LP/7N1/9/9/9/9/8K b - 1", 10, set(), {"1c1b+", "1c1b"}),
        # Pawns and lances may not stop on the last rank, knights not on the last two.
        ("9/1P1L5/5N3/9/9/9/9/9/k7K b - 1", None, {"8b8a", "6b6a", "4c3a"}, {"8b8a+", "6b6a+", "4c3a+"}),
        ("9/9/9/9/9/9/9/9/k7K b PLN 1", None, {"P*5a", "L*5a", "N*5a", "N*5b"}, {"P*5b", "L*5b", "N*5c"}),
        # A piece that leaves the zone may promote; gold and promoted pieces cannot.
        ("9/9/4S4/9/9/9/9/9/k7K b - 1", None, set(), {"5c4d+", "5c4d", "5c4b+"}),
        ("9/9/4G4/9/9/9/9/9/k7K b - 1", None, {"5c5b+"}, {"5c5b"}),
        # Two pawns of one side on a file; a promoted one does not count.
        ("9/4P4/9/4+P4/9/9/9/9/k7K b P 1", None, {"P*5c"}, {"P*4c"}),
        ("9/9/9/4+P4/9/9/9/9/k7K b P 1", None, set(), {"P*5c"}),
        # The king alone moves in double check; a pinned piece stays on its line.
        ("4r4/9/9/9/b8/9/9/9/4K4 b G 1", None, {"G*5e", "G*6h", "5i5h"}, {"5i4i"}),
        ("4r4/9/9/9/9/9/9/4G4/4K4 b G 1", None, {"5h4h"}, {"5h5g", "G*5e", "5i6i"}),
        ("9/9/9/9/1b7/9/3P5/4r4/4K4 b R 1", None, {"6g6f", "R*5e"}, {"5i5h"}),
    ],
)
def test_drops_promotions_and_pins(text, number, absent, present):
    names = _legal_names(text)
    assert number is None or len(names) == number
    assert not names & absent
    assert names >= present
    assert names == {move.usi() for move in shogi.Board(text).legal_moves}


def test_who_has_no_move_loses_in_check_or_not():
    step, _, _ = _compiled()
    state = _replay("1c1b+", "8k/9/7LP/7N1/9/9/9/9/8K b - 1")
    assert int(state.result) == LOST and _GAME.returns(state).tolist() == [1, -1]
    stuck = _replay("P*9e", "8k/9/7L1/7N1/9/9/9/9/8K b P 1")
    assert int(stuck.result) == LOST and _GAME.returns(stuck).tolist() == [1, -1]
    assert not sfen.parse("8k/9/7L1/7N1/P8/9/9/9/8K w - 2").position.in_check()
    after = step(stuck, jnp.int32(5692))
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(stuck), strict=True))
    assert _GAME.terminated(_GAME.parse_position("8k/9/7L1/7N1/P8/9/9/9/8K w - 2"))


def test_593_moves():
    state = _GAME.parse_position("R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1")
    slots = np.asarray(jax.jit(_GAME.legal_actions)(state))
    assert (slots >= 0).all()
    assert slots.tolist() == np.flatnonzero(_compiled()[1](state)).tolist()


def test_moves_go_on_where_the_game_is_over():
    state = _replay("2h3h 8b7b 3h2h 7b8b " * 3)
    assert _GAME.terminated(state)
    assert jax.jit(_GAME.moves)(state).sum() == 30


def test_a_game_of_512_plies_is_a_draw():
    text = _START.replace(" 1", " 511")
    assert not _GAME.terminated(_replay("7g7f", text))
    state = _replay("7g7f 3c3d", text)
    assert int(state.ply) == 512
    assert _GAME.terminated(state) and not _GAME.truncated(state)
    assert _GAME.returns(state).tolist() == [0, 0]
    # Mate comes first there too.
    mated = _replay("1c1b+", "8k/9/7LP/7N1/9/9/9/9/8K b - 512")
    assert int(mated.ply) == 512 and _GAME.returns(mated).tolist() == [1, -1]


def test_a_limit_of_the_users_is_no_result():
    game = Shogi(max_plies=3)
    state = _replay("7g7f 3c3d 8h2b+", game=game)
    assert game.terminated(state) and game.truncated(state)
    assert not _compiled(game)[1](state).any()
    assert game.returns(state).tolist() == [0, 0]


def _expected_planes(line):
    """Returns float32[9, 9, 362] of what the player to move sees, from whole positions."""
    mover = line.position.turn
    planes = []
    for ago in range(8):
        if ago >= len(line.positions):
            planes += [np.zeros((9, 9))] * 45
            continue
        earlier = line.positions[: len(line.positions) - ago]
        position = earlier[-1]
        board = np.array(position.board).reshape(9, 9)
        if mover:
            board = -board[::-1, ::-1]
        planes += [board == sign * kind for sign in (1, -1) for kind in range(1, len(KINDS))]
        times = earlier.count(position)
        planes += [np.full((9, 9), times == number) for number in (1, 2, 3)]
        for player in (mover, 1 - mover):
            shares = zip(position.hands[player], (18, 4, 4, 4, 4, 2, 2), strict=True)
            planes += [np.full((9, 9), number / most) for number, most in shares]
    planes += [np.full((9, 9), mover), np.full((9, 9), line.ply / 512)]
    return np.stack(planes, -1).astype(np.float32)


@pytest.mark.parametrize("text", [_START, STARTS[5], _KING_AND_ROOK])
def test_planes(text):
    state, line, draw = _GAME.parse_position(text), Line(*sfen.parse(text)[:1]), random.Random(3)
    step, _, observe = _compiled()
    for _ in range(40):
        assert np.allclose(observe(state), _expected_planes(line), atol=1e-6)
        if line.outcome():
            break
        move = draw.choice(sorted(line.legal_moves(), key=usi.write_move)[:12])
        state = step(state, jnp.int32(action_of(move, line.position.turn)))
        line.play(move)
    assert len(line.checks) > 10


def test_planes_of_the_start():
    planes = np.asarray(_compiled()[2](_GAME.init(jax.random.key(0))))
    sums = planes.sum((0, 1)).tolist()
    assert sums[:28] == [9, 2, 2, 2, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0] * 2
    assert sums[28:31] == [81, 0, 0]
    assert not any(sums[31:])
    assert planes[8, 4, 7] == planes[0, 4, 21] == 1  # the kings: mine below
    assert planes[7, 1, 5] == planes[7, 7, 6] == 1  # bishop on 8h, rook on 2h


def test_a_position_from_text_has_no_past():
    planes = np.asarray(_compiled()[2](_GAME.parse_position(STARTS[4].replace(" 1", " 77"))))
    assert not planes[..., 45:360].any()
    assert (planes[..., 28] == 1).all()
    assert (planes[..., 361] == np.float32(76 / 512)).all()


def _mirrored(text):
    board, *rest = text.split()
    return " ".join(["/".join("".join(re.findall(r"\+?.", rank)[::-1]) for rank in board.split("/")), *rest])


def test_left_and_right_may_be_exchanged():
    mirror = _GAME.symmetries[1]
    _, mask, observe = _compiled()
    for text in STARTS:
        state, mirrored = _GAME.parse_position(text), _GAME.parse_position(_mirrored(text))
        assert (np.asarray(mask(mirrored)) == np.asarray(mask(state))[mirror.permutation]).all()
        assert (observe(mirrored) == mirror.observation(observe(state))).all()


def test_positions_are_read_and_shown():
    text = STARTS[5]
    state = _GAME.parse_position(text)
    assert _GAME.position(state) == sfen.parse(text).position
    shown = _GAME.render(_replay("7g7f 3c3d 8h2b+ 3a2b"))
    assert "White (moves down) holds B" in shown
    assert "Black (moves up) holds B" in shown
    assert "  .  B  .  .  .  .  .  R  .  h" not in shown and shown.endswith("Black to move")
    in_check = _GAME.render(_GAME.parse_position("k7R/9/9/9/9/9/9/9/K8 w - 1"))
    assert in_check.endswith("White to move, in check") and "holds nothing" in in_check


def test_names_are_usi_in_the_colours_own_frame():
    state = _GAME.init(jax.random.key(0))
    assert (_GAME.parse_move(state, "7g7f"), _GAME.move_name(state, 7784)) == (7784, "7g7f")
    after = _replay("7g7f")
    assert (_GAME.parse_move(after, "3c3d"), _GAME.move_name(after, 7784)) == (7784, "3c3d")
    assert _GAME.parse_action("7G7F") == 7784
    assert _GAME.action_name(0) == "off(0)"
    with pytest.raises(ValueError, match="move: got '7g4a', expected a line or a knight's jump"):
        _GAME.parse_move(state, "7g4a")
    names = [_GAME.action_name(action) for action in range(NUM_ACTIONS)]
    assert len(set(names)) == NUM_ACTIONS
    assert all(_GAME.parse_action(name) == action for action, name in enumerate(names) if move_of(action, 0))


def test_hand_counts_fit_their_bits():
    text = "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1"
    state = _GAME.parse_position(text)
    assert _GAME.position(state).hands[0] == (18, 4, 4, 4, 4, 2, 2)
    assert len(HAND) == 7
    dropped = _replay("P*5h", text)
    assert _GAME.position(dropped).hands == ((17, 4, 4, 4, 4, 2, 2), (0,) * 7)
