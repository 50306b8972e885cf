"""What a run has done so far, and its log: metrics.jsonl and TensorBoard."""

import contextlib
import dataclasses
import json
import math
import shutil
import time
from typing import Any

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.summary_pb2 import Summary

from azjax.rundir import RunDirectory

FLUSH_SECONDS = 10.0
"""TensorBoard sees a row after this time."""


@dataclasses.dataclass(kw_only=True)
class Totals:
    """What a run has done so far: host integers, since they pass 2^31. Kept in every checkpoint's metadata."""

    games: int = 0
    plies: int = 0
    simulations: int = 0
    updates: int = 0
    seconds: float = 0.0  # wall clock of training, compiling included, evaluation not
    selfplay_seconds: float = 0.0  # of a fused step: all of it
    learning_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    nonfinite_steps: int = 0  # running


class MetricsLog:
    """metrics.jsonl and TensorBoard; opened in the processes that do not write too, where it is nothing.

    TensorBoard's events are written here and not by a SummaryWriter: its thread would die on a full disk, and the run
    would wait for ever for room in that thread's queue.
    """

    def __init__(self, run: RunDirectory):
        self._run = run
        self._file = run.metrics_path.open("a", encoding="utf-8") if run.writes else None
        self._board: EventsWriter | None = None
        self._flushed = time.monotonic()
        if run.writes:
            run.tensorboard_path.mkdir(exist_ok=True)
            self._board = EventsWriter(str(run.tensorboard_path / "events"))

    def __enter__(self) -> "MetricsLog":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        for file in (self._file, self._board):
            if file is not None:
                # What a full disk has refused is refused again: the error under way is the one to report.
                with contextlib.suppress(OSError):
                    file.close()

    def write(self, row: dict[str, Any]) -> None:
        """Adds a row.

        Raises:
          OSError: there is no room for it; the message names the file and the free space.
        """
        if self._file is None or self._board is None:
            return
        # JSON has no NaN: a number that is not finite is null there.
        row = {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in row.items()}
        numbers = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in row.items()
            if isinstance(value, int | float) and name != "step"
        ]
        path = self._run.metrics_path
        try:
            self._file.write(json.dumps(row, allow_nan=False) + "\n")
            self._file.flush()
            path = self._run.tensorboard_path
            self._board.write_event(Event(wall_time=time.time(), step=row["step"], summary=Summary(value=numbers)))
            if time.monotonic() - self._flushed > FLUSH_SECONDS:
                self._board.flush()
                self._flushed = time.monotonic()
        except OSError as error:
            free = shutil.disk_usage(self._run.path).free / 1e6
            raise OSError(f"{path}: {error.strerror} ({free:,.0f} MB free there)") from None
