"""What benchmarks report: rows that set a measured number beside a reference from the same process."""

import os
from typing import Any

import jax
from rich import box
from rich.table import Table

from azjax.tables import Name, narrowest, number

_COLUMNS = {"case": "case", "unit": "unit", "reference is": "reference_name"}


def machine(devices: int) -> dict[str, Any]:
    """Returns what was measured on."""
    return {"device": f"{devices} x {jax.devices()[0].device_kind}", "cores": os.cpu_count()}


def bench_table(report: dict[str, Any]) -> Table:
    """Lays a benchmark's rows out for people."""
    title = f"{report['device']}, {report['cores']} cores"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title=title)
    for heading in ("case", "ours", "reference", "unit", "ratio", "reference is"):
        if heading in ("ours", "reference", "ratio"):
            table.add_column(heading, justify="right", no_wrap=True)
        else:
            words = [row[_COLUMNS[heading]] for row in report["rows"]]
            table.add_column(heading, overflow="fold", min_width=narrowest(words, 4, 16))
    for row in report["rows"]:
        reference, ratio = ("", "") if row["ratio"] is None else (number(row["reference"]), f"{row['ratio']:.3g}")
        table.add_row(
            Name(row["case"]), number(row["ours"]), reference, Name(row["unit"]), ratio, Name(row["reference_name"])
        )
    return table


def programs_table(programs: dict[str, dict[str, float]]) -> Table:
    """Lays out what compiled programs consist of, one a line."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="step, legal mask and observation, compiled")
    columns = list(next(iter(programs.values())))
    for heading in ("game", *columns):
        table.add_column(heading.replace("_", " "), justify="left" if heading == "game" else "right")
    for name, facts in programs.items():
        table.add_row(name, *(f"{facts[column]:g}" for column in columns))
    return table


def comparison(
    case: str, ours: float, reference: float | None, reference_name: str, unit: str, lower_is_better: bool = False
) -> dict[str, Any]:
    """Returns a row; `ratio` says how many times better ours is, None without a reference."""
    ratio = None if reference is None else reference / ours if lower_is_better else ours / reference
    return {
        "case": case,
        "ours": float(f"{ours:.5g}"),
        "reference": None if reference is None else float(f"{reference:.5g}"),
        "reference_name": reference_name,
        "unit": unit,
        "ratio": None if ratio is None else round(ratio, 4),
    }
