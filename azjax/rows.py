"""The rows of metrics.jsonl, one JSON object a line: which are whole, and which a run that goes on has earned.

{"step": 3, "games": ..., "loss": ...}            a step of training
{"step": 3, "gate": {...}}                        a match against the gate's holder
{"step": 3, "evaluation": {...}}                  a match against an anchor
{"step": 6, "evaluation": {...}, "final": true}   a match of the report, which is made anew when it is missing
"""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

MOST_BYTES = 2**20
"""Of a line; a longer one is damaged, and is not read whole."""
_OF_TRAINING = ("games", "plies", "simulations", "seconds", "plies_per_second")


def parsed(text: bytes) -> Any:
    """Returns what JSON says; NaN and Infinity, which are not JSON, are null.

    Raises:
      ValueError: it is no JSON, or nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=lambda word: None)
    except RecursionError:
        raise ValueError("got JSON nested too deeply") from None


def is_number(value: Any) -> bool:
    """Returns whether a part of JSON is a number to reckon with."""
    return type(value) in (int, float) and abs(value) < 1e300


def whole_row(line: bytes) -> dict[str, Any] | None:
    """Returns the row in a line; None where the line is damaged, by a crash or a stranger."""
    try:
        row = parsed(line)
    except ValueError:
        return None
    if not isinstance(row, dict) or type(row.get("step")) is not int or not is_number(row["step"]):
        return None
    if "games" in row and not all(is_number(row.get(name)) for name in _OF_TRAINING):
        return None
    if not isinstance(row.get("gate", {}), dict):
        return None
    return row if "evaluation" not in row or _is_match(row["evaluation"]) else None


def _is_match(value: Any) -> bool:
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in ("a", "b")):
        return False
    ends = value.get("ci95")
    return is_number(value.get("score")) and isinstance(ends, list) and len(ends) == 2 and all(map(is_number, ends))


def read_lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yields lines with their number of bytes; in the place of one longer than MOST_BYTES its end, where it has one."""
    while line := file.readline(MOST_BYTES):
        size, end = len(line), line
        while not end.endswith(b"\n") and (end := file.readline(MOST_BYTES)):
            size, line = size + len(end), b"\n" if end.endswith(b"\n") else b""
        yield line, size


def read_rows(path: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Yields the lines of a log with their rows; a torn last line, as a killed writer leaves it, is left out."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line, _ in read_lines(file):
            row = whole_row(line)
            if row is not None or line.endswith(b"\n"):
                yield line, row


def is_earned(row: dict[str, Any], step: int, waiting: Collection[str]) -> bool:
    """Returns whether a checkpoint stands for a row, so that going on from there does not write it again.

    Args:
      row: one of the log's.
      step: the checkpoint's.
      waiting: matches of that step, "gate" or "evaluation", that were still to be played when it was saved.
    """
    if row.get("final") or row["step"] > step:
        return False
    return row["step"] < step or not any(name in row for name in waiting)
