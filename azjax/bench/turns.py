"""Programs timed in turns, so that what else the machine does meets all of them."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax


def in_turns(sides: Sequence[Callable[[int], Callable[[], Any]]], rounds: int, seconds: float = 0.0) -> list[float]:
    """Returns the median seconds of a call of each side over `rounds` turns; one more before them compiles.

    Args:
      sides: turn -> the call to time, whose inputs are ready; the outputs are waited for.
      rounds: the turns that count.
      seconds: a turn calls so often that it takes about this long; 0: once.
    """
    calls, times = [], [[] for _ in sides]
    for side in sides:
        call = side(0)
        jax.block_until_ready(call())
        calls.append(max(1, round(seconds / _timed(call, 1))) if seconds else 1)
    for turn in range(1, rounds + 1):
        for side, measured, number in zip(sides, times, calls, strict=True):
            measured.append(_timed(side(turn), number))
    return [statistics.median(measured) for measured in times]


def _timed(call: Callable[[], Any], number: int) -> float:
    """Returns the seconds of one of `number` calls."""
    started = time.perf_counter()
    for _ in range(number):
        jax.block_until_ready(call())
    return (time.perf_counter() - started) / number
