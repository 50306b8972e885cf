"""Records of games: as JSON, in files, and played again."""

import json
import re

import jax
import numpy as np
import pytest

import envs
from envs.chess.game import Chess
from envs.game_files import check_format, formats_of, games_text, read_games
from envs.go import Go
from envs.playback import check_records
from envs.random_games import random_games
from envs.record import ENDS, GameRecord, from_json, read_lines, to_json, write_lines
from envs.tic_tac_toe import TicTacToe

GAME = TicTacToe()
WON = GameRecord(game="tic_tac_toe", actions=(0, 3, 1, 4, 2), returns=(1.0, -1.0))
FULL = GameRecord(
    game="tic_tac_toe",
    players=("Zoë 囲", 'a "b" \\ ]'),
    actions=(4, 0),
    returns=(-1.0, 1.0),
    end="resignation",
    opening_plies=1,
    date="2026-11-30",
    source="by hand",
)
LINE = (
    '{"format": 1, "game": "tic_tac_toe", "players": ["?", "?"], "actions": [0, 3, 1, 4, 2], '
    '"returns": [1.0, -1.0], "end": "rules"}'
)


def changed(record, **fields):
    return GameRecord(**{**vars(record), **fields})


def line(**fields):
    """The line of WON with other fields; None takes a field away."""
    merged = json.loads(LINE) | fields
    return json.dumps({name: value for name, value in merged.items() if value is not None})


# As JSON


def test_a_record_is_one_line():
    assert to_json(WON) == LINE and from_json(LINE) == WON
    assert json.loads(to_json(FULL))["source"] == "by hand" and from_json(to_json(FULL)) == FULL


def test_lines_are_read_in_order_and_blank_ones_passed_over():
    text = write_lines([WON, FULL, WON])
    assert text.count("\n") == 3
    assert read_lines(text) == read_lines(text.replace("\n", "\r\n\n \n")) == [WON, FULL, WON]
    assert read_lines("") == []


def test_characters_that_end_a_line_elsewhere_are_no_line_ends():
    name = "a\u2003b"
    text = json.dumps(json.loads(LINE) | {"players": [name, "?"]}, ensure_ascii=False)
    assert read_lines(text)[0].players[0] == name


def test_whole_numbers_are_returns_too():
    assert from_json(line(returns=[1, -1])) == WON


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "column 2: not JSON"),
        ("[1]", "got [1], expected an object in braces"),
        ("null", "got None, expected an object in braces"),
        ("[" * 200_000, "not a record: lists within lists without end"),
        ("{}", "format: got None, expected 1"),
        (line(format=2), "format: got 2, expected 1"),
        (line(format=True), "format: got True, expected 1"),
        (line(format="1"), "format: got '1', expected 1"),
        (line(colour="red"), "got a field 'colour', expected only game, players, actions, returns, end"),
        (LINE[:-1] + ', "end": "rules"}', "got the field 'end' twice"),
        (LINE.replace("1.0", "NaN"), "got NaN, expected a number"),
        (LINE.replace("1.0", "1e999"), "returns: got (inf, -inf), expected two numbers in [-1, 1] whose sum is 0"),
        (LINE.replace("[0, 3", "[" + "9" * 5000), "Exceeds the limit"),
        *((line(**{name: None}), f"{name}: got none, expected this field") for name in ("game", "players", "end")),
        (line(game=""), "game: got '', expected a game's id"),
        (line(game=5), "game: got 5, expected text"),
        (line(players="ab"), "players: got 'ab', expected a list"),
        (line(players=["a"]), "players: got ('a',), expected two names"),
        (line(players=["a", 1]), "players: got 1, expected text"),
        (line(players=["a\nb", "c"]), "players: got 'a\\nb', expected one line of text, without the character '\\n'"),
        (LINE.replace('"?"]', '"\\ud800"]'), "players: got '\\ud800', expected one line of text"),
        (line(date=["2026"]), "date: got ['2026'], expected text"),
        (line(actions={"0": 1}), "actions: got {'0': 1}, expected a list"),
        (line(actions=[0, -1]), "actions: ply 2: got -1, expected a whole number of at least 0"),
        (line(actions=[True]), "actions: ply 1: got True"),
        (line(actions=[0, 1, 2.0]), "actions: ply 3: got 2.0"),
        (line(actions=[2**31]), "actions: ply 1: got 2147483648"),
        (line(actions=["a1"]), "actions: ply 1: got 'a1'"),
        (line(opening_plies=6), "opening_plies: got 6, expected a whole number from 0 to the game's 5 plies"),
        (line(opening_plies=True), "opening_plies: got True"),
        (line(returns=[1.0]), "returns: got (1.0,), expected two numbers"),
        (line(returns=[1.0, 1.0]), "returns: got (1.0, 1.0), expected two numbers in [-1, 1] whose sum is 0"),
        (line(returns=[2, -2]), "returns: got (2, -2), expected two numbers in [-1, 1]"),
        (line(returns=[True, False]), "returns: got (True, False), expected two numbers"),
        (line(returns="1-0"), "returns: got '1-0', expected two numbers"),
        (line(end="mate"), "end: got 'mate', expected one of rules, plies, resignation"),
        (line(end=[]), "end: got [], expected one of rules"),
        (line(end="unfinished"), "returns: got (1.0, -1.0) with end 'unfinished', expected null exactly when"),
        (line(end="plies"), "returns: got (1.0, -1.0) with end 'plies', expected 0 for both"),
        (line(end="time", returns=[0, 0]), "returns: got (0.0, 0.0) with end 'time', expected a winner"),
    ],
)
def test_what_is_no_record_is_refused_with_its_line(text, message):
    with pytest.raises(ValueError, match=f"^line 3: {re.escape(message)}"):
        read_lines(f"{LINE}\n\n{text}\n{LINE}")


def test_null_is_for_unfinished_games_alone():
    text = LINE.replace("[1.0, -1.0]", "null")
    assert from_json(text.replace('"rules"', '"unfinished"')).returns is None
    with pytest.raises(ValueError, match="returns: got None with end 'rules', expected null exactly when unfinished"):
        from_json(text)


# In files


@pytest.mark.parametrize("name", ["games.jsonl", "GAMES.JSONL", "games.sgf"])
def test_files(tmp_path, name):
    game = Go(5)
    records = [
        GameRecord(game=game.id, players=("é", "囲"), actions=(n,), returns=None, end="unfinished") for n in (1, 2)
    ]
    path = tmp_path / name
    text = "".join(games_text(game, [record], check_format(path)) for record in records)
    assert text == games_text(game, records, check_format(path))
    path.write_text("\ufeff" + text, encoding="utf-8")
    assert read_games(path) == records


def test_which_formats_a_game_has(tmp_path):
    assert formats_of(GAME) == (".jsonl",) and formats_of(Go(5)) == (".jsonl", ".sgf")
    assert formats_of(Chess(max_plies=9)) == (".jsonl", ".pgn")
    with pytest.raises(
        ValueError, match=r"x\.txt: got the format \.txt, expected a file's name that ends in \.jsonl or \.sgf or \.pgn"
    ):
        read_games(tmp_path / "x.txt")
    with pytest.raises(ValueError, match=r"x\.sgf: got the format \.sgf, expected a file's name that ends in \.jsonl$"):
        check_format(tmp_path / "x.sgf", formats_of(GAME))
    with pytest.raises(ValueError, match=r"games: got a name without a format, expected"):
        check_format(tmp_path / "games")
    with pytest.raises(FileNotFoundError):
        read_games(tmp_path / "none.sgf")


@pytest.mark.parametrize(
    ("head", "charset"),
    [("CA[UTF-8]", "utf-8"), ("", "utf-8"), ("CA[GB18030]", "gb18030"), ("CA[Shift_JIS]", "shift_jis")],
)
def test_character_sets_of_sgf(tmp_path, head, charset):
    path = tmp_path / "game.sgf"
    path.write_bytes(f"(;{head}PB[表 本因坊];B[aa])".encode(charset))  # 表 has the byte of a backslash in Shift_JIS
    assert read_games(path)[0].players[0] == "表 本因坊"


def test_without_a_character_set_latin_1_where_it_is_not_utf_8(tmp_path):
    path = tmp_path / "game.sgf"
    path.write_bytes("(;PB[Zoë];B[aa])".encode("latin-1"))
    assert read_games(path)[0].players[0] == "Zoë"


@pytest.mark.parametrize(
    "word", ["zlib", "idna", "rot13", "undefined", "unicode_escape", "utf-7", "\x00", "nonsense", ""]
)
def test_other_character_sets_are_refused(tmp_path, word):
    path = tmp_path / "game.sgf"
    path.write_text(f"(;CA[{word}];B[aa])")
    with pytest.raises(ValueError, match=r"game\.sgf: CA: got .*, expected a character set such as UTF-8"):
        read_games(path)


def test_faults_in_files_name_file_and_line(tmp_path):
    path = tmp_path / "game.sgf"
    path.write_text("(;B[aa]\n;W[zz])")
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}: line 2, column 2: ply 2: got 'zz'"):
        read_games(path)
    path = tmp_path / "games.jsonl"
    path.write_bytes(LINE.encode() + b"\n\n\xff")
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}: line 3: got a byte that is not utf-8"):
        read_games(path)


# Played again


def played(game, games, seed=0):
    """Records of random games; outcomes of dice as num_actions + outcome."""
    keys = jax.random.split(jax.random.key(seed), games)
    actions = [[] for _ in range(games)]
    for turn in random_games(game, keys, np.random.default_rng(seed)):
        if turn.position.terminated.all():
            break
        for lane in np.flatnonzero(~turn.position.terminated):
            event = int(turn.event[lane])
            actions[lane].append(event + game.num_actions * int(turn.position.is_chance[lane]))
    end = turn.position
    return [
        GameRecord(
            game=game.id,
            actions=tuple(actions[lane]),
            returns=tuple(end.returns[lane].tolist()),
            end="plies" if end.truncated[lane] else "rules",
        )
        for lane in range(games)
    ]


SLOW = [*envs.available(), "go,size=5,suicide=true", "hex,size=4,swap=false", "pgx:tic_tac_toe"]


@pytest.mark.parametrize("name", ["tic_tac_toe,max_plies=6", *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)])
def test_random_games_are_played_again(name, allow_rank_promotion):
    game = envs.make(name)
    records = played(game, 20)
    back = read_lines(write_lines(records))
    assert back == records
    check_records(game, back)
    shorter = changed(back[6], actions=back[6].actions[:-1])
    with pytest.raises(ValueError, match=f"^game 7: ply {len(shorter.actions)}: the game goes on"):
        check_records(game, [*back[:6], shorter])


def test_dice_are_played_again(dice_game):
    records = played(dice_game, 20)
    check_records(dice_game, read_lines(write_lines(records)))
    assert any(set(record.actions) == {0, 1, 2, 3} for record in records)  # moves 0 and 1, outcomes 0 and 1
    first = records[0]
    for ply, event, why in [
        (1, 3, "got outcome 1, expected a move"),
        (2, 0, "got 0, expected an outcome of the dice"),
        (2, 4, "got outcome 2, which is not legal there"),
    ]:
        wrong = changed(first, actions=(*first.actions[: ply - 1], event, *first.actions[ply:]))
        with pytest.raises(ValueError, match=f"^game 1: ply {ply}: {why}$"):
            check_records(dice_game, [wrong])


def test_many_games_go_in_parts():
    check_records(GAME, [WON] * 300)
    with pytest.raises(ValueError, match=r"^game 280: ply 2: got a1, which is not legal there$"):
        check_records(GAME, [WON] * 279 + [changed(WON, actions=(0, 0))])
    check_records(GAME, [])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"game": "hex"}, "games/x: got a record of hex, expected one of tic_tac_toe"),
        ({"actions": (0, 3, 1, 3, 2)}, "games/x: ply 4: got a2, which is not legal there"),
        ({"actions": (0, 3, 1, 9, 2)}, "games/x: ply 4: got action 9, which is not legal there"),
        ({"actions": (0, 3, 1, 2**31 - 1)}, "games/x: ply 4: got action 2147483647, which is not legal there"),
        ({"actions": (0, 3, 1, 4, 2, 5)}, "games/x: ply 6: got c2, the game was over"),
        ({"actions": (0, 3, 1, 4)}, "games/x: ply 4: the game goes on, but the record's end is 'rules'"),
        ({"actions": ()}, "games/x: ply 0: the game goes on, but the record's end is 'rules'"),
        (
            {"returns": (-1.0, 1.0)},
            "games/x: ply 5: the record's returns are [-1.0, 1.0], but the rules give [1.0, -1.0]",
        ),
        ({"returns": (0.5, -0.5)}, "games/x: ply 5: the record's returns are [0.5, -0.5]"),
        ({"end": "time"}, "games/x: ply 5: the game is over, but the record's end is 'time'"),
        ({"end": "plies", "returns": (0.0, 0.0)}, "games/x: ply 5: the game is over, but the record's end is 'plies'"),
        ({"end": "unfinished", "returns": None}, "games/x: ply 5: the game is over, but the record's end is"),
    ],
)
def test_what_the_rules_do_not_allow_is_refused_with_its_ply(fields, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        check_records(GAME, [changed(WON, **fields)], ["games/x"])


def test_a_game_cut_off_says_so():
    game = TicTacToe(max_plies=4)
    cut = GameRecord(game=game.id, actions=(0, 3, 1, 4), returns=(0.0, 0.0), end="plies")
    check_records(game, [cut])
    with pytest.raises(ValueError, match="ply 4: the game is cut off, but the record's end is 'rules'"):
        check_records(game, [changed(cut, end="rules")])


@pytest.mark.parametrize("end", ENDS)
def test_a_game_may_end_otherwise_than_by_the_rules(end):
    returns = {"unfinished": None, "plies": (0.0, 0.0)}.get(end, (-1.0, 1.0))
    record = changed(WON, actions=(0, 3, 1), returns=returns, end=end)
    if end in ("rules", "plies"):
        with pytest.raises(ValueError, match=f"the game goes on, but the record's end is '{end}'"):
            check_records(GAME, [record])
    else:
        check_records(GAME, [record])
    check_records(GAME, [record], results=False)


def test_moves_are_checked_without_results_too():
    with pytest.raises(ValueError, match=r"^game 1: ply 2: got a1, which is not legal there$"):
        check_records(GAME, [changed(WON, actions=(0, 0))], results=False)


def test_returns_may_be_written_as_decimals():
    thirds = changed(WON, returns=(1 - 1e-7, -1 + 1e-7))
    check_records(GAME, [thirds])
