"""Chess as AlphaZero played it: its planes, its 4,672 actions, and a game that ends by the rules or after 512 plies.

White is player 0. Mate and stalemate come first. Then a game is drawn when a position (board, side to move, rights to
castle, en passant if that is legal) comes up the third time, at 100 half-moves without a capture or pawn move, when
neither side has the material to mate (K v K, K+N v K, kings and bishops of one square colour), and after ply 512.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from envs.chess import actions, planes
from envs.chess.fen import parse_fen, write_fen
from envs.chess.legal import LegalMoves, legal_moves
from envs.chess.position import START, Position
from envs.chess.rays import where
from envs.chess.san import parse_move
from envs.chess.slots import slots_of
from envs.chess.state import (
    CLOCK,
    DRAW,
    MATE,
    ChessState,
    after_move,
    boards_of,
    hash_of,
    is_dead,
    pieces_of,
    position_of,
    rights_of,
)
from envs.core import RULES_BOUND, Game, check_max_plies, game_id, two_player_returns

_LONGEST = 512
_MOST_HISTORY = 16


_RULES = """\
Chess by its usual rules; White is the first player. Besides mate and stalemate
a game ends, drawn, at the third time of a position, after 100 half-moves
without a capture or a pawn's move, when nobody has the material to mate, and
after 512 half-moves. Nobody need claim a draw.

Moves: `e2e4`, `e7e8q`, or `Nf3`, `O-O`.
"""


@dataclasses.dataclass(frozen=True)
class Chess(Game):
    """Chess. Action = square * 73 + plane in the mover's frame, see `envs.chess.actions`.

    Planes, as the player to move sees the board, `history` times, the newest first: P N B R Q K mine, theirs, and two
    that say that the board had been there once, twice. Then 0 if White is to move, else 1; ply / 512; rights to castle,
    mine on the king's and the queen's side, theirs; half-moves without progress / 100. Without `rule_planes` those
    about repetition, castling and progress are left out.
    """

    history: int = 8  # boards that the network sees, 1 to 16
    rule_planes: bool = True
    max_plies: int = RULES_BOUND

    num_actions = actions.NUM_ACTIONS
    max_legal_actions = 218
    rules = _RULES
    legend = "Capitals: White, who begins; small letters: Black; .: an empty square; below, the position as FEN."

    def __post_init__(self):
        if (
            isinstance(self.history, bool)
            or not isinstance(self.history, int)
            or not 1 <= self.history <= _MOST_HISTORY
        ):
            raise ValueError(f"chess: history: got {self.history!r}, expected a whole number from 1 to {_MOST_HISTORY}")
        if not isinstance(self.rule_planes, bool):
            raise ValueError(f"chess: rule_planes: got {self.rule_planes!r}, expected true or false")
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, _LONGEST))

    @property
    def id(self) -> str:
        return game_id("chess", self, plies=_LONGEST)

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        return (8, 8, 14 * self.history + 7 if self.rule_planes else 12 * self.history + 2)

    def init(self, rng_key: jax.Array) -> ChessState:
        del rng_key
        return self._fresh(START)

    def step(self, state: ChessState, action: jax.Array) -> ChessState:
        over = self.terminated(state)

        def unless_over(old: jax.Array, new: jax.Array) -> jax.Array:
            return jnp.where(over, old, new)

        boards, castling, passed, clock = map(
            unless_over,
            (state.boards, state.castling, state.passed, state.clock),
            after_move(state, action),
        )
        ply = unless_over(state.ply, state.ply + jnp.int16(1))
        # From here on the position is what it will be, so that XLA finds the legal moves once for step and mask.
        moves = legal_moves(pieces_of(boards), castling, passed)
        now = hash_of(boards, castling, jnp.where(moves.en_passant, passed, jnp.int8(-1)), ply)
        clocks = np.arange(CLOCK, dtype=np.int16)
        seen = (state.hashes[0] == now[0]) & (state.hashes[1] == now[1]) & (clocks < clock)
        times = 1 + jnp.sum(seen, dtype=jnp.uint32)
        written = (clocks == clock) & ~over
        return ChessState(
            boards=boards,
            hashes=jnp.where(written[None], now[:, None], state.hashes),
            occurrences=unless_over(state.occurrences, (state.occurrences << 2) | jnp.minimum(times, 3)),
            castling=castling,
            passed=passed,
            clock=clock,
            ply=ply,
            end=unless_over(state.end, _end(moves, boards, times, clock, ply)),
        )

    def moves(self, state: ChessState) -> jax.Array:
        """Returns bool[A]: the legal moves before any draw rule, as perft counts them."""
        return planes.mask_of(_legal(state), jnp.bool_(False))

    def legal_action_mask(self, state: ChessState) -> jax.Array:
        return planes.mask_of(_legal(state), self.terminated(state))

    def legal_actions(self, state: ChessState) -> jax.Array:
        own = pieces_of(state.boards).own
        return slots_of(_legal(state), where(~self.terminated(state), own), self.max_legal_actions)

    def to_move(self, state: ChessState) -> jax.Array:
        return (state.ply % 2).astype(jnp.int32)

    def terminated(self, state: ChessState) -> jax.Array:
        return (state.end != 0) | (state.ply >= self.max_plies)

    def truncated(self, state: ChessState) -> jax.Array:
        return (state.end == 0) & (state.ply >= self.max_plies)

    def returns(self, state: ChessState) -> jax.Array:
        return two_player_returns(state.end == MATE, winner=1 - self.to_move(state))

    def observe(self, state: ChessState) -> jax.Array:
        constants = [(state.ply % 2).astype(jnp.float32), state.ply.astype(jnp.float32) / _LONGEST]
        if self.rule_planes:
            constants += [((state.castling >> bit) & 1).astype(jnp.float32) for bit in range(4)]
            constants.append(state.clock.astype(jnp.float32) / CLOCK)
        boards = planes.board_planes(state.boards, state.occurrences, self.rule_planes)
        return planes.observation_of(jnp.concatenate([boards, planes.constant_planes(constants)], axis=1))

    def action_name(self, action: int) -> str:
        """Returns the move as White would write it: "e2e4" is also Black's e7e5."""
        return actions.frame_name(action)

    def move_name(self, state: ChessState, action: int) -> str:
        """Returns the move as UCI has it."""
        try:
            return actions.move_of(action, position_of(state)).uci
        except ValueError:
            return actions.frame_name(action)

    def parse_move(self, state: ChessState, text: str) -> int:
        """Returns the action of a move written as UCI ("g1f3") or SAN ("Nf3")."""
        position = position_of(state)
        return actions.action_of(parse_move(position, text), position.turn)

    def parse_position(self, text: str) -> ChessState:
        """Returns the position of a FEN, with an empty history; its number of the move gives the ply."""
        position = parse_fen(text)
        if (number := len(position.legal_moves)) > self.max_legal_actions:
            raise ValueError(f"FEN: board: got {number} legal moves, expected at most {self.max_legal_actions}")
        return self.state_of(position)

    def without_past(self, state: ChessState) -> ChessState:
        """Returns the position with neither repetitions nor moves counted; it may be over all the same."""
        return self.state_of(dataclasses.replace(position_of(state), halfmoves=0, fullmoves=1))

    def state_of(self, position: Position) -> ChessState:
        """Returns a position without a past (host side)."""
        state = self._fresh(position)
        moves = legal_moves(pieces_of(state.boards), state.castling, state.passed)
        one = jnp.uint32(1)
        return dataclasses.replace(state, end=_end(moves, state.boards, one, state.clock, state.ply))

    def render(self, state: ChessState) -> str:
        position = position_of(state)
        rows = [f"{8 - row} {' '.join(position.board[8 * row : 8 * row + 8])}" for row in range(8)]
        return "\n".join([*rows, "  a b c d e f g h", write_fen(position)])

    def _fresh(self, position: Position) -> ChessState:
        """Returns a position that is not over."""
        boards = jnp.asarray(boards_of(position, self.history))
        castling = jnp.uint8(rights_of(position))
        passed = jnp.int8(-1 if position.en_passant is None else position.en_passant % 8)
        ply, clock = jnp.int16(position.ply), jnp.int16(position.halfmoves)
        taken = passed if position.can_take_en_passant else jnp.int8(-1)
        now = hash_of(boards, castling, taken, ply)
        written = np.arange(CLOCK) == position.halfmoves
        return ChessState(
            boards=boards,
            hashes=jnp.where(written[None], now[:, None], jnp.uint32(0)),
            occurrences=jnp.uint32(1),
            castling=castling,
            passed=passed,
            clock=clock,
            ply=ply,
            end=jnp.int8(0),
        )


def _legal(state: ChessState) -> LegalMoves:
    return legal_moves(pieces_of(state.boards), state.castling, state.passed)


def _end(moves: LegalMoves, boards: jax.Array, times: jax.Array, clock: jax.Array, ply: jax.Array) -> jax.Array:
    """Returns `end` of a position that came up for the `times`-th time."""
    drawn = (times >= 3) | (clock >= CLOCK) | is_dead(pieces_of(boards)) | (ply >= _LONGEST)
    mated = jnp.where(moves.in_check, jnp.int8(MATE), jnp.int8(DRAW))
    return jnp.where(planes.any_of(moves), jnp.where(drawn, jnp.int8(DRAW), jnp.int8(0)), mated)


GAME = Chess()
