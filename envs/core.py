"""The contract every game keeps: pure functions on one compact, unbatched state; callers vmap.

class MyGame(Game): ...            rules of one's own, see docs/own_game.md
check_game(MyGame())               (envs/check.py) tries every line of this contract
"""

import abc
import dataclasses
import functools
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

State = Any
"""A pytree of arrays: one position. Each game registers its own frozen dataclass with `register_state`."""

T = TypeVar("T")

RULES_BOUND: Any = None
"""Default of the option `max_plies`, which `check_max_plies` replaces by the rules' own bound."""


@dataclass_transform(frozen_default=True)
def register_state(cls: type[T]) -> type[T]:
    """Makes `cls` a frozen dataclass that JAX sees as a pytree whose leaves are the fields."""
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(cls))


class Symmetry(NamedTuple):
    """A transformation that leaves the rules as they are, in the network's (mover's) frame.

    If the network sees `observation(x)` instead of x, then its exact policy is `policy[permutation]` instead of
    policy, and the value is the same.
    """

    observation: Callable[[jax.Array], jax.Array]  # float32[H, W, F] -> float32[H, W, F]
    permutation: np.ndarray  # int16[A]


def absorb(terminated: jax.Array, state: T, next_state: T) -> T:
    """Returns `state` where it was terminated, else `next_state`: the last line of every `step`."""
    return jax.tree.map(lambda old, new: jnp.where(terminated, old, new), state, next_state)


class Game(abc.ABC):
    """Two-player, zero-sum, perfect-information game.

    Player 0 is the colour that normally starts. A terminated state absorbs: `step` changes nothing, the legal mask is
    all False, `to_move` stays. Subclasses are frozen dataclasses whose fields are the game's options.
    """

    id: str
    """The word that `envs.make` takes, options included: "crosshair,size=5"."""
    num_actions: int
    """A."""
    max_legal_actions: int
    """K, the largest number of legal actions a position can have (a proven bound, not a guess)."""
    max_plies: int
    """Upper bound of a game's length, an option (`max_plies: int = RULES_BOUND`); below the rules' own: truncation."""
    observation_shape: tuple[int, int, int]
    """(H, W, F)."""
    has_chance: bool = False
    rules: str = ""
    """The rules for people: what is done in a turn, how the game ends, what moves are called. Paragraphs, and lists
    numbered `1. `; shown in the terminal, on the web page and in docs/games.md."""
    legend: str = ""
    """How `render`'s text is read, in one line for people; empty where it needs no word."""

    @property
    def rules_text(self) -> str:
        """`rules`; of a game without them, what its file and then its class say of themselves at their tops."""
        if self.rules:
            return inspect.cleandoc(self.rules)
        module = inspect.getdoc(sys.modules[type(self).__module__])
        return "\n\n".join(filter(None, (module, self.class_text)))

    @property
    def class_text(self) -> str:
        """What the class says of itself: its options, actions and planes."""
        own = vars(type(self)).get("__doc__")
        # A dataclass without a text has its signature for one.
        return "" if own is None or own.startswith(f"{type(self).__name__}(") else inspect.cleandoc(own)

    @abc.abstractmethod
    def init(self, rng_key: jax.Array) -> State:
        """Returns a starting position. Most games ignore the key."""

    @abc.abstractmethod
    def step(self, state: State, action: jax.Array) -> State:
        """Returns the position after a legal action int32[]. An illegal one gives an undefined, never harmful state."""

    @abc.abstractmethod
    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns bool[A], True where legal; all False once terminated."""

    @abc.abstractmethod
    def to_move(self, state: State) -> jax.Array:
        """Returns int32[], the player (0 or 1) who moves, or who would have moved next when terminated."""

    @abc.abstractmethod
    def terminated(self, state: State) -> jax.Array:
        """Returns bool[]: the game is over, by the rules or by the user's limit on plies."""

    @abc.abstractmethod
    def returns(self, state: State) -> jax.Array:
        """Returns float32[2] in [-1, 1], entry i player i's; zeros until terminated and when truncated."""

    @abc.abstractmethod
    def observe(self, state: State) -> jax.Array:
        """Returns float32[H, W, F]: what the player to move sees, in that player's frame."""

    def truncated(self, state: State) -> jax.Array:
        """Returns bool[]: over by the user's `max_plies` alone, so the result says nothing about who stood better."""
        del state
        return jnp.zeros((), jnp.bool_)

    def legal_actions(self, state: State) -> jax.Array:
        """Returns int16[K], the legal actions in ascending order, padded with -1."""
        return list_true(self.legal_action_mask(state), self.max_legal_actions)

    def policy_index(self, state: State) -> jax.Array:
        """Returns int16[A]: action a's logit is `logits[policy_index[a]]` (identity for most games)."""
        del state
        return jnp.arange(self.num_actions, dtype=jnp.int16)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The game's symmetries in the network's frame, the identity first."""
        return (Symmetry(lambda observation: observation, np.arange(self.num_actions, dtype=np.int16)),)

    def is_chance(self, state: State) -> jax.Array:
        """Returns bool[]: the next event is chance (dice), not a move.

        Then no action is legal and `step` changes nothing, as `step_chance` changes nothing elsewhere. An outcome is
        followed by a move or by the game's end, never by another. `to_move` is whose view `observe` has meanwhile.
        """
        del state
        return jnp.zeros((), jnp.bool_)

    def chance_probs(self, state: State) -> jax.Array:
        """Returns float32[C], the probability of each outcome of a chance state."""
        raise ValueError(f"chance_probs: {self.id} has no chance states; ask has_chance first")

    def step_chance(self, state: State, outcome: jax.Array) -> State:
        """Returns the position after a chance outcome int32[]."""
        raise ValueError(f"step_chance: {self.id} has no chance states; ask has_chance first")

    def action_name(self, action: int) -> str:
        """Returns the move as people write it (host side)."""
        return str(action)

    def parse_action(self, text: str) -> int:
        """Returns the action that `text` names (host side).

        Raises:
          ValueError: `text` names no action of this game.
        """
        try:
            return _actions_by_name(self)[text.strip().lower()]
        except KeyError:
            example = self.action_name(0)
            raise ValueError(f"move: got {text!r}, expected one of this game's moves, such as {example!r}") from None

    def move_name(self, state: State, action: int) -> str:
        """Returns a move of this position as people write it (host side): where names depend on who moves."""
        del state
        return self.action_name(action)

    def parse_move(self, state: State, text: str) -> int:
        """Returns the action that `text` names in this position (host side); it need not be legal.

        Raises:
          ValueError: `text` names no move.
        """
        del state
        return self.parse_action(text)

    def parse_position(self, text: str) -> State:
        """Returns the position that `text` describes, in the notation usual for the game (host side).

        Raises:
          ValueError: `text` is malformed, or the game has no such notation.
        """
        raise ValueError(f"position: got {text!r}, but {self.id} has no notation for positions; expected moves")

    def without_past(self, state: State) -> State:
        """Returns the position as if nothing had led to it (host side), for those who play on after its end.

        Raises:
          ValueError: the game has no such thing.
        """
        raise ValueError(f"position: {self.id} cannot go on after its end")

    def render(self, state: State) -> str:
        """Returns the board as text (host side, one position)."""
        return str(state)


@functools.lru_cache(maxsize=64)
def _actions_by_name(game: Game) -> dict[str, int]:
    return {game.action_name(action).lower(): action for action in range(game.num_actions)}


def check_max_plies(max_plies: int | None, bound: int) -> int:
    """Returns the limit to use: the rules' own `bound`, or the user's smaller one.

    Raises:
      ValueError: `max_plies` is not positive.
    """
    if max_plies is None:
        return bound
    if isinstance(max_plies, bool) or not isinstance(max_plies, int) or max_plies < 1:
        raise ValueError(f"max_plies: got {max_plies!r}, expected a whole number of at least 1")
    return min(max_plies, bound)


def num_bytes(tree: Any) -> int:
    """Returns the bytes of arrays, or of the shapes that stand for them; of typed keys, those of their data."""
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def state_bytes(game: Game) -> int:
    """Returns the bytes of one state."""
    return num_bytes(jax.eval_shape(game.init, jax.eval_shape(lambda: jax.random.key(0))))


def game_id(name: str, game: Any, plies: int, named: Sequence[str] = ()) -> str:
    """Returns `name` with the options of a game (a dataclass) that are not the default: "crosshair,size=5".

    Args:
      plies: the rules' own bound, which is what max_plies holds when the user set no limit.
      named: options that `name` itself says.
    """
    words = [name]
    for option in dataclasses.fields(game):
        value = getattr(game, option.name)
        default = plies if option.name == "max_plies" else option.default
        if value != default and option.name not in named:
            words.append(f"{option.name}={option_text(value)}")
    return ",".join(words)


def options_of(game: Any) -> dict[str, Any]:
    """Returns a game's options and their values: the fields of its record that a word can set."""
    if not dataclasses.is_dataclass(game):
        return {}
    values = {field.name: getattr(game, field.name) for field in dataclasses.fields(game) if field.init}
    return {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}


def option_text(value: Any) -> str:
    """Returns an option's value as a game's word has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def list_true(mask: jax.Array, size: int) -> jax.Array:
    """Returns int16[size], where `mask` bool[A] is True, in ascending order (the first `size`), padded with -1.

    Neither a sort nor a scan over A, and no lookup by index: entry k finds its word of 32 bits by how many are set in
    the words before, and its bit by halving. On a CPU 1.1 us beside the mask itself for 362 actions, and 13 for
    `nonzero`.
    """
    rank = np.arange(size, dtype=np.int32)
    word, first, rest = jnp.zeros(size, jnp.uint32), jnp.zeros(size, jnp.int32), jnp.full(size, 32, jnp.int32)
    before = jnp.int32(0)
    for start in range(0, mask.shape[0], 32):
        part = mask[start : start + 32]
        bits = jnp.uint32(1) << np.arange(part.shape[0], dtype=np.uint32)
        packed = jnp.sum(jnp.where(part, bits, jnp.uint32(0)), dtype=jnp.uint32)
        here = rank >= before
        word, first = jnp.where(here, packed, word), jnp.where(here, start, first)
        rest = jnp.where(here, rank - before, rest)
        before = before + jax.lax.population_count(packed).astype(jnp.int32)
    for half in (16, 8, 4, 2, 1):
        lower = jax.lax.population_count(word & np.uint32((1 << half) - 1)).astype(jnp.int32)
        above = rest >= lower
        word, first = jnp.where(above, word >> half, word), jnp.where(above, first + half, first)
        rest = jnp.where(above, rest - lower, rest)
    return jnp.where(rank < before, first, -1).astype(jnp.int16)


def two_player_returns(decided: jax.Array, winner: jax.Array) -> jax.Array:
    """Returns float32[2]: where `decided` bool[], 1 for the winner int32[] and -1 for the other; else zeros."""
    value = jnp.where(decided, 1 - 2 * winner, 0).astype(jnp.float32)
    return jnp.stack([value, -value])


def stack_planes(planes: Sequence[jax.Array]) -> jax.Array:
    """Returns float32[H, W, F] of F planes of float32[H, W]."""
    # One flat concatenation, then a move of the plane axis: on a CPU about twice as fast as a stack along the last axis
    # (307 against 574 ns a position of 81 squares and 6 planes, a product with 8 columns included).
    flat = jnp.concatenate([plane.reshape(-1) for plane in planes])
    return jnp.moveaxis(flat.reshape(len(planes), *planes[0].shape), 0, -1)


def square_name(index: int, columns: int) -> str:
    """Returns the name of a square of a board: column letter from the left, row number from the top ("a1")."""
    row, column = divmod(index, columns)
    return f"{column_name(column)}{row + 1}"


def column_name(column: int) -> str:
    """Returns a, b, ..., z, aa, ab, ..."""
    name = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(ord("a") + letter) + name
    return name
