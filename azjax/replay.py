"""Replay: a ring of the last L plies of every lane, on the device where they were played.

row        0   1   2   3 ... L-1        All lanes share one head. A lane's rows, from the newest back: first its
lane 0     .   .   7   8     .          unfinished game (`pending` rows, never sampled), then finished games, the
lane 1     .   .   2   3     .          oldest of which may already be overwritten in part.
"""

from typing import Any

import jax
import jax.numpy as jnp

from azjax.selfplay import PlyResult
from azjax.targets import outcome_for
from azjax.types import Position
from envs.core import register_state


@register_state
class Replay:
    """L plies of B lanes."""

    positions: Position  # [L, B]
    outcome: jax.Array  # float32[L, B], z of the mover; 0 until the game is over
    has_outcome: jax.Array  # bool[L, B], over by the rules
    head: jax.Array  # int32[], the row written next
    filled: jax.Array  # int32[], rows that hold a position, at most L
    pending: jax.Array  # int32[B], plies of the game in progress


@register_state
class Drawn:
    """Positions drawn from replay."""

    position: Position  # [M]
    outcome: jax.Array  # float32[M], the mover's view
    has_outcome: jax.Array  # bool[M]
    ready: jax.Array  # bool[], False while no position is finished: then the rest means nothing


def start_replay(position: Position, plies: int, max_plies: int) -> Replay:
    """Returns an empty ring for positions shaped as `position` [B].

    Raises:
      ValueError: a whole game does not fit.
    """
    if plies < max_plies + 1:
        raise ValueError(
            f"replay.plies: got {plies}, expected at least {max_plies + 1} (a game has up to {max_plies} plies)"
        )
    num_lanes = position.mover.shape[0]

    def ring(leaf: Any) -> jax.Array:
        return jnp.zeros((plies, *leaf.shape), leaf.dtype)

    return Replay(
        positions=jax.tree.map(ring, position),
        outcome=jnp.zeros((plies, num_lanes), jnp.float32),
        has_outcome=jnp.zeros((plies, num_lanes), jnp.bool_),
        head=jnp.int32(0),
        filled=jnp.int32(0),
        pending=jnp.zeros((num_lanes,), jnp.int32),
    )


def write(replay: Replay, result: PlyResult) -> Replay:
    """Writes one ply of every lane, and the outcome of the games it ended over all their plies."""
    num_rows = replay.outcome.shape[0]
    positions = jax.tree.map(lambda ring, new: ring.at[replay.head].set(new), replay.positions, result.position)
    outcome = replay.outcome.at[replay.head].set(0.0)
    length = replay.pending + 1
    age = (replay.head - jnp.arange(num_rows, dtype=jnp.int32)) % num_rows
    ended = result.over[None, :] & (age[:, None] < length[None, :])
    z = outcome_for(jnp.broadcast_to(result.returns[None], (*outcome.shape, 2)), positions.mover)
    return Replay(
        positions=positions,
        outcome=jnp.where(ended, z, outcome),
        has_outcome=jnp.where(ended, ~result.truncated[None, :], replay.has_outcome),
        head=(replay.head + 1) % num_rows,
        filled=jnp.minimum(replay.filled + 1, num_rows),
        pending=jnp.where(result.over, 0, length),
    )


def draw(replay: Replay, rng_key: jax.Array, num_samples: int) -> Drawn:
    """Draws positions of finished games, uniformly and with replacement.

    Args:
      replay: [L, B].
      rng_key: consumed.
      num_samples: M.
    """
    num_rows = replay.outcome.shape[0]
    count = jnp.maximum(replay.filled - replay.pending, 0)
    end = jnp.cumsum(count, dtype=jnp.int32)
    total = end[-1]
    drawn = jax.random.randint(rng_key, (num_samples,), 0, jnp.maximum(total, 1))
    lane = jnp.minimum(jnp.searchsorted(end, drawn, side="right"), count.shape[0] - 1)
    age = replay.pending[lane] + drawn - (end[lane] - count[lane])
    row = (replay.head - 1 - age) % num_rows
    return Drawn(
        position=jax.tree.map(lambda ring: ring[row, lane], replay.positions),
        outcome=replay.outcome[row, lane],
        has_outcome=replay.has_outcome[row, lane],
        ready=total > 0,
    )
