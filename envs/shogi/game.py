"""Shogi as in the AlphaZero paper: its observation, its actions, 512 plies; perpetual check loses.

Black (sente) is player 0. The game is lost by who has no legal move. A position that is there for the fourth time
(board, hands, turn) is a draw, unless all moves of one side since its first time gave check: then that side loses; all
of both sides: a draw. There is no entering-king rule. position.py draws the board.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from envs.core import RULES_BOUND, Game, Symmetry, absorb, check_max_plies, game_id, two_player_returns
from envs.shogi import sfen, tables, usi
from envs.shogi.actions import NUM_ACTIONS, PLANES, STEPS, action_of, move_of
from envs.shogi.moves import fence, list_of, mask_of
from envs.shogi.position import HAND, KINDS, LONGEST, Position
from envs.shogi.state import DRAWN, GOES_ON, HISTORY, WON, ShogiState, judged, legal, moved, placed

_PER_POSITION = 45  # planes of each position
_SEEN_PIECES, _SEEN_COUNTS = 28, 3
_NO_CODE = 255


_RULES = """\
Shogi by its usual rules; Black (sente), the first player, begins. Who has no
legal move has lost. A position that comes up the fourth time is a draw, but
lost by a side all of whose moves since the first time gave check; after 512
moves the game is a draw. There is no entering-king rule.

Moves: `7g7f`; `8h2b+`, with promotion; `P*5e`, a pawn dropped from the hand.
"""


@dataclasses.dataclass(frozen=True)
class Shogi(Game):
    """Shogi. Actions are the mover's (actions.py); a limit `max_plies` below 512 truncates.

    Planes, of 8 positions, the newest first: my P L N S G B R K +P +L +N +S +B +R, theirs; 3 that say whether the
    position was there for the first, second, third time; my hand's P L N S G B R and theirs, as shares of the set. Then
    two constants: 1 if White is to move; ply / 512. The mover's side is below. Positions before the first are zeros.
    """

    max_plies: int = RULES_BOUND

    num_actions = NUM_ACTIONS
    max_legal_actions = sfen.MOST_MOVES
    observation_shape = (9, 9, _PER_POSITION * HISTORY + 2)
    rules = _RULES
    legend = "Capitals: Black, who begins; small letters: White; +: promoted; .: an empty square."

    def __post_init__(self):
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, LONGEST))

    @property
    def id(self) -> str:
        return game_id("shogi", self, plies=LONGEST)

    def init(self, rng_key: jax.Array) -> ShogiState:
        del rng_key
        return placed(sfen.START.position, sfen.START.ply, self.max_plies)

    def step(self, state: ShogiState, action: jax.Array) -> ShogiState:
        over = self.terminated(state)
        return judged(absorb(over, state, moved(state, action)), over)

    def moves(self, state: ShogiState) -> jax.Array:
        """Returns bool[A], the legal moves whether or not the game is over by repetition or a limit of plies."""
        return mask_of(legal(state))

    def legal_action_mask(self, state: ShogiState) -> jax.Array:
        return self.moves(state) & ~self.terminated(state)

    def legal_actions(self, state: ShogiState) -> jax.Array:
        return list_of(legal(state), ~self.terminated(state))

    def to_move(self, state: ShogiState) -> jax.Array:
        return state.player.astype(jnp.int32)

    def terminated(self, state: ShogiState) -> jax.Array:
        return (state.result != GOES_ON) | (state.ply >= self.max_plies)

    def truncated(self, state: ShogiState) -> jax.Array:
        return (state.result == GOES_ON) & (state.ply >= self.max_plies) & (state.ply < LONGEST)

    def returns(self, state: ShogiState) -> jax.Array:
        decided = (state.result != GOES_ON) & (state.result != DRAWN)
        return two_player_returns(decided, self.to_move(state) ^ (state.result != WON))

    def observe(self, state: ShogiState) -> jax.Array:
        hands = [
            ((words[:, None] >> tables.HAND_SHIFT[None]) & tables.HAND_MASK[None])
            for words in (state.hands, state.other_hands)
        ]
        times = (state.repetitions >> np.arange(0, 4 * HISTORY, 4, dtype=np.uint32)) & 15
        repeated = times[:, None] == np.arange(1, _SEEN_COUNTS + 1, dtype=np.uint32)[None]
        nothing = jnp.zeros((HISTORY, _SEEN_PIECES), jnp.uint32)
        steps = jnp.concatenate([nothing, repeated.astype(jnp.uint32), *hands], axis=1)
        last = jnp.stack([state.player.astype(jnp.uint32), state.ply.astype(jnp.uint32)])
        counts = fence(jnp.concatenate([steps.reshape(-1), last]))
        # One expression over all planes, whose rows are contiguous.
        words = jnp.where(_IN_RECENT[None], fence(state.recent)[:, None], fence(state.older)[:, None])
        present = (words >> _BOARD_SHIFT[None]) & 31 == _CODE[None]
        planes = (present.astype(jnp.int32) + counts.astype(jnp.int32)[None]).astype(jnp.float32) * _SCALE[None]
        return planes.reshape(self.observation_shape)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The identity, and left and right exchanged."""
        return (*super().symmetries, Symmetry(lambda observation: jnp.flip(observation, 1), _mirrored_actions()))

    def parse_action(self, text: str) -> int:
        """Returns the action of a USI move by Black; capital and small letters are alike."""
        return _action(text, 0)

    def action_name(self, action: int) -> str:
        """Returns the USI move as Black would make it; "off(N)" where the action leaves the board."""
        move = move_of(action, 0)
        return f"off({action})" if move is None else usi.write_move(move)

    def move_name(self, state: ShogiState, action: int) -> str:
        """Returns the USI move."""
        move = move_of(action, int(state.player))
        return f"off({action})" if move is None else usi.write_move(move)

    def parse_move(self, state: ShogiState, text: str) -> int:
        """Returns the action of a USI move; capital and small letters are alike."""
        return _action(text, int(state.player))

    def parse_position(self, text: str) -> ShogiState:
        """Returns the position of an SFEN (sfen.py), without a past; its move number is the ply + 1."""
        position, number = sfen.parse(text)
        return placed(position, number - 1, self.max_plies)

    def without_past(self, state: ShogiState) -> ShogiState:
        """Returns the position with neither repetitions nor plies counted; it may be over all the same."""
        return placed(self.position(state), 0, self.max_plies)

    def position(self, state: ShogiState) -> Position:
        """Returns the board, hands and turn in plain Python (host side)."""
        turn = int(state.player)
        codes = np.asarray(state.recent) & 31
        kinds = np.argsort(tables.CODES)[codes & (tables.ENEMY - 1)]
        board = np.where(codes >= tables.ENEMY, -kinds, kinds)
        words = [int(np.asarray(words)[0]) for words in (state.hands, state.other_hands)]
        hands = [
            tuple(
                word >> int(shift) & int(mask) for shift, mask in zip(tables.HAND_SHIFT, tables.HAND_MASK, strict=True)
            )
            for word in words
        ]
        if turn:
            board, hands = -board[::-1], hands[::-1]
        return Position(tuple(board.tolist()), (hands[0], hands[1]), turn)

    def render(self, state: ShogiState) -> str:
        position = self.position(state)

        def hand(player: int) -> str:
            held = [f"{KINDS[kind]}{number if number > 1 else ''}" for kind, number in _held(position, player)]
            return " ".join(held) or "nothing"

        lines = [f"White (moves down) holds {hand(1)}", "   9  8  7  6  5  4  3  2  1"]
        for row, name in enumerate("abcdefghi"):
            pieces = [_letters(piece) for piece in position.board[9 * row : 9 * row + 9]]
            lines.append(f" {' '.join(f'{piece:>2}' for piece in pieces)}  {name}")
        check = ", in check" if position.in_check() else ""
        turn = ("Black", "White")[position.turn]
        return "\n".join([*lines, f"Black (moves up) holds {hand(0)}", f"{turn} to move{check}"])


def _action(text: str, turn: int) -> int:
    move = usi.parse_move(text)
    try:
        return action_of(move, turn)
    except ValueError:
        raise ValueError(f"move: got {text.strip()!r}, expected a line or a knight's jump") from None


def _held(position: Position, player: int) -> list[tuple[int, int]]:
    return [(kind, number) for kind, number in zip(HAND, position.hands[player], strict=True) if number]


def _letters(piece: int) -> str:
    return "." if piece == 0 else KINDS[piece] if piece > 0 else KINDS[-piece].lower()


def _observed() -> tuple[np.ndarray, ...]:
    """Returns, for each plane: the code that it marks, whether its board is in `recent`, its shift, its scale."""
    step, plane = np.divmod(np.arange(_PER_POSITION * HISTORY), _PER_POSITION)
    pieces = np.concatenate([tables.CODES[1:], tables.CODES[1:] + np.uint32(tables.ENEMY)])
    code = np.where(plane < _SEEN_PIECES, pieces[np.minimum(plane, _SEEN_PIECES - 1)], _NO_CODE)
    scale = np.ones(_PER_POSITION, np.float32)
    scale[_SEEN_PIECES + _SEEN_COUNTS :] = np.tile(1 / tables.IN_HAND, 2)
    return (
        np.append(code, [_NO_CODE] * 2).astype(np.uint32),
        np.append(step < 4, [False] * 2),
        np.append(step % 4 * 8, [0] * 2).astype(np.uint32),
        np.append(scale[plane], [1, 1 / LONGEST]).astype(np.float32),
    )


_CODE, _IN_RECENT, _BOARD_SHIFT, _SCALE = _observed()


def _mirrored_actions() -> np.ndarray:
    """Returns int16[A]: each action with left and right exchanged."""
    mirrored_plane = [STEPS.index((rows, -columns)) for rows, columns in STEPS]
    planes = [*mirrored_plane, *(len(STEPS) + plane for plane in mirrored_plane), *range(2 * len(STEPS), PLANES)]
    square, plane = np.divmod(np.arange(NUM_ACTIONS), PLANES)
    row, column = np.divmod(square, 9)
    return ((row * 9 + 8 - column) * PLANES + np.array(planes)[plane]).astype(np.int16)


GAME = Shogi()
