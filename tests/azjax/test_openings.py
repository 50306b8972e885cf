"""Openings from a list: how it is read, and how a match plays them."""

import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from azjax.arena import play_match
from azjax.cli import main
from azjax.openings import Opening, listed_openings, play_words, random_openings, read_openings
from azjax.players import Player
from azjax.sprt import Sprt
from azjax.step import make_mesh
from azjax.tournament import sequential_match
from envs.backgammon import Backgammon
from envs.connect_four import ConnectFour
from envs.tic_tac_toe import GAME

KEY = jax.random.key(0)
LISTED = (Opening("centre", (4,)), Opening("a1 b2 c3", (0, 4, 8)), Opening("a: b", (1,)))
TEXT = """
# tic-tac-toe
centre: b2
1. a1 b2 2.c3   # a diagonal
a: b: B1
"""


def lowest(params, rng_key, states):
    return jnp.argmax(jax.vmap(GAME.legal_action_mask)(states), axis=-1).astype(jnp.int32)


def highest(params, rng_key, states):
    return (8 - jnp.argmax(jax.vmap(GAME.legal_action_mask)(states)[:, ::-1], axis=-1)).astype(jnp.int32)


LOW, HIGH = Player("low", lowest, ()), Player("high", highest, ())


@pytest.fixture
def path(tmp_path):
    (tmp_path / "openings.txt").write_text(TEXT, "utf-8")
    return tmp_path / "openings.txt"


def test_a_list_is_read(path):
    assert read_openings(GAME, path) == LISTED


def test_moves_that_are_numbers_are_no_numbers_of_moves(tmp_path):
    (tmp_path / "four.txt").write_text("1. 4 4 2. 3\n", "utf-8")
    assert read_openings(ConnectFour(), tmp_path / "four.txt")[0].actions == (3, 3, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b2\na1 a1", "line 2: move 2: got 'a1', which is not legal there"),
        ("x: b2 z9", "line 1: move 2: got 'z9', expected one of this game's moves"),
        ("a1 a2 b1 b2 c1", "line 1: got a1 a2 b1 b2 c1, after which the game is over"),
        ("b2\nname:", "line 2: got no moves of 'name'"),
        ("# nothing\n\n", "got no opening, expected at least one line such as NAME: MOVE MOVE"),
        ("\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), "line 1: move 1: got"),
    ],
)
def test_a_list_that_is_wrong_is_refused(text, message, path):
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {message}')}"):
        read_openings(GAME, path)


@pytest.mark.slow  # chess compiles for half a minute
def test_the_papers_openings_are_read():
    game = envs.make("chess")
    openings = read_openings(game, Path(__file__).parents[2] / "experiments/openings/chess_table_2.txt")
    assert [opening.name[:3] for opening in openings] == "A10 D06 A46 E00 E61 C00 B50 B30 B40 C60 B10 A05".split()
    assert [len(opening.actions) for opening in openings] == [1, 3, 3, 4, 5, 4, 4, 4, 4, 5, 2, 2]


def test_dice_have_no_openings(path):
    with pytest.raises(ValueError, match="got openings of backgammon, expected a game without dice"):
        read_openings(Backgammon(), path)


def test_positions_after_openings_in_turn():
    states, moves = listed_openings(GAME, LISTED, 5)
    assert moves.tolist() == [[4, -1, -1], [0, 4, 8], [1, -1, -1], [4, -1, -1], [0, 4, 8]]
    _, expected = play_words(GAME, GAME.init(KEY), ["a1", "b2", "c3"])
    for leaf, want in zip(jax.tree.leaves(states), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(leaf[1], want)
        np.testing.assert_array_equal(leaf[4], want)
    few, _ = listed_openings(GAME, LISTED, 2)
    assert {leaf.shape[0] for leaf in jax.tree.leaves(few)} == {2}


def test_a_match_plays_each_opening_from_both_seats():
    match = play_match(GAME, LOW, HIGH, games=10, mesh=make_mesh(1), openings=LISTED, lanes=4)
    for number, record in enumerate(match.records):
        opening = LISTED[number // 2 % 3].actions
        assert record.actions[: len(opening)] == opening and record.opening_plies == len(opening)
        assert record.players == (("low", "high") if number % 2 == 0 else ("high", "low"))
    # Nothing is left to chance: the fourth and fifth pairs repeat the first and second.
    assert [record.actions for record in match.records[6:]] == [record.actions for record in match.records[:4]]
    assert match.distinct == 6


def test_rounds_of_a_sequential_match_go_on_in_the_list():
    undecided = Sprt(elo0=-1, elo1=1)
    match = sequential_match(GAME, LOW, HIGH, undecided, games=8, mesh=make_mesh(1), openings=LISTED, lanes=4)
    assert [record.actions[0] for record in match.records] == [4, 4, 0, 0, 1, 1, 4, 4]
    assert (match.games, match.distinct) == (8, 6)


def test_the_commands_take_a_list(path, tmp_path, capsys):
    argv = ["match", "tic_tac_toe", "random", "random", "--games", "6", "--openings", str(path), "--json"]
    assert main([*argv, "--out", str(tmp_path / "out")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["openings"] == str(path) and "opening_plies" not in said
    lines = (tmp_path / "out/games.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["opening_plies"] for line in lines] == [1, 1, 3, 3, 1, 1]
    assert main([*argv, "--opening-plies", "1"]) == 2
    assert "--opening-plies and --openings: got both" in capsys.readouterr().err
    assert main([*argv[:-2], "nowhere.txt"]) == 2
    assert "nowhere.txt: No such file" in capsys.readouterr().err


def test_there_is_room_for_no_more_random_moves_than_a_game_has():
    states, played = random_openings(GAME, KEY, 6, 10**12)
    _, nine = random_openings(GAME, KEY, 6, 9)
    np.testing.assert_array_equal(played, nine)
    assert played.shape == (6, 9) and not jax.vmap(GAME.terminated)(states).any()
