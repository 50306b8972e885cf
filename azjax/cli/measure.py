"""azjax match and azjax rate."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from azjax.arena import Match as Result
from azjax.arena import play_match
from azjax.checkpoint import Checkpoints
from azjax.cli.start import Telling, players_of, start
from azjax.cli.strength import Match, Rate
from azjax.curves import write_training
from azjax.evaluation import training_points
from azjax.openings import read_openings
from azjax.players import check_run_game
from azjax.rating import Ratings, fit_ratings, score_interval
from azjax.report import elo_picture, head_to_head_table, ratings_picture, ratings_table, write_ratings
from azjax.rundir import RunDirectory
from azjax.scaling import at_simulations, scaling_points, write_scaling
from azjax.sprt import Sprt
from azjax.tournament import given_up, match_json, match_pairs, pair_results, round_robin, sequential_match
from envs.core import Game
from envs.game_files import read_games, write_games
from envs.playback import check_records
from envs.record import GameRecord

LANES = 512
"""Games side by side."""
ROUND = 64
"""Games between two looks of a sequential test: it stops at a look."""
ANCHORS = ("random", "uct:400")
"""Who a run's checkpoints are rated against; the first has rating 0."""


def match_players(options: Match) -> int:
    """azjax match."""
    game, mesh = start(options.game)
    a, b = players_of(game, (options.a, options.b))
    shared: dict[str, Any] = {
        "games": options.games,
        "mesh": mesh,
        "seed": options.seed,
        "lanes": options.lanes or (ROUND if options.elos else LANES),
        **_openings(game, options),
    }
    summary: dict[str, Any] = {}
    if options.elos is None:
        result = play_match(game, a, b, **shared, on_progress=Telling(f"{options.a} against {options.b}"))
    else:
        sprt = Sprt(elo0=options.elos[0], elo1=options.elos[1])
        result = sequential_match(
            game,
            a,
            b,
            sprt,
            **shared,
            on_round=lambda match: print(_sprt_line(sprt, match), file=sys.stderr, flush=True),
        )
        summary = {"sprt": sprt.to_json(match_pairs(result))}
    opened = {"openings": str(options.openings)} if options.openings else {"opening_plies": shared["opening_plies"]}
    if result.distinct <= result.games / 2:
        print(
            f"only {result.distinct} of {result.games} games differ, and intervals take all of them for evidence of"
            " their own: give more openings, longer random ones (--opening-plies), or a player that draws its moves",
            file=sys.stderr,
        )
    summary = match_json(result) | {"seed": options.seed} | opened | summary
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "match.json").write_text(json.dumps(summary) + "\n", encoding="utf-8")
        write_games(options.out, "games", game, result.records)
    print(json.dumps(summary) if options.json else _match_line(result))
    if options.elos and not options.json:
        print(_sprt_line(Sprt(elo0=options.elos[0], elo1=options.elos[1]), result))
    return 0


def rate(options: Rate) -> int:
    """azjax rate."""
    run = None if options.run is None else RunDirectory(options.run)
    stored = [(path, read_games(path)) for path in options.files]
    game, mesh = start(options.game or _game_of(run, stored))
    scaled, players = [], []
    if stored:
        results, what = pair_results(_checked_games(game, stored)), "stored games"
        if not results:
            raise ValueError("--games: got no finished game in these files, expected at least one")
    else:
        what = f"{options.games_a_pair} games a pair"
        words = list(options.players) if run is None else _rated_words(game, run, options.players)
        scaled = at_simulations(words, options.simulations)
        if scaled:
            kept = [word for word in words if not at_simulations([word], options.simulations)]
            words = list(dict.fromkeys([*kept, *(one.word for one in scaled)]))
        players = players_of(game, words)
        _, results = round_robin(
            game,
            players,
            games=options.games_a_pair,
            mesh=mesh,
            seed=options.seed,
            lanes=options.lanes or LANES,
            **_openings(game, options),
            on_match=lambda result: print(_match_line(result), file=sys.stderr, flush=True),
        )
    names = {name for result in results for name in (result.a, result.b)}
    for name in options.anchor_elos:
        if name not in names:
            raise ValueError(f"--anchors: got {name}, which played no game; expected one of {', '.join(sorted(names))}")
    anchors = options.anchor_elos or ({ANCHORS[0]: 0.0} if ANCHORS[0] in names else {})
    ratings = fit_ratings(results, anchors=anchors, prior_draws=options.prior_draws)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write_ratings(options.out / "ratings.json", ratings)
        _draw(options.out, ratings, f"{game.id}, {what}", run)
        if scaled:
            write_scaling(options.out, scaling_points(game, scaled, players, ratings), f"{game.id}, {what}")
    if options.json:
        print(json.dumps(ratings.to_json()))
    else:
        console = Console(soft_wrap=not sys.stdout.isatty())
        console.print(ratings_table(ratings))
        console.print(head_to_head_table(ratings))
    return 0


def _openings(game: Game, options: Match | Rate) -> dict[str, Any]:
    """Returns what `play_match` is told of openings."""
    if options.openings is not None:
        return {"openings": read_openings(game, options.openings)}
    return {"opening_plies": 2 if options.opening_plies is None else options.opening_plies}


def _game_of(run: RunDirectory | None, stored: Sequence[tuple[Path, list[GameRecord]]]) -> str:
    """Returns the game that a run or recorded games are of.

    Raises:
      ValueError: there is none, or a game of one's own: whose code is run must stand in the command.
    """
    if run is not None:
        word, where = run.read_config().game, f"--run {run.path}"
    else:
        path, records = next(((path, records) for path, records in stored if records), (None, []))
        if not records:
            raise ValueError("--games: got no game in these files, expected at least one")
        word, where = records[0].game, f"--games {path}"
    if ":" in word and not word.startswith("pgx:"):
        raise ValueError(f"{where}: got {word}, which runs code: say azjax rate {word} ... if you trust it")
    return word


def _draw(out: Path, ratings: Ratings, title: str, run: RunDirectory | None) -> None:
    """Draws every player's interval; of a run its checkpoints over the training, the others as lines."""
    if run is None:
        ratings_picture(out / "elo.png", ratings, title)
        return
    prefix = _checkpoint_name(run, "")
    rated = {p.name.removeprefix(prefix): (p.elo, *p.ci95) for p in ratings.players if p.name.startswith(prefix)}
    points = training_points(run, {int(step): interval for step, interval in rated.items() if step.isdigit()})
    others = {player.name: player.elo for player in ratings.players if not player.name.startswith(prefix)}
    elo_picture(out / "elo.png", points, others, title)
    write_training(out, points, others, title)


def _checkpoint_name(run: RunDirectory, step: int | str) -> str:
    return f"run:{run.path}@{step}"


def _checked_games(game: Game, stored: Sequence[tuple[Path, list[GameRecord]]]) -> list[GameRecord]:
    """Checks games by playing them again; leaves out those of one name on both sides; says what does not count."""
    records = []
    for path, part in stored:
        # A result may be one that people agreed on, or given up for.
        check_records(game, part, [f"{path}: game {number}" for number in range(1, len(part) + 1)], results=False)
        records += part
    if unfinished := sum(record.returns is None for record in records):
        print(f"{unfinished} of {len(records)} games are not finished and do not count", file=sys.stderr)
    rated = [record for record in records if record.players[0] != record.players[1]]
    if same := len(records) - len(rated):
        print(f"{same} of {len(records)} games have one name on both sides and do not count", file=sys.stderr)
    return rated


def _rated_words(game: Game, run: RunDirectory, others: Sequence[str]) -> list[str]:
    """Returns the players to rate: a run's checkpoints, the anchors and `others`."""
    check_run_game(run.read_config(), game, f"--run {run.path}")
    steps = Checkpoints(run.checkpoints_path).whole_steps()
    if not steps:
        raise ValueError(f"run: {run.path} has no checkpoint, expected at least one")
    agents = [_checkpoint_name(run, step) for step in steps]
    return [*(word for word in ANCHORS if word not in others), *others, *agents]


def _sprt_line(sprt: Sprt, match: Result) -> str:
    pairs, (lower, upper) = match_pairs(match), sprt.bounds
    verdict = {"H0": f"{sprt.elo0:g} Elo", "H1": f"{sprt.elo1:g} Elo", None: "undecided"}[sprt.accepted(pairs)]
    return f"{match.games} games: log-likelihood ratio {sprt.llr(pairs):.2f} of {lower:.2f} to {upper:.2f}, {verdict}"


def _match_line(result: Result) -> str:
    score, lo, hi = score_interval(result.wins, result.draws, result.losses)
    return (
        f"{result.a} against {result.b}: {result.wins} won, {result.draws} drawn, {result.losses} lost"
        f" of {result.games} ({result.distinct} distinct); score {100 * score:.1f} %,"
        f" 95 % interval {100 * lo:.1f} to {100 * hi:.1f} %; {result.seconds:.1f} s"
    ) + "".join(f"; {row['player']} {row['reason']} in {row['games']}" for row in given_up(result.records))
