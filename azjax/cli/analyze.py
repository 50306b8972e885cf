"""azjax analyze."""

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
from rich.console import Console

import envs
from azjax.analysis import Analyst, mistakes, play_words, position_table, review_game, value_curve
from azjax.cli.options import Analyze
from azjax.rundir import load_run
from envs.core import Game
from envs.game_files import read_games
from envs.playback import check_records


def look(options: Analyze, game: Game, on_ply: Callable[[int, int], None]) -> int:
    """Shows a position or reviews a game; `on_ply` is called with (plies done, plies)."""
    if options.record is not None:
        records = read_games(options.record)
        if options.number > len(records):
            raise ValueError(f"--number: got {options.number}, {options.record} has {len(records)} games")
        record = records[options.number - 1]
        check_records(game, [record], [f"{options.record}: game {options.number}"], results=False)
    agent = load_run(str(options.run), None)
    if not envs.is_named(game, agent.config.game):
        raise ValueError(f"--run: got a run of {agent.config.game}, expected one of {game.id}")
    analyst = Analyst(game, agent, most_simulations=options.simulations)
    of = {"game": game.id, "run": str(options.run), "step": agent.step}
    if options.record is not None:
        return _review(options, of, analyst, record.actions, on_ply)
    state = game.init(jax.random.key(0)) if options.position is None else game.parse_position(options.position)
    view = analyst.look(play_words(game, state, options.moves), seconds=options.seconds)
    if options.json:
        print(json.dumps(of | view.to_json()))
    else:
        Console(soft_wrap=not sys.stdout.isatty()).print(position_table(view, options.most))
    return 0


def _review(options: Analyze, of: dict[str, Any], analyst: Analyst, events: Sequence[int], on_ply: Callable) -> int:
    plies = review_game(analyst, events, simulations=options.simulations, on_ply=on_ply)
    worst = mistakes(plies, options.most)
    if options.out is not None:
        value_curve(options.out, plies, f"{of['game']}, seen by {of['run']} at {options.simulations} simulations")
    if options.json:
        shown = {"plies": plies, "mistakes": worst}
        print(json.dumps(of | {name: [dataclasses.asdict(ply) for ply in part] for name, part in shown.items()}))
        return 0
    for ply in plies:
        print(f"{ply.ply:>4}  {('first', 'second')[ply.player]:<6}  {ply.move:<10}  value {ply.value:+.3f}")
    for ply in worst:
        print(f"mistake at ply {ply.ply}: {ply.move} gave {ply.lost:.2f} away, {ply.best} was better")
    return 0
