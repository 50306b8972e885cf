"""The agents that come with azjax: what each file says, that it plays, and who is asked when nobody is named."""

import io
import shlex
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import envs
from azjax import network
from azjax.agents import shipped as module
from azjax.agents.shipped import find_agent, shipped, shipped_for
from azjax.cli import engine, main
from azjax.cli.options import Engine
from azjax.cli.parse import configure, parse
from azjax.config import NetworkConfig, RunConfig, differences
from azjax.export import export
from azjax.opponents import any_player
from azjax.players import LoadedRun, make_player
from azjax.presets import preset
from azjax.resume import SAFE_FIELDS
from experiments.shipped_agents import OPPONENTS, table_row

ROOT = Path(__file__).parents[3]
NAMES = sorted(shipped())


@pytest.fixture(scope="module", autouse=True)
def backend():
    """Starts it with the tests' eight devices: a command would ask for one."""
    jax.devices()


def no_run(directory, step):
    raise AssertionError("no run is needed")


def test_there_are_some():
    assert {"crosshair", "connect_four"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_small_and_says_how_it_was_made(name):
    header = shipped()[name]
    assert header.path.stat().st_size <= 2 * 10**6
    line = parse(shlex.split(header.about["command"])[1:])
    trained = configure(preset(line.command.preset, line.command.game), line.settings)
    assert not [name for name in differences(trained, header.config) if not name.startswith(SAFE_FIELDS)]
    assert header.step == header.about["steps"] == header.config.steps
    assert header.about["games"] > 0 and header.about["seconds"] > 0
    measured = {row["b"]: row for row in header.about["measured"]}
    assert set(measured) >= set(OPPONENTS)
    for row in measured.values():
        assert row["games"] == row["wins"] + row["draws"] + row["losses"] >= 200
    assert measured["random"]["ci95"][0] > 0.5


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_its_figures(name):
    assert table_row(name, shipped()[name]) in (ROOT / "docs/export.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_it_plays(name):
    header = shipped()[name]
    game = envs.make(header.config.game)
    assert shipped_for(game) == name
    player = make_player(game, f"agent:{name},search=policy", no_run)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    actions = np.asarray(player.choose(player.params, jax.random.key(1), states))
    assert jax.vmap(game.legal_action_mask)(states)[np.arange(2), actions].all()


def test_a_game_of_another_size_has_none():
    assert shipped_for(envs.make("crosshair,size=5")) is None


def test_words_that_mean_no_agent():
    with pytest.raises(ValueError, match=r"agent: got 'croshair', expected one of .*crosshair, .*FILE"):
        find_agent("croshair")
    with pytest.raises(ValueError, match=r"agent: got gone\.safetensors, which is no file"):
        find_agent("gone.safetensors")
    with pytest.raises(ValueError, match="plays crosshair, expected one of tic_tac_toe"):
        make_player(envs.make("tic_tac_toe"), "agent:crosshair", no_run)


def test_one_by_the_clock():
    player = any_player(envs.make("crosshair"), "agent:crosshair,seconds=0.1", no_run)
    assert player.name == "agent:crosshair,seconds=0.1"


def test_play_finds_the_one_that_comes_with_azjax(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("quit\n"))
    assert main(["play", "crosshair"]) == 0
    assert "against agent:crosshair,simulations=400" in capsys.readouterr().out
    assert main(["play", "hex,size=4"]) == 2
    assert "expected --opponent uct:400, or azjax train hex,size=4 before" in capsys.readouterr().err


@pytest.fixture
def only_go(tmp_path, monkeypatch):
    """A folder of agents with one of 5x5 Go in it, in the place of azjax's own."""
    config = RunConfig(game="go,size=5", network=NetworkConfig(width=8, blocks=0, value_width=4))
    game = envs.make(config.game)
    agent = LoadedRun(config, network.init(config.network, game, jax.random.key(0)), 3)
    export(game, agent, tmp_path / "go_5x5.safetensors")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    module.shipped.cache_clear()
    yield "go_5x5"
    module.shipped.cache_clear()


def test_an_engine_without_a_run_has_the_one_of_its_protocols_game(only_go, capsys):
    thinker = engine._agent_of(Engine(protocol="gtp"), engine._shipped("gtp"))()
    assert thinker.game.id == "go,size=5"
    assert main(["engine", "uci"]) == 2
    assert "--run: got none, and no agent for chess comes with azjax" in capsys.readouterr().err
