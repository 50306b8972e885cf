"""Backgammon: seen by player 0, whose checkers are red and go from point 24 down; the dice still to play are shown."""

import numpy as np

from azjax.boards.drawing import Drawing, Zone
from azjax.boards.svg import FIRST, INK, MUTED, PAPER, SECOND, circle, polygon, rect, ring, tag, text
from envs.backgammon import CHECKERS, Backgammon, BackgammonState

_FELT, _DARK, _LIGHT, _BAR = "#e8dcc3", "#b5895a", "#f6efe0", "#8a6a45"
_WIDE, _TALL, _MIDDLE = 38.0, 170.0, 64.0  # a point, its height, the gap between the rows
_LEFT, _TOP = 12.0, 26.0
_BAR_X = _LEFT + 6 * _WIDE
_OFF_X = _LEFT + 13 * _WIDE
_BOTTOM = _TOP + 2 * _TALL + _MIDDLE
_WIDTH, _HEIGHT = _OFF_X + 58, _BOTTOM + 24
LEGEND = (
    "Red is the first player's and goes from point 24 down to 1, blue the other way; borne-off checkers lie "
    "on the right, hit ones on the bar. The dice that are still to be played lie in the middle; a ring marks "
    "the checker moved last."
)


def draw(game: Backgammon, state: BackgammonState, before: BackgammonState | None, action: int | None) -> Drawing:
    """Draws a position; the point where the last checker arrived is ringed."""
    del game
    board, player = np.asarray(state.board).astype(int).tolist(), int(state.player)
    counts = board if player == 0 else [-number for number in board[::-1]]  # by player 0's places
    parts = []
    arrived = _route(before, action)[1:] if before is not None and action is not None else ()
    for place in range(1, 25):
        number = counts[place]
        x, y, down = _stack(place)
        parts += _checkers(x, y, down, abs(number), FIRST if number > 0 else SECOND)
        if f"p{place}" in arrived:
            top = min(abs(number), 5) - 1
            parts.append(ring(x, y + down * 33 * top, 12, PAPER, 2.5))
    for place, colour, sign in ((25, FIRST, -1), (0, SECOND, 1)):
        middle = (_TOP + _BOTTOM) / 2
        parts += _checkers(_BAR_X + _WIDE / 2, middle + sign * 52, sign, abs(counts[place]), colour)
    for sign, colour in ((1, FIRST), (-1, SECOND)):
        off = CHECKERS - sum(max(sign * number, 0) for number in counts)
        y = _BOTTOM - 12 if sign > 0 else _TOP + 4
        parts += [rect(_OFF_X + 10, y - sign * 11 * i, 38, 8, colour, stroke=PAPER) for i in range(off)]
    won = [side for side, sign in enumerate((1, -1)) if not any(sign * number > 0 for number in counts)]
    parts += _dice(state, player) if not won else []
    about = ("red", "blue")[player] + (" to play" if int(state.high) else " to roll")
    about = f"{('red', 'blue')[won[0]]} has won" if won else about
    return Drawing(
        width=_WIDTH,
        height=_HEIGHT,
        ground=_ground(),
        pieces="".join(parts),
        zones=_zones(),
        about=f"Backgammon after {int(state.ply)} moves: {about}",
    )


def path(game: Backgammon, state: BackgammonState, action: int) -> tuple[str, ...]:
    """Returns the zones that a checker leaves and reaches; none for a pass."""
    del game
    return _route(state, action)


def _route(state: BackgammonState, action: int) -> tuple[str, ...]:
    source, die = 26 - action // 6, action % 6 + 1
    if source > 25:
        return ()
    target = source - die
    if int(state.player):
        source, target = 25 - source, 25 - target if target > 0 else 26
    return _name(source), "off" if not 1 <= target <= 24 else _name(target)


def _name(place: int) -> str:
    return {25: "bar0", 0: "bar1"}.get(place, f"p{place}")


def _stack(place: int) -> tuple[float, float, int]:
    """Returns where the first checker of a point lies, and the direction of the next ones."""
    column = place - 13 if place > 12 else 12 - place
    x = _LEFT + (column + (column > 5) + 0.5) * _WIDE
    return (x, _TOP + 18, 1) if place > 12 else (x, _BOTTOM - 18, -1)


def _checkers(x: float, y: float, down: int, number: int, fill: str) -> list[str]:
    parts = [circle(x, y + down * 33 * i, 16.5, fill, stroke=PAPER, stroke_width=1.5) for i in range(min(number, 5))]
    if number > 5:
        parts.append(text(x, y + down * 33 * 4, number, 16, PAPER, font_weight="bold"))
    return parts


def _dice(state: BackgammonState, player: int) -> list[str]:
    dice = [int(state.high)] * int(state.times) if int(state.high) else []
    dice += [int(state.low)] if int(state.low) else []
    x = _BAR_X + 1.5 * _WIDE if player == 0 else _LEFT + 16
    y, parts = (_TOP + _BOTTOM) / 2 - 18, []
    spots = {1: [4], 2: [0, 8], 3: [0, 4, 8], 4: [0, 2, 6, 8], 5: [0, 2, 4, 6, 8], 6: [0, 2, 3, 5, 6, 8]}
    for i, die in enumerate(dice):
        left = x + 46 * i
        parts.append(rect(left, y, 36, 36, PAPER, rx=6, stroke=FIRST if player == 0 else SECOND, stroke_width=2.5))
        parts += [circle(left + 9 + 9 * (spot % 3), y + 9 + 9 * (spot // 3), 3.6, INK) for spot in spots[die]]
    if not dice:
        parts.append(text(x + 60, y + 18, ("red", "blue")[player] + " rolls", 15, MUTED))
    return parts


def _ground() -> str:
    parts = [rect(_LEFT, _TOP, 13 * _WIDE, _BOTTOM - _TOP, _FELT, stroke=_BAR, stroke_width=4)]
    parts.append(rect(_BAR_X, _TOP, _WIDE, _BOTTOM - _TOP, _BAR))
    parts.append(rect(_OFF_X + 6, _TOP, 46, _BOTTOM - _TOP, _FELT, stroke=_BAR, stroke_width=2))
    for place in range(1, 25):
        x, _, down = _stack(place)
        base, tip = (_TOP, _TOP + _TALL) if down > 0 else (_BOTTOM, _BOTTOM - _TALL)
        corners = [(x - _WIDE / 2, base), (x + _WIDE / 2, base), (x, tip)]
        parts.append(polygon(corners, _DARK if place % 2 else _LIGHT))
        parts.append(text(x, _TOP - 12 if down > 0 else _BOTTOM + 12, place, 12, MUTED))
    return "".join(parts)


def _zones() -> tuple[Zone, ...]:
    zones = []
    for place in range(24, 0, -1):
        x, y, down = _stack(place)
        top = _TOP if down > 0 else _BOTTOM - _TALL
        shape = tag("rect", x=x - _WIDE / 2, y=top, width=_WIDE, height=_TALL)
        zones.append(Zone(id=f"p{place}", shape=shape, x=x, y=y + down * 140, room=_WIDE))
    middle = (_TOP + _BOTTOM) / 2
    for name, top in (("bar0", _TOP), ("bar1", middle)):
        shape = tag("rect", x=_BAR_X, y=top, width=_WIDE, height=_TALL + _MIDDLE / 2)
        zones.append(Zone(id=name, shape=shape, x=_BAR_X + _WIDE / 2, y=top + 100, room=_WIDE))
    shape = tag("rect", x=_OFF_X + 6, y=_TOP, width=46, height=_BOTTOM - _TOP)
    zones.append(Zone(id="off", shape=shape, x=_OFF_X + 29, y=middle, room=46))
    return tuple(zones)
