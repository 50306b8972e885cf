"""Saves training states step by step, and reads back the newest that is whole. The only file that imports Orbax."""

import dataclasses
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from orbax.checkpoint import v1 as ocp

from azjax.checkpoint import manifest as manifests
from azjax.checkpoint.leaves import by_path, describe, is_key, key_data, nested, wrap_key


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


class CheckpointError(RuntimeError):
    """A checkpoint could not be written or read; the message is one line."""


@dataclasses.dataclass(frozen=True)
class Restored:
    """A state as it was saved, its step, and the metadata saved with it."""

    step: int
    state: Any
    metadata: dict[str, Any]


class Checkpoints:
    """The steps saved in one directory; one writer at a time, any number of readers.

    Args:
      directory: the folder of the steps. A writer makes it and removes what a killed writer left half-written.
      keep: how many of the newest steps stay. Older ones go once a newer one is acknowledged.
      keep_every: steps that are multiples of it stay too; 0 for none.
      write: False for readers, which may run beside a writer and never touch a file.
      warn: is told, in one line, of every damaged step that was passed over.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        keep: int = 3,
        keep_every: int = 0,
        write: bool = False,
        warn: Callable[[str], None] = _to_stderr,
    ):
        if keep < 1 or keep_every < 0:
            raise ValueError(f"keep must be >= 1 and keep_every >= 0, got keep={keep}, keep_every={keep_every}")
        self.directory = Path(directory).absolute()
        self._keep, self._keep_every, self._write, self._warn = keep, keep_every, write, warn
        self._thread: threading.Thread | None = None
        self._error: CheckpointError | None = None
        if write and jax.process_index() == 0:
            self.directory.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(self.directory)

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if error is None:
            self.close()
        elif self._thread is not None:
            self._thread.join()  # the error under way is the one to report

    def close(self) -> None:
        """Waits for the save in flight. Raises CheckpointError when it failed."""
        self.wait()

    def saved_steps(self) -> list[int]:
        """Lists the acknowledged steps, oldest first."""
        return [step for step in self._steps() if (self.directory / str(step) / manifests.NAME).is_file()]

    def _steps(self) -> list[int]:
        # A folder gets its step's name with the manifest inside: one without was damaged later, and is warned of.
        return sorted(int(path.name) for path in self.directory.glob("*") if _is_step(path.name))

    def save(self, step: int, state: Any, metadata: dict[str, Any], wait: bool = False) -> None:
        """Saves a state whose leaves are jax arrays, replacing that step where it exists.

        Returns once every array is copied to the host, so that the next training step may be given (donated) the
        state; the files follow from a thread. A save still in flight is waited for first.

        Raises:
          CheckpointError: this save (with `wait`) or the one before it failed; earlier checkpoints are intact.
          ValueError: the state or the metadata cannot be stored.
        """
        if not self._write:
            raise ValueError(f"{self.directory} was opened for reading, expected write=True to save")
        if step < 0:
            raise ValueError(f"step must be >= 0, got {step}")
        self.wait()
        leaves, fields = by_path(state)
        manifest = manifests.describe(step, fields, {path: describe(leaf) for path, leaf in leaves.items()}, metadata)
        # Orbax refuses arrays without elements; their shape in the manifest says all there is.
        arrays = {path: key_data(leaf) if is_key(leaf) else leaf for path, leaf in leaves.items() if leaf.size}
        try:
            with _orbax():
                response = ocp.save_async(str(self.directory / f"{step}.new"), arrays)
        except Exception as error:
            raise self._failure(step, error) from None
        self._thread = threading.Thread(target=self._finish, args=(step, response, manifest), name="checkpoint")
        self._thread.start()
        if wait:
            self.wait()

    def wait(self) -> None:
        """Waits until everything asked for is on disk and acknowledged. Raises CheckpointError when it is not."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def restore(self, like: Any, step: int | None = None) -> Restored:
        """Reads a state back, on the devices that `like` names.

        Args:
          like: the state's structure, of jax.ShapeDtypeStruct with shardings, or of arrays.
          step: the step to read; None for the newest that is whole.

        Raises:
          CheckpointError: no step is whole, the given one is not, or it holds another state than `like`.
        """
        leaves, _ = by_path(like)
        for path, leaf in leaves.items():
            if getattr(leaf, "sharding", None) is None:
                raise ValueError(f"{path} says no sharding, expected one on every leaf to restore to")
        described = {path: describe(leaf) for path, leaf in leaves.items()}

        def read(folder: Path, manifest: dict[str, Any]) -> Any:
            targets = {
                path: jax.ShapeDtypeStruct(described[path]["shape"], described[path]["dtype"], sharding=leaf.sharding)
                for path, leaf in leaves.items()
            }
            loaded = _load(folder, targets)
            arrays = [
                wrap_key(described[path]["key"], leaf.sharding)(loaded[path]) if is_key(leaf) else loaded[path]
                for path, leaf in leaves.items()
            ]
            return jax.tree.unflatten(jax.tree.structure(like), arrays)

        def check(manifest: dict[str, Any]) -> None:
            difference = manifests.difference(manifest["leaves"], described)
            if difference:
                raise ValueError(f"another state: {difference}")

        return self._first_whole(step, check, read)

    def load_part(self, step: int | None, names: tuple[str, ...]) -> dict[str, Any]:
        """Reads only some top-level fields, as nested dicts of arrays on the default device.

        Args:
          step: the step to read; None for the newest that is whole.
          names: the fields, such as ("params", "statistics"). Tuples inside them come back as dicts "0", "1", ...

        Raises:
          CheckpointError: no step is whole, the given one is not, or it lacks a field.
        """

        def check(manifest: dict[str, Any]) -> None:
            lacking = [name for name in names if name not in manifest["fields"]]
            if lacking:
                raise ValueError(f"{', '.join(manifest['fields'])}, not {', '.join(lacking)}")

        def read(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
            leaves = {path: leaf for path, leaf in manifest["leaves"].items() if path.split("/")[0] in names}
            loaded = _load(folder, {path: np.empty(leaf["shape"], leaf["dtype"]) for path, leaf in leaves.items()})
            keys = {path: leaf["key"] for path, leaf in leaves.items()}
            arrays = {path: wrap_key(keys[path])(array) if keys[path] else array for path, array in loaded.items()}
            return nested({path: jnp.asarray(array) for path, array in arrays.items()}, names)

        return self._first_whole(step, check, read).state

    def _first_whole(self, step: int | None, check: Callable, read: Callable) -> Restored:
        self.wait()
        steps = self._steps()
        if not steps or (step is not None and step not in steps):
            what = "no checkpoint" if step is None else f"no checkpoint of step {step}"
            raise CheckpointError(f"{what} in {self.directory}, there are: {', '.join(map(str, steps)) or 'none'}")
        for candidate in steps[::-1] if step is None else [step]:
            folder = self.directory / str(candidate)
            try:
                manifest = manifests.verify(folder, candidate)
            except manifests.UnknownFormatError as error:
                raise CheckpointError(f"checkpoint {folder} has {error}: use the azjax that wrote it") from None
            except Exception as error:
                problem = f"checkpoint {folder} is damaged: {_root_cause(error)}"
                if step is not None:
                    raise CheckpointError(problem) from None
                self._warn(f"{problem}; trying the one before it")
                continue
            # From here on the files are what was written: an older step would fail alike.
            try:
                check(manifest)
            except ValueError as error:
                raise CheckpointError(f"checkpoint {folder} holds {error}") from None
            try:
                return Restored(candidate, read(folder, manifest), manifest["metadata"])
            except Exception as error:
                raise CheckpointError(f"cannot read checkpoint {folder}: {_root_cause(error)}") from None
        raise CheckpointError(f"no whole checkpoint in {self.directory}, damaged: {', '.join(map(str, steps))}")

    def _finish(self, step: int, response: Any, manifest: dict[str, Any]) -> None:
        try:
            response.result()
            if jax.process_index() == 0:
                self._acknowledge(step, manifest)
        except Exception as error:
            self._error = self._failure(step, error)

    def _acknowledge(self, step: int, manifest: dict[str, Any]) -> None:
        folder, new = self.directory / str(step), self.directory / f"{step}.new"
        manifests.seal(new, manifest)
        replaced = self.directory / f"{step}.old"
        if folder.exists():
            folder.rename(replaced)
        new.rename(folder)
        manifests.sync(self.directory)
        shutil.rmtree(replaced, ignore_errors=True)
        # Steps after this one are damaged, or a future that a run went back from: this one does not outdate them.
        older = [saved for saved in self.saved_steps() if saved <= step][: -self._keep]
        for saved in older:
            if not (self._keep_every and saved % self._keep_every == 0):
                gone = (self.directory / str(saved)).rename(self.directory / f"{saved}.gone")
                shutil.rmtree(gone, ignore_errors=True)

    def _failure(self, step: int, error: Exception) -> CheckpointError:
        if jax.process_index() == 0:  # on a full disk, the next save needs the room
            for path in self.directory.glob(f"{step}.new*"):
                shutil.rmtree(path, ignore_errors=True)
        try:
            free = f"{shutil.disk_usage(self.directory).free / 1e6:,.0f} MB free there"
        except OSError as lost:
            free = f"{lost.strerror} there"
        return CheckpointError(f"cannot save checkpoint {self.directory / str(step)}: {_root_cause(error)} ({free})")


def _is_step(name: str) -> bool:
    return re.fullmatch(r"0|[1-9][0-9]{0,17}", name) is not None


def _remove_leftovers(directory: Path) -> None:
    for path in directory.iterdir():
        step, _, suffix = path.name.partition(".")
        if not _is_step(step) or not re.match(r"new|old|gone", suffix):
            continue
        if suffix == "old" and not (directory / step).exists():
            path.rename(directory / step)  # killed between the two renames of a replacement
        else:
            shutil.rmtree(path, ignore_errors=True)


def _orbax() -> ocp.Context:
    context = ocp.Context()
    context.array.saving.use_compression = False
    context.pytree.loading.partial_load = True
    return context


def _load(folder: Path, targets: dict[str, Any]) -> dict[str, Any]:
    stored = {path: leaf for path, leaf in targets.items() if leaf.size}
    with _orbax():
        loaded = ocp.load(str(folder), stored) if stored else {}
    empty = {path: leaf for path, leaf in targets.items() if not leaf.size}
    return loaded | {
        path: jax.device_put(np.zeros(leaf.shape, leaf.dtype), getattr(leaf, "sharding", None))
        for path, leaf in empty.items()
    }


def _root_cause(error: BaseException) -> str:
    """Returns one line from the end of a chain of causes; Orbax's own tracebacks are a hundred lines."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
