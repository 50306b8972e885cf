"""SIGINT, SIGTERM and SIGHUP of a run: noticed between steps and in the middle of a match, answered with a checkpoint.

One process has handlers of its own, which set a flag. Of several processes JAX owns SIGTERM: it tells all of them, and
they agree on a point of the run that each still has to reach, so that all save the same state.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.experimental import multihost_utils

from azjax import hosts
from azjax.launch import leave_terminal, stopping_signals

T = TypeVar("T")

POLL_SECONDS = 0.1
GRACE_SECONDS = 2.0
"""How long work that was interrupted may take to end by itself."""
THREAD_NAME = "interruptible"


class Interrupted(Exception):
    """A signal came while something was under way that can be done again."""


class Signals:
    """Collects signals while it is entered; a second one ends the process at once."""

    def __init__(self) -> None:
        self._number = 0
        self._several = hosts.several()
        self._looked = 0
        self._agreed = False
        self._old: dict[int, Any] = {}
        self.nothing_to_save = ""
        """While it is not empty, the first signal ends the process, which says this."""

    def __enter__(self) -> "Signals":
        # JAX's own handler of SIGTERM must stay where there are several processes.
        numbers = [number for number in stopping_signals() if not self._several or number != signal.SIGTERM]
        self._old = {number: signal.signal(number, self._handle) for number in numbers}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: Any) -> None:
        del frame
        if number == signal.SIGHUP:
            leave_terminal()
        if self._number or (self.nothing_to_save and not self._several):
            said = self.nothing_to_save or "stopped at once by a second signal"
            os.write(2, f"azjax: {said}\n".encode())
            os._exit(128 + number)
        self._number = number
        if self._several:
            os.kill(os.getpid(), signal.SIGTERM)

    def caught(self) -> int:
        """Returns the number of the signal to answer now, 0 for none.

        Of several processes, each must call it equally often: they agree on the call that is answered.
        """
        if not self._several:
            return self._number
        if not self._agreed:
            self._looked += 1
            self._agreed = multihost_utils.reached_preemption_sync_point(self._looked)
        return (self._number or signal.SIGTERM) if self._agreed else 0

    def check(self, *args: Any) -> None:
        """Raises Interrupted when there is a signal to answer; takes what a match tells of its progress."""
        del args
        if self.caught():
            raise Interrupted

    def interruptible(self, work: Callable[[], T]) -> T:
        """Runs work that calls `check` now and then, and stops waiting for it when a signal comes.

        One process runs it in a thread, since a program that compiles, or a slow player's move, notices nothing.

        Raises:
          Interrupted: a signal came; the work may go on for a while and is lost.
        """
        if self._several:
            return work()
        done: list[T] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                done.append(work())
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=run, name=THREAD_NAME, daemon=True)
        thread.start()
        while thread.is_alive() and not self._number:
            thread.join(POLL_SECONDS)
        thread.join(GRACE_SECONDS)
        if raised and not isinstance(raised[0], Interrupted):
            raise raised[0]
        if not done:
            raise Interrupted
        return done[0]


def leave(status: int) -> None:
    """Ends a failed process that others or XLA would keep from ending; returns if there is nothing of the kind.

    Python would wait for interrupted work that still runs, or crash in it; JAX would wait for the other processes, and
    they for this one.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if jax.distributed.is_initialized():
        parting = threading.Thread(target=jax.distributed.shutdown, daemon=True)
        parting.start()
        parting.join(GRACE_SECONDS)
    elif not any(thread.name == THREAD_NAME and thread.is_alive() for thread in threading.enumerate()):
        return
    os._exit(status)
