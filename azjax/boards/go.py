"""Go: stones on points, the last one marked; at the end small squares show whose each empty point is."""

from collections import deque

import numpy as np

from azjax.boards.drawing import Drawing, Zone
from azjax.boards.svg import MUTED, circle, line, rect, tag, text
from envs.go import Go, GoState

_WOOD, _LINE, _BLACK, _WHITE = "#e3b96b", "#5b4420", "#161616", "#fbfbf8"
LEGEND = (
    "A ring marks the last stone. At the end a small square on an empty point shows whose it is, and the "
    "score stands below."
)


def draw(game: Go, state: GoState, before: GoState | None, action: int | None) -> Drawing:
    """Draws a position; of a finished one the area of each side."""
    del before
    size = game.size
    step = min(48.0, 460 / size)
    left = top = 28 + step / 2
    end = left + (size - 1) * step

    def at(point: int) -> tuple[float, float]:
        return left + point % size * step, top + point // size * step

    ground = [rect(28, 28, size * step, size * step, _WOOD, rx=4)]
    for i in range(size):
        away = i * step
        ground += [line(left, top + away, end, top + away, _LINE), line(left + away, top, left + away, end, _LINE)]
        name = game.action_name(i)[0]
        ground += [text(left + away, y, name, 13, MUTED) for y in (14, end + step / 2 + 14)]
        ground += [text(x, top + away, size - i, 13, MUTED) for x in (13, end + step / 2 + 15)]
    ground += [
        circle(left + c * step, top + r * step, 0.09 * step + 1, _LINE) for r in _dots(size) for c in _dots(size)
    ]

    chains = np.asarray(state.chains)
    stones = np.sign(chains[size : size + size**2].astype(int))
    parts = []
    for point in np.flatnonzero(stones):
        fill = _BLACK if stones[point] > 0 else _WHITE
        parts.append(circle(*at(point), 0.47 * step, fill, stroke="#333333", stroke_width=0.7))
    if action is not None and action < size**2 and stones[action]:
        mark = _WHITE if stones[action] > 0 else _BLACK
        parts.append(circle(*at(action), 0.22 * step, "none", stroke=mark, stroke_width=0.07 * step + 0.5))
    about = f"Go after {int(state.ply)} moves"
    if int(state.passes) >= 2 or int(state.ply) >= 2 * size**2:
        owners = _owners(stones, size)
        for point in np.flatnonzero((owners != 0) & (stones == 0)):
            x, y = at(point)
            half = 0.15 * step
            parts.append(rect(x - half, y - half, 2 * half, 2 * half, _BLACK if owners[point] > 0 else _WHITE))
        black, white = int((owners > 0).sum()), int((owners < 0).sum())
        about = f"black {black}, white {white} + {game.komi:g}"
        parts.append(text(left + (end - left) / 2, end + step / 2 + 34, about, 15))
    elif action == size**2:
        player = "black" if int(state.ply) % 2 else "white"
        parts.append(text(left + (end - left) / 2, end + step / 2 + 34, f"{player} passed", 15))
    zones = tuple(
        Zone(
            id=game.action_name(point),
            shape=tag("rect", x=at(point)[0] - step / 2, y=at(point)[1] - step / 2, width=step, height=step),
            x=at(point)[0],
            y=at(point)[1],
            room=0.95 * step,
        )
        for point in range(size**2)
    )
    return Drawing(
        width=size * step + 58,
        height=size * step + 76,
        ground="".join(ground),
        pieces="".join(parts),
        zones=zones,
        about=about,
    )


def _dots(size: int) -> list[int]:
    """Returns the rows of the points that are marked."""
    if size < 7:
        return []
    edge = 2 if size < 12 else 3
    return [edge, size - 1 - edge, *([size // 2] if size % 2 and size > 12 else [])]


def _owners(stones: np.ndarray, size: int) -> np.ndarray:
    """Returns int[points], 1 where a point is Black's or reaches black stones alone, -1 for White, 0 for neither."""
    owners = stones.copy()
    seen = stones != 0
    for start in range(size**2):
        if seen[start]:
            continue
        region, reached, waiting = [], set(), deque([start])
        seen[start] = True
        while waiting:
            point = waiting.popleft()
            region.append(point)
            row, column = divmod(point, size)
            for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if 0 <= r < size and 0 <= c < size:
                    near = r * size + c
                    if stones[near]:
                        reached.add(int(stones[near]))
                    elif not seen[near]:
                        seen[near] = True
                        waiting.append(near)
        if len(reached) == 1:
            owners[region] = reached.pop()
    return owners
