"""Chess pieces as outlines in a square of 100 units."""

from azjax.boards.svg import tag

_BASE = "M30 78 H70 L74 90 H26 Z"
_SHAPES = {
    "p": "M50 20 A13 13 0 0 1 57 44 H62 V50 H57 C58 62 64 68 66 78 H34 C36 68 42 62 43 50 H38 V44 H43 "
    "A13 13 0 0 1 50 20 Z",
    "r": "M28 16 H38 V24 H45 V16 H55 V24 H62 V16 H72 V36 L64 42 L67 78 H33 L36 42 L28 36 Z",
    "n": "M34 78 C34 60 47 56 50 44 C44 50 38 50 32 54 L24 46 L38 28 L40 14 L49 21 C68 23 76 44 71 78 Z",
    "b": "M50 8 A6 6 0 0 1 54 18 C68 30 70 46 60 58 H64 V65 H60 L66 78 H34 L40 65 H36 V58 H40 "
    "C30 46 32 30 46 18 A6 6 0 0 1 50 8 Z",
    "q": "M20 26 L34 54 L36 20 L46 52 L50 14 L54 52 L64 20 L66 54 L80 26 L70 78 H30 Z",
    "k": "M46 6 H54 V13 H61 V20 H54 V28 C61 30 61 40 58 45 C70 34 86 44 77 60 L68 78 H32 L23 60 "
    "C14 44 30 34 42 45 C39 40 39 30 46 28 V20 H39 V13 H46 Z",
}
_DETAILS = {
    "n": "M43 33 L46 35",
    "b": "M50 28 V44 M43 36 H57",
    "r": "M36 42 H64",
    "k": "M32 70 H68",
    "q": "M32 70 H68",
}
_WHITE, _BLACK, _EDGE, _PALE = "#fdfdfb", "#2b2b2b", "#151515", "#e8e8e4"


def draw_piece(letter: str, x: float, y: float, size: float, *, white: bool) -> str:
    """Returns a piece (p n b r q k) in a square whose upper left corner is given."""
    inside = _EDGE if white else _PALE
    line = {"stroke_width": 3, "stroke_linejoin": "round", "stroke_linecap": "round"}
    outline = tag("path", d=_SHAPES[letter] + _BASE, fill=_WHITE if white else _BLACK, stroke=_EDGE, **line)
    details = tag("path", d=_DETAILS[letter], fill="none", stroke=inside, **line) if letter in _DETAILS else ""
    return tag("g", outline + details, transform=f"translate({x:g} {y:g}) scale({size / 100:g})")
