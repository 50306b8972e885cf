"""The plan of a run: bytes that follow from shapes, and refusals that name a number that fits."""

import dataclasses
import json
import math
import re

import jax
import pytest

import envs
from azjax.accelerators import parse_devices
from azjax.cli import main
from azjax.config import RunConfig
from azjax.plan import MOST_ENTRIES, Bytes, Plan, check_fits, make_plan, text
from azjax.presets import preset
from azjax.step import Step, make_mesh

GAME = envs.make("tic_tac_toe")


def changed(config: RunConfig, **sections) -> RunConfig:
    values = {name: dataclasses.replace(getattr(config, name), **fields) for name, fields in sections.items()}
    return dataclasses.replace(config, **values)


BASE = changed(
    preset("smoke", "tic_tac_toe"),
    network={"width": 8, "blocks": 1, "value_width": 4},
    search={"simulations": 4, "dirichlet_alpha": 1.0},
    selfplay={"lanes": 16},
    replay={"plies": 64},
    learner={"batch": 32, "optimizer": "adamw"},
)


def test_the_numbers_of_a_small_run():
    plan = make_plan(BASE, GAME, 2)
    inputs = math.prod(GAME.observation_shape)
    # input, two layers of a block, policy of 9, hidden value of 4, value
    parameters = (inputs + 1) * 8 + 2 * 9 * 8 + 9 * 9 + 9 * 4 + 5
    assert plan.bytes.parameters == plan.bytes.gradients == 4 * parameters
    assert plan.bytes.optimizer == 2 * 4 * parameters + 8  # two moments; two counters
    state = sum(leaf.nbytes for leaf in jax.tree.leaves(GAME.init(jax.random.key(0))))
    assert plan.bytes.lanes == 8 * (state + 4)  # and the ply
    # 5 nodes: prior, children, visits and value of 9 edges, 8 numbers, the state
    tree = 5 * 8 * (4 * 9 * 4 + 8 * 4 + state)
    assert plan.bytes.tree == tree + 8 * 4 * (inputs + 3 * 9)  # and an evaluation: the policy is the widest layer
    assert plan.checkpoint_bytes == 2 * (plan.bytes.lanes + plan.bytes.replay) + 3 * 4 * parameters + 12
    kept = sum((plan.bytes.lanes, plan.bytes.replay, plan.bytes.parameters, plan.bytes.optimizer))
    assert plan.bytes.change == plan.bytes.optimizer + 10 * parameters
    assert plan.bytes.total == kept + max(plan.bytes.tree, plan.bytes.activations + 4 * parameters, plan.bytes.change)
    assert plan.work == type(plan.work)(positions=16 * 8, simulations=16 * 8 * 4, samples=32 * BASE.learner.updates)


def test_memory_grows_with_what_it_holds():
    base = make_plan(BASE, GAME, 1).bytes
    lanes = make_plan(changed(BASE, selfplay={"lanes": 32}), GAME, 1).bytes
    assert (lanes.lanes, lanes.tree) == (2 * base.lanes, 2 * base.tree)
    assert lanes.replay == pytest.approx(2 * base.replay, abs=64)
    longer = make_plan(changed(BASE, replay={"plies": 128}), GAME, 1).bytes
    assert longer.replay == pytest.approx(2 * base.replay, rel=0.02)
    gated = make_plan(changed(BASE, gate={"every": 1}), GAME, 1).bytes
    assert gated.parameters == 2 * base.parameters
    larger = make_plan(changed(BASE, learner={"batch": 64}), GAME, 1).bytes
    assert larger.activations == 2 * base.activations
    sgd = make_plan(changed(BASE, learner={"optimizer": "sgd", "momentum": 0.0}), GAME, 1).bytes
    assert sgd.optimizer < 16


RESNET = {"kind": "resnet", "blocks": 2, "channels": 32}
MEASURED = {
    "tic-tac-toe, ResNet": ("tic_tac_toe", {"network": RESNET, "selfplay": {"lanes": 512}, "learner": {"batch": 512}}),
    "Crosshair, PUCT": (
        "crosshair",
        {"search": {"algorithm": "puct", "simulations": 128}, "selfplay": {"lanes": 256}, "learner": {"batch": 1024}},
    ),
    "Connect Four, Gumbel and a gate": (
        "connect_four",
        {
            "search": {"algorithm": "gumbel"},
            "network": {"width": 256},
            "learner": {"batch": 4096},
            "gate": {"every": 5},
        },
    ),
    "Hex, ResNet and momentum": (
        "hex,size=5",
        {"network": RESNET, "learner": {"optimizer": "sgd", "batch": 256}, "selfplay": {"lanes": 1024}},
    ),
    "Othello 4x4, mctx's loop": (
        "othello,size=4",
        {"search": {"simulations": 64, "implementation": "mctx"}, "selfplay": {"lanes": 256}},
    ),
    "ultimate tic-tac-toe, best values": (
        "ultimate_tic_tac_toe",
        {
            "network": {"width": 64, "value_head": "win_draw_loss"},
            "selfplay": {"lanes": 128},
            "learner": {"batch": 512},
        },
    ),
    "Go, Gumbel side by side": (
        "go,size=5",
        {
            "network": {"kind": "resnet", "blocks": 3, "channels": 16},
            "search": {"algorithm": "gumbel", "parallel": True, "simulations": 32},
            "selfplay": {"lanes": 512},
            "learner": {"batch": 256},
        },
    ),
    "a large network, few samples": (
        "tic_tac_toe",
        {"network": {"width": 512}, "search": {"simulations": 4}, "selfplay": {"lanes": 16}, "learner": {"batch": 32}},
    ),
    "a large network, few samples, sgd": (
        "tic_tac_toe",
        {
            "network": {"width": 512},
            "search": {"simulations": 4},
            "selfplay": {"lanes": 16},
            "learner": {"batch": 32, "optimizer": "sgd"},
        },
    ),
    "backgammon, dice": (
        "backgammon,max_plies=60",
        {"network": {"width": 128}, "search": {"simulations": 16}, "selfplay": {"lanes": 64}, "replay": {"plies": 64}},
    ),
    "Black Hole, symmetric network": (
        "black_hole",
        {"network": {"kind": "equivariant_mlp", "width": 64}, "selfplay": {"lanes": 256}, "learner": {"batch": 1024}},
    ),
    "chess, slots and planes": (
        "chess,max_plies=40",
        {
            "network": {"kind": "resnet", "blocks": 1, "channels": 16, "policy_planes": True},
            "search": {"algorithm": "puct", "simulations": 16},
            "selfplay": {"lanes": 64},
            "replay": {"plies": 48},
            "learner": {"batch": 64, "optimizer": "sgd"},
        },
    ),
}

ON_TWO = ("tic-tac-toe, ResNet", "a large network, few samples")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "sections", "devices"),
    [(*values, 1) for values in MEASURED.values()] + [(*MEASURED[name], 2) for name in ON_TWO],
    ids=[*MEASURED, *(f"{name}, two devices" for name in ON_TWO)],
)
def test_the_total_is_within_15_percent_of_what_xla_says(word, sections, devices):
    game = envs.make(word)
    config = changed(preset("smoke", word), **sections)
    config = changed(config, learner={"updates": 2, "fused": "true"}, search={"dirichlet_alpha": 1.0})
    step = Step(config, game, make_mesh(devices))
    analysis = step._step.lower(jax.eval_shape(step.init, jax.random.key(0))).compile().memory_analysis()
    measured = analysis.argument_size_in_bytes + analysis.temp_size_in_bytes
    assert make_plan(config, game, devices).bytes.total == pytest.approx(measured, rel=0.15)


def plan_of(device_bytes: int, **sections) -> Plan:
    plan = make_plan(changed(BASE, **sections), GAME, 1)
    return dataclasses.replace(plan, device_bytes=device_bytes)


@pytest.mark.parametrize(
    ("sections", "device_bytes", "field"),
    [
        ({"selfplay": {"lanes": 2**16}}, 2**26, "selfplay.lanes"),
        ({"selfplay": {"lanes": 2**16}, "search": {"simulations": 800}}, 2**31, "selfplay.lanes"),
        ({"learner": {"batch": 2**20}}, 2**26, "learner.batch"),
        ({"learner": {"batch": 2**20}, "gate": {"every": 1}, "selfplay": {"lanes": 1000}}, 2**27, "learner.batch"),
    ],
)
def test_what_cannot_fit_is_refused_and_the_suggestion_fits(sections, device_bytes, field):
    plan = plan_of(device_bytes, **sections)
    assert not plan.fits and not plan.to_json()["fits"]
    with pytest.raises(ValueError, match=rf"^{field}: got \d+, which needs .* on each of 1 devices") as refused:
        check_fits(plan)
    section, name = field.split(".")
    most = int(re.search(r"expected at most (\d+)", str(refused.value)).group(1))
    for value, fits in ((most, True), (most + 1, False)):
        smaller = dict(sections) | {section: sections[section] | {name: value}}
        assert plan_of(device_bytes, **smaller).fits == fits


def test_lanes_and_a_batch_neither_of_which_can_fit_are_refused_together():
    sections = {"selfplay": {"lanes": 2**20}, "learner": {"batch": 2**20}}
    with pytest.raises(ValueError, match=r"^selfplay\.lanes and learner\.batch: got 1048576 and 1048576, ") as refused:
        check_fits(plan_of(2**26, **sections))
    lanes, batch = map(int, re.search(r"such as (\d+) and (\d+)$", str(refused.value)).groups())
    assert plan_of(2**26, selfplay={"lanes": lanes}, learner={"batch": batch}).fits


def test_training_is_refused_before_anything_is_compiled(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("azjax.plan.device_memory", lambda device: 10**6)
    monkeypatch.setattr("azjax.train.Step", lambda *_: pytest.fail("made a step"))
    assert main(["train", "tic_tac_toe", "--preset", "smoke", "--out", str(tmp_path / "run")]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("azjax: ")]
    assert len(said) == 1 and "which needs" in said[0] and "; expected " in said[0]
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_network_that_cannot_fit_is_refused():
    with pytest.raises(ValueError, match=r"^network: got mlp, which needs .*network.channels"):
        check_fits(plan_of(1000))


def test_a_tree_beyond_int32_is_refused():
    lanes = MOST_ENTRIES // (5 * 9)
    make_plan(changed(BASE, selfplay={"lanes": lanes}), GAME, 1)
    with pytest.raises(ValueError, match=rf"selfplay.lanes: got {lanes + 1}, .* expected at most {lanes} lanes"):
        make_plan(changed(BASE, selfplay={"lanes": lanes + 1}), GAME, 1)


def test_a_game_longer_than_replay_is_refused(capsys):
    assert main(["plan", "tic_tac_toe", "--replay.plies", "5"]) == 2
    assert capsys.readouterr().err.startswith("azjax: replay.plies: got 5")


def test_the_command(capsys):
    argv = ["plan", "tic_tac_toe", "--preset", "smoke"]
    assert main([*argv, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [*plan["bytes"]] == [*(field.name for field in dataclasses.fields(Bytes)), "total"]
    assert plan["fits"] is True and plan["device_bytes"] > 1e8
    assert main(argv) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in plan["bytes"]) and text(plan["bytes"]["total"]) in said


@pytest.mark.parametrize(("size", "shown"), [(0, "0 B"), (999, "999 B"), (1234, "1.23 kB"), (5.6e10, "56 GB")])
def test_text(size, shown):
    assert text(size) == shown


@pytest.mark.parametrize(
    ("word", "devices"),
    [
        ("v4-8", (4, "TPU v4", 32 * 2**30)),
        ("v5e-8", (8, "TPU v5e", 16 * 2**30)),
        ("v5litepod-16", (16, "TPU v5litepod", 16 * 2**30)),
        ("v5p-8", (4, "TPU v5p", 95 * 2**30)),
        ("80GB", (1, "80 GB device", 80 * 10**9)),
        ("2x24GB", (2, "24 GB device", 24 * 10**9)),
    ],
)
def test_devices_that_are_not_here(word, devices):
    assert parse_devices(word) == devices


@pytest.mark.parametrize(
    "word", ["v4", "v4-0", "v4-1", "v4-7", "v5p-3", "v9-8", "80", "0GB", "0x80GB", "-1GB", "80GB,1", "axbGB"]
)
def test_other_words_for_devices_are_refused(word, capsys):
    assert main(["plan", "tic_tac_toe", f"--on={word}"]) == 2
    assert f"--on: got {word!r}, expected a type of TPU" in capsys.readouterr().err


def test_a_plan_for_devices_that_are_not_here_and_its_refusal(capsys):
    argv = ["plan", "tic_tac_toe", "--preset", "smoke", "--on", "v5e-8", "--json"]
    assert main(argv) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["devices"], plan["device_kind"], plan["device_bytes"]) == (8, "TPU v5e", 2**34)
    assert plan["bytes"]["lanes"] * 8 == make_plan(preset("smoke", "tic_tac_toe"), GAME, 1).bytes.lanes
    assert main([*argv, "--selfplay.lanes", str(2**26), "--search.simulations", "4"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["fits"] is False
    most = int(re.search(r"selfplay.lanes: got 67108864, .* expected at most (\d+)", err).group(1))
    assert main([*argv, "--selfplay.lanes", str(most), "--search.simulations", "4"]) == 0


def test_devices_that_lanes_and_batch_do_not_divide_by_are_told_of(capsys):
    argv = "plan tic_tac_toe --preset smoke --on v5e-8 --selfplay.lanes 36 --learner.batch 24".split()
    assert main([*argv, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["devices"], plan["idle_devices"]) == (6, 2)
    assert main(argv) == 0
    told = "only 6 of 8 devices used: selfplay.lanes 36 and learner.batch 24 are multiples of no more"
    assert told in capsys.readouterr().out
    assert main([*argv, "--devices", "4"]) == 0
    out = capsys.readouterr().out
    assert "4 x TPU v5e" in out and "devices used" not in out
