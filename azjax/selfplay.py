"""Self-play: every lane makes one move by search; a finished game is replaced at once."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.config import RunConfig, SearchConfig, SelfPlayConfig
from azjax.network import evaluate
from azjax.openings import merge, random_openings
from azjax.search import (
    Model,
    QTransform,
    action_of,
    begin_search,
    completed_qvalues,
    game_model,
    gumbel_policy,
    num_slots,
    puct_policy,
    random_action,
    sample_move,
)
from azjax.types import Metrics, Position, Variables
from envs.chance import start_games, step_games
from envs.core import Game, State, register_state, two_player_returns


class SearchOutput(NamedTuple):
    """What a search says of B positions; W is A, or the number of slots."""

    action: jax.Array  # int32[B], to play, among A
    action_weights: jax.Array  # float32[B, W], the search policy
    legal: jax.Array  # bool[B, W]
    slot_actions: jax.Array | None  # int16[B, W], the action of each slot; None: entry a is action a's
    prior_cut: jax.Array | None  # float32[B], share of the prior that got no slot; None without slots
    search_tree: mctx.Tree


PolicyFn = Callable[[Any, jax.Array, State, jax.Array], SearchOutput]
"""(variables, rng_key, states [B, ...], temperature float32[B]) -> SearchOutput of B games."""


@register_state
class Lanes:
    """The games in progress."""

    state: Any  # game states [B, ...], never terminated between plies
    ply: jax.Array  # int32[B], moves made in this game, those of its opening too
    resigning: Any = None  # Resigning, None where nobody ever gives up


@register_state
class Resigning:
    """Who may give up, and who would have."""

    allowed: jax.Array  # bool[B], drawn for each game
    would_have: jax.Array  # int8[B], the first player who wanted to in a game where it is not allowed; -1: nobody


@register_state
class Resigned:
    """What giving up came to in one ply."""

    resigned: jax.Array  # bool[B], the game ended so
    would_have: jax.Array  # bool[B], a game in which a player would have given up ended by the rules
    wrong: jax.Array  # bool[B], of these: that player did not lose it


@register_state
class PlyResult:
    """What one ply in every lane gave."""

    position: Position  # [B], before the move
    over: jax.Array  # bool[B], the move ended the game
    truncated: jax.Array  # bool[B], it ended without an outcome
    returns: jax.Array  # float32[B, 2], player i's, zeros unless over
    finite: jax.Array  # bool[B], the search gave finite numbers; else the position holds uniform weights
    prior_cut: Any = None  # float32[B], see SearchOutput; None without slots
    gave_up: Any = None  # Resigned [B], None where nobody ever gives up


def start_lanes(
    game: Game, rng_key: jax.Array, num_lanes: int, opening_plies: int = 0, resign_share: float | None = None
) -> Lanes:
    """Returns `num_lanes` new games, each after a number of random moves drawn evenly from 0 to `opening_plies`.

    In the share `resign_share` of them, on average, players may give up; None: nobody ever does.
    """
    lanes = _open_lanes(game, rng_key, num_lanes, opening_plies)
    if resign_share is None:
        return lanes
    allowed = jax.random.bernoulli(jax.random.fold_in(rng_key, 2), resign_share, (num_lanes,))
    resigning = Resigning(allowed=allowed, would_have=jnp.full((num_lanes,), -1, jnp.int8))
    return dataclasses.replace(lanes, resigning=resigning)


def resign_share(config: SelfPlayConfig) -> float | None:
    """Returns the share of games in which players may give up, None if they never do."""
    return None if config.resign_value == -1 else 1 - config.no_resign_share


def _open_lanes(game: Game, rng_key: jax.Array, num_lanes: int, opening_plies: int) -> Lanes:
    if not opening_plies:
        states, _ = start_games(game, rng_key, num_lanes)
        return Lanes(state=states, ply=jnp.zeros((num_lanes,), jnp.int32))
    length_key, moves_key = jax.random.split(rng_key)
    length = jax.random.randint(length_key, (num_lanes,), 0, opening_plies + 1)
    states, played = random_openings(game, moves_key, num_lanes, opening_plies, length)
    moves = (played >= 0) & (played < game.num_actions)
    return Lanes(state=states, ply=jnp.sum(moves, axis=1, dtype=jnp.int32))


def network_model(config: RunConfig, game: Game) -> Model:
    """Returns the search's model of the game, evaluated by the run's network."""
    in_search = config.learner.symmetry == "training_and_search"

    def evaluate_states(variables: Variables, rng_key: jax.Array, states: State) -> tuple[jax.Array, jax.Array]:
        return evaluate(config.network, game, variables, rng_key, states, random_symmetry=in_search)

    return game_model(game, evaluate_states, masked=num_slots(game, config.search.slots) is None)


def search_policy(
    config: RunConfig,
    game: Game,
    *,
    explore: bool,
    simulations: int | None = None,
    algorithm: str | None = None,
    run: Callable[..., mctx.PolicyOutput] | None = None,
) -> PolicyFn:
    """Builds the policy that plays by search.

    Args:
      config: search constants and network.
      game: the rules.
      explore: root noise and sampled moves (self-play); without: the strongest move.
      simulations, algorithm: in the place of the configured ones.
      run: a policy with the arguments of `mctx.muzero_policy`, in the place of azjax's.

    Returns:
      A function of (variables, rng_key, states, temperature); temperature matters only when exploring.
    """
    search, model = config.search, network_model(config, game)
    num_simulations = simulations or search.simulations
    run_search = run or _configured(config, game, algorithm or search.algorithm, explore)

    def policy(variables: Variables, rng_key: jax.Array, states: State, temperature: jax.Array) -> SearchOutput:
        root_key, search_key, move_key = jax.random.split(rng_key, 3)
        root, recurrent_fn, slot_actions, prior_cut = begin_search(
            game, model, variables, root_key, states, search.slots
        )
        legal = jax.vmap(game.legal_action_mask)(states) if slot_actions is None else slot_actions >= 0
        output = run_search(
            variables,
            search_key,
            root,
            recurrent_fn,
            num_simulations,
            invalid_actions=(~legal).astype(jnp.float32),
            max_depth=search.max_depth,
        )
        found = SearchOutput(output.action, output.action_weights, legal, slot_actions, prior_cut, output.search_tree)
        if explore:
            return found._replace(action=draw_move(move_key, found, temperature))
        return found._replace(action=action_of(slot_actions, output.action))

    return policy


def _configured(config: RunConfig, game: Game, algorithm: str, explore: bool) -> Callable[..., mctx.PolicyOutput]:
    search = config.search
    shared = {"has_chance": game.has_chance, "implementation": search.implementation}
    if algorithm == "gumbel":
        return functools.partial(
            gumbel_policy,
            max_num_considered_actions=search.considered_actions,
            gumbel_scale=1.0 if explore else 0.0,
            parallel=search.parallel,
            qtransform=gumbel_qtransform(search),
            **shared,
        )
    if search.dirichlet_alpha is None and explore:
        raise ValueError("search.dirichlet_alpha: got None, expected a number (train.resolve fills it in)")
    return functools.partial(
        puct_policy,
        dirichlet_fraction=search.dirichlet_fraction if explore else 0.0,
        dirichlet_alpha=search.dirichlet_alpha or 1.0,
        c_init=search.c_init,
        c_base=search.c_base,
        c_puct=search.c_puct,
        **shared,
    )


@functools.lru_cache
def gumbel_qtransform(search: SearchConfig) -> QTransform:
    """Returns sigma(completed Q) with the configured constants; one function for each, as programs are kept by it."""
    return functools.partial(
        completed_qvalues, value_scale=search.c_scale, maxvisit_init=search.c_visit, rescale=search.rescale_values
    )


def draw_move(rng_key: jax.Array, output: SearchOutput, temperature: float | jax.Array) -> jax.Array:
    """Draws int32[B], actions by weight ^ (1 / temperature); temperature 0 takes the first of the largest weights."""
    drawn = sample_move(rng_key, jnp.nan_to_num(output.action_weights), output.legal, temperature)
    return action_of(output.slot_actions, drawn)


def play_ply(
    config: RunConfig, game: Game, policy: PolicyFn, variables: Variables, rng_key: jax.Array, lanes: Lanes
) -> tuple[Lanes, PlyResult]:
    """Makes one move in every lane and replaces the games that ended.

    Args:
      config: temperature and its plies.
      game: the rules.
      policy: of `search_policy`.
      variables: of the network.
      rng_key: consumed.
      lanes: [B].

    Returns:
      The lanes afterwards and what happened.
    """
    policy_key, init_key = jax.random.split(rng_key)
    num_lanes = lanes.ply.shape[0]
    selfplay = config.selfplay
    temperature = jnp.where(lanes.ply < selfplay.temperature_plies, selfplay.temperature, 0.0)
    output = policy(variables, policy_key, lanes.state, temperature)
    at_root = output.search_tree
    root_value = at_root.node_values[:, at_root.ROOT_INDEX]
    finite = jnp.isfinite(output.action_weights).all(axis=1) & jnp.isfinite(root_value)
    # Numbers that are not finite never reach replay: they are counted, and the run stops if they go on.
    uniform = output.legal / jnp.maximum(jnp.sum(output.legal, axis=1, keepdims=True), 1)
    position = Position(
        state=lanes.state,
        search_weights=jnp.where(finite[:, None], output.action_weights, uniform).astype(jnp.float16),
        slot_actions=output.slot_actions,
        root_value=jnp.where(finite, root_value, 0.0),
        mover=jax.vmap(game.to_move)(lanes.state).astype(jnp.int8),
    )
    moved, _ = step_games(game, jax.random.fold_in(init_key, 1), lanes.state, output.action)
    result = PlyResult(
        position=position,
        over=jax.vmap(game.terminated)(moved),
        truncated=jax.vmap(game.truncated)(moved),
        returns=jax.vmap(game.returns)(moved),
        finite=finite,
        prior_cut=output.prior_cut,
    )
    after, share = Lanes(state=moved, ply=lanes.ply + 1), None
    if lanes.resigning is not None:
        hopeless = finite & is_hopeless(output.search_tree, selfplay.resign_value)
        resigning, result = _resign(lanes.resigning, hopeless, result)
        after, share = dataclasses.replace(after, resigning=resigning), resign_share(selfplay)
    fresh = start_lanes(game, init_key, num_lanes, selfplay.opening_plies, share)
    return merge(result.over, fresh, after), result


def position_shapes(config: RunConfig, game: Game, states: State) -> Position:
    """Returns the shapes of `play_ply`'s positions of games `states` [B, ...]; its trace would take a second."""
    num_lanes = jax.tree.leaves(states)[0].shape[0]
    slots = num_slots(game, config.search.slots)

    def shaped(dtype: jnp.dtype, *shape: int) -> Any:
        return jax.ShapeDtypeStruct((num_lanes, *shape), dtype)

    return Position(
        state=jax.tree.map(lambda leaf: shaped(leaf.dtype, *leaf.shape[1:]), states),
        search_weights=shaped(jnp.float16, game.num_actions if slots is None else slots),
        slot_actions=None if slots is None else shaped(jnp.int16, slots),
        root_value=shaped(jnp.float32),
        mover=shaped(jnp.int8),
    )


def is_hopeless(tree: mctx.Tree, resign_value: float) -> jax.Array:
    """Returns bool[B]: both the root's value and its best visited child's are below `resign_value`.

    AlphaGo Zero's rule (Silver et al. 2017, Methods, "Self-play"); the view of the player to move.
    """
    visited = tree.children_visits[:, tree.ROOT_INDEX] > 0
    root = jnp.full((visited.shape[0],), tree.ROOT_INDEX, jnp.int32)
    best = jnp.max(jnp.where(visited, tree.qvalues(root), -jnp.inf), axis=1)
    return (tree.node_values[:, tree.ROOT_INDEX] < resign_value) & (best < resign_value)


def _resign(resigning: Resigning, hopeless: jax.Array, result: PlyResult) -> tuple[Resigning, PlyResult]:
    """Ends the games whose mover gives up in place of the move, and notes who would have where it is not allowed."""
    mover = result.position.mover
    resigned = hopeless & resigning.allowed
    first = hopeless & ~resigning.allowed & (resigning.would_have < 0)
    would_have = jnp.where(first, mover, resigning.would_have)
    told = result.over & ~result.truncated & ~resigned & (would_have >= 0)
    theirs = jnp.take_along_axis(result.returns, jnp.maximum(would_have, 0).astype(jnp.int32)[:, None], axis=1)[:, 0]
    lost = jax.vmap(two_player_returns)(resigned, 1 - mover.astype(jnp.int32))
    result = dataclasses.replace(
        result,
        over=result.over | resigned,
        truncated=result.truncated & ~resigned,
        returns=jnp.where(resigned[:, None], lost, result.returns),
        gave_up=Resigned(resigned=resigned, would_have=told, wrong=told & (theirs >= 0)),
    )
    return dataclasses.replace(resigning, would_have=would_have), result


def count(result: PlyResult) -> Metrics:
    """Counts what a ply tells about games and labels; sums over lanes, to be added up over plies.

    `prior_cut`, where there are slots, is a mean over lanes. Where players may give up: `resigned` games; those
    played on in which one would have (`would_resign`), and of these the ones which it did not lose (`false_resign`).
    """
    decided = result.over & ~result.truncated & (result.returns[:, 0] != result.returns[:, 1])
    mover = result.position.mover.astype(jnp.int32)
    mover_return = jnp.take_along_axis(result.returns, mover[:, None], axis=1)[:, 0]
    counts: Metrics = {} if result.prior_cut is None else {"prior_cut": jnp.mean(result.prior_cut)}
    if result.gave_up is not None:
        counts |= {
            "resigned": jnp.sum(result.gave_up.resigned, dtype=jnp.int32),
            "would_resign": jnp.sum(result.gave_up.would_have, dtype=jnp.int32),
            "false_resign": jnp.sum(result.gave_up.wrong, dtype=jnp.int32),
        }
    return counts | {
        "games": jnp.sum(result.over, dtype=jnp.int32),
        "truncated": jnp.sum(result.truncated, dtype=jnp.int32),
        "decided": jnp.sum(decided, dtype=jnp.int32),
        "first_player_wins": jnp.sum(decided & (result.returns[:, 0] > result.returns[:, 1]), dtype=jnp.int32),
        "won_by_last_mover": jnp.sum(decided & (mover_return > 0), dtype=jnp.int32),
        "nonfinite_targets": jnp.sum(~result.finite, dtype=jnp.int32),
    }


def mean_legal_moves(game: Game, rng_key: jax.Array, num_games: int = 64, max_plies: int = 200) -> float:
    """Returns the mean number of legal moves over uniformly random games (of at most `max_plies` plies)."""

    @jax.jit
    def play(rng_key: jax.Array) -> jax.Array:
        def ply(carry: Any, key: jax.Array) -> tuple[Any, None]:
            states, legal, positions = carry
            mask = jax.vmap(game.legal_action_mask)(states)
            number = jnp.sum(mask, axis=1, dtype=jnp.int32)
            states, _ = step_games(game, jax.random.fold_in(key, 1), states, random_action(key, mask))
            return (states, legal + jnp.sum(number), positions + jnp.sum(number > 0)), None

        start, _ = start_games(game, rng_key, num_games)
        keys = jax.random.split(rng_key, min(max_plies, game.max_plies or max_plies))
        (_, legal, positions), _ = jax.lax.scan(ply, (start, jnp.int32(0), jnp.int32(0)), keys)
        return legal / positions

    return float(play(rng_key))
