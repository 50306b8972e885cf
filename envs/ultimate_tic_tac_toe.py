"""Ultimate tic-tac-toe: nine small boards in a large one; the cell that is marked says which board comes next.

  a b c   d e f   g h i    Action = board * 9 + cell, boards and cells numbered row by row. Player 0 draws crosses.
1 + + + | . . . | . . .
2 + + + | . . . | . . .    Three in a row win a small board; a small board that is won or full is closed. A mark in
3 + + + | . . . | . . .    cell c sends the other player to board c; to any open board where that one is closed. The
  ------+-------+------    first mark may go anywhere.
4 . . . | . . . | . . .
5 . . . | . . . | . . .    Three small boards in a row win. A full board that nobody won counts for nobody; when all
6 . . X | . . . | . . .    are closed and nobody has three in a row, it is a draw.
  ------+-------+------
7 . . . | . . . | O . .    X began in board 3, cell 8 (action 35, c6); so O had to answer in board 8 and chose cell 0
8 . . . | . . . | . . .    (action 72, g7); now X must play in board 0 (+).
9 . . . | . . . | . . .
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import Bits, Grid
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

_GRID = Grid(9, 9)  # a row is a small board, so that square = action; three boards a word
_NINE = 0b111111111
_LINES = (0b111, 0b111000, 0b111000000, 0b1001001, 0b10010010, 0b100100100, 0b100010001, 0b001010100)


def _on_the_page() -> np.ndarray:
    """Returns int16[81], the square of the 9 x 9 page, row by row, on which each action draws: its own inverse."""
    board_row, board_column, cell_row, cell_column = np.indices((3, 3, 3, 3), np.int16).reshape(4, 81)
    return ((board_row * 3 + cell_row) * 9 + board_column * 3 + cell_column).astype(np.int16)


_PAGE = _on_the_page()
_PAGE_BOARDS = (_PAGE // 9).astype(np.uint32)  # the small board of each square of the page


@register_state
class UltimateTicTacToeState:
    """One position."""

    mine: Bits  # marks of the player to move
    theirs: Bits  # marks of the player who moved last
    mine_won: jax.Array  # uint16[], bit b: board b was won by the player to move
    theirs_won: jax.Array  # uint16[]
    closed: jax.Array  # uint16[], boards that are won or full
    last: jax.Array  # int8[], the last action, -1 before the first
    ply: jax.Array  # int8[]
    won: jax.Array  # bool[], the player who moved last has three boards in a row


_RULES = """\
Nine small boards of tic-tac-toe are the squares of a large one. The first
player marks X, the second O. A mark in a small board's cell sends the opponent
to the small board at the same place of the large one; if that is won or full,
to any that is open. The first mark may go anywhere.

Three marks in line win a small board, three small boards in line win the game.
A full board that nobody won counts for nobody; if all are closed and nobody has
won, it is a draw.

Moves: `a1` (top left) to `i9` over the whole page.
"""


@dataclasses.dataclass(frozen=True)
class UltimateTicTacToe(Game):
    """Planes of the 9 x 9 page: my marks, their marks, boards won by me, boards won by them, where a mark may go.

    The network's policy is in the order of the page's squares.
    """

    max_plies: int = RULES_BOUND

    num_actions = 81
    max_legal_actions = 81
    observation_shape = (9, 9, 5)
    rules = _RULES
    legend = "X and O: marks; +: the mover may mark there; .: empty, the mover may not."

    def __post_init__(self):
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, 81))

    @property
    def id(self) -> str:
        return game_id("ultimate_tic_tac_toe", self, plies=81)

    def init(self, rng_key: jax.Array) -> UltimateTicTacToeState:
        del rng_key
        empty, none = _GRID.empty(), jnp.uint16(0)
        return UltimateTicTacToeState(empty, empty, none, none, none, jnp.int8(-1), jnp.int8(0), jnp.bool_(False))

    def step(self, state: UltimateTicTacToeState, action: jax.Array) -> UltimateTicTacToeState:
        board = jnp.asarray(action, jnp.int32) // 9
        marks = state.mine | _GRID.square(action)
        mine, both = _small_board(marks, board), _small_board(marks | state.theirs, board)
        board_won = _has_line(mine)
        bit = jnp.uint32(1) << board.astype(jnp.uint32)
        won_boards = state.mine_won | jnp.where(board_won, bit, jnp.uint32(0)).astype(jnp.uint16)
        closes = board_won | (both == _NINE)
        next_state = UltimateTicTacToeState(
            mine=state.theirs,
            theirs=marks,
            mine_won=state.theirs_won,
            theirs_won=won_boards,
            closed=state.closed | jnp.where(closes, bit, jnp.uint32(0)).astype(jnp.uint16),
            last=jnp.asarray(action, jnp.int8),
            ply=state.ply + jnp.int8(1),
            won=_has_line(won_boards.astype(jnp.uint32)),
        )
        return absorb(self.terminated(state), state, next_state)

    def legal_action_mask(self, state: UltimateTicTacToeState) -> jax.Array:
        return _GRID.unpack(self._legal(state))

    def to_move(self, state: UltimateTicTacToeState) -> jax.Array:
        return (state.ply % 2).astype(jnp.int32)

    def terminated(self, state: UltimateTicTacToeState) -> jax.Array:
        return self._ended(state) | (state.ply >= self.max_plies)

    def truncated(self, state: UltimateTicTacToeState) -> jax.Array:
        return ~self._ended(state) & (state.ply >= self.max_plies)

    def returns(self, state: UltimateTicTacToeState) -> jax.Array:
        return two_player_returns(state.won, winner=1 - self.to_move(state))

    def observe(self, state: UltimateTicTacToeState) -> jax.Array:
        page = _PAGE.astype(np.int32)
        mine, theirs = (_GRID.unpack(squares, page).astype(jnp.uint32) for squares in (state.mine, state.theirs))

        def on_page(boards: jax.Array) -> jax.Array:
            return (boards.astype(jnp.uint32) >> _PAGE_BOARDS) & 1

        legal = on_page(self._next_boards(state)) & ~(mine | theirs)
        bits = mine | theirs << 1 | on_page(state.mine_won) << 2 | on_page(state.theirs_won) << 3 | legal << 4
        return ((bits.reshape(9, 9, 1) >> np.arange(5, dtype=np.uint32)[None, None]) & 1).astype(jnp.float32)

    def policy_index(self, state: UltimateTicTacToeState) -> jax.Array:
        del state
        return jnp.asarray(_PAGE)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The eight symmetries of the page, each of which does to every small board what it does to the large one."""
        squares = np.arange(81, dtype=np.int16).reshape(9, 9)

        def turned(quarters: int, mirrored: bool) -> Symmetry:
            def transform(board, numpy):
                return numpy.flip(numpy.rot90(board, quarters), 1) if mirrored else numpy.rot90(board, quarters)

            return Symmetry(lambda observation: transform(observation, jnp), transform(squares, np).reshape(-1))

        return tuple(turned(quarters, mirrored) for mirrored in (False, True) for quarters in range(4))

    def action_name(self, action: int) -> str:
        """Returns the square of the page, such as "c6"."""
        return square_name(int(_PAGE[action]), 9)

    def render(self, state: UltimateTicTacToeState) -> str:
        crosses, noughts = (state.mine, state.theirs) if int(self.to_move(state)) == 0 else (state.theirs, state.mine)
        marks = np.full(81, ".")
        for letter, squares in (("X", crosses), ("O", noughts), ("+", self._legal(state))):
            marks[np.asarray(_GRID.unpack(squares))] = letter
        page = marks[_PAGE].reshape(9, 3, 3)
        rows = [f"{row + 1} " + " | ".join(" ".join(part) for part in line) for row, line in enumerate(page)]
        for after in (6, 3):
            rows.insert(after, "  ------+-------+------")
        won = [int(state.mine_won), int(state.theirs_won)]
        first, second = won if int(self.to_move(state)) == 0 else reversed(won)
        boards = ["X" if first >> b & 1 else "O" if second >> b & 1 else "." for b in range(9)]
        summary = " / ".join("".join(boards[at : at + 3]) for at in (0, 3, 6))
        return "\n".join(["  a b c   d e f   g h i", *rows, f"boards won: {summary}"])

    def _ended(self, state: UltimateTicTacToeState) -> jax.Array:
        return state.won | (state.closed == _NINE)

    def _legal(self, state: UltimateTicTacToeState) -> Bits:
        return _whole_boards(self._next_boards(state)) & ~(state.mine | state.theirs)

    def _next_boards(self, state: UltimateTicTacToeState) -> jax.Array:
        """Returns uint32[], bit b: the mover may play in board b."""
        sent_to = jnp.uint32(1) << (state.last % 9).astype(jnp.uint32)
        open_boards = ~state.closed.astype(jnp.uint32) & _NINE
        bound = (state.last >= 0) & ((sent_to & open_boards) != 0)
        return jnp.where(self.terminated(state), jnp.uint32(0), jnp.where(bound, sent_to, open_boards))


def _small_board(marks: Bits, board: jax.Array) -> jax.Array:
    """Returns uint32[], the nine cells of a board int32[] as bits."""
    word = functools.reduce(
        lambda found, w: jnp.where(board // 3 == w, marks.words[w], found), range(1, 3), marks.words[0]
    )
    return (word >> (board % 3 * 9).astype(jnp.uint32)) & _NINE


def _whole_boards(boards: jax.Array) -> Bits:
    """Returns all cells of the boards given as bits."""
    words = []
    for first in (0, 3, 6):
        three = boards.astype(jnp.uint32) >> first
        words.append(((three & 1) | (three & 2) << 8 | (three & 4) << 16) * _NINE)
    return Bits(tuple(words))


def _has_line(nine: jax.Array) -> jax.Array:
    """Returns bool[]: three of the nine bits uint32[] are in a row."""
    found = jnp.bool_(False)
    for line in _LINES:
        found = found | ((nine & line) == line)
    return found


GAME = UltimateTicTacToe()
