"""A search's rule of selection as one value: how actions are chosen at the root, below it, and at the end."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from azjax.search.gumbel import QTransform, completed_qvalues, select_gumbel_interior, select_gumbel_root
from azjax.search.selection import is_illegal, select_puct, select_ucb1
from azjax.search.tree import ROOT, GrowingTree, node_view


class Rule(NamedTuple):
    """How a search selects."""

    root: Callable[..., jax.Array]  # as `search` takes it
    interior: Callable[..., jax.Array]
    extra: Callable[[jax.Array, jax.Array], Any]  # (rng_key, the root's logits [1, A]) -> the tree's extra_data
    final: Callable[[GrowingTree, Any], np.ndarray]  # (tree, extra) -> float32[A]: ranks the most visited actions


def puct_rule(c_init: float = 1.25, c_base: float = 19652.0, c_puct: float | None = None) -> Rule:
    """Returns AlphaZero's rule (`select_puct`); the first of the most visited actions is played."""
    select = functools.partial(select_puct, c_init=c_init, c_base=c_base, c_puct=c_puct)
    return Rule(select, select, _nothing, _first)


def ucb1_rule(exploration: float) -> Rule:
    """Returns UCB1 (`select_ucb1`), for evaluation by rollouts."""
    select = functools.partial(select_ucb1, exploration=exploration)
    return Rule(select, select, _nothing, _first)


def gumbel_rule(simulations: int, considered_actions: int = 16, qtransform: QTransform = completed_qvalues) -> Rule:
    """Returns Gumbel AlphaZero's rule, whose sequential halving is laid out for `simulations` in all."""
    root = functools.partial(
        select_gumbel_root,
        num_simulations=simulations,
        max_num_considered_actions=considered_actions,
        qtransform=qtransform,
    )
    interior = functools.partial(select_gumbel_interior, qtransform=qtransform)

    def extra(rng_key: jax.Array, logits: jax.Array) -> mctx.GumbelMuZeroExtraData:
        return mctx.GumbelMuZeroExtraData(root_gumbel=jax.random.gumbel(rng_key, logits.shape, logits.dtype))

    return Rule(root, interior, extra, functools.partial(_gumbel_scores, qtransform))


def _nothing(rng_key: jax.Array, logits: jax.Array) -> None:
    del rng_key, logits


def _first(tree: GrowingTree, extra: Any) -> np.ndarray:
    del extra
    return np.zeros(tree.prior_logits.shape[-1], np.float32)


@functools.partial(jax.jit, static_argnums=0)
def _gumbel_scores(qtransform: QTransform, tree: GrowingTree, extra: mctx.GumbelMuZeroExtraData) -> jax.Array:
    """Computes g + logits + sigma(Q) of the root's actions (Danihelka et al. 2022, equation 5)."""
    invalid = is_illegal(tree.prior_logits[ROOT]).astype(jnp.float32)
    view = jax.tree.map(lambda leaf: leaf[0], node_view(tree, jnp.zeros((1,), jnp.int32), invalid, extra))
    return extra.root_gumbel[0] + tree.prior_logits[ROOT, 0] + qtransform(view, jnp.int32(ROOT))
