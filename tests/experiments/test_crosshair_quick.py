"""Matches of several seeds are added up step by step; the smoke budget trains, plays and writes."""

import dataclasses
import json

import pytest

from experiments.crosshair_quick import Options, main, pooled


def row(seed, step, wins, losses, seconds):
    return {
        "seed": seed,
        "step": step,
        "selfplay_games": 100 * step + seed,
        "training_seconds": seconds,
        "games": wins + losses,
        "wins": wins,
        "draws": 0,
        "losses": losses,
        "distinct": wins + losses,
        "match_seconds": 1.0,
    }


def test_seeds_are_pooled_at_each_step():
    early, late = pooled([row(0, 9, 90, 10, 30.0), row(1, 9, 80, 20, 40.0), row(1, 3, 5, 5, 10.0)])
    assert early == {
        "step": 3,
        "seeds": 1,
        "selfplay_games": 301,
        "training_seconds": 10.0,
        "games": 10,
        "score": 0.5,
        "low": pytest.approx(0.2366, abs=1e-4),  # Wilson's interval of 5 in 10
        "high": pytest.approx(0.7634, abs=1e-4),
    }
    assert (late["games"], late["score"], late["training_seconds"], late["seeds"]) == (200, 0.85, 35.0, 2)
    assert late["low"] < 0.85 < late["high"]


@pytest.mark.slow
def test_the_smoke_budget_trains_two_seeds_and_writes_their_results(tmp_path, capsys):
    options = Options(budget="smoke", seeds=(0, 1), games=4, runs=tmp_path / "runs", out=tmp_path / "out")
    for seed in (1, 0):  # one today, one tomorrow
        assert main(dataclasses.replace(options, seeds=(seed,))) == 0
    report = json.loads((tmp_path / "out" / "results.json").read_text())
    steps = {seed: [match["step"] for match in found["matches"]] for seed, found in report["seeds"].items()}
    assert steps == {"0": [2, 4], "1": [2, 4]}
    assert [one["games"] for one in report["pooled"]] == [4, 8]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "results.json",
        "results.csv",
        "results.md",
        "results.png",
    }
    assert "Won-drawn-lost at step 4, seed 0" in capsys.readouterr().out
    # Both seeds are there: a second call trains nothing and plays nothing, not even at another speed.
    assert main(options) == 0
    assert json.loads((tmp_path / "out" / "results.json").read_text())["seeds"] == report["seeds"]
