"""Black Hole (Walter Joris): numbered tiles fill a triangle, and the one cell left empty swallows what lies around it.

0          The players place their tiles 1, 2, ..., K in turn, each on any empty cell. Action = cell, numbered row
1 2        by row. The last empty cell is the hole. Ring k holds the cells k steps from it; the first ring in which
3 4 5      the players' sums differ decides, and the lower sum wins. All equal: a draw.
6 7 8 9
"""

import dataclasses
import functools
import itertools

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
    stack_planes,
    two_player_returns,
)

_MAX_HISTORY = 16
_MAX_ROWS = 22  # 253 cells, tiles up to 126: a tile fits int8


@register_state
class BlackHoleState:
    """One position of N cells."""

    tiles: jax.Array  # int8[N], v for player 0's tile v, -v for player 1's, 0 for an empty cell
    ply: jax.Array  # int16[]


_RULES = """\
On a triangle of cells the players place their tiles 1, 2, 3, ... in turn, each
on any empty cell; each player's next tile is the next number. One cell is left
empty at the end: the hole.

Whose tiles in the cells next to the hole have the lower sum has won. If the
sums are equal, the cells two steps from the hole count, then those three steps
from it, and so on; all equal: a draw.

Moves: `a1` is the top; letters count along a row, numbers are rows.
"""


@dataclasses.dataclass(frozen=True)
class BlackHole(Game):
    """Black Hole on `rows` rows: N = rows (rows + 1) / 2 cells, K = (N - 1) / 2 tiles each.

    Planes, on a square array whose lower triangle is the board (so that a 3 x 3 kernel covers the six neighbours):
    my tile / K, their tile / K, empty cells, the board, the tile I place now / K, whether I am player 0; then, for
    `history` T above 1, my and their tiles / K as they lay 1, 2, ..., T - 1 plies ago. A tile's number says when it was
    placed, so that these planes repeat what the first two hold.
    """

    rows: int = 6
    tie_break: str = "rings"  # "none": only the cells next to the hole count, equal sums there are a draw
    max_plies: int = RULES_BOUND
    history: int = 1

    rules = _RULES
    legend = "+3: the first player's tile 3; -3: the second's; .: an empty cell; ( ): the hole."

    def __post_init__(self):
        playable = [rows for rows in range(2, _MAX_ROWS + 1) if rows % 4 in (1, 2)]
        if isinstance(self.rows, bool) or self.rows not in playable:
            raise ValueError(
                f"black_hole: rows: got {self.rows!r}, expected one of {', '.join(map(str, playable))}: "
                "other triangles cannot hold equally many tiles of both players and one hole"
            )
        if self.tie_break not in ("rings", "none"):
            raise ValueError(f"black_hole: tie_break: got {self.tie_break!r}, expected 'rings' or 'none'")
        if type(self.history) is not int or not 1 <= self.history <= _MAX_HISTORY:
            raise ValueError(
                f"black_hole: history: got {self.history!r}, expected a whole number of boards from 1 to {_MAX_HISTORY}"
            )
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, self.num_actions - 1))

    @property
    def id(self) -> str:
        return game_id("black_hole", self, plies=self.num_actions - 1)

    @property
    def num_actions(self) -> int:
        return self.rows * (self.rows + 1) // 2

    @property
    def max_legal_actions(self) -> int:
        return self.num_actions

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        return (self.rows, self.rows, 6 + 2 * (self.history - 1))

    @property
    def tiles_each(self) -> int:
        """K, the number of tiles each player places, and the value of the last."""
        return (self.num_actions - 1) // 2

    def init(self, rng_key: jax.Array) -> BlackHoleState:
        del rng_key
        return BlackHoleState(jnp.zeros(self.num_actions, jnp.int8), jnp.int16(0))

    def step(self, state: BlackHoleState, action: jax.Array) -> BlackHoleState:
        tile = self._tile(state)
        signed = jnp.where(self.to_move(state) == 0, tile, -tile).astype(jnp.int8)
        cells = np.arange(self.num_actions, dtype=np.int32)
        next_state = BlackHoleState(jnp.where(cells == action, signed, state.tiles), state.ply + jnp.int16(1))
        return absorb(self.terminated(state), state, next_state)

    def legal_action_mask(self, state: BlackHoleState) -> jax.Array:
        return (state.tiles == 0) & ~self.terminated(state)

    def to_move(self, state: BlackHoleState) -> jax.Array:
        return (state.ply % 2).astype(jnp.int32)

    def terminated(self, state: BlackHoleState) -> jax.Array:
        return state.ply >= self.max_plies

    def truncated(self, state: BlackHoleState) -> jax.Array:
        return self.terminated(state) & (state.ply < self.num_actions - 1)

    def returns(self, state: BlackHoleState) -> jax.Array:
        excess = self._deciding_excess(state)
        decided = (state.ply == self.num_actions - 1) & (excess != 0)
        return two_player_returns(decided, winner=(excess > 0).astype(jnp.int32))

    def observe(self, state: BlackHoleState) -> jax.Array:
        first = self.to_move(state) == 0
        board = self._on_array(state.tiles)
        mine = jnp.where(first, board, -board)
        on_board = np.tri(self.rows, dtype=bool)
        scale = np.float32(1 / self.tiles_each)
        planes = [
            jnp.maximum(mine, 0) * scale,
            jnp.maximum(-mine, 0) * scale,
            on_board & (board == 0),
            on_board,
            jnp.broadcast_to(self._tile(state) * scale, board.shape),
            jnp.broadcast_to(first, board.shape),
        ]
        placed = 2 * (jnp.abs(mine) - 1) + (board < 0)  # the ply of each tile
        for ago in range(1, self.history):
            then = jnp.where(placed < state.ply - ago, mine, 0)
            planes += [jnp.maximum(then, 0) * scale, jnp.maximum(-then, 0) * scale]
        return stack_planes([jnp.asarray(plane, jnp.float32) for plane in planes])

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The six orders of a cell's distances (rows - 1 - row, row - column, column) to the triangle's three sides."""
        row, column = self._rows_and_columns
        distances = (self.rows - 1 - row, row - column, column)

        def reordered(x: int, y: int, z: int) -> Symmetry:
            new_row, new_column = self.rows - 1 - distances[x], distances[z]
            cells = (new_row * (new_row + 1) // 2 + new_column).astype(np.int16)
            squares = np.arange(self.rows**2).reshape(self.rows, self.rows)
            squares[row, column] = new_row * self.rows + new_column  # the squares above the triangle stay

            def transform(observation: jax.Array) -> jax.Array:
                return observation.reshape(self.rows**2, -1)[squares.reshape(-1)].reshape(observation.shape)

            return Symmetry(transform, cells)

        orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
        return tuple(reordered(*order) for order in orders)

    def action_name(self, action: int) -> str:
        row, column = (int(index[action]) for index in self._rows_and_columns)
        return square_name(row * self.rows + column, self.rows)

    def render(self, state: BlackHoleState) -> str:
        """Returns the triangle: +3 is player 0's tile 3, -3 player 1's; a column's letter stands at its upper right."""
        tiles = np.asarray(state.tiles)
        over = int(state.ply) == self.num_actions - 1
        width = 3 if self.tiles_each < 100 else 5  # odd, so that half a cell is a whole number of characters
        lines = []
        for row in range(self.rows):
            words = []
            for tile in tiles[row * (row + 1) // 2 : (row + 1) * (row + 2) // 2].tolist():
                words.append((f"{tile:+d}" if tile else "( )" if over else ".").center(width))
            indent = " " * ((self.rows - 1 - row) * (width + 1) // 2)
            lines.append(f"{row + 1:>2} {indent}{' '.join(words)} {column_name(row)}")
        if not bool(self.terminated(state)):
            sign = "+" if int(self.to_move(state)) == 0 else "-"
            lines.append(f"   next: {sign}{int(self._tile(state))}")
        return "\n".join(lines)

    @functools.cached_property
    def _rows_and_columns(self) -> tuple[np.ndarray, np.ndarray]:
        """The row and the column of each cell, int32[N] each."""
        row, column = np.tril_indices(self.rows)
        return row.astype(np.int32), column.astype(np.int32)

    def _tile(self, state: BlackHoleState) -> jax.Array:
        """Returns int16[], the value of the tile to place (of the last one when the board is full)."""
        return jnp.minimum(state.ply // 2 + 1, self.tiles_each).astype(jnp.int16)

    def _deciding_excess(self, state: BlackHoleState) -> jax.Array:
        """Returns int32[] with the sign of player 0's sum minus player 1's in the first ring where they differ.

        A ring's difference is at most K (K + 1) / 2, so several rings are one number in a base above twice that, the
        nearest ring its leading digit: its sign is the sign of the first digit that is not 0. The last ring is left
        out: both totals are equal, so it cannot be the first to differ. Meaningful on a full board only.
        """
        row, column = self._rows_and_columns
        hole = jnp.sum(jnp.where(state.tiles == 0, row * 64 + column, 0), dtype=jnp.int32)
        down, right = row - hole // 64, column - hole % 64
        # On a triangular grid max(|down|, |right|, |down - right|) is this: the steps along its two long directions.
        distance = jnp.maximum(jnp.maximum(down, right), 0) - jnp.minimum(jnp.minimum(down, right), 0)
        rings = max(self.rows - 2, 1) if self.tie_break == "rings" else 1
        digit_bits = (self.tiles_each * (self.tiles_each + 1) + 1).bit_length()
        rings_per_word = 30 // digit_bits
        tiles = state.tiles.astype(jnp.int32)
        words = []
        for nearest in range(1, rings + 1, rings_per_word):
            farthest = min(nearest + rings_per_word - 1, rings)
            word = jnp.zeros_like(tiles)
            for ring in range(nearest, farthest + 1):
                word = jnp.where(distance == ring, tiles << (farthest - ring) * digit_bits, word)
            words.append(word)
        # All words in one pass: as sums of their own, XLA works the distances out once for each (measured: 135 ns a
        # position for 9 rows on a CPU core against 73).
        sums = jax.lax.reduce(words, [jnp.int32(0)] * len(words), _add_each, dimensions=(0,))
        return functools.reduce(lambda nearer, farther: jnp.where(nearer != 0, nearer, farther), sums)

    def _on_array(self, cells: jax.Array) -> jax.Array:
        """Returns float32[rows, rows]: the cells on the lower triangle of an array of zeros."""
        # Rows cut out and padded: a gather or scatter takes a third longer on a CPU.
        starts = np.cumsum(np.arange(self.rows + 1))
        rows = [jnp.pad(cells[a:b], (0, self.rows - (b - a))) for a, b in itertools.pairwise(starts)]
        return jnp.stack(rows).astype(jnp.float32)


def _add_each(a: list[jax.Array], b: list[jax.Array]) -> list[jax.Array]:
    return [x + y for x, y in zip(a, b, strict=True)]


GAME = BlackHole()
