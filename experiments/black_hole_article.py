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
from azjax.config import GateConfig, RunConfig
from azjax.endgame import endgame_values, opening_values, policy_logits
from azjax.expansion import row_bytes
from azjax.openings import Opening
from azjax.outside import AnyPlayer
from azjax.perfect import kept_values
from azjax.players import make_player, run_player
from azjax.presets import preset
from azjax.rating import fit_ratings, score_interval
from azjax.rundir import RunDirectory, load_run
from azjax.step import make_mesh
from azjax.train import use_devices
from envs.core import State
from experiments.black_hole_report import draw, rows_of, table
from experiments.black_hole_trainings import BUDGETS, GATES, configuration, holder, lengths, what_it_took
from experiments.ledger import Ledger, results
from experiments.paper_scale import PaperScale, show_plan
from experiments.provenance import merged, provenance, publish, say
from experiments.trained import Stopped, trained

RESULTS = Path(__file__).parent / "results" / "black_hole_article"
HISTORY = "history 4"
MODES: dict[str, dict[str, str]] = {
    "policy, argmax": {"search": "policy"},
    "policy, temperature 1": {"search": "policy", "temperature": "1"},
    "policy, top-p 0.9": {"search": "policy", "temperature": "1", "top_p": "0.9"},
}
"""Players without a search, as options of a run's word; those that search are made for each number of simulations."""
PlayerFn = Callable[[], AnyPlayer]
PartFn = Callable[[], dict[str, Any]]


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
        asked, plain = self.options.parts, {"no gate"}
        compared = set(GATES) if "gates" in asked else set()
        compared |= {*plain, HISTORY} if "history" in asked else set()
        todo: dict[str, tuple[set[str], PartFn]] = {"exact": (plain, self.exact)} if "exact" in asked else {}
        for rows in self.options.rows or self.budget.rows:
            if compared:
                # Rated together with what was compared before.
                names = compared | self.done(name := f"trainings, {rows} rows")
                todo[name] = (names, functools.partial(self.trainings, rows, names))
            if "players" in asked:
                todo[f"players, {rows} rows"] = (plain, functools.partial(self.players, rows))
        for name, (names, part) in todo.items():
            if not names <= self.done(name):
                try:
                    found = {**part(), **provenance()}
                except Stopped as stopped:
                    return stopped.status
                self.path(name).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
            self.parts[name] = json.loads(self.path(name).read_text(encoding="utf-8"))
        return 0

    def path(self, part: str) -> Path:
        """Returns the file of what a part has found."""
        return self.folder / f"{part.replace(', ', '-').replace(' ', '-')}.json"

    def done(self, part: str) -> set[str]:
        """Returns the trainings that a part has dealt with."""
        path = self.path(part)
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"trainings": []}
        return {one["training"] for one in found["trainings"]}

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

    def trainings(self, rows: int, names: set[str]) -> dict[str, Any]:
        """Trains with each gate of these names, or with history, and rates what came of it."""
        known = {name: (gate, 1) for name, gate in GATES.items()} | {HISTORY: (GateConfig(), 4)}
        asked = {name: training for name, training in known.items() if name in names}
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
        parts = merged(out, "parts", named)
        report = {"game": "black_hole", "parts": parts}
        publish(out, report, rows_of(parts), table(report), lambda path: draw(path, parts))
    return status


def paper_scale() -> list[RunConfig]:
    """Returns the article's own recipe, for six rows and for nine."""
    return [preset("paper", f"black_hole,rows={rows}") for rows in (6, 9)]


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
