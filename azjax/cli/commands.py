"""What each command does. JAX is imported when a command needs it, after its words were found right."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import envs
from azjax.cli.options import Analyze, Bench, Games, Match, Plan, Play, Rate, Serve, Train
from azjax.cli.parse import CommandLine
from azjax.cli.runs import default_directory, game_word, plan, train

if TYPE_CHECKING:
    from jax.sharding import Mesh

    from azjax.arena import Match as Result
    from azjax.players import Player
    from azjax.sprt import Sprt
    from envs.core import Game
    from envs.record import GameRecord

PROGRESS_SECONDS = 5.0
ANCHORS = ("random", "uct:400")
"""Who a run's checkpoints are rated against; the first has rating 0."""


def run(line: CommandLine) -> int:
    """Runs a command and returns the exit status."""
    match line.command:
        case Games() as options:
            return list_games(options)
        case Train() as options:
            return train(options, line.settings, line.words)
        case Plan() as options:
            return plan(options, line.settings)
        case Match() as options:
            return match_players(options)
        case Rate() as options:
            return rate(options)
        case Play() as options:
            return play(options)
        case Serve() as options:
            return serve(options)
        case Analyze() as options:
            return analyze(options)
        case Bench() as options:
            return bench(options)


def list_games(options: Games) -> int:
    """azjax games."""
    if options.game is None:
        names = envs.available()
        print(json.dumps({"games": names}) if options.json else "\n".join(names))
        return 0
    from envs.core import state_bytes

    game = envs.make(options.game)
    facts = {
        "game": game.id,
        "actions": game.num_actions,
        "max_legal_actions": game.max_legal_actions,
        "max_plies": game.max_plies,
        "observation_shape": list(game.observation_shape),
        "symmetries": len(game.symmetries),
        "has_chance": game.has_chance,
        "state_bytes": state_bytes(game),
    }
    if options.json:
        print(json.dumps(facts))
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")
    return 0


def match_players(options: Match) -> int:
    """azjax match."""
    game, mesh = _start(options.game)
    from azjax.arena import play_match
    from azjax.sprt import Sprt
    from azjax.tournament import match_json, match_pairs, sequential_match
    from envs.game_files import write_games

    a, b = _players(game, (options.a, options.b))
    shared: dict[str, Any] = {
        "games": options.games,
        "mesh": mesh,
        "seed": options.seed,
        "opening_plies": options.opening_plies,
        "lanes": options.lanes,
    }
    summary: dict[str, Any] = {}
    if options.sprt is None:
        result = play_match(game, a, b, **shared, on_progress=_Progress(f"{options.a} against {options.b}"))
    else:
        sprt = Sprt(elo0=options.elos()[0], elo1=options.elos()[1])
        result = sequential_match(game, a, b, sprt, **shared, on_round=lambda match: _tell_sprt(sprt, match))
        summary = {"sprt": sprt.to_json(match_pairs(result))}
    summary = match_json(result) | {"seed": options.seed, "opening_plies": options.opening_plies} | summary
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "match.json").write_text(json.dumps(summary) + "\n", encoding="utf-8")
        write_games(options.out, "games", game, result.records)
    print(json.dumps(summary) if options.json else _match_line(result))
    return 0


def rate(options: Rate) -> int:
    """azjax rate."""
    game, mesh = _start(options.game)
    from rich.console import Console

    from azjax.rating import fit_ratings
    from azjax.report import ratings_picture, ratings_table, write_ratings
    from azjax.tournament import pair_results, round_robin

    if options.files:
        results, what = pair_results(_stored_games(game, options.files)), "stored games"
        if not results:
            raise ValueError("--games: got no finished game in these files, expected at least one")
    else:
        what = f"{options.games_a_pair} games a pair"
        _, results = round_robin(
            game,
            _players(game, _rated_words(options)),
            games=options.games_a_pair,
            mesh=mesh,
            seed=options.seed,
            opening_plies=options.opening_plies,
            lanes=options.lanes,
            on_match=lambda result: print(_match_line(result), file=sys.stderr, flush=True),
        )
    anchored = any(ANCHORS[0] in (result.a, result.b) for result in results)
    ratings = fit_ratings(results, anchors={ANCHORS[0]: 0.0} if anchored else {})
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write_ratings(options.out / "ratings.json", ratings)
        ratings_picture(options.out / "elo.png", ratings, f"{game.id}, {what}")
    if options.json:
        print(json.dumps(ratings.to_json()))
    else:
        Console(soft_wrap=not sys.stdout.isatty()).print(ratings_table(ratings))
    return 0


def play(options: Play) -> int:
    """azjax play."""
    game, _ = _start(options.game)
    from azjax.play import play_in_terminal
    from envs.game_files import check_format, formats_of

    if options.record is not None:
        check_format(options.record, formats_of(game))
    run = options.run or default_directory(game_word(options.game, game), "quick")
    word = options.opponent or f"run:{run}"
    if options.simulations is not None:
        if options.opponent is not None and not options.opponent.startswith("run:"):
            raise ValueError(f"--simulations: got it for the player {options.opponent}, expected it for a run")
        word = f"{word},simulations={options.simulations}"
    (opponent,) = _players(game, (word,))
    seat = 0 if options.seat == "first" else 1
    return play_in_terminal(game, opponent, seat=seat, seed=options.seed, record=options.record)


def serve(options: Serve) -> int:
    """azjax serve."""
    from azjax.cli.serve import serve

    return serve(options)


def analyze(options: Analyze) -> int:
    """azjax analyze."""
    game, _ = _start(options.game)
    from azjax.cli.analyze import look

    return look(options, game, _Progress("analysis", "plies"))


def bench(options: Bench) -> int:
    """azjax bench."""
    game, _ = _start(options.game)
    from rich.console import Console

    from azjax.bench import bench_games, bench_search, bench_selfplay, bench_table, programs_table
    from azjax.rundir import load_run

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    report: dict[str, Any] = {"rows": []}
    for case in dict.fromkeys(options.cases):
        if case == "games":
            part = bench_games(options.games, say)
        elif case == "search":
            part = bench_search(say)
        else:
            part = bench_selfplay(
                game,
                None if options.run is None else load_run(str(options.run), None),
                lanes=options.lanes,
                simulations=options.simulations,
                seconds=options.seconds,
                say=say,
            )
        report |= part | {"rows": report["rows"] + part["rows"]}
    if options.json:
        print(json.dumps(report))
    else:
        console = Console(soft_wrap=not sys.stdout.isatty())
        console.print(bench_table(report))
        if "programs" in report:
            console.print(programs_table(report["programs"]))
    return 0


def _start(word: str) -> "tuple[Game, Mesh]":
    """Returns the game, and a mesh over all devices."""
    game = envs.make(word)
    from azjax.step import make_mesh
    from azjax.train import use_devices

    use_devices(0)
    return game, make_mesh(0)


def _players(game: "Game", words: Sequence[str]) -> "list[Player]":
    from azjax.players import make_player, parse_player
    from azjax.rundir import load_run

    for word in words:
        parse_player(word)
    return [make_player(game, word, load_run) for word in words]


def _stored_games(game: "Game", files: Sequence[Path]) -> "list[GameRecord]":
    """Reads and checks games; says how many of them are not finished."""
    from envs.game_files import read_games
    from envs.playback import check_records

    records = []
    for path in files:
        part = read_games(path)
        # A result may be one that people agreed on, or given up for.
        check_records(game, part, [f"{path}: game {number}" for number in range(1, len(part) + 1)], results=False)
        records += part
    if unfinished := sum(record.returns is None for record in records):
        print(f"{unfinished} of {len(records)} games are not finished and do not count", file=sys.stderr)
    return records


def _rated_words(options: Rate) -> list[str]:
    """Returns the players to rate: of a run, its checkpoints."""
    words = list(options.players)
    if options.run is None:
        return words
    from azjax.checkpoint import Checkpoints
    from azjax.rundir import RunDirectory

    directory = RunDirectory(options.run)
    directory.read_config()
    steps = Checkpoints(directory.checkpoints_path).saved_steps()
    if not steps:
        raise ValueError(f"run: {options.run} has no checkpoint, expected at least one")
    agents = [f"run:{options.run}@{step}" for step in steps]
    return [*(word for word in ANCHORS if word not in words), *words, *agents]


def _tell_sprt(sprt: "Sprt", match: "Result") -> None:
    from azjax.tournament import match_pairs

    pairs, (lower, upper) = match_pairs(match), sprt.bounds
    verdict = {"H0": f"{sprt.elo0:g} Elo", "H1": f"{sprt.elo1:g} Elo", None: "undecided"}[sprt.accepted(pairs)]
    print(
        f"{match.games} games: log-likelihood ratio {sprt.llr(pairs):.2f} of {lower:.2f} to {upper:.2f}, {verdict}",
        file=sys.stderr,
        flush=True,
    )


def _match_line(result: "Result") -> str:
    from azjax.rating import score_interval

    score, lo, hi = score_interval(result.wins, result.draws, result.losses)
    return (
        f"{result.a} against {result.b}: {result.wins} won, {result.draws} drawn, {result.losses} lost"
        f" of {result.games} ({result.distinct} distinct); score {100 * score:.1f} %,"
        f" 95 % interval {100 * lo:.1f} to {100 * hi:.1f} %; {result.seconds:.1f} s"
    )


class _Progress:
    """Tells on stderr how many games (or what else) are done, every few seconds."""

    def __init__(self, what: str, unit: str = "games"):
        self._what, self._unit, self._last = what, unit, time.monotonic()

    def __call__(self, done: int, games: int) -> None:
        now = time.monotonic()
        if now - self._last >= PROGRESS_SECONDS:
            self._last = now
            print(f"{self._what}: {done} of {games} {self._unit}", file=sys.stderr, flush=True)
