"""Othello: discs on green; the disc placed last has a dot, those it turned a ring."""

from azjax.boards.drawing import Drawing
from azjax.boards.squares import Squares, side_of
from azjax.boards.svg import MARK, circle, ring, text
from envs.core import column_name
from envs.othello import Othello, OthelloState

_FELT, _LINE, _BLACK, _WHITE = "#2f8f5b", "#1d5f3b", "#1b1b1b", "#fafafa"
LEGEND = "A yellow dot marks the last disc, a yellow ring each disc that it turned."


def draw(game: Othello, state: OthelloState, before: OthelloState | None, action: int | None) -> Drawing:
    """Draws a position and counts the discs."""
    side = side_of(game.size)
    squares = Squares(game.size, game.size, side)
    black, white = _sides(game, state)
    was_black, was_white = _sides(game, before) if before is not None else (black, white)
    parts = []
    for square in range(game.size**2):
        x, y = squares.middle(square)
        if black[square] or white[square]:
            parts.append(circle(x, y, 0.41 * side, _BLACK if black[square] else _WHITE))
        if (black[square] and was_white[square]) or (white[square] and was_black[square]):
            parts.append(ring(x, y, 0.41 * side, MARK, 0.07 * side))
        elif square == action:
            parts.append(circle(x, y, 0.13 * side, MARK))
    counts = f"black {int(black.sum())}, white {int(white.sum())}"
    total = game.size * side
    ground = [squares.filled(square, _FELT, stroke=_LINE) for square in range(game.size**2)]
    ground.append(squares.labels(column_name, lambda row: str(row + 1)))
    parts.append(text(26 + total / 2, total + 42, counts, 14))
    return Drawing(
        width=total + 32,
        height=total + 56,
        ground="".join(ground),
        pieces="".join(parts),
        zones=squares.zones(game.action_name),
        about=f"Othello after {int(state.ply)} moves: {counts}",
    )


def _sides(game: Othello, state: OthelloState):
    sides = game.grid.members(state.mine), game.grid.members(state.theirs)
    return sides if int(state.ply) % 2 == 0 else sides[::-1]
