"""The line of a game in progress: its positions from the start to now, moves and dice in between."""

import datetime
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.chance import play_chance
from envs.core import Game, State
from envs.random_games import apply_event
from envs.record import GameRecord


class Line:
    """Positions of one game. Dice are rolled as they are due, so that every position waits for a move or is the end."""

    def __init__(self, game: Game, seed: int = 0, *, start: State | None = None, events: Sequence[int] = ()):
        """Begins a game.

        Args:
          game: the rules.
          seed: of the dice.
          start: the first position; None: the game's own.
          events: moves and outcomes played from there, as a record has them.

        Raises:
          ValueError: one of the events is not possible; it says which.
        """
        self.game, self.own_start = game, start is None
        self._rng_key = jax.random.key(seed)
        self._step, self._look, self._apply, self._roll, init = _programs(game)
        self._states: list[State] = [init(jax.random.fold_in(self._rng_key, 0)) if start is None else start]
        self._events: list[tuple[int, ...]] = [()]  # what led to each of the states: a move and the dice after it
        self._read()
        for number, event in enumerate(events, 1):
            self._follow(number, event)
        self._roll_if_due()

    @property
    def state(self) -> State:
        """The position now."""
        return self._states[-1]

    @property
    def plies(self) -> int:
        """How many moves were made."""
        return len(self._states) - 1

    @property
    def legal(self) -> list[int]:
        """The legal actions now."""
        return [int(action) for action in np.flatnonzero(self._mask)]

    def position(self, ply: int) -> State:
        """Returns the position after so many moves."""
        return self._states[ply]

    def action(self, ply: int) -> int | None:
        """Returns the move that led to the position after `ply` moves; None for the start."""
        return self._events[ply][0] if ply else None

    def parse(self, text: str) -> int:
        """Returns the legal action that a person wrote.

        Raises:
          ValueError: one line: it names no move, or one that is not legal here.
        """
        action = self.game.parse_move(self.state, text)
        if not self.allows(action):
            raise ValueError(f"move: got {text.strip()!r}, which is not legal here; `moves` lists the legal ones")
        return action

    def allows(self, action: int) -> bool:
        """Returns whether a number is a legal action now."""
        return 0 <= action < self.game.num_actions and bool(self._mask[action])

    def play(self, action: int) -> None:
        """Makes a legal move, and rolls the dice that follow."""
        key = jax.random.fold_in(jax.random.fold_in(self._rng_key, 1), len(self._states))
        state, rolled = self._step(self.state, np.int32(action), key)
        self._states.append(state)
        self._events.append((action, *self._outcome(rolled)))
        self._read()

    def cut(self, plies: int) -> None:
        """Goes back to the position after so many moves."""
        del self._states[plies + 1 :], self._events[plies + 1 :]
        self._read()

    def names(self) -> list[str]:
        """Returns the moves made, as people write them."""
        moves = itertools.pairwise(range(len(self._states)))
        return [self.game.move_name(self._states[before], self._events[after][0]) for before, after in moves]

    def record(self, players: tuple[str, str], resigned: int | None = None) -> GameRecord:
        """Returns the game so far.

        Args:
          players: their names, player 0's first.
          resigned: the player who gave up, if one did.

        Raises:
          ValueError: it began at a position of its own, which a record cannot hold.
        """
        if not self.own_start:
            raise ValueError("record: got a game from a position of its own, expected one from the game's start")
        returns, end = None, "unfinished"
        if self.over:
            returns, end = (self.returns[0], self.returns[1]), "plies" if self.truncated else "rules"
        elif resigned is not None:
            returns, end = ((-1.0, 1.0), (1.0, -1.0))[resigned], "resignation"
        return GameRecord(
            game=self.game.id,
            players=players,
            actions=tuple(itertools.chain(*self._events)),
            returns=returns,
            end=end,
            date=datetime.date.today().isoformat(),
        )

    def _follow(self, number: int, event: int) -> None:
        """Plays an event of a record: an outcome belongs to the move before it."""
        outcome = event - self.game.num_actions
        if self._waits:
            probs = np.asarray(self.game.chance_probs(self.state))
            if not (0 <= outcome < len(probs) and probs[outcome] > 0):
                raise ValueError(f"event {number}: got {event}, expected an outcome of the dice")
            self._states[-1] = self._apply(self.state, np.int32(outcome))
            self._events[-1] = (*self._events[-1], event)
        elif self.allows(event):
            self._states.append(self._apply(self.state, np.int32(event)))
            self._events.append((event,))
        else:
            raise ValueError(f"event {number}: got {event}, which is not legal there")
        self._read()

    def _roll_if_due(self) -> None:
        if self._waits:
            key = jax.random.fold_in(jax.random.fold_in(self._rng_key, 2), len(self._states))
            self._states[-1], rolled = self._roll(self.state, key)
            self._events[-1] = (*self._events[-1], *self._outcome(rolled))
            self._read()

    def _outcome(self, rolled: jax.Array) -> tuple[int, ...]:
        return (self.game.num_actions + int(rolled),) if rolled >= 0 else ()

    def _read(self) -> None:
        mover, over, truncated, waits, returns, mask = map(np.asarray, self._look(self.state))
        self.mover, self.over, self.truncated = int(mover), bool(over), bool(truncated)
        self._waits, self.returns, self._mask = bool(waits), returns.tolist(), mask


def read_line(game: Game, text: str, seed: int = 0) -> Line:
    """Returns the game that a text describes: moves from the start; a position in the game's own notation, then perhaps
    the word `moves` and moves; or a record as one line of JSON.

    Raises:
      ValueError: one line: what is wrong with it.
    """
    from envs.record import from_json

    text = " ".join(text.split())
    if text.startswith("{"):
        record = from_json(text)
        if record.game != game.id:
            raise ValueError(f"record: got one of {record.game}, expected one of {game.id}")
        return Line(game, seed, events=record.actions)
    position, moves, words = text.partition(" moves ")
    if moves or not has_notation(game):
        start = game.parse_position(position) if moves else None
        return _played(Line(game, seed, start=start), words if moves else text)
    try:
        return Line(game, seed, start=game.parse_position(text))
    except ValueError as error:
        try:
            return _played(Line(game, seed), text)
        except ValueError:
            raise error from None


def has_notation(game: Game) -> bool:
    """Returns whether positions of the game can be written as text."""
    return type(game).parse_position is not Game.parse_position


def _played(line: Line, words: str) -> Line:
    for number, word in enumerate(words.replace(",", " ").split(), 1):
        try:
            line.play(line.parse(word))
        except ValueError:
            raise ValueError(f"move {number}: got {word!r}, which is not a legal move there") from None
    return line


@functools.lru_cache(maxsize=32)
def _programs(game: Game) -> tuple[Callable[..., Any], ...]:
    """Returns compiled step(state, action, rng_key) -> (state, the outcome of the dice that follow, -1: none),
    look(state) -> mover, over, truncated, waits for dice, returns, legal mask; apply(state, event) -> state,
    roll(state, rng_key) -> (state, outcome) and init(rng_key) -> state.
    """

    def roll(state: State, rng_key: jax.Array) -> tuple[State, jax.Array]:
        states, rolled = play_chance(game, rng_key, jax.tree.map(lambda leaf: leaf[None], state))
        return jax.tree.map(lambda leaf: leaf[0], states), rolled[0]

    def step(state: State, action: jax.Array, rng_key: jax.Array) -> tuple[State, jax.Array]:
        return roll(game.step(state, action), rng_key)

    def look(state: State) -> tuple[jax.Array, ...]:
        return (
            jnp.asarray(game.to_move(state)),
            game.terminated(state),
            game.truncated(state),
            game.is_chance(state),
            game.returns(state),
            game.legal_action_mask(state),
        )

    def apply(state: State, event: jax.Array) -> State:
        return apply_event(game, state, event)

    return tuple(map(jax.jit, (step, look, apply, roll, game.init)))
