"""Othello: a disc must outflank enemy discs, and all that it outflanks change colour; most discs win.

. . . . . . . .   Action = square = row * size + column, row 0 on top; size * size = pass. Black (player 0) starts.
. . . . . . . .
. . . + . . . .   A disc is placed where, in at least one of the eight directions, a row of enemy discs without a gap
. . + O X . . .   ends at an own disc (+: Black's four first moves); all such rows change colour.
. . . X O + . .
. . . . + . . .   A player without such a square passes, and only then. The game ends at once when neither side has one.
. . . . . . . .
. . . . . . . .
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import Bits, Grid, select
from envs.core import (
    RULES_BOUND,
    Game,
    Symmetry,
    absorb,
    check_max_plies,
    column_name,
    game_id,
    register_state,
    square_name,
    two_player_returns,
)

_MAX_SIZE = 32
_UNROLLED_SIZE = 10  # up to here a walk over enemy discs is laid out step by step; beyond, all are one loop of arrays
_DIRECTIONS = (
    (Grid.north,),
    (Grid.south,),
    (Grid.east,),
    (Grid.west,),
    (Grid.north, Grid.east),
    (Grid.north, Grid.west),
    (Grid.south, Grid.east),
    (Grid.south, Grid.west),
)
_STEPS = tuple((down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0))  # the same


@register_state
class OthelloState:
    """One position."""

    mine: Bits  # discs of the player to move
    theirs: Bits  # discs of the other
    ply: jax.Array  # int16[], passes counted
    over: jax.Array  # bool[], neither side can place a disc


_RULES = """\
Black, the first player, and White have two discs each in the middle. A disc
must be placed where it shuts in a line of enemy discs, without gaps, between
itself and another own disc, in any of eight directions; all that are shut in
change colour. Who has no such square passes, and only then. The game ends when
neither side can move; most discs win.

Black is X in the terminal, White O. Moves: `a1` (top left) to `h8`, `pass`.
"""


@dataclasses.dataclass(frozen=True)
class Othello(Game):
    """Othello on a board of any even size. Planes: my discs, their discs."""

    size: int = 8
    max_plies: int = RULES_BOUND

    rules = _RULES
    legend = "X and O: discs, Black's and White's; +: the mover may place there; .: empty."

    def __post_init__(self):
        size = self.size
        if isinstance(size, bool) or not isinstance(size, int) or not 4 <= size <= _MAX_SIZE or size % 2:
            raise ValueError(f"othello: size: got {size!r}, expected an even number from 4 to {_MAX_SIZE}")
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, self._longest))

    @property
    def _longest(self) -> int:
        """Every square but four is filled, and between two discs there is one pass at most."""
        return 2 * (self.size**2 - 4) - 1

    @property
    def id(self) -> str:
        return game_id("othello", self, plies=self._longest)

    @property
    def num_actions(self) -> int:
        return self.size**2 + 1

    @property
    def max_legal_actions(self) -> int:
        return self.size**2 - 4

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        return (self.size, self.size, 2)

    @functools.cached_property
    def grid(self) -> Grid:
        return Grid(self.size, self.size)

    @functools.cached_property
    def _grid_and_pass(self) -> Grid:
        """The board and one row more, whose first square has the number of the pass."""
        return Grid(self.size + 1, self.size)

    def init(self, rng_key: jax.Array) -> OthelloState:
        del rng_key
        low, high = self.size // 2 - 1, self.size // 2
        row, column = np.divmod(np.arange(self.size**2), self.size)
        middle = (low <= row) & (row <= high) & (low <= column) & (column <= high)
        black = self.grid.constant(middle & (row != column))
        white = self.grid.constant(middle & (row == column))
        return OthelloState(black, white, jnp.int16(0), jnp.bool_(False))

    def step(self, state: OthelloState, action: jax.Array) -> OthelloState:
        disc = self.grid.square(jnp.where(action < self.size**2, action, -1))
        turned = self._outflanked(disc, state.mine, state.theirs)
        next_state = OthelloState(
            mine=state.theirs & ~turned,
            theirs=state.mine | disc | turned,
            ply=state.ply + jnp.int16(1),
            over=state.over,
        )
        kept = absorb(self.terminated(state), state, next_state)
        # Of the boards that are kept, so that XLA shares it with the legal mask of the result.
        playable = self._placements(kept.mine, kept.theirs) | self._placements(kept.theirs, kept.mine)
        return dataclasses.replace(kept, over=~playable.any())

    def legal_action_mask(self, state: OthelloState) -> jax.Array:
        grid, squares = self._grid_and_pass, self._placements(state.mine, state.theirs)
        more_words = (jnp.uint32(0),) * (grid.num_words - self.grid.num_words)
        can_pass = select(squares.any(), grid.empty(), grid.square(jnp.int32(self.size**2)))
        actions = select(self.terminated(state), grid.empty(), Bits(squares.words + more_words) | can_pass)
        # One expression for squares and pass: with the pass appended, XLA works the squares out once for each of them,
        # and step, mask and observation take 0.53 us a position, not 0.37.
        return grid.unpack(actions, np.arange(self.num_actions, dtype=np.int32))

    def to_move(self, state: OthelloState) -> jax.Array:
        return (state.ply % 2).astype(jnp.int32)

    def terminated(self, state: OthelloState) -> jax.Array:
        return state.over | (state.ply >= self.max_plies)

    def truncated(self, state: OthelloState) -> jax.Array:
        return ~state.over & (state.ply >= self.max_plies)

    def returns(self, state: OthelloState) -> jax.Array:
        lead = state.mine.count() - state.theirs.count()
        mover = self.to_move(state)
        return two_player_returns(state.over & (lead != 0), winner=jnp.where(lead > 0, mover, 1 - mover))

    def observe(self, state: OthelloState) -> jax.Array:
        return self.grid.planes(state.mine, state.theirs)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The eight symmetries of the square. Four keep the starting position; the rules are alike under all."""
        squares = np.arange(self.size**2, dtype=np.int16).reshape(self.size, self.size)

        def turned(quarters: int, mirrored: bool) -> Symmetry:
            def transform(board, numpy):
                return numpy.flip(numpy.rot90(board, quarters), 1) if mirrored else numpy.rot90(board, quarters)

            permutation = np.append(transform(squares, np), np.int16(self.size**2))
            return Symmetry(lambda observation: transform(observation, jnp), permutation)

        return tuple(turned(quarters, mirrored) for mirrored in (False, True) for quarters in range(4))

    def action_name(self, action: int) -> str:
        return "pass" if action == self.size**2 else square_name(action, self.size)

    def render(self, state: OthelloState) -> str:
        black, white = (state.mine, state.theirs) if int(self.to_move(state)) == 0 else (state.theirs, state.mine)
        marks = np.where(np.asarray(self.grid.unpack(white)), "O", ".")
        marks = np.where(np.asarray(self.grid.unpack(black)), "X", marks)
        marks = np.where(np.asarray(self.legal_action_mask(state))[:-1], "+", marks).reshape(self.size, self.size)
        counts = f"X {int(black.count())}, O {int(white.count())}"
        letters = "   " + " ".join(column_name(column) for column in range(self.size))
        return "\n".join([letters, *(f"{row + 1:>2} {' '.join(line)}" for row, line in enumerate(marks)), counts])

    def _walked(self, start: Bits, theirs: Bits, direction: tuple) -> Bits:
        """Returns the discs of `theirs` that stand without a gap from the squares of `start` in a direction."""
        reached = self._moved(start, direction) & theirs
        for _ in range(self.size - 3):  # a row between two discs has size - 2 at most
            reached = reached | (self._moved(reached, direction) & theirs)
        return reached

    def _moved(self, bits: Bits, direction: tuple) -> Bits:
        return functools.reduce(lambda moved, move: move(self.grid, moved), direction, bits)

    def _placements(self, mine: Bits, theirs: Bits) -> Bits:
        """Returns the empty squares on which a disc of `mine` outflanks one of `theirs`."""
        if self.size > _UNROLLED_SIZE:
            ends = self.grid.from_rows(functools.reduce(jnp.bitwise_or, self._long_walks(mine, theirs).behind))
        else:
            moved = (self._moved(self._walked(mine, theirs, direction), direction) for direction in _DIRECTIONS)
            ends = functools.reduce(Bits.__or__, moved)
        return ends & ~(mine | theirs)

    def _outflanked(self, disc: Bits, mine: Bits, theirs: Bits) -> Bits:
        """Returns the discs of `theirs` that change colour when `disc` is placed; none for the empty set (a pass)."""
        if self.size > _UNROLLED_SIZE:
            walks = self._long_walks(disc, theirs)
            closed = ((walks.behind & self.grid.to_rows(mine)[None]) != 0).any(1, keepdims=True)
            return self.grid.from_rows(functools.reduce(jnp.bitwise_or, jnp.where(closed, walks.reached, 0)))
        turned = self.grid.empty()
        for direction in _DIRECTIONS:
            row = self._walked(disc, theirs, direction)
            closed = (self._moved(row, direction) & mine).any()
            turned = turned | select(closed, row, self.grid.empty())
        return turned

    def _long_walks(self, start: Bits, theirs: Bits) -> "_Walks":
        """Returns `_walked` for each of the eight directions at once, as one loop over arrays.

        A board of 32 x 32 has as many words: laid out word by word and direction by direction, the step takes a minute
        to compile.
        """
        row_bits = np.uint32(2**self.size - 1)
        nothing = jnp.zeros(1, jnp.uint32)

        def moved(rows: jax.Array, down: int, right: int) -> jax.Array:
            if down:
                rows = jnp.concatenate([nothing, rows[:-1]] if down > 0 else [rows[1:], nothing])
            return rows << 1 & row_bits if right > 0 else rows >> 1 if right < 0 else rows

        def all_moved(walks: jax.Array) -> jax.Array:
            return jnp.stack([moved(rows, *step) for rows, step in zip(walks, _STEPS, strict=True)])

        own, enemy = self.grid.to_rows(start)[None], self.grid.to_rows(theirs)[None]
        first = all_moved(jnp.broadcast_to(own, (len(_STEPS), self.size))) & enemy
        reached = jax.lax.fori_loop(0, self.size - 3, lambda _, walks: walks | (all_moved(walks) & enemy), first)
        return _Walks(reached, all_moved(reached))


class _Walks(NamedTuple):
    """From a set of squares in each of the eight directions; boards as rows of bits."""

    reached: jax.Array  # uint32[8, size], the discs that stand there without a gap
    behind: jax.Array  # uint32[8, size], the same, one step on


GAME = Othello()
