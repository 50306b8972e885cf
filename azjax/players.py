"""Players: one word that names how moves are chosen, and the function that chooses them for a batch of games.

random · uct:400 · run:runs/NAME@STEP,simulations=400,search=gumbel|puct|policy,temperature=0,top_p=1,resign=0.05 ·
agent:crosshair · agent:FILE.safetensors (options as of run:) · alphabeta:runs/NAME@STEP,evaluations=400 (the same
network as run:'s) · solver · gtp:gnugo,level=1 ·
uci:stockfish,skill=0,nodes=100 · usi:fairy-stockfish (engines: azjax/opponents.py)
"""

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

import envs
from azjax.agents.load import load_variables
from azjax.agents.shipped import find_agent
from azjax.config import RunConfig
from azjax.network import evaluate
from azjax.search import (
    action_of,
    alphabeta_search,
    begin_search,
    first_argmax,
    mask_logits,
    num_slots,
    random_action,
    rollout_model,
    uct_policy,
)
from azjax.selfplay import draw_move, is_hopeless, network_model, search_policy
from azjax.solver import action_values, solve
from azjax.types import Variables
from envs.core import Game, State

UCT_EXPLORATION = 1.0
"""c of UCB1 for `uct:N`, on the scale of returns in [-1, 1]: the strongest of four at 400 rollouts of Crosshair, in a
round robin of 100 games a pair (Elo: c = 1.0 68, 1.41 9, 0.7 -16, 0.5 -60; docs/evaluation.md)."""

MOST_PLIES = 64
"""Deepest alpha-beta search."""

WITH_NETWORK = ("run", "agent")
"""Kinds of players that have a network: of a run, or in a file of its own."""

ENGINES = ("gtp", "uci", "usi")
"""Kinds of players that are other people's programs, by the protocol that they speak."""

ChooseFn = Callable[[Any, jax.Array, State], jax.Array]
"""(params, rng_key, states [B, ...]) -> actions int32[B], or RESIGNS; pure, so that the arena can compile it."""

RESIGNS = -1
"""In the place of an action: the player gives the game up."""


class Player(NamedTuple):
    """Someone who plays."""

    name: str
    choose: ChooseFn
    params: Any


class LoadedRun(NamedTuple):
    """An agent out of a run directory, or out of a file."""

    config: RunConfig
    variables: Variables
    step: int


class LoadRunFn(Protocol):
    """Reads an agent: (directory, step or None for the newest) -> LoadedRun."""

    def __call__(self, directory: str, step: int | None) -> LoadedRun: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlayerSpec:
    """A player's word, taken apart."""

    kind: str
    argument: str
    options: tuple[tuple[str, str], ...]


def parse_player(word: str) -> PlayerSpec:
    """Takes a player's word apart.

    Raises:
      ValueError: the word is not of the form `KIND[:ARGUMENT][,OPTION=VALUE...]`, or KIND or an OPTION is unknown.
    """
    head, *rest = word.split(",")
    kind, _, argument = head.partition(":")
    is_engine = kind in ENGINES
    allowed = _OPTIONS.get(kind, ())
    if not is_engine and kind not in _OPTIONS:
        raise ValueError(f"player: got {word!r}, expected {', '.join(_EXAMPLES)}")
    options = []
    for text in rest:
        name, equals, value = text.partition("=")
        if is_engine and name and equals:  # an engine's options are its own
            options.append((name, value))
            continue
        if not equals or name not in allowed:
            expected = "NAME=VALUE" if is_engine else ", ".join(f"{option}=..." for option in allowed) or "no options"
            raise ValueError(f"player {word!r}: got option {text!r}, expected {expected}")
        options.append((name, value))
    names = [name for name, _ in options]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"player {word!r}: got option {twice[0]} twice, expected it once")
    return PlayerSpec(kind=kind, argument=argument, options=tuple(options))


_EXAMPLES = (
    "random",
    "uct:400",
    "run:runs/NAME",
    "agent:crosshair",
    "alphabeta:runs/NAME",
    "solver",
    "gtp:gnugo,level=1",
)
_NETWORK_OPTIONS = ("simulations", "search", "temperature", "top_p", "seconds", "resign")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "random": (),
    "uct": ("c",),
    "run": _NETWORK_OPTIONS,
    "agent": _NETWORK_OPTIONS,
    "alphabeta": ("evaluations",),
    "solver": (),
}


def make_player(game: Game, word: str, load_run: LoadRunFn) -> Player:
    """Builds a player that is a compiled program.

    Args:
      game: what it plays.
      word: see the top of the file.
      load_run: reads agents.

    Raises:
      ValueError: the word is malformed or an engine's, or the run is of another game or cannot be read.
    """
    spec = parse_player(word)
    options = dict(spec.options)
    if spec.kind in ENGINES or "seconds" in options:
        raise ValueError(f"player: got {word!r}, expected one that needs no process or clock here")
    if spec.kind in ("random", "solver"):
        if spec.argument:
            raise ValueError(f"player: got {word!r}, expected {spec.kind} without an argument")
        return Player(word, _random_chooser(game), ()) if spec.kind == "random" else _solver(game)
    if spec.kind == "uct":
        simulations = option_number(word, "simulations", spec.argument, int, 1)
        exploration = option_number(word, "c", options.get("c", str(UCT_EXPLORATION)), float, 0.0, 1e6)
        return Player(word, _uct_chooser(game, simulations, exploration), ())
    run = run_of_player(game, word, load_run)
    if spec.kind == "alphabeta":
        evaluations = option_number(word, "evaluations", options.get("evaluations", "0"), int, 0)
        return alphabeta_player(game, run, word, evaluations or None)
    return run_player(game, run, word, options)


def run_of_player(game: Game, word: str, load_run: LoadRunFn) -> LoadedRun:
    """Reads the agent of a word "run:DIRECTORY@STEP" or "agent:NAME"; raises ValueError if it is of another game."""
    spec = parse_player(word)
    if spec.kind == "agent":
        return load_agent(game, spec.argument)
    directory, _, at = spec.argument.partition("@")
    if not directory:
        raise ValueError(f"player: got {word!r}, expected {spec.kind}:DIRECTORY")
    run = load_run(directory, option_number(word, "step", at, int, 0) if at else None)
    check_run_game(run.config, game, f"player {word!r}")
    return run


def load_agent(game: Game, word: str) -> LoadedRun:
    """Reads an agent in a file, or one that comes with azjax.

    Raises:
      ValueError: there is no such agent, the file is not an agent's, or it is of another game.
    """
    header = find_agent(word)
    return LoadedRun(header.config, load_variables(header, game), header.step)


def check_run_game(config: RunConfig, game: Game, where: str) -> None:
    """Raises ValueError, which begins with `where`, if a run's configuration is of another game."""
    if not envs.is_named(game, config.game):
        raise ValueError(f"{where}: got a run of {config.game}, expected one of {game.id}")


def run_player(game: Game, run: LoadedRun, word: str, options: dict[str, str] | None = None) -> Player:
    """Builds the player of an agent; `options` as in its word."""
    options = options or {}
    simulations = option_number(word, "simulations", options.get("simulations", "0"), int, 0)
    kind = options.get("search", run.config.search.algorithm)
    if kind not in ("gumbel", "puct", "policy"):
        raise ValueError(f"player {word!r}: got search={kind}, expected gumbel, puct or policy")
    temperature = option_number(word, "temperature", options.get("temperature", "0"), float, 0.0)
    top_p = option_number(word, "top_p", options.get("top_p", "1"), float, 0.0)
    if not 0 < top_p <= 1:
        raise ValueError(f"player {word!r}: got top_p={top_p}, expected a number above 0, at most 1")
    resign = resign_value(word, options.get("resign"))
    if resign is not None and kind == "policy":
        raise ValueError(f"player {word!r}: got resign with search={kind}, expected search=gumbel or puct")
    config = _what_decides_moves(run.config)
    if kind == "policy":
        choose = _policy_chooser(game, config, temperature, top_p)
    else:
        if top_p < 1:
            raise ValueError(f"player {word!r}: got top_p with search={kind}, expected search=policy")
        choose = _search_chooser(game, config, simulations or config.search.simulations, kind, temperature, resign)
    return Player(word, choose, run.variables)


def alphabeta_player(game: Game, run: LoadedRun, word: str, evaluations: int | None = None) -> Player:
    """Builds the player that searches by alpha-beta with an agent's network, deepened step by step.

    Args:
      game: the rules.
      run: whose network evaluates.
      word: the player's.
      evaluations: of the network for a move; None: as many as the run's own search makes.

    Raises:
      ValueError: the game has dice.
    """
    if game.has_chance:
        raise ValueError(f"player {word!r}: got alphabeta in a game with dice, expected another search")
    config = _what_decides_moves(run.config)
    choose = _alphabeta_chooser(game, config, evaluations or config.search.simulations)
    return Player(word, choose, run.variables)


def _what_decides_moves(config: RunConfig) -> RunConfig:
    """Returns the part that a compiled choice depends on, so that all steps of a run share one program."""
    needed = RunConfig(game=config.game, network=config.network, search=config.search)
    if config.learner.symmetry == "training_and_search":
        needed = dataclasses.replace(needed, learner=config.learner)
    return needed


def option_number(word: str, name: str, text: str, kind: type, least: float, most: float | None = None) -> Any:
    """Returns the number of kind int or float that option `name` of a player's word says.

    Raises:
      ValueError: it is none, or not from `least` to `most` (None: MOST_WHOLE or MOST_NUMBER).
    """
    pattern, what, largest = _WHOLE if kind is int else _NUMBER
    most = largest if most is None else most
    value = kind(text) if len(text) < 100 and pattern.fullmatch(text) else None
    if value is None or not least <= value <= most:
        upper = "" if value is None or value < least else f" and at most {most:.10g}"
        raise ValueError(f"player {word!r}: got {name} {text!r}, expected {what} of at least {least}{upper}")
    return value


MOST_WHOLE = 2**31 - 2
"""Simulations and steps are counted by int32; a tree has one node more. How large it may be, its game decides."""
MOST_NUMBER = 3e38
"""What float32 holds."""
MOST_SECONDS = 1e6
_WHOLE = (re.compile(r"-?[0-9]+"), "a whole number", MOST_WHOLE)
_NUMBER = (re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"), "a number", MOST_NUMBER)


def resign_value(word: str, text: str | None) -> float | None:
    """Returns the value, from -1 to below 0, under which a player gives up: `text` says how many points of a game that
    is, as the paper's 0.05. None where the option is not given.

    Raises:
      ValueError: it is no such number.
    """
    if text is None:
        return None
    points = option_number(word, "resign", text, float, 0.0)
    if not 0 < points < 0.5:
        raise ValueError(f"player {word!r}: got resign={points}, expected points of a game below 0.5, such as 0.05")
    return 2 * points - 1


@functools.lru_cache
def _random_chooser(game: Game) -> ChooseFn:
    def choose(params: Any, rng_key: jax.Array, states: State) -> jax.Array:
        del params
        return random_action(rng_key, jax.vmap(game.legal_action_mask)(states))

    return choose


def _solver(game: Game) -> Player:
    """Returns who plays any of the moves that keep the position's exact value, but wins at once where it can."""
    return Player("solver", _solver_chooser(game), jax.tree.map(jnp.asarray, solve(game)))


@functools.lru_cache
def _solver_chooser(game: Game) -> ChooseFn:
    def choose(params: Any, rng_key: jax.Array, states: State) -> jax.Array:
        values, ends = action_values(game, params, states)
        best = values == jnp.max(values, axis=1, keepdims=True)
        at_once = best & ends & (values > 0)
        return random_action(rng_key, jnp.where(at_once.any(1, keepdims=True), at_once, best))

    return choose


@functools.lru_cache
def _uct_chooser(game: Game, simulations: int, exploration: float) -> ChooseFn:
    model = rollout_model(game, masked=num_slots(game) is None)

    def choose(params: Any, rng_key: jax.Array, states: State) -> jax.Array:
        root_key, search_key = jax.random.split(rng_key)
        root, recurrent_fn, slot_actions, _ = begin_search(game, model, params, root_key, states)
        found = uct_policy(
            params,
            search_key,
            root,
            recurrent_fn,
            simulations,
            exploration=exploration,
            has_chance=game.has_chance,
        )
        return action_of(slot_actions, found.action)

    return choose


@functools.lru_cache
def _search_chooser(
    game: Game, config: RunConfig, simulations: int, kind: str, temperature: float, resign: float | None
) -> ChooseFn:
    policy = search_policy(config, game, explore=False, simulations=simulations, algorithm=kind)

    def choose(params: Any, rng_key: jax.Array, states: State) -> jax.Array:
        search_key, move_key = jax.random.split(rng_key)
        output = policy(params, search_key, states, jnp.zeros(()))
        action = output.action if temperature == 0 else draw_move(move_key, output, temperature)
        return action if resign is None else jnp.where(is_hopeless(output.search_tree, resign), RESIGNS, action)

    return choose


@functools.lru_cache
def _alphabeta_chooser(game: Game, config: RunConfig, evaluations: int) -> ChooseFn:
    model = network_model(config, game)

    def choose(params: Any, rng_key: jax.Array, states: State) -> jax.Array:
        root_key, search_key = jax.random.split(rng_key)
        root, recurrent_fn, slot_actions, _ = begin_search(game, model, params, root_key, states, config.search.slots)
        depth = min(game.max_plies, MOST_PLIES)
        found = alphabeta_search(params, search_key, root, recurrent_fn, evaluations, depth)
        return action_of(slot_actions, found.action)

    return choose


@functools.lru_cache
def _policy_chooser(game: Game, config: RunConfig, temperature: float, top_p: float) -> ChooseFn:
    def choose(params: Any, rng_key: jax.Array, states: State) -> jax.Array:
        evaluate_key, move_key = jax.random.split(rng_key)
        logits, _ = evaluate(config.network, game, params, evaluate_key, states)
        legal = jax.vmap(game.legal_action_mask)(states)
        logits = mask_logits(logits, legal)
        if temperature == 0:
            return jax.vmap(first_argmax)(logits)
        # Differences from the best, masked again: no temperature makes them NaN or an illegal action likely.
        below_best = logits - jnp.max(logits, axis=-1, keepdims=True)
        kept = _nucleus(mask_logits(below_best / max(temperature, 1e-6), legal), top_p)
        return jax.random.categorical(move_key, kept, axis=-1).astype(jnp.int32)

    return choose


def _nucleus(logits: jax.Array, top_p: float) -> jax.Array:
    """Masks all but the likeliest actions that together have probability `top_p` (Holtzman et al. 2020)."""
    probs = jax.nn.softmax(logits)
    ordered = jnp.sort(probs, axis=-1, descending=True)
    before = jnp.cumsum(ordered, axis=-1) - ordered
    least = jnp.min(jnp.where(before < top_p, ordered, jnp.inf), axis=-1, keepdims=True)
    return mask_logits(logits, probs >= least)
