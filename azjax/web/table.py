"""A table: one game on the page, its moves, and the search that looks at it."""

import secrets
from collections import OrderedDict
from typing import Any

from azjax.boards import draw_move, zones_of
from azjax.line import Line
from azjax.web.fields import Refused
from envs.core import Game

MOST_TABLES = 32
_NAMES = ("first", "second")


class Table:
    """One game in progress."""

    def __init__(self, word: str, line: Line):
        self.name = secrets.token_urlsafe(9)
        self.word, self.line = word, line  # the word that made the game
        self.values: dict[int, float] = {}  # by ply, player 0's view, of the positions that were searched
        self.look: Any = None  # what looks into the position now (`azjax.web.lens.Lens`)
        self.gave_up: tuple[int, str] | None = None  # the player who did, and how

    @property
    def game(self) -> Game:
        return self.line.game

    @property
    def over(self) -> bool:
        return self.line.over or self.gave_up is not None

    def play(self, action: int) -> None:
        """Makes a move.

        Raises:
          Refused: it is not legal.
        """
        if self.over or not self.line.allows(action):
            raise Refused(f"action: got {action}, which is not a legal move here")
        self.line.play(action)

    def back(self, plies: int) -> None:
        """Takes moves back."""
        self.gave_up = None
        self.line.cut(max(self.line.plies - plies, 0))
        self.values = {ply: value for ply, value in self.values.items() if ply <= self.line.plies}

    def view(self, ply: int | None = None) -> dict[str, Any]:
        """Returns what the page shows of the position now, or of an earlier one.

        {"table", "game", "ply", "plies", "mover", "over", "result", "svg", "about", "moves", "legal": [[action, name,
        zones], ...], "values": [[ply, value], ...]}; nothing is legal in an earlier position.
        """
        line = self.line
        ply = line.plies if ply is None else min(ply, line.plies)
        state, last = line.position(ply), ply == line.plies
        drawing = draw_move(self.game, state, line.position(ply - 1) if ply else None, line.action(ply))
        legal = []
        if last and not self.over:
            names = (self.game.move_name(state, action) for action in line.legal)
            legal = [
                list(entry) for entry in zip(line.legal, names, zones_of(self.game, state, line.legal), strict=True)
            ]
        return {
            "table": self.name,
            "game": self.word,
            "ply": ply,
            "plies": line.plies,
            "mover": line.mover if last else int(self.game.to_move(state)),
            "over": self.over,
            "result": self.result(),
            "svg": drawing.svg(choosable=last),
            "about": drawing.about,
            "moves": line.names(),
            "legal": legal,
            "values": sorted(self.values.items()),
        }

    def result(self) -> str:
        """Returns how the game ended; nothing while it goes on."""
        line = self.line
        if self.gave_up is not None:
            player, how = self.gave_up
            return f"{_NAMES[1 - player]} player won, the other {how}"
        if not line.over:
            return ""
        if line.truncated:
            return f"cut off after {line.plies} moves: no result"
        first = line.returns[0]
        return "a draw" if first == 0 else f"{_NAMES[int(first < 0)]} player won"


class Tables:
    """The tables in use; the one that was used longest ago makes room for a new one."""

    def __init__(self):
        self._tables: OrderedDict[str, Table] = OrderedDict()

    def add(self, table: Table) -> Table:
        """Keeps a table."""
        self._tables[table.name] = table
        while len(self._tables) > MOST_TABLES:
            self._tables.popitem(last=False)
        return table

    def get(self, name: str) -> Table:
        """Returns a table.

        Raises:
          Refused: it is not there, or no more.
        """
        if name not in self._tables:
            raise Refused("table: this game is no longer here; start a new one")
        self._tables.move_to_end(name)
        return self._tables[name]
