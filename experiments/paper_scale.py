"""What an experiment would take at the size of its source: memory by azjax's own plan, device-hours from a rate.

The rate is evaluations of the network a second on one device, measured here (`--measure`) or given (`--rate`). Search
and rules come on top, and an update counts as three evaluations a sample, forward and backward: a lower bound.
"""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import envs
from azjax import network
from azjax.accelerators import Accelerators, parse_devices
from azjax.config import RunConfig
from azjax.plan import make_plan, text
from azjax.report import save_json
from azjax.train import resolve
from experiments.provenance import markdown, provenance, say

UPDATE = 3
"""Evaluations that a sample of an update costs."""
REPEATS = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaperScale:
    """The plan of the paper-scale configuration, in place of an experiment."""

    plan: bool = False
    """Print the plan and run nothing else."""
    on: str = "80GB"
    """Devices to plan for: v5e-8, 2x80GB."""
    rate: float | None = None
    """Evaluations of its network a second on one such device; without it, that of --measure on this machine."""
    measure: bool = False
    """Measure the rate here first, on all devices of this machine together."""


def evaluations(plan: dict[str, Any]) -> int:
    """Returns the evaluations of the network that a run takes, by its plan as JSON."""
    step = plan["step"]
    return plan["steps"] * (step["positions"] + step["simulations"] + UPDATE * step["samples"])


def device_hours(plan: dict[str, Any], rate: float) -> float:
    """Returns hours of one device that makes `rate` evaluations a second."""
    return evaluations(plan) / rate / 3600


def measured_rate(config: RunConfig, batch: int = 16) -> float:
    """Returns evaluations a second of a fresh network on this machine: the best of some batches on one device."""
    game = envs.make(config.game)
    variables = network.init(config.network, game, jax.random.key(0))
    observations = jnp.zeros((batch, *game.observation_shape))

    def evaluate(variables: Any, observations: jax.Array) -> Any:
        return network.apply(config.network, game, variables, observations, False)[0]

    compiled, taken = jax.jit(evaluate), []
    for _ in range(REPEATS + 1):  # the first one compiles
        started = time.perf_counter()
        jax.block_until_ready(compiled(variables, observations))
        taken.append(time.perf_counter() - started)
    return batch / min(taken[1:])


def plan_row(config: RunConfig, on: Accelerators | None, rate: float | None) -> dict[str, Any]:
    """Returns the plan of a configuration, with its device-hours where a rate is known."""
    plan = make_plan(config, envs.make(config.game), on=on).to_json()
    hours = None if rate is None else float(f"{device_hours(plan, rate):.3g}")
    return plan | {"evaluations": evaluations(plan), "rate": rate, "device_hours": hours}


def plan_table(rows: Sequence[dict[str, Any]]) -> str:
    """Returns plans as a table in Markdown."""
    headings = ["game", "memory a device", "device", "steps", "evaluations", "evaluations/s", "device-hours"]
    lines = [headings, ["---"] * len(headings)]
    for row in rows:
        fits = "" if row["fits"] else " (does not fit)"
        rate, hours = (f"{row[name]:,.4g}" if row[name] is not None else "" for name in ("rate", "device_hours"))
        memory, device = text(row["bytes"]["total"]), f"{row['devices']} x {row['device_kind']}"
        lines.append(
            [row["game"], memory + fits, device, f"{row['steps']:,}", f"{row['evaluations']:.2g}", rate, hours]
        )
    return markdown(lines)


def plan_report(config: RunConfig) -> dict[str, Any]:
    """Returns a run's plan on one device of this machine's kind, with the device-hours that its work takes here."""
    resolved = resolve(config, envs.make(config.game))
    return plan_row(resolved, None, float(f"{measured_rate(config):.4g}"))


def plan_text(plan: dict[str, Any]) -> str:
    """Returns a plan of `plan_report` as a sentence."""
    fits = "fits" if plan["fits"] else "does not fit"
    return (
        f"Plan of {plan['game']}, preset {plan['preset']}: {text(plan['bytes']['total'])} on one device, which"
        f" {fits} into this one's {text(plan['device_bytes'])}; {plan['evaluations']:,} evaluations of the network,"
        f" those of learning included, which take one {plan['device_kind']} device at least"
        f" {plan['device_hours']:,.3g} hours at the {plan['rate']:,.3g} a second measured here."
    )


def show_plan(options: PaperScale, configs: Sequence[RunConfig], out: Path) -> int:
    """Prints the plans of paper-scale configurations; what was measured is kept in OUT/plan.json."""
    on, rows = parse_devices(options.on), []
    for config in configs:
        rate = options.rate
        if rate is None and options.measure:
            say(f"measuring the network of {config.game}")
            rate = float(f"{measured_rate(config):.4g}")
        rows.append(plan_row(config, on, rate))
    if options.measure and options.rate is None:
        out.mkdir(parents=True, exist_ok=True)
        save_json(
            out / "plan.json",
            provenance() | {"rate_of": "this machine, one device, the network alone"} | {"plans": rows},
        )
        where = provenance()
        told = f"\nMemory on {options.on}. Evaluations a second: {where['device']}, one of them, {where['date']}.\n"
        (out / "plan.md").write_text(plan_table(rows) + told, encoding="utf-8")
    print(plan_table(rows))
    return 0
