"""What benchmarks report: rows that set a measured number beside a reference from the same process."""

import os
from typing import Any

import jax
from rich import box
from rich.table import Table


def machine(devices: int) -> dict[str, Any]:
    """Returns what was measured on."""
    return {"device": f"{devices} x {jax.devices()[0].device_kind}", "cores": os.cpu_count()}


def bench_table(report: dict[str, Any]) -> Table:
    """Lays a benchmark's rows out for people."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"{report['device']}, {report['cores']} cores")
    for heading in ("case", "ours", "reference", "unit", "ratio", "reference is"):
        table.add_column(heading, justify="right" if heading in ("ours", "reference", "ratio") else "left")
    for row in report["rows"]:
        numbers = f"{row['ours']:,.5g}", f"{row['reference']:,.5g}", row["unit"], f"{row['ratio']:.3g}"
        table.add_row(row["case"], *numbers, row["reference_name"])
    return table


def comparison(
    case: str, ours: float, reference: float, reference_name: str, unit: str, lower_is_better: bool = False
) -> dict[str, Any]:
    """Returns a row; `ratio` says how many times better ours is."""
    return {
        "case": case,
        "ours": float(f"{ours:.5g}"),
        "reference": float(f"{reference:.5g}"),
        "reference_name": reference_name,
        "unit": unit,
        "ratio": round(reference / ours if lower_is_better else ours / reference, 4),
    }
