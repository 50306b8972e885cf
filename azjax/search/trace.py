"""A search looked at simulation by simulation, from its tree before and after."""

from typing import NamedTuple

import numpy as np

from azjax.search.tree import NO_NODE, ROOT


class Nodes(NamedTuple):
    """A tree of one game on the host; N nodes, W edges a node. Values: the view of the player to move at the node."""

    parents: np.ndarray  # int32[N], NO_NODE for the root
    action_from_parent: np.ndarray  # int32[N], an edge
    children: np.ndarray  # int32[N, W]
    visits: np.ndarray  # int32[N, W], of the edges
    qvalues: np.ndarray  # float32[N, W]
    prior_logits: np.ndarray  # float32[N, W]
    node_visits: np.ndarray  # int32[N]
    node_values: np.ndarray  # float32[N]
    raw_values: np.ndarray  # float32[N]
    rewards: np.ndarray  # float32[N], of the edge into the node, the parent's view
    discounts: np.ndarray  # float32[N], of the edge into the node: 0 where the game ends there
    events: np.ndarray  # int[N, W], the action (or A + outcome) of each edge

    def event(self, node: int) -> int:
        """Returns the event that leads to a node from its parent."""
        return int(self.events[self.parents[node], self.action_from_parent[node]])

    def line(self, node: int) -> list[int]:
        """Returns the nodes from the root to a node."""
        nodes = [node]
        while nodes[-1] != ROOT:
            nodes.append(int(self.parents[nodes[-1]]))
        return nodes[::-1]

    def edge_value(self, node: int) -> float:
        """Returns Q of the edge into a node, the parent's view."""
        return float(self.qvalues[self.parents[node], self.action_from_parent[node]])

    def root_sign(self, node: int) -> int:
        """Returns 1 where the player to move at the root is the one to move at the node's parent, else -1."""
        sign = 1
        for passed in self.line(node)[1:-1]:
            sign *= -1 if self.discounts[passed] < 0 else 1
        return sign


class Simulation(NamedTuple):
    """One simulation."""

    nodes: tuple[int, ...]  # the path, the root first and the leaf last
    events: tuple[int, ...]  # between them
    expanded: bool  # the leaf is a new node; else a game's end that was there before
    terminal: bool  # the game is over at the leaf
    value: float  # of the leaf: its evaluation in the view of the player to move there; at the end 0
    backed_up: tuple[float, ...]  # what was added to each edge of the path, in the view of the player who took it


def last_simulation(before: Nodes, after: Nodes) -> Simulation:
    """Returns the simulation by which two trees differ; the second has room for one node more."""
    nodes, events = [ROOT], []
    known = len(before.parents)
    while True:
        node = nodes[-1]
        now = after.visits[node]
        grown = np.flatnonzero(now > (before.visits[node] if node < known else 0))
        if not grown.size:
            break
        edge = int(grown[0])
        child = int(after.children[node, edge])
        events.append(int(after.events[node, edge]))
        if child == NO_NODE:
            break
        nodes.append(child)
    leaf = nodes[-1]
    value, terminal = float(after.raw_values[leaf]), bool(after.discounts[leaf] == 0)
    backed_up, seen = [], value
    for node in reversed(nodes[1:]):
        seen = float(after.rewards[node] + after.discounts[node] * seen)
        backed_up.append(seen)
    return Simulation(tuple(nodes), tuple(events), leaf >= known, terminal, value, tuple(reversed(backed_up)))
