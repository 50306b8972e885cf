"""Elements of SVG as text. Coordinates are in the picture's own units, of which a board is about 480 wide."""

import html
from typing import Any

INK, PAPER, MUTED = "#222222", "#ffffff", "#6b6b6b"
FIRST, SECOND = "#c8402f", "#2d6cb5"
"""Colours of player 0 and player 1 where a game gives them none; they differ in lightness too."""
LIT, MARK = "#ffe9a8", "#e0a100"
FONT = "system-ui, 'DejaVu Sans', sans-serif"


def number(value: float) -> str:
    """Returns a coordinate in two decimals at most."""
    return f"{round(value, 2):g}"


def tag(name: str, content: str = "", /, **attributes: Any) -> str:
    """Returns an element; `stroke_width=2` becomes stroke-width="2", None leaves an attribute out."""
    words = [name]
    for key, value in attributes.items():
        if value is not None:
            text = number(value) if isinstance(value, int | float) else html.escape(str(value))
            words.append(f'{key.rstrip("_").replace("_", "-")}="{text}"')
    return f"<{' '.join(words)}>{content}</{name}>" if content else f"<{' '.join(words)}/>"


def rect(x: float, y: float, width: float, height: float, fill: str, **attributes: Any) -> str:
    return tag("rect", x=x, y=y, width=width, height=height, fill=fill, **attributes)


def circle(x: float, y: float, radius: float, fill: str, **attributes: Any) -> str:
    return tag("circle", cx=x, cy=y, r=radius, fill=fill, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1, **attributes: Any) -> str:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width, **attributes)


def points(corners: list[tuple[float, float]]) -> str:
    """Returns the value of the attribute `points`."""
    return " ".join(f"{number(x)},{number(y)}" for x, y in corners)


def polygon(corners: list[tuple[float, float]], fill: str, **attributes: Any) -> str:
    return tag("polygon", points=points(corners), fill=fill, **attributes)


def text(x: float, y: float, words: object, size: float, fill: str = INK, **attributes: Any) -> str:
    """Returns words whose middle is at (x, y)."""
    options: dict[str, Any] = {"text_anchor": "middle", "font_family": FONT} | attributes
    # A third of the size below the middle is where digits and capitals stand; `dominant-baseline` differs by reader.
    shown = html.escape(str(words))
    return tag("text", shown, x=x, y=y + 0.35 * size, font_size=size, fill=fill, **options)


def cross(x: float, y: float, radius: float, stroke: str, width: float) -> str:
    """Returns the mark X."""
    ends = f"M{number(x - radius)} {number(y - radius)}L{number(x + radius)} {number(y + radius)}"
    ends += f"M{number(x - radius)} {number(y + radius)}L{number(x + radius)} {number(y - radius)}"
    return tag("path", d=ends, stroke=stroke, stroke_width=width, stroke_linecap="round", fill="none")


def ring(x: float, y: float, radius: float, stroke: str, width: float, **attributes: Any) -> str:
    """Returns the mark O."""
    return circle(x, y, radius, "none", stroke=stroke, stroke_width=width, **attributes)
