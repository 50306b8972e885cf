"""Shogi on the host: rules against python-shogi, SFEN, USI, KIF and numbers of actions; mutated text."""

import importlib.util
import json
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest
import shogi
import shogi.KIF
from hypothesis import strategies as st

import envs
from envs.game_files import games_text, read_games
from envs.record import GameRecord
from envs.shogi import sfen, usi
from envs.shogi.actions import NUM_ACTIONS, action_of, move_of
from envs.shogi.kif import read_kif, read_usi, write_kif, write_usi
from envs.shogi.position import Line, Move, count_leaves, opening

_PERFT = json.loads((Path(__file__).parents[1] / "data" / "shogi_perft.json").read_text())
_START = sfen.write(*sfen.START)


def _random_line(seed, plies=120):
    draw, line = random.Random(seed), Line(opening())
    while not line.outcome() and line.ply < plies:
        line.play(draw.choice(line.legal_moves()))
    return line


def _moves(line):
    """Returns the moves of a line from its positions."""
    return [
        next(move for move in before.legal_moves() if before.play(move) == after)
        for before, after in zip(line.positions, line.positions[1:], strict=False)
    ]


@pytest.mark.parametrize("case", _PERFT, ids=lambda case: case["name"])
def test_perft(case):
    position, number = sfen.parse(case["sfen"])
    assert sfen.write(position, number) == case["sfen"]
    for depth, leaves in enumerate(case["perft"], 1):
        if leaves < 1000:
            assert count_leaves(position, depth) == leaves


@pytest.mark.parametrize("seed", range(2))
def test_random_games_equal_python_shogi(seed):
    draw, line, board = random.Random(seed), Line(opening()), shogi.Board()
    for _ in range(80):
        moves = line.legal_moves()
        assert {usi.write_move(move) for move in moves} == {move.usi() for move in board.legal_moves}
        assert all(line.position.is_legal(move) for move in moves)
        assert sfen.write(line.position, line.ply + 1) == board.sfen()
        assert sfen.parse(board.sfen()) == (line.position, line.ply + 1)
        assert line.position.in_check() == board.is_check()
        assert (line.repetitions() >= 4) == board.is_fourfold_repetition()
        if line.outcome():
            break
        move = draw.choice(moves)
        line.play(move)
        board.push_usi(usi.write_move(move))
    assert line.ply > 20


_CSHOGI = """
import json, sys, cshogi
for line in sys.stdin:
    board = cshogi.Board(line.strip())
    print(json.dumps([[cshogi.move_to_usi(move) for move in board.legal_moves], bool(board.is_check())]))
"""


@pytest.mark.skipif(importlib.util.find_spec("cshogi") is None, reason="cshogi asks for an older numpy than ours")
def test_random_games_equal_cshogi():
    """In a process of its own, which a wrong SFEN would end."""
    positions = [position for seed in range(10, 14) for position in _random_line(seed, 150).positions]
    positions += [sfen.parse(case["sfen"]).position for case in _PERFT if "K" in case["sfen"] and "k" in case["sfen"]]
    text = "".join(f"{sfen.write(position)}\n" for position in positions)
    command = [sys.executable, "-c", _CSHOGI]
    output = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(output) == len(positions) > 300
    for position, line in zip(positions, output, strict=True):
        moves, in_check = json.loads(line)
        assert sorted(moves) == sorted(usi.write_move(move) for move in position.legal_moves())
        assert in_check == position.in_check()


@pytest.mark.parametrize(
    ("word", "turn", "action"),
    [
        ("7g7f", 0, 7784),
        ("3c3d", 1, 7784),
        ("8h2b+", 0, 8975),
        ("2b8h+", 1, 8975),
        ("P*5e", 0, 5692),
        ("P*5e", 1, 5692),
        ("8i7g", 0, 10212),
        ("2a3c", 1, 10212),
    ],
)
def test_numbers_of_moves(word, turn, action):
    move = usi.parse_move(word)
    assert action_of(move, turn) == action
    assert move_of(action, turn) == move
    assert usi.write_move(move) == word


def test_actions_on_the_board():
    moves = [move_of(action, 0) for action in range(NUM_ACTIONS)]
    there = [move for move in moves if move]
    assert len(there) == len(set(there)) == 5015
    assert sum(move.source is None for move in there) == 567
    assert sum(move.promotes for move in there) == 2112 + 112
    for action, move in enumerate(moves):
        assert move is None or action_of(move, 0) == action
    with pytest.raises(ValueError, match="move: got squares 0 to 17, expected a line or a knight's jump"):
        action_of(Move(0, 17), 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "sfen: got '', expected four fields"),
        (_START[:-2], "sfen: got .*, expected four fields"),
        (_START.replace("/9", "", 1), "sfen: board: got 8 ranks"),
        (_START.replace("/9", "/8", 1), "sfen: board: rank d: got 8 squares in '8', expected 9"),
        (_START.replace("/9", "/0", 1), "sfen: board: rank d: got '0', expected a piece or 1 to 9"),
        (_START.replace("/9", "/55", 1), "sfen: board: rank d: got 55, expected|sfen: board: rank d: got '55'"),
        (_START.replace("1B", "1X"), "sfen: board: rank h: got 'X', expected a piece"),
        (_START.replace("1B", "+G1"), r"sfen: board: rank h: got '\+G', expected a piece"),
        (_START.replace("1B", "1+"), r"sfen: board: rank h: got '\+', expected a piece"),
        (_START.replace(" b", " x"), "sfen: turn: got 'x', expected b or w"),
        (_START.replace("-", "K"), "sfen: hands: got 'K', expected a piece of RBGSNLP"),
        (_START.replace("-", "0P"), "sfen: hands: got '0P', expected a number"),
        (_START.replace("-", "3"), "sfen: hands: got '3', expected a piece"),
        (_START.replace("-", "PP"), "sfen: hands: got 'P' twice"),
        (_START.replace("-", "R"), r"sfen: board and hands: got 2 \+ 1 pieces 'R', expected 2 at most"),
        (_START.replace("-", "19p"), r"sfen: board and hands: got 18 \+ 19 pieces 'P', expected 18 at most"),
        (_START.replace(" 1", " 0"), "sfen: move number: got '0', expected a whole number from 1 to 512"),
        (_START.replace(" 1", " 513"), "sfen: move number: got '513'"),
        (_START.replace(" 1", " one"), "sfen: move number: got 'one'"),
        (_START.replace("1B5R1", "1B2K2R1"), "sfen: board: got 2 pieces 'K', expected one king"),
        ("P7k/9/9/9/9/9/9/9/K8 b - 1", "sfen: board: got 'P' on 9a, expected a piece that can move"),
        ("k8/9/9/9/9/9/9/8n/K8 b - 1", "sfen: board: got 'n' on 1h, expected a piece that can move"),
        ("k7R/9/9/9/9/9/9/9/K8 b - 1", "sfen: turn: got 'b', expected 'w': the king of w is in check"),
        (_START.replace("l", "ｌ", 1), "sfen: board: rank a: got 'ｌ', expected a piece"),
    ],
)
def test_malformed_sfen(text, message):
    with pytest.raises(ValueError, match=message):
        sfen.parse(text)


def test_sfen_words():
    assert sfen.parse("startpos") == sfen.START == sfen.parse(f" sfen  {_START}\n")
    white = sfen.parse("8k/9/9/9/9/9/9/9/K8 w 2Pr 7")
    assert white.ply == 6 and white.position.turn == 1
    assert white.position.hands == ((2, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 1))


@pytest.mark.parametrize(
    "text", ["", "7g", "7g7f7", "7g7f++", "0g7f", "7j7f", "7g7g", "K*5e", "+P*5e", "p*", "７g７f", "7 7"]
)
def test_malformed_usi(text):
    with pytest.raises(ValueError, match=r"move: got .*, expected USI such as '7g7f', '8h2b\+' or 'P\*5e'"):
        usi.parse_move(text)
    assert usi.parse_move(" P*5E\n") == usi.parse_move("p*5e")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("moves 7g7f", "position: got 'moves', expected startpos or sfen"),
        ("startpos 7g7f", "position: got '7g7f' after startpos|sfen: got"),
        ("startpos moves 7g7e", "ply 1: got '7g7e', which is not legal there"),
        ("startpos moves 7g7f 7g7f", "ply 2: got '7g7f', which is not legal there"),
        ("startpos moves 7g7f x", "ply 2: move: got 'x'"),
        (
            "startpos moves" + " 2h3h 8b7b 3h2h 7b8b" * 3 + " 7g7f",
            "ply 13: got '7g7f', but the game was over: repetition",
        ),
    ],
)
def test_malformed_lines_of_moves(text, message):
    with pytest.raises(ValueError, match=message):
        usi.parse_line(text)


def test_lines_of_moves():
    text = "position startpos moves 7g7f 3c3d 8h2b+"
    assert usi.write_line(*usi.parse_line(text)) == text
    text = "position sfen 8k/9/9/9/9/9/9/9/K8 w 2Pr 7 moves R*5a"
    assert usi.write_line(*usi.parse_line(text)) == text
    assert usi.parse_line("startpos").moves == []
    (record,) = read_usi("startpos moves 7g7f 3c3d\n\n")
    assert (record.actions, record.end, record.returns) == ((7784, 7784), "unfinished", None)
    assert write_usi([record]) == "position startpos moves 7g7f 3c3d\n"
    (draw,) = read_usi("startpos moves" + " 2h3h 8b7b 3h2h 7b8b" * 3)
    assert (draw.end, draw.returns) == ("rules", (0.0, 0.0))
    with pytest.raises(ValueError, match="line 2: position: got an sfen"):
        read_usi("\nposition sfen 8k/9/9/9/9/9/9/9/K8 w 2Pr 7")


_KIF = """# ---- a comment of the program ----
開始日時：2026/11/30
棋戦：by hand
手合割：平手
先手：Ada
後手：王 二
手数----指手---------消費時間--
*a comment on the start
   1 ７六歩(77)   ( 0:10/00:00:10)
   2 ３四歩(33)   ( 0:03/00:00:03)+
*a comment
   3 ２二角成(88) ( 0:01/00:00:11)
   4 同　銀(31)
   5 ５五角打
   6 投了
まで5手で先手の勝ち

変化：4手
   4 同　飛(82)
   5 ７七銀(88)
"""


def test_kif_is_read():
    (record,) = read_kif(_KIF)
    assert record.players == ("Ada", "王 二")
    assert (record.date, record.source) == ("2026-11-30", "by hand")
    assert (record.returns, record.end) == ((1.0, -1.0), "resignation")
    words = [usi.write_move(move_of(action, ply % 2)) for ply, action in enumerate(record.actions)]
    assert words == ["7g7f", "3c3d", "8h2b+", "3a2b", "B*5e"]
    assert read_kif(write_kif([record, record])) == [record, record]
    assert read_kif("") == []


def test_kif_is_read_from_shift_jis(tmp_path):
    path = tmp_path / "game.kif"
    path.write_bytes(_KIF.encode("cp932"))
    assert read_games(path) == read_kif(_KIF)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("平手", "二枚落ち", "line 4: 手合割: got '二枚落ち', expected 平手"),
        ("棋戦：", "後手の持駒：", "line 3: 後手の持駒: got a position that is set up"),
        ("７六歩(77)", "７五歩(77)", "line 9: ply 1: got '7g7e', which is not legal there"),
        ("７六歩(77)", "７六銀(77)", "line 9: ply 1: got '７六銀\\(77\\)', but 銀 does not stand there"),
        ("７六歩(77)", "同　歩(77)", "line 9: ply 1: got .*, expected a move such as"),
        ("   2 ", "   3 ", "line 10: got the number 3, expected 2"),
        ("２二角成(88)", "２二角成", "line 12: ply 3: got .*, expected the square that it came from"),
        ("５五角打", "５五金打", "line 14: ply 5: got 'G\\*5e', which is not legal there"),
        ("投了", "詰み", "line 20: game 1: got 詰み, but there are legal moves"),
        ("投了", "勝ち", "line 15: ply 6: got '勝ち', expected a move"),
        ("先手：", "先手 ", "line 5: got '先手 Ada', expected a move with its number"),
    ],
)
def test_malformed_kif(old, new, message):
    assert old in _KIF
    with pytest.raises(ValueError, match=message):
        read_kif(_KIF.replace(old, new, 1))


@pytest.mark.parametrize(
    ("words", "returns", "end", "said"),
    [
        ("7g7f", (-1.0, 1.0), "resignation", "反則勝ち"),
        ("7g7f", (1.0, -1.0), "resignation", "投了"),
        ("7g7f", (1.0, -1.0), "time", "切れ負け"),
        ("7g7f", (1.0, -1.0), "forfeit", "反則負け"),
        ("7g7f", None, "unfinished", "中断"),
        ("7g7f", (0.0, 0.0), "plies", "中断"),
        ("2h3h 8b7b 3h2h 7b8b " * 3, (0.0, 0.0), "rules", "千日手"),
    ],
)
def test_how_a_game_ended(words, returns, end, said):
    moves = usi.parse_line(f"startpos moves {words}").moves
    actions = tuple(action_of(move, ply % 2) for ply, move in enumerate(moves))
    record = GameRecord(game="shogi,max_plies=40", actions=actions, returns=returns, end=end)
    text = write_kif([record])
    assert f" {said}\n" in text
    (read,) = read_kif(text)
    assert read.actions == actions
    lost = said in ("反則勝ち", "中断") and end != "unfinished"
    assert (read.returns, read.end) == (returns, end) or lost


@pytest.mark.parametrize("seed", range(3))
def test_records_of_random_games_equal_python_shogis(seed):
    line = _random_line(seed, 60)
    moves = _moves(line)
    words = [usi.write_move(move) for move in moves]
    record = GameRecord(
        game="shogi",
        players=("a", "b"),
        actions=tuple(action_of(move, ply % 2) for ply, move in enumerate(moves)),
        returns=None,
        end="unfinished",
    )
    text = write_kif([record])
    (theirs,) = shogi.KIF.Parser.parse_str(text)
    assert theirs["moves"] == words
    assert theirs["names"] == ["a", "b"]
    summary = {"names": ["a", "b"], "sfen": _START, "moves": words, "win": "-"}
    assert read_kif(shogi.KIF.Exporter.kif(summary))[0].actions == record.actions
    assert read_kif(text) == [record]
    assert read_usi(write_usi([record]))[0].actions == record.actions


def test_files_by_their_end(tmp_path):
    game = envs.make("shogi")
    (record,) = read_kif(_KIF)
    for suffix in (".kif", ".jsonl"):
        path = tmp_path / f"games{suffix}"
        path.write_text(games_text(game, [record], suffix), encoding="utf-8")
        assert read_games(path) == [record]
    path = tmp_path / "games.usi"
    path.write_text(games_text(game, [record], ".usi"), encoding="utf-8")
    assert read_games(path)[0].actions == record.actions


_SFENS = [case["sfen"] for case in _PERFT]
_LINES = ["position startpos moves 7g7f 3c3d 8h2b+ 3a2b B*5e", f"position sfen {_SFENS[-1]} moves P*9d 9c9d"]
_KIFS = [_KIF, write_kif([GameRecord(game="shogi", actions=(7784, 7784), returns=None, end="unfinished")])]
_PIECES = [
    *"+ - / * 1 9 0 b w K k P p R +R +P 18P 9/9 startpos sfen moves position 7g7f P*5e 5e5d+".split(),
    *"同 打 成 不成 歩 銀 玉 ７ 六 (77) 投了 詰み 千日手 中断 変化：3手 手合割：平手 先手： まで : ：".split(),
    *[
        "\n",
        "   2 ３四歩(33)\n",
        " ",
        "　",
        "*",
        "#",
        "\x00",
        "\u2028",
        "９",
        "²",
        "٣",
        "ſ",
        "K" * 90,
        "9" * 4400,
        "(" * 99,
    ],
]
_TEXTS = 50  # an example: Hypothesis takes longer over one than all the readers together
_FAST = hypothesis.settings(max_examples=2_000 // _TEXTS, database=None, phases=[hypothesis.Phase.generate])
_FULL = hypothesis.settings(_FAST, max_examples=100_000 // _TEXTS)


def _mutated(bases, words):
    """One of the texts after one to four edits, as five words of 32 bits say."""
    edits, base = divmod(words[0], len(bases))
    text = bases[base]
    for word in words[1 : 2 + edits % 4]:
        word, piece = divmod(word, len(_PIECES))
        at, cut = divmod(word, 13)
        at %= len(text) + 1
        text = text[:at] + _PIECES[piece] + text[at + cut :]
    return text


def _check_sfen(text):
    placed = sfen.parse(text)
    assert sfen.parse(sfen.write(*placed)) == placed


def _check_line(text):
    start, moves = usi.parse_line(text)
    assert usi.parse_line(usi.write_line(start, moves)) == (start, moves)


def _check_kif(text):
    records = read_kif(text)
    assert [record.actions for record in read_kif(write_kif(records))] == [record.actions for record in records]


_FAULTS = {
    "sfen": (_check_sfen, _SFENS, re.compile(r"sfen: .*got ", re.DOTALL)),
    "usi": (_check_line, _LINES, re.compile(r"(sfen|position|ply \d+): .*got ", re.DOTALL)),
    "kif": (_check_kif, _KIFS, re.compile(r"line \d+: .*got ", re.DOTALL)),
}


def _mutations(settings, name):
    check, bases, fault = _FAULTS[name]

    @settings
    @hypothesis.given(st.binary(min_size=20 * _TEXTS, max_size=20 * _TEXTS))
    def run(drawn):
        for words in struct.iter_unpack("<5I", drawn):
            text = _mutated(bases, words)
            try:
                check(text)
            except Exception as error:
                if type(error) is not ValueError or not fault.match(str(error)):
                    error.add_note(f"the text: {text!r}")
                    raise

    return run


@pytest.mark.parametrize("name", _FAULTS)
def test_mutated_text(name):
    _mutations(_FAST, name)()


@pytest.mark.slow
@pytest.mark.parametrize("name", _FAULTS)
def test_a_hundred_thousand_mutated_texts(name):
    _mutations(_FULL, name)()
