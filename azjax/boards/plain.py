"""Any other game: what `Game.render` says, in a picture; every move is a button of its own."""

from typing import Any

from azjax.boards.drawing import Drawing
from azjax.boards.svg import INK, rect, text
from envs.core import Game

_SIZE, _MOST_LINES = 16, 60


def draw(game: Game, state: Any, before: Any, action: int | None) -> Drawing:
    """Draws the text of a position."""
    del before, action
    lines = game.render(state).splitlines()[:_MOST_LINES] or [""]
    high = 1.35 * _SIZE
    width = max(200.0, 0.62 * _SIZE * max(map(len, lines)) + 32)
    content = "".join(
        text(16, 22 + high * i, words, _SIZE, INK, text_anchor="start", font_family="monospace", xml_space="preserve")
        for i, words in enumerate(lines)
    )
    return Drawing(
        width=width,
        height=high * len(lines) + 24,
        ground=rect(0, 0, width, high * len(lines) + 24, "#f6f5f1"),
        pieces=content.replace("xml-space", "xml:space"),
        about=game.id,
    )
