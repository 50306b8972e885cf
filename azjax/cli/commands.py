"""What each command does. JAX is imported when a command needs it, after its words were found right."""

import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import envs
from azjax.cli.options import Analyze, Bench, Engine, Export, Games, Match, Plan, Play, Rate, Serve, Train
from azjax.cli.parse import CommandLine
from azjax.cli.runs import default_directory, game_word, plan, train

if TYPE_CHECKING:
    from envs.core import Game

SHIPPED_SIMULATIONS = 400
"""Of an agent that comes with azjax, where nothing was said: those it was rated with."""


def run(line: CommandLine) -> int:
    """Runs a command and returns the exit status."""
    if isinstance(word := getattr(line.command, "game", None), str):
        _check_name(word)
    match line.command:
        case Games() as options:
            from azjax.cli.games import list_games

            return list_games(options)
        case Train() as options:
            return train(options, line.settings, line.words)
        case Plan() as options:
            return plan(options, line.settings)
        case Match() as options:
            from azjax.cli.measure import match_players

            return match_players(options)
        case Rate() as options:
            from azjax.cli.measure import rate

            return rate(options)
        case Play() as options:
            return play(options)
        case Serve() as options:
            return serve(options)
        case Analyze() as options:
            return analyze(options)
        case Bench() as options:
            return bench(options)
        case Engine() as options:
            return engine(options)
        case Export() as options:
            return export(options)


def play(options: Play) -> int:
    """azjax play."""
    from azjax.cli.start import players_of, start
    from azjax.play import play_in_terminal
    from envs.game_files import check_format, formats_of

    game, _ = start(options.game)
    if options.record is not None:
        check_format(options.record, formats_of(game))
    word = options.opponent or _default_opponent(options, game)
    if options.simulations is not None:
        if not word.startswith(("run:", "agent:")):
            raise ValueError(f"--simulations: got it for the player {word}, expected it for a run or an agent")
        word = f"{word},simulations={options.simulations}"
    elif options.opponent is None and word.startswith("agent:"):
        word = f"{word},simulations={SHIPPED_SIMULATIONS}"
    (opponent,) = players_of(game, (word,))
    seat = 0 if options.seat == "first" else 1
    return play_in_terminal(game, opponent, seat=seat, seed=options.seed, record=options.record)


def _default_opponent(options: Play, game: "Game") -> str:
    """Returns the player's word where none was given: the run, else the agent that comes with azjax.

    Raises:
      ValueError: there is neither.
    """
    from azjax.agents.shipped import shipped_for

    run = options.run or default_directory(game_word(options.game, game), "quick")
    if options.run is not None or (run / "config.json").is_file():
        return f"run:{run}"
    if name := shipped_for(game):
        return f"agent:{name}"
    raise ValueError(
        f"play: got no --run, there is no {run}, and no agent of {game.id} comes with azjax; "
        f"expected --opponent uct:400, or azjax train {options.game} before"
    )


def serve(options: Serve) -> int:
    """azjax serve."""
    from azjax.cli.serve import serve

    return serve(options)


def analyze(options: Analyze) -> int:
    """azjax analyze."""
    from azjax.cli.analyze import look
    from azjax.cli.start import Telling, start

    game, mesh = start(options.game)
    return look(options, game, mesh, Telling("analysis", "done"))


def engine(options: Engine) -> NoReturn:
    """azjax engine."""
    from azjax.cli.engine import speak

    speak(options)


def export(options: Export) -> int:
    """azjax export."""
    from azjax.cli.export import export_run

    return export_run(options)


def bench(options: Bench) -> int:
    """azjax bench."""
    from rich.console import Console

    from azjax.bench import bench_games, bench_search, bench_selfplay, bench_table, bench_train, programs_table
    from azjax.cli.start import start
    from azjax.rundir import load_run

    game, _ = start(options.game)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    run = None if options.run is None else load_run(str(options.run), None)
    report: dict[str, Any] = {"rows": []}
    for case in dict.fromkeys(options.cases):
        if case == "games":
            part = bench_games(options.games, say)
        elif case == "search":
            part = bench_search(say)
        elif case == "train":
            part = bench_train(game, run, seconds=options.seconds, say=say)
        else:
            part = bench_selfplay(
                game,
                run,
                lanes=options.lanes,
                simulations=options.simulations,
                algorithm=options.algorithm,
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


def _check_name(word: str) -> None:
    """Raises ValueError if a word names no game, before JAX is imported."""
    if ":" not in word and word.partition(",")[0].strip() not in (*envs.available(), "go"):
        envs.make(word)  # which says what is wrong with the name
