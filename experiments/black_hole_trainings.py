"""The trainings of experiments/black_hole_article.py: their budgets, gates and configuration, and what each took."""

import dataclasses
from typing import Any

import envs
from azjax.checkpoint import Checkpoints
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
from azjax.players import LoadedRun
from azjax.rundir import RunDirectory

GATES = {
    "no gate": GateConfig(),
    "gate 55 %": GateConfig(every=10, games=100, score=0.55),
    "gate 60 % x 5": GateConfig(every=10, games=100, score=0.6, streak=5),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """How much is done."""

    rows: tuple[int, ...]  # of the boards on which gates, history and players are compared
    steps: int  # of each training; the shorter length is a quarter of it
    lanes: int
    plies: int  # of a step, in every lane
    simulations: int  # in self-play
    width: int  # of the network's layers
    updates: int
    batch: int
    gate_every: int  # steps, the article's iterations
    gate_games: int
    numbers: tuple[int, ...]  # of simulations of the rated players
    rollouts: int  # of plain UCT
    games: int  # a pair in the ratings
    proof_rows: int  # of the board whose first moves are proved
    kept: int  # positions of five rows in which an agent's move is judged
    first_ply: int  # of these positions
    opening_games: int  # from the fifteen openings, against each opponent


BUDGETS = {
    "smoke": Budget(
        rows=(5,), steps=4, lanes=16, plies=4, simulations=4, width=16, updates=2, batch=32, gate_every=2, gate_games=4,
        numbers=(4, 8), rollouts=8, games=2, proof_rows=2, kept=24, first_ply=10, opening_games=30,
    ),
    "minutes": Budget(
        rows=(6,), steps=240, lanes=256, plies=2, simulations=32, width=128, updates=4, batch=256, gate_every=10,
        gate_games=100, numbers=(40, 100, 400), rollouts=400, games=20, proof_rows=5, kept=200,
        first_ply=3, opening_games=150,
    ),
    "hour": Budget(
        rows=(6,), steps=800, lanes=256, plies=4, simulations=40, width=128, updates=8, batch=256, gate_every=10,
        gate_games=100, numbers=(40, 100, 400), rollouts=400, games=40, proof_rows=5, kept=400,
        first_ply=3, opening_games=300,
    ),
    "full": Budget(
        rows=(6, 9), steps=4000, lanes=1024, plies=4, simulations=100, width=128, updates=32, batch=256, gate_every=10,
        gate_games=100, numbers=(40, 100, 400), rollouts=400, games=400, proof_rows=5, kept=2000,
        first_ply=3, opening_games=900,
    ),
}  # fmt: skip


def configuration(budget: Budget, rows: int, seed: int, gate: GateConfig, history: int = 1) -> RunConfig:
    """Returns one training: the article's search and sampling of moves at a budget's size, AdamW for its SGD."""
    if gate.every:
        gate = dataclasses.replace(gate, every=budget.gate_every, games=budget.gate_games)
    game = envs.make(f"black_hole,rows={rows},history={history}")
    return RunConfig(
        game=game.id,
        seed=seed,
        steps=budget.steps,
        network=NetworkConfig(kind="mlp", width=budget.width),
        search=SearchConfig(algorithm="puct", simulations=budget.simulations),
        selfplay=SelfPlayConfig(
            lanes=budget.lanes,
            plies=budget.plies,
            temperature=1.0,
            temperature_plies=1000,
            actor="best" if gate.every else "latest",
        ),
        replay=ReplayConfig(plies=max(64, game.max_plies + 1)),
        learner=LearnerConfig(batch=budget.batch, updates=budget.updates, symmetry="training"),
        gate=gate,
        evaluation=EvaluationConfig(final_games=2, checkpoints=1, anchors=("random",)),
        checkpoint=CheckpointConfig(every=max(1, budget.steps // 4), keep=2, keep_every=max(1, budget.steps // 4)),
    )


def lengths(steps: int) -> tuple[int, int]:
    """Returns the two lengths of training."""
    return max(1, steps // 4), steps


def holder(run: RunDirectory, step: int) -> LoadedRun:
    """Returns the gate's holder, which makes the games of self-play."""
    part = Checkpoints(run.checkpoints_path).load_part(step, ("best",))
    return LoadedRun(run.read_config(), part["best"], step)


def what_it_took(name: str, run: RunDirectory) -> dict[str, Any]:
    """Returns what a training took, and how often its gate opened."""
    last = [row for row in run.rows() if "games_in_step" in row][-1]
    gates = [row["gate"] for row in run.rows() if "gate" in row]
    return {
        "training": name,
        "steps": last["step"],
        "games": last["games"],
        "simulations": last["simulations"],
        "training_seconds": round(last["seconds"], 1),
        "gate_seconds": round(last["evaluation_seconds"], 1),
        "gate_matches": len(gates),
        "gate_passed": sum(gate["passed"] for gate in gates),
    }
