"""Exact values of positions whose games are short enough, by alpha-beta to the end of every line.

A game whose positions are too many for `azjax/solver.py` can still be searched from a position on: Black Hole of five
rows has more than 10^12 positions, and one after four plies takes some 35,000 nodes.

Many positions are searched side by side, each by a stack of its own; whoever is done takes the next position.

    stack   level 0  position      best so far, alpha, beta, moves not yet tried
            level 1  after d4      ...
            level 2  after d4 c5   ...    a move that ends the game is valued where it is made
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.config import RunConfig
from azjax.expansion import Expansion, Facts, check_no_chance, expand, facts, in_chunks, rows
from azjax.network import evaluate
from azjax.search import first_argmax
from azjax.types import Variables
from envs.core import Game, State

LANES = 256
"""Positions searched side by side on a device."""
_WORST = -2.0
"""Below every value."""

LogitsFn = Callable[[State], np.ndarray]
"""states numpy [N, ...] -> float32[N, A], larger where a move is likelier."""


def exact_values(game: Game, states: State) -> np.ndarray:
    """Returns float32[N], what positions are worth when both sides play perfectly, the view of the player to move.

    A position in which the game is over is worth its return, to the player who would be to move; a game cut off by
    `max_plies` is a draw.

    Args:
      game: without chance; every line from a position must be searchable.
      states: numpy [N, ...].

    Raises:
      ValueError: the game has dice.
    """
    check_no_chance(game)
    seen = facts(game, states)
    values = _own_return(seen)
    going = np.flatnonzero(~seen.over)
    if not going.size:
        return values
    devices, program = jax.local_devices(), _searcher(game)
    parts = [going[number :: len(devices)] for number in range(min(len(devices), going.size))]
    # A power of two, for each number is a program of its own.
    room = 1 << (len(parts[0]) - 1).bit_length()

    def search(number: int) -> np.ndarray:
        part = parts[number]
        placed = jax.device_put(rows(states, np.resize(part, room)), devices[number])
        return np.asarray(program(placed, jnp.int32(part.size)))[: part.size]

    # A device's loop runs on a thread of its own, and XLA works without Python's lock.
    with ThreadPoolExecutor(len(parts)) as pool:
        for part, found in zip(parts, pool.map(search, range(len(parts))), strict=True):
            values[part] = found
    return values


class _Stack(NamedTuple):
    """D levels of B searches; entries above a search's level are left over. Values are the level's mover's view."""

    states: Any  # [D, B, ...]
    untried: jax.Array  # bool[D, B, A]
    best: jax.Array  # float32[D, B]
    alpha: jax.Array  # float32[D, B]
    beta: jax.Array  # float32[D, B]
    sign: jax.Array  # float32[D, B], -1 where the other player moves at the level below, +1 where the same
    action: jax.Array  # int32[D, B], the move under way
    cutting: jax.Array  # int32[D, B], the move that last was good enough on this level: tried first


class _Search(NamedTuple):
    """The loop's carry."""

    stack: _Stack
    level: jax.Array  # int32[B]
    job: jax.Array  # int32[B], the position under way, N where there is none left
    next_job: jax.Array  # int32[]
    values: jax.Array  # float32[N]


@functools.lru_cache
def _searcher(game: Game) -> Callable[[State, jax.Array], jax.Array]:
    """Returns a compiled program: (states [N, ...], none of them over, how many of them count) -> values float32[N]."""
    step, legal_action_mask = jax.vmap(game.step), jax.vmap(game.legal_action_mask)
    to_move, terminated, returns = map(jax.vmap, (game.to_move, game.terminated, game.returns))
    depth = game.max_plies

    def search(positions: State, number: jax.Array) -> jax.Array:
        room = jax.tree.leaves(positions)[0].shape[0]
        width = min(LANES, room)
        lanes = jnp.arange(width, dtype=jnp.int32)

        def put(array: jax.Array, level: jax.Array, where: jax.Array, new: jax.Array) -> jax.Array:
            return array.at[jnp.where(where, level, depth), lanes].set(new, mode="drop")

        def turn(search: _Search) -> _Search:
            stack, at = search.stack, search.level
            active = search.job < number
            untried = stack.untried[at, lanes]
            best, beta = stack.best[at, lanes], stack.beta[at, lanes]
            alpha = jnp.maximum(stack.alpha[at, lanes], best)
            finished = ~untried.any(1) | (best >= beta)
            trying, done, rising = active & ~finished, active & finished & (at == 0), active & finished & (at > 0)

            # The next move, and where it leads.
            here = jax.tree.map(lambda leaf: leaf[at, lanes], stack.states)
            wanted = stack.cutting[at, lanes]
            first = jax.vmap(first_argmax)(untried.astype(jnp.float32)).astype(jnp.int32)
            action = jnp.where(jnp.take_along_axis(untried, wanted[:, None], axis=1)[:, 0], wanted, first)
            child, mover = step(here, action), to_move(here)
            over = terminated(child)
            gained = jnp.take_along_axis(returns(child), mover[:, None], axis=1)[:, 0]
            sign = jnp.where(to_move(child) == mover, 1.0, -1.0)
            ends, falling = trying & over, trying & ~over

            # A value for the level itself (of a move that ends the game), or for the one above (of a finished level).
            above = jnp.maximum(at - 1, 0)
            target = jnp.where(rising, above, at)
            value = jnp.where(rising, stack.sign[above, lanes] * best, gained)
            better = jnp.maximum(jnp.where(rising, stack.best[above, lanes], best), value)
            made = jnp.where(rising, stack.action[above, lanes], action)
            cuts = (rising | ends) & (value >= jnp.where(rising, stack.beta[above, lanes], beta))

            # What stands on a new level: the child, or the next position.
            job = jnp.where(done, jnp.minimum(search.next_job + jnp.cumsum(done) - 1, number), search.job)
            job = job.astype(jnp.int32)
            loading = done & (job < number)
            root = jax.tree.map(lambda leaf: leaf[jnp.minimum(job, room - 1)], positions)
            fresh = jax.tree.map(lambda a, b: jnp.where(loading.reshape(-1, *(1,) * (a.ndim - 1)), a, b), root, child)
            new, below = loading | falling, jnp.where(loading, 0, at + 1)
            swaps = sign < 0
            stack = _Stack(
                states=jax.tree.map(lambda leaf, one: put(leaf, below, new, one), stack.states, fresh),
                untried=put(
                    stack.untried.at[jnp.where(trying, at, depth), lanes, action].set(False, mode="drop"),
                    below,
                    new,
                    legal_action_mask(fresh),
                ),
                best=put(put(stack.best, target, rising | ends, better), below, new, jnp.full(width, _WORST)),
                alpha=put(stack.alpha, below, new, jnp.where(loading, -1.0, jnp.where(swaps, -beta, alpha))),
                beta=put(stack.beta, below, new, jnp.where(loading, 1.0, jnp.where(swaps, -alpha, beta))),
                sign=put(stack.sign, at, falling, sign),
                action=put(stack.action, at, falling, action),
                cutting=put(stack.cutting, target, cuts, made),
            )
            return _Search(
                stack=stack,
                level=jnp.where(falling, at + 1, jnp.where(rising, at - 1, jnp.where(done, 0, at))),
                job=job,
                next_job=search.next_job + jnp.sum(done, dtype=jnp.int32),
                values=search.values.at[jnp.where(done, search.job, room)].set(best, mode="drop"),
            )

        def levels(fill: Any, dtype: Any, *shape: int) -> jax.Array:
            return jnp.full((depth, width, *shape), fill, dtype)

        roots = jax.tree.map(lambda leaf: leaf[:width], positions)
        start = _Search(
            stack=_Stack(
                states=jax.tree.map(lambda leaf: jnp.zeros((depth, *leaf.shape), leaf.dtype).at[0].set(leaf), roots),
                untried=levels(False, jnp.bool_, game.num_actions).at[0].set(legal_action_mask(roots)),
                best=levels(_WORST, jnp.float32),
                alpha=levels(-1.0, jnp.float32),
                beta=levels(1.0, jnp.float32),
                sign=levels(1.0, jnp.float32),
                action=levels(0, jnp.int32),
                cutting=levels(0, jnp.int32),
            ),
            level=jnp.zeros(width, jnp.int32),
            job=jnp.minimum(lanes, number),
            next_job=jnp.int32(width),
            values=jnp.zeros(room, jnp.float32),
        )
        return jax.lax.while_loop(lambda search: (search.job < number).any(), turn, start).values

    return jax.jit(search)


def endgame_values(game: Game) -> Callable[[State], np.ndarray]:
    """Returns what gives the exact value of every move, as `azjax.oracle.oracle` does: states -> float32[N, A]."""

    def values(states: State) -> np.ndarray:
        seen = facts(game, states)
        after, value = _tried(game, states, seen, seen.legal, functools.partial(exact_values, game))
        worth = np.full(seen.legal.shape, -np.inf, np.float32)
        worth[after.parent, after.action] = value
        return worth

    return values


def policy_logits(game: Game, config: RunConfig, variables: Variables) -> LogitsFn:
    """Returns the order in which a run's network would try moves."""
    look = jax.jit(lambda states: evaluate(config.network, game, variables, jax.random.key(0), states)[0])
    return functools.partial(in_chunks, look)


class Opening(NamedTuple):
    """First moves that symmetries turn into one another, and what they are worth."""

    actions: tuple[int, ...]
    value: float  # the view of the player who moves first


def opening_values(
    game: Game, logits: LogitsFn, *, on_progress: Callable[[int, int], None] = lambda done, number: None
) -> list[Opening]:
    """Returns the exact value of every first move, of those that are images of one another together.

    After every first move and every reply to it, the mover's answers are tried one at a time, the likeliest first,
    until one wins; so that where first moves win, few of the answers are looked into.

    Args:
      game: without chance; its symmetries keep the start as it is, and its policy is in the order of its actions.
      logits: say which answer is tried first.
      on_progress: called with (replies answered, all replies).
    """
    start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(jax.random.key(0)))
    seen = facts(game, start)
    permutations = np.stack([np.asarray(symmetry.permutation) for symmetry in game.symmetries])
    legal = np.flatnonzero(seen.legal[0])
    openings = sorted({tuple(sorted(set(permutations[:, action].tolist()))) for action in legal})
    only = np.zeros((1, game.num_actions), bool)
    only[0, [actions[0] for actions in openings]] = True

    def answered(states: State) -> np.ndarray:
        return _best_replies(game, states, lambda replies: _first_win(game, logits, replies, on_progress))

    _, value = _tried(game, start, seen, only, answered)
    return [Opening(actions, float(worth)) for actions, worth in zip(openings, value, strict=True)]


def _own_return(seen: Facts) -> np.ndarray:
    return np.take_along_axis(seen.returns, seen.mover[:, None], axis=1)[:, 0].astype(np.float32)


def _best_replies(game: Game, states: State, evaluate: Callable[[State], np.ndarray]) -> np.ndarray:
    """Returns float32[N], the mover's best of the values that `evaluate` gives to all positions after a move."""
    seen = facts(game, states)
    value = _own_return(seen)
    if not seen.legal.any():
        return value
    after, found = _tried(game, states, seen, seen.legal, evaluate)
    value[after.parent] = -np.inf
    np.maximum.at(value, after.parent, found)
    return value


def _tried(
    game: Game, states: State, seen: Facts, moves: np.ndarray, evaluate: Callable[[State], np.ndarray]
) -> tuple[Expansion, np.ndarray]:
    """Makes moves bool[N, A]; returns what follows, and `evaluate`'s values of it in the view of those who moved."""
    after = expand(game, states, moves)
    same_mover = seen.mover[after.parent] == facts(game, after.states).mover
    value = evaluate(after.states)
    return after, np.where(same_mover, value, -value)


def _first_win(game: Game, logits: LogitsFn, states: State, on_progress: Callable[[int, int], None]) -> np.ndarray:
    """Returns float32[N], exact values, by trying each position's moves in their order until one wins."""
    seen = facts(game, states)
    value = np.where(seen.over, _own_return(seen), -np.inf).astype(np.float32)
    answered = functools.partial(_best_replies, game, evaluate=functools.partial(exact_values, game))
    likeliest = np.argsort(-np.where(seen.legal, logits(states), -np.inf), axis=1, kind="stable")
    for turn in range(game.num_actions):
        undecided = np.flatnonzero(~seen.over & (value < 1) & (seen.legal.sum(1) > turn))
        on_progress(len(value) - len(undecided), len(value))
        if not undecided.size:
            break
        tried = np.zeros((undecided.size, game.num_actions), bool)
        tried[np.arange(undecided.size), likeliest[undecided, turn]] = True
        part = Facts(*(fact[undecided] for fact in seen))
        _, found = _tried(game, rows(states, undecided), part, tried, answered)
        value[undecided] = np.maximum(value[undecided], found)
    return value
