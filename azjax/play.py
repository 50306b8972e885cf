"""Play against an agent in the terminal: a game in progress (Session), and the conversation about it."""

import dataclasses
import pathlib
import sys
from collections.abc import Callable

import jax
import numpy as np
from rich.console import Console
from rich.text import Text

from azjax.boards.terminal import paint
from azjax.line import Line
from azjax.outside import Answer, AnyPlayer, OutsidePlayer, Question
from azjax.players import RESIGNS
from envs.core import Game
from envs.game_files import check_format, games_text
from envs.record import GameRecord

HELP = """\
a move        such as {example}; `moves` lists the legal ones
undo          take back your last move and the reply
hint          what your opponent would play in your place
resign        give up
rules         how the game is played
quit          leave; also the end of the input"""


class Session(Line):
    """A game between a person and a player."""

    def __init__(self, game: Game, opponent: AnyPlayer, seat: int, seed: int = 0):
        super().__init__(game, seed)
        self.opponent, self.seat, self._seed = opponent, seat, seed
        if not isinstance(opponent, OutsidePlayer):
            self._choose = jax.jit(lambda params, key, states: opponent.choose(params, key, states)[0])
        self.resigned: int | None = None  # the player who gave up
        self.gave_up: Answer | None = None  # how, where it was the opponent

    @property
    def ended(self) -> bool:
        """Is there nothing left to play, by the rules or because someone gave up?"""
        return self.over or self.resigned is not None

    def suggest(self) -> Answer:
        """Returns what the opponent would do in this position."""
        if isinstance(self.opponent, OutsidePlayer):
            state = jax.tree.map(np.asarray, self.state)
            (answer,) = self.opponent.ask([Question(0, self._seed, tuple(self.names()), state, self._mask)])
        else:
            key = jax.random.fold_in(self._rng_key, self.plies + 1)
            states = jax.tree.map(lambda leaf: leaf[None], self.state)
            action = int(self._choose(self.opponent.params, key, states))
            answer = Answer(None, "resignation", "gave up") if action == RESIGNS else Answer(action)
        return answer

    def reply(self) -> str | None:
        """Lets the opponent move; returns its move's name, None if it gave up."""
        answer = self.suggest()
        if answer.action is None:
            self.gave_up, self.resigned = answer, 1 - self.seat
            return None
        name = self.game.move_name(self.state, answer.action)
        self.play(answer.action)
        return name

    def hint(self) -> str:
        """Says what the opponent would do in the person's place."""
        action = self.suggest().action
        would = "give up" if action is None else f"play {self.game.move_name(self.state, action)}"
        return f"{self.opponent.name} would {would}"

    def undo(self) -> bool:
        """Goes back to the person's last decision; returns whether there was one."""
        for plies in range(self.plies - 1, -1, -1):
            if int(self.game.to_move(self.position(plies))) == self.seat:
                self.cut(plies)
                return True
        return False

    def result(self) -> str:
        """Returns what the game's end means for the person."""
        if self.gave_up is not None:
            return f"You won: {self.opponent.name} {self.gave_up.reason}."
        if self.truncated:
            return f"The game was cut off after {self.plies} moves: no result."
        mine = self.returns[self.seat]
        return "You won." if mine > 0 else "You lost." if mine < 0 else "A draw."

    def game_record(self) -> GameRecord:
        """Returns the game so far, the person's name being "person"."""
        players = ("person", self.opponent.name) if self.seat == 0 else (self.opponent.name, "person")
        record = self.record(players, self.resigned)
        if self.gave_up is None or self.over:
            return record
        return dataclasses.replace(record, end=self.gave_up.end, note=self.gave_up.reason)


Ask = Callable[[str], str | None]
"""Shows a prompt and returns the line typed, None at the end of the input."""
Tell = Callable[[str, str], None]
"""Shows text of a kind: "board", "move", "fault", "result" or "plain"."""


def converse(session: Session, ask: Ask, tell: Tell) -> None:
    """Plays the game to its end, or until the person leaves."""
    game = session.game
    tell(
        f"You move {('first', 'second')[session.seat]}, against {session.opponent.name}. `help` tells what to type.",
        "plain",
    )
    if game.legend:
        tell(game.legend, "plain")
    while not session.ended:
        if session.mover != session.seat:
            tell("(thinking)", "plain")
            if name := session.reply():
                tell(f"{session.opponent.name} plays {name}", "move")
            continue
        tell(game.render(session.state), "board")
        if not _decide(session, ask, tell):
            return
    tell(game.render(session.state), "board")
    tell(session.result(), "result")


def _decide(session: Session, ask: Ask, tell: Tell) -> bool:
    """Asks until a move is made or taken back; returns False when the person leaves."""
    game = session.game
    while True:
        line = ask("your move: ")
        match line.strip().lower() if line is not None else "quit":
            case "":
                continue
            case "quit" | "exit":
                tell("Left the game.", "plain")
                return False
            case "resign":
                session.resigned = session.seat
                tell(f"You resigned; {session.opponent.name} won.", "result")
                return False
            case "help" | "?":
                tell(HELP.format(example=game.move_name(session.state, session.legal[0])), "plain")
                if game.legend:
                    tell(game.legend, "plain")
            case "rules":
                tell(game.rules_text, "plain")
            case "moves":
                tell(" ".join(game.move_name(session.state, action) for action in session.legal), "plain")
            case "hint":
                tell(session.hint(), "plain")
            case "undo":
                if session.undo():
                    return True
                tell("undo: there is no move of yours to take back", "fault")
            case _:
                try:
                    session.play(session.parse(line or ""))
                except ValueError as error:
                    tell(" ".join(str(error).split()), "fault")
                    continue
                return True


def play_in_terminal(
    game: Game, opponent: AnyPlayer, *, seat: int, seed: int = 0, record: pathlib.Path | None = None
) -> int:
    """Plays on stdin and stdout, which need not be a terminal; returns the exit status.

    The game is added to the file `record`, however it ends, if a move was made; else nothing new is left.
    """
    if reconfigure := getattr(sys.stdin, "reconfigure", None):
        reconfigure(errors="replace")
    console = Console(highlight=False, soft_wrap=True)

    def ask(prompt: str) -> str | None:
        try:
            line = console.input(Text(prompt, style="bold"))
        except EOFError:
            console.print()
            return None
        if not sys.stdin.isatty():
            console.print(Text(line))  # what a terminal would have shown
        return line

    def tell(text: str, kind: str) -> None:
        if kind == "board":
            console.print(paint(game, text))
        else:  # a terminal would break long lines, such as a list of moves, within words
            console.print(Text(text, style=_STYLES[kind]), soft_wrap=not console.is_terminal)

    session = Session(game, opponent, seat, seed)
    new = record is not None and not record.exists()
    if record is not None:
        record.open("a").close()  # a file that cannot be written is told of before the game
    try:
        converse(session, ask, tell)
    finally:
        if record is not None and session.plies:
            with record.open("a", encoding="utf-8") as file:
                file.write(games_text(game, [session.game_record()], check_format(record)))
        elif record is not None and new:
            record.unlink()
    return 0


_STYLES = {"move": "cyan", "fault": "red", "result": "bold green", "plain": ""}
