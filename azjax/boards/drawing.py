"""A picture of a position: what is drawn, and the parts of it that can be chosen."""

import html
from dataclasses import dataclass

from azjax.boards.svg import PAPER, number, rect, tag


@dataclass(frozen=True, kw_only=True)
class Zone:
    """A part of a board that can be chosen: a square, a column, a piece in hand."""

    id: str  # unique in a drawing: the name of the square where the game has one
    shape: str  # an SVG element without fill, as `tag` gives it
    x: float  # where a mark about it stands
    y: float
    room: float  # width and height that a mark may take there


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A position drawn. Notebooks show it as it is."""

    width: float
    height: float
    ground: str  # what is the same in every position of the game
    pieces: str  # this position
    zones: tuple[Zone, ...] = ()
    about: str = ""  # what it shows, in words

    def zone(self, name: str) -> Zone:
        """Returns the zone of a name."""
        return next(zone for zone in self.zones if zone.id == name)

    def svg(self, over: str = "", *, choosable: bool = False) -> str:
        """Returns the picture.

        Args:
          over: drawn above the pieces.
          choosable: with an invisible element of class "zone" for each zone, which the page makes buttons.
        """
        chosen = "".join(
            zone.shape.replace("/>", f' class="zone" data-zone="{html.escape(zone.id)}" fill="transparent"/>', 1)
            for zone in self.zones
            if choosable
        )
        return frame(self.width, self.height, self.about, self.ground + self.pieces + over + chosen)

    def _repr_svg_(self) -> str:
        return self.svg()


def frame(width: float, height: float, about: str, content: str) -> str:
    """Returns an SVG document on white paper."""
    title = tag("title", html.escape(about)) if about else ""
    # Width as an attribute, for notebooks; a page's style sheet goes before it.
    return tag(
        "svg",
        title + rect(0, 0, width, height, PAPER) + content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        role="img",
    )
