"""Where do agents that two cores train in minutes stand among the world's engines?

    python -m experiments.ladders [--budget smoke|minutes] [--games go,size=7 chess shogi] [--match-games 20]

For each game an agent is trained (or gone on with), and plays random moves, plain rollouts and engines at several of
their strengths. The engines play one another too: their distances are the ladder's own and hold for any agent that is
put beside them. The weakest engine has Elo 0; every pair plays both seats of openings of two random plies.

Runs and matches are kept under --runs, so that an experiment that was stopped goes on.
"""

import dataclasses
import itertools
import sys
from pathlib import Path
from typing import Any, Literal

import tyro

import envs
from azjax.config import CheckpointConfig, EvaluationConfig, NetworkConfig, ReplayConfig, RunConfig
from azjax.evaluation import agent_player
from azjax.opponents import any_player
from azjax.outside import AnyPlayer
from azjax.presets import preset
from azjax.rating import fit_ratings
from azjax.rundir import load_run
from azjax.step import make_mesh
from azjax.train import use_devices
from envs.core import Game
from experiments.ledger import Ledger, Roster, results
from experiments.provenance import markdown, merged, provenance, say, where, write_results
from experiments.trained import Stopped, slug, trained

RESULTS = Path(__file__).parent / "results" / "ladders"
LADDERS: dict[str, tuple[str, ...]] = {
    "go,size=5": ("gtp:gnugo,level=0", "random", "uct:8"),
    "go,size=7": ("gtp:gnugo,level=0", "gtp:gnugo,level=10", "random", "uct:100", "uct:400"),
    "chess": (
        "uci:stockfish,skill=0,nodes=10",
        "uci:stockfish,skill=0,nodes=100",
        "uci:stockfish,skill=5,nodes=100",
        "random",
    ),
    "shogi": (
        "usi:fairy-stockfish,skill=-20,nodes=100",
        "usi:fairy-stockfish,skill=-10,nodes=100",
        "usi:fairy-stockfish,skill=0,nodes=100",
        "random",
    ),
}
"""Every game's players besides the agent; the first has Elo 0."""
GAMES = {"smoke": ("go,size=5",), "minutes": ("go,size=7", "chess", "shogi")}
STEPS = {"smoke": {"go,size=5": 2}, "minutes": {"go,size=7": 300, "chess": 300, "shogi": 150}}
SIMULATIONS = {"smoke": 8, "minutes": 64}
"""Of the agent's moves."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Rates small agents beside engines."""

    budget: Literal["smoke", "minutes"] = "smoke"
    """smoke: Go on 5 x 5 with hardly any training; minutes: a few minutes of training on two cores for each game."""
    games: tuple[str, ...] = ()
    """Some of the games in place of all."""
    match_games: int = 20
    """Of each pair."""
    seed: int = 0
    runs: Path = Path("runs")
    """Where the runs are."""
    out: Path | None = None
    """Where the results go; experiments/results/ladders, of budget smoke beside the runs."""


def configuration(game: Game, word: str, budget: str, seed: int) -> RunConfig:
    """Returns a game's training: the preset `smoke`, longer, and without its limit on the length of games."""
    config, steps = preset("smoke", word, game.max_plies), STEPS[budget][word]
    if word.startswith("go"):
        config = dataclasses.replace(config, network=NetworkConfig(kind="equivariant_mlp", width=64))
    return dataclasses.replace(
        config,
        game=word,
        seed=seed,
        steps=steps,
        replay=ReplayConfig(plies=game.max_plies + 1),
        evaluation=EvaluationConfig(final_games=2, checkpoints=1, anchors=("random",), simulations=SIMULATIONS[budget]),
        checkpoint=CheckpointConfig(every=max(1, steps // 4), keep=1, keep_every=steps),
    )


def measure(options: Options, word: str) -> dict[str, Any]:
    """Trains a game's agent (or goes on) and plays the ladder.

    Raises:
      Stopped: a signal stopped the training.
    """
    game, others = envs.make(word), LADDERS[word]
    folder = options.runs / f"ladders-{options.budget}-{options.seed}" / slug(word)
    run = trained(configuration(game, word, options.budget, options.seed), folder / "run")
    agent = load_run(str(run.path), None)
    name = f"azjax, {agent.step} steps, {SIMULATIONS[options.budget]} simulations"

    def make(player: str) -> AnyPlayer:
        return agent_player(game, agent, name) if player == name else any_player(game, player, load_run)

    ledger, mesh = Ledger(folder / "matches.jsonl"), make_mesh(0)
    pairs = [*itertools.product([name], others), *itertools.combinations(others, 2)]
    with Roster(make) as roster:
        rows = [
            ledger.play(game, a, b, roster, games=options.match_games, mesh=mesh, seed=options.seed) for a, b in pairs
        ]
    ratings = fit_ratings(results(rows), anchors={others[0]: 0.0})
    return {
        "game": word,
        "agent": name,
        **provenance(),
        "seed": options.seed,
        "games_a_pair": options.match_games,
        "ratings": ratings.to_json(),
        "matches": [row["match"] for row in rows],
    }


def rows_of(games: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row for each player of each game."""
    return [
        {"game": name, "player": player["name"], "elo": player["elo"], "lo": player["ci95"][0], "hi": player["ci95"][1]}
        | {"games": player["games"], "score": round(player["score"], 4)}
        for name, report in games.items()
        for player in report["ratings"]["players"]
    ]


def table(games: dict[str, dict[str, Any]]) -> str:
    """Returns each game's ladder, the strongest first, with what the agent scored against each."""
    text = (
        "# Ladders\n\nElo is relative to the weakest engine of the same game, so numbers of two games do not compare.\n"
    )
    for name, report in games.items():
        against = {match["b"]: match for match in report["matches"] if match["a"] == report["agent"]}
        lines = [["player", "Elo", "95 %", "games", "the agent's score against it"], ["---"] * 5]
        for player in report["ratings"]["players"]:
            low, high = player["ci95"]
            met = against.get(player["name"])
            ends = "" if low == high else f"{low:+.0f} to {high:+.0f}" if None not in (low, high) else "not bounded"
            who = f"`{player['name']}`" if met else f"**{player['name']}**"
            score = f"{met['score']:.1%}" if met else ""
            lines.append([who, f"{player['elo']:+.0f}", ends, str(player["games"]), score])
        lost = sum(row["games"] for match in report["matches"] for row in match["given_up"])
        text += (
            f"\n## {name}\n\n{markdown(lines)}\n{report['games_a_pair']} games a pair, {lost} resigned or forfeited."
        )
        text += f" {where([report])}.\n"
    return text


def main(options: Options) -> int:
    """Trains (or goes on), plays and writes game by game; returns the exit status."""
    use_devices(0)
    smoke = options.budget == "smoke"
    out = options.out or (options.runs / "ladders-smoke-results" if smoke else RESULTS)
    known = GAMES[options.budget]
    for word in options.games:
        if word not in known:
            raise ValueError(f"--games: got {word}, expected some of {' '.join(known)}")
    for word in options.games or known:
        say(f"{word}:")
        try:
            report = measure(options, word)
        except Stopped as stopped:
            return stopped.status
        games = merged(out, "games", {word: report})
        write_results(out, {"games": games}, rows_of(games), table(games))
    print((out / "results.md").read_text(encoding="utf-8"))
    say(f"wrote {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
