"""Presets: complete configurations by name and game. Importing it imports no JAX."""

import dataclasses
from typing import Any

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
)

PRESETS = ("smoke", "quick", "full", "paper")

_BOUND: dict[str, int] = {
    "tic_tac_toe": 9,
    "connect_four": 42,
    "crosshair": 49,
    "black_hole": 20,
    "othello": 119,
    "hex": 122,
    "ultimate_tic_tac_toe": 81,
    "backgammon": 2000,
    "chess": 512,
    "shogi": 512,
    "go_9x9": 162,
    "go_13x13": 338,
    "go_19x19": 722,
}
"""Longest game in plies, which replay must hold; games that are not here are taken to last 512."""


_CUT_AT = {"chess": 32, "shogi": 32}
"""Plies after which `smoke` cuts games off, so that some end within its minute, unless the word says `max_plies`."""


def preset(name: str, game: str) -> RunConfig:
    """Returns the configuration of a preset.

    smoke: the whole pipeline in under a minute. quick: minutes on two cores, a good player for small games. full: the
    same recipe, some twenty times longer, for an accelerator. paper: the published constants.

    Args:
      name: one of PRESETS.
      game: word of envs.make.

    Raises:
      ValueError: there is no such preset.
    """
    if name not in PRESETS:
        raise ValueError(f"preset: got {name!r}, expected one of {', '.join(PRESETS)}")
    base = game.partition(",")[0].strip()
    if name == "paper":
        return _PAPER.get(base, _alphazero)(game)
    if name == "smoke" and base in _CUT_AT and "max_plies" not in game:
        game = f"{game},max_plies={_CUT_AT[base]}"
    config = _small(game, base, name)
    return dataclasses.replace(config, **_TUNED.get((name, base), {}))


def _small(game: str, base: str, name: str) -> RunConfig:
    longest = _BOUND.get(base, 512)
    lanes = {"smoke": 64, "quick": 1024, "full": 4096}[name] // (1 if longest <= 1024 else 4)
    plies, batch = (8, 256) if name == "smoke" else (8, 1024)
    steps = {"smoke": 30, "quick": 200, "full": 4000}[name]
    # A rollout of a long game takes hundreds of moves, each with its legal moves: smoke has a minute.
    brief = name == "smoke" and longest > 300
    return RunConfig(
        game=game,
        preset=name,
        steps=steps,
        search=SearchConfig(simulations=16 if name == "smoke" else 32),
        selfplay=SelfPlayConfig(lanes=lanes, plies=plies, temperature_plies=10),
        replay=ReplayConfig(plies=max(64 if name == "smoke" else 256, longest + 1)),
        learner=LearnerConfig(batch=batch, updates=max(1, 3 * lanes * plies // (2 * batch)), learning_rate=2e-3),
        evaluation=EvaluationConfig(
            every=0 if name == "smoke" else steps // 4,
            games=40,
            final_games=4 if brief else 20 if name == "smoke" else 200,
            simulations=None if name == "smoke" else 64,
            anchors=("random", f"uct:{4 if brief else 50 if name == 'smoke' else 400}"),
            checkpoints=1 if brief else 2 if name == "smoke" else 3,
        ),
        checkpoint=CheckpointConfig(every=steps // 10, keep=2, keep_every=3 * (steps // 10)),
    )


_TUNED: dict[tuple[str, str], dict[str, Any]] = {
    ("quick", "crosshair"): {
        "steps": 320,
        "network": NetworkConfig(kind="equivariant_mlp", width=192),
        "search": SearchConfig(algorithm="gumbel", simulations=16, considered_actions=8),
        "selfplay": SelfPlayConfig(lanes=1024, plies=8, temperature_plies=20, opening_plies=8),
        "replay": ReplayConfig(plies=384),
        "learner": LearnerConfig(batch=1024, updates=14, learning_rate=2e-3, outcome_weight=0.6, symmetry="none"),
        "evaluation": EvaluationConfig(every=40, final_games=40, simulations=64),
        "checkpoint": CheckpointConfig(every=40, keep=2, keep_every=120),
    },
    ("quick", "connect_four"): {
        "steps": 400,
        "network": NetworkConfig(kind="equivariant_mlp", width=384),
        "search": SearchConfig(algorithm="gumbel", simulations=16, considered_actions=7),
        "selfplay": SelfPlayConfig(lanes=1024, plies=8, temperature_plies=20, opening_plies=8),
        "replay": ReplayConfig(plies=384),
        "learner": LearnerConfig(batch=1024, updates=14, learning_rate=2e-3, outcome_weight=0.6, symmetry="none"),
        "evaluation": EvaluationConfig(every=50, final_games=40, simulations=64),
        "checkpoint": CheckpointConfig(every=40, keep=2, keep_every=120),
    },
    ("quick", "tic_tac_toe"): {
        "steps": 120,
        "search": SearchConfig(simulations=32),
        "selfplay": SelfPlayConfig(lanes=256, plies=8, temperature_plies=6),
        "replay": ReplayConfig(plies=128),
        "learner": LearnerConfig(batch=512, updates=8, learning_rate=3e-3),
        "evaluation": EvaluationConfig(every=30, final_games=100, simulations=64),
        "checkpoint": CheckpointConfig(every=20, keep=2, keep_every=40),
    },
    **{
        ("smoke", game): {
            "steps": 12,
            "network": NetworkConfig(kind="mlp", width=32, blocks=1),
            "search": SearchConfig(algorithm="gumbel", simulations=8, considered_actions=8, slots=64),
            "selfplay": SelfPlayConfig(lanes=32, plies=8),
            "replay": ReplayConfig(plies=64),
            "learner": LearnerConfig(batch=64, updates=4, learning_rate=2e-3),
            "evaluation": EvaluationConfig(every=0, final_games=4, anchors=("random",), checkpoints=1),
            "checkpoint": CheckpointConfig(every=6, keep=2, keep_every=6),
        }
        for game in ("chess", "shogi")
    },
    **{
        (name, game): {
            "network": NetworkConfig(kind="resnet", blocks=blocks, channels=channels, policy_planes=True),
            "search": SearchConfig(algorithm="gumbel", simulations=32, slots=slots),
            "selfplay": SelfPlayConfig(lanes=lanes, plies=8, temperature_plies=30),
            "learner": LearnerConfig(batch=batch, updates=4, learning_rate=2e-3, symmetry="none"),
            "evaluation": EvaluationConfig(every=every, games=20, final_games=40, anchors=("random", "uct:16")),
        }
        for game, slots in (("chess", 96), ("shogi", 160))
        for name, blocks, channels, lanes, batch, every in (
            ("quick", 2, 32, 128, 256, 100),
            ("full", 6, 64, 2048, 4096, 1000),
        )
    },
}
"""Fields in which a preset differs for one game."""


def _alphazero(game: str) -> RunConfig:
    """AlphaZero (Silver et al. 2018), Methods: Configuration; chess, shogi, Go, and others by its rules."""
    base = game.partition(",")[0]
    alpha = {"chess": 0.3, "shogi": 0.15}.get(base, 0.03 if base.startswith("go") else None)
    return RunConfig(
        game=game,
        preset="paper",
        steps=700_000,
        network=NetworkConfig(kind="resnet", blocks=20, channels=256, value_width=256, policy_planes=base in _PLANES),
        search=SearchConfig(algorithm="puct", simulations=800, dirichlet_fraction=0.25, dirichlet_alpha=alpha),
        selfplay=SelfPlayConfig(lanes=4096, plies=1, temperature=1.0, temperature_plies=30),
        replay=ReplayConfig(plies=1024),
        learner=LearnerConfig(
            batch=4096,
            updates=1,
            optimizer="sgd",
            learning_rate=0.2,
            schedule="stepwise",
            boundaries=(100_000, 300_000, 500_000),
            decay=0.1,
            momentum=0.9,
            weight_decay=1e-4,
            symmetry="none",
        ),
        evaluation=EvaluationConfig(every=10_000, simulations=800),
        checkpoint=CheckpointConfig(every=1000, keep=5, keep_every=70_000),
    )


_PLANES = ("chess", "shogi")


def _black_hole(game: str) -> RunConfig:
    """The Black Hole article: gated training of a 20-block network, policy moves sampled at every ply."""
    return RunConfig(
        game=game,
        preset="paper",
        steps=1_000_000,
        network=NetworkConfig(kind="resnet", blocks=20, channels=64),
        search=SearchConfig(algorithm="puct", simulations=100),
        selfplay=SelfPlayConfig(lanes=64, plies=1, temperature=1.0, temperature_plies=1_000_000),
        replay=ReplayConfig(plies=64),
        learner=LearnerConfig(
            batch=512,
            updates=1,
            optimizer="sgd",
            learning_rate=0.2,
            schedule="stepwise",
            boundaries=(100_000, 300_000, 500_000, 700_000),
            decay=0.1,
            momentum=0.9,
        ),
        gate=GateConfig(every=10, games=100, score=0.6, streak=5),
        evaluation=EvaluationConfig(every=10_000),
        checkpoint=CheckpointConfig(every=1000, keep=3, keep_every=100_000),
    )


def _crosshair(game: str) -> RunConfig:
    """The Crosshair article: ten generations of 220 games at 450 simulations, its MLP, an arena of 60 games.

    One step is a generation: 220 lanes play 42 plies, about one game each; a position is replayed some fifteen times.
    """
    return RunConfig(
        game=game,
        preset="paper",
        steps=10,
        network=NetworkConfig(kind="mlp"),
        search=SearchConfig(algorithm="puct", simulations=450),
        selfplay=SelfPlayConfig(lanes=220, plies=42, temperature_plies=12),
        replay=ReplayConfig(plies=200),
        learner=LearnerConfig(batch=256, updates=540, learning_rate=1e-3, schedule="constant"),
        evaluation=EvaluationConfig(every=1, games=60, final_games=200, simulations=450),
        checkpoint=CheckpointConfig(every=1, keep=10, keep_every=1),
    )


_PAPER = {"black_hole": _black_hole, "crosshair": _crosshair}
