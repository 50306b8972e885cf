"""Crosshair: the row and the column of the last stone are lit, stones that changed colour are ringed."""

from azjax.boards.chains import SIDES, joined
from azjax.boards.drawing import Drawing
from azjax.boards.squares import Squares, side_of
from azjax.boards.svg import FIRST, LIT, MARK, PAPER, SECOND, circle, line, rect, ring
from envs.core import column_name
from envs.crosshair import Crosshair, CrosshairState

_EMPTY, _GRID = "#f3f1ec", "#c9c4b8"
LEGEND = (
    "Lit: the row and the column of the last stone (white cross), where the next one must go; every empty "
    "square, if no square there is empty; at the end, the chain that has won. A stone with a ring has just "
    "changed colour. The edges show who joins which sides."
)


def draw(game: Crosshair, state: CrosshairState, before: CrosshairState | None, action: int | None) -> Drawing:
    """Draws a position.

    The lit squares are those where the next stone may go: without an empty square on the last stone's row or column
    that is every empty one. At the end they are the chain that joins two sides.
    """
    del action
    side = side_of(game.size)
    squares = Squares(game.size, game.size, side, 36, 36)
    red, blue = game.grid.members(state.red), game.grid.members(state.blue)
    last, over = int(state.last), int(state.winner) >= 0
    row, column = divmod(last, game.size)

    def in_cross(square: int) -> bool:
        return last >= 0 and (square // game.size == row or square % game.size == column)

    empty = [square for square in range(game.num_actions) if not red[square] and not blue[square]]
    bound = any(map(in_cross, empty))
    chain = set()
    if over:
        stones = [divmod(s, game.size) for s in range(game.num_actions) if (blue if int(state.winner) else red)[s]]
        chain = joined(stones, SIDES, game.size, across=bool(state.winner))
    parts = []
    for square in range(game.num_actions):
        lit = in_cross(square) if bound else square in empty and last >= 0
        lit = divmod(square, game.size) in chain if over else lit
        if lit:
            parts.append(squares.filled(square, LIT, stroke=_GRID))
    flipped = set()
    if before is not None:
        was_red, was_blue = game.grid.members(before.red), game.grid.members(before.blue)
        flipped = {s for s in range(game.num_actions) if (red[s] and was_blue[s]) or (blue[s] and was_red[s])}
    for square in range(game.num_actions):
        x, y = squares.middle(square)
        if red[square] or blue[square]:
            parts.append(circle(x, y, 0.38 * side, FIRST if red[square] else SECOND))
        if square in flipped:
            parts.append(ring(x, y, 0.38 * side, MARK, 0.09 * side))
            parts.append(circle(x, y, 0.12 * side, SECOND if red[square] else FIRST, stroke=PAPER))
    if last >= 0:
        x, y = squares.middle(last)
        reach = 0.22 * side
        parts += [line(x - reach, y, x + reach, y, PAPER, 3), line(x, y - reach, x, y + reach, PAPER, 3)]
    total = game.size * side
    ground = [squares.filled(square, _EMPTY, stroke=_GRID) for square in range(game.num_actions)]
    ground += [rect(36, y, total, 6, FIRST, rx=2) for y in (28, 38 + total)]
    ground += [rect(x, 36, 6, total, SECOND, rx=2) for x in (28, 38 + total)]
    ground.append(squares.labels(column_name, lambda number: str(number + 1), away=6))
    return Drawing(
        width=total + 50,
        height=total + 50,
        ground="".join(ground),
        pieces="".join(parts),
        zones=squares.zones(game.action_name),
        about=f"Crosshair after {int(state.ply)} moves: red joins top and bottom, blue left and right",
    )
