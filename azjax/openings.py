"""Openings, the first plies of a game: drawn evenly among the legal moves, or read from a list."""

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.search import random_action
from envs.chance import start_games, step_games
from envs.core import Game, State


def merge(where: jax.Array, a: State, b: State) -> State:
    """Returns game by game a where `where` bool[B], else b."""
    return jax.tree.map(lambda x, y: jnp.where(where.reshape(-1, *(1,) * (x.ndim - 1)), x, y), a, b)


class Opening(NamedTuple):
    """The first moves of a game."""

    name: str
    actions: tuple[int, ...]


def read_openings(game: Game, path: Path) -> tuple[Opening, ...]:
    """Reads a list of openings: a line each, `NAME: MOVE MOVE ...`, or the moves alone, which then are the name.

    Moves are words of `Game.parse_move`; numbers of moves ("1.", "2...") and what follows a # are passed over.

    Raises:
      ValueError: "FILE: line N: ...": a move that is not legal there or ends the game; or there is no opening; or the
        game has dice.
      OSError: the file cannot be read.
    """
    if game.has_chance:
        raise ValueError(f"{path}: got openings of {game.id}, expected a game without dice")
    openings = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        name, _, moves = line.partition("#")[0].rpartition(":")
        words = [word for text in moves.split() if (word := re.sub(r"^\d+\.+", "", text))]
        if not words:
            if name.strip():
                raise ValueError(f"{path}: line {number}: got no moves of {name.strip()!r}, expected at least one")
            continue
        try:
            actions, state = play_words(game, game.init(jax.random.key(0)), words)
        except ValueError as error:
            raise ValueError(f"{path}: line {number}: {error}") from None
        if bool(game.terminated(state)):
            raise ValueError(f"{path}: line {number}: got {' '.join(words)}, after which the game is over")
        openings.append(Opening(name.strip() or " ".join(words), tuple(actions)))
    if not openings:
        raise ValueError(f"{path}: got no opening, expected at least one line such as NAME: MOVE MOVE")
    return tuple(openings)


def play_words(game: Game, state: State, words: Sequence[str]) -> tuple[list[int], State]:
    """Returns the actions of moves as people write them, and the position after them.

    Raises:
      ValueError: a word names no legal move; it says which. Or the game has dice.
    """
    if game.has_chance and words:
        raise ValueError(f"moves: got {len(words)}, expected none: {game.id} has dice, give a game's record")
    step, mask = rules(game)
    actions = []
    for number, word in enumerate(words, 1):
        try:
            action = game.parse_move(state, word)
        except ValueError as error:
            raise ValueError(f"move {number}: {str(error).removeprefix('move: ')}") from None
        if not bool(mask(state)[action]):
            raise ValueError(f"move {number}: got {word!r}, which is not legal there")
        actions.append(action)
        state = step(state, np.int32(action))
    return actions, state


@functools.lru_cache
def rules(game: Game) -> tuple[Callable[[State, np.int32], State], Callable[[State], jax.Array]]:
    """Returns compiled step(state, action) and legal_action_mask(state) of one position."""
    return jax.jit(game.step), jax.jit(game.legal_action_mask)


def listed_openings(game: Game, openings: Sequence[Opening], number: int) -> tuple[State, np.ndarray]:
    """Returns the positions after `number` openings, those of the list in turn, as `random_openings` does.

    Returns:
      (states [number], the moves int32[number, longest], -1 after the last).
    """
    step, _ = rules(game)
    ends = []
    moves = np.full((number, max(len(opening.actions) for opening in openings)), -1, np.int32)
    for opening in openings[:number]:
        state = game.init(jax.random.key(0))
        for action in opening.actions:
            state = step(state, np.int32(action))
        ends.append(state)
    turn = np.arange(number) % len(openings)
    for row, index in zip(moves, turn, strict=True):
        row[: len(openings[index].actions)] = openings[index].actions
    return jax.tree.map(lambda *leaves: jnp.stack(leaves)[turn], *ends), moves


def random_openings(
    game: Game, rng_key: jax.Array, number: int, plies: int, length: jax.Array | None = None
) -> tuple[State, jax.Array]:
    """Plays random moves from the start of `number` games; a game stops before the move that would end it.

    Args:
      game: the rules.
      rng_key: consumed.
      number: B.
      plies: the most moves of an opening; of more than a game can have, there is room for those it can have.
      length: int32[B], how many each game gets; None: `plies` each.

    Returns:
      (states [B], what was played int32[B, plies], -1 where nothing). In a game with chance also the outcomes, as
      num_actions + outcome: int32[B, 1 + 2 plies], the first roll, then move and roll by turns.
    """
    plies = min(plies, game.max_plies)
    states, first_roll = start_games(game, jax.random.fold_in(rng_key, 0), number)
    wanted = jnp.full((number,), plies, jnp.int32) if length is None else length

    def ply(carry: tuple[State, jax.Array], index: jax.Array) -> tuple[tuple[State, jax.Array], jax.Array]:
        states, going = carry
        mask = jax.vmap(game.legal_action_mask)(states)
        key = jax.random.fold_in(rng_key, index)
        action = random_action(key, mask)
        moved, rolled = step_games(game, jax.random.fold_in(key, 1), states, action)
        going = going & (index <= wanted) & ~jax.vmap(game.terminated)(moved)
        played = jnp.stack([action, _as_event(game, rolled)]) if game.has_chance else action[None]
        return (merge(going, moved, states), going), jnp.where(going, played, -1)

    start = (states, jnp.ones((number,), jnp.bool_))
    (states, _), played = jax.lax.scan(ply, start, jnp.arange(1, plies + 1, dtype=jnp.int32))
    played = jnp.moveaxis(played, -1, 0).reshape(number, -1)
    if game.has_chance:
        played = jnp.concatenate([_as_event(game, first_roll)[:, None], played], axis=1)
    return states, played


def _as_event(game: Game, outcome: jax.Array) -> jax.Array:
    return jnp.where(outcome >= 0, game.num_actions + outcome, -1)
