"""Positions and what follows them, many at a time: every legal move of each position, made by compiled rules."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.core import Game, State
from envs.random_games import random_games

CHUNK = 2048
"""Positions of one compiled call."""


class Facts(NamedTuple):
    """What the rules say of positions [N]."""

    legal: Any  # bool[N, A]
    mover: Any  # int32[N]
    over: Any  # bool[N]
    returns: Any  # float32[N, 2], player i's


class Expansion(NamedTuple):
    """Every position one legal move after some others, ordered by these and by the move."""

    states: State  # numpy [M, ...]
    parent: np.ndarray  # int[M], index of the position before
    action: np.ndarray  # int32[M]


def size(states: State) -> int:
    """Returns the number of positions."""
    return len(jax.tree.leaves(states)[0])


def rows(states: State, index: Any) -> State:
    """Returns the positions at an index, a mask or a slice."""
    return jax.tree.map(lambda leaf: leaf[index], states)


def joined(parts: list[State]) -> State:
    """Returns all positions of several batches as one."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def in_chunks(program: Callable[..., Any], *batches: Any) -> Any:
    """Calls a compiled program on CHUNK entries at a time, the last padded by its own, and joins what it returns.

    Args:
      program: (arrays [CHUNK, ...], ...) -> arrays [CHUNK, ...].
      batches: pytrees of numpy arrays [N, ...]; N is at least 1.
    """
    number = size(batches)
    parts = []
    for start in range(0, number, CHUNK):
        index = np.minimum(np.arange(start, start + CHUNK), number - 1)
        done = jax.device_get(program(*(rows(batch, index) for batch in batches)))
        parts.append(rows(done, slice(0, min(CHUNK, number - start))))
    return joined(parts)


def facts(game: Game, states: State) -> Facts:
    """Returns what the rules say of positions numpy [N, ...]."""
    return in_chunks(_programs(game)[0], states)


def expand(game: Game, states: State, legal: np.ndarray) -> Expansion:
    """Returns every position after a legal move.

    Args:
      game: without chance.
      states: numpy [N, ...].
      legal: bool[N, A], the moves to make; at least one in all.
    """
    parent, action = np.nonzero(legal)
    action = action.astype(np.int32)
    return Expansion(in_chunks(_programs(game)[1], rows(states, parent), action), parent, action)


@functools.lru_cache
def _programs(game: Game) -> tuple[Callable[[State], Facts], Callable[[State, jax.Array], State]]:
    def look(state: State) -> Facts:
        return Facts(
            game.legal_action_mask(state),
            jnp.asarray(game.to_move(state), jnp.int32),
            game.terminated(state),
            game.returns(state),
        )

    return jax.jit(jax.vmap(look)), jax.jit(jax.vmap(game.step))


class Positions(NamedTuple):
    """Different positions of random games, none of them over."""

    states: State  # numpy [N, ...]
    ply: np.ndarray  # int[N], moves made before


def random_positions(game: Game, games: int, seed: int, *, most_plies: int = 400) -> Positions:
    """Returns the different positions of uniformly random games, ply by ply.

    Args:
      game: without chance.
      games: how many are played.
      seed: of the moves.
      most_plies: where longer games are left.

    Raises:
      ValueError: the game has chance.
    """
    check_no_chance(game)
    states, plies = [], []
    for turn in random_games(game, jax.random.split(jax.random.key(seed), games), np.random.default_rng(seed)):
        going = np.flatnonzero(~turn.position.terminated)
        if not going.size or turn.number >= most_plies:
            break
        _, first = np.unique(row_bytes(rows(turn.state, going)), return_index=True)
        states.append(rows(turn.state, going[np.sort(first)]))
        plies.append(np.full(len(first), turn.number))
    return Positions(joined(states), np.concatenate(plies))


def check_no_chance(game: Game) -> None:
    """Raises ValueError if the game has dice."""
    if game.has_chance:
        raise ValueError(f"game: got {game.id}, which has dice, expected one without")


def row_bytes(states: State) -> np.ndarray:
    """Returns void[N], the bytes of each position: equal exactly where all its arrays are."""
    number = size(states)
    # The width in numbers: of no rows numpy cannot tell it.
    leaves = [np.ascontiguousarray(leaf).reshape(number, math.prod(leaf.shape[1:])) for leaf in jax.tree.leaves(states)]
    table = np.ascontiguousarray(np.concatenate([leaf.view(np.uint8) for leaf in leaves], axis=1))
    return table.view(np.dtype((np.void, table.shape[1]))).reshape(number)
