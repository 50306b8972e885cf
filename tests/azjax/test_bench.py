"""Benchmarks: what is counted, and the shape of what is told. How fast it is, is no test."""

import importlib
import json

import jax
import mctx
import numpy as np
import pytest

import envs
from azjax import network
from azjax.bench import bench_table
from azjax.bench.games import count_operations
from azjax.bench.parallel import Setting
from azjax.bench.search import Case, _depth, _ours, _program
from azjax.bench.selfplay import ROUNDS, Tally, _config, _forward, _play_for, _selfplay, _theirs
from azjax.bench.train import LEAST_TURNS, bench_train
from azjax.bench.turns import in_turns
from azjax.cli import main
from azjax.config import NetworkConfig
from azjax.players import LoadedRun
from azjax.presets import preset
from azjax.selfplay import start_lanes
from azjax.step import make_mesh
from tests.azjax.tiny_run import TINY

GAME = envs.make("tic_tac_toe")
LANES, SIMULATIONS = 16, 4


def played(by_mctx: bool, plies: int) -> list[int]:
    """New nodes in each ply from the start."""
    config = _config(GAME, None, LANES, SIMULATIONS)
    program = _selfplay(config, GAME, make_mesh(0), 1, _theirs(config) if by_mctx else None)  # as the command does
    variables = network.init(config.network, GAME, jax.random.key(1))
    state, nodes = start_lanes(GAME, jax.random.key(0), LANES), []
    for ply in range(plies):
        state, new, _ = program(variables, jax.random.key(ply), state)
        nodes.append(int(new.sum()))
    return nodes


@pytest.mark.slow
def test_every_simulation_of_an_opening_is_a_new_node_and_near_the_end_not():
    nodes = played(False, 9)
    # No game ends within four plies of the start, where every simulation adds a node.
    assert nodes[0] == LANES * SIMULATIONS
    # In the last plies some descents end at terminal nodes that are in the tree already.
    assert all(LANES <= number <= LANES * SIMULATIONS for number in nodes) and min(nodes) < LANES * SIMULATIONS


@pytest.mark.slow
def test_mctx_adds_a_node_with_every_simulation():
    assert played(True, 9) == [LANES * SIMULATIONS] * 9


def test_the_plies_of_a_call_follow_one_another():
    config = _config(GAME, None, LANES, SIMULATIONS)
    program = _selfplay(config, GAME, make_mesh(0), 3)
    lanes = start_lanes(GAME, jax.random.key(0), LANES)
    after, new, counts = program(network.init(config.network, GAME, jax.random.key(1)), jax.random.key(0), lanes)
    assert (after.ply == 3).all() and int(new.sum()) == 3 * LANES * SIMULATIONS  # no game ends, every node is new
    assert all(value.shape[:2] == (len(jax.devices()), 3) for value in jax.tree.leaves(counts))


def test_turns_add_up():
    tally = Tally()

    def ply(variables, rng_key, lanes):
        return lanes + 1, jax.numpy.int32([3, 4]), {}

    lanes = _play_for(tally, 0.0, ply, {}, jax.random.key(0), 0)
    lanes = _play_for(tally, 0.0, ply, {}, jax.random.key(0), lanes)
    assert (lanes, len(tally.seconds), tally.nodes) == (2, 2, 14) and min(tally.seconds) > 0


def test_a_rate_is_by_the_median_of_the_calls():
    assert Tally([1.0, 9.0, 2.0], 30).nodes_per_second() == 30 / 3 / 2


def test_the_network_alone_evaluates_every_time():
    config = _config(GAME, None, LANES, SIMULATIONS)
    variables = network.init(config.network, GAME, jax.random.key(1))
    program = _forward(config, GAME, make_mesh(2))
    observations = jax.numpy.zeros((LANES, *GAME.observation_shape)).at[:, 0, 0].set(1.0)
    text = program.lower(variables, observations).compile().as_text()
    assert "while" in text and "dot" in text
    assert float(abs(program(variables, observations) - observations).max()) > 0


def test_the_command_tells_its_shape(capsys):
    argv = "bench selfplay --game tic_tac_toe --lanes 16 --simulations 4 --seconds 0.01 --json".split()
    assert main(argv) == 0
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["cores"] >= 1 and len(report["rows"]) == 2 and 0 < report["new_nodes_per_simulation"] <= 1
    for row in report["rows"]:
        assert list(row) == ["case", "ours", "reference", "reference_name", "unit", "ratio"]
        assert row["ratio"] == pytest.approx(row["ours"] / row["reference"], rel=1e-2)
    assert [row["unit"] for row in report["rows"]] == ["new nodes/s", "simulations/s"]
    assert len([line for line in said.err.splitlines() if line.startswith("turn ")]) == ROUNDS
    assert bench_table(report).row_count == 2


def test_whole_steps_are_measured_beside_those_with_mctx():
    said = []
    run = LoadedRun(TINY, network.init(TINY.network, GAME, jax.random.key(1)), 7)
    report = bench_train(GAME, run, seconds=0.01, say=said.append)
    (row,) = report["rows"]
    assert row["case"] == "train tic_tac_toe, puct, 4 simulations, 8 games, 2 updates of 16"
    assert row["unit"] == "plies/s" and row["ratio"] == pytest.approx(row["ours"] / row["reference"], rel=1e-2)
    assert len([line for line in said if line.startswith("turn ")]) == LEAST_TURNS
    assert report["step"]["selfplay_seconds"] > 0 and report["step"]["learning_seconds"] > 0  # split on CPU


def test_a_run_of_another_game_is_refused():
    run = LoadedRun(config=preset("smoke", "connect_four"), variables={}, step=1)
    with pytest.raises(ValueError, match="got a run of connect_four, expected one of tic_tac_toe"):
        _config(GAME, run, 8, 4)


# ---- search


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case("puct", 5, 12, 8), marks=pytest.mark.slow),
        Case("gumbel", 5, 12, 8),
        Case("puct", 40, 12, 8, 4, 6),
    ],
)
def test_both_searches_add_one_node_a_simulation(case):
    theirs = mctx.muzero_policy if case.algorithm == "puct" else mctx.gumbel_muzero_policy
    for policy in (_ours(case), theirs):
        trace, parents = _program(policy, case)(jax.random.key(0))
        assert np.isfinite(trace) and parents.shape == (8, 13)
        assert (np.asarray(parents)[:, 1:] >= 0).all()


def test_slots_are_searched_as_all_actions_are():
    case = Case("puct", 40, 24, 8, legal=4, slots=6)
    _, by_slot = _program(_ours(case), case)(jax.random.key(0))
    _, dense = _program(_ours(case._replace(slots=None)), case)(jax.random.key(0))
    np.testing.assert_array_equal(by_slot, dense)


def test_depth_of_nodes():
    parents = np.array([[-1, 0, 1, 0], [-1, 0, 0, 0]])  # depths 1 2 1 and 1 1 1
    assert _depth((0.0, parents)) == {"mean": round(7 / 6, 2), "max": 2}


def test_search_is_benchmarked_beside_mctx(monkeypatch, capsys):
    search = importlib.import_module("azjax.bench.search")
    monkeypatch.setattr(search, "CASES", (Case("puct", 4, 6, 2),))
    monkeypatch.setattr(search, "LONG", Case("puct", 4, 8, 2))
    monkeypatch.setattr(search, "SHORT", Case("puct", 4, 4, 2))
    monkeypatch.setattr(
        search, "SETTINGS", (Setting(game="tic_tac_toe", network=NetworkConfig(width=8), simulations=4),)
    )
    assert main(["bench", "search", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    ours, long, parallel = report["rows"]
    assert parallel["unit"] == "ms a move" and parallel["ratio"] > 0
    assert ours["reference_name"] == "mctx.muzero_policy" and long["reference_name"] == "4 simulations"
    for row in (ours, long):
        assert row["unit"] == "us" and row["ours"] > 0
        assert row["ratio"] == pytest.approx(row["reference"] / row["ours"], rel=1e-3, abs=1e-4)  # rounded
    assert next(iter(report["depth"].values()))["max"] >= 1
    sizes = report["bytes"]["search puct A=4 N=6 B=2"]
    assert sizes["tree"] == 2 * sizes["lane"] == 2 * 7 * sizes["node"]
    assert sizes["node"] == 4 * 4 * 4 + 8 * 4 + 4  # four numbers an edge, eight a node, the position
    assert sizes["compiled"] > sizes["tree"] / 2


def test_sides_take_turns_and_the_first_call_does_not_count():
    calls = []

    def side(name):
        return lambda turn: lambda: calls.append((name, turn))

    medians = in_turns([side("a"), side("b")], rounds=2)
    assert calls == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert len(medians) == 2 and all(0 <= seconds < 1 for seconds in medians)


# ---- games


def test_operations_of_a_program_are_counted():
    text = """
      %gather.1 = f32[8]{0} gather(%a, %b), offset_dims={}
      %w = (s32[], f32[8]{0}) while(%t), condition=%gather_region
      ROOT %sort.gather = f32[8]{0} sort(%c), dimensions={0}
    """
    assert count_operations(text) == {"gathers": 1, "scatters": 0, "sorts": 1, "loops": 1}


def test_games_are_benchmarked(monkeypatch, capsys):
    games = importlib.import_module("azjax.bench.games")
    for name, value in (("BATCHES", (8, 16)), ("MIDDLE", 16), ("CALL_POSITIONS", 32), ("ROUNDS", 1)):
        monkeypatch.setattr(games, name, value)
    monkeypatch.setattr(games, "TURN_SECONDS", 0.0)
    assert main(["bench", "games", "--games", "hex,size=12", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    cases = [f"{what} hex,size=12, {batch} positions" for what in ("games", "slots") for batch in (8, 16)]
    assert [row["case"] for row in report["rows"]] == [*cases, "state hex,size=12"]
    assert [row["reference"] is None for row in report["rows"]] == [True, True, False, False, True]
    assert report["rows"][-1]["ours"] == 2 * 144 + 5  # numbers of chains, last stone, ply, won
    program = report["programs"]["hex,size=12"]
    assert program["compile_seconds"] > 0 and program["sorts"] == program["scatters"] == program["loops"] == 0


@pytest.mark.slow
def test_games_are_benchmarked_beside_pgx(capsys):
    assert main(["bench", "games", "--games", "tic_tac_toe", "crosshair,size=3", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    for row in report["rows"]:
        assert list(row) == ["case", "ours", "reference", "reference_name", "unit", "ratio"] and row["ours"] > 0
        assert (row["ratio"] is None) == ("crosshair" in row["case"])
    assert all(facts["sorts"] == 0 for facts in report["programs"].values()) and len(report["programs"]) == 2
