"""Where a result comes from: what every experiment writes beside its figures."""

import datetime
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax


def provenance() -> dict[str, Any]:
    """Returns device, cores, date, commit and versions, as JSON-able fields."""
    return {
        "device": f"{len(jax.devices())} x {jax.devices()[0].device_kind}",
        "cores": os.cpu_count(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
        "versions": {name: importlib.metadata.version(name) for name in ("azjax", "jax", "flax", "optax")},
    }


def commit() -> str:
    """Returns the commit that is checked out, marked where files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def say(line: str) -> None:
    """Prints a line of progress."""
    print(line, file=sys.stderr, flush=True)
