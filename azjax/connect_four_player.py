"""The player `solver` of Connect Four, whose 4.5 trillion positions no table of ours holds: it asks bitbully."""

import contextlib
from collections.abc import Sequence

import jax
import numpy as np

from azjax.oracle import oracle
from azjax.outside import Answer, OutsidePlayer, Question
from envs.connect_four import ConnectFour


class ConnectFourSolver(OutsidePlayer):
    """Plays any of the moves that keep the position's exact value."""

    name = "solver"
    most_games = 64

    def __init__(self, game: ConnectFour):
        """Starts bitbully's process.

        Raises:
          ValueError: bitbully is not installed, or the game has options.
        """
        self._open = contextlib.ExitStack()
        self._values = self._open.enter_context(oracle(game))

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        states = jax.tree.map(lambda *leaves: np.stack(leaves), *(question.state for question in questions))
        answers = []
        for question, worth in zip(questions, self._values(states), strict=True):
            best = np.flatnonzero(worth == worth.max())
            answers.append(Answer(int(np.random.default_rng([question.seed, len(question.moves)]).choice(best))))
        return answers

    def finish(self, game: int) -> None:
        pass

    def close(self) -> None:
        self._open.close()
