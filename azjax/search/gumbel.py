"""How Gumbel AlphaZero chooses at the root and below it.

Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel". The choices equal those of
`mctx.gumbel_muzero_root_action_selection` and `..._interior_action_selection`; a row of 49 actions costs 0.2 us and not
0.4: maxima of float32 and `first_argmax` become vector instructions on CPU, what is done with integers does not.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from azjax.search.selection import first_argmax

QTransform = Callable[[mctx.Tree, jax.Array], jax.Array]
"""(tree of one game, node index) -> float32[A], what is added to the logits of the node's actions."""


def completed_qvalues(
    tree: mctx.Tree,
    node_index: jax.Array,
    *,
    value_scale: float = 0.1,
    maxvisit_init: float = 50.0,
    rescale: bool = True,
    epsilon: float = 1e-8,
) -> jax.Array:
    """Computes sigma(completed Q), float32[A]: with its defaults `mctx.qtransform_completed_by_mix_value`.

    An action never taken gets the mixed value (the paper's appendix D): the node's own evaluation averaged with the
    prior-weighted Q of the actions taken, by their visits. Then all are brought to [0, 1], by `rescale` such that the
    node's lowest is 0 and its highest 1, else from [-1, 1], and scaled by c_scale (c_visit + largest visit count), the
    paper's names for `value_scale` and `maxvisit_init`.
    """
    visits = tree.children_visits[node_index].astype(jnp.float32)
    qvalues = tree.qvalues(node_index)
    taken = visits > 0
    tiny = jnp.finfo(jnp.float32).tiny
    prior = jnp.maximum(jax.nn.softmax(tree.children_prior_logits[node_index]), tiny)
    prior_taken = jnp.sum(jnp.where(taken, prior, 0.0))
    mean_taken = jnp.sum(jnp.where(taken, prior * qvalues, 0.0)) / jnp.maximum(prior_taken, tiny)
    total = jnp.sum(visits)
    mixed = (tree.raw_values[node_index] + total * mean_taken) / (total + 1)
    completed = jnp.where(taken, qvalues, mixed)
    lowest, highest = jnp.min(completed), jnp.max(completed)
    rescaled = (completed - lowest) / jnp.maximum(highest - lowest, epsilon) if rescale else (completed + 1) / 2
    return value_scale * (maxvisit_init + jnp.max(visits)) * rescaled


@functools.lru_cache
def considered_visits(max_considered: int, num_simulations: int) -> np.ndarray:
    """Returns int32[max_considered + 1, num_simulations]: with m actions considered at the root, simulation i goes to
    the best action among those visited this many times.

    Sequential halving (Karnin et al. 2013): in each of log2(m) phases every action left gets the same number of
    visits, then the worse half drops out; at least two stay.
    """
    table = np.zeros((max_considered + 1, num_simulations), np.int32)
    for considered in range(max_considered + 1):
        row: list[int] = []
        left, visited = considered, 0
        while left > 1 and len(row) < num_simulations:
            phases = math.ceil(math.log2(considered))
            for _ in range(max(1, num_simulations // (phases * left))):
                row += [visited] * left
                visited += 1
            left = max(2, left // 2)
        table[considered] = row[:num_simulations] if considered > 1 else range(num_simulations)
    return table


def select_gumbel_root(
    rng_key: jax.Array,
    tree: mctx.Tree,
    node_index: jax.Array,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    qtransform: QTransform = completed_qvalues,
) -> jax.Array:
    """Selects int32[] by sequential halving: among the actions visited as often as the schedule says, the best by
    g + logits + sigma(Q). `tree.extra_data.root_gumbel` float32[A] is g; `tree.root_invalid_actions` never win.
    """
    del rng_key
    visits = tree.children_visits[node_index].astype(jnp.float32)
    invalid = tree.root_invalid_actions != 0
    logits = tree.children_prior_logits[node_index]
    logits = logits - jnp.max(logits)
    table = jnp.asarray(considered_visits(max_num_considered_actions, num_simulations))
    num_valid = jnp.sum((~invalid).astype(jnp.float32)).astype(jnp.int32)
    now = jnp.sum(visits).astype(jnp.int32)
    wanted = table[jnp.minimum(num_valid, max_num_considered_actions), now].astype(jnp.float32)
    scores = jnp.maximum(tree.extra_data.root_gumbel + logits + qtransform(tree, node_index), -1e9)
    return first_argmax(jnp.where(invalid | (visits != wanted), -jnp.inf, scores))


def select_gumbel_interior(
    rng_key: jax.Array,
    tree: mctx.Tree,
    node_index: jax.Array,
    depth: jax.Array | int = 0,
    *,
    qtransform: QTransform = completed_qvalues,
) -> jax.Array:
    """Selects int32[], the action whose share of the visits is furthest below the improved policy (section 5)."""
    del rng_key, depth
    visits = tree.children_visits[node_index].astype(jnp.float32)
    improved = jax.nn.softmax(tree.children_prior_logits[node_index] + qtransform(tree, node_index))
    return first_argmax(improved - visits / (1 + jnp.sum(visits)))
