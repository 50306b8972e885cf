"""Chess on the host against python-chess: moves, ends of games, FEN, SAN and PGN; given cases; numbers of actions."""

import functools
import io
import json
import random
import struct
import subprocess
import sys
from pathlib import Path

import chess
import chess.pgn
import hypothesis
import pytest
from hypothesis import strategies as st

from envs.chess import actions
from envs.chess.fen import START_FEN, parse_fen, write_fen
from envs.chess.pgn import PgnGame, read_pgn, write_pgn
from envs.chess.position import START, Line, Move, parse_uci
from envs.chess.records import read_records, write_records
from envs.chess.san import parse_move, parse_san, write_san
from envs.record import GameRecord

_DATA = Path(__file__).parents[1] / "data"
_PERFT, _OUTCOMES, _LEGALITY = (
    json.loads((_DATA / f"chess_{name}.json").read_text()) for name in ("perft", "outcomes", "legality")
)
_REASONS = {"threefold": "repetition", "fifty": "fifty moves", "insufficient": "dead position"}


def _expected_end(board):
    """Returns the reason that python-chess has for the game to be over, by the rules of AlphaZero's chess."""
    reasons = {
        "checkmate": board.is_checkmate(),
        "stalemate": board.is_stalemate(),
        "dead position": board.is_insufficient_material(),
        "repetition": board.is_repetition(3),
        "fifty moves": board.halfmove_clock >= 100,
        "length": board.ply() >= 512,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def test_chess_on_the_host_imports_no_jax():
    names = "actions fen pgn position records san".split()
    code = f"import sys; from envs.chess import {', '.join(names)}; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@functools.cache
def _random_line(seed, plies=300):
    """Returns a random game, up to its end or so many plies, compared with python-chess at every ply."""
    draw, board, line = random.Random(seed), chess.Board(), Line()
    while True:
        position = line.position
        assert write_fen(position) == board.fen()
        assert parse_fen(board.fen(en_passant="fen")).key == position.key
        moves = position.legal_moves
        assert sorted(move.uci for move in moves) == sorted(move.uci() for move in board.legal_moves)
        numbers = [actions.action_of(move, position.turn) for move in moves]
        assert len(set(numbers)) == len(numbers)
        assert [actions.move_of(number, position) for number in numbers] == list(moves)
        assert (line.end.reason if line.end else None) == _expected_end(board)
        if line.end or len(line.moves) == plies:
            return line
        # Captures are rare among random moves, and shorten games.
        move = draw.choice(
            [move for move in moves if position.is_capture(move)] or moves if draw.random() < 0.2 else moves
        )
        line.play(move)
        board.push_uci(move.uci)


@pytest.mark.parametrize("seed", range(2))
def test_random_games(seed):
    assert len(_random_line(seed).moves) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_more_random_games(seed):
    _random_line(seed)


def _perft(position, depth):
    moves = position.legal_moves
    return len(moves) if depth == 1 else sum(_perft(position.play(move), depth - 1) for move in moves)


@pytest.mark.parametrize("case", _PERFT, ids=lambda case: case["name"])
def test_perft(case):
    position = parse_fen(case["fen"])
    assert [_perft(position, depth) for depth in (1, 2)][: 2 if case["perft"][1] < 700 else 1] == case["perft"][
        : 2 if case["perft"][1] < 700 else 1
    ]


@pytest.mark.parametrize("case", _LEGALITY, ids=lambda case: case["name"])
def test_given_legality(case):
    position = parse_fen(case["fen"])
    assert (parse_uci(case["move"]) in position.legal_moves) == case["legal"]
    assert len(position.legal_moves) == case["count"]


@pytest.mark.parametrize("case", _OUTCOMES, ids=lambda case: case["name"])
def test_given_outcomes(case):
    line = Line(parse_fen(case["fen"]))
    for word in case["moves"]:
        assert line.end is None
        line.play(parse_uci(word))
    assert write_fen(line.position) == case["final_fen"]
    assert len(line.position.legal_moves) == case["legal_at_end"]
    if case["python_chess"] is None:
        assert line.end is None
    else:
        reason, result = case["python_chess"][:2]
        winner = None if result == 0 else 1 - line.position.turn
        assert line.end == (_REASONS.get(reason, reason), winner)


@pytest.mark.parametrize(
    ("fen", "move", "action"),
    [
        (START_FEN, "e2e4", 3797),
        (START_FEN, "g1f3", 4589),
        (START_FEN.replace(" w ", " b "), "e7e5", 3797),
        (START_FEN.replace(" w ", " b "), "g8f6", 4589),
        ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", 4395),
        ("1r2k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7a8q", 584),
        ("1r2k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7a8n", 649),
        ("4k3/8/8/8/8/8/p7/4K3 b - - 0 1", "a2a1n", 649),
        ("r3k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7a8r", 727),
    ],
)
def test_numbers_of_moves(fen, move, action):
    position = parse_fen(fen)
    assert actions.action_of(parse_uci(move), position.turn) == action
    assert actions.move_of(action, position).uci == move


def test_actions_on_the_board():
    named = [name for name in map(actions.frame_name, range(actions.NUM_ACTIONS)) if not name.startswith("(")]
    assert len(named) == 1858
    assert sum(len(name) == 5 for name in named) == 66
    with pytest.raises(ValueError, match="action: got 0, expected one that stays on the board"):
        actions.move_of(0, START)
    with pytest.raises(ValueError, match="move: got a1b4, expected one that a piece can make"):
        actions.action_of(Move(56, 33), 0)


@pytest.mark.parametrize(
    ("fen", "message"),
    [
        ("", "FEN: got '', expected four or six words"),
        (START_FEN.replace("/8/8", "/8"), "FEN: board: got .*, expected eight rows"),
        (START_FEN.replace("/8", "/9", 1), "FEN: board: got '9', expected rows of eight squares"),
        (START_FEN.replace("/8", "/44", 1), "FEN: board: got '44'"),
        (START_FEN.replace("rnbq", "rnbx"), "FEN: board: got 'rnbxkbnr'"),
        (START_FEN.replace("BQKB", "BQQB"), "expected one king of White, not 0"),
        (START_FEN.replace("bqkb", "bkkb"), "expected one king of Black, not 2"),
        (START_FEN.replace("/8", "/PPPPPPPP", 1), "at most eight pawns and promoted pieces of White, not 16"),
        (START_FEN.replace("/8", "/3q4", 1), "at most eight pawns and promoted pieces of Black, not 9"),
        ("4k3/8/8/8/8/8/8/P3K3 w - - 0 1", "no pawns on the first and last row"),
        (START_FEN.replace(" w ", " x "), "FEN: side to move: got 'x', expected w or b"),
        (START_FEN.replace("KQkq", "KK"), "FEN: castling: got 'KK', expected some of KQkq"),
        (START_FEN.replace("RNBQKBNR w", "RNBQKBN1 w"), "castling: .* K only with king and rook on e1 and h1"),
        (START_FEN.replace("q - ", "q e3 "), "FEN: en passant: got 'e3', expected a square that a pawn"),
        (START_FEN.replace("q - ", "q z9 "), "FEN: en passant: got 'z9', expected a square such as e3"),
        (START_FEN.replace("0 1", "-1 1"), "FEN: half-moves without progress: got '-1'"),
        (START_FEN.replace("0 1", "0 0"), "FEN: move: got '0', expected a whole number from 1 to 9999"),
        ("4k3/8/8/8/8/8/8/4RK2 w - - 0 1", "expected Black, who has just moved, not in check"),
    ],
)
def test_wrong_fens(fen, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse_fen(fen)
    assert "\n" not in str(caught.value)


def test_fen_without_numbers_and_with_unordered_castling():
    assert parse_fen("r3k2r/8/8/8/8/8/8/R3K2R b kqKQ -").castling == "KQkq"
    assert parse_fen(" ".join(START_FEN.split()[:4])) == START


def test_en_passant_squares_are_written_where_a_pawn_may_take():
    after = START.play(parse_uci("e2e4"))
    assert write_fen(after).split()[3] == "-"
    assert parse_fen("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1") == after
    for case, square in (("8/8/8/3pP3/8/8/8/K3k3 w - d6 0 1", "d6"), ("8/8/8/K2pP2r/8/8/8/4k3 w - d6 0 1", "-")):
        assert write_fen(parse_fen(case)).split()[3] == square


@pytest.mark.parametrize("seed", range(2))
def test_names_of_moves_are_those_of_python_chess(seed):
    line = _random_line(seed)
    board = chess.Board()
    for ply, (position, played) in enumerate(zip(line.positions, line.moves, strict=False)):
        for move in position.legal_moves if ply % 20 == 0 else [played]:
            name = board.san(chess.Move.from_uci(move.uci))
            assert write_san(position, move) == name
            assert parse_san(position, name) == parse_move(position, name) == parse_move(position, move.uci) == move
        board.push_uci(played.uci)


@pytest.mark.parametrize(
    ("fen", "uci", "name"),
    [
        ("4k3/8/8/8/8/8/8/R2R2K1 w - - 0 1", "a1c1", "Rac1"),
        ("4k3/8/8/R7/8/8/8/R5K1 w - - 0 1", "a5a3", "R5a3"),
        ("2k5/8/8/8/4Q2Q/8/8/K6Q w - - 0 1", "h4e1", "Qh4e1"),
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8c8", "O-O-O"),
        ("1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7b8q", "axb8=Q+"),
        ("8/8/8/3pP3/8/8/8/K3k3 w - d6 0 1", "e5d6", "exd6"),
        ("7k/8/5KQ1/8/8/8/8/8 w - - 99 80", "g6g7", "Qg7#"),
        ("4k3/8/8/8/4r3/8/4N3/N3K3 w - - 0 1", "a1c2", "Nc2"),
    ],
)
def test_names_of_moves(fen, uci, name):
    position = parse_fen(fen)
    assert write_san(position, parse_uci(uci)) == name == chess.Board(fen).san(chess.Move.from_uci(uci))
    for text in (name, f"{name}!?", name.replace("=", ""), name.replace("O", "0"), uci.upper()):
        assert parse_move(position, text) == parse_uci(uci)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Nd4", "move: got 'Nd4', which is not legal there"),
        ("Rc1", "move: got 'Rc1', expected one move, not any of a1c1, e1c1"),
        ("b8", "move: got 'b8', expected the piece that the pawn becomes too, such as b8=Q"),
        ("O-O", "move: got 'O-O', which is not legal there"),
        ("castle", "move: got 'castle', expected a move such as Nf3"),
        ("", "move: got '', expected a move such as Nf3"),
        ("e9e4", "move: got 'e9e4', expected a move such as"),
    ],
)
def test_wrong_moves(text, message):
    position = parse_fen("7k/1P6/8/8/8/8/8/R3R2K w - - 0 1")
    with pytest.raises(ValueError, match=message):
        parse_move(position, text)


PGN = r"""% a line that is passed over
[Event "Club, \"B\" group"]
[White "A"]
[Black "B"]
[Result "1-0"]

1. e4 {open ( games} e5 2.Nf3! (2. f4 exf4 (2... -- 3. X) {or )} 3. Nf3) 2... Nc6 $1 ; 3. d4 1/2-1/2
3 Bb5 a6 4. 0-0 1-0

[SetUp "1"]
[FEN "4k3/8/8/8/3p4/8/4P3/4K1N1 w - - 0 1"]

1. e4 dxe3 *
"""


def test_pgn_is_read():
    first, second = read_pgn(PGN)
    assert " ".join(move.uci for move in first.moves) == "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 e1g1"
    assert first.tags == {"Event": 'Club, "B" group', "White": "A", "Black": "B"}
    assert (first.result, second.result, second.tags) == ("1-0", "*", {})
    assert second.moves[-1].uci == "d4e3"
    assert read_pgn(write_pgn([first, second])) == [first, second]
    assert read_pgn("") == read_pgn("; nothing\n") == []


def test_pgn_is_read_by_python_chess():
    games = [PgnGame(tuple(_random_line(seed).moves), "1/2-1/2", {"White": "A", "Round": "3"}) for seed in range(2)]
    games.append(read_pgn(PGN)[1])
    text = write_pgn(games)
    assert read_pgn(text) == games
    assert max(map(len, text.splitlines())) < 80
    file = io.StringIO(text)
    for game in games:
        theirs = chess.pgn.read_game(file)
        assert not theirs.errors
        assert [move.uci() for move in theirs.mainline_moves()] == [move.uci for move in game.moves]
        assert theirs.headers["Result"] == game.result
    assert chess.pgn.read_game(file) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1. e4\n2. Ke3 *", "line 2: move: got 'Ke3', which is not legal there"),
        ("1. e4 (1. d4 *", r"line 1: variation: got no '\)'"),
        ("1. e4 ) *", r"line 1: variation: got '\)'"),
        ("1. e4 {open", "line 1: got '{open', expected a tag, a move or a result"),
        ('[Result "2-0"]', "line 1: tag Result: got '2-0', expected one of 1-0, 0-1"),
        ('[Result "1-0"]\n1. e4 0-1', "line 2: result: got 0-1 after the moves, expected 1-0"),
        ('[White "A"]\n[White "B"]', "line 2: tag White: got it twice"),
        ('\n[FEN "8/8"]', "line 2: FEN: got '8/8', expected four or six words"),
        ("1. e4 \x00", "line 1: got '\\\\x00'"),
    ],
)
def test_wrong_pgn(text, message):
    with pytest.raises(ValueError, match=message):
        read_pgn(text)


_FOOLS_MATE = ("f2f3", "e7e5", "g2g4", "d8h4")


def _actions(words):
    return tuple(actions.action_of(parse_uci(word), ply % 2) for ply, word in enumerate(words))


@pytest.mark.parametrize(
    ("words", "returns", "end", "result"),
    [
        (_FOOLS_MATE, (-1.0, 1.0), "rules", "0-1"),
        (_FOOLS_MATE[:3], (1.0, -1.0), "resignation", "1-0"),
        (_FOOLS_MATE[:3], (1.0, -1.0), "time", "1-0"),
        (_FOOLS_MATE[:3], (-1.0, 1.0), "forfeit", "0-1"),
        (_FOOLS_MATE[:2], (0.0, 0.0), "rules", "1/2-1/2"),
        ((), None, "unfinished", "*"),
    ],
)
def test_records_as_pgn(words, returns, end, result):
    record = GameRecord(
        game="chess",
        players=("A", "?"),
        actions=_actions(words),
        returns=returns,
        end=end,
        date="2026-11-30",
        source="by hand",
    )
    text = write_records([record])
    assert f'[Result "{result}"]' in text
    assert '[Date "2026.11.30"]' in text
    assert text.split()[-1] == result
    assert read_records(text) == [record]


def test_games_cut_off_are_unfinished_in_pgn():
    record = GameRecord(game="chess,max_plies=3", actions=_actions(_FOOLS_MATE[:3]), returns=(0.0, 0.0), end="plies")
    (read,) = read_records(write_records([record]))
    assert (read.game, read.returns, read.end) == ("chess", None, "unfinished")


def test_records_that_pgn_cannot_hold():
    with pytest.raises(ValueError, match="game 1: got a record of hex, expected one of chess"):
        write_records([GameRecord(game="hex", actions=(), returns=None, end="unfinished")])
    moves = (3797, 3797, 3797)
    with pytest.raises(ValueError, match="game 1: ply 3: got e2e4, which is not legal there"):
        write_records([GameRecord(game="chess", actions=moves, returns=None, end="unfinished")])
    with pytest.raises(ValueError, match="game 2: FEN: got a position that is set up"):
        read_records(PGN)


_FENS = [START_FEN, *(case["fen"] for case in _PERFT), "8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1"]
_PIECES = "p n b r q k P N B R Q K / 1 2 3 7 8 9 0 - w b KQkq e3 d6 a9 100 \u0661 x = # + O-O {".split()
_PIECES += [" ", "", "\n"]
_MOVES = ["e2e4", "e7e8q", "Nf3", "exd8=Q+", "O-O-O#", "R1xa3"]


def _mutated(text, words):
    for word in words:
        word, piece = divmod(word, len(_PIECES))
        at, cut = divmod(word, 4)
        at %= len(text) + 1
        text = text[:at] + _PIECES[piece] + text[at + cut :]
    return text


def _check_fen(words):
    text = _mutated(_FENS[words[0] % len(_FENS)], words[1 : 2 + words[0] % 3])
    try:
        position = parse_fen(text)
    except ValueError as error:
        assert type(error) is ValueError and str(error).startswith("FEN: "), text
        return
    assert parse_fen(write_fen(position)).key == position.key
    board = chess.Board(write_fen(position))
    assert sorted(move.uci for move in position.legal_moves) == sorted(move.uci() for move in board.legal_moves), text


def _check_move(words):
    position = parse_fen(_FENS[words[0] % len(_FENS)])
    text = _mutated(_MOVES[words[1] % len(_MOVES)], words[2:4])
    try:
        move = parse_move(position, text)
    except ValueError as error:
        assert type(error) is ValueError and str(error).startswith("move: got "), text
        return
    assert parse_uci(move.uci) == move
    if move in position.legal_moves:
        assert parse_san(position, write_san(position, move)) == move


def _check_pgn(words):
    text = _mutated(PGN, [word * 7919 + 13 for word in words])
    try:
        games = read_pgn(text)
    except ValueError as error:
        assert type(error) is ValueError and str(error).startswith("line "), text
        return
    assert read_pgn(write_pgn(games)) == games, text


def _fuzz(check, examples, texts):
    """Runs a check on `examples` * `texts` lists of five numbers."""

    @hypothesis.settings(max_examples=examples, database=None, phases=[hypothesis.Phase.generate])
    @hypothesis.given(st.binary(min_size=20 * texts, max_size=20 * texts))
    def run(drawn):
        for words in struct.iter_unpack("<5I", drawn):
            check(words)

    run()


@pytest.mark.parametrize("check", [_check_fen, _check_move, _check_pgn])
def test_mutated_text(check):
    _fuzz(check, 20, {_check_fen: 100, _check_move: 100, _check_pgn: 40}[check])


@pytest.mark.slow
@pytest.mark.parametrize("check", [_check_fen, _check_move, _check_pgn])
def test_a_hundred_thousand_mutated_texts(check):
    _fuzz(check, 1000, 100)
