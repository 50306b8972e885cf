"""Strength that must not go down unnoticed: what a minute of training reaches, and what the agents of azjax win."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import envs
from azjax.players import run_player
from azjax.rundir import load_run
from experiments.tic_tac_toe_perfect import play_every_reply

pytestmark = pytest.mark.slow


def azjax(*words: str) -> str:
    """Runs a command as a user does: programs that compute are compiled with all of XLA's optimisation."""
    environment = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "PJRT_NPROC")}
    done = subprocess.run([sys.executable, "-m", "azjax", *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_minute_of_training_never_loses_at_tic_tac_toe(tmp_path: Path):
    azjax("train", "tic_tac_toe", "--preset", "quick", "--seed", "3", "--out", str(tmp_path / "run"))
    game = envs.make("tic_tac_toe")
    player = run_player(game, load_run(str(tmp_path / "run"), None), "agent", {"simulations": "64"})
    for seat in (0, 1):
        outcomes = play_every_reply(game, player, seat)
        assert outcomes.losses == 0 and outcomes.wins + outcomes.draws > 50, (seat, outcomes)


def test_the_agent_that_comes_with_azjax_is_as_strong_as_it_was():
    """With the seed that is the default, on CPU, the same 100 games each time."""
    said = azjax("match", "crosshair", "agent:crosshair,simulations=400", "uct:400", "--games", "100", "--json")
    score = json.loads(said.splitlines()[-1])["score"]
    assert score >= 0.85
