"""Both ways between azjax's games and pgx (Koyamada et al. 2023).

pgx is imported inside the functions: its import starts the JAX backend, after which devices cannot be configured.
"""

import dataclasses
import functools
import html
import sys
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np

from envs.core import RULES_BOUND, Game, State, absorb, check_max_plies, register_state

_NOT_SUITABLE = {
    "kuhn_poker": "its cards are hidden",
    "leduc_holdem": "its cards are hidden",
    "backgammon": "its dice are drawn inside step",
}
_PLY_BOUNDS = {"tic_tac_toe": 9, "connect_four": 42, "othello": 120, "hex": 122}  # those whose classes do not say


@register_state
class PgxState:
    """One position of a pgx environment, without what can be worked out again."""

    env_state: Any  # pgx's State; observation, legal_action_mask and rewards are None
    legal_words: tuple[jax.Array, ...]  # each uint32[]: the legal actions, 32 a word
    returns: jax.Array  # float32[2], rewards so far, entry i player i's
    first: jax.Array  # int8[], pgx's name (0 or 1) for player 0, the one who moved first


@dataclasses.dataclass(frozen=True)
class PgxGame(Game):
    """A two-player environment of pgx as a Game. Actions and observations are pgx's own."""

    env: Any  # pgx's Env
    max_plies: int = RULES_BOUND

    def __post_init__(self):
        if self.env.num_players != 2:
            raise ValueError(f"game {self.id}: got a game of {self.env.num_players} players, expected 2")
        bound = _ply_bound(self.env)
        if bound is None and self.max_plies is None:
            raise ValueError(
                f"{self.id}: max_plies: it states no longest game: say max_plies=NUMBER, where it is cut off"
            )
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, sys.maxsize if bound is None else bound))
        try:
            jax.eval_shape(self.step, self._shapes, jax.ShapeDtypeStruct((), jnp.int32))
        except Exception as error:
            cause = (str(error).splitlines() or [type(error).__name__])[0]
            raise ValueError(f"game {self.id}: its step(state, action) fails: {cause}") from error

    @property
    def id(self) -> str:
        bound = _ply_bound(self.env)
        limited = self.max_plies is not None and self.max_plies != bound
        return f"pgx:{self.env.id}" + (f",max_plies={self.max_plies}" if limited else "")

    @property
    def rules_text(self) -> str:
        return (
            f"The rules, actions and planes are those of the environment {self.env.id} of pgx, whose pages tell them."
        )

    @functools.cached_property
    def _env_shapes(self) -> Any:
        with jax.numpy_rank_promotion("allow"):
            return jax.eval_shape(self.env.init, jax.eval_shape(lambda: jax.random.key(0)))

    @functools.cached_property
    def _shapes(self) -> Any:
        return jax.eval_shape(self.init, jax.eval_shape(lambda: jax.random.key(0)))

    @functools.cached_property
    def num_actions(self) -> int:
        return self._env_shapes.legal_action_mask.shape[0]

    @property
    def max_legal_actions(self) -> int:
        return self.num_actions

    @functools.cached_property
    def observation_shape(self) -> tuple[int, int, int]:
        """pgx's shape with ones in front of it, or its leading axes as one, where it has not three axes."""
        shape = self._env_shapes.observation.shape
        return (1,) * (3 - len(shape)) + shape if len(shape) <= 3 else (int(np.prod(shape[:-2])), *shape[-2:])

    def init(self, rng_key: jax.Array) -> PgxState:
        with jax.numpy_rank_promotion("allow"):
            env_state = self.env.init(rng_key)
        first = env_state.current_player.astype(jnp.int8)
        state = self._compact(env_state, jnp.zeros(2, jnp.float32), first)
        # Some fields are Python numbers or of weak type: step would change them.
        return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, jnp.result_type(leaf)), state)

    def step(self, state: PgxState, action: jax.Array) -> PgxState:
        with jax.numpy_rank_promotion("allow"):  # pgx's chess broadcasts (513, 2) against (2,)
            env_state = self.env.step(self._expanded(state), action)
        rewards = jnp.where(state.first == 0, env_state.rewards, env_state.rewards[::-1])
        moved = self._compact(env_state, state.returns + rewards, state.first)
        moved = jax.tree.map(lambda old, new: jnp.asarray(new, old.dtype), state, moved)
        return absorb(self.terminated(state), state, moved)

    def legal_action_mask(self, state: PgxState) -> jax.Array:
        return self._unpacked(state) & ~self.terminated(state)

    def to_move(self, state: PgxState) -> jax.Array:
        return (state.env_state.current_player != state.first).astype(jnp.int32)

    def terminated(self, state: PgxState) -> jax.Array:
        return self._ended(state) | (state.env_state._step_count >= self.max_plies)

    def truncated(self, state: PgxState) -> jax.Array:
        return ~self._ended(state) & (state.env_state._step_count >= self.max_plies)

    def returns(self, state: PgxState) -> jax.Array:
        return jnp.where(self._ended(state), state.returns, 0)

    def observe(self, state: PgxState) -> jax.Array:
        with jax.numpy_rank_promotion("allow"):
            observation = self.env.observe(self._expanded(state))
        return observation.astype(jnp.float32).reshape(self.observation_shape)

    def render(self, state: PgxState) -> str:
        env_state = state.env_state
        for source in (env_state, getattr(env_state, "_x", None)):
            for name in ("to_fen", "_to_fen", "to_sfen", "_to_sfen"):
                if hasattr(source, name):
                    return getattr(source, name)()
        leaves = jax.tree_util.tree_leaves_with_path(env_state)
        return "\n".join(f"{jax.tree_util.keystr(path)[1:]} {np.asarray(leaf)}" for path, leaf in leaves)

    def _ended(self, state: PgxState) -> jax.Array:
        return state.env_state.terminated | state.env_state.truncated

    def _compact(self, env_state: Any, returns: jax.Array, first: jax.Array) -> PgxState:
        mask = jnp.pad(env_state.legal_action_mask, (0, -self.num_actions % 32)).reshape(-1, 32)
        bits = jnp.where(mask, np.uint32(1) << np.arange(32, dtype=np.uint32)[None], jnp.uint32(0))
        words = jnp.sum(bits, axis=-1, dtype=jnp.uint32)
        kept = env_state.replace(observation=None, legal_action_mask=None, rewards=None)
        return PgxState(kept, tuple(words), returns, first)

    def _unpacked(self, state: PgxState) -> jax.Array:
        words = jnp.repeat(jnp.stack(state.legal_words), 32, total_repeat_length=self.num_actions)
        return ((words >> (np.arange(self.num_actions) % 32).astype(np.uint32)) & 1) != 0

    def _expanded(self, state: PgxState) -> Any:
        observation = self._env_shapes.observation
        return state.env_state.replace(
            observation=jnp.zeros(observation.shape, observation.dtype),
            legal_action_mask=self._unpacked(state),
            rewards=jnp.zeros(2, jnp.float32),
        )


def from_pgx(name: Any, max_plies: int = RULES_BOUND) -> PgxGame:
    """Returns a two-player, perfect-information environment of pgx as a Game.

    Player 0 is the one who moves first. Rewards are taken as they are and must end within [-1, 1]. A game that pgx
    ends at its own limit of steps is a draw, as pgx has it; one that `max_plies` ends sooner is truncated.

    Args:
      name: pgx's name, such as "gardner_chess", or a pgx Env.
      max_plies: a shorter limit; needed where neither pgx nor this file knows how long a game can be.

    Raises:
      ValueError: no such environment, or one that is no two-player game of perfect information.
    """
    import pgx

    if isinstance(name, pgx.Env):
        return PgxGame(name, max_plies)
    if reason := _NOT_SUITABLE.get(name):
        raise ValueError(f"game pgx:{name}: {reason}, expected a game of perfect information without chance")
    if name not in pgx.available_envs():
        from envs import expected_names

        suitable = [env for env in pgx.available_envs() if env not in _NOT_SUITABLE]
        raise ValueError(f"game pgx:{name}: got {name!r}, expected {expected_names(name, suitable)}")
    return PgxGame(_make_env(name), max_plies)


@functools.cache
def _make_env(name: Any) -> Any:
    """Returns one Env for each name, so that games made twice are equal."""
    import pgx

    return pgx.make(name)


def _ply_bound(env: Any) -> int | None:
    """Returns the longest game's plies where pgx or `_PLY_BOUNDS` says it."""
    rules = getattr(env, "_game", env)
    for source, name in (
        (rules, "max_termination_steps"),
        (sys.modules[type(rules).__module__], "MAX_TERMINATION_STEPS"),
    ):
        if hasattr(source, name):
            return int(getattr(source, name))
    return _PLY_BOUNDS.get(env.id)


@functools.cache
def as_pgx_env(game: Game) -> Any:
    """Returns the game as a pgx Env, which passes pgx's own API test.

    As in pgx's games, who starts is drawn: pgx's player 0 is the game's player 0 in half of them. Actions keep the
    game's own numbers, observations are those of the player to move. A truncated game is both `terminated` and
    `truncated`. A game with chance needs the key in `step`. The game's id is added to pgx's list of ids (`EnvId`),
    which the API test compares with; `pgx.make` still knows its own alone.
    """
    import pgx
    from pgx._src.struct import dataclass as pgx_dataclass

    game_name = game.id

    @pgx_dataclass
    class GameState(pgx.State):
        current_player: jax.Array
        observation: jax.Array
        rewards: jax.Array
        terminated: jax.Array
        truncated: jax.Array
        legal_action_mask: jax.Array
        _step_count: jax.Array
        _position: State
        _swapped: jax.Array  # bool[], pgx's player 1 is the game's player 0

        @property
        def env_id(self) -> Any:
            return game_name

        def to_svg(self, *, color_theme: str | None = None, scale: float | None = None) -> str:
            return _svg(_rendered(game, self._position), dark=color_theme == "dark", scale=scale or 1.0)

        def save_svg(self, filename: Any, *, color_theme: str | None = None, scale: float | None = None) -> None:
            with open(filename, "w", encoding="utf-8") as file:
                file.write(self.to_svg(color_theme=color_theme, scale=scale))

    class GameEnv(pgx.Env):
        id = property(lambda self: game_name)
        version = property(lambda self: "v0")
        num_players = property(lambda self: 2)
        num_actions = property(lambda self: game.num_actions)
        observation_shape = property(lambda self: game.observation_shape)

        def _init(self, key: jax.Array) -> Any:
            swap_key, init_key, chance_key = jax.random.split(key, 3)
            position = _after_chance(game, game.init(init_key), chance_key)
            return self._state(position, jax.random.bernoulli(swap_key), jnp.int32(0))

        def _step(self, state: Any, action: jax.Array, key: jax.Array | None) -> Any:
            if game.has_chance and key is None:
                raise ValueError(f"{game_name}: step without a key, expected one: the game has chance")
            position = _after_chance(game, game.step(state._position, jnp.asarray(action, jnp.int32)), key)
            return self._state(position, state._swapped, state._step_count)

        def _observe(self, state: Any, player_id: jax.Array) -> jax.Array:
            del player_id
            return game.observe(state._position)

        def _state(self, position: State, swapped: jax.Array, step_count: jax.Array) -> Any:
            returns = game.returns(position)
            return GameState(
                current_player=game.to_move(position) ^ swapped.astype(jnp.int32),
                observation=jnp.zeros(game.observation_shape, jnp.float32),
                rewards=jnp.where(swapped, returns[::-1], returns),
                terminated=game.terminated(position),
                truncated=game.truncated(position),
                legal_action_mask=game.legal_action_mask(position),
                _step_count=step_count,
                _position=position,
                _swapped=swapped,
            )

    if game_name not in get_args(pgx.EnvId):
        known: Any = pgx.EnvId
        known.__args__ = (*get_args(known), game_name)
    return GameEnv()


def _after_chance(game: Game, state: State, rng_key: Any) -> State:
    """Returns the state after all the chance events that come next; rng_key may be None in a game without chance."""
    if not game.has_chance:
        return state

    def draw(carry: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
        state, rng_key = carry
        rng_key, draw_key = jax.random.split(rng_key)
        outcome = jax.random.categorical(draw_key, jnp.log(game.chance_probs(state)))
        return game.step_chance(state, outcome.astype(jnp.int32)), rng_key

    return jax.lax.while_loop(lambda carry: game.is_chance(carry[0]), draw, (state, rng_key))[0]


def _rendered(game: Game, positions: State) -> list[str]:
    """Returns the lines of one position, or of a batch of positions, one under the other."""
    batched = jnp.ndim(game.terminated(positions)) == 1
    if not batched:
        return game.render(positions).splitlines()
    boards = [game.render(jax.tree.map(lambda leaf, i=i: leaf[i], positions)) for i in range(_length(positions))]
    return "\n\n".join(boards).splitlines()


def _length(positions: State) -> int:
    return jax.tree.leaves(positions)[0].shape[0]


def _svg(lines: list[str], dark: bool, scale: float) -> str:
    """Returns text as an SVG picture."""
    width, height = 9 * max(map(len, lines)) + 20, 18 * len(lines) + 20
    paper, ink = ("#1e1e1e", "#f5f5f5") if dark else ("#ffffff", "#000000")
    spans = (f'<tspan x="10" y="{18 * n + 22}">{html.escape(line)}</tspan>' for n, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * scale}" height="{height * scale}" '
        f'viewBox="0 0 {width} {height}"><rect width="100%" height="100%" fill="{paper}"/>'
        f'<text xml:space="preserve" font-family="monospace" font-size="15" fill="{ink}">{"".join(spans)}</text></svg>'
    )
