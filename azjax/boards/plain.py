"""Any other game: what `Game.render` says, in a picture. A text that is a board of squares becomes one, to click on.

Of every other text each move is a button of its own.
"""

from typing import Any

from azjax.boards.drawing import Drawing
from azjax.boards.squares import EDGE, Squares, side_of
from azjax.boards.svg import FIRST, INK, LIT, MUTED, SECOND, rect, text
from envs.core import Game, column_name, square_name

_SIZE, _MOST_LINES = 16, 60
_HIGH = 1.35 * _SIZE
_GROUND, _LINE = "#f6f5f1", "#8d8a80"
_COLOURS = {"X": FIRST, "O": SECOND, ".": MUTED}


def draw(game: Game, state: Any, before: Any, action: int | None) -> Drawing:
    """Draws the text of a position."""
    del before
    lines = game.render(state).splitlines()[:_MOST_LINES] or [""]
    found = _board(game, lines)
    if found is None:
        width = _width(lines)
        height = _HIGH * len(lines) + 24
        return Drawing(
            width=width,
            height=height,
            ground=rect(0, 0, width, height, _GROUND),
            pieces=_written(lines, 22),
            about=game.id,
        )
    marks, others = found
    rows, columns = len(marks), len(marks[0])
    squares = Squares(rows, columns, side_of(max(rows, columns)))
    parts = [squares.filled(action, LIT)] if action is not None and action < rows * columns else []
    parts += [squares.filled(index, "none", stroke=_LINE) for index in range(rows * columns)]
    for index, mark in enumerate(mark for row in marks for mark in row):
        size = 0.62 * squares.side / max(1.0, 0.6 * len(mark))
        colour = _COLOURS.get(mark[0], INK)
        parts.append(text(*squares.middle(index), mark, size, colour, font_weight=None if mark == "." else "bold"))
    below = EDGE + squares.height
    parts.append(_written(others, below + 26))
    return Drawing(
        width=max(EDGE + squares.width, _width(others) if others else 0) + 8,
        height=below + _HIGH * len(others) + (24 if others else 8),
        ground=rect(EDGE, EDGE, squares.width, squares.height, _GROUND)
        + squares.labels(column_name, lambda row: str(row + 1)),
        pieces="".join(parts),
        zones=squares.zones(game.action_name),
        about=game.id,
    )


def _board(game: Game, lines: list[str]) -> tuple[list[list[str]], list[str]] | None:
    """Returns the marks of a board, row by row, and the lines that are no part of it; None where the text is no board.

    It is one where actions are squares by their names, as `square_name` gives them, and the text has a line of marks
    for every row of squares, perhaps after the row's number; a line of the columns' letters is left out.
    """
    rows, columns, _ = game.observation_shape
    if rows * columns < 2 or game.num_actions < rows * columns:
        return None
    if any(game.action_name(index).lower() != square_name(index, columns) for index in range(rows * columns)):
        return None
    letters = [column_name(column) for column in range(columns)]
    marks, others = [], []
    for line in lines:
        words = line.split()
        if [word.lower() for word in words] == letters:
            continue
        if words[:-columns] in ([], [str(len(marks) + 1)]) and len(words) >= columns and len(marks) < rows:
            marks.append(words[-columns:])
        else:
            others.append(line)
    wide = any(len(mark) > 3 for row in marks for mark in row)
    return None if len(marks) < rows or wide else (marks, others)


def _width(lines: list[str]) -> float:
    return max(200.0, 0.62 * _SIZE * max(map(len, lines)) + 32)


def _written(lines: list[str], top: float) -> str:
    """Returns lines of text, the first at a height."""
    content = "".join(
        text(16, top + _HIGH * i, words, _SIZE, INK, text_anchor="start", font_family="monospace", xml_space="preserve")
        for i, words in enumerate(lines)
    )
    return content.replace("xml-space", "xml:space")
