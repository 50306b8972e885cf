"""Who knows the exact value of every move: our own solver for small games, bitbully's for Connect Four."""

import contextlib
import functools
import subprocess
import sys
from collections.abc import Callable, Generator

import jax
import numpy as np

from azjax.expansion import facts, in_chunks
from azjax.solver import action_values, solve
from envs.connect_four import ConnectFour
from envs.core import Game, State

ValuesFn = Callable[[State], np.ndarray]
"""states numpy [N, ...], none of them over -> float32[N, A], what each move is worth in the end when both sides play
perfectly, the view of the player to move; -inf where it is illegal."""

_COMMAND = (sys.executable, "-m", "azjax.connect_four_program")
_WITHOUT = 3
"""Its exit status where bitbully is not installed."""
_AT_ONCE = 256
"""Positions sent before their answers are read: as many as fit a pipe."""


@contextlib.contextmanager
def oracle(game: Game) -> Generator[ValuesFn]:
    """Yields a function that gives the exact value of every move.

    Raises:
      ValueError: the game is too large, or has dice, or is Connect Four and bitbully is not installed.
    """
    if isinstance(game, ConnectFour):
        with _connect_four(game) as values:
            yield values
        return
    solution = solve(game)
    look = jax.jit(lambda states: action_values(game, solution, states)[0])
    yield functools.partial(in_chunks, look)


@contextlib.contextmanager
def _connect_four(game: ConnectFour) -> Generator[ValuesFn]:
    if game != ConnectFour():
        raise ValueError(f"solver: got {game.id}, expected connect_four without options")
    with subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            if process.stdout.readline() != "ready\n":
                if (status := process.wait()) != _WITHOUT:
                    raise RuntimeError(f"solver: {' '.join(_COMMAND)} ended with {status}")
                raise ValueError(
                    "solver: connect_four needs the package bitbully, which is not installed here; pip install bitbully"
                )
            observe = jax.jit(jax.vmap(game.observe))

            def values(states: State) -> np.ndarray:
                said, first = in_chunks(observe, states), facts(game, states).mover == 0
                lines = []
                for planes, is_first in zip(said, first, strict=True):
                    mine, theirs = "XO" if is_first else "OX"
                    squares = np.where(planes[:, :, 0] > 0, mine, np.where(planes[:, :, 1] > 0, theirs, "."))
                    lines.append("".join(squares.reshape(-1)))
                return np.array([_signs(line) for line in _ask(process, lines)], np.float32)

            yield values
        finally:
            process.kill()


def _ask(process: subprocess.Popen[str], lines: list[str]) -> list[str]:
    assert process.stdin is not None and process.stdout is not None
    answers = []
    for start in range(0, len(lines), _AT_ONCE):
        part = lines[start : start + _AT_ONCE]
        process.stdin.write("".join(f"{line}\n" for line in part))
        process.stdin.flush()
        for line in part:
            answer = process.stdout.readline()
            if not answer:
                raise RuntimeError(f"solver: {' '.join(_COMMAND)} ended with {process.wait()} at the position {line}")
            answers.append(answer)
    return answers


def _signs(answer: str) -> list[float]:
    return [-np.inf if word == "-" else float(np.sign(int(word))) for word in answer.split()]
