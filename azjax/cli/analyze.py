"""azjax analyze."""

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh
from rich.console import Console

from azjax.analysis import Analyst, mistakes, position_table, review_game, value_curve
from azjax.book import book_table, most_played, prevalence, read_lines, selfplay_beginnings, write_book
from azjax.checkpoint import Checkpoints
from azjax.cli.strength import Analyze
from azjax.generations import judge_generations, play_held_out, write_generations
from azjax.openings import play_words, read_openings
from azjax.oracle import oracle
from azjax.perfect import kept_table, kept_values
from azjax.players import LoadedRun, check_run_game, load_agent, make_player
from azjax.rundir import RunDirectory, load_run
from azjax.tactics import find_wins, share_found
from azjax.train import resolve
from envs.core import Game
from envs.game_files import read_games
from envs.playback import check_records
from envs.record import GameRecord

Progress = Callable[[int, int], None]
"""Called with (things done, things)."""

_BOOK = 12
"""Openings of a book made from self-play."""


def look(options: Analyze, game: Game, mesh: Mesh, progress: Progress) -> int:
    """Does what the options ask for."""
    if options.wins is not None or options.perfect is not None:
        return _measure(options, game, mesh)
    if options.run is not None and options.book is not None:
        return _book(options, game, options.run, mesh, progress)
    if options.run is not None and options.generations is not None:
        return _generations(options, game, options.run)
    record = None if options.record is None else _record(options, game, options.record)
    agent, whose = _agent(options, game)
    analyst = Analyst(game, agent, most_simulations=options.simulations)
    of = {"game": game.id, **whose, "step": agent.step}
    if record is not None:
        return _review(options, of, analyst, record, progress)
    state = game.init(jax.random.key(0)) if options.position is None else game.parse_position(options.position)
    _, state = play_words(game, state, options.moves)
    view = analyst.look(state, seconds=options.seconds)
    if options.json:
        print(json.dumps(of | view.to_json()))
    else:
        _console().print(position_table(view, options.most))
    return 0


def _agent(options: Analyze, game: Game) -> tuple[LoadedRun, dict[str, str]]:
    """Returns who looks, and {"run" or "agent": what it was called}."""
    if options.agent is not None:
        return load_agent(game, options.agent), {"agent": options.agent}
    agent = load_run(str(options.run), None)
    check_run_game(agent.config, game, f"--run {options.run}")
    return agent, {"run": str(options.run)}


def _record(options: Analyze, game: Game, path: Path) -> GameRecord:
    records = read_games(path)
    if options.number > len(records):
        raise ValueError(f"--number: got {options.number}, {path} has {len(records)} games")
    record = records[options.number - 1]
    check_records(game, [record], [f"{path}: game {options.number}"], results=False)
    return record


def _review(options: Analyze, of: dict[str, Any], analyst: Analyst, record: GameRecord, progress: Progress) -> int:
    plies = review_game(
        analyst,
        record.actions,
        simulations=options.simulations,
        opening_plies=record.opening_plies,
        on_ply=progress,
    )
    worst = mistakes(plies, options.most)
    if options.out is not None:
        seen_by = options.agent or options.run
        value_curve(options.out, plies, f"{of['game']}, seen by {seen_by} at {options.simulations} simulations")
    if options.json:
        shown = {"plies": plies, "mistakes": worst}
        print(json.dumps(of | {name: [dataclasses.asdict(ply) for ply in part] for name, part in shown.items()}))
        return 0
    print("Value before each move, for the first player: from -1, lost, to 1, won.")
    for ply in plies:
        chosen = "  (opening, chosen by neither)" if ply.opening else ""
        print(f"{ply.ply:>4}  {('first', 'second')[ply.player]:<6}  {ply.move:<10}  {ply.value:+.3f}{chosen}")
    for ply in worst:
        print(f"mistake at ply {ply.ply}: {ply.move} gave {ply.lost:.2f} away, {ply.best} was better")
    if options.out is not None:
        print(f"picture: {options.out}")
    return 0


def _measure(options: Analyze, game: Game, mesh: Mesh) -> int:
    """Says which share of won positions a player finds, or of known values it keeps."""
    agent = f"run:{options.run}" if options.run is not None else f"agent:{options.agent}"
    word = options.player or f"{agent},simulations={options.simulations}"
    player = make_player(game, word, load_run)
    of = {"game": game.id, "player": word, "seed": options.seed}
    if options.wins is not None:
        found = [share_found(player, wins, mesh) for wins in find_wins(game, options.wins, seed=options.seed)]
        if options.json:
            print(json.dumps(of | {"wins": found}))
            return 0
        for row in found:
            ends = (
                "" if row["share"] is None else f": {row['share']:.1%} ({row['ci95'][0]:.1%} to {row['ci95'][1]:.1%})"
            )
            print(f"{word} finds {row['found']} of {row['positions']} wins in {('one', 'two')[row['moves'] - 1]}{ends}")
        return 0
    assert options.perfect is not None
    with oracle(game) as values:
        shares = kept_values(game, player, values, mesh, positions=options.perfect, seed=options.seed)
    if options.json:
        *plies, everything = (share.to_json() for share in shares)
        print(json.dumps(of | {"all": everything, "plies": plies}))
    else:
        _console().print(kept_table(shares, f"{game.id}: exact values kept by {word}"))
    return 0


def _agents(game: Game, run: Path) -> list[LoadedRun]:
    """Returns the agents of all checkpoints of a run, whose configuration has what the game decides filled in."""
    directory = RunDirectory(run)
    config = directory.read_config()
    check_run_game(config, game, f"--run {run}")
    config = resolve(config, game)
    steps = Checkpoints(directory.checkpoints_path).saved_steps()
    if not steps:
        raise ValueError(f"run: {run} has no checkpoint yet; expected one (train it further)")
    return [load_run(str(run), step)._replace(config=config) for step in steps]


def _book(options: Analyze, game: Game, run: Path, mesh: Mesh, progress: Progress) -> int:
    assert options.book is not None
    openings = () if options.book_plies else read_openings(game, Path(options.book))
    agents = _agents(game, run)
    plies = options.book_plies or max(len(opening.actions) for opening in openings)
    if plies > game.max_plies:
        raise ValueError(f"--book: got {plies} plies, expected at most {game.max_plies}, which a game has")
    beginnings = [
        selfplay_beginnings(game, agent, games=options.games, plies=plies, mesh=mesh, seed=options.seed)
        for agent in agents
    ]
    openings = openings or most_played(game, beginnings[-1], _BOOK)
    if not openings:
        raise ValueError(f"--book: got {plies} plies, after which every game of self-play is over; expected fewer")
    shares = zip(*(prevalence(played, openings) for played in beginnings), strict=True)
    analyst = Analyst(game, agents[-1], most_simulations=options.simulations)
    lines = read_lines(analyst, openings, list(shares), options.simulations, progress)
    steps = [agent.step for agent in agents]
    about = {"game": game.id, "run": str(run), "games": options.games, "simulations": options.simulations}
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write_book(options.out, lines, steps, about, f"{game.id}, {run}: openings in self-play")
    if options.json:
        print(json.dumps(about | {"steps": steps, "openings": [line.to_json() for line in lines]}))
    else:
        _console().print(book_table(lines))
    return 0


def _generations(options: Analyze, game: Game, run: Path) -> int:
    assert options.generations is not None
    agents = _agents(game, run)
    games = play_held_out(game, agents[-1], options.generations, options.seed, options.simulations)
    rows = judge_generations(game, agents, games)
    about = {"game": game.id, "run": str(run), "games": options.generations, "simulations": options.simulations}
    about |= {"positions": int(games.playing.sum())}
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write_generations(options.out, rows, about, f"{game.id}, {run}: {about['positions']:,} positions")
    if options.json:
        print(json.dumps(about | {"generations": [row.to_json() for row in rows]}))
        return 0
    for row in rows:
        said = row.to_json()
        shares = (f"{name} {said[name]:.1%}" for name in ("top_1", "winner") if said[name] is not None)
        print(f"step {row.step}: {', '.join(shares)}")
    return 0


def _console() -> Console:
    return Console(soft_wrap=not sys.stdout.isatty())
