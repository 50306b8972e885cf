"""Our search beside mctx's, on the same cheap callables: what the tree costs, and not the network."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from azjax.bench.parallel import SETTINGS, bench_parallel
from azjax.bench.report import comparison, machine
from azjax.bench.turns import in_turns
from azjax.search import gumbel_policy, is_illegal, puct_policy, slotted
from azjax.search.model import mix_bits
from azjax.search.slots import Place
from azjax.search.tree import NO_NODE, plant
from envs.core import num_bytes

ROUNDS = 5


class Case(NamedTuple):
    """A size at which both are measured."""

    algorithm: str  # puct or gumbel
    actions: int
    simulations: int
    games: int
    legal: int | None = None  # legal actions of a position; None: all
    slots: int | None = None  # of our tree; None: actions are searched as they are

    def __str__(self) -> str:
        words = f"search {self.algorithm} A={self.actions} N={self.simulations} B={self.games}"
        return words if self.legal is None else f"{words}, {self.legal} legal, {self.slots} slots"


CASES = (
    Case("puct", 49, 450, 64),
    Case("gumbel", 49, 128, 512),
    Case("puct", 4672, 32, 16, legal=30, slots=218),
)
"""Those of which numbers are published: docs/architecture.md. The last has chess's actions."""
LONG, SHORT = Case("puct", 49, 800, 64), Case("puct", 49, 50, 64)


def bench_search(say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Measures microseconds a simulation and game: PUCT against mctx.muzero_policy, Gumbel against
    mctx.gumbel_muzero_policy, a long search against a short one, and one game's search with `parallel` and without.

    No node is terminal, so that both sides add one node a simulation. Both run in turns on the first device; the
    figures are medians of ROUNDS turns. Every output is used.

    Args:
      say: is told what is going on.

    Returns:
      {"device", "cores", "rows": [...], "depth": {case: {"mean", "max"}}, "bytes": {case: {"node", "lane", "tree",
      "compiled"}}}; `ours` and `reference` in us, `tree` by its shapes, `compiled` what XLA sets aside for the search.
    """
    rows, depths, sizes = [], {}, {}
    for case in CASES:
        name = str(case)
        say(f"{name}: compiling")
        theirs = mctx.muzero_policy if case.algorithm == "puct" else mctx.gumbel_muzero_policy
        ours, reference = _program(_ours(case), case), _program(theirs, case)
        depths[name] = _depth(ours(jax.random.key(0)))
        sizes[name] = _bytes(case, ours)
        our_time, their_time = _times([ours, reference], case)
        say(f"{name}: {our_time:.2f} us, mctx {their_time:.2f} us")
        rows.append(comparison(name, our_time, their_time, f"mctx.{theirs.__name__}", "us", lower_is_better=True))
    say("800 simulations against 50: compiling")
    times = [_times([_program(_ours(case), case)], case)[0] for case in (LONG, SHORT)]
    name = f"search puct, N={LONG.simulations} against N={SHORT.simulations}, A={LONG.actions} B={LONG.games}"
    rows.append(comparison(name, times[0], times[1], f"{SHORT.simulations} simulations", "us", lower_is_better=True))
    rows += [bench_parallel(setting, say) for setting in SETTINGS]
    return {**machine(1), "rows": rows, "depth": depths, "bytes": sizes}


def _ours(case: Case) -> Callable:
    policy = functools.partial(puct_policy, dirichlet_fraction=0.0) if case.algorithm == "puct" else gumbel_policy
    if case.slots is None:
        return policy

    def over_slots(params: Any, rng_key: jax.Array, root: Any, recurrent: Callable, simulations: int, **_: Any) -> Any:
        narrow = slotted(root, recurrent, lambda place: _legal_actions(place, case))
        return policy(params, rng_key, narrow.root, narrow.recurrent_fn, simulations)

    return over_slots


def _hashes(place: jax.Array, number: int) -> jax.Array:
    """Returns uint32[B, number] of positions that are numbers uint32[B]."""
    return mix_bits(place[:, None] + jnp.arange(1, number + 1, dtype=jnp.uint32)[None] * jnp.uint32(0x9E3779B9))


def _legal_actions(place: jax.Array, case: Case) -> jax.Array:
    """Returns int16[B, slots], one action of each of `legal` equal parts of all, in ascending order, then -1."""
    assert case.legal is not None
    part = case.actions // case.legal
    within = (_hashes(place, case.legal) % part).astype(jnp.int32)
    legal = within + part * jnp.arange(case.legal, dtype=jnp.int32)[None]
    return jnp.pad(legal.astype(jnp.int16), ((0, 0), (0, (case.slots or case.legal) - case.legal)), constant_values=-1)


def _evaluate(place: jax.Array, case: Case) -> tuple[jax.Array, jax.Array]:
    """Returns logits [B, A] in [-2, 2], masked where illegal, and values [B] in [-1, 1]."""
    value = (mix_bits(place) >> 8).astype(jnp.float32) * (2 / 2**24) - 1
    logits = (_hashes(place, case.legal or case.actions) >> 8).astype(jnp.float32) * (4 / 2**24) - 2
    if case.legal is not None:
        legal = _legal_actions(place, case)[:, : case.legal].astype(jnp.int32)
        masked = jnp.full((place.shape[0], case.actions), jnp.finfo(jnp.float32).min)
        logits = masked.at[jnp.arange(place.shape[0])[:, None], legal].set(logits, unique_indices=True)
    return logits, value


def _bytes(case: Case, program: Any) -> dict[str, int]:
    """Returns what a node and a game's tree take by their shapes, all trees, and XLA's scratch memory of the search."""

    def planted() -> Any:
        width = case.slots or case.actions
        place = jnp.zeros((case.games,), jnp.uint32)
        embedding = place if case.slots is None else Place(place, jnp.zeros((case.games, width), jnp.int16))
        logits = jnp.zeros((case.games, width))
        root = mctx.RootFnOutput(prior_logits=logits, value=jnp.zeros((case.games,)), embedding=embedding)
        return plant(root, case.simulations + 1)

    tree = num_bytes(jax.eval_shape(planted))
    lane = tree // case.games
    compiled = program.lower(jax.random.key(0)).compile().memory_analysis().temp_size_in_bytes
    return {"node": lane // (case.simulations + 1), "lane": lane, "tree": tree, "compiled": int(compiled)}


def _program(policy: Callable, case: Case) -> Any:
    """Compiles a search of `case.games` new positions: key -> (trace of all results, parents int32[B, N])."""

    def recurrent(params: Any, rng_key: jax.Array, action: jax.Array, place: jax.Array) -> tuple[Any, jax.Array]:
        place = mix_bits(place + action.astype(jnp.uint32) + jnp.uint32(1))
        logits, value = _evaluate(place, case)
        output = mctx.RecurrentFnOutput(
            reward=jnp.zeros_like(value), discount=-jnp.ones_like(value), prior_logits=logits, value=value
        )
        return output, place

    def search(rng_key: jax.Array) -> tuple[jax.Array, jax.Array]:
        place = jax.random.bits(rng_key, (case.games,), jnp.uint32)
        logits, value = _evaluate(place, case)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=place)
        illegal = is_illegal(logits).astype(jnp.float32)
        output = policy((), rng_key, root, recurrent, case.simulations, invalid_actions=illegal)
        # Masked logits are left out: their sum is beyond float32.
        used = (leaf.astype(jnp.float32) for leaf in jax.tree.leaves(output))
        trace = sum(jnp.sum(jnp.where(leaf > -1e30, leaf, 0)) for leaf in used)
        return jnp.asarray(trace), output.search_tree.parents

    return jax.jit(search)


def _times(programs: list[Callable], case: Case) -> list[float]:
    """Returns the median time of each program, in us a simulation and game."""

    def turns(program: Callable) -> Callable[[int], Callable[[], Any]]:
        return lambda turn: functools.partial(program, jax.random.key(turn))

    times = in_turns([turns(program) for program in programs], ROUNDS)
    return [seconds / (case.simulations * case.games) * 1e6 for seconds in times]


def _depth(result: tuple[jax.Array, jax.Array]) -> dict[str, float]:
    """Returns the mean and the greatest depth of the nodes of a search."""
    parents = np.asarray(result[1])
    depth = np.zeros_like(parents)
    games = np.arange(len(parents))
    for node in range(1, parents.shape[1]):  # a parent has a lower number
        depth[:, node] = np.where(parents[:, node] == NO_NODE, 0, depth[games, parents[:, node]] + 1)
    return {"mean": round(float(depth[:, 1:].mean()), 2), "max": int(depth.max())}
