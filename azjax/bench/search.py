"""Our search beside mctx's, on the same cheap callables: what the tree costs, and not the network."""

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from azjax.bench.report import comparison, machine
from azjax.search import gumbel_policy, puct_policy
from azjax.search.model import mix_bits
from azjax.search.tree import NO_NODE

ROUNDS = 5


class Case(NamedTuple):
    """A size at which both are measured."""

    algorithm: str  # puct or gumbel
    actions: int
    simulations: int
    games: int


CASES = (Case("puct", 49, 450, 64), Case("gumbel", 49, 128, 512))
"""Those of which numbers are published: docs/architecture.md."""
LONG, SHORT = Case("puct", 49, 800, 64), Case("puct", 49, 50, 64)


def bench_search(say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Measures microseconds a simulation and game: PUCT against mctx.muzero_policy, Gumbel against
    mctx.gumbel_muzero_policy, and a long search against a short one.

    All actions are legal and no node is terminal, so that both sides add one node a simulation. Both run in turns on
    the first device; the figures are medians of ROUNDS turns. Every output is used.

    Args:
      say: is told what is going on.

    Returns:
      {"device", "cores", "rows": [...], "depth": {case: {"mean", "max"}}}; `ours` and `reference` in us.
    """
    rows, depths = [], {}
    for case in CASES:
        name = f"search {case.algorithm}, {case.actions} actions, {case.simulations} simulations, {case.games} games"
        say(f"{name}: compiling")
        theirs = mctx.muzero_policy if case.algorithm == "puct" else mctx.gumbel_muzero_policy
        ours, reference = _program(_ours(case), case), _program(theirs, case)
        depths[name] = _depth(ours(jax.random.key(0)))
        our_time, their_time = _in_turns([ours, reference], case)
        say(f"{name}: {our_time:.2f} us, mctx {their_time:.2f} us")
        rows.append(comparison(name, our_time, their_time, f"mctx.{theirs.__name__}", "us", lower_is_better=True))
    say("800 simulations against 50: compiling")
    times = [_in_turns([_program(_ours(case), case)], case)[0] for case in (LONG, SHORT)]
    name = f"search puct, {LONG.simulations} simulations against {SHORT.simulations}, {LONG.games} games"
    rows.append(comparison(name, times[0], times[1], f"{SHORT.simulations} simulations", "us", lower_is_better=True))
    return {**machine(1), "rows": rows, "depth": depths}


def _ours(case: Case) -> Callable:
    return functools.partial(puct_policy, dirichlet_fraction=0.0) if case.algorithm == "puct" else gumbel_policy


def _evaluate(place: jax.Array, actions: int) -> tuple[jax.Array, jax.Array]:
    """Returns logits [B, A] in [-2, 2] and values [B] in [-1, 1] of positions that are numbers uint32[B]."""
    mixed = mix_bits(place[:, None] + jnp.arange(1, actions + 1, dtype=jnp.uint32)[None] * jnp.uint32(0x9E3779B9))
    logits = (mixed >> 8).astype(jnp.float32) * (4 / 2**24) - 2
    value = (mix_bits(place) >> 8).astype(jnp.float32) * (2 / 2**24) - 1
    return logits, value


def _program(policy: Callable, case: Case) -> Callable[[jax.Array], Any]:
    """Compiles a search of `case.games` new positions: key -> (trace of all results, parents int32[B, N])."""

    def recurrent(params: Any, rng_key: jax.Array, action: jax.Array, place: jax.Array) -> tuple[Any, jax.Array]:
        place = mix_bits(place + action.astype(jnp.uint32) + jnp.uint32(1))
        logits, value = _evaluate(place, case.actions)
        output = mctx.RecurrentFnOutput(
            reward=jnp.zeros_like(value), discount=-jnp.ones_like(value), prior_logits=logits, value=value
        )
        return output, place

    def search(rng_key: jax.Array) -> tuple[jax.Array, jax.Array]:
        place = jax.random.bits(rng_key, (case.games,), jnp.uint32)
        logits, value = _evaluate(place, case.actions)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=place)
        output = policy((), rng_key, root, recurrent, case.simulations)
        trace = sum(jnp.sum(leaf.astype(jnp.float32)) for leaf in jax.tree.leaves(output))
        return jnp.asarray(trace), output.search_tree.parents

    return jax.jit(search)


def _in_turns(programs: list[Callable], case: Case) -> list[float]:
    """Returns the median time of each program, in us a simulation and game."""
    seconds: list[list[float]] = [[] for _ in programs]
    for program in programs:
        jax.block_until_ready(program(jax.random.key(0)))
    for turn in range(ROUNDS):
        for times, program in zip(seconds, programs, strict=True):
            started = time.perf_counter()
            jax.block_until_ready(program(jax.random.key(turn)))
            times.append(time.perf_counter() - started)
    return [statistics.median(times) / (case.simulations * case.games) * 1e6 for times in seconds]


def _depth(result: tuple[jax.Array, jax.Array]) -> dict[str, float]:
    """Returns the mean and the greatest depth of the nodes of a search."""
    parents = np.asarray(result[1])
    depth = np.zeros_like(parents)
    games = np.arange(len(parents))
    for node in range(1, parents.shape[1]):  # a parent has a lower number
        depth[:, node] = np.where(parents[:, node] == NO_NODE, 0, depth[games, parents[:, node]] + 1)
    return {"mean": round(float(depth[:, 1:].mean()), 2), "max": int(depth.max())}
