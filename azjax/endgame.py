"""Exact values of positions whose games are short enough, by alpha-beta to the end of every line.

A game whose positions are too many for `azjax/solver.py` can still be searched from a position on: Black Hole of five
rows has more than 10^12 positions, and those after three plies take a fraction of a second each. The order of moves
comes from a network, which decides how long a search takes and never what it finds.
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.config import RunConfig
from azjax.expansion import Facts, check_no_chance, expand, facts, in_chunks, rows, size
from azjax.search import Model, alphabeta_search, begin_search, game_model
from azjax.selfplay import network_model
from azjax.types import Variables
from envs.core import Game, State

MOST_EVALUATIONS = 2**31 - 2
"""Of a search: none is cut off."""
LANES = 256
"""Positions searched side by side on a device."""


class Order(NamedTuple):
    """Whose policy says which move is tried first."""

    model: Model
    params: Any


def by_index(game: Game) -> Order:
    """Returns the order of the moves' numbers, for games without an agent."""

    def evaluate(params: Any, rng_key: jax.Array, states: State) -> tuple[jax.Array, jax.Array]:
        number = jax.tree.leaves(states)[0].shape[0]
        return jnp.zeros((number, game.num_actions)), jnp.zeros((number,))

    return Order(game_model(game, evaluate), ())


def by_network(game: Game, config: RunConfig, variables: Variables) -> Order:
    """Returns the order of a run's policy."""
    return Order(network_model(config, game), variables)


def exact_values(
    game: Game, order: Order, states: State, *, on_progress: Callable[[int, int], None] = lambda done, number: None
) -> np.ndarray:
    """Returns float32[N], what positions are worth when both sides play perfectly, the view of the player to move.

    A position in which the game is over is worth its return, to the player who would be to move.

    Args:
      game: without chance; the longest line from a position must be searchable.
      order: of moves.
      states: numpy [N, ...], best in an order in which neighbours are about as far from the end.
      on_progress: called with (positions done, N).

    Raises:
      ValueError: the game has dice.
    """
    check_no_chance(game)
    number = size(states)
    seen = facts(game, states)
    values = _own_return(seen)
    going = np.flatnonzero(~seen.over)
    if not going.size:
        return values
    program, devices = _searcher(game, order.model), jax.local_devices()
    # A power of two, for each width is a program of its own.
    width = min(LANES, 2 ** ((going.size - 1) // len(devices)).bit_length())
    params = [jax.device_put(order.params, device) for device in devices]

    def search(part: int) -> np.ndarray:
        device = part % len(devices)
        index = going[np.minimum(np.arange(part * width, (part + 1) * width), going.size - 1)]
        placed = jax.device_put(rows(states, index), devices[device])
        found = jax.device_get(program(params[device], placed))
        return found[: going.size - part * width]

    done = number - going.size
    # A device's search runs on a thread of its own, and XLA waits without Python's lock.
    with ThreadPoolExecutor(len(devices)) as pool:
        for part, found in enumerate(pool.map(search, range(-(-going.size // width)))):
            values[going[part * width : (part + 1) * width]] = found
            done += len(found)
            on_progress(done, number)
    return values


def endgame_values(game: Game, order: Order) -> Callable[[State], np.ndarray]:
    """Returns what gives the exact value of every move, as `azjax.oracle.oracle` does: states -> float32[N, A]."""

    def values(states: State) -> np.ndarray:
        seen = facts(game, states)
        after = expand(game, states, seen.legal)
        same_mover = seen.mover[after.parent] == facts(game, after.states).mover
        value = exact_values(game, order, after.states)
        worth = np.full(seen.legal.shape, -np.inf, np.float32)
        worth[after.parent, after.action] = np.where(same_mover, value, -value)
        return worth

    return values


class Opening(NamedTuple):
    """First moves that symmetries turn into one another, and what they are worth."""

    actions: tuple[int, ...]
    value: float  # the view of the player who moves first


def opening_values(
    game: Game, order: Order, *, on_progress: Callable[[int, int], None] = lambda done, number: None
) -> list[Opening]:
    """Returns the exact value of every first move, of those that are images of one another together.

    After every first move and every reply to it, the mover's answers are tried one at a time, the likeliest first,
    until one wins; so that where first moves win, few of the answers are looked into.

    Args:
      game: without chance; its symmetries keep the start as it is, and its policy is in the order of its actions.
      order: of moves.
      on_progress: called with (replies answered, all replies).
    """
    start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(jax.random.key(0)))
    permutations = np.stack([np.asarray(symmetry.permutation) for symmetry in game.symmetries])
    legal = np.flatnonzero(facts(game, start).legal[0])
    openings = sorted({tuple(sorted(set(permutations[:, action].tolist()))) for action in legal})
    only = np.zeros((1, game.num_actions), bool)
    only[0, [actions[0] for actions in openings]] = True
    opened = expand(game, start, only)
    value = _best_replies(game, opened.states, lambda replies: _first_win(game, order, replies, on_progress))
    value = np.where(facts(game, opened.states).mover == 0, value, -value)
    return [Opening(actions, float(worth)) for actions, worth in zip(openings, value, strict=True)]


def _own_return(seen: Facts) -> np.ndarray:
    return np.take_along_axis(seen.returns, seen.mover[:, None], axis=1)[:, 0].astype(np.float32)


def _best_replies(game: Game, states: State, evaluate: Callable[[State], np.ndarray]) -> np.ndarray:
    """Returns float32[N], the mover's best of the values that `evaluate` gives to all positions after a move."""
    seen = facts(game, states)
    value = _own_return(seen)
    if not seen.legal.any():
        return value
    after = expand(game, states, seen.legal)
    same_mover = seen.mover[after.parent] == facts(game, after.states).mover
    found = evaluate(after.states)
    value[after.parent] = -np.inf
    np.maximum.at(value, after.parent, np.where(same_mover, found, -found))
    return value


def _first_win(game: Game, order: Order, states: State, on_progress: Callable[[int, int], None]) -> np.ndarray:
    """Returns float32[N], exact values, by trying each position's moves in their order until one wins."""
    seen = facts(game, states)
    value = np.where(seen.over, _own_return(seen), -np.inf).astype(np.float32)
    logits = in_chunks(functools.partial(_policy(order.model), order.params), states)
    likeliest = np.argsort(-np.where(seen.legal, logits, -np.inf), axis=1, kind="stable")
    for turn in range(game.num_actions):
        undecided = np.flatnonzero(~seen.over & (value < 1) & (seen.legal.sum(1) > turn))
        on_progress(len(value) - len(undecided), len(value))
        if not undecided.size:
            break
        tried = np.zeros((undecided.size, game.num_actions), bool)
        tried[np.arange(undecided.size), likeliest[undecided, turn]] = True
        after = expand(game, rows(states, undecided), tried)
        found = _best_replies(game, after.states, functools.partial(exact_values, game, order))
        same_mover = seen.mover[undecided] == facts(game, after.states).mover
        value[undecided] = np.maximum(value[undecided], np.where(same_mover, found, -found))
    return value


@functools.lru_cache
def _policy(model: Model) -> Callable[[Any, State], jax.Array]:
    return jax.jit(lambda params, states: model.root(params, jax.random.key(0), states).prior_logits)


@functools.lru_cache
def _searcher(game: Game, model: Model) -> Callable[[Any, State], jax.Array]:
    def search(params: Any, states: State) -> jax.Array:
        root_key, search_key = jax.random.split(jax.random.key(0))
        root, recurrent_fn, _, _ = begin_search(game, model, params, root_key, states)
        found = alphabeta_search(params, search_key, root, recurrent_fn, MOST_EVALUATIONS, game.max_plies)
        return jnp.where(found.solved, found.value, jnp.nan)

    return jax.jit(search)
