"""One position on a device: 1,067 bytes with eight boards of history, all of it as the player to move sees it."""

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import Bits
from envs.chess.actions import DIRECTIONS, NUM_PLANES
from envs.chess.legal import KING_SIDE, QUEEN_SIDE, Pieces
from envs.chess.position import BLACK, KNIGHT, Position
from envs.chess.rays import constant, some, square, where
from envs.core import register_state

CLOCK = 100
"""Half-moves without a capture or pawn move after which the game is drawn; so many positions can come again."""
LETTERS = "PNBRQKpnbrqk"
CODES = np.array([[0, 0, 1], [1, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 1]], bool)
"""bool[6, 3], the bits 0 to 2 of `legal.Pieces` for P N B R Q K."""
MATE, DRAW = 1, 2

# Target less source of each plane, and what a pawn becomes: bits 0 and 1 of `legal.Pieces`.
_OFFSETS = np.array(
    [8 * far * row + far * column for row, column in DIRECTIONS for far in range(1, 8)]
    + [8 * row + column for row, column in KNIGHT]
    + [-9, -8, -7] * 3,
    np.int32,
)
_CASTLES_EAST, _CASTLES_WEST, _DOUBLE_STEP = 15, 43, 1  # planes
_UNDERPROMOTIONS = 64


def _factors(numbers: int) -> np.ndarray:
    """Returns uint32[numbers, 4], as good as random; by arithmetic, so that stored positions outlive any generator."""
    index = np.arange(1, 4 * numbers + 1, dtype=np.uint64)
    mixed = index * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed >> np.uint64(32)).astype(np.uint32).reshape(numbers, 4)


_FACTORS = _factors(17)


@register_state
class ChessState:
    """One position and what of its past counts. T boards of history."""

    boards: jax.Array  # uint32[2, 4, T], word, bit of `legal.Pieces`, plies ago; zeros before the first board
    hashes: jax.Array  # uint32[2, 100], of the position whose clock stood at 0, 1, ...; 0 where unknown
    occurrences: jax.Array  # uint32[], 2 bits a board of history, the newest lowest: how often it had been there then
    castling: jax.Array  # uint8[], rights: 1 king's side, 2 queen's, 4 and 8 the other player's
    passed: jax.Array  # int8[], column of the pawn that the other player has just moved two squares, or -1
    clock: jax.Array  # int16[], half-moves since the last capture or pawn move
    ply: jax.Array  # int16[]
    end: jax.Array  # int8[], 0 goes on, MATE the player to move is mated, DRAW


def pieces_of(boards: jax.Array) -> Pieces:
    """Returns the newest board."""
    bits = [Bits((boards[0, bit, 0], boards[1, bit, 0])) for bit in range(4)]
    return Pieces((bits[0], bits[1], bits[2], bits[3]))


def after_move(state: ChessState, action: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Returns boards, castling, passed and clock after a legal action int32[], as the other player sees them."""
    pieces = pieces_of(state.boards)
    source, plane = action // NUM_PLANES, action % NUM_PLANES
    target = source + jnp.sum(jnp.where(plane == np.arange(NUM_PLANES), _OFFSETS, 0), dtype=jnp.int32)
    leaves, arrives = square(source), square(jnp.clip(target, 0, 63))
    code = [some(bits & leaves) for bits in pieces.bits[:3]]
    pawn = code[2] & ~code[0] & ~code[1]
    king = code[2] & code[1]
    capture = some(pieces.occupied & arrives)
    sideways = (target - source) % 8 != 0
    en_passant = square(jnp.where(pawn & sideways & ~capture, target + 8, -1))

    promoted = pawn & (target < 8)
    under = jnp.clip((plane - _UNDERPROMOTIONS) // 3, -1, 2)  # -1 queen, 0 knight, 1 bishop, 2 rook
    becomes = ((under != 1), (under == -1) | (under == 1), under == 0)
    code = [jnp.where(promoted, new, old) for new, old in zip(becomes, code, strict=True)]

    east, west = king & (plane == _CASTLES_EAST), king & (plane == _CASTLES_WEST)
    rook_leaves = where(east, constant(np.array([63]))) | where(west, constant(np.array([56])))
    rook_arrives = where(east, constant(np.array([61]))) | where(west, constant(np.array([59])))

    stays = ~(leaves | arrives | en_passant | rook_leaves)
    moved = [(bits & stays) | where(on, arrives) for bits, on in zip(pieces.bits, code, strict=False)]
    moved[0] = moved[0] | rook_arrives
    now = [*moved, pieces.enemy & stays]
    newest = jnp.stack([jnp.stack([bits.words[word] for bits in now]) for word in (0, 1)])
    boards = turned(jnp.concatenate([newest[:, :, None], state.boards[:, :, :-1]], axis=2))

    castling = state.castling & ~_rights_lost(source, target)
    castling = (castling >> 2) | ((castling & 3) << 2)
    double = pawn & (plane == _DOUBLE_STEP)
    passed = jnp.where(double, source % 8, -1).astype(jnp.int8)
    clock = jnp.where(pawn | capture, jnp.int16(0), state.clock + jnp.int16(1))
    return boards, castling, passed, clock


def _rights_lost(source: jax.Array, target: jax.Array) -> jax.Array:
    """Returns uint8[]: a king or rook left its square, or a rook was taken there."""
    lost = jnp.where(source == 60, KING_SIDE | QUEEN_SIDE, 0)
    lost = lost | jnp.where(source == 63, KING_SIDE, 0) | jnp.where(source == 56, QUEEN_SIDE, 0)
    lost = lost | jnp.where(target == 7, 4 * KING_SIDE, 0) | jnp.where(target == 0, 4 * QUEEN_SIDE, 0)
    return lost.astype(jnp.uint8)


def turned(boards: jax.Array) -> jax.Array:
    """Returns uint32[2, 4, T] as the other player sees it: rows mirrored, colours changed."""
    # A row is a byte: bytes change their order inside words, and words their places.
    swapped = (boards << 24) | ((boards & 0xFF00) << 8) | ((boards >> 8) & 0xFF00) | (boards >> 24)
    mirrored = swapped[::-1]
    occupied = mirrored[:, 0] | mirrored[:, 1] | mirrored[:, 2]
    return jnp.concatenate([mirrored[:, :3], (mirrored[:, 3] ^ occupied)[:, None]], axis=1)


def hash_of(boards: jax.Array, castling: jax.Array, passed: jax.Array, ply: jax.Array) -> jax.Array:
    """Returns uint32[2], a hash of the newest board, rights, side to move and en-passant column; never 0.

    The upper halves of four sums of 16-bit numbers times random 32-bit factors: two different positions have the same
    ones for 1 of 2^63 choices of the factors (multilinear hashing: Lemire and Kaser, Strongly universal string hashing
    is fast, 2014). A mixer of words by shifts and products found one repetition in half a million that was none.

    Args:
      passed: int8[], the column where a pawn may in fact be taken, else -1.
    """
    side = ply.astype(jnp.uint32) & 1
    rest = castling.astype(jnp.uint32) | (passed + jnp.int8(1)).astype(jnp.uint32) << 4 | side << 8
    words = [boards[word, bit, 0] for word in (0, 1) for bit in range(4)]
    numbers = [rest, *(word & 0xFFFF for word in words), *(word >> 16 for word in words)]
    total = jnp.zeros(4, jnp.uint32)
    for number, factors in zip(numbers, _FACTORS, strict=True):
        total = total + number * factors
    upper = total >> 16
    return (upper[:2] | (upper[2:] << 16)) | np.array([1, 0], np.uint32)


def is_dead(pieces: Pieces) -> jax.Array:
    """Returns bool[]: kings and one knight, or kings and bishops of one square colour alone."""
    others = pieces.occupied & ~pieces.kings
    light = constant(np.array([at for at in range(64) if sum(divmod(at, 8)) % 2 == 0]))
    bishops = pieces.bishops & ~pieces.rooks
    no_bishops_but = ~some(others & ~bishops) & ~(some(bishops & light) & some(bishops & ~light))
    one_knight = (others.count() == 1) & some(pieces.knights)
    return no_bishops_but | one_knight


def boards_of(position: Position, history: int) -> np.ndarray:
    """Returns uint32[2, 4, history] of a position without a past (host side)."""
    boards = np.zeros((2, 4, history), np.uint32)
    for at, letter in enumerate(position.board):
        if letter != ".":
            seen = at ^ 56 if position.turn == BLACK else at
            kind = "PNBRQK".index(letter.upper())
            theirs = letter.islower() != (position.turn == BLACK)
            boards[seen // 32, :, 0] |= np.array([*CODES[kind], theirs], np.uint32) << np.uint32(seen % 32)
    return boards


def rights_of(position: Position) -> int:
    """Returns `castling` of a position (host side)."""
    order = "kqKQ" if position.turn == BLACK else "KQkq"
    return sum(1 << bit for bit, letter in enumerate(order) if letter in position.castling)


def position_of(state: ChessState) -> Position:
    """Returns the position, without its past (host side)."""
    boards = np.asarray(state.boards)[:, :, 0]
    turn = int(state.ply) % 2
    bits = (boards[:, :, None] >> np.arange(32, dtype=np.uint32)) & 1  # [2, 4, 32]
    squares = bits.transpose(0, 2, 1).reshape(64, 4).astype(bool)
    letters = ["."] * 64
    for at, (*code, theirs) in enumerate(squares.tolist()):
        if any(code):
            letter = "PNBRQK"[CODES.tolist().index(code)]
            letters[at ^ 56 if turn == BLACK else at] = letter.lower() if theirs != (turn == BLACK) else letter
    order = "kqKQ" if turn == BLACK else "KQkq"
    rights = {letter for bit, letter in enumerate(order) if int(state.castling) >> bit & 1}
    passed = int(state.passed)
    return Position(
        board="".join(letters),
        turn=turn,
        castling="".join(letter for letter in "KQkq" if letter in rights),
        en_passant=None if passed < 0 else passed + (16 if turn != BLACK else 40),
        halfmoves=int(state.clock),
        fullmoves=int(state.ply) // 2 + 1,
    )
