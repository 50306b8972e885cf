"""azjax rate --games: ratings of games that were played before, by whomever."""

import json

import pytest

from azjax.cli import main
from azjax.rating import PairResult, fit_ratings
from azjax.tournament import pair_results
from envs.record import GameRecord, write_lines

ROW = (0, 3, 1, 4, 2)  # the first player's top row


def record(first, second, actions=ROW, returns=(1.0, -1.0), end="rules"):
    return GameRecord(game="tic_tac_toe", players=(first, second), actions=actions, returns=returns, end=end)


GAMES = [
    record("ada", "bob"),
    record("ada", "bob", (4,), (-1.0, 1.0), "resignation"),
    record("bob", "ada", (4, 0), (0.0, 0.0), "plies"),
    record("bob", "ada"),
    record("ada", "bob", (1, 2), None, "unfinished"),
]


def test_games_are_counted_by_who_moved_first():
    assert pair_results(GAMES) == [
        PairResult(a="ada", b="bob", wins=1, draws=0, losses=1),
        PairResult(a="bob", b="ada", wins=1, draws=1, losses=0),
    ]
    assert pair_results(GAMES[4:]) == []


def test_files_of_games_are_rated(tmp_path, capsys):
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    one.write_text(write_lines(GAMES[:2]), "utf-8")
    other.write_text(write_lines(GAMES[2:]), "utf-8")
    argv = ["rate", "--games", str(one), str(other), "--json", "--out", str(tmp_path / "rated")]
    assert main(argv) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == fit_ratings(pair_results(GAMES), anchors={}).to_json()
    assert said.err.strip() == "1 of 5 games are not finished and do not count"
    assert {path.name for path in (tmp_path / "rated").iterdir()} == {"ratings.json", "elo.png"}


def test_games_of_one_name_on_both_sides_do_not_count(tmp_path, capsys):
    path = tmp_path / "games.jsonl"
    path.write_text(write_lines([record("?", "?"), *GAMES, record("ada", "ada")]), "utf-8")
    assert main(["rate", "--games", str(path), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == fit_ratings(pair_results(GAMES), anchors={}).to_json()
    assert "2 of 7 games have one name on both sides and do not count" in said.err


def test_anchors_and_prior_are_chosen(tmp_path, capsys):
    path = tmp_path / "games.jsonl"
    path.write_text(
        write_lines([*GAMES, record("ada", "bob"), record("bob", "ada", (4,), (-1.0, 1.0), "time")]), "utf-8"
    )
    argv = ["rate", "--games", str(path), "--anchors", "bob=1500.5", "--prior-draws", "0", "--json"]
    assert main(argv) == 0
    said = json.loads(capsys.readouterr().out)
    (bob,) = (player for player in said["players"] if player["name"] == "bob")
    assert (bob["elo"], bob["ci95"]) == (1500.5, [1500.5, 1500.5])
    games = [*GAMES, record("ada", "bob"), record("bob", "ada", (4,), (-1.0, 1.0), "time")]
    assert said == fit_ratings(pair_results(games), anchors={"bob": 1500.5}, prior_draws=0).to_json()
    assert main([*argv[:4], "eve=3"]) == 2
    assert "--anchors: got eve, which played no game; expected one of ada, bob" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([record("a", "b", (0, 0))], "game 1: ply 2"),
        ([record("a", "b", (0, 1), None, "unfinished")], "--games: got no finished game"),
        ([GameRecord(game="hex", players=("a", "b"), actions=(0,), returns=None, end="unfinished")], "record of hex"),
    ],
)
def test_games_that_cannot_be_rated_are_refused(records, message, tmp_path, capsys):
    path = tmp_path / "games.jsonl"
    path.write_text(write_lines(records), "utf-8")
    assert main(["rate", "tic_tac_toe", "--games", str(path)]) == 2
    said = capsys.readouterr().err
    assert message in said.splitlines()[-1] and "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("random --games x.jsonl", "--games FILE: got it with players, --run or"),
        ("random uct:4 --games 3", "--games: got 3, expected an even number"),
        ("random uct:4 --games -2", "--games: got -2, expected an even number"),
        ("--games nowhere.jsonl", "nowhere.jsonl"),
        ("random uct:4 --anchors random", "--anchors: got 'random', expected PLAYER=ELO, such as uct:400=1000"),
        ("random uct:4 --anchors =3", "--anchors: got '=3'"),
        ("random uct:4 --anchors random=nan", "--anchors: got 'random=nan'"),
        ("random uct:4 --prior-draws -1", "--prior-draws: got -1.0, expected a number of at least 0"),
        ("--games games.txt", "got the format .txt, expected"),
        ("--games 4", "players: got 0, expected at least 2, or --run DIR, or --games FILE"),
    ],
)
def test_the_command_refuses(words, message, capsys):
    assert main(["rate", "tic_tac_toe", *words.split()]) in (1, 2)
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
