"""The 4,672 actions of AlphaZero's chess and the moves that they are.

Action = square * 73 + plane. The square is the one that is left, in the mover's frame: Black sees the board with its
rows mirrored (files stay), so that both move up, to row 0. Planes:

    7 * direction + distance - 1    56   straight moves; directions N NE E SE S SW W NW. Castling is the king's two
                                         squares; a pawn that reaches the last row becomes a queen
    56 + leap                        8   knights, clockwise from NNE
    64 + 3 * piece + direction       9   a pawn becomes a knight, bishop or rook, moving left, straight, right

1,858 of them stay on the board.
"""

from envs.chess.position import DIAGONAL, KNIGHT, ORTHOGONAL, WHITE, Move, Position, square_name

NUM_PLANES = 73
NUM_ACTIONS = 64 * NUM_PLANES
DIRECTIONS = tuple(step for pair in zip(ORTHOGONAL, DIAGONAL, strict=True) for step in pair)  # N NE E SE S SW W NW
UNDERPROMOTIONS = "nbr"
_QUEEN_ROWS = (1, 0)  # of a pawn about to be promoted, and where it goes


def mirrored(square: int) -> int:
    """Returns the square that a player at the other side of the board sees in this one's place."""
    return square ^ 56


def action_of(move: Move, turn: int) -> int:
    """Returns the action of a move by White (turn 0) or Black.

    Raises:
      ValueError: no piece moves so.
    """
    squares = (move.source, move.target) if turn == WHITE else (mirrored(move.source), mirrored(move.target))
    try:
        return _ACTIONS[(*squares, "" if move.promotion == "q" and _is_last_step(*squares) else move.promotion)]
    except KeyError:
        raise ValueError(f"move: got {move.uci}, expected one that a piece can make") from None


def move_of(action: int, position: Position) -> Move:
    """Returns the move that an action is in a position.

    Raises:
      ValueError: there is none: the action leads off the board.
    """
    frame = _MOVES.get(action)
    if frame is None:
        raise ValueError(f"action: got {action}, expected one that stays on the board")
    source, target, promotion = frame
    if position.turn != WHITE:
        source, target = mirrored(source), mirrored(target)
    if not promotion and _is_last_step(frame[0], frame[1]) and position.board[source].lower() == "p":
        promotion = "q"
    return Move(source, target, promotion)


def frame_name(action: int) -> str:
    """Returns the move as White would write it, whoever is to move; a number in brackets off the board."""
    frame = _MOVES.get(action)
    return f"({action})" if frame is None else f"{square_name(frame[0])}{square_name(frame[1])}{frame[2]}"


def _is_last_step(source: int, target: int) -> bool:
    return (source // 8, target // 8) == _QUEEN_ROWS and abs(source % 8 - target % 8) <= 1


def _planes() -> list[tuple[int, int, str]]:
    """Returns (rows, columns, promotion) of each plane."""
    planes = [(row * far, column * far, "") for row, column in DIRECTIONS for far in range(1, 8)]
    planes += [(row, column, "") for row, column in KNIGHT]
    return planes + [(-1, column, piece) for piece in UNDERPROMOTIONS for column in (-1, 0, 1)]


def _table() -> dict[int, tuple[int, int, str]]:
    found = {}
    for source in range(64):
        for plane, (rows, columns, promotion) in enumerate(_planes()):
            row, column = source // 8 + rows, source % 8 + columns
            if 0 <= row < 8 and 0 <= column < 8 and (not promotion or source // 8 == 1):
                found[source * NUM_PLANES + plane] = (source, row * 8 + column, promotion)
    return found


_MOVES = _table()
_ACTIONS = {frame: action for action, frame in _MOVES.items()}
