"""An agent's file: written and read back, refused where it is not what it says, before memory is taken."""

import dataclasses
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import envs
from azjax import network
from azjax.agents.file import read_header
from azjax.agents.load import by_path, load_variables
from azjax.config import NetworkConfig, RunConfig, SearchConfig, to_json
from azjax.export import export
from azjax.players import LoadedRun, make_player

GAME = envs.make("tic_tac_toe")
CONFIG = RunConfig(
    game="tic_tac_toe",
    network=NetworkConfig(width=8, blocks=1, value_width=4),
    search=SearchConfig(simulations=8),
)


def no_run(directory, step):
    raise AssertionError("no run is needed")


def agent_of(config: RunConfig = CONFIG, step: int = 7) -> LoadedRun:
    return LoadedRun(config, network.init(config.network, envs.make(config.game), jax.random.key(3)), step)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("agents") / "small.safetensors"
    export(GAME, agent_of(), path, "safetensors", {"command": "azjax train tic_tac_toe"})
    return path


@pytest.fixture
def changed(written, tmp_path) -> Callable[..., Path]:
    """changed(tensors, **fields) -> a file with these in place of the good one's; a field of None is left out."""

    def changed(tensors: dict[str, np.ndarray] | None = None, text: str | None = None, **fields: Any) -> Path:
        whole = {"format": 1, "config": to_json(CONFIG), "step": 7, "about": {}} | fields
        kept = {key: value for key, value in whole.items() if value is not None}
        path = tmp_path / "changed.safetensors"
        metadata = {"azjax_agent": json.dumps(kept) if text is None else text}
        save_file(load_file(written) if tensors is None else tensors, path, metadata)
        return path

    return changed


def read(path: Path) -> Any:
    return load_variables(read_header(path), GAME)


def config_with(**fields: Any) -> dict[str, Any]:
    return to_json(CONFIG) | fields


def network_with(**fields: Any) -> dict[str, Any]:
    made = to_json(CONFIG)
    return made | {"network": made["network"] | fields}


def test_what_is_written_is_read_back(written):
    header, agent = read_header(written), agent_of()
    assert (header.config, header.step, header.about) == (CONFIG, 7, {"command": "azjax train tic_tac_toe"})
    expected = by_path(agent.variables)
    found = by_path(load_variables(header, GAME))
    assert found.keys() == expected.keys()
    for name, leaf in expected.items():
        np.testing.assert_array_equal(found[name], leaf)


def test_batch_statistics_are_kept(tmp_path):
    config = dataclasses.replace(CONFIG, network=NetworkConfig(kind="resnet", blocks=1, channels=4, value_width=4))
    path = tmp_path / "resnet.safetensors"
    export(GAME, agent_of(config), path)
    assert "batch_stats" in load_variables(read_header(path), GAME)


def test_a_file_plays_as_the_run_would(written):
    player = make_player(GAME, f"agent:{written},simulations=4", no_run)
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 2))
    actions = np.asarray(player.choose(player.params, jax.random.key(1), states))
    assert actions.shape == (2,) and ((actions >= 0) & (actions < 9)).all()


def test_a_file_of_another_game_is_refused(written):
    with pytest.raises(ValueError, match=r"agent: .* plays tic_tac_toe, expected one of connect_four"):
        load_variables(read_header(written), envs.make("connect_four"))


def test_a_file_of_someone_elses_tensors_is_refused(written, tmp_path):
    save_file(load_file(written), tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="no 'azjax_agent'"):
        read(tmp_path / "other.safetensors")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"format": None}, "no 'format'"),
        ({"format": 2}, "writes: format 2, expected 1"),
        ({"format": "1"}, "writes: format 1, expected 1"),
        ({"config": None}, "no 'config'"),
        ({"text": "{"}, "its metadata is not what azjax export writes"),
        ({"text": "[" * 5000}, "its metadata is not what azjax export writes"),
        ({"text": "[]"}, "its metadata is not what azjax export writes"),
        ({"config": {}}, "its metadata is not what azjax export writes"),
        ({"config": config_with(pickle=1)}, "got unknown field pickle"),
        ({"config": config_with(steps=1.5)}, "steps: got 1.5, expected a whole number"),
        ({"config": config_with(seed=True)}, "seed: got True, expected a whole number"),
        ({"config": network_with(width="8")}, "its metadata is not what azjax export writes"),
        ({"config": network_with(policy_planes="no")}, "network.policy_planes: got 'no'"),
        (
            {"config": network_with(width=10**30)},
            "network.width: got 1" + "0" * 30 + ", expected at most 2147483647",
        ),
        ({"config": network_with(blocks=200)}, "network.blocks is 200"),
        ({"config": network_with(width=16)}, "params/Dense_0/bias is float32[8], expected float32[16]"),
        ({"config": network_with(kind="resnet")}, "missing"),
        ({"config": network_with(kind="os:abort")}, "names a network of its own, os:abort"),
        ({"config": config_with(game="nowhere.py:GAME")}, "plays nowhere.py:GAME"),
        ({"config": config_with(game="chss")}, "got 'chss'"),
        ({"step": -1}, "step or about"),
        ({"step": "7"}, "step or about"),
        ({"about": []}, "step or about"),
    ],
)
def test_metadata_that_is_wrong_is_told_in_one_line(changed, metadata, message):
    with pytest.raises(ValueError) as caught:
        read(changed(**metadata))
    assert message in str(caught.value) and len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("params/Dense_0/bias", None, "params/Dense_0/bias is missing, expected float32[8]"),
        ("params/extra", np.zeros(3, np.float32), "params/extra is float32[3], expected missing"),
        ("params/Dense_0/bias", np.zeros(9, np.float32), "is float32[9], expected float32[8]"),
        ("params/Dense_0/bias", np.zeros(8, np.float16), "is float16[8], expected float32[8]"),
        ("params/Dense_0/bias", np.zeros(8, np.float64), "is of type F64, expected F32"),
        ("params/Dense_0/bias", np.full(8, np.nan, np.float32), "has values that are not finite"),
    ],
)
def test_tensors_that_are_not_the_configurations_are_refused(written, changed, name, array, message):
    tensors = load_file(written)
    tensors.pop(name, None)
    if array is not None:
        tensors[name] = array
    with pytest.raises(ValueError) as caught:
        read(changed(tensors))
    assert message in str(caught.value)


def test_a_header_that_promises_more_than_the_file_holds_is_refused(written, tmp_path):
    data = written.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    path = tmp_path / "short.safetensors"
    for content in (b"", data[:5], data[: 8 + length], data[:-1], data + b"x", struct.pack("<Q", 2**40) + data[8:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a safetensors file"):
            read(path)
    header = data[8 : 8 + length].replace(b'"shape":[8]', b'"shape":[80000000000]', 1)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data[8 + length :])
    with pytest.raises(ValueError, match="is not a safetensors file"):
        read(path)


@given(st.data())
def test_damaged_headers_are_refused_or_read_as_what_they_say(written, tmp_path_factory, data):
    good = bytearray(written.read_bytes())
    (length,) = struct.unpack("<Q", good[:8])
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, length + 7))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    path.write_bytes(good)
    try:
        variables = read(path)
    except ValueError as error:
        assert str(error).startswith(("agent: ", "game"))
    else:  # the damage was in a word that says nothing of the tensors
        assert jax.tree.structure(variables) == jax.tree.structure(agent_of().variables)


def test_a_failed_export_leaves_the_file_as_it_was(written, tmp_path):
    path = tmp_path / "kept.safetensors"
    path.write_bytes(b"before")
    variables = jax.tree.map(lambda leaf: leaf * np.nan, agent_of().variables)
    with pytest.raises(ValueError, match="not finite"):
        export(GAME, LoadedRun(CONFIG, variables, 7), path)
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]
