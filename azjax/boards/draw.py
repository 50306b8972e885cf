"""Which drawing belongs to which game."""

import functools
import importlib
import types
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from azjax.boards.drawing import Drawing
from envs.chance import event_name, step_event
from envs.core import Game, State
from envs.record import GameRecord

_ARTISTS = {
    "envs.backgammon": "azjax.boards.backgammon",
    "envs.black_hole": "azjax.boards.black_hole",
    "envs.chess.game": "azjax.boards.chess",
    "envs.connect_four": "azjax.boards.connect_four",
    "envs.crosshair": "azjax.boards.crosshair",
    "envs.go": "azjax.boards.go",
    "envs.hex": "azjax.boards.hex",
    "envs.othello": "azjax.boards.othello",
    "envs.shogi.game": "azjax.boards.shogi",
    "envs.tic_tac_toe": "azjax.boards.tic_tac_toe",
    "envs.ultimate_tic_tac_toe": "azjax.boards.ultimate_tic_tac_toe",
}
"""A game's module and the file that draws it; any other game is drawn from its text.

A file has LEGEND, how its pictures are read; draw(game, state, before, action) -> Drawing and, where a move is several
zones chosen one by one, path(game, state, action) -> tuple[str, ...]; states are numpy arrays.
"""


def draw(game: Game, state: State) -> Drawing:
    """Draws a position."""
    return draw_move(game, state, None, None)


def draw_move(game: Game, state: State, before: State | None, action: int | None) -> Drawing:
    """Draws a position and what the move that led to it did.

    Args:
      game: the rules.
      state: one position.
      before: the one before it, None if unknown.
      action: the move from `before` to `state`, None for none or for an outcome of dice.
    """
    state, before = jax.device_get((state, before))
    return _artist(game).draw(game, state, before, action)


def legend_of(game: Game) -> str:
    """Returns how the pictures of a game are read, in a few sentences; of one drawn from its text, its own legend."""
    return getattr(_artist(game), "LEGEND", game.legend)


def zones_of(game: Game, state: State, actions: Sequence[int]) -> list[tuple[str, ...]]:
    """Returns the zones that are chosen one by one to make each action; none: it has a button, as a pass has."""
    artist, state = _artist(game), jax.device_get(state)
    if path := getattr(artist, "path", None):
        return [path(game, state, action) for action in actions]
    zones = {zone.id for zone in artist.draw(game, state, None, None).zones}
    names = (game.move_name(state, action) for action in actions)
    return [(name,) if name in zones else () for name in names]


def draw_game(game: Game, record: GameRecord) -> list[Drawing]:
    """Draws every position of a game that keeps the rules (`envs.playback.check_records` says whether it does)."""
    state = jax.jit(game.init)(jax.random.key(0))
    advance = jax.jit(functools.partial(step_event, game))
    drawings = [draw(game, state)]
    for event in record.actions:
        after = advance(state, jnp.int32(event))
        drawings.append(draw_move(game, after, state, event if event < game.num_actions else None))
        state = after
    return drawings


def event_names(game: Game, record: GameRecord) -> Sequence[str]:
    """Returns the moves of a game as people write them, outcomes of dice in parentheses."""
    state = jax.jit(game.init)(jax.random.key(0))
    advance = jax.jit(functools.partial(step_event, game))
    names = []
    for event in record.actions:
        names.append(event_name(game, state, event))
        state = advance(state, jnp.int32(event))
    return names


def _artist(game: Game) -> types.ModuleType:
    module = _ARTISTS.get(type(game).__module__, "azjax.boards.plain")
    return importlib.import_module(module)
