"""Evaluation of a run: the agent against its anchors while it trains; a rated tournament and a report at its end.

Ratings come from these games alone, never from the gate's.
"""

import dataclasses
import importlib.metadata
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jax.sharding import Mesh

from azjax.arena import Match, play_match
from azjax.checkpoint import Checkpoints
from azjax.config import RunConfig
from azjax.network import num_parameters
from azjax.opponents import any_player
from azjax.outside import AnyPlayer, OutsidePlayer
from azjax.players import LoadedRun, Player, run_player
from azjax.progress import Progress, count_of
from azjax.rating import Ratings, elo_difference, fit_ratings
from azjax.report import EloPoint, MatchRecord, RunSummary, elo_picture, ratings_table, write_ratings, write_report
from azjax.rundir import RunDirectory, load_run
from azjax.tournament import match_json, round_robin
from envs.core import Game
from envs.game_files import write_games


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluation:
    """An agent's matches against its anchors."""

    matches: tuple[Match, ...]
    rating: str  # for people: against the last anchor


def keep_games(run: RunDirectory, game: Game, match: Match) -> None:
    """Writes a match's games to games/A-vs-B.jsonl (and .sgf or .pgn); a match played again replaces the files."""
    if not run.writes:
        return
    run.games_path.mkdir(exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9.=_]+", "_", f"{match.a}-vs-{match.b}")
    write_games(run.games_path, name, game, match.records)


def agent_player(game: Game, agent: LoadedRun, name: str) -> Player:
    """Returns the agent as its evaluation plays it: `evaluation.simulations`, no noise."""
    return run_player(game, agent, name, {"simulations": str(agent.config.rated_simulations)})


def check_anchors(game: Game, config: RunConfig) -> None:
    """Builds every anchor once, so that a wrong word is refused before anything is compiled or trained.

    Raises:
      ValueError: a word names no player of this game, or its run cannot be read, or its engine does not start.
    """
    for word in config.evaluation.anchors:
        try:
            player = any_player(game, word, load_run)
        except ValueError as error:
            raise ValueError(f"evaluation.anchors: {error}") from None
        if isinstance(player, OutsidePlayer):
            player.close()


def rate_against_anchors(
    game: Game,
    agent: LoadedRun,
    mesh: Mesh,
    progress: Progress,
    run: RunDirectory,
    *,
    games: int,
    on_progress: Callable[[int, int], None],
) -> Evaluation:
    """Plays the agent against every anchor; the seed is the step, so that openings differ from one time to the next."""
    player = agent_player(game, agent, f"step {agent.step}")
    matches = []
    for word in agent.config.evaluation.anchors:
        progress.doing(f"playing {word}")
        match = play_match(
            game,
            player,
            any_player(game, word, load_run),
            games=games,
            mesh=mesh,
            seed=agent.step,
            opening_plies=agent.config.evaluation.opening_plies,
            on_progress=on_progress,
        )
        keep_games(run, game, match)
        matches.append(match)
    last = match_json(matches[-1])
    low, high = last["ci95"]
    rating = f"{last['score']:.0%} [{low:.0%}, {high:.0%}] against {matches[-1].b}"
    return Evaluation(matches=tuple(matches), rating=rating)


def finish_run(
    run: RunDirectory,
    config: RunConfig,
    game: Game,
    mesh: Mesh,
    checkpoints: Checkpoints,
    totals: Any,
    progress: Progress,
    on_progress: Callable[[int, int], None],
) -> None:
    """Rates checkpoints and anchors against one another; writes ratings.json, elo.png and, last, report.md."""
    steps = _spread(checkpoints.whole_steps(), config.evaluation.checkpoints)
    agents = [LoadedRun(config, load_run(str(run.path), step).variables, step) for step in steps]
    players = [agent_player(game, agent, f"step {agent.step}") for agent in agents]
    anchors = [any_player(game, word, load_run) for word in config.evaluation.anchors]

    def show(match: Match) -> None:
        keep_games(run, game, match)
        progress.say(
            f"{match.a} against {match.b}: {match.wins} won, {match.draws} drawn, {match.losses} lost of "
            f"{match.games} ({match.distinct} distinct), {match.seconds:.0f} s"
        )

    progress.say(
        f"rating {count_of(len(players), 'checkpoint')} at {config.rated_simulations} simulations, "
        f"{', '.join(config.evaluation.anchors)}: {config.evaluation.final_games} games a pair"
    )
    everyone: list[AnyPlayer] = [*players[::-1], *anchors]
    matches, results = round_robin(
        game,
        everyone,
        games=config.evaluation.final_games,
        mesh=mesh,
        seed=config.seed,
        opening_plies=config.evaluation.opening_plies,
        on_match=show,
        on_progress=on_progress,
    )
    if not run.writes:
        return
    ratings = fit_ratings(results, anchors={config.evaluation.anchors[0]: 0.0})
    write_ratings(run.ratings_path, ratings)
    _draw(run, config, ratings)
    with open(run.metrics_path, "a", encoding="utf-8") as log:
        for match in matches:
            log.write(json.dumps({"step": steps[-1], "evaluation": match_json(match), "final": True}) + "\n")
    records = [
        MatchRecord(a=m.a, b=m.b, wins=m.wins, draws=m.draws, losses=m.losses, distinct=m.distinct) for m in matches
    ]
    write_report(
        run.report_path,
        _summary(run, config, mesh, agents[-1], totals),
        ratings=ratings,
        matches=records,
        picture="elo.png",
    )
    progress.table(ratings_table(ratings))
    _say_what_next(run, config, matches, progress)


def _spread(steps: Sequence[int], number: int) -> list[int]:
    """Returns `number` of the steps, evenly spread, the newest among them."""
    if number >= len(steps):
        return list(steps)
    return sorted({steps[round((i + 1) * len(steps) / number) - 1] for i in range(number)})


def _draw(run: RunDirectory, config: RunConfig, ratings: Ratings) -> None:
    """Draws elo.png: the rated checkpoints, and evaluations during the run by their score against the last anchor."""
    by_name = {player.name: player for player in ratings.players}
    anchors = {word: by_name[word].elo for word in config.evaluation.anchors}
    rated = {int(n.removeprefix("step ")): (p.elo, *p.ci95) for n, p in by_name.items() if n.startswith("step ")}
    during: dict[int, tuple[float, float, float]] = {}
    last = config.evaluation.anchors[-1]
    for row in run.rows():
        match = row.get("evaluation")
        if match and match["b"] == last and match["a"] == f"step {row['step']}":
            scores = (min(max(share, 1e-3), 1 - 1e-3) for share in (match["score"], *match["ci95"]))
            elo, low, high = (anchors[last] + elo_difference(score) for score in scores)
            during[row["step"]] = (elo, low, high)
    title = f"{config.game}, {config.preset}: Elo over self-play games"
    elo_picture(run.picture_path, training_points(run, during | rated), anchors, title)


def training_points(run: RunDirectory, elo_of: Mapping[int, tuple[float, float, float]]) -> list[EloPoint]:
    """Returns a point for each step of a run that has a rating, with what training had taken by then.

    Args:
      run: whose log is read.
      elo_of: step -> Elo and the ends of its interval.
    """
    taken = {row["step"]: row for row in run.rows() if "games" in row}
    nothing = {"games": 0, "seconds": 0.0, "simulations": 0, "plies": 0}
    points = []
    for step in sorted(elo_of):
        row, (elo, low, high) = taken.get(step, nothing), elo_of[step]
        points.append(
            EloPoint(
                step=step,
                games=row["games"],
                seconds=row["seconds"],
                evaluations=row["simulations"] + row["plies"],
                elo=elo,
                lo=low,
                hi=high,
            )
        )
    return points


def _summary(run: RunDirectory, config: RunConfig, mesh: Mesh, agent: LoadedRun, totals: Any) -> RunSummary:
    versions = {name: importlib.metadata.version(name) for name in ("azjax", "jax", "flax", "orbax-checkpoint")}
    return RunSummary(
        run=str(run.path),
        game=config.game,
        preset=config.preset,
        parameters=num_parameters(agent.variables),
        device=f"{mesh.size} x {mesh.devices.flat[0].device_kind}",
        versions=versions,
        steps=agent.step,
        updates=totals.updates,
        games=totals.games,
        plies=totals.plies,
        simulations=totals.simulations,
        selfplay_seconds=totals.selfplay_seconds,
        learning_seconds=totals.learning_seconds,
        evaluation_seconds=totals.evaluation_seconds,
        evaluation_simulations=config.rated_simulations,
        seconds=totals.seconds + totals.evaluation_seconds,
        commands=next_commands(run, config),
    )


def next_commands(run: RunDirectory, config: RunConfig) -> dict[str, str]:
    """Returns what a user may want to do with a finished run: purpose -> command line."""
    return {
        "play against it": f"azjax play {config.game} --run {run.path}",
        "measure it": f"azjax match {config.game} run:{run.path},simulations=400 uct:400 --games 200",
        "watch its losses (pip install tensorboard)": f"tensorboard --logdir {run.tensorboard_path}",
    }


def _say_what_next(run: RunDirectory, config: RunConfig, matches: Sequence[Match], progress: Progress) -> None:
    progress.say(f"wrote {run.report_path}, {run.ratings_path} and {run.picture_path}")
    for purpose, command in next_commands(run, config).items():
        progress.say(f"{purpose}: {command}")
