"""Checkpoints that are whole or do not count: written by Orbax, acknowledged by a manifest of hashes.

    checkpoints/STEP/manifest.json     format, versions, every file's sha256 and size, every leaf's shape and dtype
    checkpoints/STEP/...               what Orbax wrote

Orbax loads a flipped bit or another dtype without a word and never falls back to an older step; the manifest is what
notices. A step is written beside its place as `STEP.new` and renamed to `STEP` when its manifest is inside.

Leaves are stored under the path of their fields, such as `params/torso/kernel`, so that players read the parameters
without knowing the class of the training state. Typed keys are stored as their data. Arrays are not compressed: on
100 MB it saves little, and a manifest that promises more bytes than its files hold is refused before memory is taken.
"""

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import math
import os
import platform
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

FORMAT_VERSION = 1
MANIFEST = "manifest.json"


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
        return sorted(int(path.parent.name) for path in self.directory.glob(f"*/{MANIFEST}") if _is_step(path.parent))

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
        self.wait()
        leaves, fields = _leaves_by_path(state)
        # Orbax refuses arrays without elements; their shape in the manifest says all there is.
        arrays = {path: _key_data(leaf) if _is_key(leaf) else leaf for path, leaf in leaves.items() if leaf.size}
        manifest = {
            "format_version": FORMAT_VERSION,
            "step": int(step),
            "fields": fields,
            "leaves": {path: _describe(leaf) for path, leaf in leaves.items()},
            "metadata": metadata,
            "versions": _versions(),
        }
        json.dumps(manifest, allow_nan=False)  # a ValueError or TypeError now rather than in the thread
        new = self.directory / f"{int(step)}.new"
        try:
            shutil.rmtree(new, ignore_errors=True)
            with _orbax():
                response = ocp.save_async(str(new), arrays)
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
        leaves, _ = _leaves_by_path(like)
        for path, leaf in leaves.items():
            if getattr(leaf, "sharding", None) is None:
                raise ValueError(f"{path} says no sharding, expected one on every leaf to restore to")
        described = {path: _describe(leaf) for path, leaf in leaves.items()}

        def read(folder: Path, manifest: dict[str, Any]) -> Any:
            targets = {
                path: jax.ShapeDtypeStruct(described[path]["shape"], described[path]["dtype"], sharding=leaf.sharding)
                for path, leaf in leaves.items()
            }
            loaded = _load(folder, targets)
            arrays = [
                _wrap_key(described[path]["key"], leaf.sharding)(loaded[path])
                if _is_key(leaf)
                else jax.device_put(loaded[path], leaf.sharding)
                for path, leaf in leaves.items()
            ]
            return jax.tree.unflatten(jax.tree.structure(like), arrays)

        def check(manifest: dict[str, Any]) -> None:
            difference = _difference(manifest["leaves"], described)
            if difference:
                raise _Mismatch(
                    f"checkpoint {self.directory / str(manifest['step'])} holds another state: {difference}"
                )

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
            for name in names:
                if name not in manifest["fields"]:
                    where = self.directory / str(manifest["step"])
                    raise _Mismatch(f"checkpoint {where} has no {name}, only {', '.join(manifest['fields'])}")

        def read(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
            leaves = {path: leaf for path, leaf in manifest["leaves"].items() if path.split("/")[0] in names}
            loaded = _load(folder, {path: np.empty(leaf["shape"], leaf["dtype"]) for path, leaf in leaves.items()})
            part: dict[str, Any] = {name: {} for name in names}
            for path, array in loaded.items():
                *parents, last = path.split("/")
                inner = part
                for parent in parents:
                    inner = inner.setdefault(parent, {})
                impl = leaves[path]["key"]
                inner[last] = jax.random.wrap_key_data(jnp.asarray(array), impl=impl) if impl else jnp.asarray(array)
            return part

        return self._first_whole(step, check, read).state

    def _first_whole(self, step: int | None, check: Callable, read: Callable) -> Restored:
        self.wait()
        saved = self.saved_steps()
        if not saved or (step is not None and step not in saved):
            what = "no checkpoint" if step is None else f"no checkpoint of step {step}"
            raise CheckpointError(f"{what} in {self.directory}, there are: {', '.join(map(str, saved)) or 'none'}")
        steps = saved[::-1] if step is None else [step]
        for candidate in steps:
            folder = self.directory / str(candidate)
            try:
                manifest = _verified_manifest(folder, candidate)
                check(manifest)
                return Restored(candidate, read(folder, manifest), manifest["metadata"])
            except _Mismatch as error:
                raise CheckpointError(str(error)) from None
            except Exception as error:
                problem = f"checkpoint {folder} is damaged: {_root_cause(error)}"
                if step is not None:
                    raise CheckpointError(problem) from None
                self._warn(f"{problem}; trying the one before it")
        raise CheckpointError(f"no whole checkpoint in {self.directory}, {len(steps)} damaged")

    def _finish(self, step: int, response: Any, manifest: dict[str, Any]) -> None:
        try:
            response.result()
            if jax.process_index() == 0:
                self._acknowledge(step, manifest)
        except Exception as error:
            self._error = self._failure(step, error)

    def _acknowledge(self, step: int, manifest: dict[str, Any]) -> None:
        folder, new = self.directory / str(step), self.directory / f"{step}.new"
        manifest["files"] = {str(path.relative_to(new)): _hash_file(path, sync=True) for path in _files(new)}
        _write_manifest(new, manifest)
        replaced = self.directory / f"{step}.old"
        if folder.exists():
            folder.rename(replaced)
        new.rename(folder)
        _sync(self.directory)
        shutil.rmtree(replaced, ignore_errors=True)
        # Steps after this one are a run's other, damaged or abandoned future: they are not its older steps.
        older = [saved for saved in self.saved_steps() if saved <= step][: -self._keep]
        for saved in older:
            if not (self._keep_every and saved % self._keep_every == 0):
                gone = (self.directory / str(saved)).rename(self.directory / f"{saved}.gone")
                shutil.rmtree(gone, ignore_errors=True)

    def _failure(self, step: int, error: Exception) -> CheckpointError:
        if jax.process_index() == 0:  # on a full disk, the next save needs the room
            for path in self.directory.glob(f"{step}.new*"):
                shutil.rmtree(path, ignore_errors=True)
        free = shutil.disk_usage(self.directory).free / 1e6
        where = self.directory / str(step)
        return CheckpointError(f"cannot save checkpoint {where}: {_root_cause(error)} ({free:,.0f} MB free there)")


class _Mismatch(Exception):
    """The checkpoint is whole but is not what was asked for: an older one would not help."""


def _is_step(path: Path) -> bool:
    return re.fullmatch(r"0|[1-9][0-9]{0,17}", path.name) is not None


def _remove_leftovers(directory: Path) -> None:
    for path in directory.iterdir():
        step, _, suffix = path.name.partition(".")
        if suffix == "old" and _is_step(directory / step) and not (directory / step).exists():
            path.rename(directory / step)  # killed between the two renames of a replacement
        elif _is_step(directory / step) and re.match(r"new|old|gone", suffix):
            shutil.rmtree(path, ignore_errors=True)


def _is_key(leaf: Any) -> bool:
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


_key_data = jax.jit(jax.random.key_data)


@functools.cache
def _wrap_key(impl: str, sharding: jax.sharding.Sharding) -> Callable[[jax.Array], jax.Array]:
    return jax.jit(functools.partial(jax.random.wrap_key_data, impl=impl), out_shardings=sharding)


def _leaves_by_path(tree: Any) -> tuple[dict[str, Any], list[str]]:
    """Returns the leaves by their path, and the names of the top-level fields, leaves in them or not."""
    top, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: node is not tree)
    leaves: dict[str, Any] = {}
    for keys, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        names = [jax.tree_util.keystr((key,), simple=True) for key in keys]
        path = "/".join(names)
        if not path or path in leaves or any("/" in name or not name for name in names):
            raise ValueError(f"leaf {path!r} has no path of its own, expected named fields without '/'")
        if not isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
            raise ValueError(f"{path} is a {type(leaf).__name__}, expected a jax array")
        leaves[path] = leaf
    return leaves, [jax.tree_util.keystr(keys, simple=True) for keys, _ in top]


def _describe(leaf: Any) -> dict[str, Any]:
    """Says what is stored of a leaf: of a typed key its data, and the name of its generator."""
    key = str(jax.random.key_impl(jnp.empty((), leaf.dtype))) if _is_key(leaf) else None
    data = jax.eval_shape(_key_data, leaf) if key else leaf
    return {"shape": list(data.shape), "dtype": str(data.dtype), "key": key}


def _difference(saved: dict[str, Any], expected: dict[str, Any], most: int = 3) -> str:
    def text(leaf: dict[str, Any] | None) -> str:
        if leaf is None:
            return "nothing"
        return f"{leaf['dtype']}{leaf['shape']}" + (f" of a {leaf['key']} key" if leaf["key"] else "")

    paths = [path for path in sorted(saved | expected) if saved.get(path) != expected.get(path)]
    parts = [f"{path} is {text(saved.get(path))}, expected {text(expected.get(path))}" for path in paths[:most]]
    return "; ".join(parts) + (f"; and {len(paths) - most} more" if len(paths) > most else "")


def _orbax() -> ocp.Context:
    context = ocp.Context()
    context.array.saving.use_compression = False
    context.pytree.loading.partial_load = True
    return context


def _load(folder: Path, targets: dict[str, Any]) -> dict[str, Any]:
    with _orbax():
        stored = {path: leaf for path, leaf in targets.items() if leaf.size}
        loaded = ocp.load(str(folder), stored) if stored else {}
    empty = {path: jnp.zeros(leaf.shape, leaf.dtype) for path, leaf in targets.items() if not leaf.size}
    return loaded | empty


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)


def _hash_file(path: Path, sync: bool = False) -> dict[str, Any]:
    with path.open("rb") as file:
        if sync:
            os.fsync(file.fileno())
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": os.fstat(file.fileno()).st_size}


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _hash_manifest(manifest: dict[str, Any]) -> str:
    text = json.dumps({key: value for key, value in manifest.items() if key != "sha256"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    temporary = folder / f"{MANIFEST}.tmp"
    with temporary.open("w") as file:
        json.dump({"sha256": _hash_manifest(manifest), **manifest}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder / MANIFEST)
    _sync(folder)


def _verified_manifest(folder: Path, step: int) -> dict[str, Any]:
    """Reads a step's manifest and holds the files against it. The manifest's own hash covers it in every format."""
    manifest = json.loads((folder / MANIFEST).read_text())
    if manifest["sha256"] != _hash_manifest(manifest):
        raise ValueError(f"{MANIFEST} does not have the hash it states")
    if manifest["format_version"] != FORMAT_VERSION:
        version = manifest["format_version"]
        raise _Mismatch(
            f"checkpoint {folder} has format {version}, expected {FORMAT_VERSION}: use the azjax that wrote it"
        )
    if manifest["step"] != step:
        raise ValueError(f"{MANIFEST} is of step {manifest['step']}")
    for name, stated in manifest["files"].items():
        path = folder / name
        if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{name} is missing")
        if path.stat().st_size != stated["bytes"]:
            raise ValueError(f"{name} has {path.stat().st_size} bytes, expected {stated['bytes']}")
    stored = sum(stated["bytes"] for stated in manifest["files"].values())
    needed = [math.prod(leaf["shape"]) * np.dtype(leaf["dtype"]).itemsize for leaf in manifest["leaves"].values()]
    # Orbax keeps small arrays inside its index, which is compressed.
    if sum(size for size in needed if size > 4096) > stored:
        raise ValueError(f"its leaves need {sum(needed)} bytes, its files have {stored}")
    for name, stated in manifest["files"].items():
        if _hash_file(folder / name) != stated:
            raise ValueError(f"{name} does not have the hash that {MANIFEST} states")
    return manifest


def _versions() -> dict[str, str]:
    packages = {"azjax": "azjax", "jax": "jax", "flax": "flax", "orbax": "orbax-checkpoint"}
    found = {name: importlib.metadata.version(package) for name, package in packages.items()}
    return found | {"python": platform.python_version()}


def _root_cause(error: BaseException) -> str:
    """Returns one line from the end of a chain of causes; Orbax's own tracebacks are a hundred lines."""
    while cause := error.__cause__ or (error.__context__ if not error.__suppress_context__ else None):
        error = cause
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
