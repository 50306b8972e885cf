"""What commands begin with: the game and the devices, players by their words, and how far the work has come."""

import os
import re
import sys
import time
from collections.abc import Sequence

import jax
from jax.sharding import Mesh

import envs
from azjax.opponents import any_player
from azjax.outside import AnyPlayer
from azjax.players import parse_player
from azjax.progress import duration
from azjax.rundir import load_run
from azjax.step import make_mesh
from azjax.train import use_devices
from envs.core import Game

PROGRESS_SECONDS = 5.0
_CPU_DEVICES = "JAX_NUM_CPU_DEVICES"


def begin_devices(devices: int = 0) -> None:
    """Makes virtual CPU devices: `devices`; 0: those that JAX_NUM_CPU_DEVICES asks of each process, else one a core.

    Raises:
      ValueError: the variable holds no number of devices.
    """
    word = os.environ.get(_CPU_DEVICES, "")
    if word and not (re.fullmatch("[0-9]{1,4}", word) and int(word)):
        raise ValueError(f"{_CPU_DEVICES}: got {word!r}, expected a whole number from 1 to 9999")
    processes = jax.process_count() if word and jax.distributed.is_initialized() else 1
    use_devices(devices or int(word or 0) * processes)


def start(word: str) -> tuple[Game, Mesh]:
    """Returns the game, and a mesh over all devices."""
    game = envs.make(word)
    begin_devices()
    return game, make_mesh(0)


def players_of(game: Game, words: Sequence[str]) -> list[AnyPlayer]:
    """Returns players, engines too; all words are read before the first is made.

    Raises:
      ValueError: a word names no player of this game.
    """
    for word in words:
        parse_player(word)
    return [any_player(game, word, load_run) for word in words]


class Telling:
    """Tells on stderr how many games (or what else) are done, every few seconds."""

    def __init__(self, what: str, unit: str = "games"):
        self._what, self._unit = what, unit
        self._began = self._last = time.monotonic()

    def __call__(self, done: int, number: int) -> None:
        now = time.monotonic()
        if now - self._last >= PROGRESS_SECONDS:
            self._last = now
            clock = duration(now - self._began)
            print(f"{self._what}: {done} of {number} {self._unit}, {clock}", file=sys.stderr, flush=True)
