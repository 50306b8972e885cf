"""What is told of kept values, and when the aim counts as reached; the smoke budget asks its checkpoints once."""

import json

import jax
import numpy as np
import pytest

from azjax.perfect import PlyShare
from envs.tic_tac_toe import GAME
from experiments.connect_four_perfect import Options, configuration, main, reached, remembered, share_fields


def test_the_full_budget_is_the_quick_recipe_for_longer():
    quick, full = configuration("quick"), configuration("full")
    assert quick.preset == "quick" and full.steps == 5 * quick.steps == 2000
    assert (full.network, full.learner, full.selfplay) == (quick.network, quick.learner, quick.selfplay)
    assert configuration("paper").search.simulations == 800


def test_shares_become_columns():
    fields = share_fields(PlyShare(ply=None, positions=1000, kept=990, critical=400, critical_kept=391))
    assert (fields["share"], fields["critical_share"]) == (0.99, 0.9775)
    assert fields["low"] < 0.99 < fields["high"] and fields["critical_low"] < 0.9775 < fields["critical_high"]


def test_the_aim_is_reached_by_the_longest_search_alone():
    def row(step, simulations, share):
        return {"step": step, "simulations": simulations, "share": share}

    rows = [row(1, 0, 0.999), row(1, 800, 0.99), row(2, 64, 1.0), row(2, 800, 0.9979)]
    assert reached(rows) is None
    assert reached([*rows, row(4, 800, 1.0), row(3, 800, 0.998)]) == row(3, 800, 0.998)


def test_the_same_positions_are_asked_about_once(tmp_path):
    calls = []

    def values(states):
        calls.append(states)
        return np.zeros((1, 9), np.float32) + len(calls)

    start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], GAME.init(jax.random.key(0)))
    moved = jax.tree.map(lambda leaf: np.asarray(leaf)[None], GAME.step(GAME.init(jax.random.key(0)), 4))
    look = remembered(values, tmp_path / "kept.npz")
    assert look(start).tolist() == look(start).tolist() == [[1.0] * 9] and len(calls) == 1
    assert look(moved).tolist() == [[2.0] * 9]
    assert remembered(values, tmp_path / "kept.npz")(moved).tolist() == [[2.0] * 9] and len(calls) == 2


@pytest.mark.slow
def test_the_smoke_budget_asks_every_checkpoint_once(tmp_path, capsys):
    options = Options(budget="smoke", positions=60, runs=tmp_path / "runs", out=tmp_path / "out")
    assert main(options) == 0
    report = json.loads((tmp_path / "out" / "results.json").read_text())
    cases = [("policy", 0), ("puct", 2), ("puct", 4), ("gumbel", 2), ("gumbel", 4)]
    asked = [(row["step"], row["search"], row["simulations"]) for row in report["rows"]]
    assert asked == [(step, *case) for step in (2, 4) for case in cases]
    for row in report["rows"]:
        assert row["positions"] == 60 == sum(number for _, number, _ in row["plies"])
        assert row["kept"] == sum(kept for _, _, kept in row["plies"])
        assert 0 <= row["critical_share"] <= row["share"] <= 1
    assert (tmp_path / "out" / "results.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "The aim, 99.8%" in (tmp_path / "out" / "results.md").read_text()
    capsys.readouterr()
    assert main(options) == 0
    assert "of critical" not in capsys.readouterr().err
    assert json.loads((tmp_path / "out" / "results.json").read_text())["rows"] == report["rows"]
