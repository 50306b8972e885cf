"""The Crosshair article's recipe is the published one; its measures hold to literal games; its smoke budget runs."""

import csv
import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from azjax import network
from azjax.generations import HeldOut, judge, share
from experiments.crosshair_article import Options, configuration, main, mean_lengths, pooled, red_shares, stages


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


def generation(seed, number, wins, red_wins, seconds, top_1):
    return {
        "seed": seed,
        "generation": number,
        "games": 220 * number + seed,
        "selfplay_seconds": seconds,
        "learning_seconds": 1.0,
        "arena_seconds": 2 * seconds,
        "decided": 200,
        "red_wins": red_wins,
        "wins": wins,
        "draws": 0,
        "losses": 60 - wins,
        "top_1": top_1,
        "winner": 0.5 + top_1 / 10,
    }


TWO_SEEDS = [
    {
        "seed": seed,
        "held_out": {"games": 10, "positions": 400 + 20 * seed, "red_wins": 7 - seed},
        "lengths": {"random": 28.0 + seed, "uct:400": 40.0},
        "generations": [generation(seed, 1, 20 + 4 * seed, 110, 10.0, 0.2), generation(seed, 2, 40, 130, 14.0, 0.4)],
    }
    for seed in (0, 1)
]


def test_seeds_are_added_up_or_averaged():
    first, last = pooled(TWO_SEEDS)
    assert (first["generation"], first["games"], last["games"]) == (1, 220, 440)
    assert first["score"] == pytest.approx(44 / 120, abs=1e-4) and last["score"] == pytest.approx(80 / 120, abs=1e-4)
    assert first["score_low"] < first["score"] < first["score_high"] < first["score"] + 0.1
    assert (last["top_1"], last["top_1_low"], last["top_1_high"]) == (0.4, 0.4, 0.4)
    assert stages(TWO_SEEDS) == {"self-play": 12.0, "learning": 1.0, "arena": 24.0}
    red = red_shares(TWO_SEEDS)
    assert red["self-play"][0] == 0.6 and red["held out"][0] == 13 / 20
    assert mean_lengths(TWO_SEEDS) == {"held out": 41.0, "against random": 28.5, "against uct:400": 40.0}


@pytest.mark.slow
def test_the_smoke_budget_trains_two_seeds_once_and_writes_their_results(tmp_path, capsys):
    runs, out = tmp_path / "runs", tmp_path / "results"
    options = Options(budget="smoke", seeds=(0, 3), runs=runs, out=out)
    for seed in (3, 0):  # one today, one tomorrow
        assert main(dataclasses.replace(options, seeds=(seed,))) == 0
    report = json.loads((out / "results.json").read_text())
    assert [row["generation"] for row in report["generations"]] == [1, 2]
    assert [seed["seed"] for seed in report["seeds"].values()] == [0, 3]
    for seed in report["seeds"].values():
        for row in seed["generations"]:
            for name in ("score", "top_1", "winner"):
                assert 0 <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] <= 1
        held_out = seed["held_out"]
        assert held_out["games"] == 8 and held_out["distinct"] > 1 and 0 <= held_out["red_wins"] <= 8
        assert 4 * held_out["games"] <= held_out["positions"] <= 16 * held_out["games"]
        assert 4 <= seed["lengths"]["uct:8"] <= 16
    assert report["article"]["generations"]["score"] == [0.35, 0.72]
    assert report["ours"]["opponent"] == "uct:400" and report["plan"]["fits"]
    with (out / "results.csv").open() as file:
        written = [float(row["top_1"]) for row in csv.DictReader(file)]
    assert written == [row["top_1"] for seed in report["seeds"].values() for row in seed["generations"]]
    assert (out / "results.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    text = (out / "results.md").read_text()
    assert "article, last" in text and "self-play, s a generation" in text and "against uct:400 |" in text

    logs = [(path / "metrics.jsonl").read_text() for path in sorted(runs.iterdir())]
    assert len(logs) == 2
    capsys.readouterr()
    assert main(options) == 0
    assert [(path / "metrics.jsonl").read_text() for path in sorted(runs.iterdir())] == logs
    assert "held-out games" not in capsys.readouterr().err
    assert json.loads((out / "results.json").read_text())["seeds"] == report["seeds"]


def test_the_plan_is_shown_without_training(tmp_path, capsys):
    assert main(Options(budget="full", runs=tmp_path, plan=True)) == 0
    said = capsys.readouterr().out
    # 10 generations of 220 x 42 positions, each with 450 simulations and the root.
    assert f"{10 * 220 * 42 * 451 + 3 * 10 * 540 * 256:,} evaluations of the network" in said
    assert not list(tmp_path.iterdir())
