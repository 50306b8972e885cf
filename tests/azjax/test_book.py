"""Openings in self-play and along an agent's lines, what checkpoints know, and players at several simulations."""

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import network
from azjax.analysis import Analyst
from azjax.book import book_table, most_played, prevalence, read_lines, selfplay_beginnings, write_book
from azjax.cli import main
from azjax.config import NetworkConfig, RunConfig, SearchConfig, SelfPlayConfig
from azjax.generations import Generation, Share, judge_generations, play_held_out, write_generations
from azjax.openings import Opening, play_words
from azjax.players import LoadedRun, make_player
from azjax.rating import PairResult, fit_ratings
from azjax.scaling import Scaled, at_simulations, scaling_points, write_scaling
from azjax.step import make_mesh
from envs.backgammon import Backgammon
from envs.tic_tac_toe import GAME

KEY = jax.random.key(0)
CONFIG = RunConfig(
    game="tic_tac_toe",
    network=NetworkConfig(width=8, blocks=0, value_width=4),
    search=SearchConfig(simulations=8, dirichlet_alpha=1.0),
    selfplay=SelfPlayConfig(temperature_plies=1),
)
PROBS = [0.02, 0.02, 0.02, 0.02, 0.84, 0.02, 0.02, 0.02, 0.02]


def agent(step: int, probs=None) -> LoadedRun:
    """A run's checkpoint, whose network is fresh, or thinks the same of every position."""
    variables = network.init(CONFIG.network, GAME, jax.random.key(step))
    if probs is not None:
        variables = jax.tree.map(jnp.zeros_like, variables)
        variables["params"]["Dense_1"]["bias"] = jnp.log(jnp.array(probs))
    return LoadedRun(CONFIG, variables, step)


@pytest.fixture(scope="module")
def beginnings():
    """The first three plies of 200 games of an agent that likes the centre."""
    return selfplay_beginnings(GAME, agent(1, PROBS), games=200, plies=3, mesh=make_mesh(1))


def test_beginnings_of_self_play_are_legal_games_with_noise(beginnings):
    assert beginnings.shape == (200, 3) and beginnings.min() >= 0
    assert all(len(set(moves)) == 3 for moves in beginnings.tolist())
    share = (beginnings[:, 0] == 4).mean()
    assert 0.5 < share < 1.0 and len(np.unique(beginnings[:, 0])) > 3  # noise and temperature try the others
    again = selfplay_beginnings(GAME, agent(1, PROBS), games=200, plies=3, mesh=make_mesh(1))
    np.testing.assert_array_equal(again, beginnings)


def test_openings_are_counted_by_their_moves():
    played = np.array([[4, 0, 8], [4, 0, 2], [4, 1, 8], [0, 4, 8], [4, 0, -1]])
    openings = [Opening("centre", (4,)), Opening("corner", (4, 0)), Opening("both", (4, 0, 8)), Opening("none", (8,))]
    assert prevalence(played, openings) == [0.8, 0.6, 0.2, 0.0]
    assert most_played(GAME, played[:, :2], 2) == (Opening("b2 a1", (4, 0)), Opening("b2 b1", (4, 1)))
    assert len(most_played(GAME, played, 9)) == 4  # the game that is over by then has no such opening


@pytest.fixture(scope="module")
def lines():
    analyst = Analyst(GAME, agent(1, PROBS), most_simulations=400)
    openings = [Opening("centre", (4, 0)), Opening("loses", (0, 4, 1, 8))]  # the last lets X complete the row
    return read_lines(analyst, openings, [(0.5, 0.25), (0.0, 0.125)], 400)


def test_beginnings_that_end_the_game_are_no_openings():
    won, going = [0, 3, 1, 4, 2], [0, 3, 1, 4, 8]
    (opening,) = most_played(GAME, np.array([won, won, going], np.int32), 2)
    assert opening.actions == tuple(going)


def test_a_line_says_what_the_agent_prefers_and_how_it_goes_on(lines):
    centre, loses = lines
    assert [move.move for move in centre.moves] == ["b2", "a1"] and centre.prevalence == (0.5, 0.25)
    assert centre.moves[0].prior == 0.84 and centre.moves[0].preferred == "b2" and centre.moves[0].visits > 0.5
    assert loses.moves[3].move == "c3" and loses.moves[3].preferred == "c1"  # which stops the row
    assert loses.principal_variation == ("c1",) and loses.value > 0.8
    table = book_table(lines)
    assert table.row_count == 2


def test_a_value_is_the_first_players(lines):
    analyst = Analyst(GAME, agent(1, PROBS), most_simulations=100)
    (line,) = read_lines(analyst, [Opening("O wins", (0, 3, 8, 4, 1))], [(0.0,)], 100)  # O completes the middle row
    assert line.value < -0.8 and line.principal_variation == ("c2",)


def test_the_picture_and_the_file(lines, tmp_path):
    write_book(tmp_path, lines, [1, 2], {"game": "tic_tac_toe"}, "a $run")
    said = json.loads((tmp_path / "openings.json").read_text("utf-8"))
    assert said["steps"] == [1, 2] and [line["name"] for line in said["openings"]] == ["centre", "loses"]
    assert (tmp_path / "openings.png").read_bytes().startswith(b"\x89PNG")


# ---- what checkpoints know


@pytest.fixture(scope="module")
def games():
    return play_held_out(GAME, agent(3), 8, 0, simulations=24)


def test_generations_are_judged_on_the_same_positions(games, tmp_path):
    rows = judge_generations(GAME, [agent(1, PROBS), agent(3)], games)
    assert [row.step for row in rows] == [1, 3]
    # Who always wants the centre agrees where the long search took it, or the first free square where it is taken.
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), games.states)
    legal = np.asarray(jax.vmap(GAME.legal_action_mask)(states)).reshape(*games.playing.shape, 9)
    wanted = np.where(legal[..., 4], 4, legal.argmax(-1))
    assert rows[0].top_1.value == pytest.approx((wanted == games.best)[games.playing].mean())
    write_generations(tmp_path, rows, {"games": 8}, "a run")
    said = json.loads((tmp_path / "generations.json").read_text("utf-8"))
    assert said["games"] == 8 and [row["step"] for row in said["generations"]] == [1, 3]
    assert (tmp_path / "generations.png").read_bytes().startswith(b"\x89PNG")


def test_drawn_games_have_no_winner_to_predict(games):
    drawn = games._replace(returns=np.zeros_like(games.returns))
    (row,) = judge_generations(GAME, [agent(3)], drawn)
    assert np.isnan(row.winner.value) and row.to_json()["winner"] is None and row.top_1.value > 0
    shown = Generation(step=2, top_1=Share(0.5, 0.25, 0.75), winner=Share(1.0, 1.0, 1.0)).to_json()
    assert shown == {"step": 2, "top_1": 0.5, "top_1_ci95": [0.25, 0.75], "winner": 1.0, "winner_ci95": [1.0, 1.0]}


def test_dice_are_refused():
    with pytest.raises(ValueError, match="backgammon, which has dice"):
        play_held_out(Backgammon(), agent(1), 2, 0)


# ---- players at several numbers of simulations


def test_words_at_simulations():
    words = ["random", "uct:400,c=0.7", "run:a@3,simulations=9,search=puct", "run:a,search=policy", "solver"]
    assert at_simulations(words, [5, 50]) == [
        Scaled(player="uct,c=0.7", word="uct:5,c=0.7", simulations=5),
        Scaled(player="uct,c=0.7", word="uct:50,c=0.7", simulations=50),
        Scaled(player="run:a@3,search=puct", word="run:a@3,search=puct,simulations=5", simulations=5),
        Scaled(player="run:a@3,search=puct", word="run:a@3,search=puct,simulations=50", simulations=50),
    ]
    assert at_simulations(words, []) == []


def test_points_have_the_rating_and_the_time_of_a_move(tmp_path):
    scaled = at_simulations(["uct:1"], [2, 300])
    players = [make_player(GAME, one.word, lambda directory, step: None) for one in scaled]
    ratings = fit_ratings([PairResult(a="uct:300", b="uct:2", wins=9, draws=0, losses=1)], anchors={"uct:2": 0.0})
    few, many = scaling_points(GAME, scaled, players, ratings)
    assert (few.simulations, few.elo, many.simulations) == (2, 0.0, 300) and many.elo > 100
    assert 0 < few.seconds_a_move < many.seconds_a_move  # 150 times the work
    write_scaling(tmp_path, [few, many], "two $players")
    said = json.loads((tmp_path / "scaling.json").read_text("utf-8"))
    assert [point["player"] for point in said["points"]] == ["uct", "uct"]
    assert said["points"][1]["lo"] < said["points"][1]["elo"] < said["points"][1]["hi"]
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")


# ---- the commands


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("analyze tic_tac_toe --wins 5", "got nobody to look, expected one of --run, --agent"),
        ("analyze tic_tac_toe --wins 5 --run a --player random", "got --run a and --player random, expected one of"),
        ("analyze tic_tac_toe --wins 5 --run a --agent b", "got --run a and --agent b, expected one of"),
        ("analyze tic_tac_toe --agent b --book 2", "--book: got no --run, expected the one whose checkpoints"),
        ("analyze tic_tac_toe --agent b", "agent: got 'b', expected one of black_hole"),
        ("analyze tic_tac_toe --agent crosshair", "plays crosshair, expected one of tic_tac_toe"),
        ("analyze tic_tac_toe --player random", "--player: got random without --wins or --perfect"),
        ("analyze tic_tac_toe --player random --wins 3 --perfect 3", "--wins and --perfect: got both"),
        ("analyze tic_tac_toe --player random --wins 0", "--wins: got 0, expected at least 1"),
        ("analyze tic_tac_toe --run a --book 2 --moves a1", "--book: got it with --moves"),
        ("analyze tic_tac_toe --player random --wins 3 --out x", "--out: got x without --record, --book or"),
        ("analyze backgammon --player random --wins 3", "backgammon, which has dice"),
        ("analyze tic_tac_toe --run nowhere --generations 4", "nowhere, which has no config.json"),
        ("rate tic_tac_toe uct:4 --simulations 4 4", "--simulations: got (4, 4), expected different"),
        ("rate tic_tac_toe uct:4 --simulations 4", "players: got 1, expected at least 2"),
        ("rate --run a --simulations 4 8", "--simulations: got it with --run a"),
    ],
)
def test_the_commands_refuse(words, message, capsys):
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_any_player_is_measured(capsys):
    assert main("analyze tic_tac_toe --player solver --wins 12 --json".split()) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(row["moves"], row["positions"]) for row in said["wins"]] == [(1, 12), (2, 12)]
    assert said["wins"][0]["share"] == 1.0
    assert main("analyze tic_tac_toe --player solver --wins 12".split()) == 0
    assert "solver finds 12 of 12 wins in one: 100.0% (75.8% to 100.0%)" in capsys.readouterr().out
    assert main("analyze tic_tac_toe --player random --perfect 200 --json".split()) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["all"]["positions"] == 200 and len(said["plies"]) == 9 and 0.3 < said["all"]["critical_share"] < 0.8
    assert main("analyze tic_tac_toe --player random --perfect 200".split()) == 0
    assert re.search(r"all +200 ", capsys.readouterr().out)


def test_rate_at_simulations(capsys, tmp_path):
    argv = "rate tic_tac_toe uct:1 random --simulations 3 60 --games 8 --json".split()
    assert main([*argv, "--out", str(tmp_path)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {player["name"] for player in said["players"]} == {"random", "uct:3", "uct:60"}
    points = json.loads((tmp_path / "scaling.json").read_text("utf-8"))["points"]
    assert [point["simulations"] for point in points] == [3, 60]


@pytest.mark.slow
def test_the_commands_on_a_run(capsys, tmp_path):
    run = tmp_path / "run"
    small = "--steps 2 --checkpoint.every 1 --selfplay.lanes 16 --selfplay.plies 2 --learner.batch 16"
    argv = f"train tic_tac_toe --preset smoke {small} --search.simulations 4 --evaluation.final-games 2"
    assert main([*argv.split(), "--evaluation.anchors", "random", "--out", str(run)]) == 0
    book = tmp_path / "book.txt"
    book.write_text("centre: b2 a1\n", "utf-8")
    out = ["--out", str(tmp_path / "out"), "--json"]
    look = ["analyze", "tic_tac_toe", "--run", str(run), "--simulations", "16"]
    capsys.readouterr()
    assert main([*look, "--book", str(book), "--games", "32", *out]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["steps"] == [1, 2] and [line["name"] for line in said["openings"]] == ["centre"]
    assert main([*look, "--book", "2", "--games", "32"]) == 0
    assert main([*look, "--generations", "8", *out]) == 0
    assert main([*look, "--wins", "8"]) == 0
    assert main(["rate", "--run", str(run), "--games", "2", "--out", str(tmp_path / "out")]) == 0
    files = (
        "openings.png openings.json generations.png generations.json ratings.json elo.png training.png training.json"
    )
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(files.split())
    _, state = play_words(GAME, GAME.init(KEY), ["b2", "a1"])
    assert int(GAME.to_move(state)) == 0
