"""What a search knows of a game: its root and its recurrent function, with rewards and signs from the rules."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.search.chance import evaluate_events
from azjax.search.selection import first_argmax, mask_logits
from envs.chance import step_event, step_games
from envs.core import Game, State

EvaluateFn = Callable[[Any, jax.Array, State], tuple[jax.Array, jax.Array]]
"""(params, rng_key, states [B, ...]) -> (logits float32[B, A] by action, value float32[B], the mover's view)."""


class Model(NamedTuple):
    """A game as the search sees it."""

    root: Callable[[Any, jax.Array, State], mctx.RootFnOutput]  # (params, rng_key, states [B, ...])
    recurrent: mctx.RecurrentFn


def game_model(game: Game, evaluate: EvaluateFn, *, masked: bool = True) -> Model:
    """Builds root and recurrent functions for `search` from a game's rules and an evaluation.

    Logits of illegal actions are masked, unless `masked` is False because slots will leave them out. The sign of an
    edge comes from `to_move` before and after. A terminal edge has the mover's return as its reward and discount 0;
    every other edge has reward 0. The embedding is the game's state.

    In a game with chance the actions of the tree are events, A moves and C outcomes (see azjax/search/chance.py), which
    only slots sort out: nothing is masked.
    """
    step, to_move = jax.vmap(functools.partial(step_event, game)), jax.vmap(game.to_move)
    legal_action_mask, terminated, returns = map(jax.vmap, (game.legal_action_mask, game.terminated, game.returns))
    if game.has_chance:
        evaluate, masked = evaluate_events(game, evaluate), False

    def priors(logits: jax.Array, states: State) -> jax.Array:
        return mask_logits(logits, legal_action_mask(states)) if masked else logits

    def root(params: Any, rng_key: jax.Array, states: State) -> mctx.RootFnOutput:
        logits, value = evaluate(params, rng_key, states)
        return mctx.RootFnOutput(prior_logits=priors(logits, states), value=value, embedding=states)

    def recurrent(
        params: Any, rng_key: jax.Array, action: jax.Array, states: State
    ) -> tuple[mctx.RecurrentFnOutput, State]:
        mover = to_move(states)
        next_states = step(states, action)
        logits, value = evaluate(params, rng_key, next_states)
        over = terminated(next_states)
        mover_return = jnp.take_along_axis(returns(next_states), mover[:, None], axis=1)[:, 0]
        discount = jnp.where(to_move(next_states) == mover, 1.0, -1.0)
        output = mctx.RecurrentFnOutput(
            reward=jnp.where(over, mover_return, 0.0),
            discount=jnp.where(over, 0.0, discount),
            prior_logits=priors(logits, next_states),
            value=jnp.where(over, 0.0, value),
        )
        return output, next_states

    return Model(root, recurrent)


def rollout_model(game: Game, *, masked: bool = True) -> Model:
    """Builds the model of plain UCT: value = the return of one uniformly random game from the state, the mover's view.

    Priors are uniform random numbers in [0, 1): they decide only in which order untried actions are taken; `masked` as
    in `game_model`.
    """
    to_move = jax.vmap(game.to_move)
    legal_action_mask, terminated, returns = map(jax.vmap, (game.legal_action_mask, game.terminated, game.returns))

    def evaluate(params: Any, rng_key: jax.Array, states: State) -> tuple[jax.Array, jax.Array]:
        del params
        order_key, rollout_key = jax.random.split(rng_key)
        mover = to_move(states)

        def play(carry: tuple[jax.Array, State]) -> tuple[jax.Array, State]:
            ply, states = carry
            mask = legal_action_mask(states)
            key = jax.random.fold_in(rollout_key, ply)
            return ply + 1, step_games(game, jax.random.fold_in(key, 1), states, random_action(key, mask))[0]

        _, finals = jax.lax.while_loop(lambda carry: ~terminated(carry[1]).all(), play, (jnp.int32(0), states))
        value = jnp.take_along_axis(returns(finals), mover[:, None], axis=1)[:, 0]
        order = jax.random.uniform(order_key, (mover.shape[0], game.num_actions))
        return order, value

    return game_model(game, evaluate, masked=masked)


def mix_bits(numbers: jax.Array) -> jax.Array:
    """Returns uint32 numbers whose bits all depend on all bits given: MurmurHash3's finaliser (Appleby 2011)."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        numbers = (numbers ^ (numbers >> shift)) * jnp.uint32(factor)
    return numbers


def random_action(rng_key: jax.Array, legal_action_mask: jax.Array) -> jax.Array:
    """Draws int32[B], uniform over the legal actions of bool[B, A]; 0 where there is none.

    Each action gets a score of 24 random bits and the highest legal one is taken: uniform to about A / 2^24. One
    threefry number a game (10 ns each on CPU) is spread over its actions by MurmurHash3's 32-bit finaliser (Appleby
    2011), of which the vector units do sixteen at once: rollouts draw an action at every ply.
    """
    batch_size, num_actions = legal_action_mask.shape
    seed = jax.random.bits(rng_key, (batch_size, 1), jnp.uint32)
    mixed = mix_bits(seed + jnp.arange(num_actions, dtype=jnp.uint32)[None] * jnp.uint32(0x9E3779B9))
    score = (mixed >> 8).astype(jnp.float32)
    return jax.vmap(first_argmax)(jnp.where(legal_action_mask, score, -1.0))
