"""What every experiment writes, and where its figures come from."""

import csv
import datetime
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
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


def where(parts: Iterable[dict[str, Any]]) -> str:
    """Returns device, cores, date and commit of what was found, each once."""
    said = (f"{part['device']}, {part['cores']} cores, {part['date']}, commit {part['commit']}" for part in parts)
    return "; ".join(dict.fromkeys(said))


def merged(out: Path, field: str, found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns the parts that a folder's results.json has in a field, with those found now among them.

    So the parts of an experiment can be done at different times. Each part has its own provenance: the one that it
    says itself; what was published with it, where the part is as it was; else that of now.
    """
    path = out / "results.json"
    parts = json.loads(path.read_text(encoding="utf-8")).get(field, {}) if path.is_file() else {}
    for name, part in json.loads(json.dumps(found)).items():
        if name not in parts or any(parts[name].get(key) != value for key, value in part.items()):
            parts[name] = provenance() | part
    return parts


def write_results(out: Path, report: dict[str, Any], rows: list[dict[str, Any]], text: str) -> None:
    """Writes results.json (the report), results.csv (its rows) and results.md (its text) into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    with (out / "results.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (out / "results.md").write_text(text, encoding="utf-8")


def publish(
    out: Path, report: dict[str, Any], rows: list[dict[str, Any]], text: str, draw: Callable[[Path], None]
) -> None:
    """Writes results as `write_results` does, draws results.png beside them, and shows the text."""
    write_results(out, report, rows, text)
    draw(out / "results.png")
    print(text)
    say(f"wrote {out}")


def markdown(lines: Iterable[Sequence[str]]) -> str:
    """Returns a table of lines of cells; the second line is the rule under the headings."""
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


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
