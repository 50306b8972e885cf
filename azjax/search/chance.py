"""Chance in the tree: a node that waits for dice, whose children are their outcomes.

The tree of a game with A moves and C outcomes has events for actions: 0 ... A - 1 are the moves, A ... A + C - 1 the
outcomes. A move leads to a chance node, an outcome from there to the player who moves next, whose view both nodes have.

    mover A   --move-->   chance, view of B   --outcome-->   mover B
            discount -1                      discount +1

What makes a node a chance node is seen in its prior logits, the one thing that a recurrent function says of a node's
actions: they are log-probabilities raised by CHANCE, and those of moves are at most 0.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from azjax.search.selection import first_argmax, is_illegal, mask_logits
from envs.chance import num_outcomes, play_chance
from envs.core import Game, State

CHANCE = 64.0
"""Above the negative of every log-probability of an outcome, and small enough to leave them six digits."""


def evaluate_events(game: Game, evaluate: Callable) -> Callable:
    """Turns (params, rng_key, states) -> (logits [B, A], value [B]) into one with logits [B, A + C] of events.

    A chance node is worth what the evaluation (or the result, if the game ends there) says of one of its outcomes,
    drawn by its probability: right on average, and the network need not know positions without dice.
    """
    probabilities, is_chance, to_move = map(jax.vmap, (game.chance_probs, game.is_chance, game.to_move))
    terminated, returns = map(jax.vmap, (game.terminated, game.returns))

    def evaluate_all(params: Any, rng_key: jax.Array, states: State) -> tuple[jax.Array, jax.Array]:
        roll_key, rng_key = jax.random.split(rng_key)
        seen, _ = play_chance(game, roll_key, states)
        logits, value = evaluate(params, rng_key, seen)
        waits, probs = is_chance(states)[:, None], probabilities(states)
        moves = mask_logits(logits - jnp.max(logits, axis=-1, keepdims=True), ~waits)
        outcomes = mask_logits(jnp.log(jnp.maximum(probs, 1e-20)) + CHANCE, waits & (probs > 0))
        result = jnp.take_along_axis(returns(seen), to_move(seen)[:, None], axis=1)[:, 0]
        value = jnp.where(terminated(seen), result, value)
        same = to_move(seen) == to_move(states)
        return jnp.concatenate([moves, outcomes], axis=1), jnp.where(same, value, -value)

    return evaluate_all


def legal_events(game: Game) -> Callable[[State], jax.Array]:
    """Returns state -> int16[max(K, C)], the legal moves or the possible outcomes as events, padded with -1."""
    outcomes = num_outcomes(game)
    width = max(game.max_legal_actions, outcomes)

    def padded(events: jax.Array) -> jax.Array:
        return jnp.pad(events, (0, width - events.shape[0]), constant_values=-1)

    def legal(state: State) -> jax.Array:
        possible = game.chance_probs(state) > 0
        events = jnp.where(possible, game.num_actions + jnp.arange(outcomes, dtype=jnp.int16), -1).astype(jnp.int16)
        return jnp.where(game.is_chance(state), padded(events), padded(game.legal_actions(state)))

    return legal


def with_chance(select: mctx.InteriorActionSelectionFn) -> mctx.InteriorActionSelectionFn:
    """Returns a selection that takes, at a chance node, the outcome furthest behind its probability.

    argmax of p (n + 1) - n(outcome) with n visits in all: after n visits every outcome was taken n p times, but for
    less than one; elsewhere `select` decides.
    """

    def choose(rng_key: jax.Array, tree: mctx.Tree, node_index: jax.Array, depth: jax.Array | int = 0) -> jax.Array:
        logits = tree.children_prior_logits[node_index]
        visits = tree.children_visits[node_index].astype(jnp.float32)
        possible = ~is_illegal(logits)
        probs = jnp.where(possible, jnp.exp(jnp.minimum(logits - CHANCE, 0)), 0)
        behind = jnp.where(possible, probs * (jnp.sum(visits) + 1) - visits, -jnp.inf)
        return jnp.where(jnp.max(logits) > 0, first_argmax(behind), select(rng_key, tree, node_index, depth))

    return choose
