"""Which moves are legal, found without making one: what attacks, checks and pins, then sets of squares to move from.

Everything is in the mover's frame: own pawns move to row 0. Checks and pins are what the king sees in eight directions;
a piece that is not the king may then go where it takes the one checker or stands between, and if pinned only along the
pin.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import Bits
from envs.chess.rays import (
    LEAPS,
    along,
    before,
    by_kind,
    constant,
    kept_set,
    looking,
    rays_from,
    some,
    square,
    to_first,
    union,
    where,
)

KING_SIDE, QUEEN_SIDE = 1, 2  # bits of the rights to castle; the other player's are 4 and 8
_NORTH, _EAST, _WEST = (np.arange(8) == direction for direction in (0, 2, 6))
_PAWN_TAKES, _PAWN_CHECKS = (np.isin(np.arange(8), directions) for directions in ((1, 7), (3, 5)))


class Pieces(NamedTuple):
    """One board as the player to move sees it. Four bits a square tell what stands there.

    bit 0 and not 2: moves as a rook; bit 1 and not 2: as a bishop; both: a queen; 2 alone: a pawn; 2 and 0: a knight;
    2 and 1: a king. Bit 3: the other player's.
    """

    bits: tuple[Bits, Bits, Bits, Bits]

    @property
    def occupied(self) -> Bits:
        return self.bits[0] | self.bits[1] | self.bits[2]

    @property
    def enemy(self) -> Bits:
        return self.bits[3]

    @property
    def own(self) -> Bits:
        return self.occupied & ~self.enemy

    @property
    def rooks(self) -> Bits:
        """Rooks and queens."""
        return self.bits[0] & ~self.bits[2]

    @property
    def bishops(self) -> Bits:
        """Bishops and queens."""
        return self.bits[1] & ~self.bits[2]

    @property
    def pawns(self) -> Bits:
        return self.bits[2] & ~(self.bits[0] | self.bits[1])

    @property
    def knights(self) -> Bits:
        return self.bits[2] & self.bits[0]

    @property
    def kings(self) -> Bits:
        return self.bits[2] & self.bits[1]


class LegalMoves(NamedTuple):
    """The legal moves as sets of the squares that are left, and what the rules ask beside."""

    slides: list[Bits]  # [8] each, by distance 1 to 7: the first 56 planes, pawns and castling included
    leaps: Bits  # [8]
    promotions: Bits  # [8], pawn moves to the last row, by direction
    in_check: jax.Array  # bool[]
    en_passant: jax.Array  # bool[]: a pawn may take so


def legal_moves(pieces: Pieces, castling: jax.Array, passed: jax.Array) -> LegalMoves:
    """Finds the legal moves.

    Args:
      pieces: the board.
      castling: uint8[], rights.
      passed: int8[], column of the enemy pawn that has just made two steps, or -1.
    """
    own, enemy, empty = pieces.own, pieces.enemy, ~pieces.occupied
    king, pawns = pieces.kings & own, pieces.pawns & own
    sliders = by_kind(pieces.rooks, pieces.bishops)
    attackers = sliders & _each(enemy)

    # The squares that the enemy attacks, through the king as well: it may not step back along a ray.
    near = along(_PAWN_TAKES, pieces.pawns & enemy) | _each(pieces.kings & enemy)
    attacked = union(looking(attackers, _each(empty | king)) | before(near) | before(pieces.knights & enemy, LEAPS))

    # What stands in each direction from the king; `sight` are the squares up to there, it included.
    rays = rays_from(king)
    sight = kept_set(to_first(rays, pieces.occupied))
    pawn_checks = along(_PAWN_CHECKS, before(king) & _each(pieces.pawns & enemy))
    knight_checks = before(king, LEAPS) & _each(pieces.knights & enemy)
    slider_checks = some(sight & attackers)
    checkers = union(where(slider_checks, sight & attackers) | pawn_checks | knight_checks)
    answers = union(where(slider_checks, sight) | pawn_checks | knight_checks)
    number = checkers.count()
    answers = Bits(
        tuple(
            jnp.where(number == 0, jnp.uint32(0xFFFFFFFF), jnp.where(number == 1, word, jnp.uint32(0)))
            for word in answers.words
        )
    )
    shields = sight & _each(own)
    pins = kept_set(where(some(to_first(rays, pieces.occupied & ~shields) & attackers), shields))
    pinned = union(pins)
    opposite = Bits(tuple(jnp.concatenate([word[4:], word[:4]]) for word in pins.words))
    free = _each(~pinned) | pins | opposite

    other_checks = union(pawn_checks | knight_checks)
    target = kept_set(_en_passant_target(pieces, rays, pawns, attackers, other_checks, passed))
    takes = along(_PAWN_TAKES, (enemy & answers) | target)
    steps = before(takes | along(_NORTH, empty & answers))
    second_steps = before(along(_NORTH, empty & before(along(_NORTH, empty & answers))))
    pawn_moves = kept_set(steps & _each(pawns) & free)
    double_moves = kept_set(second_steps & _each(pawns & constant(np.arange(48, 56))) & free)
    king_moves = kept_set(before(~own & ~attacked) & _each(king))

    movers = kept_set(sliders & _each(own) & free)
    reach = before(~own & answers)
    slides = [(reach & movers) | pawn_moves | king_moves]
    for distance in range(2, 8):
        reach = before(_each(empty) & reach)
        moves = reach & movers
        if distance == 2:
            moves = moves | double_moves | _castling_moves(pieces, king, attacked, castling)
        slides.append(moves)
    leaps = before(~own & answers, LEAPS) & _each(pieces.knights & own & ~pinned)
    en_passant = some(union(before(along(_PAWN_TAKES, target)) & _each(pawns) & free))
    return LegalMoves(slides, leaps, pawn_moves & _each(constant(np.arange(8, 16))), number > 0, en_passant)


def _en_passant_target(
    pieces: Pieces, rays: Bits, pawns: Bits, attackers: Bits, other_checks: Bits, passed: jax.Array
) -> Bits:
    """Returns the square to take on en passant, unless what it takes off the board leaves the king attacked.

    Two pawns go at once, of which pins know one. Where two own pawns could take, the other stays on the row; a pin of
    the one that moves is `legal_moves`' to see.
    """
    exists = passed >= 0
    column = passed.astype(jnp.int32)
    target = square(jnp.where(exists, 16 + column, -1))
    taken = square(jnp.where(exists, 24 + column, -1))
    takers = union(along(_PAWN_TAKES, before(target))) & pawns
    takers = where(takers.count() == 1, takers)
    occupied = (pieces.occupied & ~taken & ~takers) | target
    exposed = some(to_first(rays, occupied) & attackers).any()
    return where(~(exposed | some(other_checks & ~taken)), target)


def _castling_moves(pieces: Pieces, king: Bits, attacked: Bits, castling: jax.Array) -> Bits:
    """Returns the king where it may castle: nothing between it and the rook, no square attacked on its way."""

    def may(right: int, between: tuple[int, ...], walked: tuple[int, ...]) -> jax.Array:
        blocked = (pieces.occupied & constant(np.array(between))) | (attacked & constant(np.array(walked)))
        return (castling & right != 0) & ~some(blocked)

    king_side = may(KING_SIDE, (61, 62), (60, 61, 62))
    queen_side = may(QUEEN_SIDE, (57, 58, 59), (58, 59, 60))
    return along(_EAST, where(king_side, king)) | along(_WEST, where(queen_side, king))


def _each(bits: Bits) -> Bits:
    """Returns the same set for every direction."""
    return Bits(tuple(jnp.broadcast_to(word, (8,)) for word in bits.words))
