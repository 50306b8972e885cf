"""A folder of runs with untrained networks, made once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from starlette.testclient import TestClient

import envs
from azjax import network
from azjax.checkpoint import Checkpoints
from azjax.config import NetworkConfig, RunConfig, SearchConfig
from azjax.rundir import RunDirectory
from azjax.web.app import make_app
from azjax.web.roster import Roster

Ask = Callable[..., dict[str, Any]]


def write_run(folder: Path, word: str, name: str) -> RunDirectory:
    """Writes a run of a game: two checkpoints of random networks, its log and two games."""
    game = envs.make(word)
    config = RunConfig(
        game=word,
        network=NetworkConfig(width=8, blocks=0, value_width=4),
        search=SearchConfig(simulations=8, considered_actions=4),
        steps=20,
    )
    run = RunDirectory(folder / name)
    run.write_config(config)
    with Checkpoints(run.checkpoints_path, write=True) as checkpoints:
        for step in (10, 20):
            variables = network.init(config.network, game, jax.random.key(step))
            state = {"learner": {"variables": variables}, "step": jnp.int32(step)}
            checkpoints.save(step, state, {}, wait=True)
    return run


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("web") / "runs"
    folder.mkdir()
    run = write_run(folder, "tic_tac_toe", "small")
    rows: list[dict[str, Any]] = []
    for step in range(1, 21):
        rows.append(
            {
                "step": step,
                "seconds": 6.0 * step,
                "games": 100 * step,
                "plies": 800 * step,
                "simulations": 6400 * step,
                "plies_per_second": 1000.0 + step,
                "simulations_per_second": 8000.0,
                "policy_loss": 2 / step,
                "value_loss": None if step == 3 else 1 / step,
            }
        )
        if step % 10 == 0:
            score = {"score": 0.5 + step / 100, "ci95": [0.4, 0.9], "a": f"step {step}", "b": "random"}
            rows.append({"step": step, "evaluation": score})
    # The rating at the end has matches of others too.
    rows.append({"step": 20, "evaluation": score | {"a": "step 10", "score": 0.1}})
    rows.append({"step": 20, "evaluation": score | {"a": "uct:4", "score": 0.0}})
    run.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run.games_path.mkdir()
    game = {"format": 1, "game": "tic_tac_toe", "players": ["step 20", "random"]}
    won = game | {"actions": [0, 3, 1, 4, 2], "returns": [1.0, -1.0], "end": "rules"}
    wrong = game | {"actions": [0, 0], "returns": None, "end": "unfinished"}
    text = "".join(json.dumps(record) + "\n" for record in (won, wrong))
    (run.games_path / "step_20-vs-random.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def client(runs_folder) -> TestClient:
    return TestClient(make_app(Roster(runs_folder)), base_url="http://127.0.0.1:8765")


@pytest.fixture(scope="session")
def ask(client) -> Ask:
    """ask(name, **fields) -> the answer, which must be a good one."""

    def ask(name: str, **fields: Any) -> dict[str, Any]:
        answer = client.post(f"/api/{name}", json=fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


@pytest.fixture
def strange(tmp_path) -> tuple[TestClient, RunDirectory]:
    """A client of a folder with one run, two rows in its log, which a test makes strange; and that run."""
    run = write_run(tmp_path / "runs", "tic_tac_toe", "strange")
    counts = {"plies": 8, "simulations": 16, "seconds": 1.0, "plies_per_second": 9.0}
    rows = [{"step": step, "games": 2 * step} | counts for step in (1, 2)]
    run.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return TestClient(make_app(Roster(run.path.parent)), base_url="http://127.0.0.1:8765"), run
