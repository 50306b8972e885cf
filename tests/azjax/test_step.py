"""The step on eight devices: its two forms, resuming, what is compiled and what is donated."""

import collections
import dataclasses
import logging
import re
import threading

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from azjax.config import (
    GateConfig,
    LearnerConfig,
    NetworkConfig,
    ReplayConfig,
    RunConfig,
    SearchConfig,
    SelfPlayConfig,
)
from azjax.step import Step, make_mesh
from envs.tic_tac_toe import GAME as TIC_TAC_TOE
from envs.tic_tac_toe import TicTacToe

CONFIG = RunConfig(
    game="tic_tac_toe",
    network=NetworkConfig(width=16, blocks=1, value_width=8),
    search=SearchConfig(simulations=4, dirichlet_alpha=1.0),
    selfplay=SelfPlayConfig(lanes=8, plies=4, temperature_plies=4),
    replay=ReplayConfig(plies=24),
    learner=LearnerConfig(batch=16, updates=2, learning_rate=0.01, fused="true"),
    gate=GateConfig(every=1),
)
SPLIT = dataclasses.replace(CONFIG, learner=dataclasses.replace(CONFIG.learner, fused="false"))


def start(step, seed=0):
    return step.init(jax.random.key(seed))


def to_numpy(state):
    """All leaves on the host, as a checkpoint holds them."""

    def one(leaf):
        return np.array(jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)

    return jax.tree.map(one, state)


def to_devices(step, saved):
    """The state of `saved` on the step's mesh."""

    def place(sharding, part):
        return jax.tree.map(lambda leaf: jax.device_put(leaf, sharding), part)

    saved = dataclasses.replace(saved, rng_key=jax.random.wrap_key_data(saved.rng_key))
    return jax.tree.map(place, step.shardings(), saved)


def run(step, state, number):
    """(state, metrics summed over devices of each step)"""
    rows = []
    for _ in range(number):
        state, metrics = step(state)
        rows.append({name: float(np.sum(value)) for name, value in jax.device_get(metrics).items()})
    return state, rows


def assert_same(one, other):
    for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True):
        np.testing.assert_array_equal(a, b)


def difference(one, other):
    return max(np.abs(a - b).max() for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True))


@pytest.fixture(scope="module")
def fused():
    return Step(CONFIG, TIC_TAC_TOE, make_mesh(8))


@pytest.fixture(scope="module")
def split():
    return Step(SPLIT, TIC_TAC_TOE, make_mesh(8))


@pytest.fixture(scope="module")
def twelve(fused, split):
    """States after 0, 6 and 12 steps of both forms, on the host, and their metrics."""
    result = {}
    for name, step in (("fused", fused), ("split", split)):
        state = start(step)
        states, all_rows = [to_numpy(state)], []
        for _ in range(2):
            state, rows = run(step, state, 6)
            states.append(to_numpy(state))
            all_rows += rows
        result[name] = states, all_rows
    return result


def test_both_forms_are_one_step(twelve):
    (one, one_rows), (other, other_rows) = twelve["fused"], twelve["split"]
    assert_same(one[0], other[0])
    for a, b in zip(one, other, strict=True):
        assert difference(a.learner, b.learner) < 1e-5
        assert_same(a.lanes, b.lanes)
        np.testing.assert_array_equal(a.replay.outcome, b.replay.outcome)
        assert_same(a.replay.positions.state, b.replay.positions.state)
    assert difference(one[0].learner.variables, one[2].learner.variables) > 0.01
    for a, b in zip(one_rows, other_rows, strict=True):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_allclose(a[name], b[name], atol=1e-3, err_msg=name)


@pytest.mark.parametrize("form", ["fused", "split"])
def test_a_run_that_is_resumed_is_the_run_that_went_on(request, twelve, form):
    step = request.getfixturevalue(form)
    (_, half, whole), rows = twelve[form]
    state, second_rows = run(step, to_devices(step, half), 6)
    assert_same(to_numpy(state), whole)
    assert second_rows == rows[6:]


@pytest.mark.parametrize("form", ["fused", "split"])
def test_counters_say_that_the_labels_are_right(twelve, form):
    _, rows = twelve[form]
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    assert total["games"] > 30 and total["decided"] > 0.5 * total["games"]
    assert total["won_by_last_mover"] == total["decided"]
    assert 0 < total["first_player_wins"] < total["decided"]
    assert total["nonfinite_targets"] == total["nonfinite_updates"] == total["truncated"] == 0
    late = rows[6:]
    for row in late:
        np.testing.assert_allclose(row["target_legal_mass"], 8, atol=1e-4)  # 1 on each device
        assert row["applied"] == 8


@pytest.mark.parametrize("form", ["fused", "split"])
def test_nothing_is_learnt_until_every_device_has_a_finished_game(twelve, form):
    states, rows = twelve[form]
    # Four plies a step: no game is over after the first step, and one lane of each device is within nine plies.
    assert rows[0]["games"] == 0 and rows[0]["applied"] == 0
    assert all(row["applied"] == 8 for row in rows[3:])
    applied = sum(row["applied"] for row in rows) / 8 * CONFIG.learner.updates
    assert states[2].learner.updates == applied


def test_games_go_on_from_step_to_step(twelve):
    states, rows = twelve["fused"]
    # No game of tic-tac-toe is over within a step's four plies.
    assert sum(row["games"] for row in rows) * 5 <= 12 * 4 * 8
    assert (states[1].lanes.ply > 0).any()
    np.testing.assert_array_equal(states[1].lanes.ply, states[1].lanes.state.ply)
    np.testing.assert_array_equal(states[1].replay.pending, states[1].lanes.ply)


@pytest.mark.parametrize("form", ["fused", "split"])
def test_state_out_is_state_in_and_nothing_is_compiled_twice(request, caplog, form):
    config = CONFIG if form == "fused" else SPLIT
    step = Step(config, TIC_TAC_TOE, make_mesh(8))

    def described(state):
        return jax.tree.map(lambda leaf: (jax.typeof(leaf), leaf.sharding), state)

    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        state = start(step)
        before = described(state)
        for _ in range(4):
            state, _ = step(state)
            after = described(state)
            for one, other in zip(*map(jax.tree.leaves, (before, after)), strict=True):
                assert one == other
    compiled = collections.Counter(
        match.group(1) for record in caplog.records if (match := re.match(r"Compiling (\S+)", record.getMessage()))
    )
    assert sum("_init" in name for name in compiled) == 1 and len(compiled) <= 6, compiled
    assert {name: times for name, times in compiled.items() if times > 1} == {}


COLLECTIVE = r"= (\S+) (all-\w+|reduce-scatter|collective-\w+|ragged-\w+|send|recv)(?:-start)?\("


def test_devices_exchange_gradients_and_the_ready_flag_and_nothing_else(fused):
    like = jax.eval_shape(fused.init, jax.random.key(0))
    program = fused._step.lower(fused.placed(like)).compile().as_text()
    numbers = sum(leaf.size for leaf in jax.tree.leaves(like.learner.variables))
    assert [(kind, shape.split("{")[0]) for shape, kind in re.findall(COLLECTIVE, program)] == [
        ("all-reduce", f"f32[{numbers + 1}]")
    ]


def test_lanes_and_replay_are_spread_and_the_rest_is_on_every_device(fused):
    state, _ = fused(start(fused))
    assert {leaf.sharding.spec for leaf in jax.tree.leaves(state.lanes)} == {PartitionSpec("data")}
    assert {leaf.sharding.spec for leaf in jax.tree.leaves(state.replay.positions)} == {PartitionSpec(None, "data")}
    assert all(leaf.sharding.is_fully_replicated for leaf in jax.tree.leaves(state.learner))
    assert state.lanes.ply.addressable_shards[0].data.shape == (1,)


@pytest.mark.parametrize("form", ["fused", "split"])
def test_what_the_step_does_not_own_outlives_it(request, form):
    """The gate's holder starts as the same parameters: donating those must not take it along."""
    step = request.getfixturevalue(form)
    state = start(step)
    first = jax.device_get(state.learner.variables)
    later, _ = run(step, state, 6)
    assert state.replay.outcome.is_deleted() and state.lanes.ply.is_deleted()  # donated
    assert_same(jax.device_get(later.best), first)
    assert difference(later.learner.variables, first) > 0


def copies(tree):
    """Each leaf's copy on every device: [D, ...]."""
    return [np.stack([np.asarray(shard.data) for shard in leaf.addressable_shards]) for leaf in jax.tree.leaves(tree)]


def test_three_hundred_updates_on_eight_devices_end_and_leave_them_equal(fused):
    done = []

    def go():
        state = start(fused)
        for number in range(150):
            state, _ = fused(state)
            if number in (29, 149):
                everything = (state.learner, state.best, jax.random.key_data(state.rng_key), state.step)
                done.append((copies(everything), int(state.learner.updates)))

    # In a thread of its own: devices that wait for each other for ever are a failure, not a suite that hangs.
    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    thread.join(timeout=600)
    assert not thread.is_alive()
    (after_30, updates_30), (after_150, updates_150) = done
    assert updates_30 > 50 and updates_150 > 290
    for leaf in after_30 + after_150:
        assert leaf.shape[0] == 8 and (leaf == leaf[:1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("sync_statistics", [False, True])
def test_a_resnets_statistics_are_equal_on_all_devices(sync_statistics):
    resnet = NetworkConfig(kind="resnet", blocks=1, channels=4, value_width=4, sync_statistics=sync_statistics)
    step = Step(dataclasses.replace(SPLIT, network=resnet), TIC_TAC_TOE, make_mesh(8))
    state = start(step)
    statistics = jax.device_get(state.learner.variables["batch_stats"])
    state, rows = run(step, state, 30)
    assert all(row["nonfinite_updates"] == 0 and row["applied"] == 8 for row in rows[3:])
    for leaf in copies(state.learner):
        assert leaf.shape[0] == 8 and (leaf == leaf[:1]).all()
    assert difference(state.learner.variables["batch_stats"], statistics) > 0.01


@pytest.mark.slow
def test_both_forms_of_a_resnets_step_are_one():
    resnet = NetworkConfig(kind="resnet", blocks=1, channels=4, value_width=4)
    ends = []
    for config in (CONFIG, SPLIT):
        step = Step(dataclasses.replace(config, network=resnet), TIC_TAC_TOE, make_mesh(2))
        ends.append(to_numpy(run(step, start(step), 4)[0]))
    assert ends[0].learner.updates == ends[1].learner.updates > 0
    assert difference(ends[0].learner, ends[1].learner) < 1e-5


@pytest.mark.slow
def test_the_best_plays_where_the_configuration_says_so():
    """Other newest parameters change nothing in self-play while the best stay."""
    config = dataclasses.replace(SPLIT, selfplay=dataclasses.replace(SPLIT.selfplay, actor="best"))
    step = Step(config, TIC_TAC_TOE, make_mesh(1))
    other = start(step, seed=5).learner
    one = to_numpy(run(step, start(step), 1)[0])
    two = to_numpy(run(step, dataclasses.replace(start(step), learner=other), 1)[0])
    assert_same(one.lanes, two.lanes)
    best = to_numpy(run(step, dataclasses.replace(start(step), best=start(step, seed=5).best), 1)[0])
    assert difference(one.replay.positions.root_value, best.replay.positions.root_value) > 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"selfplay": SelfPlayConfig(lanes=12)},
            "selfplay.lanes: got 12, expected a multiple of the 8 devices",
        ),
        ({"learner": LearnerConfig(batch=20)}, "learner.batch: got 20, expected a multiple of the 8 devices"),
    ],
)
def test_what_does_not_divide_by_the_devices_is_refused(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Step(dataclasses.replace(CONFIG, **change), TIC_TAC_TOE, make_mesh(8))


def test_a_replay_too_short_for_a_game_is_refused():
    step = Step(dataclasses.replace(CONFIG, replay=ReplayConfig(plies=9)), TIC_TAC_TOE, make_mesh(1))
    with pytest.raises(ValueError, match=re.escape("replay.plies: got 9, expected at least 10")):
        start(step)
    short = Step(dataclasses.replace(CONFIG, replay=ReplayConfig(plies=9)), TicTacToe(max_plies=8), make_mesh(1))
    assert jax.eval_shape(short.init, jax.random.key(0)).replay.outcome.shape == (9, 8)


def test_a_mesh_of_more_devices_than_there_are_is_refused():
    assert make_mesh(0).size == 8 and make_mesh(2).size == 2
    with pytest.raises(ValueError, match=re.escape("devices: got 9, expected at most 8 (cpu devices here)")):
        make_mesh(9)
