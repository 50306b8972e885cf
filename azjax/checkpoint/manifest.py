"""The manifest of a checkpoint: what a step holds, and the hash of every file that holds it."""

import hashlib
import importlib.metadata
import json
import math
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

FORMAT_VERSION = 1
NAME = "manifest.json"


class UnknownFormatError(Exception):
    """The step is whole, and of a format that this azjax does not read."""


def describe(step: int, fields: list[str], leaves: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
    """Returns all of a manifest but its files. Raises ValueError when the metadata is no JSON."""
    try:
        metadata = json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata must be JSON, got {error}") from None
    packages = {"azjax": "azjax", "jax": "jax", "flax": "flax", "orbax": "orbax-checkpoint"}
    versions = {name: importlib.metadata.version(package) for name, package in packages.items()}
    return {
        "format_version": FORMAT_VERSION,
        "step": step,
        "fields": fields,
        "leaves": leaves,
        "metadata": metadata,
        "versions": versions | {"python": platform.python_version()},
    }


def seal(folder: Path, manifest: dict[str, Any]) -> None:
    """Hashes every file of a step and writes its manifest, all of it on disk when this returns."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): _hash_file(path, sync=True) for path in paths}
    manifest = manifest | {"files": files}
    for path in [*folder.rglob("*/"), folder]:
        sync(path)
    temporary = folder / f"{NAME}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump({"sha256": _hash_manifest(manifest), **manifest}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder / NAME)
    sync(folder)


def verify(folder: Path, step: int) -> dict[str, Any]:
    """Reads a step's manifest and holds every file against it.

    The manifest's own hash is made alike in every format, so that a damaged version number is known as damage.

    Raises:
      UnknownFormatError: another azjax wrote it.
      Exception: the step is damaged.
    """
    if not (folder / NAME).is_file():
        raise ValueError(f"{NAME} is missing")
    manifest = json.loads((folder / NAME).read_text("utf-8"))
    if manifest["sha256"] != _hash_manifest(manifest):
        raise ValueError(f"{NAME} does not have the hash it states")
    if manifest["format_version"] != FORMAT_VERSION:
        raise UnknownFormatError(f"format {manifest['format_version']}, expected {FORMAT_VERSION}")
    if manifest["step"] != step:
        raise ValueError(f"{NAME} is of step {manifest['step']}")
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
            raise ValueError(f"{name} does not have the hash that {NAME} states")
    return manifest


def difference(saved: dict[str, Any], expected: dict[str, Any], most: int = 3) -> str:
    """Names the first leaves that differ, or returns ''."""

    def text(leaf: dict[str, Any] | None) -> str:
        if leaf is None:
            return "nothing"
        return f"{leaf['dtype']}{leaf['shape']}" + (f" of a {leaf['key']} key" if leaf["key"] else "")

    paths = [path for path in sorted(saved | expected) if saved.get(path) != expected.get(path)]
    parts = [f"{path} is {text(saved.get(path))}, expected {text(expected.get(path))}" for path in paths[:most]]
    return "; ".join(parts) + (f"; and {len(paths) - most} more" if len(paths) > most else "")


def sync(folder: Path) -> None:
    """Puts a folder's names on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _hash_file(path: Path, sync: bool = False) -> dict[str, Any]:
    with path.open("rb") as file:
        if sync:
            os.fsync(file.fileno())
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": os.fstat(file.fileno()).st_size}


def _hash_manifest(manifest: dict[str, Any]) -> str:
    text = json.dumps({key: value for key, value in manifest.items() if key != "sha256"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
