"""azjax export: each format, what it prints, what is missing, and the command that trained a run."""

import dataclasses
import hashlib
import importlib.util
import json
import os
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from azjax import export as module
from azjax import network
from azjax.agents.file import read_header
from azjax.checkpoint import Checkpoints
from azjax.cli import main
from azjax.cli.parse import configure, parse
from azjax.config import NetworkConfig, RunConfig, SearchConfig
from azjax.export import export, sample, train_command
from azjax.players import LoadedRun
from azjax.presets import preset
from azjax.rundir import RunDirectory

GAME = envs.make("connect_four")
CONFIG = RunConfig(
    game="connect_four",
    network=NetworkConfig(kind="equivariant_mlp", width=16, blocks=1, value_width=4),
    search=SearchConfig(simulations=8),
)


@pytest.fixture(scope="module", autouse=True)
def backend():
    """Starts it with the tests' eight devices: a command would ask for one."""
    jax.devices()


@pytest.fixture(scope="module")
def agent() -> LoadedRun:
    return LoadedRun(CONFIG, network.init(CONFIG.network, GAME, jax.random.key(1)), 20)


@pytest.fixture(scope="module")
def run(agent, tmp_path_factory) -> Path:
    run = RunDirectory(tmp_path_factory.mktemp("export") / "small")
    run.write_config(CONFIG)
    totals = {"games": 300, "plies": 9000, "simulations": 72000, "seconds": 12.345}
    with Checkpoints(run.checkpoints_path, write=True) as checkpoints:
        state = {"learner": {"variables": agent.variables}, "step": jnp.int32(20)}
        checkpoints.save(20, state, {"totals": totals}, wait=True)
    rated = {"elo": 100.0, "ci95": [50.0, 150.0], "games": 40, "score": 0.7, "more": 1}
    players = [{"name": name, **rated} for name in ("step 20", "step 10", "random")]
    run.ratings_path.write_text(json.dumps({"players": players}), encoding="utf-8")
    return run.path


def test_a_run_is_written_as_safetensors(run, capsys):
    assert main(["export", "--run", str(run), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    path = run / "network.safetensors"
    assert (said["path"], said["format"], said["step"]) == (str(path), "safetensors", 20)
    assert said["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest() and said["bytes"] == path.stat().st_size
    assert (said["policy_difference"], said["value_difference"], said["positions"]) == (0.0, 0.0, 64)
    about = read_header(path).about
    assert about["command"].startswith("azjax train connect_four --preset quick")
    assert (about["games"], about["seconds"], about["steps"]) == (300, 12.3, 20)
    assert [player["name"] for player in about["ratings"]] == ["step 20", "random"]
    assert [path.name for path in run.iterdir() if path.name.endswith(".new")] == []


def test_the_same_agent_gives_the_same_bytes(run, capsys, tmp_path):
    hashes = []
    for name in ("a", "b"):
        assert main(["export", "--run", str(run), "--out", str(tmp_path / f"{name}.safetensors"), "--json"]) == 0
        hashes.append(json.loads(capsys.readouterr().out)["sha256"])
    assert hashes[0] == hashes[1]


def test_what_is_said_to_people(run, capsys, tmp_path):
    path = tmp_path / "a.safetensors"
    assert main(["export", "--run", str(run), "--step", "20", "--out", str(path)]) == 0
    said = capsys.readouterr().out
    assert re.search(rf"wrote {path}: [\d,]+ bytes, step 20, sha256 [0-9a-f]{{64}}\n", said)
    assert "largest difference of a policy logit 0, of a value 0" in said
    assert f"azjax play connect_four --opponent agent:{path}" in said


def test_stablehlo_gives_the_networks_outputs(agent, tmp_path):
    pytest.importorskip("flatbuffers")
    made = export(GAME, agent, tmp_path / "a.stablehlo", "stablehlo")
    assert 0 <= made.policy_difference < 1e-5 and 0 <= made.value_difference < 1e-5


def test_onnx_gives_the_networks_outputs(agent, tmp_path):
    pytest.importorskip("jax2onnx")
    pytest.importorskip("onnxruntime")
    made = export(GAME, agent, tmp_path / "a.onnx", "onnx")
    assert 0 <= made.policy_difference < 1e-4 and 0 <= made.value_difference < 1e-4


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("stablehlo", "--format stablehlo: needs flatbuffers, which is not installed: pip install flatbuffers"),
        ("onnx", "--format onnx: needs jax2onnx, which is not installed: pip install"),
    ],
)
def test_a_package_that_is_missing_is_told(run, kind, message, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["export", "--run", str(run), "--format", kind]) == 2
    assert message in capsys.readouterr().err
    assert not (run / f"network.{kind}").exists()


def test_a_file_whose_outputs_differ_is_not_kept(agent, tmp_path, monkeypatch):
    def wrong(game, agent, path, about):
        path.write_bytes(b"wrong")
        return lambda observations: (np.zeros((len(observations), 7)), np.zeros(len(observations)))

    monkeypatch.setitem(module._WRITERS, "safetensors", wrong)
    with pytest.raises(ValueError, match="read back, outputs differ by"):
        export(GAME, agent, tmp_path / "a.safetensors")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--run nowhere", "run: got nowhere, which has no config.json"),
        ("--run {run} --step 7", "has no checkpoint of step 7, expected one of 20"),
        ("--run {run} --step -1", "--step: got -1"),
        ("--run {run} --format pickle", "--format: got 'pickle', expected one of safetensors, stablehlo, onnx"),
        ("--run {run} --out a.bin", "--out: got a.bin, expected a name that ends in .safetensors"),
        ("hex --run {run}", "got a run of connect_four, expected one of hex"),
        ("", "--run"),
    ],
)
def test_what_cannot_be_exported(run, words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", *words.format(run=run).split()]) == 2
    assert message in capsys.readouterr().err


def test_a_runs_own_code_must_be_named(run, tmp_path, capsys):
    strange = RunDirectory(tmp_path / "strange")
    strange.write_config(dataclasses.replace(CONFIG, game="mine.py:GAME"))
    assert main(["export", "--run", str(strange.path)]) == 2
    assert "got mine.py:GAME, which runs code" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "hex,size=7 --preset quick --network.width 256 --learner.symmetry none --evaluation.anchors random uct:50",
        "crosshair --preset paper --seed 3 --search.c-puct 1.5 --learner.boundaries 10 20",
        "connect_four --preset quick --network.policy-planes true --search.max-depth 5",
    ],
)
def test_the_command_of_a_configuration_gives_it_back(words):
    line = parse(["train", *words.split()])
    assert line is not None
    game, _, name, *_ = words.split()
    config = configure(preset(name, game), line.settings)
    again = parse(train_command(config).split()[1:])
    assert again is not None
    assert configure(preset(name, game), again.settings) == config


def test_samples_are_positions_that_wait_for_a_move():
    seen = sample(envs.make("tic_tac_toe"), 64)
    assert seen.shape == (64, 3, 3, 2) and seen.dtype == np.float32
    stones = seen.sum((1, 2, 3))
    assert stones.min() == 0 and stones.max() >= 6
