"""The Black Hole article's questions: which gate, which player, how much history; and five rows against the truth.

    python -m experiments.black_hole_article [--budget smoke|minutes|hour|full] [--parts exact gates history players]
    python -m experiments.black_hole_article --plan [--on 80GB] [--measure | --rate N]

exact     five rows: every first move's exact value by alpha-beta to the end, how often an agent keeps a position's
          exact value, and what it scores from each of the fifteen openings
gates     three trainings alike but for the gate: the article's 60 % in five matches running, AlphaGo Zero's 55 %, none
          (AlphaZero); the networks and the gates' holders rated against one another
history   the same without a gate, where the network sees the last four boards, in the same rating
players   one agent at two lengths of training: policy alone, 40 to 400 simulations, PUCT and Gumbel, plain UCT, random

Each training is a run of its own under --runs, and matches are kept beside them: stopped and started again, the
experiment goes on. --plan tells what the article's own recipe takes (the preset `paper`) in place of running anything.
"""

import dataclasses
import functools
import itertools
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

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
from azjax.endgame import endgame_values, opening_values, policy_logits
from azjax.expansion import row_bytes
from azjax.openings import Opening
from azjax.outside import AnyPlayer
from azjax.perfect import kept_values
from azjax.players import LoadedRun, make_player, run_player
from azjax.presets import preset
from azjax.rating import fit_ratings, score_interval
from azjax.report import save_picture
from azjax.rundir import RunDirectory, load_run
from azjax.step import make_mesh
from azjax.train import use_devices
from envs.core import State
from experiments.ledger import Ledger, results
from experiments.paper_scale import PaperScale, show_plan
from experiments.provenance import markdown, provenance, publish, say
from experiments.trained import Stopped, trained

RESULTS = Path(__file__).parent / "results" / "black_hole_article"
GATES = {
    "no gate": GateConfig(),
    "gate 55 %": GateConfig(every=10, games=100, score=0.55),
    "gate 60 % x 5": GateConfig(every=10, games=100, score=0.6, streak=5),
}
HISTORY = "history 4"
MODES: dict[str, dict[str, str]] = {
    "policy, argmax": {"search": "policy"},
    "policy, temperature 1": {"search": "policy", "temperature": "1"},
    "policy, top-p 0.9": {"search": "policy", "temperature": "1", "top_p": "0.9"},
}
"""Players without a search, as options of a run's word; those that search are made for each number of simulations."""
VALUE = {1.0: "won", 0.0: "drawn", -1.0: "lost"}

PlayerFn = Callable[[], AnyPlayer]


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(PaperScale):
    """Trains Black Hole agents in several ways and compares them."""

    budget: Literal["smoke", "minutes", "hour", "full"] = "smoke"
    """smoke: a few games, the same way. minutes, hour: six rows on two CPU cores. full: six and nine rows."""
    parts: tuple[Literal["exact", "gates", "history", "players"], ...] = ("exact", "gates", "history", "players")
    """What to do; results of other parts that are there already stay."""
    rows: tuple[int, ...] = ()
    """Boards, in place of the budget's."""
    seed: int = 0
    runs: Path = Path("runs")
    """Where the runs are."""
    out: Path | None = None
    """Where the results go; experiments/results/black_hole_article, of budget smoke beside the runs."""


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


def holder(run: RunDirectory, step: int) -> LoadedRun:
    """Returns the gate's holder, which makes the games of self-play."""
    part = Checkpoints(run.checkpoints_path).load_part(step, ("best",))
    return LoadedRun(run.read_config(), part["best"], step)


def searching(numbers: Sequence[int]) -> dict[str, dict[str, str]]:
    """Returns the players that search, at each number of simulations, as options of a run's word."""
    return {
        f"{name} {number}": {"search": word, "simulations": str(number)}
        for name, word in (("PUCT", "puct"), ("Gumbel", "gumbel"))
        for number in numbers
    }


class Experiment:
    """One seed at one budget."""

    def __init__(self, options: Options):
        self.options, self.budget = options, BUDGETS[options.budget]
        self.folder = options.runs / f"black_hole_article-{options.budget}-{options.seed}"
        self.ledger = Ledger(self.folder / "matches.jsonl")
        self.mesh = make_mesh(0)
        self.parts: dict[str, dict[str, Any]] = {}

    def run(self) -> int:
        """Does every part that was asked for and is not done; returns the exit status."""
        asked = self.options.parts
        todo: dict[str, Callable[[], dict[str, Any]]] = {"exact": self.exact} if "exact" in asked else {}
        for rows in self.options.rows or self.budget.rows:
            if {"gates", "history"} & set(asked):
                todo[f"trainings, {rows} rows"] = functools.partial(self.trainings, rows)
            if "players" in asked:
                todo[f"players, {rows} rows"] = functools.partial(self.players, rows)
        for name, part in todo.items():
            path = self.folder / f"{name.replace(', ', '-').replace(' ', '-')}.json"
            if not path.is_file():
                try:
                    found = part()
                except Stopped as stopped:
                    return stopped.status
                path.write_text(json.dumps({**found, **provenance()}, indent=2) + "\n", encoding="utf-8")
            self.parts[name] = json.loads(path.read_text(encoding="utf-8"))
        return 0

    def train(self, name: str, rows: int, gate: GateConfig, history: int = 1) -> RunDirectory:
        """Trains, or goes on.

        Raises:
          Stopped: a signal did it.
        """
        folder = self.folder / f"{name.replace(' %', '').replace(' ', '-')}-{rows}-rows"
        return trained(configuration(self.budget, rows, self.options.seed, gate, history), folder)

    def exact(self) -> dict[str, Any]:
        """Compares an agent of five rows with the exact solution."""
        budget, run = self.budget, self.train("no gate", 5, GateConfig())
        game, agent = envs.make("black_hole,rows=5"), load_run(str(run.path), self.budget.steps)
        small = envs.make(f"black_hole,rows={budget.proof_rows}")
        say(f"proving the first moves of {budget.proof_rows} rows")
        started = time.perf_counter()
        logits = policy_logits(game, agent.config, agent.variables) if small == game else no_order
        proved = opening_values(small, logits, on_progress=tell)
        taken = round(time.perf_counter() - started, 1)
        longest, shortest = f"PUCT {budget.numbers[-1]}", f"PUCT {budget.numbers[0]}"
        words = {"policy": MODES["policy, argmax"], **searching(budget.numbers)}
        # Both players are asked about the same positions.
        values, known = endgame_values(game), dict[bytes, np.ndarray]()

        def once(states: State) -> np.ndarray:
            key = row_bytes(states).tobytes()
            if key not in known:
                known[key] = values(states)
            return known[key]

        shares = {}
        for name in ("policy", longest):
            player = run_player(game, agent, name, words[name])
            said = kept_values(game, player, once, self.mesh, positions=budget.kept, first_ply=budget.first_ply)
            shares[name] = [share.to_json() for share in said]
            say(f"{name} keeps the value in {shares[name][-1]['share']:.1%} of positions")

        def make(name: str) -> AnyPlayer:
            return run_player(game, agent, name, words[name]) if name in words else make_player(game, name, load_run)

        openings = [Opening(game.action_name(cell), (cell,)) for cell in range(game.num_actions)]
        matches = []
        for other in (f"uct:{budget.rollouts}", shortest):
            row = self.ledger.play(
                game, longest, other, make, games=budget.opening_games, mesh=self.mesh, openings=openings
            )
            matches.append({"opponent": other, **by_seat(row, longest)})
        named = [{"moves": [small.action_name(a) for a in one.actions], "value": one.value} for one in proved]
        return {
            "trainings": [what_it_took("no gate", run)],
            "proof": {"rows": budget.proof_rows, "seconds": taken, "openings": named},
            "kept": shares,
            "agent": longest,
            "openings": matches,
        }

    def trainings(self, rows: int) -> dict[str, Any]:
        """Trains with each gate, and with history where asked for, and rates what came of it."""
        asked = {name: (gate, 1) for name, gate in GATES.items()} if "gates" in self.options.parts else {}
        if "history" in self.options.parts:
            asked |= {"no gate": (GateConfig(), 1), HISTORY: (GateConfig(), 4)}
        simulations = self.budget.numbers[min(1, len(self.budget.numbers) - 1)]
        options = searching([simulations])[f"PUCT {simulations}"]
        players: dict[str, PlayerFn] = {}
        took = []
        for name, (gate, history) in asked.items():
            run = self.train(name, rows, gate, history)
            took.append(what_it_took(name, run))
            game = envs.make(f"black_hole,rows={rows},history={history}")
            newest = load_run(str(run.path), self.budget.steps)
            called = f"{name}, newest network" if gate.every else name
            players[called] = functools.partial(run_player, game, newest, called, options)
            if gate.every:
                called = f"{name}, its holder"
                players[called] = functools.partial(run_player, game, holder(run, newest.step), called, options)
        return {"trainings": took, **self.rate(f"PUCT with {simulations} simulations", rows, players)}

    def players(self, rows: int) -> dict[str, Any]:
        """Rates one agent's ways to choose moves, at a quarter of its training and at its end."""
        run, game = self.train("no gate", rows, GateConfig()), envs.make(f"black_hole,rows={rows}")
        players: dict[str, PlayerFn] = {}
        for step in lengths(self.budget.steps):
            agent = load_run(str(run.path), step)
            for mode, options in (MODES | searching(self.budget.numbers)).items():
                called = f"{mode}, step {step}"
                players[called] = functools.partial(run_player, game, agent, called, options)
        return {"trainings": [what_it_took("no gate", run)], **self.rate("ways to choose a move", rows, players)}

    def rate(self, title: str, rows: int, players: dict[str, PlayerFn]) -> dict[str, Any]:
        """Rates players by a round robin with plain UCT, which has rating 0, and random.

        Relative to random, who loses nearly every game, every interval would be hundreds of Elo wide.
        """
        game = envs.make(f"black_hole,rows={rows}")
        names = [*players, f"uct:{self.budget.rollouts}", "random"]

        def make(name: str) -> AnyPlayer:
            return players[name]() if name in players else make_player(game, name, load_run)

        matches = [
            self.ledger.play(game, a, b, make, games=self.budget.games, mesh=self.mesh)
            for a, b in itertools.combinations(names, 2)
        ]
        ratings = fit_ratings(results(matches), anchors={f"uct:{self.budget.rollouts}": 0.0})
        return {"title": title, "rows": rows, "games_a_pair": self.budget.games, "ratings": ratings.to_json()}


def lengths(steps: int) -> tuple[int, int]:
    """Returns the two lengths of training."""
    return max(1, steps // 4), steps


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


def by_seat(row: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns a player's results as the one who moved first, and as the other."""
    found = {}
    for result in results([row]):
        first = result.a == name
        won, lost = (result.wins, result.losses) if first else (result.losses, result.wins)
        score, low, high = score_interval(won, result.draws, lost)
        counts = {"wins": won, "draws": result.draws, "losses": lost}
        found["first" if first else "second"] = counts | {
            "score": round(score, 4),
            "ci95": [round(low, 4), round(high, 4)],
        }
    return found


def no_order(states: State) -> np.ndarray:
    """Returns logits that say nothing of the moves of Black Hole."""
    return np.zeros(states.tiles.shape, np.float32)


def tell(done: int, number: int) -> None:
    """Says how far the proof has come."""
    say(f"{done} of {number} replies to first moves are answered")


def rows_of(parts: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns every measured number with its interval, a row each."""
    rows: list[dict[str, Any]] = []

    def add(part: str, player: str, measure: str, games: int, value: float, ends: Sequence[float | None]) -> None:
        low, high = (None if end is None else round(end, 4) for end in ends)
        rows.append(
            {"part": part, "player": player, "measure": measure, "games": games, "value": round(value, 4)}
            | {"low": low, "high": high}
        )

    for name, part in parts.items():
        for player in part.get("ratings", {}).get("players", ()):
            add(name, player["name"], "Elo", player["games"], player["elo"], player["ci95"])
        for player, shares in part.get("kept", {}).items():
            whole = shares[-1]
            add(name, player, "value kept", whole["positions"], whole["share"], whole["ci95"])
            if whole["critical"]:
                share, ends = whole["critical_share"], whole["critical_ci95"]
                add(name, player, "value kept, critical", whole["critical"], share, ends)
        for match in part.get("openings", ()):
            for seat in ("first", "second"):
                found = match[seat]
                games = found["wins"] + found["draws"] + found["losses"]
                against = f"{part['agent']} against {match['opponent']}"
                add(name, against, f"score, moving {seat}", games, found["score"], found["ci95"])
    return rows


def table(report: dict[str, Any]) -> str:
    """Returns all parts in Markdown."""
    text = "# The Black Hole article\n"
    for name, part in report["parts"].items():
        text += f"\n## {name}\n\n"
        if "proof" in part:
            proof = part["proof"]
            worth = "; ".join(f"{' '.join(one['moves'])}: {VALUE[one['value']]}" for one in proof["openings"])
            text += (
                f"First moves of {proof['rows']} rows, those that are images of one another together, by alpha-beta to "
                f"the end of every line: {worth} ({proof['seconds']:.0f} s).\n\n"
            )
        lines = [["player", "measure", "value", "95 % interval", "games or positions"], ["---"] * 5]
        for row in rows_of({name: part}):
            shown = "{:+.0f}" if row["measure"] == "Elo" else "{:.1%}"
            ends = [None if row[end] is None else shown.format(row[end]) for end in ("low", "high")]
            interval = "" if None in ends else "anchor" if row["low"] == row["high"] else f"{ends[0]} to {ends[1]}"
            lines.append([row["player"], row["measure"], shown.format(row["value"]), interval, f"{row['games']:,}"])
        text += markdown(lines)
        lines = [
            ["training", "steps", "games", "training, s", "gate matches, s", "gate matches", "passed"],
            ["---"] * 7,
        ]
        for one in part["trainings"]:
            numbers = (one["steps"], one["games"], one["training_seconds"], one["gate_seconds"])
            counts = [f"{one['gate_matches']}", f"{one['gate_passed']}"] if one["gate_matches"] else ["", ""]
            lines.append([one["training"], *(f"{number:,.0f}" for number in numbers), *counts])
        text += "\n" + markdown(lines)
        played = f", {part['games_a_pair']} games a pair, {part['title']}" if "ratings" in part else ""
        text += (
            f"\nBudget {part['budget']}, seed {part['seed']}{played}. {part['device']}, {part['cores']} cores, "
            f"{part['date']}, commit {part['commit']}.\n"
        )
    return text


def draw(path: Path, parts: dict[str, dict[str, Any]]) -> None:
    """Draws the ratings, a panel each."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rated = {name: part["ratings"]["players"][::-1] for name, part in parts.items() if "ratings" in part}
    if not rated:
        return
    longest = max(map(len, rated.values()))
    figure = Figure(figsize=(7 * len(rated), 1.2 + 0.3 * longest), dpi=110, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    for axes, (name, players) in zip(np.atleast_1d(figure.subplots(1, len(rated))), rated.items(), strict=True):
        for height, player in enumerate(players):
            low, high = (player["elo"] if end is None else end for end in player["ci95"])
            axes.plot((low, high), (height, height), color="#0072B2", alpha=0.5, linewidth=3)
            axes.plot(player["elo"], height, "o", color="#0072B2", markersize=4)
        axes.set_yticks(range(len(players)), [player["name"] for player in players])
        axes.set(xlabel="Elo, plain UCT = 0, with its 95 % interval", title=name)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    save_picture(path, canvas)


def main(options: Options) -> int:
    """Trains (or goes on), measures and writes; returns the exit status."""
    use_devices(0)
    out = options.out or (RESULTS if options.budget != "smoke" else options.runs / "black_hole_article-smoke-results")
    if options.plan:
        return show_plan(options, paper_scale(), out)
    experiment = Experiment(options)
    status = experiment.run()
    if experiment.parts:
        done = {"budget": options.budget, "seed": options.seed}
        named = {f"{options.budget}, seed {options.seed}: {n}": {**p, **done} for n, p in experiment.parts.items()}
        before = out / "results.json"
        kept = json.loads(before.read_text(encoding="utf-8"))["parts"] if before.is_file() else {}
        parts = kept | named
        report = {"game": "black_hole", "parts": parts}
        publish(out, report, rows_of(parts), table(report), lambda path: draw(path, parts))
    return status


def paper_scale() -> list[RunConfig]:
    """Returns the article's own recipe, for six rows and for nine."""
    return [preset("paper", f"black_hole,rows={rows}") for rows in (6, 9)]


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
