import dataclasses
import json
import re
import subprocess
import sys
import typing

import pytest

from azjax.config import (
    CheckpointConfig,
    EvaluationConfig,
    GateConfig,
    LearnerConfig,
    NetworkConfig,
    ReplayConfig,
    RunConfig,
    SearchConfig,
    SelfPlayConfig,
    differences,
    from_json,
    to_json,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("cls", "fields", "message"),
    [
        (
            NetworkConfig,
            {"kind": "cnn"},
            "network.kind: got 'cnn', expected mlp, equivariant_mlp, resnet or module:CLASS",
        ),
        (NetworkConfig, {"width": 0}, "network.width: got 0, expected at least 1"),
        (NetworkConfig, {"channels": 0}, "network.channels: got 0, expected at least 1"),
        (NetworkConfig, {"value_width": -3}, "network.value_width: got -3, expected at least 1"),
        (NetworkConfig, {"blocks": -1}, "network.blocks: got -1, expected a number from 0 to 1000"),
        (
            NetworkConfig,
            {"value_head": "tanh"},
            "network.value_head: got 'tanh', expected one of expected_outcome, win_draw_loss, binary",
        ),
        (SearchConfig, {"algorithm": "uct"}, "search.algorithm: got 'uct', expected one of puct, gumbel"),
        (SearchConfig, {"implementation": "x"}, "search.implementation: got 'x', expected one of azjax, mctx"),
        (SearchConfig, {"simulations": 0}, "search.simulations: got 0, expected at least 1"),
        (SearchConfig, {"considered_actions": 0}, "search.considered_actions: got 0, expected at least 1"),
        (
            SearchConfig,
            {"dirichlet_fraction": 1.5},
            "search.dirichlet_fraction: got 1.5, expected a number from 0 to 1",
        ),
        (SearchConfig, {"c_base": 0.0}, "search.c_base: got 0.0, expected a number above 0"),
        (SearchConfig, {"dirichlet_alpha": 0.0}, "search.dirichlet_alpha: got 0.0, expected a number above 0"),
        (SearchConfig, {"c_puct": NAN}, "search.c_puct: got nan, expected a finite number, at most 3.4e+38"),
        (SearchConfig, {"max_depth": 0}, "search.max_depth: got 0, expected at least 1"),
        (SelfPlayConfig, {"lanes": 0}, "selfplay.lanes: got 0, expected at least 1"),
        (SelfPlayConfig, {"plies": 0}, "selfplay.plies: got 0, expected at least 1"),
        (SelfPlayConfig, {"temperature": -0.5}, "selfplay.temperature: got -0.5, expected at least 0"),
        (SelfPlayConfig, {"temperature_plies": -1}, "selfplay.temperature_plies: got -1, expected at least 0"),
        (SelfPlayConfig, {"actor": "worst"}, "selfplay.actor: got 'worst', expected one of latest, best"),
        (ReplayConfig, {"plies": 1}, "replay.plies: got 1, expected at least 2"),
        (LearnerConfig, {"batch": 0}, "learner.batch: got 0, expected at least 1"),
        (LearnerConfig, {"updates": -1}, "learner.updates: got -1, expected at least 0"),
        (LearnerConfig, {"optimizer": "lion"}, "learner.optimizer: got 'lion', expected one of sgd, adamw"),
        (
            LearnerConfig,
            {"schedule": "linear"},
            "learner.schedule: got 'linear', expected one of stepwise, cosine, constant",
        ),
        (
            LearnerConfig,
            {"symmetry": True},
            "learner.symmetry: got True, expected one of none, training, training_and_search",
        ),
        (LearnerConfig, {"fused": "yes"}, "learner.fused: got 'yes', expected one of auto, true, false"),
        (LearnerConfig, {"learning_rate": 0.0}, "learner.learning_rate: got 0.0, expected a number above 0"),
        (LearnerConfig, {"outcome_weight": -0.1}, "learner.outcome_weight: got -0.1, expected a number from 0 to 1"),
        (LearnerConfig, {"warmup": -1}, "learner.warmup: got -1, expected at least 0"),
        (LearnerConfig, {"weight_decay": -1e-4}, "learner.weight_decay: got -0.0001, expected at least 0"),
        (
            LearnerConfig,
            {"value_weight": NAN},
            "learner.value_weight: got nan, expected a finite number, at most 3.4e+38",
        ),
        (LearnerConfig, {"clip": -1.0}, "learner.clip: got -1.0, expected at least 0"),
        (
            LearnerConfig,
            {"boundaries": (20, 10)},
            "learner.boundaries: got (20, 10), expected rising whole numbers above 0",
        ),
        (
            LearnerConfig,
            {"boundaries": (10, 10)},
            "learner.boundaries: got (10, 10), expected rising whole numbers above 0",
        ),
        (
            LearnerConfig,
            {"boundaries": (0, 10)},
            "learner.boundaries: got (0, 10), expected rising whole numbers above 0",
        ),
        (GateConfig, {"every": -1}, "gate.every: got -1, expected at least 0"),
        (GateConfig, {"games": 1}, "gate.games: got 1, expected at least 2"),
        (GateConfig, {"streak": 0}, "gate.streak: got 0, expected at least 1"),
        (GateConfig, {"score": 55}, "gate.score: got 55, expected a number from 0 to 1"),
        (EvaluationConfig, {"every": -1}, "evaluation.every: got -1, expected at least 0"),
        (
            EvaluationConfig,
            {"games": 41},
            "evaluation.games: got 41, expected an even number (both seats of an opening)",
        ),
        (
            EvaluationConfig,
            {"final_games": -2},
            "evaluation.final_games: got -2, expected at least 2",
        ),
        (EvaluationConfig, {"checkpoints": 0}, "evaluation.checkpoints: got 0, expected at least 1"),
        (
            EvaluationConfig,
            {"anchors": ("random", "uct:4", "random")},
            "evaluation.anchors: got random twice, expected different players",
        ),
        (EvaluationConfig, {"opening_plies": -1}, "evaluation.opening_plies: got -1, expected at least 0"),
        (EvaluationConfig, {"simulations": 0}, "evaluation.simulations: got 0, expected at least 1"),
        (
            EvaluationConfig,
            {"anchors": ()},
            "evaluation.anchors: got none, expected at least one player, such as random",
        ),
        (CheckpointConfig, {"every": 0}, "checkpoint.every: got 0, expected at least 1"),
        (CheckpointConfig, {"keep": 0}, "checkpoint.keep: got 0, expected at least 1"),
        (CheckpointConfig, {"keep_every": -1}, "checkpoint.keep_every: got -1, expected at least 0"),
        (RunConfig, {"game": "g", "steps": 0}, "steps: got 0, expected at least 1"),
        (RunConfig, {"game": "g", "devices": -1}, "devices: got -1, expected at least 0"),
        (RunConfig, {"game": "g", "seed": -1}, "seed: got -1, expected a number from 0 to 4294967295"),
        (RunConfig, {"game": "g", "seed": 2**32}, "seed: got 4294967296, expected a number from 0 to 4294967295"),
        (
            RunConfig,
            {"game": "g", "selfplay": SelfPlayConfig(actor="best")},
            "selfplay.actor: got best without a gate, expected gate.every above 0 (or actor latest)",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_what_was_got_and_expected(cls, fields, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        cls(**fields)


SECTIONS = {field.name: field.type for field in dataclasses.fields(RunConfig) if dataclasses.is_dataclass(field.type)}
NUMBERS = {
    (section, field.name): field.type
    for section, cls in SECTIONS.items()
    for field in dataclasses.fields(cls)
    if {int, float} & {field.type, *typing.get_args(field.type)} and typing.get_origin(field.type) is not tuple
}


@pytest.mark.parametrize(("section", "name"), NUMBERS)
def test_a_number_that_programs_cannot_hold_is_refused_in_every_field(section, name):
    real = float in (NUMBERS[section, name], *typing.get_args(NUMBERS[section, name]))
    for value in (NAN, float("inf"), float("-inf"), 1e39, -1e39) if real else (2**31, -(2**31), 10**23):
        with pytest.raises(ValueError, match=rf"^{section}\.{name}: got {re.escape(repr(value))}, expected "):
            SECTIONS[section](**{name: value})


@pytest.mark.parametrize(
    ("cls", "fields", "message"),
    [
        (SearchConfig, {"c_init": -1.0}, "search.c_init: got -1.0, expected at least 0"),
        (LearnerConfig, {"decay": -0.1}, "learner.decay: got -0.1, expected a number above 0"),
        (LearnerConfig, {"final_fraction": -0.1}, "learner.final_fraction: got -0.1, expected a number from 0 to 1"),
        (LearnerConfig, {"momentum": -0.9}, "learner.momentum: got -0.9, expected a number from 0 to 1"),
    ],
)
def test_a_negative_rate_is_refused(cls, fields, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        cls(**fields)


@pytest.mark.parametrize(
    ("cls", "fields"),
    [
        (NetworkConfig, {"kind": "my.module:Net", "blocks": 0, "width": 1}),
        (SearchConfig, {"dirichlet_fraction": 0.0, "c_puct": 2.0, "max_depth": 1, "simulations": 1}),
        (SelfPlayConfig, {"temperature": 0.0, "temperature_plies": 0}),
        (LearnerConfig, {"boundaries": (1, 2, 30), "updates": 0, "outcome_weight": 0.0}),
        (EvaluationConfig, {"games": 2, "final_games": 2}),
        (RunConfig, {"game": "g", "seed": 2**32 - 1}),
        (RunConfig, {"game": "g", "selfplay": SelfPlayConfig(actor="best"), "gate": GateConfig(every=1)}),
    ],
)
def test_values_on_the_edge_are_taken(cls, fields):
    config = cls(**fields)
    assert {name: getattr(config, name) for name in fields} == fields


CONFIG = RunConfig(
    game="crosshair,size=5",
    preset="full",
    seed=7,
    network=NetworkConfig(kind="resnet", value_head="win_draw_loss", policy_planes=True),
    search=SearchConfig(c_puct=1.5, max_depth=12, dirichlet_alpha=None),
    selfplay=SelfPlayConfig(actor="best"),
    learner=LearnerConfig(optimizer="sgd", schedule="stepwise", boundaries=(100, 300), fused="false"),
    gate=GateConfig(every=10, score=0.6, streak=5),
    evaluation=EvaluationConfig(anchors=("random", "uct:400", "uct:800"), simulations=32),
)


def test_json_and_back():
    assert from_json(json.loads(json.dumps(to_json(CONFIG)))) == CONFIG
    assert from_json({"game": "go_9x9"}) == RunConfig(game="go_9x9")


def test_a_configuration_cannot_be_changed_and_is_given_by_name():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CONFIG.steps = 3  # ty: ignore
    with pytest.raises(TypeError):
        RunConfig("crosshair")  # ty: ignore
    assert hash(CONFIG) == hash(from_json(to_json(CONFIG)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"game": "g", "stepz": 3}, "unknown field stepz"),
        ({"game": "g", "search": {"simulation": 3}}, "unknown field search.simulation"),
        ({"game": "g", "search": 3}, "search: got 3, expected an object of fields"),
        ([], "configuration: got [], expected an object of fields"),
        ({}, "got no field game"),
        ({"game": "g", "search": {"simulations": 0}}, "search.simulations: got 0, expected at least 1"),
        ({"game": "g", "learner": {"boundaries": [5, 4]}}, "learner.boundaries"),
        ({"game": "g", "steps": "many"}, "steps: got 'many', expected a whole number"),
        ({"game": "g", "search": {"simulations": None}}, "search.simulations: got None, expected a whole number"),
        ({"game": 5}, "game: got 5, expected text"),
        ({"game": ["g"]}, "game: got ['g'], expected text"),
        ({"game": "g", "seed": 1.5}, "seed: got 1.5, expected a whole number"),
        ({"game": "g", "selfplay": {"lanes": "16"}}, "selfplay.lanes: got '16', expected a whole number"),
        ({"game": "g", "selfplay": {"lanes": 16.5}}, "selfplay.lanes: got 16.5, expected a whole number"),
        ({"game": "g", "selfplay": {"lanes": True}}, "selfplay.lanes: got True, expected a whole number"),
        ({"game": "g", "search": {"c_init": True}}, "search.c_init: got True, expected a number"),
        ({"game": "g", "search": {"slots": "a"}}, "search.slots: got 'a', expected a whole number or None"),
        ({"game": "g", "network": {"kind": ["mlp"]}}, "network.kind: got ['mlp'], expected text"),
        ({"game": "g", "network": {"policy_planes": 1}}, "network.policy_planes: got 1, expected true or false"),
        ({"game": "g", "evaluation": {"anchors": "random"}}, "got 'random', expected a list of words"),
        ({"game": "g", "evaluation": {"anchors": [1]}}, "evaluation.anchors: got (1,), expected a list of words"),
        ({"game": "g", "learner": {"boundaries": [1.5]}}, "got (1.5,), expected a list of whole numbers"),
    ],
)
def test_json_that_is_no_configuration_is_refused(fields, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        from_json(fields)


def test_differences_are_named():
    other = dataclasses.replace(
        CONFIG,
        seed=8,
        search=dataclasses.replace(CONFIG.search, c_puct=None),
        learner=dataclasses.replace(CONFIG.learner, boundaries=(100,)),
    )
    assert differences(CONFIG, other) == {
        "seed": (7, 8),
        "search.c_puct": (1.5, None),
        "learner.boundaries": ([100, 300], [100]),
    }
    assert differences(CONFIG, from_json(to_json(CONFIG))) == {}


def test_importing_it_imports_no_jax():
    code = "import azjax.config, sys; sys.exit(bool({'jax', 'numpy', 'flax'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
