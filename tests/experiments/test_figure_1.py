"""One set of hyper-parameters for all games; the smoke budget trains, rates and writes, once."""

import json

import pytest

import envs
from azjax.config import differences
from azjax.players import parse_player
from azjax.report import EloPoint
from experiments.figure_1 import BUDGETS, GAMES, Options, anchors, configuration, main, passed_steps, zero


@pytest.mark.parametrize("budget", ["hour", "full"])
def test_only_the_length_of_replay_follows_the_game(budget):
    configs = [configuration(BUDGETS[budget], game, 0) for game in GAMES]
    for config in configs[1:]:
        assert set(differences(configs[0], config)) <= {"game", "replay.plies"}
    for config in configs:
        assert config.replay.plies > envs.make(config.game).max_plies


@pytest.mark.parametrize("game", GAMES)
def test_anchors_are_players_and_one_of_them_is_zero(game):
    words = anchors(game, BUDGETS["hour"])
    assert words[0] == "random" and len(set(words)) == len(words) >= 4
    assert zero(words) in words and zero(words) != "random"
    assert all(parse_player(word) for word in words)
    assert set(anchors(game, BUDGETS["minutes"])) <= set(words) - {"uct:1600"}


def test_the_steps_at_which_an_anchor_is_passed():
    points = [
        EloPoint(step=10 * n, games=n, seconds=1.0, elo=elo, lo=elo - 9, hi=elo + 9)
        for n, elo in enumerate((0.0, 50.0, 30.0, 80.0), 1)
    ]
    assert passed_steps(points, 40.0) == {"first": 20, "for_good": 40}
    assert passed_steps(points, 90.0) == {"first": None, "for_good": None}
    assert passed_steps(points, -1.0) == {"first": 10, "for_good": 10}


def test_an_unknown_game_is_refused(tmp_path):
    with pytest.raises(ValueError, match="--games: got checkers, expected some of hex,size=3"):
        main(Options(games=("checkers",), runs=tmp_path))


@pytest.mark.slow
def test_the_smoke_budget_rates_a_run_once(tmp_path, capsys):
    options = Options(runs=tmp_path / "runs", out=tmp_path / "out")
    assert main(options) == 0
    (report,) = json.loads((tmp_path / "out" / "results.json").read_text())["games"].values()
    assert [point["step"] for point in report["points"]] == [2, 4]
    assert set(report["anchors"]) == {"random", "uct:8", "solver"}
    assert report["anchors"]["uct:8"] == {"elo": 0.0, "ci95": [0.0, 0.0]}
    assert report["last"]["solver"]["games"] == 4 and report["drop"]["elo"] >= 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"results.json", "results.csv", "results.md", "results.png", "hex-size-3"}
    assert {path.name for path in (tmp_path / "out" / "hex-size-3").iterdir()} == {"training.png", "training.json"}
    assert "first passed at step" in capsys.readouterr().out
    written = (tmp_path / "out" / "results.json").read_text()
    assert main(options) == 0
    assert (tmp_path / "out" / "results.json").read_text() == written
