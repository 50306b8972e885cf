"""Search policies: from a root to the action to play and the weights to learn, for a batch of games."""

import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import mctx

from azjax.search.chance import with_chance
from azjax.search.gumbel import QTransform, completed_qvalues, select_gumbel_interior, select_gumbel_root
from azjax.search.loop import search_with_root
from azjax.search.parallel import parallel_halving
from azjax.search.selection import (
    first_argmax,
    is_illegal,
    mask_logits,
    prior_weights,
    select_puct,
    select_puct_by_weights,
    select_ucb1,
    weights_to_logits,
)

Implementation = Literal["azjax", "mctx"]
"""Whose loop grows the tree. mctx's is there for comparison: it lacks the stop at terminal nodes and the speed."""


def _search(implementation: Implementation, *args: Any, **kwargs: Any) -> tuple[mctx.Tree, mctx.Tree]:
    """Returns a tree whose node 0 is the root (to read the root's statistics), and the whole tree."""
    if implementation == "mctx":
        tree = mctx.search(*args, **kwargs)
        return tree, tree
    return search_with_root(*args, **kwargs)


def dirichlet_noise(
    rng_key: jax.Array, prior_logits: jax.Array, legal_action_mask: jax.Array, fraction: float, alpha: float
) -> jax.Array:
    """Mixes Dirichlet noise into the prior: (1 - fraction) P + fraction Dir(alpha), over legal actions alone.

    Source: AlphaZero, Methods: Configuration. A Dirichlet sample over the legal actions is a normalised vector of gamma
    variates, one per legal action.

    Args:
      rng_key: consumed.
      prior_logits: float32[B, A].
      legal_action_mask: bool[B, A].
      fraction: share of noise in [0, 1].
      alpha: > 0.

    Returns:
      float32[B, A] logits (log probabilities); illegal entries masked.
    """
    probs = jax.nn.softmax(mask_logits(prior_logits, legal_action_mask))
    log_gamma = jax.random.loggamma(rng_key, alpha, prior_logits.shape, prior_logits.dtype)
    noise = jax.nn.softmax(mask_logits(log_gamma, legal_action_mask))
    mixed = (1 - fraction) * probs + fraction * noise
    return mask_logits(jnp.log(jnp.maximum(mixed, jnp.finfo(mixed.dtype).tiny)), legal_action_mask)


def temperature_weights(visits: jax.Array, temperature: float | jax.Array) -> jax.Array:
    """Returns float32[..., A] proportional to N^(1 / temperature); at temperature 0 all on the first most visited."""
    visits = visits.astype(jnp.float32)
    most = jnp.max(visits, axis=-1, keepdims=True)
    share = jnp.log(jnp.maximum(visits, 1e-9) / jnp.maximum(most, 1e-9))
    powered = jnp.where(visits > 0, jnp.exp(share / jnp.maximum(temperature, 1e-6)), 0)
    return powered / jnp.maximum(jnp.sum(powered, axis=-1, keepdims=True), 1e-9)


def puct_policy(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    *,
    dirichlet_fraction: float = 0.25,
    dirichlet_alpha: float = 0.3,
    c_init: float = 1.25,
    c_base: float = 19652.0,
    c_puct: float | None = None,
    temperature: float | jax.Array = 0.0,
    has_chance: bool = False,
    implementation: Implementation = "azjax",
) -> mctx.PolicyOutput:
    """Runs AlphaZero's search (see `select_puct` for the formula).

    Differs from `mctx.muzero_policy` on purpose: Q in [-1, 1] is used as it is, not rescaled among siblings; the noise
    is drawn over legal actions alone; ties go to the lowest action; a terminal node is never searched below. The
    result's tree has log probabilities for prior logits.

    Args:
      params, recurrent_fn, num_simulations, max_depth: as `search`.
      rng_key: consumed.
      root: as `search`; prior_logits float32[B, A].
      invalid_actions: bool-like[B, A], nonzero where illegal; default: the entries that recurrent_fn would have masked.
      dirichlet_fraction, dirichlet_alpha: root noise, 0 for none.
      c_init, c_base, c_puct: exploration.
      temperature: of the move played, float or float32[B]; 0 plays the most visited action.
      has_chance: nodes may be chance nodes (azjax/search/chance.py).
      implementation: whose loop grows the tree.

    Returns:
      mctx.PolicyOutput: action int32[B], always legal where something is; action_weights float32[B, A], the visit
      counts normalised (the target: no temperature in it); search_tree.
    """
    legal = ~is_illegal(root.prior_logits) if invalid_actions is None else invalid_actions == 0
    noise_key, search_key, action_key = jax.random.split(rng_key, 3)
    logits = mask_logits(root.prior_logits, legal)
    if dirichlet_fraction > 0:
        logits = dirichlet_noise(noise_key, logits, legal, dirichlet_fraction, dirichlet_alpha)
    constants = {"c_init": c_init, "c_base": c_base, "c_puct": c_puct}
    if has_chance:  # whose priors say more than how probable a move is
        select_root = functools.partial(select_puct, **constants)
        select_inside = with_chance(select_root)
    else:
        select_root = select_inside = functools.partial(select_puct_by_weights, **constants)
        logits, recurrent_fn = prior_weights(logits), _weighted(recurrent_fn)
    at_root, tree = _search(
        implementation,
        params,
        search_key,
        root=root.replace(prior_logits=logits),
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=select_root,
        interior_action_selection_fn=select_inside,
        num_simulations=num_simulations,
        max_depth=max_depth,
        invalid_actions=(~legal).astype(logits.dtype),
    )
    if not has_chance:
        tree = tree.replace(children_prior_logits=weights_to_logits(tree.children_prior_logits))
    visits = at_root.children_visits[:, mctx.Tree.ROOT_INDEX]
    weights = temperature_weights(visits, 1.0)
    action = sample_move(action_key, visits, legal, temperature)
    return mctx.PolicyOutput(action=action, action_weights=weights, search_tree=tree)


def _weighted(recurrent_fn: mctx.RecurrentFn) -> mctx.RecurrentFn:
    """Returns the model with `prior_weights` in place of its prior logits."""

    def weighted(*args: Any) -> tuple[mctx.RecurrentFnOutput, Any]:
        output, embedding = recurrent_fn(*args)
        return output.replace(prior_logits=prior_weights(output.prior_logits)), embedding

    return weighted


def sample_move(
    rng_key: jax.Array, visits: jax.Array, legal_action_mask: jax.Array, temperature: float | jax.Array
) -> jax.Array:
    """Draws int32[B] with probability N^(1 / temperature); temperature 0 takes the first most visited legal action.

    Args:
      rng_key: consumed.
      visits: [B, A], visit counts or weights.
      legal_action_mask: bool[B, A].
      temperature: float or float32[B].
    """
    batch_size = visits.shape[0]
    temperature = jnp.broadcast_to(jnp.asarray(temperature, jnp.float32), (batch_size,))
    weights = temperature_weights(visits, temperature[:, None])
    drawn = jax.random.categorical(rng_key, mask_logits(jnp.log(weights + 1e-30), legal_action_mask), axis=-1)
    best = jax.vmap(first_argmax)(jnp.where(legal_action_mask, visits.astype(jnp.float32), -jnp.inf))
    return jnp.where(temperature > 0, drawn, best).astype(jnp.int32)


def gumbel_policy(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    *,
    qtransform: QTransform = completed_qvalues,
    max_num_considered_actions: int = 16,
    gumbel_scale: float = 1.0,
    parallel: bool = False,
    has_chance: bool = False,
    implementation: Implementation = "azjax",
) -> mctx.PolicyOutput:
    """Runs Gumbel AlphaZero: sequential halving at the root, improved-policy selection below.

    Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel". Action, weights and root statistics
    equal `mctx.gumbel_muzero_policy` for the same key and callables; arguments are its, and:

    Args:
      parallel: search the actions of a phase side by side (`parallel_halving`): as strong for its simulations, and
        much faster for few games; the result's search_tree is then the root alone.
      has_chance: nodes may be chance nodes (azjax/search/chance.py).

    Returns:
      mctx.PolicyOutput: action int32[B]; action_weights float32[B, A], the improved policy softmax(logits + completed
      Q), which is the target; search_tree.
    """

    invalid = is_illegal(root.prior_logits) if invalid_actions is None else invalid_actions != 0
    shifted = root.prior_logits - jnp.max(root.prior_logits, axis=-1, keepdims=True)
    logits = mask_logits(shifted, ~invalid)
    # The same split and draw as mctx's, so that equal keys give equal actions.
    search_key, gumbel_key = jax.random.split(rng_key)
    gumbel = gumbel_scale * jax.random.gumbel(gumbel_key, logits.shape, logits.dtype)
    root = root.replace(prior_logits=logits)
    interior = functools.partial(select_gumbel_interior, qtransform=qtransform)
    interior = with_chance(interior) if has_chance else interior
    if parallel:
        at_root = tree = parallel_halving(
            params,
            search_key,
            root=root,
            recurrent_fn=recurrent_fn,
            num_simulations=num_simulations,
            max_num_considered_actions=max_num_considered_actions,
            max_depth=max_depth,
            gumbel=gumbel,
            invalid=invalid,
            qtransform=qtransform,
            interior_action_selection_fn=interior,
        )
    else:
        at_root, tree = _search(
            implementation,
            params,
            search_key,
            root=root,
            recurrent_fn=recurrent_fn,
            root_action_selection_fn=functools.partial(
                select_gumbel_root,
                num_simulations=num_simulations,
                max_num_considered_actions=max_num_considered_actions,
                qtransform=qtransform,
            ),
            interior_action_selection_fn=interior,
            num_simulations=num_simulations,
            max_depth=max_depth,
            invalid_actions=invalid.astype(logits.dtype),
            extra_data=mctx.GumbelMuZeroExtraData(root_gumbel=gumbel),
        )
    visits = at_root.children_visits[:, mctx.Tree.ROOT_INDEX]
    completed = jax.vmap(qtransform, in_axes=(0, None))(at_root, mctx.Tree.ROOT_INDEX)
    # Among the most visited actions, the best by g + logits + q plays (the paper's equation 5).
    scores = jnp.maximum(-1e9, gumbel + logits + completed)
    is_candidate = (visits == jnp.max(visits, axis=-1, keepdims=True)) & ~invalid
    action = jax.vmap(first_argmax)(jnp.where(is_candidate, scores, -jnp.inf))
    # Shifted before it is masked, as mctx does: where no legal logit is above the mask's, the illegal ones are below.
    improved = logits + completed
    improved = improved - jnp.max(improved, axis=-1, keepdims=True)
    weights = jax.nn.softmax(mask_logits(improved, ~invalid))
    return mctx.PolicyOutput(action=action, action_weights=weights, search_tree=tree)


def uct_policy(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    *,
    exploration: float,
    has_chance: bool = False,
) -> mctx.PolicyOutput:
    """Runs UCT: UCB1 at every node; the caller's recurrent_fn evaluates by rollouts.

    Args:
      params, recurrent_fn, num_simulations: as `search`.
      rng_key: consumed.
      root: as `search`; prior_logits of legal actions in [-1, 1) say in which order untried actions are taken.
      exploration: c of UCB1, on the scale of returns in [-1, 1].
      has_chance: nodes may be chance nodes (azjax/search/chance.py).

    Returns:
      mctx.PolicyOutput: the most visited action int32[B], the visit counts normalised, the tree.
    """
    select = functools.partial(select_ucb1, exploration=exploration)
    at_root, tree = search_with_root(
        params,
        rng_key,
        root=root,
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=select,
        interior_action_selection_fn=with_chance(select) if has_chance else select,
        num_simulations=num_simulations,
    )
    visits = at_root.children_visits[:, mctx.Tree.ROOT_INDEX]
    legal = ~is_illegal(root.prior_logits)
    best = jax.vmap(first_argmax)(jnp.where(legal, visits.astype(jnp.float32), -jnp.inf))
    return mctx.PolicyOutput(action=best, action_weights=temperature_weights(visits, 1.0), search_tree=tree)
