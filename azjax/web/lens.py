"""A look into the search of a position: grown piece by piece, with the board marked and the tree drawn."""

from typing import Any

import numpy as np

from azjax.boards import Mark, draw, draw_marks, draw_move, zones_of
from azjax.charts import draw_tree
from azjax.line import Line
from azjax.search import Simulation
from azjax.web.roster import Agent, Shared
from envs.chance import event_name
from envs.core import Game

SHOWS = ("all", "visits", "prior", "q")
"""What is written on the squares."""
MOST_LISTED = 12


class Lens:
    """The search of one position of a table."""

    def __init__(self, agent: Agent, shared: Shared, line: Line):
        self.agent, self.ply = agent, line.plies
        self._shared = shared
        shared.holder = self
        self._game: Game = line.game
        self._line, self._search = line, shared.search
        self._state, self._mover = line.state, line.mover
        self._last: Simulation | None = None
        self._done = 0
        self._search.start(line.state, seed=line.plies)

    def fits(self, agent: Agent, line: Line) -> bool:
        """Returns whether this is the look at the line's position that the agent would have."""
        same = agent == self.agent and line is self._line and line.state is self._state
        return same and self._shared.holder is self

    def grow(self, simulations: int) -> None:
        """Adds simulations, as many as there is room for."""
        if simulations > 1:
            self._done += self._search.grow(simulations - 1)
        before = self._search.room
        self._last = self._search.step() or self._last
        self._done += before - self._search.room

    def value(self) -> float:
        """Returns the value of the position, player 0's view."""
        return (1 - 2 * self._mover) * self._search.look().value

    def view(self, shows: str) -> dict[str, Any]:
        """Returns what the page shows: {"simulations", "room", "value", "line", "moves", "svg", "tree", "last"}."""
        game, seen = self._game, self._search.look()
        legal = self._line.legal
        # The choice first: of moves with equally many visits it is one.
        order = sorted(legal, key=lambda action: (action != seen.action, -seen.visits[action], -seen.prior[action]))
        zones = dict(zip(legal, zones_of(game, self._state, legal), strict=True))
        most = max(1, int(seen.visits.max()))
        marks = []
        for action in order:
            visits, prior, q = int(seen.visits[action]), float(seen.prior[action]), float(seen.qvalues[action])
            texts = {
                "visits": f"{visits}" if visits else "",
                "prior": f"{prior:.0%}" if self.agent.kind != "uct" else "",
                "q": f"{q:+.2f}".replace("-0.00", "+0.00") if visits else "",
            }
            lines = tuple(filter(None, (texts.values() if shows == "all" else (texts[shows],))))
            share = {"prior": prior, "q": max(q, 0.0) if visits else 0.0}.get(shows, visits / most)
            marks.append(Mark(zones=zones[action], share=min(share, 1.0), lines=lines))
        previous = self._line.position(self.ply - 1) if self.ply else None
        drawing = draw_move(game, self._state, previous, self._line.action(self.ply))
        nodes = self._search.nodes()
        return {
            "ply": self.ply,
            "simulations": self._done,
            "room": self._search.room,
            "value": round(seen.value, 4),
            "line": self._names(seen.principal_variation),
            "moves": [
                {
                    "move": game.move_name(self._state, action),
                    "action": action,
                    "prior": round(float(seen.prior[action]), 4) if self.agent.kind != "uct" else None,
                    "visits": int(seen.visits[action]),
                    "q": round(float(seen.qvalues[action]), 4) if seen.visits[action] else None,
                }
                for action in order[:MOST_LISTED]
            ],
            "choice": game.move_name(self._state, seen.action),
            "svg": drawing.svg(draw_marks(drawing, marks), choosable=self._line.plies == self.ply),
            "tree": draw_tree(nodes, self._name, self._last),
            "last": self._told() if self._last is not None else None,
        }

    def _told(self) -> dict[str, Any]:
        """Returns the last simulation in words, and the position that it reached."""
        last = self._last
        assert last is not None
        leaf = last.nodes[-1]
        state = self._search.state_of(leaf)
        if last.terminal:
            words = "the game is over there: its result is exact"
        else:
            words = f"a new node, evaluated: {last.value:+.3f} for the player to move there"
        edges = [f"{name} {value:+.3f}" for name, value in zip(self._path(), last.backed_up, strict=True)]
        return {
            "path": self._path(),
            "words": words,
            "backup": edges,
            "svg": draw(self._game, state).svg(),
        }

    def _path(self) -> list[str]:
        last = self._last
        assert last is not None
        return [self._name(node, event) for node, event in zip(last.nodes, last.events, strict=False)]

    def _name(self, node: int, event: int) -> str:
        return event_name(self._game, self._search.state_of(node), event)

    def _names(self, events: tuple[int, ...]) -> list[str]:
        """Returns a line from the root by name; its nodes are in the tree but for the last one."""
        nodes, node, names = self._search.nodes(), 0, []
        for event in events:
            names.append(self._name(node, event))
            edge = int(np.flatnonzero(nodes.events[node] == event)[0])
            node = int(nodes.children[node, edge])
            if node < 0:
                break
        return names
