"""Constants of the compiled rules: codes of pieces, directions as lanes of bits, what lies where from each square.

A piece is a code of five bits: P 1, L 2, N 3, S 4, B 5, R 6, G 7, K 8; + 8 if promoted, + 16 the opponent's; 0: empty.
The board is the mover's: own pieces move up. What a square sees is four words, each of two directions of actions.py
(N NE E SE S SW W NW), 16 bits a direction:

    word  0: N, E   1: NE, SE   2: S, W   3: SW, NW     bit 0 of a lane is the neighbour, bit 7 the eighth square
"""

from collections.abc import Mapping, Sequence

import numpy as np

from envs.shogi.actions import DIRECTIONS, FIRST_KNIGHT, STEPS
from envs.shogi.position import HAND, IN_A_SET, KINDS, PROMOTED, is_dead
from envs.shogi.position import SLIDES as SLIDING
from envs.shogi.position import STEPS as STEPPING

CODES = np.array([0, 1, 2, 3, 4, 7, 5, 6, 8, 9, 10, 11, 12, 13, 14], np.uint32)
"""uint32[15], the code of each kind of position.KINDS."""
PAWN, KNIGHT, KING, ENEMY = 1, 3, 8, 16
LANES = ((0, 2), (1, 3), (4, 6), (5, 7))
"""The directions of each word's lower and upper lane."""
NOWHERE = 95
"""Relation of squares that are on no line and no knight's jump apart."""


def _code_sets(moves: Mapping[int, Sequence[tuple[int, int]]]) -> tuple[int, ...]:
    """Returns, for each direction, the codes of the pieces that move so, as bits."""
    return tuple(sum(1 << int(CODES[kind]) for kind, steps in moves.items() if step in steps) for step in DIRECTIONS)


SLIDES = _code_sets(SLIDING)
"""For each direction, the codes (as bits) of pieces that slide there."""
STEPS_AND_SLIDES = tuple(a | b for a, b in zip(SLIDES, _code_sets(STEPPING), strict=True))
"""The same of pieces that attack the next square there."""
PROMOTABLE = sum(1 << int(CODES[kind]) for kind in PROMOTED)
MUST_MOVE_ON = 1 << PAWN | 1 << int(CODES[KINDS.index("L")])
"""Codes of pieces that may not stay on the last rank."""

_ROW, _COLUMN = np.divmod(np.arange(81), 9)


def _target_rows() -> np.ndarray:
    """Returns int[66, 81]: the row that each plane's move arrives at, -1 off the board."""
    rows = np.full((len(STEPS), 81), -1)
    for plane, (down, right) in enumerate(STEPS):
        row, column = _ROW + down, _COLUMN + right
        inside = (row >= 0) & (row < 9) & (column >= 0) & (column < 9)
        rows[plane, inside] = row[inside]
    return rows


_TARGET_ROWS = _target_rows()


def _plane_words(holds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns uint32[81] three times: of bool[66, 81] the planes 0 to 31, 32 to 63 and the two of knights, as bits."""
    weights = np.uint32(1) << (np.arange(66, dtype=np.uint32) % 32)
    words = np.where(holds, weights[:, None], np.uint32(0))
    parts = (words[:32], words[32:FIRST_KNIGHT], words[FIRST_KNIGHT:])
    first, second, knights = (part.sum(0, dtype=np.uint32) for part in parts)
    return first, second, knights


ON_BOARD = _plane_words(_TARGET_ROWS >= 0)
"""uint32[81] three times: the moves that stay on the board, by planes."""
IN_ZONE = _plane_words((_TARGET_ROWS >= 0) & ((_TARGET_ROWS < 3) | (_ROW[None] < 3)))
"""The same of moves that may promote."""
LAST_ROW = _plane_words(_TARGET_ROWS == 0)
LAST_ROWS = _plane_words((_TARGET_ROWS >= 0) & (_TARGET_ROWS < 2))


def lane_words(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns the four words of lanes of the two words of planes."""
    low = np.uint32(0x00FF00FF)
    return first & low, (first >> np.uint32(8)) & low, second & low, (second >> np.uint32(8)) & low


OFFSETS = np.array([9 * down + right for down, right in STEPS], np.int32)
"""int32[66], from a square to where each plane's move arrives."""


def _relations() -> np.ndarray:
    relation = np.full((81, 81), NOWHERE, np.uint8)
    for plane, offset in enumerate(OFFSETS):
        squares = np.flatnonzero(_TARGET_ROWS[plane] >= 0)
        relation[squares, squares + offset] = plane
    return relation


RELATION = _relations()
"""uint8[81, 81], the plane that leads from the first square to the second, or NOWHERE."""


def _droppable() -> np.ndarray:
    dead = np.array([[is_dead(kind, square, 0) for kind in HAND] for square in range(81)])
    return np.where(dead, 0, 1 << np.arange(len(HAND))).sum(1).astype(np.uint32)


DROPPABLE = _droppable()
"""uint32[81], the kinds of position.HAND (as bits) that may be dropped on each square."""
DROP_CODES = CODES[list(HAND)]
"""uint32[7]."""

HAND_SHIFT = np.array([0, 6, 9, 12, 15, 18, 20], np.uint32)
HAND_MASK = np.array([63, 7, 7, 7, 7, 3, 3], np.uint32)
"""uint32[7], where a hand's word holds each number, in the order of position.HAND."""
UNITS = np.zeros(8, np.uint32)
"""uint32[8], what one piece of each unpromoted code adds to a hand's word."""
UNITS[DROP_CODES] = np.uint32(1) << HAND_SHIFT
IN_HAND = np.array(IN_A_SET, np.float32)

_RNG = np.random.Generator(np.random.PCG64(20171205))  # of numpy, so that they are the same under every JAX
BOARD_KEYS = _RNG.integers(0, 2**32, (2, 81), np.uint32)
HAND_KEYS = _RNG.integers(0, 2**32, (2, 2, 7), np.uint32)
TURN_KEYS = _RNG.integers(0, 2**32, 2, np.uint32)
"""Weights of a position's two hashes."""
