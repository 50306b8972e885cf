"""What each command does. JAX is imported when a command needs it, after its words were found right."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import envs
from azjax.cli.options import Analyze, Bench, Games, Match, Plan, Play, Rate, RunOptions, Train
from azjax.cli.parse import CommandLine, configure
from azjax.config import RunConfig
from azjax.presets import preset

if TYPE_CHECKING:
    from envs.core import Game


def run(line: CommandLine) -> int:
    """Runs a command and returns the exit status."""
    if isinstance(word := getattr(line.command, "game", None), str):
        _check_name(word)
    match line.command:
        case Games() as options:
            return list_games(options)
        case Train() as options:
            return train(options, line.settings)
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
    game = envs.make(options.game)
    facts = {
        "game": game.id,
        "actions": game.num_actions,
        "max_legal_actions": game.max_legal_actions,
        "max_plies": game.max_plies,
        "observation_shape": list(game.observation_shape),
        "symmetries": len(game.symmetries),
        "has_chance": game.has_chance,
        "state_bytes": _state_bytes(game),
    }
    if options.json:
        print(json.dumps(facts))
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")
    return 0


def train(options: RunOptions, settings: Sequence[str]) -> int:
    """azjax train."""
    start = _checked(options, settings)
    # On stdout: stderr is left to the one line that says what was wrong. JAX takes seconds to import.
    print(f"azjax: training {options.game}, preset {start.preset}", flush=True)
    config, directory = _run_of(options, settings, start)
    from azjax.train import train, use_devices

    use_devices(config.devices)
    return train(config, directory)


def plan(options: Plan, settings: Sequence[str]) -> int:
    """azjax plan."""
    config, _ = _run_of(options, settings, _checked(options, settings))
    from rich.console import Console

    from azjax.plan import make_plan, plan_table
    from azjax.train import choose_devices, use_devices

    use_devices(config.devices)
    made = make_plan(config, envs.make(config.game), choose_devices(config))
    if options.json:
        print(json.dumps(made.to_json()))
    else:
        Console(soft_wrap=not sys.stdout.isatty()).print(plan_table(made))
    return 0


def play(options: Play) -> int:
    """azjax play."""
    from azjax.cli.start import players_of, start
    from azjax.play import play_in_terminal
    from envs.game_files import check_format, formats_of

    game, _ = start(options.game)
    if options.record is not None:
        check_format(options.record, formats_of(game))
    run = options.run or _default_path(_word(options.game, game), "quick")
    word = options.opponent or f"run:{run}"
    if options.simulations is not None:
        if options.opponent is not None and not options.opponent.startswith("run:"):
            raise ValueError(f"--simulations: got it for the player {options.opponent}, expected it for a run")
        word = f"{word},simulations={options.simulations}"
    (opponent,) = players_of(game, (word,))
    seat = 0 if options.seat == "first" else 1
    return play_in_terminal(game, opponent, seat=seat, seed=options.seed, record=options.record)


def analyze(options: Analyze) -> int:
    """azjax analyze."""
    from azjax.cli.analyze import look
    from azjax.cli.start import Telling, start

    game, mesh = start(options.game)
    return look(options, game, mesh, Telling("analysis", "done"))


def bench(options: Bench) -> int:
    """azjax bench."""
    from rich.console import Console

    from azjax.bench import bench_games, bench_search, bench_selfplay, bench_table, programs_table
    from azjax.cli.start import start
    from azjax.rundir import load_run

    game, _ = start(options.game)

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


def _checked(options: RunOptions, settings: Sequence[str]) -> RunConfig:
    """Returns the preset to start from, after all checks that need no JAX: mistakes are answered at once.

    Raises:
      ValueError: one line: an unknown game or preset, a wrong field, a directory that is no run.
    """
    start = preset(options.preset or "quick", options.game)
    configure(start, settings)
    if options.resume is not None and not (options.resume / "config.json").is_file():
        raise ValueError(f"--resume: got {options.resume}, which has no config.json; expected a run's directory")
    return start


def _check_name(word: str) -> None:
    """Raises ValueError if a word names no game, before JAX is imported."""
    if ":" not in word and word.partition(",")[0].strip() not in (*envs.available(), "go"):
        envs.make(word)  # which says what is wrong with the name


def _run_of(options: RunOptions, settings: Sequence[str], start: RunConfig) -> tuple[RunConfig, Path]:
    """Returns the configuration and the directory that the words ask for; `start` is the preset.

    Raises:
      ValueError: one line: wrong options of the game, a wrong name, a run of another game.
    """
    game = envs.make(options.game)
    word = _word(options.game, game)
    source = options.resume or options.out or _default_path(word, start.preset)
    base = dataclasses.replace(start, game=word)
    if options.fork is not None:
        from azjax.rundir import check_name

        check_name(options.fork)
    if options.resume is not None or options.fork is not None:
        from azjax.players import check_run_game
        from azjax.rundir import RunDirectory

        stored = RunDirectory(source).read_config()
        check_run_game(stored, game, f"run {source}")
        base = stored if options.preset is None else base
    if options.fork is not None:
        source = source.parent / options.fork
    return configure(base, settings), source


def _word(given: str, game: "Game") -> str:
    """Returns the game's one name; of a game of one's own the reference, by which alone it is found."""
    return given if ":" in given else game.id


def _default_path(game: str, preset: str) -> Path:
    from azjax.rundir import default_path

    return default_path(game, preset)


def _state_bytes(game: "Game") -> int:
    import math

    import jax

    leaves = jax.tree.leaves(jax.eval_shape(game.init, jax.eval_shape(lambda: jax.random.key(0))))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
