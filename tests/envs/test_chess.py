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
from envs.chess.state import DRAW, MATE, position_of

_DATA = Path(__file__).parents[1] / "data"
_PERFT, _OUTCOMES, _LEGALITY = (
    json.loads((_DATA / f"chess_{name}.json").read_text()) for name in ("perft", "outcomes", "legality")
)
_GAME = Chess()
_MOST_MOVES = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"
_LANES = 64  # of all batches but the largest: one program serves all

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
    "4k3/8/8/2pPp3/8/8/8/4K3 w - c6 0 1",
    "bnrbnkqr/pppppppp/8/8/8/8/PPPPPPPP/BNRBNKQR w - - 0 250",
]


class Play(NamedTuple):
    """B games of T plies; a game that is over stays as it is."""

    actions: np.ndarray  # int32[T, B]
    slots: np.ndarray  # int16[T + 1, B, K]
    mask_agrees: np.ndarray  # bool[T + 1, B], the legal mask has just the slots
    end: np.ndarray  # int8[T + 1, B]
    occurrences: np.ndarray  # int32[T + 1, B], of the position on the board
    returns: np.ndarray  # float32[T + 1, B, 2]


@functools.cache
def _programs(game):
    def look(state):
        slots, mask = game.legal_actions(state), game.legal_action_mask(state)
        marked = jnp.zeros(NUM_ACTIONS + 1, bool).at[slots.astype(jnp.int32)].set(True)[:NUM_ACTIONS]
        return slots, (marked == mask).all(), state.end, (state.occurrences & 3).astype(jnp.int32), game.returns(state)

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
def _start(game, fen):
    return jax.device_get(game.parse_position(fen))


def random_play(game, fens, plies, seed):
    """Plays random games from positions given as FEN; `plies` is a multiple of 64."""
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *(_start(game, fen) for fen in fens))
    draws = np.random.default_rng(seed)
    parts = []
    for _ in range(0, plies, 64):
        drawn = draws.uniform(size=(64, len(fens))).astype(np.float32)
        states, actions, seen = jax.device_get(_programs(game)(states, drawn))
        parts.append((actions, *seen))
    return Play(*(np.concatenate(column) for column in zip(*parts, strict=True)))


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
    assert play.mask_agrees.all()
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
    fens, positions, seen = _fens(_LANES), 0, collections.Counter()
    for seed in range(3):
        compared, found = compare_with_python_chess(random_play(_GAME, fens, 256, seed), fens)
        positions, seen = positions + compared, seen + found
    assert positions >= 20_000
    assert min(seen["en passant"], seen["castling"], seen["promotion"]) > 20
    # Mate, stalemate, threefold repetition, and the other draws.
    assert min(seen[kind] for kind in ((MATE, False, True), (DRAW, False, True), (DRAW, True, False))) > 0
    assert seen[DRAW, False, False] > 0


@pytest.mark.record
def test_a_million_positions():
    """Prints how many positions were equal: run with -s."""
    fens, positions, seed = _fens(512), 0, 1000
    while positions < 1_000_000:
        positions += compare_with_python_chess(random_play(_GAME, fens, 256, seed), fens)[0]
        seed += 1
        print(f"chess: {positions} positions equal", flush=True)


@functools.cache
def _perft_programs(batch):
    del batch

    def step(state, action):
        # Perft goes on after draws.
        return _GAME.step(dataclasses.replace(state, end=jnp.int8(0)), action)

    return jax.jit(jax.vmap(step)), jax.jit(jax.vmap(_GAME.moves))


def perft(fens, depth, batch=256):
    """Returns for each position the number of move sequences, without draw rules."""
    step, moves = _perft_programs(batch)
    frontier = [
        (jax.tree.map(lambda *leaves: np.stack(leaves), *(_start(_GAME, fen) for fen in fens)), np.arange(len(fens)))
    ]
    counts = np.zeros(len(fens), np.int64)
    # Depth first in chunks, so that memory stays small.
    stack = [(*frontier[0], depth)]
    while stack:
        states, origins, left = stack.pop()
        if len(origins) > batch:
            rest = jax.tree.map(lambda leaf: leaf[batch:], states)
            stack.append((rest, origins[batch:], left))
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
    assert perft([case["fen"] for case in _PERFT], depth) == [case["perft"][depth - 1] for case in _PERFT]


@pytest.mark.slow
def test_perft_to_depth_4():
    cases = [case for case in _PERFT if len(case["perft"]) > 3 and case["perft"][3] < 500_000]
    assert perft([case["fen"] for case in cases], 4, 2048) == [case["perft"][3] for case in cases]


@pytest.mark.record
@pytest.mark.parametrize("depth", [4, 5])
def test_all_perft(depth):
    cases = [case for case in _PERFT if len(case["perft"]) >= depth]
    for case in cases:
        assert perft([case["fen"]], depth, 2048) == [case["perft"][depth - 1]]
        print(f"{case['name']}: perft {depth} is {case['perft'][depth - 1]}", flush=True)


@functools.cache
def _compiled(game=_GAME):
    return jax.jit(game.step), jax.jit(game.legal_action_mask), jax.jit(game.observe)


def _replay(words, fen=START_FEN, game=_GAME):
    """Returns the state after moves, each of which must be legal."""
    step, mask, _ = _compiled(game)
    state = game.parse_position(fen)
    for word in words.split() if isinstance(words, str) else words:
        action = game.parse_move(state, word)
        assert mask(state)[action], word
        state = step(state, jnp.int32(action))
    return state


@pytest.mark.parametrize("case", _OUTCOMES, ids=lambda case: case["name"])
def test_given_outcomes(case):
    state = _replay(case["moves"], case["fen"])
    assert write_fen(position_of(state)) == case["final_fen"]
    assert int(_GAME.moves(state).sum()) == case["legal_at_end"]
    over = case["python_chess"] is not None
    assert bool(_GAME.terminated(state)) == over
    assert not _GAME.truncated(state)
    assert int(_compiled()[1](state).sum()) == (0 if over else case["legal_at_end"])
    mover = int(_GAME.to_move(state))
    assert _GAME.returns(state)[mover] == (case["python_chess"][1] if over else 0)
    if over:
        assert _GAME.returns(state).tolist() == case["open_spiel"][1][::-1]  # there Black is player 0


@pytest.mark.parametrize("case", _LEGALITY, ids=lambda case: case["name"])
def test_given_legality(case):
    state = _GAME.parse_position(case["fen"])
    mask = _compiled()[1](state)
    assert bool(mask[_GAME.parse_move(state, case["move"])]) == case["legal"]
    assert int(_GAME.moves(state).sum()) == case["count"]


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
    ],
)
def test_threefold_repetition(fen, words, plies, partitionable):
    with jax.threefry_partitionable(partitionable):
        state = _GAME.init(jax.random.key(0)) if fen == START_FEN else _GAME.parse_position(fen)
        step, mask, _ = _compiled()
        for word in words.split():
            assert not _GAME.terminated(state)
            action = _GAME.parse_move(state, word)
            assert mask(state)[action]
            state = step(state, jnp.int32(action))
        assert int(state.ply) == plies
        assert int(state.end) == DRAW
        assert _GAME.returns(state).tolist() == [0, 0]


def test_rights_that_are_lost_make_another_position():
    fen = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
    words = "h1g1 h8g8 g1h1 g8h8 h1g1 h8g8 g1h1 g8h8 h1g1".split()
    assert not _GAME.terminated(_replay(words, fen))
    assert _GAME.terminated(_replay([*words, "h8g8"], fen))


def test_a_capture_forgets_what_was_before():
    state = _replay("e2e4 d7d5 g1f3 g8f6 f3g1 f6g8 e4d5 d8d5 g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1")
    assert int(state.occurrences & 3) == 2
    assert not _GAME.terminated(state)


def test_mate_on_the_hundredth_half_move_wins():
    fen = "7k/8/5KQ1/8/8/8/8/8 w - - 99 80"
    mated = _replay("g6g7", fen)
    assert _GAME.returns(mated).tolist() == [1, -1]
    assert _GAME.returns(_replay("g6a6", fen)).tolist() == [0, 0]
    assert _GAME.terminated(_replay("g6a6", fen))


def test_218_moves():
    state = _GAME.parse_position(_MOST_MOVES)
    slots = np.asarray(_GAME.legal_actions(state))
    assert (slots >= 0).all()
    assert slots.tolist() == np.flatnonzero(_compiled()[1](state)).tolist()


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
    assert bool(_GAME.terminated(_GAME.parse_position(fen))) == dead == chess.Board(fen).is_insufficient_material()


def test_a_game_of_512_plies_is_a_draw():
    state = _replay("g1f3", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 256")
    assert int(state.ply) == 511
    assert not _GAME.terminated(state)
    state = _replay("g1f3 g8f6", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 256")
    assert int(state.end) == DRAW
    assert not _GAME.truncated(state)
    # Mate comes first there too.
    mated = _replay("a5d8", "1k6/8/1K6/R7/8/8/8/8 w - - 0 256")
    assert not _GAME.terminated(mated)
    mated = _replay("b8c8 a5a8", "1k6/8/1KR5/R7/8/8/8/8 b - - 0 256".replace("KR5", "K6").replace("/R7/", "/R1R5/"))
    assert int(mated.end) == MATE


def test_a_limit_of_the_users_is_no_result():
    game = Chess(max_plies=3)
    state = _replay("e2e4 e7e5 g1f3", game=game)
    assert game.terminated(state) and game.truncated(state)
    assert int(_compiled(game)[1](state).sum()) == 0
    assert game.returns(state).tolist() == [0, 0]


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
        ("7k/8/8/3pP3/8/6K1/7b/8 w - d6 0 1", "e5d6", True),
        ("b6k/8/8/3pP3/4K3/8/8/8 w - d6 0 1", "e5d6", False),  # the pawn that is taken stood between
        ("7b/6k1/8/4pP2/8/8/1K6/8 w - e6 0 1", "f5e6", True),
    ],
)
def test_en_passant(fen, move, legal):
    assert (chess.Move.from_uci(move) in chess.Board(fen).legal_moves) == legal
    state = _GAME.parse_position(fen)
    mask = _compiled()[1](state)
    assert bool(mask[_GAME.parse_move(state, move)]) == legal
    assert (parse_uci(move) in parse_fen(fen).legal_moves) == legal


@pytest.mark.parametrize(
    ("fen", "moves"),
    [
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1 e1c1"),
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8g8 e8c8"),
        ("4k3/8/8/8/8/8/1r6/R3K3 w Q - 0 1", "e1c1"),  # the rook's way is attacked, not the king's
        ("r3k3/8/8/8/8/8/8/R3K3 w Qq - 0 1", "e1c1"),
        ("4k3/8/8/8/8/8/3r4/R3K2R w KQ - 0 1", ""),
        ("4k3/8/8/8/8/5n2/8/R3K2R w KQ - 0 1", ""),
        ("4k3/8/8/8/8/8/6p1/R3K2R w KQ - 0 1", "e1c1"),
        ("4k3/8/8/8/8/8/8/RN2K1NR w KQ - 0 1", ""),
        ("4k3/8/8/8/8/8/8/R3K2R w K - 0 1", "e1g1"),
    ],
)
def test_castling(fen, moves):
    state = _GAME.parse_position(fen)
    mask = _compiled()[1](state)
    castles = [word for word in ("e1g1", "e1c1", "e8g8", "e8c8") if mask[_GAME.parse_move(state, word)]]
    mine = [word for word in castles if word[1] == ("1" if " w " in fen else "8")]
    assert mine == moves.split()


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


def _check_planes(game, words, fen=START_FEN, every=1):
    step, mask, observe = _compiled(game)
    line, state = Line(parse_fen(fen)), game.parse_position(fen)
    for ply, word in enumerate([*words, None]):
        if ply % every == 0 or word is None:
            seen = np.moveaxis(np.asarray(observe(state)), -1, 0)
            np.testing.assert_allclose(seen, _expected_planes(line, game.history, game.rule_planes), atol=1e-6)
        if word is not None:
            move = parse_uci(word)
            action = action_of(move, line.position.turn)
            assert mask(state)[action]
            assert move_of(action, position_of(state)) == move
            state = step(state, jnp.int32(action))
            line.play(move)
            assert position_of(state).key == line.position.key


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
    sums = np.asarray(_GAME.observe(_GAME.init(jax.random.key(0)))).sum((0, 1))
    expected = {0: 8, 1: 2, 2: 2, 3: 2, 4: 1, 5: 1, 6: 8, 7: 2, 8: 2, 9: 2, 10: 1, 11: 1, 12: 64}
    expected |= dict.fromkeys(range(114, 118), 64)
    assert {plane: int(total) for plane, total in enumerate(sums) if total} == expected


def test_a_position_from_text_has_no_past():
    seen = np.asarray(_GAME.observe(_GAME.parse_position("8/8/8/4k3/8/8/4P3/4K3 w - - 0 1"))).sum((0, 1))
    assert seen[:14].tolist() == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 64, 0]
    assert not seen[14:112].any()
    state = _replay("e1d1 e5d5 d1e1 d5e5", "8/8/8/4k3/8/8/4P3/4K3 w - - 37 80")
    assert int(state.occurrences & 3) == 2


def test_the_start_set_up_from_text_is_the_start():
    start, given = _GAME.init(jax.random.key(0)), _GAME.parse_position(START_FEN)
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(start), jax.tree.leaves(given), strict=True))
    assert position_of(start) == START


def test_text():
    state = _GAME.init(jax.random.key(0))
    assert _GAME.move_name(state, 3797) == "e2e4"
    assert _GAME.parse_move(state, "Nf3") == _GAME.parse_move(state, " g1f3 ") == 4589
    after = _replay("e2e4")
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
    """What an accelerator does badly: step, mask, slots and planes are passes over words and squares."""

    def work(state, action):
        after = _GAME.step(state, action)
        return after, _GAME.legal_action_mask(after), _GAME.legal_actions(after), _GAME.observe(after)

    states = jax.eval_shape(jax.vmap(_GAME.init), jax.random.split(jax.random.key(0), 8))
    text = jax.jit(jax.vmap(work)).lower(states, jax.ShapeDtypeStruct((8,), jnp.int32)).as_text()
    for word in ("gather", "scatter", "sort", "dynamic_slice", "dynamic_update_slice", "while"):
        assert f"stablehlo.{word}" not in text
