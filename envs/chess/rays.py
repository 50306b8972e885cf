"""Sets of squares moved by a step in eight directions at once.

A set is Bits of two words: rows 0 to 3 and rows 4 to 7, square 32 * word + bit. Words have the shape [] or [8], one set
for each direction of `actions.DIRECTIONS` (N NE E SE S SW W NW) or of `position.KNIGHT`. Under vmap a step is some ten
instructions on [B, 8] words, without any lookup.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import Bits
from envs.chess.actions import DIRECTIONS
from envs.chess.position import KNIGHT

_FARTHEST = 7


class Steps(NamedTuple):
    """Eight steps, ready to be used by `before`."""

    right: np.ndarray  # uint32[8], how far words are shifted to the right, as a rotation
    down: np.ndarray  # bool[8], the step leads to a higher square
    inside: tuple[np.ndarray, np.ndarray]  # uint32[8] each: the squares from which the step stays on the board


def _steps(steps: tuple[tuple[int, int], ...]) -> Steps:
    offsets = np.array([8 * row + column for row, column in steps])
    rows, columns = np.divmod(np.arange(64), 8)
    stays = np.array([((rows + r) // 8 == 0) & ((columns + c) // 8 == 0) for r, c in steps])
    weights = np.uint32(1) << np.arange(32, dtype=np.uint32)
    words = [(stays[:, half] * weights[None]).sum(1).astype(np.uint32) for half in (slice(0, 32), slice(32, 64))]
    return Steps((offsets % 32).astype(np.uint32), offsets > 0, (words[0], words[1]))


SLIDES, LEAPS = _steps(DIRECTIONS), _steps(KNIGHT)
_RAYS = np.zeros((64, 2, 8), np.uint32)  # by square, word and direction
for _square in range(64):
    for _direction, (_row, _column) in enumerate(DIRECTIONS):
        _at = (_square // 8 + _row, _square % 8 + _column)
        while 0 <= _at[0] < 8 and 0 <= _at[1] < 8:
            _word, _bit = divmod(8 * _at[0] + _at[1], 32)
            _RAYS[_square, _word, _direction] |= np.uint32(1 << _bit)
            _at = (_at[0] + _row, _at[1] + _column)
EVEN = np.arange(8) % 2 == 0
"""The directions in which rooks move; bishops move in the others."""


def constant(squares: np.ndarray) -> Bits:
    """Returns the set given as numbers of squares."""
    words = [sum(1 << int(square) % 32 for square in squares if square // 32 == word) for word in (0, 1)]
    return Bits(tuple(jnp.uint32(word) for word in words))


def square(index: jax.Array) -> Bits:
    """Returns the set of one square int32[]; the empty set where the index is negative."""
    bit = jnp.uint32(1) << (index & 31).astype(jnp.uint32)
    return Bits(tuple(jnp.where(index >> 5 == word, bit, jnp.uint32(0)) for word in (0, 1)))


def before(bits: Bits, steps: Steps = SLIDES) -> Bits:
    """Returns for each step the squares from which it leads into the set."""
    low, high = (jnp.broadcast_to(word, (8,)) for word in bits.words)
    # A square s is in the result if s + offset is in the set: the words rotate to the right by the offset modulo 32,
    # and change places where that is negative.
    first, second = jnp.where(steps.down, low, high), jnp.where(steps.down, high, low)
    left = np.uint32(32) - steps.right
    return Bits(
        (
            ((first >> steps.right) | (second << left)) & steps.inside[0],
            ((second >> steps.right) | (first << left)) & steps.inside[1],
        )
    )


def looking(targets: Bits, empty: Bits) -> Bits:
    """Returns for each direction the squares from which a look that way meets a target first, over empty squares."""
    seen = before(targets)
    for _ in range(_FARTHEST - 1):
        seen = before(targets | (empty & seen))
    return seen


def rays_from(single: Bits) -> Bits:
    """Returns for each direction all squares that way from the one square of a set."""
    low, high = (jax.lax.population_count(word - 1).astype(jnp.int32) for word in single.words)
    words = jnp.asarray(_RAYS)[jnp.where(single.words[0] != 0, low, 32 + high)]
    return Bits((words[0], words[1]))


def to_first(rays: Bits, occupied: Bits) -> Bits:
    """Returns the squares of `rays_from` up to the first that is occupied, it included; whole rays where none is."""
    low, high = (rays & occupied).words
    # Where squares grow along the ray, all up to the lowest set bit: x ^ (x - 1), which is all ones for 0.
    up = low ^ (low - 1), jnp.where(low != 0, jnp.uint32(0), high ^ (high - 1))
    # Elsewhere all from the highest set bit on.
    down = jnp.where(high != 0, jnp.uint32(0), _from_highest(low)), _from_highest(high)
    return rays & Bits(tuple(jnp.where(SLIDES.down, a, b) for a, b in zip(up, down, strict=True)))


def _from_highest(word: jax.Array) -> jax.Array:
    for shift in (1, 2, 4, 8, 16):
        word = word | (word >> shift)
    return ~(word >> 1)


def along(by_direction: np.ndarray, bits: Bits) -> Bits:
    """Returns the set in the directions of bool[8], and the empty one in the others."""
    return Bits(tuple(jnp.where(by_direction, word, jnp.uint32(0)) for word in bits.words))


def by_kind(straight: Bits, diagonal: Bits) -> Bits:
    """Returns the one set in the directions of rooks and the other in those of bishops."""
    return Bits(tuple(jnp.where(EVEN, a, b) for a, b in zip(straight.words, diagonal.words, strict=True)))


def where(condition: jax.Array, bits: Bits) -> Bits:
    """Returns the set where bool[] or bool[8] holds, else the empty one."""
    return Bits(tuple(jnp.where(condition, word, jnp.uint32(0)) for word in bits.words))


def union(bits: Bits) -> Bits:
    """Returns the squares that are in the set of any direction."""
    return Bits(tuple(jax.lax.reduce(word, np.uint32(0), jax.lax.bitwise_or, (0,)) for word in bits.words))


def kept_set(bits: Bits) -> Bits:
    """Returns the set, of which no word is all ones, `kept`."""
    return Bits(tuple(kept(word) for word in bits.words))


def kept(words: jax.Array) -> jax.Array:
    """Returns uint32 words, none of them all ones, unchanged: XLA's CPU code then computes them once.

    What several others read, XLA otherwise computes again inside each, or for each of the squares that are read from a
    word; a remainder it takes to be too dear for that. An optimization_barrier does not stop it.
    """
    return jax.lax.rem(words, jnp.full_like(words, 0xFFFFFFFF))


def some(bits: Bits) -> jax.Array:
    """Returns bool of the words' shape: the set is not empty."""
    return functools.reduce(jnp.bitwise_or, bits.words) != 0
