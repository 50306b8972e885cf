"""A run's directory: what lies where, its configuration, its log, its lock, and the agent in it.

runs/NAME/ config.json  metrics.jsonl  tensorboard/  checkpoints/STEP/  games/*.jsonl  ratings.json  elo.png
           report.md  lock  crash/
"""

import contextlib
import errno
import fcntl
import itertools
import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Collection, Generator, Iterator
from pathlib import Path
from typing import Any

from azjax.checkpoint import CheckpointError, Checkpoints, Restored
from azjax.config import RunConfig, from_json, to_json
from azjax.manifest import sync
from azjax.players import LoadedRun
from azjax.rows import is_earned, read_rows

MOST_CONFIG_BYTES = 2**20
_OF_A_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HOLDER = re.compile(r"process (?P<process>[1-9]\d{0,8}) on (?P<host>\S+)")
"""What the lock says of who took it last."""


def check_name(name: str) -> str:
    """Returns `name` if it may name a run.

    Raises:
      ValueError: it holds anything but letters, digits, dot, underscore and hyphen, or is a path.
    """
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise ValueError(f"run name: got {name!r}, expected 1 to 64 letters, digits, '.', '_' or '-'")
    return name


def default_path(game: str, preset: str) -> Path:
    """Returns runs/GAME-PRESET with every other character of GAME as a hyphen."""
    return Path("runs") / re.sub(r"[^A-Za-z0-9._-]+", "-", f"{Path(game).name if '/' in game else game}-{preset}")[:64]


class RunDirectory:
    """Paths and small files of one run; the checkpoints are `Checkpoints`' business.

    Args:
      path: the directory.
      writes: False in the processes of a run that are not the first: what they are asked to write, they leave out.
    """

    def __init__(self, path: str | os.PathLike[str], *, writes: bool = True):
        self.path = Path(path)
        self.writes = writes
        self.name = self.path.absolute().name
        self.config_path = self.path / "config.json"
        self.metrics_path = self.path / "metrics.jsonl"
        self.tensorboard_path = self.path / "tensorboard"
        self.checkpoints_path = self.path / "checkpoints"
        self.games_path = self.path / "games"
        self.ratings_path = self.path / "ratings.json"
        self.picture_path = self.path / "elo.png"
        self.report_path = self.path / "report.md"
        self.lock_path = self.path / "lock"
        self.crash_path = self.path / "crash"
        self._held: os.stat_result | None = None  # the lock's file while this process holds it

    def exists(self) -> bool:
        """Returns whether a run was started here."""
        return self.config_path.is_file()

    def read_config(self) -> RunConfig:
        """Reads config.json.

        Raises:
          ValueError: there is none, or it is not a configuration.
        """
        if not self.exists():
            raise ValueError(
                f"run: got {self.path}, which has no config.json; expected a directory made by azjax train"
            )
        if (size := self.config_path.stat().st_size) > MOST_CONFIG_BYTES:
            raise ValueError(f"{self.config_path}: got {size} bytes, expected a run's fields")
        try:
            fields = json.loads(self.config_path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{self.config_path}: got a file that is not JSON ({error}), expected a run's fields"
            ) from None
        try:
            return from_json(fields)
        except ValueError as error:
            raise ValueError(f"{self.config_path}: {error}") from None

    def write_config(self, config: RunConfig) -> None:
        """Writes config.json, whole or not at all."""
        if not self.writes:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        partial = self.config_path.with_suffix(".json.new")
        partial.write_text(json.dumps(to_json(config), indent=2) + "\n", encoding="utf-8")
        sync(partial)
        partial.replace(self.config_path)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the rows of metrics.jsonl; damaged lines are passed over."""
        return (row for _, row in read_rows(self.metrics_path) if row is not None)

    def cut_rows(self, step: int, waiting: Collection[str], warn: Callable[[str], None]) -> None:
        """Drops the rows of metrics.jsonl that a run which goes on from a checkpoint will write again.

        Args:
          step: the checkpoint's; 0 for none.
          waiting: its matches that are still to be played.
          warn: is told, in one line, of damaged lines; they are dropped, and the file is kept as it was beside it.
        """
        if not self.writes:
            return
        lines = list(read_rows(self.metrics_path))
        if damaged := sum(row is None for _, row in lines):
            kept = self.metrics_path.with_suffix(".jsonl.damaged")
            shutil.copyfile(self.metrics_path, kept)
            what = f"{damaged} damaged line{'s' * (damaged > 1)} of {len(lines)}"
            warn(f"{self.metrics_path}: {what} dropped; the file as it was is kept in {kept}")
        partial = self.metrics_path.with_suffix(".jsonl.new")
        earned = [(line, row) for line, row in lines if row is not None and is_earned(row, step, waiting)]
        if (missing := step - len({row["step"] for _, row in earned if "games" in row})) > 0:
            warn(f"{self.metrics_path}: {missing} of the rows of {step} steps are not there; curves lack them")
        partial.write_bytes(b"".join(line if line.endswith(b"\n") else line + b"\n" for line, _ in earned))
        partial.replace(self.metrics_path)

    def drop_report(self) -> None:
        """Removes report.md, which says that the run is finished."""
        if self.writes:
            self.report_path.unlink(missing_ok=True)

    def refuse_links(self, *, written: bool = False) -> None:
        """Refuses a directory that leads elsewhere. Checkpoints look into their own folders.

        Args:
          written: look at all that a trainer writes, not only at what a reader reads.

        Raises:
          ValueError: a part of it is a link.
        """
        folders = (self.games_path, self.tensorboard_path, self.crash_path) if written else ()
        parts = itertools.chain(self.path.iterdir(), *(folder.rglob("*") for folder in folders))
        if link := next((part for part in parts if part.is_symlink()), None):
            raise ValueError(f"run: {link} is a link, expected a run whose files are all inside it")

    def check_held(self) -> None:
        """Looks whether the directory that this process locked is still the one at its path.

        Raises:
          OSError: it was moved or removed, or its lock was: another process may train there by now.
        """
        if self._held is None:
            return
        try:
            found = self.lock_path.stat()
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != (self._held.st_dev, self._held.st_ino):
            raise OSError(
                f"run: {self.path} was moved or removed while it was trained, or its lock was; what was trained since"
                " its newest checkpoint is not saved; go on from where the run is now: --resume DIR"
            )

    def lock(self) -> contextlib.AbstractContextManager[Any]:
        """Takes the run for this process until the returned file is closed (or the process ends, however it ends).

        Raises:
          ValueError: another process trains here, or a part of the directory is a link to somewhere else.
        """
        if not self.writes:
            return contextlib.nullcontext()
        self.path.mkdir(parents=True, exist_ok=True)
        self.refuse_links(written=True)
        file = self.lock_path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise ValueError(
                f"run: {self.path} is being trained by {holder}; wait for it, or use another --out"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        self._held = os.fstat(file.fileno())
        return file

    def progress(self) -> str:
        """Returns "finished", "training" or "stopped"; "" where a process of another host may be training.

        The lock itself is not tried: whoever starts a run at that moment would find it taken.
        """
        if self.report_path.is_file():
            return "finished"
        said = self.lock_path.read_text(encoding="utf-8", errors="replace") if self.lock_path.is_file() else ""
        holder = _HOLDER.match(said)
        if holder is None:
            return "stopped"
        if holder["host"] != socket.gethostname():
            return ""
        try:
            os.kill(int(holder["process"]), 0)
        except ProcessLookupError:
            return "stopped"
        except PermissionError:  # someone else's process
            pass
        return "training"


@contextlib.contextmanager
def naming(path: Path) -> Generator[None]:
    """Names the directory and its free space where the system says that a write failed and not of which file.

    Raises:
      OSError: that, with a file's name.
    """
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in _OF_A_WRITE:
            raise
        free = shutil.disk_usage(path).free / 1e6
        raise OSError(error.errno, f"{error.strerror} ({free:,.0f} MB free there)", str(path)) from None


def check_cache(directory: str | None) -> None:
    """Refuses a compilation cache that others could write: what is found there runs as this user's program.

    Raises:
      ValueError: one line that says whose it is.
    """
    if not directory or "://" in directory or not hasattr(os, "getuid") or not Path(directory).exists():
        return
    stat = Path(directory).stat()
    if stat.st_uid not in (os.getuid(), 0) or stat.st_mode & 0o002:
        whose = f"user {stat.st_uid}'s" if stat.st_uid != os.getuid() else "writable by everyone"
        raise ValueError(
            f"JAX_COMPILATION_CACHE_DIR: got {directory}, which is {whose}; expected one that you alone can write"
        )


def load_run(directory: str, step: int | None) -> LoadedRun:
    """Reads the agent of a run.

    Args:
      directory: a run's directory.
      step: which checkpoint; None for the newest good one.

    Raises:
      ValueError: not a run, or no such checkpoint, or it is damaged.
    """
    run = RunDirectory(directory)
    config = run.read_config()
    run.refuse_links()
    checkpoints = Checkpoints(run.checkpoints_path)
    steps = checkpoints.present_steps()
    if not steps:
        raise ValueError(f"run: {run.path} has no checkpoint yet; expected one (train it further)")
    if step is not None and step not in steps:
        raise ValueError(
            f"run: {run.path} has no checkpoint of step {step}, expected one of {', '.join(map(str, steps))}"
        )
    try:
        restored = checkpoints.restore_part(step, ("learner", "step"))
    except CheckpointError as error:
        raise ValueError(f"run: {run.path}: {error}") from None
    _check_network(run, config, restored)
    return LoadedRun(config=config, variables=restored.state["learner"]["variables"], step=int(restored.state["step"]))


def _check_network(run: RunDirectory, config: RunConfig, restored: Restored) -> None:
    """Raises ValueError if config.json says another network than the one that the checkpoint holds."""
    said, stored = to_json(config)["network"], restored.metadata.get("config")
    made_by = stored.get("network") if isinstance(stored, dict) else None
    for name, value in made_by.items() if isinstance(made_by, dict) else ():
        if name in said and said[name] != value:
            raise ValueError(
                f"{run.config_path}: network.{name}: got {said[name]!r}, expected {value!r}, by which checkpoint "
                f"{restored.step} was made"
            )
