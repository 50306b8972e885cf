"""Figure 2 of the AlphaZero paper, and the comparison it left out: the same network under PUCT, Gumbel and alpha-beta.

    python -m experiments.figure_2 [--budget smoke|full|paper] [--games crosshair connect_four] [--plan] [--times again]
                                   [--evaluations 25 50 ...] [--match-games 100] [--runs DIR] [--out DIR]

The paper (Silver et al. 2018, Figure 2) shows Elo against the time of a move for AlphaZero's search and for Stockfish,
whose evaluation and search both differ from it. Here one trained network is searched in three ways with equal numbers
of evaluations, so that only the search differs; Elo is told against that number and against the time of a move.
Alpha-beta (azjax/search/alphabeta.py) deepens step by step in the policy's order and keeps no table of positions: what
a deeper pass meets again is evaluated again, and counts.

The agents are runs of the preset `quick` under --runs (that of `make train` for Crosshair), trained or gone on with
where they are not finished. Everyone plays those of the same number of evaluations and of the next ones, both seats of
openings of four random plies; the policy alone, without search, has Elo 0, and uct:400 is rated with them. Matches are
kept in the run's figure_2.jsonl, so that a study goes on where it was stopped, and the times of a move beside it. Where
other work runs beside it, --times none leaves those out, and --times again measures them later, in quiet. Budget paper
is the paper's scale; --plan shows what it needs.
"""

import dataclasses
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jax.sharding import Mesh
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import envs
from azjax.config import RunConfig, SearchConfig
from azjax.curves import COLORS, MARKERS, finite, tidy
from azjax.expansion import random_positions, rows, size
from azjax.players import MOST_PLIES, LoadedRun, Player, alphabeta_player, make_player, run_player
from azjax.presets import preset
from azjax.rating import PairResult, PlayerRating, fit_ratings, score_interval
from azjax.report import save_json, save_picture
from azjax.rundir import load_run
from azjax.scaling import seconds_a_move
from azjax.search import alphabeta_search, begin_search
from azjax.selfplay import network_model, search_policy
from azjax.step import make_mesh
from azjax.train import use_devices
from envs.core import Game
from experiments.ledger import Ledger
from experiments.paper_scale import plan_report, plan_text
from experiments.provenance import markdown, merged, publish, say, where
from experiments.trained import Stopped, trained

RESULTS = Path(__file__).parent / "results" / "figure_2"
SEARCHES = ("puct", "gumbel", "alphabeta")
TITLES = {"puct": "PUCT", "gumbel": "Gumbel", "alphabeta": "alpha-beta"}
POLICY = "policy"
GAMES = {
    "smoke": ("crosshair,size=4", "connect_four"),
    "full": ("crosshair", "connect_four"),
    "paper": ("chess", "shogi", "go_19x19"),
}
EVALUATIONS = {"smoke": (4, 8), "full": (25, 50, 100, 200, 400, 800), "paper": (100, 800, 6400, 51_200)}
OUTSIDE = {"smoke": "uct:8", "full": "uct:400", "paper": "uct:400"}
OPENING_PLIES = 4
"""Random plies: the searches draw nothing, and two plies of Connect Four have only 49 beginnings."""
SAMPLE = 64
"""Positions over which the evaluations that a move takes are averaged."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Rates one network under three searches."""

    budget: Literal["smoke", "full", "paper"] = "smoke"
    """smoke: small agents and few games; full: for two cores; paper: the paper's runs, for accelerators."""
    games: tuple[str, ...] = ()
    """Other games than the budget's."""
    evaluations: tuple[int, ...] = ()
    """Other numbers than the budget's."""
    match_games: int = 100
    """Of each two players."""
    times: Literal["missing", "again", "none"] = "missing"
    """Which times of a move to measure: those that are not known yet, all, or none."""
    runs: Path = Path("runs")
    """Where the runs are."""
    out: Path | None = None
    """Where the results go; budget smoke: into the first run, else experiments/results/figure_2."""
    plan: bool = False
    """Show what the paper's runs need, keep it for the results, and do nothing else."""


def configuration(budget: str, game: str) -> RunConfig:
    """Returns the run whose agent is searched."""
    if budget != "smoke":
        return preset("quick" if budget == "full" else "paper", game)
    config = preset("quick", game)
    return dataclasses.replace(
        config,
        preset="figure_2-smoke",
        steps=2,
        network=dataclasses.replace(config.network, width=16),
        search=SearchConfig(algorithm="gumbel", simulations=4, considered_actions=4),
        selfplay=dataclasses.replace(config.selfplay, lanes=16, plies=8),
        replay=dataclasses.replace(config.replay, plies=64),
        learner=dataclasses.replace(config.learner, batch=32, updates=2),
        evaluation=dataclasses.replace(config.evaluation, final_games=2, simulations=4, anchors=("random",)),
        checkpoint=dataclasses.replace(config.checkpoint, every=2, keep_every=2),
    )


def run_path(budget: str, runs: Path, game: str) -> Path:
    """Returns the run's directory; of the budget full that of `azjax train GAME`."""
    name = game.replace(",", "-").replace("=", "-")
    return runs / (f"{name}-quick" if budget == "full" else f"{name}-figure_2-{budget}")


def name_of(search: str, evaluations: int) -> str:
    """Returns a player's name."""
    return f"{search}, {evaluations}"


def make_players(game: Game, agent: LoadedRun, evaluations: tuple[int, ...], outside: str) -> dict[str, Player]:
    """Returns all players by name: the policy alone, the outside player, every search at every number."""
    players = {
        POLICY: run_player(game, agent, POLICY, {"search": "policy"}),
        outside: make_player(game, outside, load_run),
    }
    for number, search in itertools.product(evaluations, SEARCHES):
        name = name_of(search, number)
        if search == "alphabeta":
            players[name] = alphabeta_player(game, agent, name, number)
        else:
            players[name] = run_player(game, agent, name, {"search": search, "simulations": str(number)})
    return players


def pairings(evaluations: tuple[int, ...], outside: str) -> Iterator[tuple[str, str]]:
    """Yields who meets whom, cheap matches first: equal numbers of evaluations and neighbouring ones.

    The policy alone meets the lowest number, the outside player the two in the middle.
    """
    levels = [[name_of(search, number) for search in SEARCHES] for number in evaluations]
    yield from ((name, POLICY) for name in levels[0])
    for lower, level in itertools.pairwise([[], *levels]):
        yield from itertools.combinations(level, 2)
        yield from itertools.product(level, lower)
    for level in levels[max(0, len(levels) // 2 - 1) : len(levels) // 2 + 1]:
        yield from ((name, outside) for name in level)


def play(
    game: Game, players: dict[str, Player], pairs: list[tuple[str, str]], games: int, mesh: Mesh, kept: Path
) -> list[dict[str, Any]]:
    """Plays the matches that `kept` does not hold; returns {"a", "b", "games", "distinct", "results"}."""
    ledger, matches = Ledger(kept), []
    for a, b in pairs:
        row = ledger.play(game, a, b, players.__getitem__, games=games, mesh=mesh, seed=1, opening_plies=OPENING_PLIES)
        distinct = row["match"]["distinct"]
        matches.append({"a": a, "b": b, "games": games, "distinct": distinct, "results": row["pairs"]})
    return matches


def evaluations_a_move(game: Game, agent: LoadedRun, search: str, number: int) -> float:
    """Returns how many evaluations a move takes on average in positions of random games, without the root's.

    A terminal position costs none; alpha-beta ends early where a position is solved.
    """
    found = random_positions(game, 16, 0)
    states = rows(found.states, np.linspace(0, size(found.states) - 1, SAMPLE).astype(int))
    key = jax.random.key(0)

    @jax.jit
    def count(variables: Any, states: Any) -> jax.Array:
        if search == "alphabeta":
            model = network_model(agent.config, game)
            root, recurrent_fn, _, _ = begin_search(game, model, variables, key, states, agent.config.search.slots)
            return alphabeta_search(
                variables, key, root, recurrent_fn, number, min(game.max_plies, MOST_PLIES)
            ).evaluations
        policy = search_policy(agent.config, game, explore=False, simulations=number, algorithm=search)
        tree = policy(variables, key, states, jnp.zeros(())).search_tree
        # An edge to a terminal node has discount 0.
        return jnp.sum((tree.children_index >= 0) & (tree.children_discounts != 0), axis=(1, 2))

    return float(np.mean(np.asarray(count(agent.variables, states))))


def costs(
    game: Game, agent: LoadedRun, players: dict[str, Player], evaluations: tuple[int, ...], kept: Path, times: str
) -> dict[str, dict[str, float | None]]:
    """Returns {"seconds", "load", "evaluations"} of a move by the player's name; `load` was the machine's meanwhile.

    They are None where they are not known and `times` is "none".
    """
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() and times != "again" else {}
    for number, search in itertools.product(evaluations, SEARCHES):
        name = name_of(search, number)
        if name not in known and times == "none":
            known[name] = dict.fromkeys(("evaluations", "load", "seconds"))
        elif name not in known:
            made = evaluations_a_move(game, agent, search, number)
            load = os.getloadavg()[0]  # of the minute before: compiling is in it, so that idle is about 1
            known[name] = {"evaluations": round(made, 1), "load": round(load, 1)}
            known[name]["seconds"] = round(seconds_a_move(game, players[name]), 6)
            save_json(kept, known)
            say(f"{game.id}: {name}: {known[name]['seconds'] * 1000:.1f} ms a move, {made:.0f} evaluations")
    return known


def study(options: Options, word: str, agent: LoadedRun, evaluations: tuple[int, ...], folder: Path) -> dict[str, Any]:
    """Returns what is told of a game, with a row for each search and number of evaluations."""
    game, outside = envs.make(word), OUTSIDE[options.budget]
    players = make_players(game, agent, evaluations, outside)
    pairs = list(pairings(evaluations, outside))
    matches = play(game, players, pairs, options.match_games, make_mesh(0), folder / "figure_2.jsonl")
    taken = costs(game, agent, players, evaluations, folder / "figure_2_costs.json", options.times)
    results = [PairResult(**result) for match in matches for result in match["results"]]
    ratings = fit_ratings(results, anchors={POLICY: 0.0})
    rated = {player.name: player for player in ratings.players}
    found = []
    for search, number in itertools.product(SEARCHES, evaluations):
        name = name_of(search, number)
        found.append(
            {
                "search": search,
                "evaluations": number,
                "evaluations_made": taken[name]["evaluations"],
                "seconds_a_move": taken[name]["seconds"],
                "load": taken[name]["load"],
                **_rating_fields(rated[name]),
            }
        )
    return {
        "budget": options.budget,
        "preset": agent.config.preset,
        "step": agent.step,
        "outside": {"player": outside, **_rating_fields(rated[outside])},
        "advantage": round(ratings.advantage, 1),
        "games": sum(match["games"] for match in matches),
        "distinct": sum(match["distinct"] for match in matches),
        "at_equal_evaluations": equal_matches(matches, evaluations),
        "rows": found,
    }


def rows_of(games: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of all games."""
    return [{"game": word} | row for word, about in games.items() for row in about["rows"]]


def _rating_fields(rating: PlayerRating) -> dict[str, Any]:
    low, high = (finite(round(end, 1)) for end in rating.ci95)
    return {"elo": round(rating.elo, 1), "low": low, "high": high, "games": rating.games}


def equal_matches(matches: list[dict[str, Any]], evaluations: tuple[int, ...]) -> list[dict[str, Any]]:
    """Returns alpha-beta's opponents' scores against it, at equal numbers of evaluations."""
    found = []
    for search, number in itertools.product(SEARCHES, evaluations):
        for match in matches:
            if (match["a"], match["b"]) == (name_of(search, number), name_of("alphabeta", number)):
                counts = [0, 0, 0]
                for result in (PairResult(**row) for row in match["results"]):
                    ours = (result.wins, result.draws, result.losses)
                    counts = [
                        c + n for c, n in zip(counts, ours if result.a == match["a"] else ours[::-1], strict=True)
                    ]
                score, low, high = score_interval(*counts)
                ends = {"score": round(score, 4), "low": round(low, 4), "high": round(high, 4)}
                found.append({"search": search, "evaluations": number, "games": sum(counts), **ends})
    return found


def table(report: dict[str, Any]) -> str:
    """Returns Elo, time and direct matches of every game in Markdown."""
    parts = ["# One network under three searches\n"]
    for word, about in report["games"].items():
        those = {(row["search"], row["evaluations"]): row for row in about["rows"]}
        direct = {(row["search"], row["evaluations"]): row for row in about["at_equal_evaluations"]}
        numbers = sorted({number for _, number in those})
        lines = [["evaluations", *(f"{TITLES[search]}: Elo, ms a move" for search in SEARCHES)]]
        lines[0] += ["PUCT against alpha-beta", "Gumbel against alpha-beta"]
        lines.append(["---"] * len(lines[0]))
        for number in numbers:
            cells = [_cell(those[search, number]) for search in SEARCHES]
            scores = [direct[search, number] for search in SEARCHES[:2]]
            cells += [f"{row['score']:.0%} ({row['low']:.0%} to {row['high']:.0%})" for row in scores]
            lines.append([str(number), *cells])
        outside = about["outside"]
        loads = [row["load"] for row in those.values() if row["load"] is not None]
        timed = "Times were not measured."
        if loads:
            made = ", ".join(f"{TITLES[s]} {those[s, numbers[-1]]['evaluations_made']:.0f}" for s in SEARCHES)
            timed = (
                f"Of {numbers[-1]} evaluations a move in positions of random games took: {made}. Times: one game on one"
                f" device, load average of the machine {min(loads):.1f} to {max(loads):.1f} on {about['cores']} cores."
            )
        parts.append(
            f"## {word}\n\n"
            + markdown(lines)
            + f"\nElo with its 95 % interval, the policy alone at 0; {outside['player']} has {_elo(outside)}. Agent:"
            f" step {about['step']} of {about['preset']}. {about['games']:,} games, {about['distinct']:,}"
            f" distinct in their matches; moving first is worth {about['advantage']:+.0f} Elo. {timed}"
            f" {where([about])}, seed 1.\n"
        )
    parts.append("".join(f"{plan_text(plan)}\n" for plan in report["plans"]))
    return "\n".join(parts)


def _elo(row: dict[str, Any]) -> str:
    ends = "" if row["low"] is None or row["high"] is None else f" ({row['low']:.0f} to {row['high']:.0f})"
    return f"{row['elo']:.0f}{ends}"


def _cell(row: dict[str, Any]) -> str:
    seconds = row["seconds_a_move"]
    return _elo(row) if seconds is None else f"{_elo(row)}, {1000 * seconds:.2g} ms"


def draw(path: Path, report: dict[str, Any]) -> None:
    """Draws Elo against evaluations and against the time of a move, a row for each game."""
    words = list(report["games"])
    figure = Figure(figsize=(10, 4.2 * len(words)), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels = figure.subplots(len(words), 2, sharey="row", squeeze=False)
    for word, (left, right) in zip(words, panels, strict=True):
        rows = report["games"][word]["rows"]
        timed = any(row["seconds_a_move"] is not None for row in rows)
        for index, search in enumerate(SEARCHES):
            those = [row for row in rows if row["search"] == search]
            elo = np.array([row["elo"] for row in those])
            low, high = (
                np.array([e if row[end] is None else row[end] for row, e in zip(those, elo, strict=True)])
                for end in ("low", "high")
            )
            style = {"color": COLORS[index], "marker": MARKERS[index], "capsize": 3, "label": TITLES[search]}
            for axes, name in ((left, "evaluations"), (right, "seconds_a_move")):
                values = [np.nan if row[name] is None else row[name] for row in those]
                axes.errorbar(values, elo, (elo - low, high - elo), linewidth=1.5, **style)
        for axes, label in ((left, "evaluations a move, at most"), (right, "seconds a move")):
            axes.axhline(0, color="#444444", linestyle=":", linewidth=1.2)
            axes.set(xlabel=label, title=word)
            tidy(axes)
            if axes is left or timed:
                axes.set_xscale("log")
            else:
                axes.set(xlabel="seconds a move: not measured yet", xticks=[])
        numbers = sorted({row["evaluations"] for row in rows})
        left.set_xticks(numbers, [f"{number:,}" for number in numbers])
        left.minorticks_off()
        left.set(ylabel="Elo, the policy alone at 0")
        left.legend(loc="best", frameon=False, fontsize="small")
    save_picture(path, canvas)


def main(options: Options) -> int:
    """Trains (or goes on), plays, measures and writes; returns the exit status."""
    use_devices(0)
    words = options.games or GAMES[options.budget]
    plans = RESULTS / "plan.json"
    if options.plan:
        needs = [plan_report(configuration("paper", word)) for word in GAMES["paper"]]
        print("".join(f"{plan_text(plan)}\n" for plan in needs))
        plans.parent.mkdir(parents=True, exist_ok=True)
        save_json(plans, needs)
        return 0
    evaluations = options.evaluations or EVALUATIONS[options.budget]
    found = {}
    for word in words:
        config = configuration(options.budget, word)
        try:
            run = trained(config, run_path(options.budget, options.runs, word))
        except Stopped as stopped:
            return stopped.status
        agent = load_run(str(run.path), config.steps)
        found[word] = study(options, word, agent, evaluations, run.path)
    out = options.out or (
        run_path("smoke", options.runs, words[0]) / "results" if options.budget == "smoke" else RESULTS
    )
    games = merged(out, "games", found)
    report = {"games": games, "plans": json.loads(plans.read_text(encoding="utf-8")) if plans.is_file() else []}
    publish(out, report, rows_of(games), table(report), lambda path: draw(path, report))
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
