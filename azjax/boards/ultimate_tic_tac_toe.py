"""Ultimate tic-tac-toe: the boards where a mark may go are lit, boards that are won bear their winner's mark."""

from azjax.boards.drawing import Drawing
from azjax.boards.squares import EDGE, Squares
from azjax.boards.svg import FIRST, INK, LIT, MARK, SECOND, cross, line, rect, ring
from envs.bitboard import Grid
from envs.core import column_name
from envs.ultimate_tic_tac_toe import UltimateTicTacToe, UltimateTicTacToeState

_SIDE = 48
_PAGE = Squares(9, 9, _SIDE)
_THIN, _PALE_FIRST, _PALE_SECOND, _CLOSED = "#c9c4b8", "#f6d5d1", "#d3e2f4", "#e4e2dc"
LEGEND = (
    "Lit: where the next mark may go. A frame marks the last one. A large mark shows who won a small board; a "
    "grey board is full, and nobody won it."
)


def draw(
    game: UltimateTicTacToe,
    state: UltimateTicTacToeState,
    before: UltimateTicTacToeState | None,
    action: int | None,
) -> Drawing:
    """Draws a position on the page of nine by nine squares."""
    del before
    grid = Grid(9, 9)
    sides, won = (grid.members(state.mine), grid.members(state.theirs)), (int(state.mine_won), int(state.theirs_won))
    if int(state.ply) % 2:
        sides, won = sides[::-1], won[::-1]
    closed = int(state.closed)
    sent, over = int(state.last) % 9, bool(state.won) or closed == 511
    next_boards = [b for b in range(9) if not closed >> b & 1 and not over]
    if int(state.last) >= 0 and sent in next_boards:
        next_boards = [sent]
    parts = []
    for board in range(9):
        x, y = EDGE + board % 3 * 3 * _SIDE, EDGE + board // 3 * 3 * _SIDE
        fill = LIT if board in next_boards else _CLOSED if closed >> board & 1 else None
        fill = _PALE_FIRST if won[0] >> board & 1 else _PALE_SECOND if won[1] >> board & 1 else fill
        if fill:
            parts.append(rect(x, y, 3 * _SIDE, 3 * _SIDE, fill))
    if action is not None:
        parts.append(_PAGE.filled(_square(action), "#ffffff", stroke=MARK, stroke_width=3))
    for i in range(10):
        at, heavy = EDGE + i * _SIDE, i % 3 == 0
        for ends in ((EDGE, at, EDGE + 9 * _SIDE, at), (at, EDGE, at, EDGE + 9 * _SIDE)):
            parts.append(line(*ends, INK if heavy else _THIN, 3 if heavy else 1))
    for number in range(81):
        x, y = _PAGE.middle(_square(number))
        shown = not (won[0] | won[1]) >> number // 9 & 1  # the winner's large mark stands alone
        if shown and sides[0][number]:
            parts.append(cross(x, y, 12, FIRST, 5))
        elif shown and sides[1][number]:
            parts.append(ring(x, y, 13, SECOND, 5))
    for board in range(9):
        x, y = EDGE + (board % 3 * 3 + 1.5) * _SIDE, EDGE + (board // 3 * 3 + 1.5) * _SIDE
        if won[0] >> board & 1:
            parts.append(cross(x, y, 46, FIRST, 14))
        elif won[1] >> board & 1:
            parts.append(ring(x, y, 48, SECOND, 14))
    return Drawing(
        width=EDGE + 9 * _SIDE + 6,
        height=EDGE + 9 * _SIDE + 6,
        ground=_PAGE.labels(column_name, lambda row: str(row + 1)),
        pieces="".join(parts),
        zones=_PAGE.zones(lambda square: game.action_name(_square(square))),  # the table is its own inverse
        about=f"Ultimate tic-tac-toe after {int(state.ply)} moves",
    )


def _square(action: int) -> int:
    """Returns the square of the page, row by row, of an action."""
    board, cell = divmod(action, 9)
    return (board // 3 * 3 + cell // 3) * 9 + board % 3 * 3 + cell % 3
