"""Legal moves by bits: pins and checks are found once, and no move is made to see whether it is legal.

Every square sees along eight lines at once (tables.py draws the lanes). A lane holds, for each of up to eight squares,
whether something stands there, and one more fact (the flag). Then subtraction finds the first thing in every lane:

    occupied  . X . . X .  = x        x - 1 turns the lowest bit and all below it round, so x & ~(x - 1) is the first,
    first     . X . . . .             x ^ (x - 1) the squares up to it, and the same without the first gives the second.

A piece is pinned where the second thing seen from its king is a slider that attacks along the lane and it is the first.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.shogi import tables
from envs.shogi.actions import DIRECTIONS, FIRST_KNIGHT, FIRST_PROMOTING, PLANES
from envs.shogi.sfen import MOST_MOVES
from envs.shogi.tables import ENEMY, KING, KNIGHT, LANES, PAWN

_REACH = 80  # entries of padding: the longest line
_ONES = np.uint32(0x00010001)
_BYTES = np.uint32(0x00FF00FF)
_SQUARES = np.arange(81, dtype=np.int32)
_OFF_BOARD = tuple(word & np.uint32(0x007F007F) for word in tables.lane_words(*(~w for w in tables.ON_BOARD[:2])))
_KEPT = tuple(np.uint32(0x007F007F) | (word << np.uint32(8)) for word in tables.lane_words(*tables.ON_BOARD[:2]))
_LANE_ON_BOARD = tables.lane_words(*tables.ON_BOARD[:2])
_TURNED_KNIGHTS = tables.ON_BOARD[2][::-1]  # of knights that come from below


class Moves(NamedTuple):
    """The legal moves of one position. Each word is uint32[81], by the square that an action names."""

    first: jax.Array  # planes 0 to 31
    second: jax.Array  # planes 32 to 63
    first_promoting: jax.Array  # planes 66 to 97
    second_promoting: jax.Array  # planes 98 to 129
    others: jax.Array  # bits 0, 1: planes 64, 65; from bit 2: planes 130 to 138
    in_check: jax.Array  # bool[]

    @property
    def words(self) -> tuple[jax.Array, ...]:
        return self[:5]


class _Seen(NamedTuple):
    """What squares see along their lanes: four words, uint32[81] or uint32[]."""

    occupied: tuple[jax.Array, ...]  # bits 7 and 8 of a lane always set, so that there is a first and a second
    flags: tuple[jax.Array, ...]


class _Lines(NamedTuple):
    """Words uint32[] by planes: 0 to 31, 32 to 63, knights."""

    first: jax.Array
    second: jax.Array
    knights: jax.Array


def legal_moves(codes: jax.Array, hand: jax.Array) -> Moves:
    """Returns the legal moves.

    Args:
      codes: uint32[81], the mover's board.
      hand: uint32[], what the mover holds (tables.HAND_SHIFT).
    """
    occupied, enemy = codes != 0, codes >= ENEMY
    own = occupied & ~enemy
    piece = codes & (ENEMY - 1)
    is_king, is_enemy_king = codes == KING, codes == KING + ENEMY
    king, enemy_king = _square_of(is_king), _square_of(is_enemy_king)

    # What attacks where, if the own king were not in the way; what attacks him, what is pinned before him.
    # An enemy that is seen in one direction moves the other way, and so do his pieces: the sets are the mover's own.
    threats = _seen(occupied & ~is_king, enemy, piece, tables.STEPS_AND_SLIDES, tables.SLIDES)
    knight_threats = _jumps(enemy & (piece == KNIGHT), -1) & tables.ON_BOARD[2]
    attacked = _any_attack(threats) | (knight_threats != 0)
    view, jumps = _at(threats, king), _pick(knight_threats, king)
    checks = _attackers(view, jumps, king >= 0)
    number_of_checks = jax.lax.population_count(jnp.stack(checks)).sum(dtype=jnp.uint32)
    from_king = _relations(king)
    answers = _bit(from_king, _lines(_up_to_attacker(view), jumps))
    may_go = (number_of_checks == 0) | ((number_of_checks == 1) & answers)
    pinned = _bit(from_king, _lines(_pins(view), jnp.uint32(0))) & (king >= 0)

    # Everything's moves but the king's, to squares where it may go; the king's to squares that nothing attacks.
    board = [_padded(occupied, ~own & may_go)] * len(DIRECTIONS)
    seen = _views(board, board)
    safe = _look_near(~own & ~attacked)
    reached = []
    for word, (low, high) in enumerate(LANES):
        moving = [_has(tables.SLIDES[d], piece) * 0xFF | _has(tables.STEPS_AND_SLIDES[d], piece) for d in (low, high)]
        lanes = _through_first(seen.occupied[word]) & seen.flags[word] & (moving[0] | moving[1] << 16)
        reached.append(jnp.where(is_king, safe[word], lanes))
    axis = ((from_king >> 3) & 3).astype(jnp.uint32)
    allowed = jnp.where(own, jnp.where(pinned, jnp.uint32(0xFF) << (8 * axis), np.uint32(0xFFFFFFFF)), jnp.uint32(0))
    first, second = (word & allowed for word in (reached[0] | reached[1] << 8, reached[2] | reached[3] << 8))

    knights = jnp.where(own & (piece == KNIGHT) & ~pinned, _jumps(~own & may_go, -1) & tables.ON_BOARD[2], 0)
    promotable = _has(tables.PROMOTABLE, piece) != 0
    stuck = jnp.where(_has(tables.MUST_MOVE_ON, piece) != 0, tables.LAST_ROW[0], np.uint32(0))
    mating = _pawn_drop_that_mates(codes, piece, own, enemy, threats, knight_threats, enemy_king)
    held = sum(
        jnp.where((hand >> shift) & mask != 0, np.uint32(1 << bit), np.uint32(0))
        for bit, (shift, mask) in enumerate(zip(tables.HAND_SHIFT, tables.HAND_MASK, strict=True))
    )
    has_pawn = jnp.broadcast_to((codes == PAWN).reshape(9, 9).any(0)[None], (9, 9)).reshape(81)
    no_pawn = (has_pawn | mating).astype(jnp.uint32)
    drops = jnp.where(occupied | ~may_go, 0, held & tables.DROPPABLE & ~no_pawn)
    others = (knights & ~tables.LAST_ROWS[2]) | (knights & tables.IN_ZONE[2]) << 2 | drops << 4
    return Moves(
        first=fence(first & ~stuck),
        second=fence(second),
        first_promoting=fence(jnp.where(promotable, first & tables.IN_ZONE[0], 0)),
        second_promoting=fence(jnp.where(promotable, second & tables.IN_ZONE[1], 0)),
        others=fence(others),
        in_check=number_of_checks > 0,
    )


def any_move(moves: Moves) -> jax.Array:
    """Returns bool[]: there is a legal move."""
    union = moves.words[0]
    for word in moves.words[1:]:
        union = union | word
    return (union != 0).any()


def _plane_bits() -> list[np.ndarray]:
    """Returns uint32[139] for each of the words of `Moves`: the bit that stands for each plane, 0: another word's."""
    ranges = [(0, 32, 0), (32, 64, 0), (66, 98, 0), (98, 130, 0), (64, 66, 0), (130, PLANES, 2)]
    bits = np.zeros((len(ranges), PLANES), np.uint32)
    for number, (first, end, bit) in enumerate(ranges):
        bits[number, first:end] = np.uint32(1) << np.arange(bit, bit + end - first, dtype=np.uint32)
    return [*bits[:4], bits[4] | bits[5]]


_PLANE_BITS = _plane_bits()
_FIRST_PLANES = (0, 32, 66, 98)
_ROWS = 27  # of the mask at a time
_IS_OTHER = 1 << 16


def mask_of(moves: Moves) -> jax.Array:
    """Returns bool[81 * 139], the legal actions."""

    def some_rows(number: jax.Array, mask: jax.Array) -> jax.Array:
        start = number * _ROWS
        total = jnp.zeros((_ROWS, PLANES), jnp.uint32)
        for word, bits in zip(moves.words, _PLANE_BITS, strict=True):
            total |= jax.lax.dynamic_slice(word, (start,), (_ROWS,))[:, None] & bits[None]
        # On a CPU 0 and 1 made so are twice as fast as a comparison.
        rows = jnp.minimum(total, 1).astype(jnp.uint8).astype(jnp.bool_)
        return jax.lax.dynamic_update_slice(mask, rows, (start, 0))

    # A loop, so that XLA does not count through the flat mask with a division for each entry (2 against 39 us).
    mask = jax.lax.fori_loop(0, 81 // _ROWS, some_rows, jnp.zeros((81, PLANES), jnp.bool_))
    return mask.reshape(-1)


def list_of(moves: Moves, alive: jax.Array) -> jax.Array:
    """Returns int16[593], the legal actions in ascending order, padded with -1; none unless `alive` bool[].

    A square has words of one kind: a knight's moves and drops are in `others`, all else is in the other four. So the
    words of a square are in order, and a slot needs to know its square and how many moves there are before that.
    """
    words = [moves.first | moves.others, *moves.words[1:4]]
    counts = [jax.lax.population_count(word).astype(jnp.int32) for word in words]
    number = jnp.where(alive, sum(counts), 0)
    ends = jnp.cumsum(number)
    before = fence((ends - number + jnp.where(moves.others != 0, _IS_OTHER, 0)).astype(jnp.uint32)).astype(jnp.int32)
    ends = fence(ends.astype(jnp.uint32)).astype(jnp.int16)
    slots = np.arange(MOST_MOVES, dtype=np.int32)
    square = jnp.zeros(MOST_MOVES, jnp.int16)
    for end in range(81):  # written out, as XLA is slow at such sums
        square += (ends[end] <= slots.astype(np.int16)).astype(jnp.int16)
    square = square.astype(jnp.int32)
    here = jnp.minimum(square, 80)
    other = before[here] >= _IS_OTHER
    rest = slots - before[here] % _IS_OTHER
    word, index, base = (jnp.zeros(MOST_MOVES, dtype) for dtype in (jnp.uint32, jnp.uint32, jnp.int32))
    for first_plane, each in zip(_FIRST_PLANES, map(fence, words), strict=True):
        there = each[here]
        count = jax.lax.population_count(there).astype(jnp.int32)
        found = (rest >= 0) & (rest < count)
        word, base = jnp.where(found, there, word), jnp.where(found, first_plane, base)
        index = jnp.where(found, rest.astype(jnp.uint32), index)
        rest = rest - count
    bit = _nth_bit(word, index).astype(jnp.int32)
    plane = base + bit + jnp.where(other, FIRST_KNIGHT + jnp.where(bit > 1, FIRST_PROMOTING - 2, 0), 0)
    return jnp.where(square < 81, square * PLANES + plane, -1).astype(jnp.int16)


def _nth_bit(word: jax.Array, n: jax.Array) -> jax.Array:
    """Returns where the n-th (from 0) set bit of a word is."""
    place = jnp.zeros_like(word)
    for width in (16, 8, 4, 2, 1):
        low = jax.lax.population_count(word & np.uint32((1 << width) - 1))
        above = n >= low
        n = jnp.where(above, n - low, n)
        word = jnp.where(above, word >> width, word)
        place = jnp.where(above, place + width, place)
    return place


def fence(words: jax.Array) -> jax.Array:
    """Returns `words`, none of which has all bits set, so that XLA computes them once.

    On a CPU XLA repeats what an array costs in each operation that reads it, unless that is a division.
    """
    return words % np.uint32(0xFFFFFFFF)


def _pawn_drop_that_mates(
    codes: jax.Array,
    piece: jax.Array,
    own: jax.Array,
    enemy: jax.Array,
    threats: _Seen,
    knight_threats: jax.Array,
    enemy_king: jax.Array,
) -> jax.Array:
    """Returns bool[81]: the one square where a dropped pawn mates, if there is one.

    It is the square before the enemy's king, if that king has no square to go to (the pawn's included) and nothing else
    takes the pawn; what is pinned cannot, as it would leave a line on which the pawn's square does not lie.
    """
    target = jnp.where((enemy_king >= 0) & (enemy_king < 72), enemy_king + 9, -1)
    dropped = target == _SQUARES
    occupied = (codes != 0) & (codes != KING + ENEMY) | dropped
    turned = (4, 5, 6, 7, 0, 1, 2, 3)
    near, far = ([sets[direction] for direction in turned] for sets in (tables.STEPS_AND_SLIDES, tables.SLIDES))
    guards = _seen(occupied, own, piece, near, far)
    guarded = _any_attack(guards) | (_jumps(own & (piece == KNIGHT), 1) & _TURNED_KNIGHTS != 0)
    from_king = _relations(enemy_king)
    flees = (from_king < FIRST_KNIGHT) & (from_king % 8 == 0) & ~guarded & ~enemy
    pinned = _bit(from_king, _lines(_pins(_at(guards, enemy_king)), jnp.uint32(0)))
    attackers = _attackers(_at(threats, target), _pick(knight_threats, target), target >= 0)
    takes = _bit(_relations(target), _lines(attackers[:4], attackers[4])) & ~pinned & (codes != KING + ENEMY)
    return dropped & ~(flees | takes).any()


def _seen(occupied: jax.Array, who: jax.Array, piece: jax.Array, near: Sequence[int], far: Sequence[int]) -> _Seen:
    """Returns what each square sees, flags on pieces of `who` bool[81] that attack it if nothing is between.

    Args:
      near: for each direction, the codes (as bits) of pieces that attack from the next square.
      far: the same from farther away.
    """
    kinds = {codes: who & (_has(codes, piece) != 0) for codes in (*near, *far)}
    padded = {codes: _padded(occupied, flag) for codes, flag in kinds.items()}
    return _views([padded[codes] for codes in near], [padded[codes] for codes in far])


def _views(near: Sequence[jax.Array], far: Sequence[jax.Array]) -> _Seen:
    """Returns what each square sees of padded arrays (bit 0: occupied, bit 8: the flag), one a direction."""
    occupied, flags = [], []
    for word, lanes in enumerate(LANES):
        total = jnp.zeros(81, jnp.uint32)
        for lane, direction in enumerate(lanes):
            for distance in range(1, 9):
                padded = near[direction] if distance == 1 else far[direction]
                total |= _shifted(padded, direction, distance) << np.uint32(16 * lane + distance - 1)
        # Without bit 7 (nothing is behind the eighth square) it is never all ones.
        total = fence((total | _OFF_BOARD[word]) & _KEPT[word])
        occupied.append((total & np.uint32(0x007F007F)) | np.uint32(0x01800180))
        flags.append((total >> 8) & _BYTES)
    return _Seen(tuple(occupied), tuple(flags))


def _look_near(holds: jax.Array) -> list[jax.Array]:
    """Returns four words uint32[81]: of the neighbours, where bool[81] holds."""
    padded = _padded(jnp.zeros(81, jnp.bool_), holds) >> 8
    return [
        (_shifted(padded, low, 1) | _shifted(padded, high, 1) << 16) & on_board
        for (low, high), on_board in zip(LANES, _LANE_ON_BOARD, strict=True)
    ]


def _padded(occupied: jax.Array, flag: jax.Array) -> jax.Array:
    word = occupied.astype(jnp.uint32) | flag.astype(jnp.uint32) << 8
    return fence(jnp.pad(word, _REACH))


def _shifted(padded: jax.Array, direction: int, distance: int) -> jax.Array:
    rows, columns = DIRECTIONS[direction]
    start = _REACH + distance * (9 * rows + columns)
    return padded[start : start + 81]


def _jumps(holds: jax.Array, down: int) -> jax.Array:
    """Returns uint32[81], bits 0 and 1: bool[81] holds two rows up (down -1) or down (1), to the left, to the right."""
    padded = jnp.pad(holds.astype(jnp.uint32), 19)
    left, right = (padded[19 + start : 100 + start] for start in (18 * down - 1, 18 * down + 1))
    return left | right << 1 if down < 0 else right | left << 1


def _has(codes: int, piece: jax.Array) -> jax.Array:
    """Returns uint32[...]: 1 where the piece's code is in a set of codes."""
    return (np.uint32(codes) >> piece) & 1


def _through_first(occupied: jax.Array) -> jax.Array:
    """Returns the squares up to the first that is occupied, itself included."""
    return (occupied ^ (occupied - _ONES)) & _BYTES


def _first(occupied: jax.Array) -> jax.Array:
    return occupied & ~(occupied - _ONES)


def _whole_lanes(words: jax.Array) -> jax.Array:
    """Returns all bits of the lanes in which one bit is set."""
    return (((words + _BYTES) >> 8) & _ONES) * 0xFF


def _any_attack(seen: _Seen) -> jax.Array:
    hits = [_first(occupied) & flags for occupied, flags in zip(*seen, strict=True)]
    return (hits[0] | hits[1] | hits[2] | hits[3]) != 0


def _attackers(view: _Seen, jumps: jax.Array, there: jax.Array) -> list[jax.Array]:
    """Returns five words uint32[]: the attackers seen from one square, knights last."""
    hits = [_first(occupied) & flags for occupied, flags in zip(*view, strict=True)]
    return [jnp.where(there, word, jnp.uint32(0)) for word in (*hits, jumps)]


def _up_to_attacker(view: _Seen) -> list[jax.Array]:
    return [
        _through_first(occupied) & _whole_lanes(_first(occupied) & flags) for occupied, flags in zip(*view, strict=True)
    ]


def _pins(view: _Seen) -> list[jax.Array]:
    pins = []
    for occupied, flags in zip(*view, strict=True):
        first = _first(occupied)
        pins.append(first & _BYTES & _whole_lanes(_first(occupied & ~first) & flags))
    return pins


def _lines(words: Sequence[jax.Array], knights: jax.Array) -> _Lines:
    return _Lines(words[0] | words[1] << 8, words[2] | words[3] << 8, knights)


def _square_of(holds: jax.Array) -> jax.Array:
    """Returns int32[], the one square where bool[81] holds, or -1."""
    return jnp.max(jnp.where(holds, _SQUARES, -1))


def _at(seen: _Seen, square: jax.Array) -> _Seen:
    """Returns what one square int32[] sees."""
    occupied = tuple(_pick(word, square) for word in seen.occupied)
    return _Seen(tuple(word | np.uint32(0x01800180) for word in occupied), tuple(_pick(w, square) for w in seen.flags))


def _pick(words: jax.Array, square: jax.Array) -> jax.Array:
    return jnp.max(jnp.where(square == _SQUARES, words, 0))


def _relations(square: jax.Array) -> jax.Array:
    """Returns uint8[81], the plane that leads from a square int32[] to each."""
    return jnp.asarray(tables.RELATION)[jnp.maximum(square, 0)]


def _bit(relations: jax.Array, lines: _Lines) -> jax.Array:
    """Returns bool[81]: the bit of the plane that leads there is set."""
    word = jnp.where(relations < 32, lines.first, jnp.where(relations < 64, lines.second, lines.knights))
    return (word >> (relations & 31).astype(jnp.uint32)) & 1 != 0
