"""Crosshair: a connection game in which the last stone decides where the next one may go.

Red (player 0) joins the top and bottom rows, Blue (player 1) the left and right columns, by orthogonal chains.

    ..R....   A stone must be placed on an empty square in the row or the column of the opponent's last stone (the
    .BR.B..   crosshair); where there is none, and on the first move, on any empty square.
    ..?R...   Pinch: an enemy stone directly between the stone just placed and another own stone, in one of the four
    .B.....   orthogonal directions, changes colour. Crosscut: while a 2 x 2 square shows a checkerboard, the enemy's
              two stones of all checkerboards change colour at once. Then the mover wins if their sides are joined.

There are no draws: a full board without checkerboards joins exactly one pair of sides.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
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
)
from envs.long_board import grid_of

_MAX_SIZE = 32


@register_state
class CrosshairState:
    """One position."""

    red: Bits  # stones of player 0
    blue: Bits  # stones of player 1
    last: jax.Array  # int16[], square of the last stone, -1 on the empty board
    ply: jax.Array  # int16[]
    winner: jax.Array  # int8[], the player who joined their sides, -1 while nobody has


Step = Callable[[Bits], Bits]
"""Moves every square of a set one step in a direction."""


class Placement(NamedTuple):
    """What placing a stone does."""

    mine: Bits  # the mover's stones afterwards
    flipped: Bits  # the enemy stones that changed colour


_RULES = """\
Red, the first player, joins the top row to the bottom row with its stones,
Blue the left column to the right one. Stones are joined where they touch along
a side, not at a corner. In a turn:

1. Place a stone of your colour. On the first move, any square. After that, an
   empty square in the row or the column of the stone that your opponent placed
   last: the crosshair. Only if no square there is empty, any empty one.
2. Pinch: where, right beside the stone just placed, above, below, left or
   right, there is one enemy stone and right behind it one of yours, the enemy
   stone turns to your colour.
3. Crosscut: where four stones of a 2 x 2 square now lie like a checkerboard,
   your two and the enemy's two, the enemy's two turn to your colour; in all
   such squares at once, and again, until there is none.
4. If your two sides are joined now, you have won.

No game is a draw. Moves: `a1` (top left) to `g7`.
"""


@dataclasses.dataclass(frozen=True)
class Crosshair(Game):
    """Crosshair on a board of any size. Action = square = row * size + column, in the board's frame.

    Planes, in the mover's frame (the board is transposed for Blue, so that "mine" always joins top and bottom):
    my stones, their stones, legal squares, stones flipped by each legal move / 8, the opponent's last stone,
    ply / squares.
    """

    size: int = 7
    diagonal_pinch: bool = False  # also pinch along the four diagonals
    max_plies: int = RULES_BOUND

    rules = _RULES
    legend = "R and B: stones; [ ]: the last one; +: the mover may place there; .: empty, the mover may not."

    def __post_init__(self):
        if isinstance(self.size, bool) or not isinstance(self.size, int) or not 1 <= self.size <= _MAX_SIZE:
            raise ValueError(f"crosshair: size: got {self.size!r}, expected a whole number from 1 to {_MAX_SIZE}")
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, self.size**2))

    @property
    def id(self) -> str:
        return game_id("crosshair", self, plies=self.size**2)

    @property
    def num_actions(self) -> int:
        return self.size**2

    @property
    def max_legal_actions(self) -> int:
        return self.size**2

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        return (self.size, self.size, 6)

    @functools.cached_property
    def grid(self) -> Grid:
        return grid_of(self.size, self.size)

    def init(self, rng_key: jax.Array) -> CrosshairState:
        del rng_key
        empty = self.grid.empty()
        return CrosshairState(empty, empty, jnp.int16(-1), jnp.int16(0), jnp.int8(-1))

    def step(self, state: CrosshairState, action: jax.Array) -> CrosshairState:
        mover = self.to_move(state)
        mine, theirs = self._mine_and_theirs(state)
        placed = self._place(mine, theirs, self.grid.square(action))
        remaining = theirs & ~placed.flipped
        red_moved = mover == 0
        next_state = CrosshairState(
            red=select(red_moved, placed.mine, remaining),
            blue=select(red_moved, remaining, placed.mine),
            last=action.astype(jnp.int16),
            ply=state.ply + jnp.int16(1),
            winner=jnp.where(self._joined(placed.mine, mover), mover, -1).astype(jnp.int8),
        )
        return absorb(self.terminated(state), state, next_state)

    def legal_action_mask(self, state: CrosshairState) -> jax.Array:
        return self.grid.unpack(self._legal(state))

    def to_move(self, state: CrosshairState) -> jax.Array:
        # Once somebody has won, ply has moved on: the loser is to move.
        return (state.ply % 2).astype(jnp.int32)

    def terminated(self, state: CrosshairState) -> jax.Array:
        return (state.winner >= 0) | self.truncated(state)

    def truncated(self, state: CrosshairState) -> jax.Array:
        return (state.winner < 0) & (state.ply >= self.max_plies)

    def returns(self, state: CrosshairState) -> jax.Array:
        sign = jnp.array([1.0, -1.0], jnp.float32)
        return jnp.where(state.winner < 0, 0.0, jnp.where(state.winner == 0, sign, -sign))

    def observe(self, state: CrosshairState) -> jax.Array:
        mine, theirs = self._mine_and_theirs(state)
        legal = self._legal(state)
        squares = (self.grid.places(order) for order in (np.arange(self.num_actions), self._transposed))
        in_frame = select(self.to_move(state) == 0, *squares)

        def board(bits: Bits) -> jax.Array:
            return self.grid.unpack(bits, in_frame).astype(jnp.int32)

        # Integers until the end: as sums of floats the same takes twice as long.
        digits = [board(digit) << power for power, digit in enumerate(self._flips(mine, theirs, legal))]
        flips = functools.reduce(jnp.add, digits)
        last = self.grid.square(state.last)
        planes = [board(mine), board(theirs), board(legal), flips, board(last), jnp.full_like(flips, state.ply)]
        scale = (1, 1, 1, 8, 1, self.num_actions)
        planes = [plane.astype(jnp.float32) / unit for plane, unit in zip(planes, scale, strict=True)]
        return jnp.stack(planes, axis=-1).reshape(self.observation_shape)

    def policy_index(self, state: CrosshairState) -> jax.Array:
        squares = np.arange(self.num_actions, dtype=np.int16)
        return jnp.where(self.to_move(state) == 0, jnp.asarray(squares), jnp.asarray(self._transposed, jnp.int16))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Identity, left-right, up-down, half turn: those that keep "mine joins top and bottom"."""
        squares = np.arange(self.num_actions, dtype=np.int16).reshape(self.size, self.size)

        def flipped(*axes: int) -> Symmetry:
            return Symmetry(lambda observation: jnp.flip(observation, axes), np.flip(squares, axes).reshape(-1))

        return (flipped(), flipped(1), flipped(0), flipped(0, 1))

    def action_name(self, action: int) -> str:
        return square_name(action, self.size)

    def render(self, state: CrosshairState) -> str:
        red, blue = np.asarray(self.grid.unpack(state.red)), np.asarray(self.grid.unpack(state.blue))
        legal = np.asarray(self.legal_action_mask(state))
        letters = np.where(red, "R", np.where(blue, "B", np.where(legal, "+", ".")))
        lines = ["    " + " ".join(column_name(c) for c in range(self.size)) + "   R joins top-bottom, B left-right"]
        for r in range(self.size):
            cells = []
            for c in range(self.size):
                square = r * self.size + c
                cells.append(f"{'[' if square == int(state.last) else ' '}{letters[square]}")
            row = "".join(cells)
            if int(state.last) // self.size == r and int(state.last) >= 0:
                at = 2 * (int(state.last) % self.size) + 2
                row = row[:at] + "]" + row[at + 1 :] if at < len(row) else row + "]"
            lines.append(f"{r + 1:>2} {row}")
        return "\n".join(lines)

    @functools.cached_property
    def _transposed(self) -> np.ndarray:
        """int32[squares], the square that lies at each of them once the board is transposed."""
        return np.arange(self.num_actions, dtype=np.int32).reshape(self.size, self.size).T.reshape(-1)

    @functools.cached_property
    def _steps(self) -> list[tuple[Step, Step]]:
        """The directions in which a stone pinches: the step there and the step back."""
        grid = self.grid
        vertical: list[tuple[Step, Step]] = [(grid.north, grid.south), (grid.south, grid.north)]
        horizontal: list[tuple[Step, Step]] = [(grid.east, grid.west), (grid.west, grid.east)]
        if not self.diagonal_pinch:
            return vertical + horizontal

        def corner(first: Step, second: Step) -> Step:
            return lambda bits: first(second(bits))

        pairs = itertools.product(vertical, horizontal)
        return vertical + horizontal + [(corner(v, h), corner(back_v, back_h)) for (v, back_v), (h, back_h) in pairs]

    def _mine_and_theirs(self, state: CrosshairState) -> tuple[Bits, Bits]:
        red_moves = self.to_move(state) == 0
        return select(red_moves, state.red, state.blue), select(red_moves, state.blue, state.red)

    def _legal(self, state: CrosshairState) -> Bits:
        empty = self.grid.full() & ~(state.red | state.blue)
        last = state.last.astype(jnp.int32)
        cross = self.grid.lines_through(last) & empty
        squares = select((last >= 0) & cross.any(), cross, empty)
        return select(self.terminated(state), self.grid.empty(), squares)

    def _flips(self, mine: Bits, theirs: Bits, legal: Bits) -> list[Bits]:
        """Returns how many stones a move to each legal square flips, as a binary number: a set for each of its digits.

        Pinches and the first wave of crosscuts are found on all squares at once: what they flip lies right beside the
        stone placed. Only where a second wave follows is a stone placed to see, on one square a position at a time.
        """
        grid = self.grid
        toward = [back for _, back in self._steps]  # squares whose neighbour in that direction is in a set
        pinches = [beside(theirs & beside(mine)) for beside in toward]
        cuts, further, again = [grid.empty()] * 4, [grid.empty()] * 4, grid.empty()
        for vertical, horizontal in itertools.product((0, 1), (2, 3)):
            corner = toward[vertical](toward[horizontal](mine)) & toward[vertical](theirs) & toward[horizontal](theirs)
            cut = corner & ~(pinches[vertical] | pinches[horizontal])
            for direction in (vertical, horizontal):
                cuts[direction], further[direction] = cuts[direction] | cut, further[direction] | corner
        for beside, cut, corners in zip(toward, cuts, further, strict=False):
            again = again | (cut & beside(corners))  # the stone that turned there makes a checkerboard further on
        for pinched in pinches[4:]:  # a stone pinched along a diagonal may be half of any checkerboard
            again = again | pinched
        again = again & legal
        digits = [grid.empty()] * max(self.num_actions.bit_length(), len(pinches).bit_length())
        for pinched, cut in itertools.zip_longest(pinches, cuts, fillvalue=grid.empty()):
            carried = (pinched | cut) & legal & ~again
            for power in range(len(pinches).bit_length()):
                digits[power], carried = digits[power] ^ carried, digits[power] & carried
        powers = np.arange(len(digits), dtype=np.int32)

        def look(carry: tuple[Bits, Bits]) -> tuple[Bits, Bits]:
            left, found = carry
            stone = grid.first(left)
            flipped = self._place(mine, theirs, stone).flipped.count()
            added = jax.vmap(lambda is_set: select(is_set, stone, grid.empty()))(flipped >> powers & 1 != 0)
            return left & ~stone, found | added

        # All digits are one array in the loop: as many arrays would be as many small programs in each turn of it.
        nothing = jax.tree.map(lambda word: jnp.zeros((len(digits), *word.shape), word.dtype), again)
        found = jax.lax.while_loop(lambda carry: carry[0].any(), look, (again, nothing))[1]
        return [digit | jax.tree.map(lambda words, p=p: words[p], found) for p, digit in enumerate(digits)]

    def _place(self, mine: Bits, theirs: Bits, stone: Bits) -> Placement:
        """Places a stone of the mover, pinches, then flips crosscuts in simultaneous waves until none is left."""
        grid = self.grid
        flipped = grid.empty()
        for step, _ in self._steps:
            between, anchor = step(stone), step(step(stone))
            flipped = flipped | select((between & theirs).any() & (anchor & mine).any(), between, grid.empty())

        def crosscut(bits: tuple[Bits, Bits]) -> Bits:
            own, enemy = bits  # a checkerboard is named by its top-left square
            own_falling = own & grid.west(grid.north(own)) & grid.west(enemy) & grid.north(enemy)
            own_rising = enemy & grid.west(grid.north(enemy)) & grid.west(own) & grid.north(own)
            turned = grid.east(own_falling) | grid.south(own_falling) | own_rising | grid.east(grid.south(own_rising))
            return turned & enemy

        def body(carry):
            own, enemy, turning = carry
            own, enemy = own | turning, enemy & ~turning
            return own, enemy, crosscut((own, enemy))

        own, enemy = mine | stone | flipped, theirs & ~flipped
        start = (own, enemy, crosscut((own, enemy)))
        own, enemy, _ = jax.lax.while_loop(lambda carry: carry[2].any(), body, start)
        return Placement(own, theirs & ~enemy)

    def _joined(self, mine: Bits, mover: jax.Array) -> jax.Array:
        """Returns bool[]: the mover's two sides are joined by a chain of `mine`."""
        grid, last = self.grid, self.size - 1
        start = mine & select(mover == 0, grid.row(0), grid.column(0))
        goal = mine & select(mover == 0, grid.row(last), grid.column(last))

        def body(carry):
            reached, _ = carry
            grown = reached
            for _ in range(4):
                grown = grid.grow(grown) & mine
            return grown, (grown ^ reached).any() & ~(grown & goal).any()

        reached, _ = jax.lax.while_loop(lambda carry: carry[1], body, (start, start.any() & goal.any()))
        return (reached & goal).any()


GAME = Crosshair()
