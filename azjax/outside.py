"""Players whose moves do not come from a compiled program: they are asked on the host, several games at a time."""

import abc
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from azjax.players import Player
from envs.core import State


class Question(NamedTuple):
    """What is to be played in one of the games in progress?"""

    game: int  # its number; the same number means the same game until `finish`
    seed: int  # of random choices in this game
    moves: tuple[str, ...]  # since the start of the game, by Game.move_name
    state: State  # the position
    legal: np.ndarray  # bool[A]


class Answer(NamedTuple):
    """A legal move, or why there is none."""

    action: int | None  # None: the game is given up
    end: str = ""  # then one of "resignation", "time", "forfeit", as a record has it
    reason: str = ""


class OutsidePlayer(abc.ABC):
    """Someone who plays and is asked on the host."""

    name: str
    most_games: int
    """Games side by side, at most."""

    @abc.abstractmethod
    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """Returns an answer to each question, of different games, `most_games` at most."""

    @abc.abstractmethod
    def finish(self, game: int) -> None:
        """Says that a game is over and its number free."""

    @abc.abstractmethod
    def close(self) -> None:
        """Frees what the player holds, such as processes; may be called twice."""


AnyPlayer = Player | OutsidePlayer
