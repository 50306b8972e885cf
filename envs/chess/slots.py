"""The legal moves as a list in ascending order, without a sort or a pass over all 4,672 actions.

A side has at most 16 pieces. For each, in the order of squares, three words hold the planes of its legal moves: the
first 28, the next 28 and the last 17. The pieces' numbers of moves, added up, tell which piece a slot belongs to; the
slot is then one set bit of its words, found by halving.
"""

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import Bits
from envs.chess.actions import NUM_PLANES
from envs.chess.legal import LegalMoves
from envs.chess.rays import kept

_PIECES = 16
_SHIFTS = 7 * (np.arange(8, dtype=np.uint32) % 4)
_LEAP = np.uint32(1) << np.arange(8, dtype=np.uint32)
_STEP = np.zeros(8, np.uint32)
_STEP[[7, 0, 1]] = np.uint32(0b1001001 << 8) << np.arange(3, dtype=np.uint32)  # knight, bishop, rook, moving NW, N, NE


def slots_of(moves: LegalMoves, own: Bits, slots: int) -> jax.Array:
    """Returns int16[slots], the actions of the legal moves, padded with -1.

    Args:
      own: the squares of the mover's pieces, at most 16.
    """
    squares = _squares(own)
    low, bit = (squares < 32)[:, None], (squares & 31).astype(jnp.uint32)[:, None]

    def of_pieces(bits: Bits) -> jax.Array:
        """Returns uint32[16, 8], 1 where the piece's square is in a direction's set."""
        words = [jnp.broadcast_to(kept(word)[None], (_PIECES, 8)) for word in bits.words]
        return (jnp.where(low, words[0], words[1]) >> bit) & 1

    by_direction = jnp.zeros((_PIECES, 8), jnp.uint32)
    for distance, bits in enumerate(moves.slides):
        by_direction = by_direction | of_pieces(bits) << np.uint32(distance)
    by_direction = by_direction << _SHIFTS[None]
    others = of_pieces(moves.leaps) * _LEAP[None] | of_pieces(moves.promotions) * _STEP[None]
    words = [kept(part.sum(1, dtype=jnp.uint32)) for part in (by_direction[:, :4], by_direction[:, 4:], others)]
    words = [jnp.where(squares < 64, word, 0) for word in words]
    counts = [jax.lax.population_count(word).astype(jnp.int32) for word in words]
    numbers = counts[0] + counts[1] + counts[2]
    earlier = np.tri(_PIECES, k=-1, dtype=bool)
    starts = jnp.sum(jnp.where(earlier, numbers[None], 0), axis=1, dtype=jnp.int32)
    total = numbers.sum(dtype=jnp.int32)

    slot = jnp.arange(slots, dtype=jnp.int32)
    # Of the pieces whose first slot is not behind this one the last that has a move: later ones overwrite.
    first, second, third, start, square = (
        jnp.broadcast_to(values[0], (slots,)) for values in (*words, starts, squares.astype(jnp.int32))
    )
    for piece in range(1, _PIECES):
        here = slot >= jnp.where(numbers[piece] > 0, starts[piece], slots)
        first, second, third = (
            jnp.where(here, word[piece], chosen) for word, chosen in zip(words, (first, second, third), strict=True)
        )
        start, square = jnp.where(here, starts[piece], start), jnp.where(here, squares[piece], square)
    rank = slot - start
    in_first = jax.lax.population_count(first).astype(jnp.int32)
    in_second = in_first + jax.lax.population_count(second).astype(jnp.int32)
    word = jnp.where(rank < in_first, first, jnp.where(rank < in_second, second, third))
    plane = jnp.where(rank < in_first, 0, jnp.where(rank < in_second, 28, 56))
    rank = rank - jnp.where(rank < in_first, 0, jnp.where(rank < in_second, in_first, in_second))
    action = square * NUM_PLANES + plane + _position_of_bit(word, rank)
    return jnp.where(slot < total, action, -1).astype(jnp.int16)


def _squares(own: Bits) -> jax.Array:
    """Returns int32[16], the squares of a set in ascending order, 64 where there are no more."""
    low, high = own.words
    below = np.uint32(1) << np.arange(32, dtype=np.uint32)
    counts = [jax.lax.population_count(word & (below - 1)).astype(jnp.int32) for word in own.words]
    before_high = jax.lax.population_count(low).astype(jnp.int32)
    ranks = jnp.concatenate([counts[0], counts[1] + before_high])
    there = jnp.concatenate([low & below, high & below]) != 0
    rank = jnp.where(there, ranks, -1)
    found = rank[None] == np.arange(_PIECES, dtype=np.int32)[:, None]
    squares = np.arange(64, dtype=np.int32)
    return jnp.min(jnp.where(found, squares[None], 64), axis=1)


def _position_of_bit(word: jax.Array, rank: jax.Array) -> jax.Array:
    """Returns int32, where the set bit is that has `rank` set bits below it."""
    position = jnp.zeros_like(rank)
    for width in (16, 8, 4, 2, 1):
        below = jax.lax.population_count(word & np.uint32((1 << width) - 1)).astype(jnp.int32)
        higher = rank >= below
        rank = jnp.where(higher, rank - below, rank)
        word = jnp.where(higher, word >> width, word)
        position = position + jnp.where(higher, width, 0)
    return position
