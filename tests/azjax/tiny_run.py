"""A run of seconds, how to stop it, and what of two runs must be equal."""

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import jax
import numpy as np

from azjax import train as module
from azjax.checkpoint import Checkpoints
from azjax.config import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    NetworkConfig,
    ReplayConfig,
    RunConfig,
    SearchConfig,
    SelfPlayConfig,
)

TINY = RunConfig(
    game="tic_tac_toe",
    steps=6,
    devices=2,
    network=NetworkConfig(width=16, blocks=1),
    search=SearchConfig(simulations=4, dirichlet_alpha=1.0),
    selfplay=SelfPlayConfig(lanes=8, plies=4, temperature_plies=4),
    replay=ReplayConfig(plies=32),
    learner=LearnerConfig(batch=16, updates=2),
    evaluation=EvaluationConfig(anchors=("random", "uct:2"), games=2, final_games=2, checkpoints=2, simulations=2),
    checkpoint=CheckpointConfig(every=2, keep=3),
)
TIMES = {"seconds", "selfplay_seconds", "learning_seconds", "evaluation_seconds"}
SPEEDS = {"plies_per_second", "simulations_per_second"}


def state_of(directory: Path, step: int) -> dict[str, np.ndarray]:
    """Reads every leaf of a checkpoint by its path."""
    names = ("learner", "best", "lanes", "replay", "rng_key", "step")
    return leaves_by_path(Checkpoints(directory / "checkpoints").load_part(step, names))


def leaves_by_path(part: Any) -> dict[str, np.ndarray]:
    """Returns the leaves of what a checkpoint holds as numpy's, typed keys as their data."""
    leaves = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(part):
        is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        leaves[jax.tree_util.keystr(path)] = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
    return leaves


def rows_of(directory: Path) -> list[dict]:
    """Reads the rows of metrics.jsonl without what depends on the clock."""
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        if "evaluation" in row:
            del row["evaluation"]["seconds"]
    return [{k: v for k, v in row.items() if k not in TIMES | SPEEDS} for row in rows]


def assert_same_state(one: Path, other: Path, step: int) -> None:
    """Holds two checkpoints against each other, leaf by leaf."""
    expected, got = state_of(one, step), state_of(other, step)
    assert expected.keys() == got.keys()
    for path, leaf in expected.items():
        np.testing.assert_array_equal(got[path], leaf, err_msg=path)


@contextlib.contextmanager
def stopped_after(step: int, monkeypatch):
    """A run in this context gets SIGTERM after a step."""
    original = module._Trainer._train_step

    def stopping(self, state):
        state, row = original(self, state)
        if row["step"] == step:
            os.kill(os.getpid(), signal.SIGTERM)
        return state, row

    with monkeypatch.context() as patch:
        patch.setattr(module._Trainer, "_train_step", stopping)
        yield
