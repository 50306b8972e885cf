"""One test for every game: plays random games and tries each line of the contract in envs/core.py."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import envs
from envs.check_replays import PlayedGames, check_alone, check_eager, check_symmetries, check_truncation, require
from envs.core import Game, State, num_bytes
from envs.random_games import Turn, look, random_games


@dataclasses.dataclass(frozen=True)
class CheckedGame:
    """What `check_game` saw, under uniform random play."""

    id: str
    games: int
    positions: int  # positions in which somebody was to move
    mean_plies: float
    longest: int  # plies of the longest game
    mean_legal_actions: float
    state_bytes: int
    first_player_share: float  # games won by player 0, draws counted half, truncated games left out
    draws: int
    truncated: int
    symmetries: int
    symmetries_replayed: int  # those that keep the starting position, checked by playing games transformed


def check_game(game: Game, games: int = 32, seed: int = 0, thorough: bool = True) -> CheckedGame:
    """Plays random games and raises AssertionError where the game breaks its contract.

    What is not checked: that the rules are the right ones (compare with another implementation), and that
    max_legal_actions and max_plies hold in positions which random play does not reach.

    Args:
      game: any Game; azjax's search assumes that it is zero-sum, so a game that is not fails here.
      games: the number of random games, played side by side.
      seed: of the random moves.
      thorough: also play one game unbatched, and one of its moves outside jit (seconds more, to compile).

    Raises:
      AssertionError: "GAME: RULE: WHERE: what was seen, what was expected".
    """
    _check_declarations(game)
    _check_types(game)
    played = _play(game, games, seed)
    _check_nothing_stored(game, played)
    if thorough:
        check_alone(game, played)
        check_eager(game, played)
    replayed = check_symmetries(game, played)
    check_truncation(game, played)
    _check_text(game, played)
    return _summary(game, played, replayed)


def _check_declarations(game: Game) -> None:
    def declares(holds: Any, rule: str, message: str) -> None:
        require(holds, game, rule, "declaration", message)

    for name in ("num_actions", "max_legal_actions", "max_plies"):
        value = getattr(game, name)
        declares(type(value) is int and value >= 1, name, f"got {value!r}, expected a whole number of at least 1")
    declares(game.num_actions <= np.iinfo(np.int16).max, "num_actions", f"{game.num_actions} actions pass int16")
    declares(game.max_legal_actions <= game.num_actions, "max_legal_actions", f"{game.max_legal_actions} > num_actions")
    shape = game.observation_shape
    sizes = isinstance(shape, tuple) and len(shape) == 3 and all(type(size) is int and size >= 1 for size in shape)
    declares(sizes, "observation_shape", f"got {shape!r}, expected (H, W, F)")
    try:
        hash(game)
    except TypeError as error:
        raise AssertionError(f"{game.id}: hash: declaration: {error}: make it a frozen dataclass") from error
    if game.id.partition(",")[0] in envs.available():
        declares(envs.make(game.id) == game, "id", f"envs.make({game.id!r}) gives another game")


def _check_types(game: Game) -> None:
    state = jax.eval_shape(game.init, jax.eval_shape(lambda: jax.random.key(0)))
    require(jax.tree.leaves(state), game, "state", "init", "no arrays")
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        require(not leaf.weak_type, game, "state", f"init{jax.tree_util.keystr(path)}", "its dtype is weak: say it")
    action = jax.ShapeDtypeStruct((), jnp.int32)
    _check_same_type(game, "step", state, jax.eval_shape(game.step, state, action))
    expected = {
        "legal_action_mask": (jnp.bool_, (game.num_actions,)),
        "legal_actions": (jnp.int16, (game.max_legal_actions,)),
        "to_move": (jnp.int32, ()),
        "terminated": (jnp.bool_, ()),
        "truncated": (jnp.bool_, ()),
        "returns": (jnp.float32, (2,)),
        "observation": (jnp.float32, game.observation_shape),
        "policy_index": (jnp.int16, (game.num_actions,)),
        "is_chance": (jnp.bool_, ()),
    }
    position = jax.eval_shape(functools.partial(look, game), state)
    for name, (dtype, shape) in expected.items():
        got, want = getattr(position, name), jax.ShapeDtypeStruct(shape, dtype)
        same = (got.shape, got.dtype) == (want.shape, want.dtype)
        require(same, game, name, "type", f"got {_type_of(got)}, expected {_type_of(want)}")
    if game.has_chance:
        probs = jax.eval_shape(game.chance_probs, state)
        good = len(probs.shape) == 1 and probs.dtype == jnp.float32
        require(good, game, "chance_probs", "type", f"got {_type_of(probs)}, expected float32[C]")
        _check_same_type(game, "step_chance", state, jax.eval_shape(game.step_chance, state, action))


def _check_same_type(game: Game, rule: str, before: State, after: State) -> None:
    same_tree = jax.tree.structure(before) == jax.tree.structure(after)
    require(same_tree, game, rule, "type", f"the state changes from {jax.tree.structure(before)}")
    for (path, old), new in zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True):
        same = (old.shape, old.dtype, old.weak_type) == (new.shape, new.dtype, new.weak_type)
        weak = " (weak)" if new.weak_type else ""
        where = f"state{jax.tree_util.keystr(path)}"
        require(same, game, rule, where, f"the type changes from {_type_of(old)} to {_type_of(new)}{weak}")


def _type_of(leaf: jax.ShapeDtypeStruct) -> str:
    return f"{leaf.dtype}{list(leaf.shape)}"


def _play(game: Game, games: int, seed: int) -> PlayedGames:
    """Plays games to their ends, and two events more, checking every position."""
    init_keys = jax.random.split(jax.random.key(seed), games)
    plies = np.zeros(games, np.int32)
    before = None
    states, positions, record = [], [], []
    turns_after_end = 0
    chance_moves_nothing_else = _chance_check(game)
    for turn in random_games(game, init_keys, np.random.default_rng(seed)):
        _check_position(game, turn, plies)
        chance_moves_nothing_else(turn)
        if before is not None:
            _check_absorbed(game, before, turn)
            again = before.position.is_chance & turn.position.is_chance
            _require_each(~again, game, "is_chance", turn.number, lambda i: "an outcome is followed by another")
        playing = ~turn.position.terminated
        plies += playing & ~turn.position.is_chance
        states.append(jax.tree.map(lambda leaf: leaf[0].copy(), turn.state))
        positions.append(jax.tree.map(lambda leaf: leaf[0].copy(), turn.position))
        record.append((turn.event, turn.position.is_chance, playing, turn.position.legal_action_mask.sum(-1)))
        turns_after_end += not playing.any()
        if turns_after_end == 3:
            break
        before = turn
    events, chance, playing, legal_counts = (np.stack(column) for column in zip(*record, strict=True))
    return PlayedGames(init_keys, events, chance, playing, legal_counts, states, positions, end=turn.position)


def _check_position(game: Game, turn: Turn, plies: np.ndarray) -> None:
    """Requires each rule of every game; `plies` int32[B] are the moves made so far."""

    def each(holds: Any, rule: str, message: Callable[[int], str]) -> None:
        _require_each(holds, game, rule, turn.number, message)

    position = turn.position
    mask, over, returns = position.legal_action_mask, position.terminated, position.returns
    moving = ~over & ~position.is_chance
    count = mask.sum(-1)
    each((count > 0) | ~moving, "legal_action_mask", lambda i: "no legal move, and not terminated")
    each((count == 0) | ~over, "legal_action_mask", lambda i: f"{count[i]} legal moves after the end, expected none")
    limit = game.max_legal_actions
    each(count <= limit, "max_legal_actions", lambda i: f"{count[i]} legal moves, expected {limit} at most")
    listed = np.full((len(mask), limit), -1)
    for lane, legal in enumerate(mask):
        listed[lane, : count[lane]] = np.flatnonzero(legal)
    slots = position.legal_actions
    same = (listed == slots).all(-1)
    each(same | ~moving, "legal_actions", lambda i: f"got {slots[i].tolist()}, expected {listed[i].tolist()}")
    each(np.isin(position.to_move, (0, 1)), "to_move", lambda i: f"got {position.to_move[i]}, expected 0 or 1")
    bounded, zero_sum = (np.abs(returns) <= 1).all(-1), np.abs(returns.sum(-1)) <= 1e-6
    each(bounded, "returns", lambda i: f"got {returns[i]}, expected values in [-1, 1]: scale them")
    each(
        zero_sum, "returns", lambda i: f"got {returns[i]}, expected a sum of 0: the search knows one value and its sign"
    )
    silent = (returns == 0).all(-1)
    each(silent | over, "returns", lambda i: f"got {returns[i]} before the end, expected zeros")
    each(over | ~position.truncated, "truncated", lambda i: "truncated, but not terminated")
    each(silent | ~position.truncated, "truncated", lambda i: f"returns {returns[i]}, expected zeros")
    each(~(over & position.is_chance), "is_chance", lambda i: "a chance state after the end")
    permuted = (np.sort(position.policy_index, -1) == np.arange(game.num_actions)).all(-1)
    each(permuted, "policy_index", lambda i: f"got {position.policy_index[i]}, expected a permutation of the actions")
    each(np.isfinite(position.observation).all((1, 2, 3)), "observe", lambda i: "not every number is finite")
    within = over | position.is_chance | (plies < game.max_plies)
    each(within, "max_plies", lambda i: f"goes on after {plies[i]} plies, expected {game.max_plies} at most")
    declared, waits = game.has_chance, position.is_chance
    each(declared | ~waits, "is_chance", lambda i: "a chance state, and has_chance says that there are none")
    each(
        ~waits | (count == 0), "legal_action_mask", lambda i: f"{count[i]} legal moves in a chance state, expected none"
    )
    if position.is_chance.any():
        probs = np.asarray(jax.vmap(game.chance_probs)(turn.state))
        proper = (probs >= 0).all(-1) & (np.abs(probs.sum(-1) - 1) < 1e-5)
        each(proper | ~position.is_chance, "chance_probs", lambda i: f"got {probs[i]}, expected probabilities")


def _chance_check(game: Game) -> Callable[[Turn], None]:
    """Returns what requires that `step` changes nothing in a chance state, and `step_chance` nothing elsewhere."""
    if not game.has_chance:
        return lambda turn: None

    def other(state: State, event: jax.Array) -> State:
        waits = game.is_chance(state)
        moved, drawn = game.step(state, event), game.step_chance(state, event)
        return jax.tree.map(lambda a, b: jnp.where(waits, a, b), moved, drawn)

    other_event = jax.jit(jax.vmap(other))
    events = ("step_chance where none is due", "step in a chance state")

    def check(turn: Turn) -> None:
        after = jax.device_get(other_event(turn.state, np.zeros_like(turn.event)))
        for (path, old), new in zip(
            jax.tree_util.tree_leaves_with_path(turn.state), jax.tree.leaves(after), strict=True
        ):
            same = (old == new).reshape(len(turn.event), -1).all(-1)
            leaf = f"state{jax.tree_util.keystr(path)}"

            def message(lane: int, leaf: str = leaf) -> str:
                return f"{events[int(turn.position.is_chance[lane])]} changes the {leaf}"

            _require_each(same, game, "is_chance", turn.number, message)

    return check


def _check_absorbed(game: Game, before: Turn, after: Turn) -> None:
    """Requires that games which were over already are as they were."""
    over = before.position.terminated
    paths = jax.tree_util.tree_leaves_with_path((before.state, before.position))
    for (path, old), new in zip(paths, jax.tree.leaves((after.state, after.position)), strict=True):
        same = (old == new).reshape(len(over), -1).all(-1)
        leaf = f"{('state', 'position')[path[0].idx]}{jax.tree_util.keystr(path[1:])}"
        message = f"a step after the end changes the {leaf}"
        _require_each(same | ~over, game, "absorbing", after.number, lambda _, message=message: message)


def _require_each(holds: Any, game: Game, rule: str, number: int, message: Callable[[int], str]) -> None:
    """Requires a condition bool[B] of every game; `message` gets the first game that breaks it."""
    if not holds.all():
        lane = int(np.argmin(holds))
        require(False, game, rule, f"game {lane} after {number} events", message(lane))


def _check_nothing_stored(game: Game, played: PlayedGames) -> None:
    """Requires that no leaf of the state is the observation or the legal mask: they are computed when asked for."""
    for path, _ in jax.tree_util.tree_leaves_with_path(played.states[0]):
        leaves = [dict(jax.tree_util.tree_leaves_with_path(state))[path] for state in played.states]
        for name in ("observation", "legal_action_mask"):
            seen = [getattr(position, name) for position in played.positions]
            if (leaves[0].shape, leaves[0].dtype) == (seen[0].shape, seen[0].dtype):
                stored = all((leaf == value).all() for leaf, value in zip(leaves, seen, strict=True))
                message = f"it holds the {name}, which every stored position then pays for"
                require(not stored, game, "state", jax.tree_util.keystr(path), message)


def _check_text(game: Game, played: PlayedGames) -> None:
    for action in np.unique(played.events[played.playing & ~played.chance])[:64].tolist():
        name = game.action_name(action)
        try:
            parsed = game.parse_action(name)
        except ValueError as error:
            raise AssertionError(f"{game.id}: parse_action: {name!r}: refused: {error}") from error
        require(parsed == action, game, "parse_action", repr(name), f"got {parsed}, expected {action}")
    for event in (0, played.length):
        text = game.render(jax.tree.map(jnp.asarray, played.states[event]))
        require(isinstance(text, str) and text, game, "render", f"game 0 after {event} events", f"got {text!r}")


def _summary(game: Game, played: PlayedGames, replayed: int) -> CheckedGame:
    finished = ~played.end.truncated
    first_returns = played.end.returns[finished, 0]
    moving = played.playing & ~played.chance
    return CheckedGame(
        id=game.id,
        games=len(played.plies),
        positions=int(moving.sum()),
        mean_plies=float(played.plies.mean()),
        longest=int(played.plies.max()),
        mean_legal_actions=float(played.legal_counts[moving].mean()),
        state_bytes=num_bytes(played.states[0]),
        first_player_share=float((1 + first_returns).mean() / 2) if finished.any() else float("nan"),
        draws=int((first_returns == 0).sum()),
        truncated=int((~finished).sum()),
        symmetries=len(game.symmetries),
        symmetries_replayed=replayed,
    )
