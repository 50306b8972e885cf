"""Tic-tac-toe: three in a row on a 3 x 3 board.

0 1 2   Action = square = row * 3 + column. Player 0 draws crosses and starts.
3 4 5
6 7 8
"""

import dataclasses

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
    game_id,
    register_state,
    square_name,
    two_player_returns,
)

_GRID = Grid(3, 3)
_LINES = (  # each a set of three squares, bit = square
    *(0b111 << 3 * row for row in range(3)),
    *(0b1001001 << column for column in range(3)),
    0b100010001,
    0b001010100,
)


@register_state
class TicTacToeState:
    """One position."""

    mine: Bits  # marks of the player to move
    theirs: Bits  # marks of the player who moved last
    ply: jax.Array  # int8[]
    won: jax.Array  # bool[], the player who moved last has three in a row


_RULES = """\
The players mark one of nine squares in turn, the first player with X, the
second with O. Three in a row, a column or a diagonal win; a full board without
them is a draw.

Moves: `a1` (top left) to `c3`.
"""


@dataclasses.dataclass(frozen=True)
class TicTacToe(Game):
    """Planes: my marks, their marks."""

    max_plies: int = RULES_BOUND

    num_actions = 9
    max_legal_actions = 9
    observation_shape = (3, 3, 2)
    rules = _RULES
    legend = "X: the first player's marks; O: the second's; .: an empty square."

    def __post_init__(self):
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, 9))

    @property
    def id(self) -> str:
        return game_id("tic_tac_toe", self, plies=9)

    def init(self, rng_key: jax.Array) -> TicTacToeState:
        del rng_key
        return TicTacToeState(_GRID.empty(), _GRID.empty(), jnp.int8(0), jnp.bool_(False))

    def step(self, state: TicTacToeState, action: jax.Array) -> TicTacToeState:
        moved = state.mine | _GRID.square(action)
        (marks,) = moved.words
        won = jnp.bool_(False)
        for line in _LINES:
            won = won | ((marks & line) == line)
        next_state = TicTacToeState(mine=state.theirs, theirs=moved, ply=state.ply + jnp.int8(1), won=won)
        return absorb(self.terminated(state), state, next_state)

    def legal_action_mask(self, state: TicTacToeState) -> jax.Array:
        empty = ~(state.mine | state.theirs)
        return _GRID.unpack(select(self.terminated(state), _GRID.empty(), empty))

    def to_move(self, state: TicTacToeState) -> jax.Array:
        return (state.ply % 2).astype(jnp.int32)

    def terminated(self, state: TicTacToeState) -> jax.Array:
        return state.won | (state.ply >= self.max_plies)

    def truncated(self, state: TicTacToeState) -> jax.Array:
        return ~state.won & (state.ply >= self.max_plies) & (state.ply < 9)

    def returns(self, state: TicTacToeState) -> jax.Array:
        return two_player_returns(state.won, winner=1 - self.to_move(state))

    def observe(self, state: TicTacToeState) -> jax.Array:
        return _GRID.planes(state.mine, state.theirs)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The eight symmetries of the square: rotations, each also mirrored left to right."""
        squares = np.arange(9, dtype=np.int16).reshape(3, 3)

        def turned(quarters: int, mirrored: bool) -> Symmetry:
            def transform(board, numpy):
                return numpy.flip(numpy.rot90(board, quarters), 1) if mirrored else numpy.rot90(board, quarters)

            return Symmetry(lambda observation: transform(observation, jnp), transform(squares, np).reshape(-1))

        return tuple(turned(quarters, mirrored) for mirrored in (False, True) for quarters in range(4))

    def action_name(self, action: int) -> str:
        return square_name(action, 3)

    def render(self, state: TicTacToeState) -> str:
        crosses, noughts = (state.mine, state.theirs) if int(self.to_move(state)) == 0 else (state.theirs, state.mine)
        marks = np.where(np.asarray(_GRID.unpack(crosses)), "X", np.where(np.asarray(_GRID.unpack(noughts)), "O", "."))
        rows = [f"{row + 1} {' '.join(marks[3 * row : 3 * row + 3])}" for row in range(3)]
        return "\n".join(["  a b c", *rows])


GAME = TicTacToe()
