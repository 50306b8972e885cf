"""Our games beside pgx's: what one position costs, and what the compiled step consists of."""

import contextlib
import functools
import importlib.metadata
import re
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.compilation_cache import compilation_cache

import envs
from azjax.bench.report import comparison, machine
from azjax.bench.turns import in_turns
from azjax.openings import merge
from azjax.search.model import random_action
from azjax.search.slots import MOST_ACTIONS
from envs.chance import start_games, step_games
from envs.core import Game, num_bytes

BATCHES = (256, 2048)
"""Positions side by side; each a multiple of the first, at which games are brought to their middle."""
ROUNDS = 7
"""Turns of each side, so that what else the machine does meets both."""
TURN_SECONDS = 0.1
CALL_POSITIONS = 2048
"""Plies of a call times positions side by side, so that calling costs little."""
MIDDLE = 192
"""Plies over which the games of a batch are started, one after the other."""
IN_PGX = frozenset("backgammon chess connect_four go_19x19 go_9x9 hex othello shogi tic_tac_toe".split())
"""The games that both have, whose names are the same."""
OPERATIONS = {"gathers": "gather", "scatters": "scatter", "sorts": "sort", "loops": "while"}


class Rules(NamedTuple):
    """One side: a game as functions of a batch of positions."""

    start: Callable[[jax.Array, int], Any]  # (rng_key, B) -> states [B, ...]
    step: Callable[[jax.Array, Any, jax.Array], Any]  # (rng_key, states, actions int32[B]) -> states
    look: Callable[[Any], Any]  # states -> (legal mask bool[B, A], observations)
    over: Callable[[Any], jax.Array]  # states -> bool[B]


class Segment(NamedTuple):
    """T random moves of B games."""

    states: Any  # before the first
    actions: jax.Array  # int32[T, B]
    rng_keys: jax.Array  # key[T]


def bench_games(names: Sequence[str] = (), say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Measures step, legal mask and observation beside pgx's step, which makes both, in turns on the first device.

    Positions come from the middle of random games, in which each side makes its own random moves; a game that ends is
    begun again between two measurements. The games are replayed in a loop that carries mask and observation, so that
    each is written out at every ply; dice are rolled where there are any. Figures are medians of ROUNDS turns. Slots
    are the legal actions as a list, beside `nonzero` of the legal mask.

    Args:
      names: of games; all that there are when left out.
      say: is told what is going on.

    Returns:
      {"device", "cores", "rows": [...], "programs": {game: {"compile_seconds", "gathers", "scatters", "sorts",
      "loops"}}}, of the step, mask and observation at the first of BATCHES. `reference` and `ratio` of a row are None
      where pgx does not have the game.

    Raises:
      ValueError: a name is of no game.
    """
    games = [envs.make(name) for name in names or envs.available()]
    rows, programs = [], {}
    for game in games:
        say(f"{game.id}: compiling")
        programs[game.id] = _compiled(game)
        rules = [our_rules(game)] + ([_pgx_rules(game.id)] if game.id in IN_PGX else [])
        ours, *theirs = map(sides_of, rules)
        found = [
            _position_row(game, *pair) for pair in zip(ours, theirs[0] if theirs else [None] * len(ours), strict=True)
        ]
        if game.num_actions > MOST_ACTIONS:
            found += _slot_rows(game, ours)
        found.append(_row(f"state {game.id}", [num_bytes(_one_state(side)) for side in rules], len(rules) > 1, "bytes"))
        for row in found:
            beside = "" if row["reference"] is None else f", {row['reference_name']} {row['reference']:.4g}"
            say(f"{row['case']}: {row['ours']:.4g} {row['unit']}{beside}")
        rows += found
    return {**machine(1), "rows": rows, "programs": programs}


def our_rules(game: Game) -> Rules:
    """Returns a game of ours; dice are rolled at the end of a step."""

    def look(states: Any) -> Any:
        return jax.vmap(game.legal_action_mask)(states), jax.vmap(game.observe)(states)

    return Rules(
        start=lambda rng_key, batch: start_games(game, rng_key, batch)[0],
        step=lambda rng_key, states, actions: step_games(game, rng_key, states, actions)[0],
        look=look,
        over=jax.vmap(game.terminated),
    )


def _pgx_rules(name: str) -> Rules:
    """Returns a game of pgx, whose states hold mask and observation."""
    import pgx

    env = pgx.make(name)  # ty: ignore[invalid-argument-type]

    def step(rng_key: jax.Array, states: Any, actions: jax.Array) -> Any:
        return jax.vmap(env.step)(states, actions, jax.random.split(rng_key, actions.shape[0]))

    return Rules(
        start=lambda rng_key, batch: jax.vmap(env.init)(jax.random.split(rng_key, batch)),
        step=step,
        look=lambda states: (states.legal_action_mask, states.observation),
        over=lambda states: states.terminated | states.truncated,
    )


class Side:
    """Random games of one side in one batch size, and the program that is timed."""

    def __init__(self, rules: Rules, batch: int):
        self.batch, self.plies = batch, max(CALL_POSITIONS // batch, 1)
        self._segment = jax.jit(functools.partial(_random_segment, rules, self.plies))
        self.replay = jax.jit(functools.partial(_replay, rules))
        self._states = jax.jit(rules.start, static_argnums=1)(jax.random.key(0), batch)
        self._key = jax.random.key(1)

    def next_segment(self, again: np.ndarray | None = None) -> Segment:
        """Plays on at random and returns the moves; games of `again` bool[B], and those that are over, begin anew."""
        self._key, key = jax.random.split(self._key)
        again = np.zeros(self.batch, bool) if again is None else again
        self._states, segment = self._segment(key, self._states, again)
        return segment

    def bring_to_the_middle(self) -> None:
        """Plays MIDDLE plies; game i is held at its start for the first i / B of them."""
        waiting = np.arange(self.batch) * MIDDLE // self.batch
        for ply in range(0, MIDDLE, self.plies):
            self.next_segment(waiting >= ply)

    def follow(self, other: "Side") -> None:
        """Goes on from the states of a smaller batch, repeated until they fill this one."""
        times = self.batch // other.batch
        self._states = jax.tree.map(lambda leaf: jnp.concatenate([leaf] * times), other._states)


def sides_of(rules: Rules) -> list[Side]:
    """Returns a side for each of BATCHES, whose games are under way."""
    first, *larger = (Side(rules, batch) for batch in BATCHES)
    first.bring_to_the_middle()
    for side in larger:
        side.follow(first)
    return [first, *larger]


def _random_segment(rules: Rules, plies: int, rng_key: jax.Array, states: Any, again: jax.Array) -> tuple[Any, Segment]:
    start_key, move_key, step_key = jax.random.split(rng_key, 3)
    again = again | rules.over(states)
    fresh = rules.start(start_key, again.shape[0])

    def move(states: Any, keys: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
        actions = random_action(keys[0], rules.look(states)[0])
        return rules.step(keys[1], states, actions), actions

    states = merge(again, fresh, states)
    rng_keys = jax.random.split(step_key, plies)
    end, actions = jax.lax.scan(move, states, (jax.random.split(move_key, plies), rng_keys))
    return end, Segment(states, actions, rng_keys)


def _replay(rules: Rules, segment: Segment) -> tuple[Any, Any]:
    """Returns the states after the segment's moves, and what is seen there."""

    def move(carry: tuple[Any, Any], event: tuple[jax.Array, jax.Array]) -> tuple[tuple[Any, Any], None]:
        states = rules.step(event[1], carry[0], event[0])
        return (states, rules.look(states)), None

    # The carry holds what was seen last: XLA cannot leave it out, nor fuse it into something smaller.
    first = segment.states, rules.look(segment.states)
    return jax.lax.scan(move, first, (segment.actions, segment.rng_keys))[0]


def _states_before(rules: Rules, segment: Segment) -> Any:
    """Returns the states [plies, B, ...] in which the segment's moves were made."""

    def move(states: Any, event: tuple[jax.Array, jax.Array]) -> tuple[Any, Any]:
        return rules.step(event[1], states, event[0]), states

    return jax.lax.scan(move, segment.states, (segment.actions, segment.rng_keys))[1]


def _listed(legal_actions: Callable[[Any], jax.Array], states: Any) -> jax.Array:
    """Returns the slots of the last of states [plies, B, ...], after those of all others."""
    slots_of = jax.vmap(legal_actions)
    shape = jax.eval_shape(slots_of, jax.tree.map(lambda leaf: leaf[0], states))
    first = jnp.zeros(shape.shape, shape.dtype)
    return jax.lax.scan(lambda slots, states: (slots_of(states), None), first, states)[0]


def _position_row(game: Game, ours: Side, theirs: Side | None) -> dict[str, Any]:
    sides = [ours] if theirs is None else [ours, theirs]
    times = _position_times([(side.replay, side.next_segment) for side in sides], ours)
    return _row(f"games {game.id}, {ours.batch} positions", times, theirs is not None)


def _slot_rows(game: Game, sides: list[Side]) -> list[dict[str, Any]]:
    """Times `legal_actions` beside `nonzero` of the legal mask."""
    rows, positions = [], jax.jit(functools.partial(_states_before, our_rules(game)))

    def usual(state: Any) -> jax.Array:
        mask = game.legal_action_mask(state)
        return jnp.nonzero(mask, size=game.max_legal_actions, fill_value=-1)[0].astype(jnp.int16)

    programs = [jax.jit(functools.partial(_listed, listing)) for listing in (game.legal_actions, usual)]
    for side in sides:

        def states(side: Side = side) -> Any:
            return positions(side.next_segment())

        times = _position_times([(program, states) for program in programs], side)
        case = f"slots {game.id}, {side.batch} positions"
        rows.append(comparison(case, *times, "nonzero of the legal mask", "us", lower_is_better=True))
    return rows


def _position_times(programs: Sequence[tuple[Callable[[Any], Any], Callable[[], Any]]], side: Side) -> list[float]:
    """Returns the time of each program, in us a position, on inputs that the function beside it makes."""

    def turns(program: Callable[[Any], Any], make_input: Callable[[], Any]) -> Callable[[int], Callable[[], Any]]:
        return lambda turn: functools.partial(program, jax.block_until_ready(make_input()))

    times = in_turns([turns(*pair) for pair in programs], ROUNDS, TURN_SECONDS)
    return [seconds / (side.plies * side.batch) * 1e6 for seconds in times]


def _row(case: str, values: Sequence[float], in_pgx: bool, unit: str = "us") -> dict[str, Any]:
    """Returns a row of ours, and pgx's if it has the game."""
    name = f"pgx {importlib.metadata.version('pgx')}" if in_pgx else "not in pgx"
    return comparison(case, values[0], values[1] if in_pgx else None, name, unit, lower_is_better=True)


def _one_state(rules: Rules) -> Any:
    return jax.eval_shape(lambda: rules.start(jax.random.key(0), 1))


def _compiled(game: Game) -> dict[str, float]:
    """Compiles step, legal mask and observation of a batch, and counts what is slow on accelerators."""

    def step(states: Any, actions: jax.Array) -> Any:
        after = jax.vmap(game.step)(states, actions)
        return after, our_rules(game).look(after)

    batch = BATCHES[0]
    states = jax.eval_shape(lambda: jax.vmap(game.init)(jax.random.split(jax.random.key(0), batch)))
    with _compiling_anew():
        started = time.perf_counter()
        program = jax.jit(step).lower(states, jax.ShapeDtypeStruct((batch,), jnp.int32)).compile()
        seconds = time.perf_counter() - started
    return {"compile_seconds": round(seconds, 2), **count_operations(program.as_text() or "")}


def count_operations(text: str) -> dict[str, int]:
    """Returns how often each of OPERATIONS stands in a program's HLO text."""
    return {name: len(re.findall(rf"[\]}})] {word}\(", text)) for name, word in OPERATIONS.items()}


@contextlib.contextmanager
def _compiling_anew() -> Generator[None, None, None]:
    """What is compiled inside is not looked up among what earlier processes compiled."""
    before = jax.config.jax_enable_compilation_cache  # ty: ignore[missing-attribute]
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()
