"""Legal slots: a tree over the K legal actions of each node in place of all A.

Chess has 4,672 actions and at most 218 legal ones. A node keeps a table slot -> action, and the search takes the slots
for its actions: rows are K wide, and neither the loop nor the selection knows.

    node's table   [  12  87  88 4071  -1  -1 ]      slot 2 is action 88; -1: no more legal actions
    prior logits   [ 0.3 1.2 0.1  0.9  --  -- ]      masked where the table ends
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.search.chance import legal_events
from azjax.search.model import Model
from azjax.search.selection import mask_logits
from envs.chance import num_outcomes
from envs.core import Game, State

MOST_ACTIONS = 128
"""Games with more actions are searched over legal slots."""


class Place(NamedTuple):
    """The embedding of a node whose actions are slots."""

    inner: Any  # the embedding of the callables that know actions
    actions: jax.Array  # int16[B, W], action of each slot, -1 where there is none


class Slotted(NamedTuple):
    """Callables over slots."""

    root: mctx.RootFnOutput  # prior_logits float32[B, W]
    recurrent_fn: mctx.RecurrentFn  # its action is a slot
    actions: jax.Array | None  # int16[B, W], the root's table; None: actions are searched as they are
    prior_cut: jax.Array | None  # float32[B], share of the root's prior on legal actions that got no slot


def num_slots(game: Game, wanted: int | None = None) -> int | None:
    """Returns how many legal slots a node has; None where actions are searched as they are.

    Args:
      game: with more than MOST_ACTIONS actions, or with chance, it gets slots in any case, as many as it needs.
      wanted: at most so many; but no fewer than a roll of the dice has outcomes.
    """
    most = max(game.max_legal_actions, num_outcomes(game))
    if wanted is None:
        return most if game.num_actions > MOST_ACTIONS or game.has_chance else None
    return min(max(wanted, num_outcomes(game)), most)


def begin_search(
    game: Game, model: Model, params: Any, rng_key: jax.Array, states: State, wanted_slots: int | None = None
) -> Slotted:
    """Evaluates the roots; returns them and the recurrent function, over slots where `num_slots` says so."""
    root, width = model.root(params, rng_key, states), num_slots(game, wanted_slots)
    if width is None:
        return Slotted(root, model.recurrent, None, None)
    return slotted(root, model.recurrent, _legal(game), width)


def begin_recurrent(game: Game, model: Model, wanted_slots: int | None = None) -> mctx.RecurrentFn:
    """Returns the recurrent function of `begin_search` alone."""
    width = num_slots(game, wanted_slots)
    return model.recurrent if width is None else slotted_recurrent(model.recurrent, _legal(game), width)


def _legal(game: Game) -> Callable[[State], jax.Array]:
    return jax.vmap(legal_events(game) if game.has_chance else game.legal_actions)


def slotted(
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    legal_actions: Callable[[Any], jax.Array],
    width: int | None = None,
) -> Slotted:
    """Turns callables over A actions into ones over W slots.

    Args:
      root: prior_logits float32[B, A]; entries of illegal actions are not read.
      recurrent_fn: as `search`'s, over actions.
      legal_actions: embedding [B, ...] -> int16[B, K], the legal actions of each, padded with -1.
      width: W, at most K: the slots go to the actions with the highest priors; None: K.
    """
    logits, actions, cut = _table(root.prior_logits, legal_actions(root.embedding), width)
    place = Place(root.embedding, actions)
    recurrent = slotted_recurrent(recurrent_fn, legal_actions, width)
    return Slotted(root.replace(prior_logits=logits, embedding=place), recurrent, actions, cut)


def slotted_recurrent(
    recurrent_fn: mctx.RecurrentFn, legal_actions: Callable[[Any], jax.Array], width: int | None = None
) -> mctx.RecurrentFn:
    """Turns a recurrent function over A actions into one over W slots; see `slotted`."""

    def recurrent(
        params: Any, rng_key: jax.Array, slot: jax.Array, place: Place
    ) -> tuple[mctx.RecurrentFnOutput, Place]:
        action = action_of(place.actions, slot)
        output, inner = recurrent_fn(params, rng_key, action, place.inner)
        logits, actions, _ = _table(output.prior_logits, legal_actions(inner), width)
        return output.replace(prior_logits=logits), Place(inner, actions)

    return recurrent


def action_of(actions: jax.Array | None, slot: jax.Array) -> jax.Array:
    """Returns int32[B], the action of slot int32[B] in tables int16[B, W] (0 where there is none), or itself."""
    if actions is None:
        return slot
    found = jnp.take_along_axis(actions, slot[:, None], axis=1)[:, 0]
    return jnp.maximum(found, 0).astype(jnp.int32)


def _table(logits: jax.Array, actions: jax.Array, width: int | None) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns (logits float32[B, W] of the slots, their actions int16[B, W], the share of prior cut float32[B])."""
    taken = jnp.take_along_axis(logits, jnp.maximum(actions, 0).astype(jnp.int32), axis=1)
    by_slot = mask_logits(taken, actions >= 0)
    if width is None or width >= actions.shape[1]:
        return by_slot, actions, jnp.zeros(actions.shape[0], by_slot.dtype)
    kept, order = jax.lax.top_k(by_slot, width)
    share = jnp.sum(jnp.take_along_axis(jax.nn.softmax(by_slot), order, axis=1), axis=1)
    return kept, jnp.take_along_axis(actions, order, axis=1), jnp.maximum(1 - share, 0)
