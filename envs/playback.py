"""Records played again: is every move legal, and is the result the one that the rules give?"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.core import Game, State
from envs.random_games import apply_event
from envs.record import GameRecord

_LANES = 256  # games side by side, at most
_ROUNDING = 1e-6  # of a return that was written as a decimal


def check_records(
    game: Game, records: Sequence[GameRecord], places: Sequence[str] | None = None, *, results: bool = True
) -> None:
    """Plays every record again, from `init(key(0))`.

    Args:
      game: the rules.
      records: games of it.
      places: what messages call each record; None: "game 1", "game 2", ...
      results: also require that a game ends as its record says. Without it the result stands as recorded, such as one
        that people agreed on.

    Raises:
      ValueError: "PLACE: ply N: ...": a record of another game, a move that is not legal there, or another result.
    """
    places = [f"game {number}" for number in range(1, len(records) + 1)] if places is None else places
    for place, record in zip(places, records, strict=True):
        if record.game != game.id:
            raise ValueError(f"{place}: got a record of {record.game}, expected one of {game.id}")
    for start in range(0, len(records), _LANES):
        chunk = slice(start, start + _LANES)
        _check_chunk(game, records[chunk], places[chunk], results)


def _check_chunk(game: Game, records: Sequence[GameRecord], places: Sequence[str], results: bool) -> None:
    # Few different widths, each of which is compiled once.
    width = min(_LANES, 4 ** math.ceil(math.log(len(records), 4)))
    init, advance, look = _programs(game)
    state, plies = init(width), [len(record.actions) for record in records]
    for ply in range(max(plies)):
        events = np.full(width, -1, np.int32)
        events[: len(records)] = [record.actions[ply] if ply < len(record.actions) else -1 for record in records]
        before = state
        state, allowed, over, waits = advance(before, events)
        for lane in np.flatnonzero(~np.asarray(allowed))[:1]:
            event = int(events[lane])
            what = _event_text(game, jax.tree.map(lambda leaf, lane=lane: leaf[lane], before), event)
            if over[lane]:
                why = "the game was over"
            elif game.has_chance and bool(waits[lane]) != (event >= game.num_actions):
                why = f"expected {'an outcome of the dice' if waits[lane] else 'a move'}"
            else:
                why = "which is not legal there"
            raise ValueError(f"{places[lane]}: ply {ply + 1}: got {what}, {why}")
    if results:
        over, truncated, returns = map(np.asarray, look(state))
        for lane, (record, place) in enumerate(zip(records, places, strict=True)):
            _check_end(record, place, bool(over[lane]), bool(truncated[lane]), returns[lane].tolist())


def _check_end(record: GameRecord, place: str, over: bool, truncated: bool, returns: list[float]) -> None:
    place = f"{place}: ply {len(record.actions)}"
    seen = "plies" if truncated else "rules" if over else "unfinished"
    expected = record.end if record.end in ("rules", "plies") else "unfinished"
    if seen != expected:
        said = {"rules": "the game is over", "plies": "the game is cut off", "unfinished": "the game goes on"}[seen]
        raise ValueError(f"{place}: {said}, but the record's end is {record.end!r}")
    if over and record.returns is not None and not np.allclose(returns, record.returns, rtol=0, atol=_ROUNDING):
        raise ValueError(f"{place}: the record's returns are {list(record.returns)}, but the rules give {returns}")


def _event_text(game: Game, state: State, event: int) -> str:
    if event < game.num_actions:
        return game.move_name(state, event)
    return f"outcome {event - game.num_actions}" if game.has_chance else f"action {event}"


@functools.lru_cache
def _programs(game: Game) -> tuple[Callable[[int], State], Callable[..., Any], Callable[[State], Any]]:
    """Returns init(width), and compiled advance(states, events int32[B], -1 to stay) -> (states, allowed, over, waits)
    and look(states) -> (over, truncated, returns).
    """

    def start(rng_keys: jax.Array) -> State:
        return jax.vmap(game.init)(rng_keys)

    def advance(state: State, event: jax.Array) -> tuple[State, jax.Array, jax.Array, jax.Array]:
        over, waits = game.terminated(state), game.is_chance(state)
        move, outcome = jnp.minimum(event, game.num_actions - 1), event - game.num_actions
        allowed = game.legal_action_mask(state)[move] & (event < game.num_actions)
        if game.has_chance:
            probs = game.chance_probs(state)
            drawn = jnp.clip(outcome, 0, probs.shape[0] - 1)
            possible = (outcome == drawn) & (probs[drawn] > 0)
            allowed, move = jnp.where(waits, possible, allowed), jnp.where(waits, drawn, move)
        moved = apply_event(game, state, move)
        played = event >= 0
        state = jax.tree.map(lambda old, new: jnp.where(played, new, old), state, moved)
        return state, allowed & ~over | ~played, over, waits

    def look(state: State) -> tuple[jax.Array, jax.Array, jax.Array]:
        return game.terminated(state), game.truncated(state), game.returns(state)

    compiled_start = jax.jit(start)
    return (
        lambda width: compiled_start(jnp.broadcast_to(jax.random.key(0), (width,))),
        jax.jit(jax.vmap(advance)),
        jax.jit(jax.vmap(look)),
    )
