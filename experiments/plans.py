"""What a run too large for the machine would need: memory from shapes, device-hours from a rate measured here."""

import time
from typing import Any

import jax
import numpy as np

import envs
from azjax import network
from azjax.config import RunConfig
from azjax.expansion import random_positions, rows, size
from azjax.plan import make_plan, text
from azjax.train import resolve
from envs.core import Game

BATCH = 64
"""Positions of the evaluation whose time is taken."""
LEARNING_COST = 3
"""Evaluations that a sample costs in an update: forward, and backward with respect to inputs and to parameters."""


def evaluations_per_second(config: RunConfig, game: Game, seconds: float = 2.0) -> float:
    """Returns the rate at which one device evaluates positions with the network, a batch of BATCH at a time.

    Args:
      config: the network's.
      game: without chance.
      seconds: how long to measure.
    """
    variables = jax.jit(lambda key: network.init(config.network, game, key))(jax.random.key(0))
    positions = random_positions(game, 4, 0, most_plies=64).states
    states = jax.device_put(rows(positions, np.arange(BATCH) % size(positions)))
    key = jax.random.key(0)
    program = jax.jit(lambda variables, states: network.evaluate(config.network, game, variables, key, states))
    jax.block_until_ready(program(variables, states))
    done, started = 0, time.perf_counter()
    while (taken := time.perf_counter() - started) < seconds or not done:
        jax.block_until_ready(program(variables, states))
        done += BATCH
    return done / taken


def plan_report(config: RunConfig) -> dict[str, Any]:
    """Returns a run's memory on one device of this machine's kind, its work, and the device-hours that this work takes.

    Device-hours are those of a device as fast as this one, at evaluating the network alone: no run takes less.
    """
    game = envs.make(config.game)
    plan = make_plan(resolve(config, game), game)
    evaluations = config.steps * (plan.work.simulations + plan.work.positions)
    samples = config.steps * plan.work.samples
    rate = evaluations_per_second(config, game)
    return {
        **plan.to_json(),
        "evaluations": evaluations,
        "samples": samples,
        "evaluations_per_second": round(rate, 1),
        "device_hours": round((evaluations + LEARNING_COST * samples) / rate / 3600, 1),
    }


def plan_text(plan: dict[str, Any]) -> str:
    """Returns a plan as a sentence."""
    fits = "fits" if plan["fits"] else "does not fit"
    return (
        f"Plan of {plan['game']}, preset {plan['preset']}: {text(plan['bytes']['total'])} on one device, which"
        f" {fits} into this one's {text(plan['device_bytes'])}; {plan['evaluations']:,} evaluations of the network in"
        f" self-play and {plan['samples']:,} samples in learning, which take one {plan['device_kind']} device at least"
        f" {plan['device_hours']:,.3g} hours at the {plan['evaluations_per_second']:,.3g} evaluations a second measured"
        " here."
    )
