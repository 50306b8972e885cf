"""The manifest of a checkpoint: it acknowledges the step, and the files are held against it before they are read."""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
MOST_BYTES = 2**26
"""Of a manifest, in which a leaf or a file takes some 150."""


class CheckpointError(RuntimeError):
    """A checkpoint could not be written or read; the message is one line."""


def root_cause(error: BaseException) -> str:
    """Returns one line from the end of a chain of causes; Orbax's own tracebacks are a hundred lines."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:1000]}" if lines else type(error).__name__


def seal(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes the manifest of a step with the hash of its every file, all of it on disk when this returns."""
    paths = sorted(folder.rglob("*"))
    for path in paths:
        sync(path)
    manifest["files"] = {path.relative_to(folder).as_posix(): hash_file(path) for path in paths if path.is_file()}
    temporary = folder / f"{MANIFEST}.tmp"
    temporary.write_text(json.dumps({"sha256": hash_manifest(manifest), **manifest}, indent=1), "utf-8")
    sync(temporary)
    temporary.rename(folder / MANIFEST)
    sync(folder)


def verified(folder: Path, step: int) -> dict[str, Any]:
    """Reads a step's manifest and holds every file against it. Raises CheckpointError for another format alone."""
    path = folder / MANIFEST
    if folder.is_symlink() or path.is_symlink() or not path.is_file():
        raise ValueError(f"{MANIFEST} is missing, or a link leads there")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{MANIFEST} has {path.stat().st_size} bytes, expected at most {MOST_BYTES}")
    manifest = json.loads(path.read_text("utf-8"))
    # Made alike in every format, so that a damaged version number is known as damage.
    if manifest["sha256"] != hash_manifest(manifest) or manifest["step"] != step:
        raise ValueError(f"{MANIFEST} does not have the hash it states, or is of another step")
    if manifest["format_version"] != FORMAT_VERSION:
        found = f"format {manifest['format_version']}, expected {FORMAT_VERSION}"
        raise CheckpointError(f"checkpoint {folder} has {found}: use the azjax that wrote it")
    for name, stated in manifest["files"].items():
        path = folder / name
        if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{name} is missing")
        if path.stat().st_size != stated["bytes"]:
            raise ValueError(f"{name} has {path.stat().st_size} bytes, expected {stated['bytes']}")
    stored = sum(stated["bytes"] for stated in manifest["files"].values())
    needed = [_num_bytes(path, leaf) for path, leaf in manifest["leaves"].items()]
    # Orbax keeps small arrays inside its index, which is compressed.
    if sum(size for size in needed if size > 4096) > stored:
        raise ValueError(f"its leaves need {sum(needed)} bytes, its files have {stored}")
    for name, stated in manifest["files"].items():
        if hash_file(folder / name) != stated:
            raise ValueError(f"{name} does not have the hash that {MANIFEST} states")
    return manifest


def _num_bytes(path: str, leaf: dict[str, Any]) -> int:
    shape, dtype = leaf["shape"], np.dtype(str(leaf["dtype"]))
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"{path} has the shape {shape!r}")
    if dtype.name != leaf["dtype"] or dtype.kind in "OSUMm":
        raise ValueError(f"{path} is of type {leaf['dtype']!r}")
    return math.prod(shape) * dtype.itemsize


def difference(saved: dict[str, Any], expected: dict[str, Any], most: int = 3) -> str:
    def text(leaf: dict[str, Any] | None) -> str:
        of_a_key = f" of a {leaf['key']} key" if leaf and leaf["key"] else ""
        return f"{leaf['dtype']}{leaf['shape']}{of_a_key}" if leaf else "nothing"

    paths = [path for path in sorted(saved | expected) if saved.get(path) != expected.get(path)]
    parts = [f"{path} is {text(saved.get(path))}, expected {text(expected.get(path))}" for path in paths[:most]]
    parts += [f"and {len(paths) - most} more"] if len(paths) > most else []
    return f"another state: {'; '.join(parts)}" if parts else ""


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def hash_file(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": os.fstat(file.fileno()).st_size}


def hash_manifest(manifest: dict[str, Any]) -> str:
    text = json.dumps({key: value for key, value in manifest.items() if key != "sha256"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
