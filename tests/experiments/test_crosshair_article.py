"""The Crosshair article's recipe is the published one; its measures hold to literal games; its smoke budget runs."""

import csv
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from azjax import network
from azjax.generations import HeldOut, judge, share
from experiments.crosshair_article import configuration, main


def test_the_full_budget_is_the_articles_recipe():
    config = configuration("full", seed=3)
    assert (config.game, config.seed, config.steps) == ("crosshair", 3, 10)
    assert (config.search.simulations, config.selfplay.lanes) == (450, 220)
    assert (config.evaluation.every, config.evaluation.games, config.evaluation.simulations) == (1, 60, 450)
    assert config.evaluation.anchors[-1] == "uct:400"
    assert config.checkpoint.every == 1 and config.checkpoint.keep >= 10


def test_a_share_counts_positions_that_are_played_and_varies_with_games():
    hits = np.array([[True, True], [True, False], [True, True]])
    counted = np.array([[True, True], [True, True], [True, False]])
    value, low, high = share(hits, counted)
    assert value == 4 / 5
    # Game 0: 3 of 3 hits, game 1: 1 of 2; deviation sqrt(0.6^2 + 0.6^2) / 5.
    assert low == pytest.approx(0.8 - 1.96 * 0.6 * 2**0.5 / 5)
    assert high == 1.0


def test_one_game_like_another_has_no_interval():
    assert share(np.ones((4, 3), bool), np.ones((4, 3), bool)) == (1.0, 1.0, 1.0)


@pytest.fixture(scope="module")
def two_openings():
    """Two games of two plies on the smallest board, with what the network says of each."""
    config = configuration("smoke", seed=0)
    game = envs.make("crosshair,size=2")
    variables = network.init(config.network, game, jax.random.key(5))
    start = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    after = jax.vmap(game.step)(start, jnp.array([0, 3]))
    states = jax.tree.map(lambda *leaves: np.stack(leaves), start, after)
    looked = [network.evaluate(config.network, game, variables, jax.random.key(0), row) for row in (start, after)]
    masks = [np.asarray(jax.vmap(game.legal_action_mask)(row)) for row in (start, after)]
    likeliest = np.stack(
        [np.where(mask, logits, -np.inf).argmax(1) for (logits, _), mask in zip(looked, masks, strict=True)]
    )
    values = np.stack([value for _, value in looked])
    return config, game, variables, states, likeliest, values


def test_agreement_is_with_the_likeliest_legal_move(two_openings):
    config, game, variables, states, likeliest, _ = two_openings
    playing, returns = np.ones((2, 2), bool), np.array([[1, -1], [1, -1]], np.float32)
    judged = judge(game, config)
    same = judged(variables, HeldOut(states, likeliest, playing, likeliest, returns))
    assert same["top_1"].value == 1.0
    half = np.stack([likeliest[0], (likeliest[1] + 1) % 4])
    assert judged(variables, HeldOut(states, half, playing, half, returns))["top_1"].value == 0.5


def test_the_winner_is_predicted_in_the_movers_view(two_openings):
    config, game, variables, states, likeliest, values = two_openings
    playing = np.ones((2, 2), bool)
    judged = judge(game, config)
    for red_wins in (True, False):
        returns = np.array([[1, -1]] * 2 if red_wins else [[-1, 1]] * 2, np.float32)
        right = [
            (values[0] > 0) == red_wins,
            (values[1] < 0) == red_wins,
        ]  # Red moves in the first row, Blue in the second
        seen = judged(variables, HeldOut(states, likeliest, playing, likeliest, returns))
        assert seen["winner"].value == np.mean(right)


@pytest.mark.slow
def test_the_smoke_budget_writes_its_results_and_trains_once(tmp_path):
    run, out = tmp_path / "run", tmp_path / "results"
    words = ["--budget", "smoke", "--run", str(run), "--out", str(out)]
    assert main(words) == 0
    report = json.loads((out / "results.json").read_text())
    assert [row["generation"] for row in report["generations"]] == [1, 2]
    for row in report["generations"]:
        for name in ("score", "top_1", "winner"):
            assert 0 <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] <= 1
    held_out = report["held_out"]
    assert held_out["games"] == 8 and held_out["distinct"] > 1
    assert 4 * held_out["games"] <= held_out["positions"] <= 16 * held_out["games"]
    assert report["article"]["score"] == [0.35, 0.72]
    with (out / "results.csv").open() as file:
        assert [float(row["top_1"]) for row in csv.DictReader(file)] == [row["top_1"] for row in report["generations"]]
    assert (out / "results.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "article, last" in (out / "results.md").read_text()

    log = (run / "metrics.jsonl").read_text()
    assert main(words) == 0
    assert (run / "metrics.jsonl").read_text() == log
    assert json.loads((out / "results.json").read_text())["generations"] == report["generations"]
