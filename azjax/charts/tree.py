"""A search tree as it grows: the most visited nodes, and the path of the last simulation."""

import math
from collections.abc import Callable

from azjax.boards.drawing import frame
from azjax.boards.svg import INK, MARK, MUTED, PAPER, circle, line, rect, text
from azjax.search.trace import Nodes, Simulation
from azjax.search.tree import NO_NODE, ROOT

_STEP, _RISE, _TOP = 50, 74, 46
GOOD, BAD = "#0b7285", "#c2410c"
"""A value above and below 0, for the player to move at the root."""


def draw_tree(
    nodes: Nodes, name: Callable[[int, int], str], last: Simulation | None = None, *, most: int = 24, deepest: int = 7
) -> str:
    """Returns an SVG document.

    A circle is a node: its number of visits, its size by them, its colour the mean value for the player to move at the
    root. Nodes with few visits are left out, never those of the last path, which is drawn thick; the node that the last
    simulation added has a yellow edge.

    Args:
      nodes: the tree.
      name: (node, event) -> what to call an event at a node.
      last: the last simulation, if any.
      most: nodes, those of the last path aside.
      deepest: levels below the root, those of the last path aside.
    """
    path = set(last.nodes) if last is not None else set()
    shown = _chosen(nodes, path, most, deepest)
    children: dict[int, list[int]] = {node: [] for node in shown}
    for node in sorted(shown - {ROOT}, key=lambda node: int(nodes.action_from_parent[node])):
        children[int(nodes.parents[node])].append(node)
    places: dict[int, tuple[float, int]] = {}
    leaves = _place(ROOT, 0, children, places, 0)
    width = max(leaves * _STEP + 30, 260)
    height = _TOP + max(level for _, level in places.values()) * _RISE + 44
    left = (width - leaves * _STEP) / 2 + _STEP / 2

    def at(node: int) -> tuple[float, float]:
        x, level = places[node]
        return left + x * _STEP, _TOP + level * _RISE

    under, over = [], []
    for node in sorted(shown):
        x, y = at(node)
        if node != ROOT:
            parent = int(nodes.parents[node])
            px, py = at(parent)
            on_path = node in path and parent in path
            under.append(line(px, py, x, y, MARK if on_path else "#b5b2aa", 4 if on_path else 1.5))
            label = name(parent, nodes.event(node))
            mx, my = (px + x) / 2, (py + 1.35 * y) / 2.35
            under.append(rect(mx - 4.2 * len(label) - 2, my - 8, 8.4 * len(label) + 4, 16, PAPER, fill_opacity=0.85))
            under.append(text(mx, my, label, 12, INK, font_weight="bold" if on_path else None))
        over += _node(nodes, node, x, y, last)
    return frame(width, height, f"search tree of {int(nodes.node_visits[ROOT]) - 1} simulations", "".join(under + over))


def _node(nodes: Nodes, node: int, x: float, y: float, last: Simulation | None) -> list[str]:
    visits = int(nodes.node_visits[node])
    if node == ROOT:
        value, ended = float(nodes.node_values[ROOT]), False
    else:
        value, ended = nodes.root_sign(node) * nodes.edge_value(node), nodes.discounts[node] == 0
    radius = min(9 + 1.6 * math.sqrt(visits), 21)
    fill = GOOD if value >= 0 else BAD
    new = last is not None and last.expanded and node == last.nodes[-1]
    edge = {"stroke": MARK if new else INK, "stroke_width": 4 if new else 1}
    strength = 0.25 + 0.75 * min(abs(value), 1)
    body = circle(x, y, radius, PAPER) + circle(x, y, radius, fill, fill_opacity=strength, **edge)
    if ended:
        body = rect(x - radius, y - radius, 2 * radius, 2 * radius, PAPER)
        body += rect(x - radius, y - radius, 2 * radius, 2 * radius, fill, fill_opacity=strength, **edge)
    shade = PAPER if strength > 0.6 else INK
    ground = rect(x - 15, y + radius + 2, 30, 13, PAPER, fill_opacity=0.85)  # edges to children pass below it
    return [body, text(x, y, visits, 12, shade), ground, text(x, y + radius + 9, f"{value:+.2f}", 10.5, MUTED)]


def _chosen(nodes: Nodes, path: set[int], most: int, deepest: int) -> set[int]:
    """Returns the nodes to draw: with each node its parents."""
    levels = {ROOT: 0}
    for node in range(1, len(nodes.parents)):
        if (parent := int(nodes.parents[node])) != NO_NODE:
            levels[node] = levels[parent] + 1
    ranked = sorted((node for node in levels if levels[node] <= deepest), key=lambda n: (-nodes.node_visits[n], n))
    # A parent has at least as many visits as its child and a lower number, so it comes first.
    return {ROOT, *ranked[:most], *path}


def _place(
    node: int, level: int, children: dict[int, list[int]], places: dict[int, tuple[float, int]], leaves: int
) -> int:
    """Gives a node and all below it a place; returns the number of leaves so far."""
    if not children[node]:
        places[node] = float(leaves), level
        return leaves + 1
    for child in children[node]:
        leaves = _place(child, level + 1, children, places, leaves)
    ends = places[children[node][0]][0], places[children[node][-1]][0]
    places[node] = sum(ends) / 2, level
    return leaves
