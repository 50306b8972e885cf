"""Sequential halving whose phases run in parallel: fewer, larger evaluations for one game or a few.

The paper's sequential halving (Danihelka et al. 2022, algorithm 2) compares the actions at the root only between
phases. So within a phase the subtrees under different root actions have nothing to do with one another, and here each
is a game of its own in one batch:

    phase 1   m actions     k1 simulations each, m evaluations at a time
    phase 2   m / 2 best    k2 more                                       ... until two are left

With m = 16 and 64 simulations that is 1 + 2 + 4 + 8 = 15 evaluations one after the other, and not 64. mctx's search
(and `gumbel_policy` without `parallel`) ranks anew after every simulation, which can change who is left in a phase.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from azjax.search.gumbel import QTransform
from azjax.search.loop import grow
from azjax.search.selection import first_argmax
from azjax.search.tree import ROOT, GrowingTree, node_view, plant


def halving_phases(max_considered: int, num_simulations: int) -> list[tuple[int, int]]:
    """Returns [(actions, simulations for each)]: equal shares of the budget for each of log2(m) phases.

    The last phase, of two actions, is repeated while the budget lasts; a rest that does not suffice for one more
    simulation of each action is not spent.
    """
    if max_considered <= 1:
        return [(1, num_simulations)]
    phases, left, actions = [], num_simulations, min(max_considered, num_simulations)
    number = math.ceil(math.log2(actions)) if actions > 1 else 1
    while left >= actions:
        each = min(max(1, num_simulations // (number * actions)), left // actions)
        phases.append((actions, each))
        left -= actions * each
        if actions == 1:
            break
        actions = max(2, actions // 2)
    return phases


def parallel_halving(
    params: Any,
    rng_key: jax.Array,
    *,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    max_num_considered_actions: int,
    max_depth: int | None,
    gumbel: jax.Array,
    invalid: jax.Array,
    qtransform: QTransform,
    interior_action_selection_fn: mctx.InteriorActionSelectionFn,
) -> mctx.Tree:
    """Searches by sequential halving, a phase's actions side by side.

    Where fewer actions are legal than are considered, the places of the others are searched for nothing.

    Args:
      params, rng_key, recurrent_fn, num_simulations, max_num_considered_actions, max_depth: as `gumbel_policy`.
      root: prior_logits float32[B, A], illegal entries masked.
      gumbel: float32[B, A], g.
      invalid: bool[B, A], illegal at the root.
      qtransform: as `gumbel_policy`.
      interior_action_selection_fn: as `search`.

    Returns:
      mctx.Tree of the root alone, [B, 1, ...]: its actions' visits and values, and its own.
    """
    batch_size, num_actions = root.prior_logits.shape
    phases = halving_phases(min(max_num_considered_actions, num_actions), num_simulations)
    actions = phases[0][0]
    rows = jnp.arange(batch_size, dtype=jnp.int32)[:, None]

    def ranked(known: GrowingTree, allowed: jax.Array, number: int) -> jax.Array:
        """Returns int32[B, number], the best of the `allowed` actions by g + logits + sigma(Q)."""
        view = _view(known, invalid)
        completed = jax.vmap(qtransform, in_axes=(0, None))(view, jnp.int32(ROOT))
        scores = jnp.maximum(gumbel + root.prior_logits + completed, -1e9)
        return jax.lax.top_k(jnp.where(allowed & ~invalid, scores, -jnp.inf), number)[1].astype(jnp.int32)

    known = plant(root.replace(embedding=None), 1)
    chosen = ranked(known, jnp.ones_like(invalid), actions)
    deepest = 1 + sum(each for _, each in phases)
    repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, actions, axis=0), root)
    tree, grown = plant(repeated, deepest), 0
    for number, (width, each) in enumerate(phases):
        if width < chosen.shape[1]:
            allowed = jnp.zeros_like(invalid).at[rows, chosen].set(True)
            best = ranked(known, allowed, width)
            place = jax.vmap(lambda old, new: jax.vmap(lambda a: first_argmax((old == a).astype(jnp.float32)))(new))(
                chosen, best
            )
            lanes = (rows * chosen.shape[1] + place).reshape(-1)
            tree, chosen = jax.tree.map(lambda leaf, lanes=lanes: leaf[:, lanes], tree), best
        tree = grow(
            tree,
            jax.random.fold_in(rng_key, number),
            params=params,
            recurrent_fn=recurrent_fn,
            root_action_selection_fn=lambda rng_key, tree, node: tree.extra_data,
            interior_action_selection_fn=interior_action_selection_fn,
            first_node=1 + grown,
            num_simulations=each,
            max_depth=max_depth,
            invalid_actions=jnp.zeros((tree.prior_logits.shape[1], num_actions), root.prior_logits.dtype),
            extra_data=chosen.reshape(-1),
        )
        grown += each
        known = _merged(known, tree, chosen, invalid)
    return _view(known, invalid)


def _merged(known: GrowingTree, tree: GrowingTree, chosen: jax.Array, invalid: jax.Array) -> GrowingTree:
    """Writes what the trees of one action each found into the rows of the roots they share."""
    batch_size, width = chosen.shape
    rows = jnp.arange(batch_size, dtype=jnp.int32)[:, None]

    def edge(array: jax.Array) -> jax.Array:
        by_lane = jnp.take_along_axis(array[ROOT], chosen.reshape(-1, 1), axis=1).reshape(batch_size, width)
        return jnp.where(jnp.take_along_axis(invalid, chosen, axis=1), 0, by_lane)

    visits = known.visits.at[ROOT, rows, chosen].set(edge(tree.visits))
    qvalues = known.qvalues.at[ROOT, rows, chosen].set(edge(tree.qvalues))
    counted = visits[ROOT].astype(jnp.float32)
    total = jnp.sum(counted, axis=1)
    value = (known.raw_values[ROOT] + jnp.sum(counted * qvalues[ROOT], axis=1)) / (1 + total)
    return known._replace(
        visits=visits,
        qvalues=qvalues,
        node_visits=known.node_visits.at[ROOT].set(1 + total.astype(jnp.int32)),
        node_values=known.node_values.at[ROOT].set(value),
    )


def _view(known: GrowingTree, invalid: jax.Array) -> mctx.Tree:
    lanes = jnp.arange(known.node_visits.shape[1], dtype=jnp.int32)
    return node_view(known, lanes, invalid.astype(jnp.float32), None)
