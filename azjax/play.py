"""Play against an agent in the terminal: a game in progress (Session), and the conversation about it."""

import datetime
import functools
import itertools
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.text import Text

from azjax.outside import Answer, OutsidePlayer, Question
from azjax.players import AnyPlayer
from envs.chance import start_games, step_games
from envs.core import Game, State
from envs.game_files import check_format, games_text
from envs.record import GameRecord

HELP = """\
a move        such as {example}; `moves` lists the legal ones
undo          take back your last move and the reply
hint          what your opponent would play in your place
resign        give up
quit          leave; also the end of the input"""


class Session:
    """A game between a person and a player."""

    def __init__(self, game: Game, opponent: AnyPlayer, seat: int, seed: int = 0):
        self.game, self.opponent, self.seat = game, opponent, seat
        self._rng_key, self._seed = jax.random.key(seed), seed
        self._advance, self._look = _programs(game)
        if not isinstance(opponent, OutsidePlayer):
            self._choose = jax.jit(lambda params, key, states: opponent.choose(params, key, states)[0])
        states, rolled = start_games(game, jax.random.fold_in(self._rng_key, 0), 1)
        self._states: list[State] = [jax.tree.map(lambda leaf: leaf[0], states)]
        self._events = [self._rolled(rolled[0])]  # what led to each of the states: a move and the dice after it
        self.resigned = False  # the person gave up
        self.gave_up: Answer | None = None  # the opponent did
        self._names: list[str] = []  # of the moves
        self._read()

    @property
    def state(self) -> State:
        return self._states[-1]

    @property
    def plies(self) -> int:
        return len(self._states) - 1

    def legal(self) -> list[int]:
        """Returns the legal actions."""
        return [int(action) for action in np.flatnonzero(self._mask)]

    def parse(self, text: str) -> int:
        """Returns the legal action that a person wrote.

        Raises:
          ValueError: one line: it names no move, or one that is not legal here.
        """
        action = self.game.parse_move(self.state, text)
        if not 0 <= action < self.game.num_actions or not self._mask[action]:
            raise ValueError(f"move: got {text.strip()!r}, which is not legal here; `moves` lists the legal ones")
        return action

    def play(self, action: int) -> None:
        """Makes a legal move, whoever's turn it is."""
        key = jax.random.fold_in(jax.random.fold_in(self._rng_key, 1), len(self._states))
        self._names.append(self.game.move_name(self.state, action))
        state, rolled = self._advance(self.state, np.int32(action), key)
        self._states.append(state)
        self._events.append((action, *self._rolled(rolled)))
        self._read()

    def suggest(self) -> int | None:
        """Returns what the opponent would play in this position; None if it would give up (`gave_up`)."""
        if isinstance(self.opponent, OutsidePlayer):
            state = jax.tree.map(np.asarray, self.state)
            (answer,) = self.opponent.ask([Question(0, self._seed, tuple(self._names), state, self._mask)])
            if answer.action is None:
                self.gave_up = answer
            return answer.action
        key = jax.random.fold_in(self._rng_key, len(self._states))
        states = jax.tree.map(lambda leaf: leaf[None], self.state)
        return int(self._choose(self.opponent.params, key, states))

    def undo(self) -> bool:
        """Goes back to the person's last decision; returns whether there was one."""
        for plies in range(self.plies, 0, -1):
            state = self._states[plies - 1]
            if int(self.game.to_move(state)) == self.seat:
                del self._states[plies:], self._events[plies:], self._names[plies - 1 :]
                self._read()
                return True
        return False

    def result(self) -> str:
        """Returns what the game's end means for the person."""
        if self.gave_up is not None:
            return f"You won: {self.opponent.name} {self.gave_up.reason}."
        if self.truncated:
            return f"The game was cut off after {self.plies} moves: no result."
        mine = self._returns[self.seat]
        return "You won." if mine > 0 else "You lost." if mine < 0 else "A draw."

    def record(self) -> GameRecord:
        """Returns the game so far, the person's name being "person"."""
        returns, end = None, "unfinished"
        if self.over:
            returns, end = (self._returns[0], self._returns[1]), "plies" if self.truncated else "rules"
        elif self.resigned:
            returns, end = ((-1.0, 1.0), (1.0, -1.0))[self.seat], "resignation"
        elif self.gave_up is not None:
            returns, end = ((1.0, -1.0), (-1.0, 1.0))[self.seat], self.gave_up.end
        return GameRecord(
            game=self.game.id,
            players=("person", self.opponent.name) if self.seat == 0 else (self.opponent.name, "person"),
            actions=tuple(itertools.chain(*self._events)),
            returns=returns,
            end=end,
            note=self.gave_up.reason if self.gave_up is not None else "",
            date=datetime.date.today().isoformat(),
        )

    def _rolled(self, outcome: jax.Array) -> tuple[int, ...]:
        return (self.game.num_actions + int(outcome),) if outcome >= 0 else ()

    def _read(self) -> None:
        mover, over, truncated, returns, mask = map(np.asarray, self._look(self.state))
        self.mover, self.over, self.truncated = int(mover), bool(over), bool(truncated)
        self._returns, self._mask = returns.tolist(), mask


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
    while not session.over:
        if session.mover != session.seat:
            tell("(thinking)", "plain")
            action = session.suggest()
            if action is None:
                break
            name = game.move_name(session.state, action)
            session.play(action)
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
                session.resigned = True
                tell(f"You resigned; {session.opponent.name} won.", "result")
                return False
            case "help" | "?":
                tell(HELP.format(example=game.move_name(session.state, session.legal()[0])), "plain")
            case "moves":
                tell(" ".join(game.move_name(session.state, action) for action in session.legal()), "plain")
            case "hint":
                action, session.gave_up = session.suggest(), None
                would = "give up" if action is None else f"play {game.move_name(session.state, action)}"
                tell(f"{session.opponent.name} would {would}", "plain")
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

    The game is added to the file `record`, however it ends, if a move was made.
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
        console.print(Text(text, style=_STYLES[kind]))

    session = Session(game, opponent, seat, seed)
    if record is not None:
        record.open("a").close()  # a file that cannot be written is told of before the game
    try:
        converse(session, ask, tell)
    finally:
        if record is not None and session.plies:
            with record.open("a", encoding="utf-8") as file:
                file.write(games_text(game, [session.record()], check_format(record)))
    return 0


_STYLES = {"board": "bold", "move": "cyan", "fault": "red", "result": "bold green", "plain": ""}


@functools.lru_cache
def _programs(game: Game) -> tuple[Callable[..., tuple[State, jax.Array]], Callable[[State], tuple[Any, ...]]]:
    """Returns compiled step(state, action, rng_key) -> (state, the outcome of the dice that follow, -1: none), and
    look(state) -> mover, over, truncated, returns, legal mask.
    """

    def step(state: State, action: jax.Array, rng_key: jax.Array) -> tuple[State, jax.Array]:
        states, rolled = step_games(game, rng_key, jax.tree.map(lambda leaf: leaf[None], state), action[None])
        return jax.tree.map(lambda leaf: leaf[0], states), rolled[0]

    def look(state: State) -> tuple[jax.Array, ...]:
        return (
            jnp.asarray(game.to_move(state)),
            game.terminated(state),
            game.truncated(state),
            game.returns(state),
            game.legal_action_mask(state),
        )

    return jax.jit(step), jax.jit(look)
