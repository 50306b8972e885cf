"""The paper's 11,259 actions: 81 squares times 139 kinds of move, seen by the player who moves.

action = square * 139 + plane      square: where the piece stands, or where one is dropped; White's board is turned

plane   0 to 63    8 * direction + distance - 1, directions N NE E SE S SW W NW
        64, 65     a knight's jump to the left, to the right
        66 to 131  the same, promoting
        132 to 138 drops of P L N S G B R
"""

import functools

from envs.shogi.position import HAND, Move

PLANES = 139
SQUARES = 81
NUM_ACTIONS = SQUARES * PLANES
DIRECTIONS = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""(rows, columns) of N NE E SE S SW W NW; N is where the mover's pawns go."""
FIRST_KNIGHT, FIRST_PROMOTING, FIRST_DROP = 64, 66, 132
STEPS = (
    *((distance * rows, distance * columns) for rows, columns in DIRECTIONS for distance in range(1, 9)),
    (-2, -1),
    (-2, 1),
)
"""(rows, columns) of planes 0 to 65."""


def action_of(move: Move, turn: int) -> int:
    """Returns the action of a move by Black (turn 0) or White (1).

    Raises:
      ValueError: no piece moves so.
    """
    if move.source is None:
        return _turned(move.target, turn) * PLANES + FIRST_DROP + HAND.index(move.drop)
    source, target = _turned(move.source, turn), _turned(move.target, turn)
    plane = _plane_of(target // 9 - source // 9, target % 9 - source % 9)
    if plane is None:
        raise ValueError(f"move: got squares {move.source} to {move.target}, expected a line or a knight's jump")
    return source * PLANES + plane + FIRST_PROMOTING * move.promotes


def move_of(action: int, turn: int) -> Move | None:
    """Returns the move of an action by Black (turn 0) or White (1), or None where it leaves the board."""
    source, plane = divmod(action, PLANES)
    if plane >= FIRST_DROP:
        return Move(None, _turned(source, turn), drop=HAND[plane - FIRST_DROP])
    promotes = plane >= FIRST_PROMOTING
    rows, columns = STEPS[plane - FIRST_PROMOTING * promotes]
    row, column = source // 9 + rows, source % 9 + columns
    if not (0 <= row < 9 and 0 <= column < 9):
        return None
    return Move(_turned(source, turn), _turned(row * 9 + column, turn), promotes)


@functools.cache
def _plane_of(rows: int, columns: int) -> int | None:
    return STEPS.index((rows, columns)) if (rows, columns) in STEPS else None


def _turned(square: int, turn: int) -> int:
    return 80 - square if turn else square
