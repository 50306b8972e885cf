"""Chess: White below; the squares that the last move left and reached are lit."""

from azjax.boards.drawing import Drawing
from azjax.boards.pieces import draw_piece
from azjax.boards.squares import Squares
from azjax.boards.svg import text
from envs.chess.actions import move_of
from envs.chess.game import Chess
from envs.chess.position import square_name
from envs.chess.state import ChessState, position_of

_SQUARES = Squares(8, 8, 56)
_LIGHT, _DARK, _LEFT, _REACHED = "#f0e6d2", "#b58b63", "#f3dd85", "#e5c445"
LEGEND = "Lit: the squares that the last move left and reached."


def draw(game: Chess, state: ChessState, before: ChessState | None, action: int | None) -> Drawing:
    """Draws a position."""
    del game
    position = position_of(state)
    parts = []
    if before is not None and action is not None:
        move = move_of(action, position_of(before))
        parts += [_SQUARES.filled(move.source, _LEFT), _SQUARES.filled(move.target, _REACHED)]
    for square, letter in enumerate(position.board):
        if letter != ".":
            x, y = _SQUARES.corner(square)
            parts.append(draw_piece(letter.lower(), x, y, _SQUARES.side, white=letter.isupper()))
    turn = ("White", "Black")[position.turn]
    about = f"Chess, move {position.fullmoves}: {turn} to move"
    parts.append(text(26 + 4 * 56, 26 + 8 * 56 + 16, about, 14))
    return Drawing(
        width=26 + 8 * 56 + 6,
        height=26 + 8 * 56 + 30,
        ground=_ground(),
        pieces="".join(parts),
        zones=_SQUARES.zones(square_name),
        about=about,
    )


def path(game: Chess, state: ChessState, action: int) -> tuple[str, ...]:
    """Returns the square that is left and the one that is reached; promotions share theirs."""
    del game
    move = move_of(action, position_of(state))
    return square_name(move.source), square_name(move.target)


def _ground() -> str:
    squares = [_SQUARES.filled(s, _LIGHT if (s // 8 + s % 8) % 2 == 0 else _DARK) for s in range(64)]
    return "".join(squares) + _SQUARES.labels(lambda column: "abcdefgh"[column], lambda row: str(8 - row))
