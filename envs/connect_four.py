"""Connect Four: discs fall to the lowest free square of a column; four in a row, any of three directions, win.

. . . . . . .   6 rows, 7 columns. Action = column, 0 on the left. Player 0 starts; a full board is a draw.
. . . . . . .
. . . . . . .
. . . O . . .
. . . X O . .
. . X X O X .
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import Bits, Grid
from envs.core import RULES_BOUND, Game, Symmetry, absorb, check_max_plies, game_id, register_state, two_player_returns

_ROWS, _COLUMNS = 6, 7
_GRID = Grid(_ROWS, _COLUMNS)
_DIRECTIONS = ((Grid.west,), (Grid.north,), (Grid.north, Grid.west), (Grid.north, Grid.east))


@register_state
class ConnectFourState:
    """One position."""

    mine: Bits  # discs of the player to move
    theirs: Bits  # discs of the player who moved last
    ply: jax.Array  # int8[]
    won: jax.Array  # bool[], the player who moved last has four in a row


_RULES = """\
The players drop a disc into one of seven columns in turn; it falls to the
lowest free square of six. Four own discs in a row, upright, level or slanting,
win; a full board without them is a draw.

The first player's discs are red, X in the terminal, the second's yellow, O.
Moves: `1` to `7`, the columns from the left.
"""


@dataclasses.dataclass(frozen=True)
class ConnectFour(Game):
    """Planes: my discs, their discs."""

    max_plies: int = RULES_BOUND

    num_actions = _COLUMNS
    max_legal_actions = _COLUMNS
    observation_shape = (_ROWS, _COLUMNS, 2)
    rules = _RULES
    legend = "X: the first player's discs; O: the second's; .: a free square."

    def __post_init__(self):
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, _ROWS * _COLUMNS))

    @property
    def id(self) -> str:
        return game_id("connect_four", self, plies=_ROWS * _COLUMNS)

    def init(self, rng_key: jax.Array) -> ConnectFourState:
        del rng_key
        return ConnectFourState(_GRID.empty(), _GRID.empty(), jnp.int8(0), jnp.bool_(False))

    def step(self, state: ConnectFourState, action: jax.Array) -> ConnectFourState:
        empty = _GRID.full() & ~(state.mine | state.theirs)
        moved = state.mine | (empty & ~_GRID.north(empty) & _column(action))
        next_state = ConnectFourState(
            mine=state.theirs, theirs=moved, ply=state.ply + jnp.int8(1), won=_four_in_a_row(moved)
        )
        return absorb(self.terminated(state), state, next_state)

    def legal_action_mask(self, state: ConnectFourState) -> jax.Array:
        top = ~(state.mine.words[0] | state.theirs.words[0])  # row 0 is the lowest bits of word 0
        top = jnp.where(self.terminated(state), jnp.uint32(0), top)
        return ((top >> np.arange(_COLUMNS, dtype=np.uint32)) & 1) != 0

    def to_move(self, state: ConnectFourState) -> jax.Array:
        return (state.ply % 2).astype(jnp.int32)

    def terminated(self, state: ConnectFourState) -> jax.Array:
        return state.won | (state.ply >= self.max_plies)

    def truncated(self, state: ConnectFourState) -> jax.Array:
        return ~state.won & (state.ply >= self.max_plies) & (state.ply < _ROWS * _COLUMNS)

    def returns(self, state: ConnectFourState) -> jax.Array:
        return two_player_returns(state.won, winner=1 - self.to_move(state))

    def observe(self, state: ConnectFourState) -> jax.Array:
        return _GRID.planes(state.mine, state.theirs)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Identity and the mirror image."""
        columns = np.arange(_COLUMNS, dtype=np.int16)
        return (
            Symmetry(lambda observation: observation, columns),
            Symmetry(lambda observation: jnp.flip(observation, 1), columns[::-1]),
        )

    def action_name(self, action: int) -> str:
        return str(action + 1)

    def render(self, state: ConnectFourState) -> str:
        first, second = (state.mine, state.theirs) if int(self.to_move(state)) == 0 else (state.theirs, state.mine)
        discs = np.where(np.asarray(_GRID.unpack(first)), "X", np.where(np.asarray(_GRID.unpack(second)), "O", "."))
        rows = [" ".join(row) for row in discs.reshape(_ROWS, _COLUMNS)]
        return "\n".join([*rows, " ".join(str(column + 1) for column in range(_COLUMNS))])


def _column(action: jax.Array) -> Bits:
    """Returns all squares of a column: its top bit times a pattern that repeats it in every row."""
    top = jnp.uint32(1) << jnp.asarray(action, jnp.uint32)
    return Bits(tuple(top * repeated for repeated in _GRID.column(0).words))


def _four_in_a_row(discs: Bits) -> jax.Array:
    """Returns bool[]: pairs of neighbours, then pairs of pairs two squares apart, in each direction."""
    found = jnp.bool_(False)
    for direction in _DIRECTIONS:
        step = functools.partial(functools.reduce, lambda bits, move: move(_GRID, bits), direction)
        pairs = discs & step(discs)
        found = found | (pairs & step(step(pairs))).any()
    return found


GAME = ConnectFour()
