"""Play in a notebook: the board as a picture and a button for each move, with plain ipywidgets (they work in Colab)."""

import ipywidgets

from azjax.boards import draw_move
from azjax.play import Session
from azjax.players import Player
from envs.core import Game

MOST_BUTTONS = 128
"""With more legal moves than this, moves are typed."""


class PlayWidget(ipywidgets.VBox):
    """A game against a player."""

    def __init__(self, game: Game, opponent: Player, seat: int = 0, seed: int = 0):
        """Begins a game.

        Args:
          game: the rules.
          opponent: who sits in the other seat.
          seat: of the person: 0 moves first.
          seed: of the opponent's random choices and of dice.
        """
        self._game, self._opponent, self._seat, self._seed = game, opponent, seat, seed
        self._board, self._said = ipywidgets.HTML(), ipywidgets.HTML()
        self._moves = ipywidgets.HBox(layout={"flex_flow": "row wrap", "max_width": "40em"})
        self._typed = ipywidgets.Text(placeholder="a move", continuous_update=False, layout={"width": "10em"})
        self._typed.observe(self._write, names="value")
        actions = {"Undo": self.undo, "Hint": self.hint, "New game": self.new}
        buttons = [ipywidgets.Button(description=name, layout={"width": "auto"}) for name in actions]
        for button, action in zip(buttons, actions.values(), strict=True):
            button.on_click(lambda _, action=action: action())
        super().__init__([self._board, self._said, self._moves, ipywidgets.HBox([self._typed, *buttons])])
        self.new()

    def new(self) -> None:
        """Begins again; each game has dice and replies of its own."""
        self.session = Session(self._game, self._opponent, self._seat, self._seed)
        self._seed += 1
        self._reply()

    def play(self, action: int) -> None:
        """Makes the person's move, and lets the opponent answer."""
        self.session.play(action)
        self._reply()

    def undo(self) -> None:
        """Takes back the person's last move and the reply."""
        self._show("" if self.session.undo() else "There is no move of yours to take back.")

    def hint(self) -> None:
        """Says what the opponent would play in the person's place."""
        if not self.session.ended:
            self._show(f"{self.session.hint()}.")

    def _reply(self) -> None:
        session = self.session
        replies = []
        while not session.ended and session.mover != session.seat:
            if name := session.reply():
                replies.append(name)
        self._show(f"{self._opponent.name} played {' '.join(replies)}." if replies else "")

    def _show(self, words: str) -> None:
        session, ply = self.session, self.session.plies
        before = session.position(ply - 1) if ply else None
        self._board.value = draw_move(self._game, session.state, before, session.action(ply)).svg()
        self._said.value = f"{words} {session.result() if session.ended else 'Your move.'}"
        legal = [] if session.ended or len(session.legal) > MOST_BUTTONS else session.legal
        buttons = []
        for action in legal:
            name = self._game.move_name(session.state, action)
            button = ipywidgets.Button(description=name, layout={"width": "auto", "min_width": "3.2em"})
            button.on_click(lambda _, action=action: self.play(action))
            buttons.append(button)
        self._moves.children = tuple(buttons)

    def _write(self, change: dict) -> None:
        text = change["new"].strip()
        self._typed.value = ""
        if not text or self.session.ended:
            return
        try:
            action = self.session.parse(text)
        except ValueError as error:
            self._show(f"{error}.")
            return
        self.play(action)
