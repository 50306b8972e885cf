"""Stones and chains of a Go board, changed by passes over all points at once: no flood fill, no lookup by index.

A point holds 0 or its chain's code, which is the same on all stones of a chain and on no other:

    code = 2 * (number of the chain's latest point + 1) + (1 in atari: the chain has exactly one liberty)

    . O O .        Black's codes are positive, White's negative, in the state. Everything here is in the mover's frame:
    O X . O        own chains positive, the enemy's negative. A move then touches chains by comparing every point with
    . O O .        the four codes around it: those that merge, those that are captured and those that lose a liberty.

Arrays of codes have a row more above and below the board, so that a step to a neighbour is a slice.
"""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import Bits, Grid, select

_OFF_BOARD = 1  # a neighbour's code where there is none: no chain's, and neither a liberty nor of any help to a stone
_NO_CHAIN = np.iinfo(np.int16).min  # no point holds it
_FIELD_BITS = 20
_FIELD_MASK = np.uint32((1 << _FIELD_BITS) - 1)
_FIELD_FACTORS = (0x9E375, 0x5BD1F)  # odd: multiplication by them modulo 2^20 can be undone


@dataclasses.dataclass(frozen=True)
class Board:
    """A board of size x size points; point = row * size + column, row 0 on top."""

    size: int

    @property
    def points(self) -> int:
        return self.size**2

    @property
    def code_entries(self) -> int:
        """Entries of an array of codes: the points, and the rows above and below."""
        return self.points + 2 * self.size

    def on_board(self, codes: jax.Array) -> jax.Array:
        """Returns the entries of the points alone."""
        return codes[self.size : self.size + self.points]

    def neighbours(self, codes: jax.Array, off_board: int = _OFF_BOARD) -> list[jax.Array]:
        """Returns four arrays [points]: the entry above, below, left and right of each; `off_board` at the edge."""
        row, column = np.divmod(np.arange(self.points), self.size)
        last = self.size - 1
        steps = ((-self.size, row > 0), (self.size, row < last), (-1, column > 0), (1, column < last))
        return [
            jnp.where(inside, codes[self.size + step : self.size + step + self.points], off_board)
            for step, inside in steps
        ]

    def place(self, codes: jax.Array, point: jax.Array, suicide: bool) -> jax.Array:
        """Returns the codes after a stone of the mover, still in the mover's frame.

        Args:
          codes: int16[code_entries].
          point: int32[], an empty point; a pass (`points`) changes nothing.
          suicide: whether a stone may leave its own chain without a liberty, which then comes off.
        """
        around = self._around(codes, point)
        after = self.stones_after(codes, point, suicide, around)
        placed = _new_code(point)
        # The chains whose liberties became fewer or were put together: the new one, and enemies that were not in atari.
        touched = [placed, *(jnp.where((code < 0) & (code & 1 == 0), code, _NO_CHAIN) for code in around)]
        counts = self._count_liberties(after, touched)
        in_atari = [jnp.where(count == 1, code, _NO_CHAIN) for code, count in zip(touched, counts, strict=True)]
        if suicide:
            # A suicide ends with its point empty: the enemies around it keep the liberty.
            stands = _is_any(after, [placed]).any()
            in_atari = [jnp.where(stands, code, _NO_CHAIN) for code in in_atari]
        # Relieved first: the new chain may be in atari though it captured.
        after = self._relieve(after, self._beside_removed(codes, after))
        return jnp.where(_is_any(after, in_atari), after + jnp.sign(after), after)

    def stones_after(
        self, codes: jax.Array, point: jax.Array, suicide: bool, around: Sequence[jax.Array] | None = None
    ) -> jax.Array:
        """Returns `place`'s codes but for whether a chain is in atari."""
        around = self._around(codes, point) if around is None else around
        captured = [jnp.where((code < 0) & (code & 1 == 1), code, _NO_CHAIN) for code in around]
        joined = [jnp.where(code > 0, code, _NO_CHAIN) for code in around]
        placed = _new_code(point)
        after = jnp.where(_is_any(codes, joined) | self._is_at(point), placed, codes)
        after = jnp.where(_is_any(codes, captured), jnp.int16(0), after)
        if suicide:
            (liberties,) = self._count_liberties(after, [placed])
            after = jnp.where((after == placed) & (liberties == 0), jnp.int16(0), after)
        return after

    def playable(self, codes: jax.Array, suicide: bool) -> jax.Array:
        """Returns bool[points]: empty points where the rules but superko let the mover put a stone."""
        blocked = jnp.int16(1)
        beside_own = jnp.bool_(False)
        for code in self.neighbours(codes):
            # Sign and lowest bit agree on what lets a stone live: an empty point (0), an own chain not in atari
            # (positive, even), an enemy chain in atari (negative, odd).
            blocked = blocked & (code ^ (code >> 15))
            beside_own = beside_own | (code > 1)
        lives = blocked == 0
        return (self.on_board(codes) == 0) & (lives | beside_own if suicide else lives)

    def suicides(self, codes: jax.Array) -> jax.Array:
        """Returns bool[points]: the points where the mover's stone and the chains that it joins would come off."""
        return self.playable(codes, suicide=True) & ~self.playable(codes, suicide=False)

    def hash(self, codes: jax.Array) -> jax.Array:
        """Returns uint32[2], a hash of the stones, from codes in which Black is positive."""
        codes = self.on_board(codes)[None]
        black, white = self._zobrist
        marks = jnp.where(codes > 0, black, jnp.where(codes < 0, white, np.uint32(0)))
        return jnp.sum(marks, axis=1, dtype=jnp.uint32)

    def one_stone_more(self, own_words: jax.Array, own_word: jax.Array) -> jax.Array:
        """Returns int32[n]: q + 1 where words tell that the mover had just the stones of now and one on q; else 0.

        The low 20 bits of the mover's own word are a sum over the mover's stones alone, of a number that tells the
        point. So the difference of two such words names the point, whatever was captured. Chance names a point in 1 of
        2,900 pairs (9x9: 13,000), which then has to be looked at.

        Args:
          own_words: uint32[n], word 0 of earlier positions' hashes for Black, word 1 for White.
          own_word: uint32[], the same of the position now.
        """
        named = _unmixed(own_words - own_word)
        return jnp.where(named <= self.points, named.astype(jnp.int32), 0)

    def area(self, codes: jax.Array, wanted: jax.Array) -> jax.Array:
        """Returns int32[]: Black's area minus White's: stones, and empty points that reach one colour alone.

        Args:
          codes: int16[code_entries], Black positive.
          wanted: bool[]; where False the result is not to be used, and the loop does not wait for it.
        """
        stones = self.on_board(codes)
        black, white = self.grid.pack(stones > 0), self.grid.pack(stones < 0)
        empty = select(wanted, self.grid.full() & ~(black | white), self.grid.empty())

        def spread(reached: Bits) -> Bits:
            return reached | (self.grid.grow(reached) & empty)

        def body(carry: tuple[Bits, Bits, jax.Array]) -> tuple[Bits, Bits, jax.Array]:
            old_black, old_white, _ = carry
            new_black, new_white = spread(spread(old_black)), spread(spread(old_white))
            return new_black, new_white, ((new_black ^ old_black) | (new_white ^ old_white)).any()

        black, white, _ = jax.lax.while_loop(lambda carry: carry[2], body, (black, white, empty.any()))
        return black.count() - white.count()

    @functools.cached_property
    def grid(self) -> Grid:
        return Grid(self.size, self.size)

    @functools.cached_property
    def _zobrist(self) -> np.ndarray:
        """uint32[colour, word, point]. Fixed by arithmetic, so that stored positions outlive any random generator.

        The upper 12 bits of both words are random; the lower 20 are the point's number, mixed, in the colour's own word
        and 0 in the other.
        """
        index = np.arange(4 * self.points, dtype=np.uint64).reshape(2, 2, self.points)
        mixed = (index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        words = (mixed >> np.uint64(32)).astype(np.uint32) >> np.uint32(_FIELD_BITS) << np.uint32(_FIELD_BITS)
        field = _mixed(np.arange(1, self.points + 1, dtype=np.uint32))
        words[0, 0] |= field
        words[1, 1] |= field
        return words

    def _is_at(self, point: jax.Array) -> jax.Array:
        """Returns bool[code_entries]: the entry of a point; none for a pass."""
        entry = jnp.where(point < self.points, point + self.size, -1)
        return np.arange(self.code_entries, dtype=np.int32) == entry

    def _around(self, codes: jax.Array, point: jax.Array) -> list[jax.Array]:
        """Returns the four codes int16[] around a point, 0 off the board and for a pass."""
        entries = np.arange(self.code_entries, dtype=np.int32)
        column = point % self.size
        entry = point + self.size
        nowhere = jnp.int32(-1)
        passed = point >= self.points
        targets = (
            jnp.where(passed, nowhere, entry - self.size),
            jnp.where(passed, nowhere, entry + self.size),
            jnp.where(passed | (column == 0), nowhere, entry - 1),
            jnp.where(passed | (column == self.size - 1), nowhere, entry + 1),
        )
        return [jnp.sum(jnp.where(entries == target, codes, 0), dtype=jnp.int16) for target in targets]

    def _count_liberties(self, codes: jax.Array, chains: Sequence[jax.Array]) -> list[jax.Array]:
        """Returns int32[] for each code int16[], the liberties of the chain that has it."""
        empty = self.on_board(codes) == 0
        neighbours = self.neighbours(codes)
        counts = []
        for first in range(0, len(chains), 3):  # three counts of up to 10 bits in one sum
            packed = jnp.zeros(self.points, jnp.int32)
            for place, code in enumerate(chains[first : first + 3]):
                beside = functools.reduce(jnp.bitwise_or, [neighbour == code for neighbour in neighbours])
                packed = packed + jnp.where(empty & beside, jnp.int32(1 << 10 * place), 0)
            total = jnp.sum(packed, dtype=jnp.int32)
            counts += [(total >> 10 * place) & 1023 for place in range(len(chains[first : first + 3]))]
        return counts

    def _beside_removed(self, codes: jax.Array, after: jax.Array) -> jax.Array:
        """Returns bool[points]: next to a point that had a stone before the move and has none after it."""
        removed = (codes != 0) & (after == 0)
        return functools.reduce(jnp.bitwise_or, self.neighbours(removed, off_board=False))

    def _relieve(self, codes: jax.Array, beside_removed: jax.Array) -> jax.Array:
        """Returns codes in which chains in atari beside removed stones are not: each got a second liberty."""
        chain = jnp.abs(self.on_board(codes))
        relieved = jnp.where(beside_removed & (chain & 1 == 1), chain, 0)

        def body(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            codes, code = carry
            return jnp.where(jnp.abs(codes) == code, codes - jnp.sign(codes), codes), _largest_below(relieved, code)

        first = _largest_below(relieved, jnp.int16(np.iinfo(np.int16).max))
        return jax.lax.while_loop(lambda carry: carry[1] > 0, body, (codes, first))[0]


def _mixed(number: np.ndarray) -> np.ndarray:
    """Returns uint32, 20 bits each: sums of them are as good as random, and `_unmixed` finds a single one again."""
    first, second = _FIELD_FACTORS
    product = number * np.uint32(first) & _FIELD_MASK
    return (product ^ product >> np.uint32(_FIELD_BITS // 2)) * np.uint32(second) & _FIELD_MASK


def _unmixed(field: jax.Array) -> jax.Array:
    """Undoes `_mixed`, of the low 20 bits of uint32."""
    first, second = (np.uint32(pow(factor, -1, 1 << _FIELD_BITS)) for factor in _FIELD_FACTORS)
    product = field * second & _FIELD_MASK
    return (product ^ product >> np.uint32(_FIELD_BITS // 2)) * first & _FIELD_MASK


def _new_code(point: jax.Array) -> jax.Array:
    return (2 * (point + 1)).astype(jnp.int16)


def _is_any(codes: jax.Array, chains: Sequence[jax.Array]) -> jax.Array:
    """Returns bool of codes' shape: the point is of one of the chains."""
    return functools.reduce(jnp.bitwise_or, [codes == chain for chain in chains])


def _largest_below(values: jax.Array, bound: jax.Array) -> jax.Array:
    """Returns the largest value under `bound`, or 0."""
    return jnp.max(jnp.where(values < bound, values, 0))
