"""Runs from start to end: stop and resume bit for bit, kill, refuse, report."""

import dataclasses
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import envs
from azjax.checkpoint import Checkpoints
from azjax.cli.options import Train
from azjax.cli.parse import configure, parse
from azjax.config import (
    LearnerConfig,
    ReplayConfig,
)
from azjax.rundir import RunDirectory, load_run
from azjax.train import train
from tests.azjax import tiny_run
from tests.azjax.tiny_run import TINY, assert_same_state, state_of, stopped_after


def rows_of(directory: Path) -> list[dict]:
    """Reads the training rows of metrics.jsonl without what depends on the clock."""
    return [row for row in tiny_run.rows_of(directory) if "loss" in row]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never interrupted."""
    directory = tmp_path_factory.mktemp("runs") / "whole"
    assert train(TINY, directory) == 0
    return directory


def test_a_run_leaves_a_whole_directory(whole):
    for name in ("config.json", "metrics.jsonl", "ratings.json", "elo.png", "report.md", "tensorboard", "games"):
        assert (whole / name).exists(), name
    assert RunDirectory(whole).read_config() == TINY
    rows = rows_of(whole)
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert rows[-1]["plies"] == 6 * 8 * 4
    assert rows[-1]["simulations"] == 6 * 8 * 4 * 4
    assert all(row["won_by_last_mover_in_step"] == row["decided_in_step"] for row in rows)
    players = {player["name"]: player for player in json.loads((whole / "ratings.json").read_text())["players"]}
    assert set(players) == {"step 6", "step 4", "random", "uct:2"}
    assert players["random"]["elo"] == 0.0


def test_a_finished_run_prints_its_report_and_trains_no_further(whole, capsys):
    before = (whole / "metrics.jsonl").read_text()
    assert train(TINY, whole) == 0
    assert "its report" in capsys.readouterr().err
    assert (whole / "metrics.jsonl").read_text() == before


def test_a_changed_configuration_is_refused_with_its_fields(whole):
    changed = dataclasses.replace(TINY, learner=dataclasses.replace(TINY.learner, batch=32), seed=1)
    with pytest.raises(ValueError, match=r"seed: 0 -> 1, learner.batch: 16 -> 32"):
        train(changed, whole)


def test_a_second_trainer_is_refused(whole):
    run = RunDirectory(whole)
    with run.lock(), pytest.raises(ValueError, match="is being trained by process"):
        train(TINY, whole)


@pytest.mark.parametrize("cut", [pytest.param(2, marks=pytest.mark.slow), 4])
def test_stop_and_resume_equals_no_stop_bit_for_bit(whole, tmp_path, cut, monkeypatch):
    directory = tmp_path / "resumed"
    # The run's steps decide its schedule, so it is the same configuration that is stopped.
    with stopped_after(cut, monkeypatch):
        assert train(TINY, directory) == 143
    assert Checkpoints(directory / "checkpoints").saved_steps()[-1] == cut
    assert train(TINY, directory) == 0
    assert_same_state(whole, directory, 6)
    assert rows_of(directory) == rows_of(whole)


def test_the_agent_of_each_checkpoint_can_be_loaded(whole):
    newest = load_run(str(whole), None)
    assert newest.step == 6
    assert load_run(str(whole), 4).step == 4
    with pytest.raises(ValueError, match="no checkpoint of step 3, expected one of 2, 4, 6"):
        load_run(str(whole), 3)
    with pytest.raises(ValueError, match=r"no config\.json"):
        load_run(str(whole.parent / "nothing"), None)


def test_a_game_that_does_not_fit_into_replay_is_refused(tmp_path):
    small = dataclasses.replace(TINY, replay=ReplayConfig(plies=9))
    with pytest.raises(ValueError, match=r"replay.plies: got 9, expected at least 10"):
        train(small, tmp_path / "small")


def test_numbers_that_are_not_finite_stop_the_run_and_are_kept_apart(tmp_path):
    hot = dataclasses.replace(
        TINY,
        steps=12,
        learner=LearnerConfig(batch=16, updates=2, optimizer="sgd", learning_rate=1e38, schedule="constant"),
    )
    directory = tmp_path / "hot"
    with pytest.raises(FloatingPointError, match="not finite") as error:
        train(hot, directory)
    command = parse(shlex.split(str(error.value).rpartition("start anew with other values: azjax ")[2]))
    assert command is not None and command.command == Train(game="tic_tac_toe", resume=directory, fork="NAME")
    assert configure(hot, command.settings).learner == dataclasses.replace(hot.learner, clip=1, learning_rate=1e37)
    assert (directory / "crash" / "diagnosis.json").is_file()
    for row in rows_of(directory):
        assert (row["nonfinite_steps"] == 0) or row["step"] not in Checkpoints(directory / "checkpoints").saved_steps()
    for step in Checkpoints(directory / "checkpoints").saved_steps():
        for path, leaf in state_of(directory, step).items():
            if np.issubdtype(leaf.dtype, np.floating):
                assert np.isfinite(leaf).all(), (step, path)


@pytest.mark.slow
def test_kill_9_loses_no_acknowledged_step_and_doubles_none(tmp_path):
    directory = tmp_path / "killed"
    command = [sys.executable, "-m", "azjax", "train", "tic_tac_toe", "--preset", "smoke", "--out", str(directory)]
    command += ["--checkpoint.every", "1", "--steps", "40", "--search.simulations", "4"]
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    for wait in (0.2, 1.0, 2.0):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        known = Checkpoints(directory / "checkpoints").saved_steps() if directory.exists() else []
        deadline = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < deadline:
            steps = Checkpoints(directory / "checkpoints").saved_steps() if directory.exists() else []
            if steps and steps[-1] > (known[-1] if known else 0):
                break
            time.sleep(0.1)
        time.sleep(wait)
        acknowledged = Checkpoints(directory / "checkpoints").saved_steps()
        process.kill()
        process.wait()
        assert Checkpoints(directory / "checkpoints").saved_steps()[-1] >= acknowledged[-1]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [row["step"] for row in rows_of(directory)] == list(range(1, 41))


def test_every_preset_is_a_valid_run_of_every_small_game():
    from azjax.presets import PRESETS, preset

    for game in ("tic_tac_toe", "connect_four", "crosshair", "black_hole"):
        for name in PRESETS:
            config = preset(name, game)
            assert config.replay.plies > envs.make(game).max_plies, (game, name)


def test_the_papers_constants():
    from azjax.presets import preset

    chess, shogi, go, othello = (preset("paper", game) for game in ("chess", "shogi", "go_19x19", "othello"))
    assert (chess.search.simulations, chess.search.algorithm) == (800, "puct")
    assert chess.search.dirichlet_fraction == 0.25
    assert [game.search.dirichlet_alpha for game in (chess, shogi, go, othello)] == [0.3, 0.15, 0.03, None]
    assert (chess.selfplay.temperature, chess.selfplay.temperature_plies) == (1.0, 30)
    assert (chess.learner.batch, chess.steps * chess.learner.updates) == (4096, 700_000)
    assert (chess.learner.learning_rate, chess.learner.decay, chess.learner.momentum) == (0.2, 0.1, 0.9)
    assert chess.learner.boundaries == (100_000, 300_000, 500_000)
    assert (chess.network.blocks, chess.network.channels) == (20, 256)

    hole = preset("paper", "black_hole")
    assert (hole.search.simulations, hole.learner.batch, hole.network.blocks) == (100, 512, 20)
    assert (hole.learner.learning_rate, hole.learner.boundaries) == (0.2, (100_000, 300_000, 500_000, 700_000))
    assert hole.steps * hole.learner.updates == 1_000_000
    assert hole.selfplay.lanes * hole.replay.plies == 4096
    assert (hole.gate.every, hole.gate.score, hole.gate.streak) == (10, 0.6, 5)

    crosshair = preset("paper", "crosshair")
    assert (crosshair.search.simulations, crosshair.selfplay.lanes, crosshair.steps) == (450, 220, 10)
    assert crosshair.evaluation.games == 60


def test_learning_rates_of_the_paper_fall_tenfold_three_times():
    from azjax.learner import learning_rate
    from azjax.presets import preset

    rate = learning_rate(preset("paper", "chess").learner, 700_000)
    values = [float(rate(update)) for update in (0, 100_000, 300_000, 699_999)]
    np.testing.assert_allclose(values, [0.2, 0.02, 0.002, 0.0002], rtol=1e-5)
