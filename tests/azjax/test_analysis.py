"""Analysis: what it says of positions whose truth the search finds with any network, and the command's words."""

import json

import jax
import jax.numpy as jnp
import pytest

from azjax import network
from azjax.analysis import Analyst, mistakes, position_table, review_game, value_curve
from azjax.cli import main
from azjax.config import NetworkConfig, RunConfig
from azjax.openings import play_words
from azjax.players import LoadedRun
from envs.backgammon import Backgammon
from envs.tic_tac_toe import GAME

KEY = jax.random.key(0)
CONFIG = RunConfig(game="tic_tac_toe", network=NetworkConfig(width=8, blocks=1, value_width=4))


@pytest.fixture(scope="module")
def analyst():
    return Analyst(GAME, LoadedRun(CONFIG, network.init(CONFIG.network, GAME, KEY), 0), most_simulations=300)


def after(*words):
    return play_words(GAME, GAME.init(KEY), words)[1]


def test_a_win_in_one_is_seen(analyst):
    view = analyst.look(after("a1", "a2", "b1", "b2"))  # c1 wins at once; a3 and c2 stop nothing
    assert view.to_move == 0 and view.simulations == 300
    assert view.moves[0].move == "c1" and view.moves[0].q == 1.0 and view.principal_variation == ("c1",)
    assert view.value > 0.9
    assert {move.move for move in view.moves} == {"c1", "c2", "a3", "b3", "c3"}
    assert sum(move.visits for move in view.moves) == 300
    assert sum(move.prior for move in view.moves) == pytest.approx(1, abs=1e-3)
    assert [move.visits for move in view.moves] == sorted((move.visits for move in view.moves), reverse=True)


def test_fewer_simulations_and_untried_moves(analyst):
    view = analyst.look(after(), simulations=2)
    assert view.simulations == 2 and sum(move.q is None for move in view.moves) >= 7
    untried = sum(move.visits == 0 for move in view.moves)
    caption = str(position_table(view, 3).caption)
    assert f"{untried} of 9 moves without a visit" in caption
    assert "without a visit" not in str(position_table(analyst.look(after("a1"), simulations=300), 3).caption)


def test_a_game_is_reviewed_ply_by_ply(analyst):
    # 0 does not take the win c1 at ply 5, 1 does not see it either; then 0 takes it.
    words = ["a1", "a2", "b1", "b2", "a3", "b3", "c1"]
    events = []
    state = GAME.init(KEY)
    for word in words:
        events.append(GAME.parse_action(word))
        state = GAME.step(state, jnp.int32(events[-1]))
    told = []
    plies = review_game(analyst, events, simulations=300, on_ply=lambda done, all_: told.append((done, all_)))
    assert told == [(number, 7) for number in range(7)]
    assert [ply.move for ply in plies] == words and [ply.player for ply in plies] == [0, 1, 0, 1, 0, 1, 0]
    missed, blind = plies[4], plies[5]
    assert missed.best == "c1" and missed.value > 0.9 and missed.lost > 0.9  # and c2 would have won for player 1
    assert blind.best == "c2" and blind.value < -0.9 and blind.lost > 1.8
    assert plies[6].lost == 0.0 and plies[6].value > 0.9
    worst = mistakes(plies)
    assert worst[0] == blind and worst[1] == missed
    assert mistakes(plies, most=1) == [blind]
    opened = review_game(analyst, events, simulations=300, opening_plies=5)
    assert [ply.opening for ply in opened] == [True] * 5 + [False] * 2
    assert [ply.lost for ply in opened] == [ply.lost for ply in plies]
    assert mistakes(opened)[0].ply == 6 and all(ply.ply > 5 for ply in mistakes(opened))  # ply 5 was nobody's choice


def test_the_curve_is_a_picture(analyst, tmp_path):
    plies = review_game(analyst, [0, 4, 8], simulations=10)
    value_curve(tmp_path / "curve.png", plies, "a game")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_analysed_is_refused(analyst):
    with pytest.raises(ValueError, match="the game is over there"):
        analyst.look(after("a1", "a2", "b1", "b2", "c1"))
    with pytest.raises(ValueError, match=r"move 2: got 'a1', which is not legal there"):
        after("a1", "a1")
    with pytest.raises(ValueError, match=r"move 1: got 'z9', expected one of this game's moves"):
        after("z9")
    with pytest.raises(ValueError, match=r"moves: got 1, expected none: backgammon has dice"):
        play_words(Backgammon(), None, ["24/18"])
    with pytest.raises(ValueError, match=r"tic_tac_toe has no notation for positions"):
        GAME.parse_position("xx")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "run"),
        ("--run nowhere", "run: got nowhere, which has no config.json"),
        ("--run nowhere --record x.jsonl --moves a1", "--record: got it with --moves"),
        ("--run nowhere --out x.png", "--out: got x.png without --record"),
        ("--run nowhere --seconds 0", "--seconds: got 0.0"),
        ("--run nowhere --simulations 0", "--simulations: got 0, expected at least 1"),
        ("--run nowhere --record nowhere.jsonl", "nowhere.jsonl"),
    ],
)
def test_the_command_refuses(words, message, capsys):
    assert main(["analyze", "tic_tac_toe", *words.split()]) in (1, 2)
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1 and "Traceback" not in said


@pytest.mark.slow
def test_the_command(tmp_path, capsys):
    argv = ["train", "tic_tac_toe", "--preset", "smoke", "--steps", "1", "--out", str(tmp_path / "run")]
    small = ["--selfplay.lanes", "16", "--selfplay.plies", "2", "--learner.batch", "16", "--search.simulations", "4"]
    assert main([*argv, *small, "--evaluation.final-games", "2", "--evaluation.anchors", "random"]) == 0
    capsys.readouterr()
    look = ["analyze", "tic_tac_toe", "--run", str(tmp_path / "run"), "--simulations", "30"]
    assert main([*look, "--moves", "b2", "a1", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen["game"] == "tic_tac_toe" and seen["step"] == 1 and len(seen["moves"]) == 7
    assert sum(move["visits"] for move in seen["moves"]) == seen["simulations"] == 30
    assert main([*look, "--moves", "b2", "a1", "--most", "3"]) == 0
    assert "value" in capsys.readouterr().out
    file = str(tmp_path / "agent.safetensors")
    assert main(["export", "--run", str(tmp_path / "run"), "--out", file]) == 0
    capsys.readouterr()
    of_file = [word for word in look if word not in ("--run", str(tmp_path / "run"))]
    assert main([*of_file, "--agent", file, "--moves", "b2", "a1", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again.pop("agent") == file and seen.pop("run") and again == seen
    assert main([*of_file, "--agent", file, "--wins", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["player"] == f"agent:{file},simulations=30"
    games = next((tmp_path / "run" / "games").glob("*.jsonl"))
    picture = tmp_path / "curve.png"
    assert main([*look, "--record", str(games), "--number", "2", "--out", str(picture), "--json"]) == 0
    review = json.loads(capsys.readouterr().out)
    assert main([*look, "--record", str(games), "--number", "2", "--out", str(picture)]) == 0
    told = capsys.readouterr().out
    assert "for the first player" in told and f"picture: {picture}" in told and "opening, chosen by neither" in told
    assert [ply["ply"] for ply in review["plies"]] == list(range(1, len(review["plies"]) + 1)) and picture.exists()
    assert main([*look, "--record", str(games), "--number", "99"]) == 2
    assert "--number: got 99" in capsys.readouterr().err
