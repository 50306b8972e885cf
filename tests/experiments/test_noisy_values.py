"""Noise has the size it is said to have, searches see it, and without it they keep exact values."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.solver import solve
from envs.tic_tac_toe import GAME
from experiments.noisy_values import (
    SCALE,
    STUDIES,
    Noisy,
    Options,
    ask_all,
    critical_positions,
    differences,
    main,
    noise,
    noisy_evaluation,
    shares,
)


@pytest.fixture(scope="module")
def asked():
    return critical_positions(GAME, STUDIES["smoke"], 0)


def test_noise_is_standard_normal_and_belongs_to_the_position():
    boards = jnp.arange(40_000, dtype=jnp.uint32).reshape(20_000, 2)
    found = np.asarray(noise(boards, jnp.uint32(3)))
    assert abs(found.mean()) < 0.03 and abs(found.std() - 1) < 0.03
    assert abs(np.mean(np.abs(found) > 1.96) - 0.05) < 0.01
    np.testing.assert_array_equal(found[::-1], noise(boards[::-1], jnp.uint32(3)))
    other = np.asarray(noise(boards, jnp.uint32(4)))
    assert abs(np.corrcoef(found, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.03


def test_positions_are_different_and_critical(asked):
    study = STUDIES["smoke"]
    stones = np.asarray(jax.vmap(GAME.observe)(asked.states)).reshape(study.positions, -1)
    assert (stones.sum(1) == study.ply).all() and len(np.unique(stones, axis=0)) == study.positions
    legal = np.isfinite(asked.values)
    assert (asked.best.sum(1) >= 1).all() and (asked.best.sum(1) < legal.sum(1)).all()
    assert not asked.best[~legal].any()
    # The table of these positions alone says what the whole game's says.
    assert len(asked.solution.values) < len(solve(GAME).values)
    value = noisy_evaluation(Noisy(asked.solution, jnp.float32(0), jnp.uint32(0)), jax.random.key(0), asked.states, 9)[
        1
    ]
    np.testing.assert_allclose(value, SCALE * asked.values.max(1))
    spoilt = noisy_evaluation(Noisy(asked.solution, jnp.float32(9), jnp.uint32(0)), jax.random.key(0), asked.states, 9)[
        1
    ]
    assert np.abs(spoilt).max() <= 0.999 and (np.asarray(spoilt) != np.asarray(value)).all()


def test_shares_and_differences_are_of_positions():
    answers = [
        {"search": "puct", "evaluations": 8, "noise": 1.0, "hits": [[1, 1, 0, 1], [1, 0, 0, 1]]},
        {"search": "alphabeta", "evaluations": 8, "noise": 1.0, "hits": [[1, 0, 0, 1], [1, 0, 0, 1]]},
    ]
    puct, alphabeta = shares(answers)
    assert (puct["share"], alphabeta["share"]) == (0.625, 0.5)
    assert puct["low"] < 0.625 < puct["high"]
    (row,) = differences(answers)
    # By position: 0, 0.5, 0, 0: mean 0.125, standard deviation 0.25, of four.
    assert row["difference"] == 0.125
    assert row["high"] - row["difference"] == pytest.approx(1.96 * 0.25 / 2, abs=1e-4)


@pytest.mark.slow
def test_exact_values_are_kept_and_noise_loses_them(asked, tmp_path):
    answers = ask_all(GAME, STUDIES["smoke"], asked, tmp_path / "asked.json")
    share_of = {(row["search"], row["evaluations"], row["noise"]): row["share"] for row in shares(answers)}
    for search, evaluations in (("one ply", 9), ("puct", 64), ("gumbel", 64), ("alphabeta", 64)):
        assert share_of[search, evaluations, 0.0] == 1.0
    assert share_of["one ply", 9, 1.0] < 1.0
    before = (tmp_path / "asked.json").read_text()
    assert ask_all(GAME, STUDIES["smoke"], asked, tmp_path / "asked.json") == answers
    assert (tmp_path / "asked.json").read_text() == before


@pytest.mark.slow
def test_the_smoke_budget_writes_its_results(tmp_path):
    for seed in (0, 1):
        assert main(Options(budget="smoke", seed=seed, runs=tmp_path, out=tmp_path / "out")) == 0
    studies = json.loads((tmp_path / "out" / "results.json").read_text())["studies"]
    assert list(studies) == ["smoke, seed 0", "smoke, seed 1"]
    for found in studies.values():
        assert len(found["shares"]) == 2 * (1 + 3 * 2) and len(found["differences"]) == 4
        assert found["compared_with_bitbully"] is None
    assert (tmp_path / "out" / "results.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (tmp_path / "out" / "results.md").read_text().count("PUCT - alpha-beta, points") == 4
