"""The commands about runs, train and plan: from the words to a configuration and a directory."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import envs
from azjax.accelerators import parse_devices
from azjax.cli.options import Plan, RunOptions, Train
from azjax.cli.parse import configure
from azjax.config import RunConfig
from azjax.launch import launch, parse_hosts
from azjax.presets import OWN_PLIES, preset

if TYPE_CHECKING:
    from envs.core import Game


def train(options: Train, settings: Sequence[str], words: Sequence[str] = ()) -> int:
    """azjax train; `words` are those of the command, for the processes that --hosts local:N starts."""
    start = _checked(options, settings)
    hosts = None if options.hosts is None else parse_hosts(options.hosts)
    if hosts is not None and hosts.local:
        return launch(hosts.local, words)
    # On stdout: stderr is left to the one line that says what was wrong. JAX takes seconds to import.
    if hosts is None or not hosts.index:
        print(f"azjax: training {options.game}, preset {start.preset}", flush=True)
    config, directory = _run_of(options, settings, start)
    from azjax.cli.start import begin_devices
    from azjax.train import train

    if hosts is not None:
        from azjax.hosts import connect

        connect(hosts)
    begin_devices(config.devices)
    return train(config, directory)


def plan(options: Plan, settings: Sequence[str]) -> int:
    """azjax plan."""
    config, _ = _run_of(options, settings, _checked(options, settings))
    from rich.console import Console

    from azjax.cli.start import begin_devices
    from azjax.plan import check_fits, make_plan, plan_table
    from azjax.train import choose_devices

    begin_devices(config.devices)
    game = envs.make(config.game)
    if options.on is not None:
        made = make_plan(config, game, on=parse_devices(options.on))
    else:
        made = make_plan(config, game, choose_devices(config))
    if options.json:
        print(json.dumps(made.to_json()))
    else:
        Console(soft_wrap=not sys.stdout.isatty()).print(plan_table(made))
    check_fits(made)
    return 0


def _checked(options: RunOptions, settings: Sequence[str]) -> RunConfig:
    """Returns the preset to start from, after all checks that need no JAX: mistakes are answered at once.

    Raises:
      ValueError: one line: an unknown game or preset, a wrong field, a directory that is no run.
    """
    start = preset(options.preset or "quick", options.game, OWN_PLIES)  # how long a game is, JAX would have to say
    configure(start, settings)
    if options.resume is not None and not (options.resume / "config.json").is_file():
        raise ValueError(f"--resume: got {options.resume}, which has no config.json; expected a run's directory")
    if ":" not in options.game and options.game.partition(",")[0].strip() not in envs.available():
        envs.make(options.game)  # which says what is wrong with the name
    return start


def _run_of(options: RunOptions, settings: Sequence[str], start: RunConfig) -> tuple[RunConfig, Path]:
    """Returns the configuration and the directory that the words ask for; `start` is the preset.

    Raises:
      ValueError: one line: wrong options of the game, a wrong name, a run of another game, an anchor that is no player.
    """
    game = envs.make(start.game)  # a preset may add options to the word
    start = preset(start.preset, options.game, game.max_plies)
    word = game_word(start.game, game)
    typed = game_word(options.game, envs.make(options.game))
    source = options.resume or options.out or default_directory(typed, start.preset)
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
    config = configure(base, settings)
    from azjax.players import parse_player

    for anchor in config.evaluation.anchors:
        try:
            parse_player(anchor)
        except ValueError as error:
            raise ValueError(f"evaluation.anchors: {error}") from None
    return config, source


def game_word(given: str, game: "Game") -> str:
    """Returns the game's one name; of a game of one's own the reference, by which alone it is found."""
    return given if ":" in given else game.id


def default_directory(game: str, preset: str) -> Path:
    """Returns runs/GAME-PRESET."""
    from azjax.rundir import default_path

    return default_path(game, preset)
