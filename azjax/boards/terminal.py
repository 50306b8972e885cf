"""A board as coloured text, for terminals: `Game.render`'s characters, each side in its colour."""

from rich.text import Text

from envs.core import Game

_FIRST, _SECOND, _LEGAL, _EMPTY = "bold red", "bold bright_blue", "green", "dim"
_MARKS = {r"\bX\d*\b": _FIRST, r"\bO\d*\b": _SECOND, r"\+(?!\S)": _LEGAL, r"(?<!\S)\.(?!\S)": _EMPTY}
_BY_GAME = {
    "envs.chess.game": {r"(?<=[ ])[PNBRQK](?!\S)": _FIRST, r"(?<=[ ])[pnbrqk](?!\S)": _SECOND, r"(?<=[ ])\.": _EMPTY},
    "envs.connect_four": {r"\bX\b": "bold red", r"\bO\b": "bold yellow", r"\.": _EMPTY},
    "envs.crosshair": {r"\bR\b": _FIRST, r"\bB\b": _SECOND, r"\+": _LEGAL, r"\.": _EMPTY, r"[\[\]]": "bold"},
    "envs.black_hole": {r"\+\d+": _FIRST, r"-\d+": _SECOND, r"\( \)": "reverse", r"(?<!\S)\.(?!\S)": _EMPTY},
    "envs.go": {r"(?<=[ \d])X(?!\S)": "bold", r"(?<=[ \d])O(?!\S)": "bold bright_white on grey37", r"\.": _EMPTY},
    "envs.shogi.game": {
        r"(?<=[ ])\+?[PLNSGBRK](?=[ ])": _FIRST,
        r"(?<=[ ])\+?[plnsgbrk](?=[ ])": _SECOND,
        r"\.": _EMPTY,
    },
    "envs.othello": {r"\bX\b": "bold", r"\bO\b": "bold bright_white on grey37", r"\+": _LEGAL, r"\.": _EMPTY},
}
_BOARD = {"envs.go": slice(1, None), "envs.chess.game": slice(8)}
"""Lines that are the board, of games that name columns by letters that are marks too."""


def paint(game: Game, board: str) -> Text:
    """Returns what `game.render` gave, in colour; without a terminal rich prints the same characters plain."""
    module = type(game).__module__
    lines = [Text(line) for line in board.split("\n")]
    for line in lines[_BOARD.get(module, slice(None))]:
        for pattern, style in _BY_GAME.get(module, _MARKS).items():
            line.highlight_regex(pattern, style)
    return Text("\n").join(lines)
