"""Checkpoints that are whole or do not count: written by Orbax, acknowledged by a manifest of hashes.

    checkpoints/STEP/manifest.json     format, versions, every file's sha256 and size, every leaf's shape and dtype
    checkpoints/STEP/...               what Orbax wrote

Orbax loads a flipped bit or another dtype without a word and never falls back to an older step; the manifest is what
notices. A step is written beside its place as `STEP.new` and renamed to `STEP` when its manifest is inside.

Leaves are stored under the path of their fields, such as `params/torso/kernel`, so that players read the parameters
without knowing the class of the training state; typed keys as their data. Arrays are not compressed: a manifest that
promises more bytes than its files hold is refused before memory is taken. Only this file imports Orbax.
"""

import dataclasses
import functools
import importlib.metadata
import json
import logging
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

from azjax import hosts
from azjax.manifest import FORMAT_VERSION, MANIFEST, CheckpointError, difference, root_cause, seal, sync, verified

STEP = re.compile(r"0|[1-9][0-9]{0,17}")

_key_data = jax.jit(jax.random.key_data)
ORBAX = ocp.Context()
ORBAX.array.saving.use_compression = False
ORBAX.pytree.loading.partial_load = True
# Orbax logs each failure three times over, a hundred lines in all; it arrives as one CheckpointError.
logging.getLogger("absl").addFilter(lambda record: "orbax" not in Path(record.pathname).parts)


@dataclasses.dataclass(frozen=True)
class Restored:
    """A state as it was saved, its step, and the metadata saved with it."""

    step: int
    state: Any
    metadata: dict[str, Any]


class Checkpoints:
    """The steps saved in one directory; one writer at a time, any number of readers.

    Of several processes each calls every method, in the same order; all of them see the same directory.

    Args:
      directory: the folder of the steps. A writer makes it and removes what a killed writer left half-written.
      keep: how many of the newest steps stay. Older ones go once a newer one is acknowledged.
      keep_every: steps that are multiples of it stay too; 0 for none.
      write: False for readers, which may run beside a writer and never touch a file.
      warn: is told, in one line, of every damaged step that was passed over; stderr when left out.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        keep: int = 3,
        keep_every: int = 0,
        write: bool = False,
        warn: Callable[[str], None] | None = None,
    ):
        if keep < 1 or keep_every < 0:
            raise ValueError(f"keep must be >= 1 and keep_every >= 0, got keep={keep}, keep_every={keep_every}")
        self.directory = Path(directory).absolute()
        self._keep, self._keep_every, self._write = keep, keep_every, write
        self._warn = warn or functools.partial(print, file=sys.stderr)
        self._thread: threading.Thread | None = None
        self._error: CheckpointError | None = None
        self._damaged: set[int] = set()  # steps that were passed over: they keep no good one from being kept
        if write:
            self.directory.mkdir(parents=True, exist_ok=True)
            os.listdir(self.directory)  # glob finds nothing in what cannot be read, and the run would begin anew
            self._remove_leftovers()

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if error is None:
            self.wait()
        elif self._thread is not None:
            self._thread.join()  # the error under way is the one to report

    def saved_steps(self) -> list[int]:
        """Lists the acknowledged steps, oldest first."""
        return [step for step in self.present_steps() if os.path.isfile(self.directory / str(step) / MANIFEST)]

    def present_steps(self) -> list[int]:
        """Lists the steps whose folders are there, damaged ones too, oldest first."""
        # A folder gets its step's name with the manifest inside: one without was damaged later, and is warned of.
        return sorted(int(path.name) for path in self.directory.glob("*") if STEP.fullmatch(path.name))

    def whole_steps(self) -> list[int]:
        """Lists the steps whose files are what was written, oldest first; the others are warned of."""
        whole = []
        for step in self.present_steps():
            folder = self.directory / str(step)
            try:
                verified(folder, step)
                whole.append(step)
            except Exception as error:
                self._warn(f"{_damage(folder, error)}; it is left out")
        return whole

    def save(self, step: int, state: Any, metadata: dict[str, Any], wait: bool = False) -> None:
        """Saves a state whose leaves are jax arrays, replacing that step where it exists.

        Returns once every array is copied to the host, so that the next training step may be given (donated) the
        state; the files follow from a thread. A save still in flight is waited for first.

        Raises:
          CheckpointError: this save (with `wait`) or the one before it failed; earlier checkpoints are intact.
          ValueError: the state or the metadata cannot be stored.
        """
        if not self._write or step < 0:
            raise ValueError(f"a save needs write=True and a step >= 0, got write={self._write}, step={step}")
        self.wait()
        self._remove_leftovers()  # of a failed save, whose threads may have written on for a while
        leaves, fields = _by_path(state)
        versions = {name: importlib.metadata.version(name) for name in ("azjax", "jax", "flax", "orbax-checkpoint")}
        described = {path: _describe(leaf) for path, leaf in leaves.items()}
        try:
            metadata = json.loads(json.dumps(metadata, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ValueError(f"metadata must be JSON, got {error}") from None
        manifest = {"format_version": FORMAT_VERSION, "step": step, "fields": fields, "leaves": described}
        manifest = {**manifest, "metadata": metadata, "versions": versions | {"python": platform.python_version()}}
        # Orbax refuses arrays without elements; their shape in the manifest says all there is.
        arrays = {path: _key_data(leaf) if _is_key(leaf) else leaf for path, leaf in leaves.items() if leaf.size}
        try:
            with ocp.Context(ORBAX):
                response = ocp.save_async(str(self.directory / f"{step}.new"), arrays)
        except Exception as error:
            raise self._failure(step, error) from None
        self._thread = threading.Thread(target=self._finish, args=(step, response, manifest), name="checkpoint")
        self._thread.start()
        if wait:
            self.wait()

    def wait(self) -> None:
        """Waits until everything asked for is on disk and acknowledged. Raises CheckpointError when it is not."""
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        error, self._error = self._error, None
        try:
            with hosts.together():
                if error is not None:
                    raise error
        except hosts.PeerError as failed:
            raise CheckpointError(f"cannot save a checkpoint in {self.directory}: {failed}") from None

    close = wait

    def restore(self, like: Any, step: int | None = None) -> Restored:
        """Reads a state back, on the devices that `like` names.

        Args:
          like: the state's structure, of jax.ShapeDtypeStruct with shardings, or of arrays.
          step: the step to read; None for the newest that is whole.

        Raises:
          CheckpointError: no step is whole, the given one is not, or it holds another state than `like`.
        """
        leaves, _ = _by_path(like)
        shardings = {path: leaf.sharding for path, leaf in leaves.items()}
        if bare := [path for path, sharding in shardings.items() if sharding is None]:
            raise ValueError(f"{bare[0]} says no sharding, expected one on every leaf to restore to")
        described = {path: _describe(leaf) for path, leaf in leaves.items()}

        def refuse(manifest: dict[str, Any]) -> str:
            return difference(manifest["leaves"], described)

        def read(folder: Path, manifest: dict[str, Any]) -> Any:
            return jax.tree.unflatten(jax.tree.structure(like), _load(folder, described, shardings).values())

        return self._first_whole(step, refuse, read)

    def load_part(self, step: int | None, names: tuple[str, ...]) -> dict[str, Any]:
        """Returns the state of `restore_part`."""
        return self.restore_part(step, names).state

    def restore_part(self, step: int | None, names: tuple[str, ...]) -> Restored:
        """Reads only some top-level fields, as nested dicts of arrays on the default device.

        Args:
          step: the step to read; None for the newest that is whole.
          names: the fields, such as ("params", "statistics"). Tuples inside them come back as dicts "0", "1", ...

        Raises:
          CheckpointError: no step is whole, the given one is not, or it lacks a field.
        """

        def refuse(manifest: dict[str, Any]) -> str:
            lacking = ", ".join(name for name in names if name not in manifest["fields"])
            return f"{', '.join(manifest['fields'])}, not {lacking}" if lacking else ""

        def read(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
            leaves = {path: leaf for path, leaf in manifest["leaves"].items() if path.split("/")[0] in names}
            return _nested(_load(folder, leaves, {}), names)

        return self._first_whole(step, refuse, read)

    def _first_whole(self, step: int | None, refuse: Callable[[dict], str], read: Callable[..., Any]) -> Restored:
        self.wait()
        try:
            with hosts.together():
                candidate, manifest = self._choose(step)
            hosts.require_same(f"newest whole checkpoint in {self.directory}", candidate)
        except hosts.PeerError as error:
            raise CheckpointError(str(error)) from None
        folder = self.directory / str(candidate)
        # From here on the files are what was written: an older step would fail alike.
        if reason := refuse(manifest):
            raise CheckpointError(f"checkpoint {folder} holds {reason}")
        try:
            return Restored(candidate, read(folder, manifest), manifest["metadata"])
        except Exception as error:
            raise CheckpointError(f"cannot read checkpoint {folder}: {root_cause(error)}") from None

    def _choose(self, step: int | None) -> tuple[int, dict[str, Any]]:
        """Returns the given step, or the newest that is whole, and its manifest."""
        steps = self.present_steps()
        if not steps or (step is not None and step not in steps):
            what = "no checkpoint" if step is None else f"no checkpoint of step {step}"
            raise CheckpointError(f"{what} in {self.directory}, there are: {', '.join(map(str, steps)) or 'none'}")
        for candidate in steps[::-1] if step is None else [step]:
            folder = self.directory / str(candidate)
            try:
                return candidate, verified(folder, candidate)
            except CheckpointError:
                raise
            except Exception as error:
                problem = _damage(folder, error)
                if step is not None:
                    raise CheckpointError(problem) from None
                self._damaged.add(candidate)
                self._warn(f"{problem}; trying the one before it")
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
        seal(new, manifest)
        if folder.exists():
            folder.rename(self.directory / f"{step}.old")
        new.rename(folder)
        sync(self.directory)
        shutil.rmtree(self.directory / f"{step}.old", ignore_errors=True)
        # Steps after this one are damaged, or a future that a run went back from: this one does not outdate them.
        self._damaged.discard(step)
        for saved in [s for s in self.saved_steps() if s <= step and s not in self._damaged][: -self._keep]:
            if not (self._keep_every and saved % self._keep_every == 0):
                gone = (self.directory / str(saved)).rename(self.directory / f"{saved}.gone")
                shutil.rmtree(gone, ignore_errors=True)

    def _failure(self, step: int, error: Exception) -> CheckpointError:
        self._remove_leftovers()  # on a full disk, the next save needs the room
        try:
            free = f"{shutil.disk_usage(self.directory).free / 1e6:,.0f} MB free there"
        except OSError as lost:
            free = f"{lost.strerror} there"
        return CheckpointError(f"cannot save checkpoint {self.directory / str(step)}: {root_cause(error)} ({free})")

    def _remove_leftovers(self) -> None:
        # The directory is gone where a run was moved while it saved: that is told of, not this.
        for path in sorted(self.directory.glob("*")) if jax.process_index() == 0 else ():
            step, _, suffix = path.name.partition(".")
            if not STEP.fullmatch(step) or not re.match(r"new|old|gone", suffix):
                continue
            if suffix == "old" and not (self.directory / step).exists():
                path.rename(self.directory / step)  # killed between the two renames of a replacement
            else:
                shutil.rmtree(path, ignore_errors=True)


def _damage(folder: Path, error: Exception) -> str:
    return str(error) if isinstance(error, CheckpointError) else f"checkpoint {folder} is damaged: {root_cause(error)}"


def _load(folder: Path, leaves: dict[str, Any], shardings: dict[str, Any]) -> dict[str, Any]:
    """Reads leaves to their shardings, and to the default device where none are given."""
    targets: dict[str, Any] = {}
    for path, leaf in leaves.items():
        target = jax.ShapeDtypeStruct(tuple(leaf["shape"]), jnp.dtype(leaf["dtype"]), sharding=shardings.get(path))
        if target.size:  # to numpy, an array is read whatever device it was saved from
            targets[path] = target if path in shardings else np.empty(target.shape, target.dtype)
    with ocp.Context(ORBAX):
        # Orbax takes the stored shape where the target is numpy's, and turns values into its type.
        written = ocp.metadata(str(folder)).metadata if targets else {}
        for path, target in targets.items():
            found = written[path]
            if (tuple(found.shape), jnp.dtype(found.dtype)) != (target.shape, target.dtype):
                said = f"{target.dtype}{list(target.shape)}"
                raise ValueError(f"{path} is stored as {found.dtype}{list(found.shape)}, {MANIFEST} says {said}")
        stored = ocp.load(str(folder), targets) if targets else {}
    loaded: dict[str, Any] = {}
    for path, leaf in leaves.items():
        array = stored[path] if path in stored else np.zeros(leaf["shape"], leaf["dtype"])
        array = jax.device_put(array, shardings.get(path))
        loaded[path] = _wrap_key(leaf["key"], shardings.get(path))(array) if leaf["key"] else array
    return loaded


def _is_key(leaf: Any) -> bool:
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


@functools.cache
def _wrap_key(impl: str, sharding: jax.sharding.Sharding | None = None) -> Callable[[jax.Array], jax.Array]:
    return jax.jit(functools.partial(jax.random.wrap_key_data, impl=impl), out_shardings=sharding)


def _by_path(tree: Any) -> tuple[dict[str, Any], list[str]]:
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


def _nested(leaves: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """Returns leaves by path as dicts in dicts; a field without leaves is an empty dict."""
    tree: dict[str, Any] = {field: {} for field in fields}
    for path, leaf in leaves.items():
        *parents, last = path.split("/")
        functools.reduce(lambda inner, parent: inner.setdefault(parent, {}), parents, tree)[last] = leaf
    return tree
