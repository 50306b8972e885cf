"""Chess on devices: perft, python-chess at every ply of random games, directed cases of each rule, planes by a twin."""

import collections
import dataclasses
import functools
import json
from pathlib import Path
from typing import NamedTuple

import chess
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.chess.actions import NUM_ACTIONS, action_of, move_of
from envs.chess.fen import START_FEN, parse_fen, write_fen
from envs.chess.game import Chess
from envs.chess.position import START, Line, Move, parse_uci
from envs.chess.state import CODES, DRAW, MATE, ChessState, hash_of, position_of

_DATA = Path(__file__).parents[1] / "data"
_PERFT, _OUTCOMES, _LEGALITY = (
    json.loads((_DATA / f"chess_{name}.json").read_text()) for name in ("perft", "outcomes", "legality")
)
_GAME = Chess()
_MOST_MOVES = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"
# Castling; takes of a pawn on the row where it may be en passant; two steps of a pawn.
_RARE = [60 * 73 + 15, 60 * 73 + 43, *(at * 73 + plane for at in range(24, 32) for plane in (7, 49))]
_RARE += [at * 73 + 1 for at in range(48, 56)]
_BATCH = 256  # one program serves all tests

# Positions in which castling, en passant, promotion, pins and checks are common, and some with few moves, which repeat.
STARTS = [
    *[START_FEN] * 4,
    *(case["fen"] for case in _PERFT if case["name"] != "max-moves-218"),
    "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
    "r3k2r/p6p/8/8/8/8/P6P/R3K2R b KQkq - 0 1",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 w - - 0 1",
    "rnb1kbnr/8/pppppppp/8/8/PPPPPPPP/8/RNB1KBNR b KQkq - 0 1",
    "8/8/4k3/8/8/3K4/8/B1B1n3 w - - 90 60",
    "8/8/8/3r1k2/8/8/1R6/K7 b - - 0 1",
    "4k3/1p1p1p1p/8/P1P1P1P1/p1p1p1p1/8/1P1P1P1P/4K3 w - - 0 1",
    "r3k2r/1p1p1p1p/8/P1P1P1P1/p1p1p1p1/8/1P1P1P1P/R3K2R b KQkq - 0 1",
    "4k3/8/8/2pPp3/8/8/8/4K3 w - c6 0 1",
    "bnrbnkqr/pppppppp/8/8/8/8/PPPPPPPP/BNRBNKQR w - - 0 250",
]


class Seen(NamedTuple):
    """What the game says about B positions."""

    slots: np.ndarray  # int16[B, K]
    mask: np.ndarray  # bool[B, A]
    moves: np.ndarray  # bool[B, A], before draw rules
    observation: np.ndarray  # float32[B, 8, 8, F]
    terminated: np.ndarray  # bool[B]
    truncated: np.ndarray  # bool[B]
    returns: np.ndarray  # float32[B, 2]
    to_move: np.ndarray  # int32[B]


def _advance_one(game, state, action, revived):
    state = dataclasses.replace(state, end=jnp.where(revived, jnp.int8(0), state.end))
    moved = game.step(state, action)
    state = jax.tree.map(lambda old, new: jnp.where(action < 0, old, new), state, moved)
    return state, Seen(
        game.legal_actions(state),
        game.legal_action_mask(state),
        game.moves(state),
        game.observe(state),
        game.terminated(state),
        game.truncated(state),
        game.returns(state),
        game.to_move(state),
    )


@functools.cache
def _program(game):
    """Returns the one compiled program of these tests, of _BATCH positions; an action of -1 changes nothing."""
    return jax.jit(jax.vmap(functools.partial(_advance_one, game), in_axes=(0, 0, None)))


def _advance(states, actions, revived=False, game=_GAME):
    """Returns the positions after the actions, and what is seen there.

    Args:
      states: numpy, [B, ...] with B up to _BATCH.
      revived: whether games that are drawn go on, as perft counts.
    """
    number = len(actions)

    def padded(leaf):
        return np.concatenate([leaf, np.repeat(leaf[:1], _BATCH - number, 0)]) if number < _BATCH else leaf

    actions = padded(np.asarray(actions, np.int32))
    found = _program(game)(jax.tree.map(padded, states), actions, np.bool_(revived))
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:number], found)


def _stack(states):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


@functools.cache
def _start(game, fen):
    return jax.device_get(game.parse_position(fen))


class Play(NamedTuple):
    """B games of T plies; a game that is over stays as it is."""

    actions: np.ndarray  # int32[T, B]
    slots: np.ndarray  # int16[T, B, K]
    end: np.ndarray  # int8[T, B]
    occurrences: np.ndarray  # uint32[T, B], of the position on the board
    returns: np.ndarray  # float32[T, B, 2]


def random_play(fens, plies, seed):
    """Plays random games from positions given as FEN, and requires mask and slots to agree."""
    states = _stack([_start(_GAME, fen) for fen in fens])
    draws, lanes = np.random.default_rng(seed), np.arange(len(fens))
    actions, parts = np.full(len(fens), -1), []
    for _ in range(plies):
        states, seen = _advance(states, actions)
        numbers = (seen.slots >= 0).sum(1)
        assert (seen.mask.sum(1) == numbers).all()
        assert (np.take_along_axis(seen.mask, np.maximum(seen.slots, 0).astype(int), 1) | (seen.slots < 0)).all()
        # One lane in four plays one of its first two moves: pieces go to and fro, and positions come again. Another
        # one likes what is rare.
        choices = np.where(lanes % 4 == 0, np.minimum(numbers, 2), numbers)
        liked = np.isin(seen.slots, _RARE) & (lanes % 4 == 1)[:, None]
        drawn = draws.uniform(size=seen.slots.shape) + 0.5 * liked
        chosen = np.argmax(np.where(np.arange(drawn.shape[1]) < choices[:, None], drawn, -1), 1)
        actions = np.maximum(seen.slots[lanes, chosen], 0)
        parts.append((actions, seen.slots, states.end, states.occurrences & 3, seen.returns))
    return Play(*(np.stack(column) for column in zip(*parts, strict=True)))


def _referee_end(board, times):
    if not any(board.generate_legal_moves()):
        return MATE if board.is_check() else DRAW
    drawn = times >= 3 or board.halfmove_clock >= 100 or board.is_insufficient_material() or board.ply() >= 512
    return DRAW if drawn else 0


def _uci_action(move, turn):
    promotion = chess.piece_symbol(move.promotion) if move.promotion else ""
    return _action(move.from_square, move.to_square, promotion, 0 if turn else 1)


@functools.cache
def _action(source, target, promotion, turn):
    return action_of(Move(source ^ 56, target ^ 56, promotion), turn)  # python-chess counts rows from below


def compare_with_python_chess(play, fens):
    """Requires equal legal moves, ends and repetition counts at every ply; returns the positions and what was seen."""
    positions, seen = 0, collections.Counter()
    for lane, fen in enumerate(fens):
        board, times = chess.Board(fen), collections.Counter()
        for ply in range(len(play.actions)):
            key = board._transposition_key()
            times[key] += 1
            moves = {_uci_action(move, board.turn): move for move in board.legal_moves}
            end = _referee_end(board, times[key])
            slots = play.slots[ply, lane]
            assert slots[slots >= 0].tolist() == ([] if end else sorted(moves)), (fen, ply, board.fen())
            assert play.occurrences[ply, lane] == times[key], (fen, ply, board.fen())
            assert play.end[ply, lane] == end, (fen, ply, board.fen())
            winner = 1 if board.turn else 0
            result = [1 - 2 * winner, 2 * winner - 1] if end == MATE else [0, 0]
            assert play.returns[ply, lane].tolist() == result
            positions += 1
            seen[end, times[key] >= 3, len(moves) == 0] += 1
            if end:
                break
            move = moves[int(play.actions[ply, lane])]
            seen["en passant"] += board.is_en_passant(move)
            seen["castling"] += board.is_castling(move)
            seen["promotion"] += move.promotion is not None
            board.push(move)
    return positions, seen


def _fens(number):
    return [STARTS[index % len(STARTS)] for index in range(number)]


def test_random_games_equal_python_chess():
    fens = _fens(_BATCH)
    positions, seen = compare_with_python_chess(random_play(fens, 140, seed=0), fens)
    assert positions >= 20_000
    assert min(seen["en passant"], seen["castling"], seen["promotion"]) > 20
    # Mate, stalemate, threefold repetition, and the other draws.
    kinds = ((MATE, False, True), (DRAW, False, True), (DRAW, True, False), (DRAW, False, False))
    assert min(seen[kind] for kind in kinds) > 0


@pytest.mark.slow
def test_more_random_games_equal_python_chess():
    fens = _fens(_BATCH)
    assert compare_with_python_chess(random_play(fens, 320, seed=1), fens)[0] > 30_000


@pytest.mark.record
def test_a_million_positions():
    """Prints how many positions were equal: run with -s."""
    fens, positions, seed = _fens(_BATCH), 0, 1000
    while positions < 1_000_000:
        positions += compare_with_python_chess(random_play(fens, 300, seed), fens)[0]
        seed += 1
        print(f"chess: {positions} positions equal", flush=True)


def perft(fens, depth):
    """Returns for each position the number of move sequences, without draw rules."""
    counts = np.zeros(len(fens), np.int64)
    start, seen = _advance(_stack([_start(_GAME, fen) for fen in fens]), np.full(len(fens), -1))
    # Depth first in batches, so that memory stays small.
    stack = [(start, seen.moves, np.arange(len(fens)), depth)]
    while stack:
        states, moves, origins, left = stack.pop()
        if left == 1:
            np.add.at(counts, origins, moves.sum(1))
            continue
        parents, actions = np.nonzero(moves)
        for first in range(0, len(actions), _BATCH):
            chosen = parents[first : first + _BATCH]
            given = jax.tree.map(lambda leaf, chosen=chosen: leaf[chosen], states)
            after, seen = _advance(given, actions[first : first + _BATCH], revived=True)
            stack.append((after, seen.moves, origins[chosen], left - 1))
    return counts.tolist()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_perft(depth):
    assert perft([case["fen"] for case in _PERFT], depth) == [case["perft"][depth - 1] for case in _PERFT]


@pytest.mark.slow
def test_perft_to_depth_4():
    cases = [case for case in _PERFT if len(case["perft"]) > 3 and case["perft"][3] < 100_000]
    assert perft([case["fen"] for case in cases], 4) == [case["perft"][3] for case in cases]


@pytest.mark.record
@pytest.mark.parametrize("depth", [4, 5])
def test_all_perft(depth):
    """Prints each count: run with -s."""
    for case in _PERFT:
        if len(case["perft"]) >= depth:
            assert perft([case["fen"]], depth) == [case["perft"][depth - 1]]
            print(f"{case['name']}: perft {depth} is {case['perft'][depth - 1]}", flush=True)


class Reached(NamedTuple):
    """One position and what is seen there."""

    state: ChessState
    seen: Seen


def _look(state, action=-1, game=_GAME):
    states, seen = _advance(jax.tree.map(lambda leaf: np.asarray(leaf)[None], state), [action], game=game)
    return Reached(*jax.tree.map(lambda leaf: leaf[0], (states, seen)))


def _replay(words, fen=START_FEN):
    """Returns what is reached by moves, each of which must be legal."""
    reached = _look(_start(_GAME, fen))
    for word in words.split() if isinstance(words, str) else words:
        action = _GAME.parse_move(reached.state, word)
        assert reached.seen.mask[action], word
        reached = _look(reached.state, action)
    return reached


@pytest.mark.parametrize("case", _OUTCOMES, ids=lambda case: case["name"])
def test_given_outcomes(case):
    state, seen = _replay(case["moves"], case["fen"])
    assert write_fen(position_of(state)) == case["final_fen"]
    assert seen.moves.sum() == case["legal_at_end"]
    over = case["python_chess"] is not None
    assert seen.terminated == over
    assert not seen.truncated
    assert seen.mask.sum() == (0 if over else case["legal_at_end"])
    assert seen.returns[seen.to_move] == (case["python_chess"][1] if over else 0)
    if over:
        assert seen.returns.tolist() == case["open_spiel"][1][::-1]  # there Black is player 0


@pytest.mark.parametrize("case", _LEGALITY, ids=lambda case: case["name"])
def test_given_legality(case):
    state, seen = _replay("", case["fen"])
    assert seen.mask[_GAME.parse_move(state, case["move"])] == case["legal"]
    assert seen.moves.sum() == case["count"]


@pytest.mark.parametrize("partitionable", [False, True])
@pytest.mark.parametrize(
    ("fen", "words", "plies"),
    [
        (START_FEN, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8", 8),
        # The square that the pawn passed over is of no use to anybody: the position after 1. e4 comes again.
        (START_FEN, "e2e4 g8f6 g1f3 f6g8 f3g1 g8f6 g1f3 f6g8 f3g1", 9),
        (START_FEN, "e2e4 e7e5 g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8", 10),
        # Here it could be used, once.
        ("4k3/8/8/8/3p4/8/4P3/4K1N1 w - - 0 1", "e2e4 e8e7 g1f3 e7e8 f3g1 e8e7 g1f3 e7e8 f3g1 e8e7", 10),
        # Here the pawn beside it is pinned and cannot use it.
        ("3k4/8/8/8/3p4/8/4P3/3RK1N1 w - - 0 1", "e2e4 d8e7 g1f3 e7d8 f3g1 d8e7 g1f3 e7d8 f3g1", 9),
    ],
)
def test_threefold_repetition(fen, words, plies, partitionable):
    with jax.threefry_partitionable(partitionable):
        state = jax.device_get(_GAME.init(jax.random.key(0)) if fen == START_FEN else _GAME.parse_position(fen))
        reached = _look(state)
        for word in words.split():
            assert not reached.seen.terminated
            action = _GAME.parse_move(reached.state, word)
            assert reached.seen.mask[action]
            reached = _look(reached.state, action)
    assert reached.state.ply == plies
    assert reached.state.end == DRAW
    assert reached.seen.returns.tolist() == [0, 0]


def test_rights_that_are_lost_make_another_position():
    fen = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
    words = "h1g1 h8g8 g1h1 g8h8 h1g1 h8g8 g1h1 g8h8 h1g1".split()
    assert not _replay(words, fen).seen.terminated
    assert _replay([*words, "h8g8"], fen).seen.terminated


def test_a_capture_forgets_what_was_before():
    state, seen = _replay("e2e4 d7d5 g1f3 g8f6 f3g1 f6g8 e4d5 d8d5 g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1")
    assert state.occurrences & 3 == 2
    assert not seen.terminated


def test_mate_on_the_hundredth_half_move_wins():
    fen = "7k/8/5KQ1/8/8/8/8/8 w - - 99 80"
    assert _replay("g6g7", fen).seen.returns.tolist() == [1, -1]
    drawn = _replay("g6g4", fen)
    assert drawn.seen.moves.any()
    assert drawn.seen.terminated
    assert drawn.seen.returns.tolist() == [0, 0]


def test_hashes_tell_boards_apart():
    """All boards of one and of two pieces, which differ in few bits: hashes that mix words badly meet here."""
    pieces = np.zeros((12, 64, 2, 4), np.uint32)
    for kind in range(12):
        for at in range(64):
            pieces[kind, at, at // 32] = np.array([*CODES[kind % 6], kind >= 6], np.uint32) << np.uint32(at % 32)
    pieces = pieces.reshape(-1, 2, 4)
    first, second = np.triu_indices(len(pieces), 1)
    apart = first % 64 != second % 64
    pairs = pieces[first[apart]] | pieces[second[apart]]
    boards = np.concatenate([np.zeros_like(pieces[:1]), pieces, pairs])[..., None]
    rest = (jnp.uint8(0), jnp.int8(-1), jnp.int16(0))
    hashes = np.asarray(jax.jit(jax.vmap(lambda board: hash_of(board, *rest)))(boards)).astype(np.uint64)
    assert len(boards) == 1 + 768 + 64 * 63 * 144 // 2
    assert len(np.unique(hashes[:, 0] << np.uint64(32) | hashes[:, 1])) == len(boards)
    assert min(len(np.unique(word)) for word in hashes.T) > len(boards) - 40  # by chance 10 pairs of 32 bits are alike


def test_218_moves():
    seen = _replay("", _MOST_MOVES).seen
    assert (seen.slots >= 0).all()
    assert seen.slots.tolist() == np.flatnonzero(seen.mask).tolist()


@pytest.mark.parametrize(
    ("fen", "dead"),
    [
        ("8/8/4k3/8/8/3K4/8/8 w - - 0 1", True),
        ("8/8/4k3/8/8/3K4/8/1N6 b - - 0 1", True),
        ("8/8/4kn2/8/8/3K4/8/8 b - - 0 1", True),
        ("8/8/4kb2/8/8/3K4/8/8 w - - 0 1", True),
        ("8/8/4kb2/8/8/3K4/8/6B1 w - - 0 1", True),  # both on dark squares
        ("8/8/4kb2/8/8/3K4/8/5B2 w - - 0 1", False),
        ("8/8/4k3/8/8/3K4/8/1NN5 w - - 0 1", False),
        ("8/8/4kn2/8/8/3K4/8/1N6 w - - 0 1", False),
        ("8/8/4kn2/8/8/3K4/8/1B6 w - - 0 1", False),
        ("8/8/4k3/p7/8/3K4/8/8 w - - 0 1", False),
        ("8/8/4k3/8/8/3K4/8/1R6 b - - 0 1", False),
    ],
)
def test_dead_positions(fen, dead):
    assert _replay("", fen).seen.terminated == dead == chess.Board(fen).is_insufficient_material()


def test_a_game_of_512_plies_is_a_draw():
    fen = START_FEN.replace("0 1", "0 256")
    state, seen = _replay("g1f3", fen)
    assert (state.ply, seen.terminated.item()) == (511, False)
    state, seen = _replay("g1f3 g8f6", fen)
    assert (state.ply, state.end, seen.truncated.item()) == (512, DRAW, False)
    # Mate comes first there too.
    mated = _replay("f2f3 e7e5 g2g4 d8h4", START_FEN.replace("0 1", "0 255"))
    assert (mated.state.ply, mated.state.end) == (512, MATE)


def test_a_limit_of_the_users_is_no_result():
    state = _replay("e2e4 e7e5 g1f3").state
    game = Chess(max_plies=3)
    assert bool(game.terminated(state)) and bool(game.truncated(state))
    assert game.returns(state).tolist() == [0, 0]
    assert not Chess(max_plies=4).terminated(state)
    mate = _replay("f2f3 e7e5 g2g4 d8h4").state
    assert not Chess(max_plies=4).truncated(mate)


@pytest.mark.parametrize(
    ("fen", "move", "legal"),
    [
        # Two pawns leave the row at once: the king behind them is open to the rook.
        ("8/8/8/K2pP2r/8/8/8/4k3 w - d6 0 1", "e5d6", False),
        ("8/8/8/KPpP3r/8/8/8/4k3 w - c6 0 1", "b5c6", True),  # the other pawn stays
        ("8/8/8/KPpP3r/8/8/8/4k3 w - c6 0 1", "d5c6", True),
        ("8/8/8/KpP4r/8/8/8/4k3 w - b6 0 1", "c5b6", False),
        # The pawn that is taken stood between king and bishop; it gave check and no other move answers.
        ("8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1", "e4d3", True),
        ("4k3/8/8/b7/1pP5/8/3K4/8 b - c3 0 1", "b4c3", True),
        ("7k/8/8/3pP3/8/1b6/8/4K2r w - d6 0 1", "e5d6", False),  # in check by another piece
        ("4r2k/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", False),  # pinned on its file
        ("7k/8/8/3pP3/8/6K1/8/1b6 w - d6 0 1", "e5d6", True),
        ("b6k/8/8/3pP3/4K3/8/8/8 w - d6 0 1", "e5d6", False),  # the pawn that is taken stood between
        ("7b/6k1/8/4pP2/8/8/1K6/8 w - e6 0 1", "f5e6", True),
    ],
)
def test_en_passant(fen, move, legal):
    assert (chess.Move.from_uci(move) in chess.Board(fen).legal_moves) == legal
    state, seen = _replay("", fen)
    assert seen.mask[_GAME.parse_move(state, move)] == legal
    assert (parse_uci(move) in parse_fen(fen).legal_moves) == legal


@pytest.mark.parametrize(
    ("fen", "moves"),
    [
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1 e1c1"),
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8g8 e8c8"),
        ("4k3/8/8/8/8/8/1r6/R3K3 w Q - 0 1", "e1c1"),  # the rook's way is attacked, not the king's
        ("r3k3/8/8/8/8/8/8/R3K3 w Qq - 0 1", "e1c1"),
        ("4k3/8/8/8/8/8/3r4/R3K2R w KQ - 0 1", "e1g1"),
        ("4k3/8/8/8/8/5n2/8/R3K2R w KQ - 0 1", ""),
        ("4k3/8/8/8/8/8/6p1/R3K2R w KQ - 0 1", "e1c1"),
        ("4k3/8/8/8/8/8/8/RN2K1NR w KQ - 0 1", ""),
        ("4k3/8/8/8/8/8/8/R3K2R w K - 0 1", "e1g1"),
    ],
)
def test_castling(fen, moves):
    state, seen = _replay("", fen)
    castles = ("e1g1", "e1c1") if " w " in fen else ("e8g8", "e8c8")
    found = [word for word in castles if seen.mask[_GAME.parse_move(state, word)]]
    assert found == moves.split()


def _expected_planes(line, history=8, rules=True):
    """Returns float32[F, 8, 8] of what the player to move sees, from whole positions."""
    mover = line.position.turn
    planes = []
    for ago in range(history):
        at = len(line.positions) - 1 - ago
        if at < 0:
            planes += [np.zeros((8, 8))] * (14 if rules else 12)
            continue
        position = line.positions[at]
        board = np.array(list(position.board)).reshape(8, 8)
        board = board[::-1] if mover else board
        letters = "PNBRQKpnbrqk" if mover == 0 else "pnbrqkPNBRQK"
        planes += [board == letter for letter in letters]
        if rules:
            earlier = [other.key for other in line.positions[: at + 1]].count(position.key)
            planes += [np.full((8, 8), earlier == times) for times in (1, 2)]
    position = line.position
    constants = [mover, position.ply / 512]
    if rules:
        mine, theirs = ("kq", "KQ") if mover else ("KQ", "kq")
        constants += [letter in position.castling for letter in mine + theirs] + [position.halfmoves / 100]
    return np.stack([*planes, *(np.full((8, 8), value) for value in constants)]).astype(np.float32)


def _check_planes(game, words):
    line, reached = Line(), _look(_start(game, START_FEN), game=game)
    for word in [*words, None]:
        seen = np.moveaxis(reached.seen.observation, -1, 0)
        np.testing.assert_allclose(seen, _expected_planes(line, game.history, game.rule_planes), atol=1e-6)
        if word is not None:
            move = parse_uci(word)
            action = action_of(move, line.position.turn)
            assert reached.seen.mask[action]
            assert move_of(action, position_of(reached.state)) == move
            reached = _look(reached.state, action, game)
            line.play(move)
            assert position_of(reached.state).key == line.position.key


_PLAYED = (
    "e2e4 d7d5 e4e5 f7f5 e5f6 g8f6 f1b5 c7c6 b5c6 b7c6 g1f3 d8b6 e1g1 b6b2 b1c3 b2a1 d1e2 a1c1 f1c1 e8f7 f3g5 f7g8 "
    "g5f3 f6h5 f3g5 h5f6 g5f3 f6h5 h2h4 e7e5 c3a4"
).split()


@pytest.mark.parametrize(
    "game",
    [_GAME, pytest.param(Chess(history=16, rule_planes=False), marks=pytest.mark.slow)]
    + [pytest.param(Chess(history=count), marks=pytest.mark.slow) for count in (1, 3, 16)],
    ids=lambda game: game.id,
)
def test_planes_are_those_of_the_twin(game):
    _check_planes(game, _PLAYED)


def test_planes_at_the_start():
    sums = _replay("").seen.observation.sum((0, 1))
    expected = {0: 8, 1: 2, 2: 2, 3: 2, 4: 1, 5: 1, 6: 8, 7: 2, 8: 2, 9: 2, 10: 1, 11: 1, 12: 64}
    expected |= dict.fromkeys(range(114, 118), 64)
    assert {plane: int(total) for plane, total in enumerate(sums) if total} == expected


def test_a_position_from_text_has_no_past():
    seen = _replay("", "8/8/8/4k3/8/8/4P3/4K3 w - - 0 1").seen.observation.sum((0, 1))
    assert seen[:14].tolist() == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 64, 0]
    assert not seen[14:112].any()
    state = _replay("e1d1 e5d5 d1e1 d5e5", "8/8/8/4k3/8/8/4P3/4K3 w - - 37 80").state
    assert state.occurrences & 3 == 2


def test_the_start_set_up_from_text_is_the_start():
    start, given = _GAME.init(jax.random.key(0)), _GAME.parse_position(START_FEN)
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(start), jax.tree.leaves(given), strict=True))
    assert position_of(start) == START


def test_text():
    state = _GAME.init(jax.random.key(0))
    assert _GAME.move_name(state, 3797) == "e2e4"
    assert _GAME.parse_move(state, "Nf3") == _GAME.parse_move(state, " g1f3 ") == 4589
    after = _replay("e2e4").state
    assert _GAME.move_name(after, 3797) == "e7e5"
    assert _GAME.parse_move(after, "Nf6") == 4589
    assert _GAME.render(after).splitlines() == [
        "8 r n b q k b n r",
        "7 p p p p p p p p",
        "6 . . . . . . . .",
        "5 . . . . . . . .",
        "4 . . . . P . . .",
        "3 . . . . . . . .",
        "2 P P P P . P P P",
        "1 R N B Q K B N R",
        "  a b c d e f g h",
        "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1",
    ]
    with pytest.raises(ValueError, match="move: got 'e2e9', expected"):
        _GAME.parse_move(state, "e2e9")
    with pytest.raises(ValueError, match="FEN: got 'nothing', expected four or six words"):
        _GAME.parse_position("nothing")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("chess,history=0", "chess: history: got 0, expected a whole number from 1 to 16"),
        ("chess,history=17", "chess: history: got 17, expected"),
        ("chess,rule_planes=1", "chess: rule_planes: got 1, expected true or false"),
    ],
)
def test_wrong_options(name, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name)


def test_names_and_shapes():
    assert envs.make("chess,history=8,rule_planes=true").id == "chess"
    assert envs.make("chess,history=1,rule_planes=false").observation_shape == (8, 8, 14)
    assert envs.make("chess").observation_shape == (8, 8, 119)
    names = [_GAME.action_name(action) for action in range(NUM_ACTIONS)]
    assert len(set(names)) == NUM_ACTIONS
    assert [_GAME.parse_action(name) for name in names] == list(range(NUM_ACTIONS))


def test_nothing_is_looked_up_by_index():
    """What an accelerator does badly: step, mask, slots and planes are passes over words and squares, but for a row."""
    states = _stack([_start(_GAME, START_FEN)] * _BATCH)
    text = _program(_GAME).lower(states, np.zeros(_BATCH, np.int32), np.bool_(False)).as_text()
    for word in ("scatter", "sort", "dynamic_slice", "dynamic_update_slice", "while"):
        assert f"stablehlo.{word}" not in text
    # One row of a table each time that legal moves are asked for: step, mask, slots, and moves.
    assert text.count('"stablehlo.gather"') <= 4
