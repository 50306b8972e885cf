"""The rows of metrics.jsonl, one JSON object a line: which are whole, and which a run that goes on has earned.

{"step": 3, "games": ..., "loss": ...}            a step of training
{"step": 3, "gate": {...}}                        a match against the gate's holder
{"step": 3, "evaluation": {...}}                  a match against an anchor
{"step": 6, "evaluation": {...}, "final": true}   a match of the report, which is made anew when it is missing
"""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

_OF_TRAINING = ("games", "plies", "simulations", "seconds")
_OF_A_MATCH = {"a": str, "b": str, "score": (int, float), "ci95": list}


def whole_row(line: bytes) -> dict[str, Any] | None:
    """Returns the row in a line; None where the line is damaged."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or type(row.get("step")) is not int:
        return None
    if "games" in row and not all(type(row.get(name)) in (int, float) for name in _OF_TRAINING):
        return None
    if not isinstance(row.get("gate", {}), dict):
        return None
    match = row.get("evaluation")
    if "evaluation" in row and not (
        isinstance(match, dict) and all(isinstance(match.get(name), kind) for name, kind in _OF_A_MATCH.items())
    ):
        return None
    return row


def read_rows(path: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Yields the lines of a log with their rows; a torn last line, as a killed writer leaves it, is left out."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
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
