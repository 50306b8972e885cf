"""Boards of many words as one array of rows: what `envs.bitboard` lays out word by word, for boards from 17 columns.

Such a board has a word a row. Laid out word by word a game of 32 x 32 takes minutes to compile; as one array of rows,
seconds.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import WORD_BITS, Bits, Grid
from envs.core import register_state

FEWEST_COLUMNS = 17
"""From here on a 32-bit word holds one row."""


@register_state
class LongBits:
    """A set of squares, with the operations of `Bits`."""

    rows: jax.Array  # uint32[rows], bit c of a row is its column c

    def __and__(self, other: "LongBits") -> "LongBits":
        return LongBits(self.rows & other.rows)

    def __or__(self, other: "LongBits") -> "LongBits":
        return LongBits(self.rows | other.rows)

    def __xor__(self, other: "LongBits") -> "LongBits":
        return LongBits(self.rows ^ other.rows)

    def __invert__(self) -> "LongBits":
        return LongBits(~self.rows)

    def any(self) -> jax.Array:
        """Returns bool[]: some square is set."""
        return (self.rows != 0).any()

    def count(self) -> jax.Array:
        """Returns int32[], the number of squares set."""
        return jnp.sum(jax.lax.population_count(self.rows), dtype=jnp.int32)


@dataclasses.dataclass(frozen=True)
class LongGrid:
    """A board of `rows` x `columns` squares, with the operations of `Grid`."""

    rows: int
    columns: int

    def __post_init__(self):
        if not (1 <= self.columns <= WORD_BITS and self.rows >= 1):
            raise ValueError(f"grid: got {self.rows} x {self.columns}, expected 1 to {WORD_BITS} columns")

    @property
    def squares(self) -> int:
        return self.rows * self.columns

    def constant(self, squares: np.ndarray) -> LongBits:
        """Returns the set given as bool[rows * columns]."""
        weights = np.uint32(1) << np.arange(self.columns, dtype=np.uint32)
        board = np.asarray(squares).reshape(self.rows, self.columns)
        return LongBits(jnp.asarray((board * weights).sum(1, dtype=np.uint32)))

    def empty(self) -> LongBits:
        return LongBits(jnp.zeros((self.rows,), jnp.uint32))

    def full(self) -> LongBits:
        return LongBits(jnp.full((self.rows,), self._whole_row))

    def row(self, row: int) -> LongBits:
        return self.constant(np.arange(self.squares) // self.columns == row)

    def column(self, column: int) -> LongBits:
        return self.constant(np.arange(self.squares) % self.columns == column)

    def square(self, index: jax.Array) -> LongBits:
        """Returns the set of one square int32[]; the empty set where the index is negative."""
        row, bit = self._place(index)
        return LongBits(jnp.where(self._is_row(row), bit, jnp.uint32(0)))

    def lines_through(self, square: jax.Array) -> LongBits:
        """Returns the row and the column of a square int32[]."""
        row, bit = self._place(square)
        return LongBits(jnp.where(self._is_row(row), self._whole_row, bit))

    def east(self, bits: LongBits) -> LongBits:
        """Moves every square one column to the right; those of the last column leave the board."""
        return LongBits((bits.rows << 1) & self._whole_row)

    def west(self, bits: LongBits) -> LongBits:
        """Moves every square one column to the left."""
        return LongBits(bits.rows >> 1)

    def south(self, bits: LongBits) -> LongBits:
        """Moves every square one row down."""
        return LongBits(jnp.concatenate([jnp.zeros((1,), jnp.uint32), bits.rows[:-1]]))

    def north(self, bits: LongBits) -> LongBits:
        """Moves every square one row up."""
        return LongBits(jnp.concatenate([bits.rows[1:], jnp.zeros((1,), jnp.uint32)]))

    def grow(self, bits: LongBits) -> LongBits:
        """Returns the squares set and their orthogonal neighbours."""
        return bits | self.east(bits) | self.west(bits) | self.south(bits) | self.north(bits)

    def unpack(self, bits: LongBits, order: jax.Array | np.ndarray | None = None) -> jax.Array:
        """Returns bool[len(order)]; entry i is square order[i] (default: all squares)."""
        marked = ((bits.rows[:, None] >> np.arange(self.columns, dtype=np.uint32)[None]) & 1).reshape(-1) != 0
        return marked if order is None else marked[order]

    def planes(self, *sets: LongBits) -> jax.Array:
        """Returns float32[rows, columns, len(sets)], 1 where a square is set."""
        boards = [self.unpack(bits).reshape(self.rows, self.columns) for bits in sets]
        return jnp.stack(boards, axis=-1).astype(jnp.float32)

    def members(self, bits: LongBits) -> np.ndarray:
        """Returns bool[squares] of a set on the host: no program is compiled for it."""
        return (np.asarray(bits.rows)[:, None] >> np.arange(self.columns) & 1).reshape(-1) != 0

    def pack(self, squares: jax.Array) -> LongBits:
        """Returns the set given as bool[squares]."""
        weights = np.uint32(1) << np.arange(self.columns, dtype=np.uint32)
        marked = jnp.where(jnp.asarray(squares).reshape(self.rows, self.columns), weights[None], jnp.uint32(0))
        return LongBits(jnp.sum(marked, axis=1, dtype=jnp.uint32))

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


AnyBits = Bits | LongBits
AnyGrid = Grid | LongGrid


def grid_of(rows: int, columns: int) -> AnyGrid:
    """Returns the board's grid: words as long as several rows fit into one, else rows."""
    return Grid(rows, columns) if columns < FEWEST_COLUMNS else LongGrid(rows, columns)
