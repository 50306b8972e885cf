"""Exact values of small games, by going through every position from the start, and a player who uses them.

A position is known by 64 bits of a hash of its arrays; two of n positions share them with probability n^2 / 2^65.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.expansion import check_no_chance, expand, facts, in_chunks, joined, rows, size
from envs.core import Game, State, state_bytes

MOST_POSITIONS = 2_000_000
"""Of a game that is solved: more take minutes."""
MOST_BYTES = 2**30
"""Of all positions of a game: of one whose states are large, fewer than MOST_POSITIONS are looked at."""
PART = 2**16
"""Moves made at a time: Go 9 x 9 has 42 million of three plies, whose positions would be 70 GB."""


class Solution(NamedTuple):
    """The value of every position of a game, in the order of their hashes; a pytree that compiled programs take."""

    hashes: Any  # uint32[N, 2], ascending by column 0, then 1
    values: Any  # float32[N] in [-1, 1], the view of the player to move (or who would be, once the game is over)


@functools.lru_cache(maxsize=4)
def solve(game: Game, most_positions: int = MOST_POSITIONS) -> Solution:
    """Returns the value of every position that can be reached; a game cut off by `max_plies` counts as a draw.

    Raises:
      ValueError: the game has dice, or more positions than `most_positions` or than MOST_BYTES hold.
    """
    return solve_from(
        game, jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(jax.random.key(0))), most_positions
    )


def solve_from(game: Game, states: State, most_positions: int = MOST_POSITIONS) -> Solution:
    """Returns the value of every position that can be reached from states numpy [N, ...], which are in it too.

    Raises:
      ValueError: as `solve`.
    """
    check_no_chance(game)
    layers = _layers(game, states, most_positions)
    after = np.zeros(0, np.float32)
    hashes, values = [], []
    for layer in reversed(layers):
        value = np.take_along_axis(layer.returns, layer.mover[:, None], axis=1)[:, 0]
        if layer.parent.size:
            seen = np.where(layer.same_mover, after[layer.child], -after[layer.child])
            best = np.full(len(value), -np.inf, np.float32)
            np.maximum.at(best, layer.parent, seen)
            value = np.where(np.isfinite(best), best, value)
        hashes.append(layer.hashes)
        values.append(value)
        after = value
    keys, first = np.unique(np.concatenate(hashes), return_index=True)
    return Solution(_split(keys), np.concatenate(values)[first].astype(np.float32))


class _Layer(NamedTuple):
    """The different positions after as many moves, and the moves that lead on to the next layer."""

    hashes: np.ndarray  # uint64[N]
    mover: np.ndarray  # int32[N]
    returns: np.ndarray  # float32[N, 2], zeros unless the game is over there
    parent: np.ndarray  # int[M], of each move: the position before
    child: np.ndarray  # int[M], the position after, in the next layer
    same_mover: np.ndarray  # bool[M]


def _layers(game: Game, states: State, most_positions: int) -> list[_Layer]:
    layers: list[_Layer] = []
    hashes, seen = position_hashes(game, states), facts(game, states)
    most = min(most_positions, MOST_BYTES // state_bytes(game))
    number = size(states)
    while True:
        if not seen.legal.any():
            nothing = np.zeros(0, int)
            return [*layers, _Layer(hashes, seen.mover, seen.returns, nothing, nothing, nothing > 0)]
        made, parents, found, arrived, keys = [], [], [], [], np.zeros(0, np.uint64)
        for part in _parts(seen.legal):
            moved = expand(game, rows(states, part), seen.legal[part])
            made.append(position_hashes(game, moved.states))
            parents.append(part[moved.parent])
            different, first = np.unique(made[-1], return_index=True)
            new = ~np.isin(different, keys)
            found.append(rows(moved.states, first[new]))
            arrived.append(different[new])
            keys = np.sort(np.concatenate([keys, arrived[-1]]), kind="stable")
            if number + len(keys) > most:
                raise ValueError(
                    f"solver: got {game.id}, which has more than {most:,} positions; expected a smaller game"
                )
        states = rows(joined(found), np.argsort(np.concatenate(arrived)))
        number += len(keys)
        parent, child = np.concatenate(parents), np.searchsorted(keys, np.concatenate(made))
        following = facts(game, states)
        same_mover = seen.mover[parent] == following.mover[child]
        layers.append(_Layer(hashes, seen.mover, seen.returns, parent, child, same_mover))
        hashes, seen = keys, following


def _parts(legal: np.ndarray) -> list[np.ndarray]:
    """Returns the positions that have moves, bool[N, A], in parts of about PART moves."""
    going = np.flatnonzero(legal.any(1))
    ends = np.cumsum(legal[going].sum(1)) // PART
    return np.split(going, np.flatnonzero(np.diff(ends)) + 1)


def position_hashes(game: Game, states: State) -> np.ndarray:
    """Returns uint64[N] of positions numpy [N, ...]."""
    pairs = in_chunks(_hasher(game), states).astype(np.uint64)
    return pairs[:, 0] << np.uint64(32) | pairs[:, 1]


def _split(keys: np.ndarray) -> np.ndarray:
    return np.stack([keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)], axis=1).astype(np.uint32)


@functools.lru_cache
def _hasher(game: Game) -> Any:
    del game  # whose states have one form, so that each game has a program of its own
    return jax.jit(hash_states)


def hash_states(states: State) -> jax.Array:
    """Returns uint32[B, 2], two hashes of each state [B, ...]'s words (Murmur3's mixing, with different seeds)."""
    words = []
    for leaf in jax.tree.leaves(states):
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            leaf = jax.lax.bitcast_convert_type(leaf.astype(jnp.float32), jnp.uint32)
        words.append(leaf.reshape(leaf.shape[0], -1).astype(jnp.uint32))
    table = jnp.concatenate(words, axis=1)  # [B, words]
    seeds = jnp.array([[0x9747B28C, 0x3C6EF372]], jnp.uint32)

    def mix(hashed: jax.Array, word: jax.Array) -> tuple[jax.Array, None]:
        k = word[:, None] * jnp.array([[0xCC9E2D51, 0x85EBCA6B]], jnp.uint32)
        k = (k << 15 | k >> 17) * jnp.array([[0x1B873593, 0xC2B2AE35]], jnp.uint32)
        hashed = hashed ^ k
        return (hashed << 13 | hashed >> 19) * jnp.uint32(5) + jnp.uint32(0xE6546B64), None

    hashed, _ = jax.lax.scan(mix, jnp.broadcast_to(seeds, (table.shape[0], 2)), table.T)
    hashed = (hashed ^ hashed >> 16) * jnp.uint32(0x85EBCA6B)
    hashed = (hashed ^ hashed >> 13) * jnp.uint32(0xC2B2AE35)
    return hashed ^ hashed >> 16


def look_up(solution: Solution, states: State) -> jax.Array:
    """Returns float32[B], the values of states [B, ...], the view of the player to move; NaN if one is not there."""
    wanted = hash_states(states)
    hashes = jnp.asarray(solution.hashes)

    def before(place: jax.Array) -> jax.Array:
        """Whether the hash at a place comes before the wanted one."""
        at = hashes[place]
        return (at[:, 0] < wanted[:, 0]) | ((at[:, 0] == wanted[:, 0]) & (at[:, 1] < wanted[:, 1]))

    def halve(ends: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], None]:
        low, high = ends
        middle = (low + high) // 2
        up = before(middle)
        return (jnp.where(up, middle + 1, low), jnp.where(up, high, middle)), None

    zero = jnp.zeros(wanted.shape[:1], jnp.int32)
    last = hashes.shape[0] - 1
    (place, _), _ = jax.lax.scan(halve, (zero, zero + last), None, length=max(last.bit_length(), 1))
    return jnp.where((hashes[place] == wanted).all(1), jnp.asarray(solution.values)[place], jnp.nan)


def action_values(game: Game, solution: Solution, states: State) -> tuple[jax.Array, jax.Array]:
    """Returns what each move is worth, float32[B, A], and whether it ends the game, bool[B, A].

    Worth is the mover's view, -inf where the move is illegal.
    """
    actions = jnp.arange(game.num_actions, dtype=jnp.int32)
    after = jax.vmap(lambda state: jax.vmap(lambda action: game.step(state, action))(actions))(states)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), after)
    legal = jax.vmap(game.legal_action_mask)(states)
    mover = jax.vmap(game.to_move)(states)
    next_mover = jax.vmap(game.to_move)(flat).reshape(legal.shape)
    value = look_up(solution, flat).reshape(legal.shape)
    ends = jax.vmap(game.terminated)(flat).reshape(legal.shape)
    return jnp.where(legal, jnp.where(next_mover == mover[:, None], value, -value), -jnp.inf), ends
