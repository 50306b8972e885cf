"""Boards of many words as one array of rows: what `envs.bitboard` lays out word by word, for boards from 17 columns.

Such a board has a word a row. Laid out word by word a game of 32 x 32 takes minutes to compile; as one array of rows,
seconds.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import Bits, Grid, Places
from envs.core import register_state

FEWEST_COLUMNS = 17
"""From here on a 32-bit word holds one row."""


@register_state
class LongBits(Bits):
    """A set of squares as one word uint32[rows]: bit c of a row is its column c."""

    def any(self) -> jax.Array:
        """Returns bool[]: some square is set."""
        return (self.words[0] != 0).any()

    def count(self) -> jax.Array:
        """Returns int32[], the number of squares set."""
        return jnp.sum(jax.lax.population_count(self.words[0]), dtype=jnp.int32)


@dataclasses.dataclass(frozen=True)
class LongGrid(Grid):
    """A board of `rows` x `columns` squares whose sets are `LongBits`."""

    def constant(self, squares: np.ndarray) -> LongBits:
        """Returns the set given as bool[rows * columns]."""
        weights = np.uint32(1) << np.arange(self.columns, dtype=np.uint32)
        board = np.asarray(squares).reshape(self.rows, self.columns)
        return _long(jnp.asarray((board * weights).sum(1, dtype=np.uint32)))

    def empty(self) -> LongBits:
        return _long(jnp.zeros((self.rows,), jnp.uint32))

    def full(self) -> LongBits:
        return _long(jnp.full((self.rows,), self._whole_row))

    def square(self, index: jax.Array) -> LongBits:
        """Returns the set of one square int32[]; the empty set where the index is negative."""
        row, bit = self._place(index)
        return _long(jnp.where(self._is_row(row), bit, jnp.uint32(0)))

    def first(self, bits: Bits) -> LongBits:
        """Returns the set of the lowest square of `bits`; the empty set if there is none."""
        rows = bits.words[0]
        first = jnp.min(jnp.where(rows != 0, np.arange(self.rows, dtype=np.int32), self.rows))
        return _long(jnp.where(self._is_row(first), rows & (~rows + 1), jnp.uint32(0)))

    def lines_through(self, square: jax.Array) -> LongBits:
        """Returns the row and the column of a square int32[]."""
        row, bit = self._place(square)
        return _long(jnp.where(self._is_row(row), self._whole_row, bit))

    def east(self, bits: Bits) -> LongBits:
        """Moves every square one column to the right; those of the last column leave the board."""
        return _long((bits.words[0] << 1) & self._whole_row)

    def west(self, bits: Bits) -> LongBits:
        """Moves every square one column to the left."""
        return _long(bits.words[0] >> 1)

    def south(self, bits: Bits) -> LongBits:
        """Moves every square one row down."""
        return _long(jnp.concatenate([jnp.zeros((1,), jnp.uint32), bits.words[0][:-1]]))

    def north(self, bits: Bits) -> LongBits:
        """Moves every square one row up."""
        return _long(jnp.concatenate([bits.words[0][1:], jnp.zeros((1,), jnp.uint32)]))

    def places(self, squares: jax.Array | np.ndarray) -> Places:
        """Returns where squares int[...] lie: their row and their column."""
        return Places(*divmod(squares.astype(np.uint32), np.uint32(self.columns)))

    def unpack(self, bits: Bits, order: jax.Array | np.ndarray | Places | None = None) -> jax.Array:
        """Returns bool[len(order)]; entry i is square order[i] (default: all squares)."""
        if order is None:
            return ((bits.words[0][:, None] >> np.arange(self.columns, dtype=np.uint32)[None]) & 1).reshape(-1) != 0
        places = order if isinstance(order, Places) else self.places(order)
        return (bits.words[0][places.word] >> places.bit) & 1 != 0

    def planes(self, *sets: Bits) -> jax.Array:
        """Returns float32[rows, columns, len(sets)], 1 where a square is set."""
        boards = [self.unpack(bits).reshape(self.rows, self.columns) for bits in sets]
        return jnp.stack(boards, axis=-1).astype(jnp.float32)

    def members(self, bits: Bits) -> np.ndarray:
        """Returns bool[squares] of a set on the host: no program is compiled for it."""
        return (np.asarray(bits.words[0])[:, None] >> np.arange(self.columns) & 1).reshape(-1) != 0

    def pack(self, squares: jax.Array) -> LongBits:
        """Returns the set given as bool[squares]."""
        weights = np.uint32(1) << np.arange(self.columns, dtype=np.uint32)
        marked = jnp.where(jnp.asarray(squares).reshape(self.rows, self.columns), weights[None], jnp.uint32(0))
        return _long(jnp.sum(marked, axis=1, dtype=jnp.uint32))

    @property
    def _whole_row(self) -> jax.Array:
        return jnp.uint32((1 << self.columns) - 1)

    def _is_row(self, row: jax.Array) -> jax.Array:
        """Returns bool[rows], where it is this one, int32[]."""
        return np.arange(self.rows, dtype=np.int32) == row

    def _place(self, square: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the row of a square, -1 or less where its number is negative, and the bit of its column."""
        square = jnp.asarray(square, jnp.int32)
        return square // self.columns, jnp.uint32(1) << (square % self.columns).astype(jnp.uint32)


def _long(rows: jax.Array) -> LongBits:
    return LongBits((rows,))


def grid_of(rows: int, columns: int) -> Grid:
    """Returns the board's grid: words as long as several rows fit into one, else rows."""
    return Grid(rows, columns) if columns < FEWEST_COLUMNS else LongGrid(rows, columns)
