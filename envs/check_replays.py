"""Checks that play random games again: alone, without jit, transformed by the symmetries, under a limit of plies."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.core import Game, State
from envs.random_games import Position, apply_event, look


class PlayedGames(NamedTuple):
    """B random games of T events (moves or chance outcomes), each with two events at least after its end."""

    init_keys: jax.Array  # key[B]
    events: np.ndarray  # int32[T, B]
    chance: np.ndarray  # bool[T, B], the event is a chance outcome
    playing: np.ndarray  # bool[T, B], the event comes before the game's end
    legal_counts: np.ndarray  # int32[T, B]
    states: list[State]  # T states of game 0
    positions: list[Position]  # T positions of game 0
    end: Position  # [B, ...], the last positions

    @property
    def plies(self) -> np.ndarray:
        """int32[B], the moves of each game."""
        return (self.playing & ~self.chance).sum(0)

    @property
    def length(self) -> int:
        """The events of game 0 until its end."""
        return int(self.playing[:, 0].sum())


class _Cut(NamedTuple):
    """What a game under a limit of plies says at each event."""

    terminated: np.ndarray  # bool[T]
    truncated: np.ndarray  # bool[T]
    returns: np.ndarray  # float32[T, 2]
    to_move: np.ndarray  # int32[T]
    any_legal: np.ndarray  # bool[T]


def require(holds: Any, game: Game, rule: str, where: str, message: str) -> None:
    """Raises AssertionError "GAME: RULE: WHERE: MESSAGE" unless `holds`."""
    if not holds:
        raise AssertionError(f"{game.id}: {rule}: {where}: {message}")


def check_alone(game: Game, played: PlayedGames) -> None:
    """Requires that game 0, played again by itself and not in a batch, is the same at every event."""
    step, look_alone = jax.jit(functools.partial(apply_event, game)), jax.jit(functools.partial(look, game))
    state = jax.jit(game.init)(played.init_keys[0])
    for event in range(played.length + 1):
        where = f"game 0 after {event} events"
        _check_equal(game, "vmap equals single", where, played.states[event], state)
        _check_equal(game, "vmap equals single", where, played.positions[event], look_alone(state))
        state = step(state, jnp.asarray(played.events[event, 0], jnp.int32))


def check_eager(game: Game, played: PlayedGames) -> None:
    """Requires that the middle move of game 0 is the same without jit."""
    event = (played.length - 1) // 2
    where = f"game 0 after {event} events"
    state = jax.tree.map(jnp.asarray, played.states[event])
    _check_equal(game, "jit equals eager", where, look(game, state), played.positions[event])
    after = apply_event(game, state, jnp.asarray(played.events[event, 0], jnp.int32))
    _check_equal(game, "jit equals eager", f"{where} and one more", after, played.states[event + 1])


def _check_equal(game: Game, rule: str, where: str, a: Any, b: Any) -> None:
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(a), jax.tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        same = np.allclose(x, y, atol=1e-6) if np.issubdtype(x.dtype, np.floating) else np.array_equal(x, y)
        require(same, game, rule, f"{where}{jax.tree_util.keystr(path)}", f"{x.tolist()} is not {y.tolist()}")


def check_symmetries(game: Game, played: PlayedGames) -> int:
    """Plays the games transformed: at every event the observation, the policy's frame and the result must follow."""
    symmetries = game.symmetries
    actions = np.arange(game.num_actions)
    observation = jnp.asarray(played.positions[0].observation)
    require(symmetries, game, "symmetries", "declaration", "none, expected the identity at least")
    for number, symmetry in enumerate(symmetries):
        where = f"symmetry {number}"
        permutation = np.asarray(symmetry.permutation)
        typed = (permutation.dtype, permutation.shape) == (np.int16, actions.shape)
        got = f"{permutation.dtype}{list(permutation.shape)}"
        require(typed, game, "symmetries", where, f"its permutation is {got}, expected int16{list(actions.shape)}")
        permuted = np.array_equal(np.sort(permutation), actions)
        require(permuted, game, "symmetries", where, f"its permutation is not one of 0 to {game.num_actions - 1}")
        seen = jax.eval_shape(symmetry.observation, observation)
        same = (seen.shape, seen.dtype) == (observation.shape, observation.dtype)
        require(same, game, "symmetries", where, f"it makes {seen.dtype}{list(seen.shape)} of an observation")
    identity = np.array_equal(symmetries[0].permutation, actions)
    changed = np.asarray(symmetries[0].observation(observation)) != np.asarray(observation)
    require(identity and not changed.any(), game, "symmetries", "symmetry 0", "expected the identity first")
    if game.has_chance:
        return 0
    kept = [n for n, s in enumerate(symmetries) if np.array_equal(s.observation(observation), observation)]
    lanes = min(len(played.plies), 4)
    permutations = np.stack([np.asarray(symmetry.permutation, np.int32) for symmetry in symmetries])
    # The same transformation of the board may be another symmetry in the frame of the other player (Crosshair's is
    # transposed), so each is paired with each, (in the starter's frame, in the other's): one must follow whole games.
    pairs = np.array([(a, b) for a in kept for b in range(len(symmetries))])

    def network_mask(position: Position) -> jax.Array:
        return jnp.zeros_like(position.legal_action_mask).at[position.policy_index].set(position.legal_action_mask)

    def replay(init_key: jax.Array, events: jax.Array) -> jax.Array:
        """Returns bool[T, pairs]: the transformed game follows. Pair 0 is the identity's: the game itself."""
        start = game.init(init_key)
        starter = game.to_move(start)

        def body(state: State, event: jax.Array) -> tuple[State, jax.Array]:
            position = jax.vmap(functools.partial(look, game))(state)
            masks = jax.vmap(network_mask)(position)
            transformed = jnp.stack([symmetry.observation(position.observation[0]) for symmetry in symmetries])
            number = jnp.where(position.to_move[0] == starter, pairs[:, 0], pairs[:, 1])
            permutation = jnp.asarray(permutations)[number]
            follows = (
                (jnp.abs(position.observation - transformed[number]) < 1e-6).all((1, 2, 3))
                & (masks == masks[0][permutation]).all(-1)
                & (position.returns == position.returns[:1]).all(-1)
                & (position.terminated == position.terminated[0])
                & (position.to_move == position.to_move[0])
            )
            entries = jnp.argmax(permutation == position.policy_index[0][event], axis=-1)
            moves = jnp.argmax(position.policy_index == entries[:, None], axis=-1).astype(jnp.int32)
            return jax.vmap(game.step)(state, moves), follows

        states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(pairs), *leaf.shape)), start)
        return jax.lax.scan(body, states, events)[1]

    follows = jax.jit(jax.vmap(replay))(played.init_keys[:lanes], jnp.asarray(played.events.T[:lanes]))
    followed = np.asarray(follows).all(0).cumprod(0).sum(0)  # of each pair, the events until it stops following
    for number in kept:
        longest = followed[pairs[:, 0] == number].max()
        message = "the transformed game's observation, legal moves or result are not the game's, transformed"
        require(longest == len(played.events), game, "symmetries", f"symmetry {number} after {longest} events", message)
    return len(kept)


def check_truncation(game: Game, played: PlayedGames) -> None:
    """Plays the shortest game again under a limit of half its plies, and under one of exactly its plies."""
    limited = dataclasses.is_dataclass(game) and any(field.name == "max_plies" for field in dataclasses.fields(game))
    require(limited, game, "max_plies", "declaration", "expected an option of this name (the game's dataclass field)")
    finished = np.where(played.end.truncated, game.max_plies + 1, played.plies)
    lane = int(np.argmin(finished))
    plies = int(played.plies[lane])
    events = jnp.asarray(played.events[:, lane])

    def replay(limit: int) -> _Cut:
        short = dataclasses.replace(game, max_plies=limit)  # ty: ignore[invalid-argument-type]

        def body(state: State, event: jax.Array) -> tuple[State, _Cut]:
            legal = short.legal_action_mask(state).any()
            seen = _Cut(
                short.terminated(state), short.truncated(state), short.returns(state), short.to_move(state), legal
            )
            return apply_event(short, state, event), seen

        return jax.device_get(jax.jit(lambda: jax.lax.scan(body, short.init(played.init_keys[lane]), events)[1])())

    chance = played.chance[:, lane]
    moves_before = np.cumsum(~chance) - ~chance  # the plies before each event
    half = max(plies // 2, 1)
    if half < plies:
        seen = replay(half)
        cut = np.cumsum((moves_before >= half) & ~chance) > 0  # from the first move too many on
        where = f"max_plies={half}"
        require(not (seen.truncated & (moves_before < half)).any(), game, "truncated", where, "True before the limit")
        at_limit = seen.truncated[cut] & seen.terminated[cut]
        require(at_limit.all(), game, "truncated", where, "not truncated and terminated from the limit on")
        require((seen.returns[cut] == 0).all(), game, "truncated", where, "returns are not zero")
        require(not seen.any_legal[cut].any(), game, "truncated", where, "there are legal moves")
        same_mover = (seen.to_move[cut] == seen.to_move[cut][0]).all()
        require(same_mover, game, "absorbing", where, "to_move changes after the limit")
    if not played.end.truncated[lane]:
        seen = replay(plies)
        where = f"max_plies={plies}, the length of a whole game"
        require(not seen.truncated.any(), game, "truncated", where, "a game that the rules end is called truncated")
        result = played.end.returns[lane]
        require((seen.returns[-1] == result).all(), game, "truncated", where, f"its returns are not {result}")
