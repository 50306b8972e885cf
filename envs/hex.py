"""Hex: each player joins two opposite sides of a rhombus of hexagons; there are no draws.

   a b c d
 1  . X . .     Player 0 (X) starts and joins the top and bottom rows, player 1 (O) the left and right columns.
  2  . X O .    Action = cell = row * size + column. A cell's neighbours, in rows and columns: (0, -1) and (0, 1),
   3  O X . .   (-1, 0) and (-1, 1) above, (1, -1) and (1, 0) below.
    4  . . . .

Action size * size swaps, as player 1's first move alone: the one stone on the board is mirrored at the diagonal through
the first cell and becomes player 1's. Sides stay as they are, and player 0 moves next.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

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
_FIRST_SIDE, _SECOND_SIDE, _INSIDE = 1, 2, 3  # chains that touch a side, and the smallest number of another chain


@register_state
class HexState:
    """One position.

    A stone's number names its chain: 1 where the chain touches the owner's top or left side, 2 where it touches the
    other, else 3 + the cell of the stone that made it what it is. So a move is a few comparisons of the whole board.
    """

    chains: jax.Array  # int8[size * size] (int16 above 11 x 11), > 0 the mover's stones, < 0 the other's, 0 empty
    last: jax.Array  # int16[], cell of the last stone, -1 on the empty board
    ply: jax.Array  # int16[]
    won: jax.Array  # bool[], the player who moved last has joined their sides


class Placement(NamedTuple):
    """What placing a stone does."""

    chains: jax.Array  # int8 or int16[size * size]
    joined: jax.Array  # bool[], the stone's chain touches both sides


_RULES = """\
On a rhombus of hexagons the first player (red, X in the terminal) joins the top
row to the bottom row with its stones, the second player (blue, O) the left
column to the right one. Any empty cell may be taken, stones stay as they are,
and there is no draw.

Who begins has an advantage. So the second player may answer the first stone by
the move `swap`: that stone is mirrored at the board's long diagonal and becomes
the second player's.

Moves: `a1` to `k11`, `swap`.
"""


@dataclasses.dataclass(frozen=True)
class Hex(Game):
    """Hex on a board of any size.

    Planes, in the mover's frame (the board is transposed for player 1, so that "mine" always joins top and bottom): my
    stones, their stones, 1 for player 1 to move, swapping is legal. Without the option `swap` there is no such action.
    """

    size: int = 11
    swap: bool = True
    max_plies: int = RULES_BOUND

    rules = _RULES
    legend = "X: the first player's stones; O: the second's; .: an empty cell."

    def __post_init__(self):
        if isinstance(self.size, bool) or not isinstance(self.size, int) or not 1 <= self.size <= _MAX_SIZE:
            raise ValueError(f"hex: size: got {self.size!r}, expected a whole number from 1 to {_MAX_SIZE}")
        if not isinstance(self.swap, bool):
            raise ValueError(f"hex: swap: got {self.swap!r}, expected true or false")
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, self._longest))

    @property
    def _longest(self) -> int:
        return self.size**2 + self.swap  # a swap fills no cell

    @property
    def id(self) -> str:
        return game_id("hex", self, plies=self._longest)

    @property
    def num_actions(self) -> int:
        return self.size**2 + self.swap

    @property
    def max_legal_actions(self) -> int:
        return self.size**2

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        return (self.size, self.size, 4)

    def init(self, rng_key: jax.Array) -> HexState:
        del rng_key
        dtype = jnp.int8 if _INSIDE + self.size**2 - 1 <= np.iinfo(np.int8).max else jnp.int16
        return HexState(jnp.zeros(self.size**2, dtype), jnp.int16(-1), jnp.int16(0), jnp.bool_(False))

    def step(self, state: HexState, action: jax.Array) -> HexState:
        cell, chains = jnp.asarray(action, jnp.int16), state.chains
        if self.swap:
            swaps = cell == self.size**2
            cell = jnp.where(swaps, state.last % self.size * self.size + state.last // self.size, cell)
            chains = jnp.where(swaps, 0, chains)
        placed = self._place(chains, cell, self.to_move(state))
        next_state = HexState(chains=-placed.chains, last=cell, ply=state.ply + jnp.int16(1), won=placed.joined)
        return absorb(self.terminated(state), state, next_state)

    def legal_action_mask(self, state: HexState) -> jax.Array:
        mask = state.chains == 0
        if self.swap:
            mask = jnp.append(mask, state.ply == 1)
        return mask & ~self.terminated(state)

    def to_move(self, state: HexState) -> jax.Array:
        return (state.ply % 2).astype(jnp.int32)

    def terminated(self, state: HexState) -> jax.Array:
        return state.won | (state.ply >= self.max_plies)

    def truncated(self, state: HexState) -> jax.Array:
        return ~state.won & (state.ply >= self.max_plies)

    def returns(self, state: HexState) -> jax.Array:
        return two_player_returns(state.won, winner=1 - self.to_move(state))

    def observe(self, state: HexState) -> jax.Array:
        # The four planes as bits of one number a cell: step, mask and observation take 0.8 us a position, where planes
        # stacked one by one take 1.5, because XLA then works the board out again for each of them.
        second_moves, can_swap = self.to_move(state), (state.ply == 1) & self.swap & ~self.terminated(state)
        stones = (state.chains > 0).astype(jnp.uint32) | (state.chains < 0).astype(jnp.uint32) << 1
        stones = stones.reshape(self.size, self.size)
        bits = jnp.where(second_moves == 1, stones.T, stones)
        bits = bits | second_moves.astype(jnp.uint32) << 2 | can_swap.astype(jnp.uint32) << 3
        return ((bits[:, :, None] >> np.arange(4, dtype=np.uint32)[None, None]) & 1).astype(jnp.float32)

    def policy_index(self, state: HexState) -> jax.Array:
        actions = np.arange(self.num_actions, dtype=np.int16)
        cells = np.arange(self.size**2, dtype=np.int16).reshape(self.size, self.size)
        transposed = np.append(cells.T.reshape(-1), actions[self.size**2 :])
        return jnp.where(self.to_move(state) == 0, jnp.asarray(actions), jnp.asarray(transposed))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Identity and half turn: those that keep "mine joins top and bottom" and who is whose neighbour."""
        actions = np.arange(self.num_actions, dtype=np.int16)
        turned = np.append(actions[: self.size**2][::-1], actions[self.size**2 :])
        return (
            Symmetry(lambda observation: observation, actions),
            Symmetry(lambda observation: jnp.flip(observation, (0, 1)), turned),
        )

    def action_name(self, action: int) -> str:
        return "swap" if action == self.size**2 else square_name(action, self.size)

    def render(self, state: HexState) -> str:
        signs = np.sign(np.asarray(state.chains).astype(int)) * (1 - 2 * int(self.to_move(state)))
        marks = np.array(["O", ".", "X"])[signs + 1].reshape(self.size, self.size)
        letters = "   " + " ".join(column_name(column) for column in range(self.size))
        rows = [f"{' ' * row}{row + 1:>2}  {' '.join(line)}" for row, line in enumerate(marks)]
        return "\n".join([f"{letters}   X joins top-bottom, O left-right", *rows])

    def _place(self, chains: jax.Array, cell: jax.Array, mover: jax.Array) -> Placement:
        """Places a stone of the mover (whose numbers are > 0) on a cell int16[]; chains that it touches become one."""
        cells = np.arange(self.size**2, dtype=np.int16)
        row, column = cell // self.size, cell % self.size
        down, right = cells // self.size - row, cells % self.size - column
        near = (jnp.abs(down) <= 1) & (jnp.abs(right) <= 1) & (down != right)
        # Two of a cell's six neighbours that are next to each other are one chain, so three differ at most.
        touched = jnp.where(near & (chains > 0), chains, 0)
        highest = touched.max()
        middle = jnp.where(touched < highest, touched, 0).max()
        lowest = jnp.where(touched < middle, touched, 0).max()
        along = jnp.where(mover == 0, row, column)

        def joins(side: int, line: int) -> jax.Array:
            return (along == line) | (highest == side) | (middle == side) | (lowest == side)

        first, second = joins(_FIRST_SIDE, 0), joins(_SECOND_SIDE, self.size - 1)
        number = jnp.where(first, _FIRST_SIDE, jnp.where(second, _SECOND_SIDE, _INSIDE + cell)).astype(chains.dtype)
        same = (chains == highest) | (chains == middle) | (chains == lowest)
        merged = (same & (chains > 0)) | (cells == cell)
        return Placement(jnp.where(merged, number, chains), first & second)


GAME = Hex()
