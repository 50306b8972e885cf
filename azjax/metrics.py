"""What a run has done so far, and its log: metrics.jsonl and TensorBoard."""

import dataclasses
import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter

from azjax.rundir import RunDirectory


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
    """metrics.jsonl and TensorBoard; opened in the processes that do not write too, where it is nothing."""

    def __init__(self, run: RunDirectory):
        self._path = run.metrics_path if run.writes else Path(os.devnull)
        self._file = self._path.open("a", encoding="utf-8")
        self._board = SummaryWriter(str(run.tensorboard_path), flush_secs=10, write_to_disk=run.writes)

    def __enter__(self) -> "MetricsLog":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()
        self._board.close()

    def write(self, row: dict[str, Any]) -> None:
        """Adds a row.

        Raises:
          OSError: there is no room for it; the message names the file and the free space.
        """
        # JSON has no NaN: a number that is not finite is null there.
        row = {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in row.items()}
        try:
            self._file.write(json.dumps(row, allow_nan=False) + "\n")
            self._file.flush()
        except OSError as error:
            free = shutil.disk_usage(self._path.parent).free / 1e6
            raise OSError(f"{self._path}: {error.strerror} ({free:,.0f} MB free there)") from None
        for name, value in row.items():
            if isinstance(value, int | float) and name != "step":
                self._board.add_scalar(name, value, row["step"])
