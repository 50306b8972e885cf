"""Shogi: Black below; pieces by their letters (promoted ones in red), those in hand above and below the board.

Beside the board, as on a table, the hands would take a third of a phone's width.
"""

from azjax.boards.drawing import Drawing, Zone
from azjax.boards.squares import Squares
from azjax.boards.svg import INK, MUTED, polygon, rect, tag, text
from envs.shogi.actions import move_of
from envs.shogi.game import Shogi
from envs.shogi.position import HAND, KINDS
from envs.shogi.state import ShogiState
from envs.shogi.usi import square_name

_SIDE, _HAND = 48.0, 50.0  # a square; the height and width of a piece's place in a hand
_SQUARES = Squares(9, 9, _SIDE, 10, _HAND + 32)
_WOOD, _LINE, _PIECE, _PROMOTED, _MOVED = "#edcf94", "#6b4c1e", "#f8e7bf", "#c0271b", "#f6e08a"
_RIGHT = _SQUARES.left + 9 * _SIDE
_BOTTOM = _SQUARES.top + 9 * _SIDE
LEGEND = (
    "Letters: P pawn, L lance, N knight, S silver, G gold, B bishop, R rook, K king; red with +: promoted. "
    "Black's pieces point up. Below the board lie the pieces in Black's hand, above it those in White's, with their "
    "number. Lit: the squares "
    "that the last move left and reached."
)


def draw(game: Shogi, state: ShogiState, before: ShogiState | None, action: int | None) -> Drawing:
    """Draws a position; the squares that the last move left and reached are lit."""
    position = game.position(state)
    parts = []
    if before is not None and action is not None:
        move = move_of(action, game.position(before).turn)
        if move is not None:
            parts += [_SQUARES.filled(square, _MOVED) for square in (move.source, move.target) if square is not None]
    parts.append(_grid())
    for square, piece in enumerate(position.board):
        if piece:
            parts.append(_piece(abs(piece), *_SQUARES.middle(square), _SIDE, up=piece > 0))
    for player in (0, 1):
        for kind, number in zip(HAND, position.hands[player], strict=True):
            x, y = _hand_place(kind, player)
            if number:
                parts.append(_piece(kind, x - 4, y, 44, up=player == 0))
            if number > 1:
                parts.append(text(x + 19, y + 14, number, 14, INK, font_weight="bold"))
    turn = ("Black (below)", "White (above)")[position.turn]
    parts.append(text(_SQUARES.left + 4.5 * _SIDE, _BOTTOM + _HAND + 24, f"{turn} to move", 14))
    return Drawing(
        width=_RIGHT + 24,
        height=_BOTTOM + _HAND + 36,
        ground=_ground(),
        pieces="".join(parts),
        zones=(*_SQUARES.zones(square_name), *_hand_zones()),
        about=f"Shogi: {turn} to move",
    )


def path(game: Shogi, state: ShogiState, action: int) -> tuple[str, ...]:
    """Returns the square that is left, or the piece in hand, and the square that is reached."""
    turn = int(game.to_move(state))
    move = move_of(action, turn)
    if move is None:
        raise ValueError(f"action: got {action}, expected one that stays on the board")
    source = f"{KINDS[move.drop]}*{turn}" if move.source is None else square_name(move.source)
    return source, square_name(move.target)


def _piece(kind: int, x: float, y: float, size: float, *, up: bool) -> str:
    half, tall, sign = 0.38 * size, 0.42 * size, 1 if up else -1
    corners = [(0.0, -1.0), (0.72, -0.62), (1.0, 1.0), (-1.0, 1.0), (-0.72, -0.62)]
    shape = polygon([(x + dx * half, y + sign * dy * tall) for dx, dy in corners], _PIECE, stroke=_LINE)
    name = KINDS[kind]
    colour = _PROMOTED if name.startswith("+") else INK
    return shape + text(x, y + sign * 0.08 * size, name, 0.4 * size, colour, font_weight="bold")


def _hand_place(kind: int, player: int) -> tuple[float, float]:
    """Returns the middle of a kind's place: each player's hand begins, with pawns, at that player's right."""
    away = (HAND.index(kind) + 0.5) * _HAND
    if player == 0:
        return _RIGHT - away, _BOTTOM + 8 + _HAND / 2
    return _SQUARES.left + away, 6 + _HAND / 2


def _hand_zones() -> list[Zone]:
    zones = []
    for player in (0, 1):
        for kind in HAND:
            x, y = _hand_place(kind, player)
            shape = tag("rect", x=x - _HAND / 2, y=y - _HAND / 2, width=_HAND, height=_HAND)
            zones.append(Zone(id=f"{KINDS[kind]}*{player}", shape=shape, x=x, y=y, room=42))
    return zones


def _ground() -> str:
    width = len(HAND) * _HAND
    hands = [
        rect(_RIGHT - width, _BOTTOM + 8, width, _HAND, "#f3ecdc"),
        rect(_SQUARES.left, 6, width, _HAND, "#f3ecdc"),
    ]
    names = [
        text(_SQUARES.left + (column + 0.5) * _SIDE, _SQUARES.top - 12, 9 - column, 14, MUTED) for column in range(9)
    ] + [text(_RIGHT + 12, _SQUARES.top + (row + 0.5) * _SIDE, "abcdefghi"[row], 14, MUTED) for row in range(9)]
    return rect(_SQUARES.left, _SQUARES.top, 9 * _SIDE, 9 * _SIDE, _WOOD) + "".join(hands + names)


def _grid() -> str:
    return "".join(_SQUARES.filled(square, "none", stroke=_LINE) for square in range(81)) + "".join(
        tag("circle", cx=_SQUARES.left + c * _SIDE, cy=_SQUARES.top + r * _SIDE, r=3, fill=_LINE)
        for r in (3, 6)
        for c in (3, 6)
    )
