"""A whole game as one animated picture: SVG that moves by itself in a browser, a notebook or a README."""

from collections.abc import Sequence

from azjax.boards.drawing import Drawing, frame
from azjax.boards.svg import MUTED, tag, text


def animate(drawings: Sequence[Drawing], *, seconds: float = 0.8, pause: float = 3.0, names: Sequence[str] = ()) -> str:
    """Returns an SVG document that shows one drawing after the other, for ever.

    Args:
      drawings: of one game, the start first; at least one.
      seconds: that each is shown.
      pause: how much longer the last one is.
      names: of the moves that led to each drawing after the first, written below.

    Raises:
      ValueError: no drawing, or a time that is not positive.
    """
    if not drawings or seconds <= 0 or pause < 0:
        raise ValueError(f"animate: got {len(drawings)} drawings of {seconds} s, expected one at least, above 0 s")
    width = max(drawing.width for drawing in drawings)
    height = max(drawing.height for drawing in drawings)
    total = seconds * len(drawings) + pause
    shown = []
    for number, drawing in enumerate(drawings):
        begin = number * seconds / total
        end = 1.0 if number == len(drawings) - 1 else (number + 1) * seconds / total
        # Discrete times: hidden until `begin`, shown until `end`. Readers without animation see the last one.
        keys = [(0.0, "hidden"), (begin, "visible"), (end, "hidden")]
        keys = keys[1:] if number == 0 else keys
        keys = keys[:-1] if end == 1.0 else keys
        clock = tag(
            "animate",
            attributeName="visibility",
            values=";".join(value for _, value in keys),
            keyTimes=";".join(f"{time:.5f}" for time, _ in keys),
            calcMode="discrete",
            dur=f"{total:g}s",
            repeatCount="indefinite",
        )
        label = f"{number}. {names[number - 1]}" if names and number else ""
        said = text(width / 2, height + 12, label, 15, MUTED) if label else ""
        visibility = "visible" if number == len(drawings) - 1 else "hidden"
        # A reader without the element `animate` sees the last position.
        shown.append(tag("g", clock + drawing.pieces + said, visibility=visibility))
    return frame(width, height + (24 if names else 0), drawings[-1].about, drawings[0].ground + "".join(shown))
