"""An agent that follows one game and thinks about its position in short slices, keeping its tree from move to move.

For whoever must listen while it thinks: the servers of engine protocols, the web page, matches by the clock.
"""

import functools
import math
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.players import LoadedRun
from azjax.search import Model, TreeSearch, num_slots
from azjax.selfplay import network_model
from azjax.types import Variables
from envs.core import Game, State
from envs.go import Go

SLICE_SECONDS = 0.1
"""What a slice may take: `stop` waits for one."""
SHORTEST_SECONDS = 0.02
"""Less is no time limit for a slice: what is not the search takes a part of it."""
_MOST_A_SLICE = 1024  # simulations
_FIRST_SLICE = 8
_FEWEST_NODES, _MOST_NODES = 64, 1 << 20


class MoveLine(NamedTuple):
    """A move and what is expected after it; the view of the player to move."""

    visits: int
    q: float  # in [-1, 1]
    prior: float
    moves: tuple[str, ...]  # by Game.move_name


class Thought(NamedTuple):
    """What is known of a position; the view of the player to move."""

    value: float  # in [-1, 1]
    simulations: int  # those kept from before included
    lines: tuple[MoveLine, ...]  # the best first


class Thinker:
    """PUCT by a run's agent, without noise: the same positions and numbers of simulations give the same moves."""

    def __init__(
        self,
        game: Game,
        agent: LoadedRun,
        *,
        megabytes: int = 64,
        seed: int = 0,
        wave: int = 1,
        clock: Callable[[], float] = time.perf_counter,
    ):
        """Takes the start of a game for its position; nothing is compiled before `warm_up` or `think`.

        Args:
          game: the rules; without dice.
          agent: whose network evaluates.
          megabytes: what the tree may take, which sets how many simulations it holds.
          seed: of random evaluations.
          wave: positions that are evaluated at a time; see `use_wave`.
          clock: seconds; slices are measured by it.

        Raises:
          ValueError: the game has dice.
        """
        if game.has_chance:
            raise ValueError(f"game: got {game.id}, expected one without dice")
        config = agent.config
        self.game, self._variables = game, agent.variables
        self.simulations = config.search.simulations
        """What the run itself searches."""
        self._seed, self._clock = seed, clock
        search = config.search
        self._node_bytes = node_bytes(game, search.slots)
        self._capacity = self._most = self._nodes(megabytes)
        model = network_model(config, game)
        self._model = _with_komi(game, model) if isinstance(game, Go) else model
        self._params = self._params_of(game.komi) if isinstance(game, Go) else agent.variables
        self._config, self._wave = search, wave
        self._search = self._new_search()
        self._step, self._legal, self._over = map(jax.jit, (game.step, game.legal_action_mask, game.terminated))
        moves = getattr(game, "moves", None)  # of chess and shogi: before any rule that ends the game
        self._moves = jax.jit(moves) if moves is not None else None
        self._states: list[State] = [game.init(jax.random.key(0))]
        self._actions: list[int] = []
        self._words: list[str] = []
        self._start: str | None = None
        self._root: int | None = None  # the position, counted in moves from the start, that the tree is of
        self._only: list[int] | None = None
        self._is_warm = False
        self._slice = _FIRST_SLICE  # simulations

    def use_komi(self, komi: float) -> None:
        """Plays Go by another komi from now on, though the network knows its own; drops the tree."""
        self._params = self._params_of(komi)
        self._search.use(self._params)
        self._root = None

    def use_wave(self, wave: int) -> None:
        """Evaluates so many positions at a time from now on (`grow_wave`): quicker where a batch costs less than its
        parts, weaker for the same number of simulations. Another number than before drops the tree and compiles anew.
        """
        if wave != self._wave:
            self._wave, self._root, self._is_warm, self._slice = wave, None, False, _FIRST_SLICE
            self._search = self._new_search()

    @property
    def capacity(self) -> int:
        """Simulations that the tree holds."""
        return self._most

    @property
    def room(self) -> int:
        """Simulations that can still be added to what is known of the position."""
        if self.over:
            return 0
        self._go_to_root()
        return max(self._search.room - (self._capacity - self._most), 0)

    def drop(self) -> None:
        """Drops the tree."""
        self._root = None

    def area(self) -> int:
        """Returns in Go Black's area on the board as it stands less White's."""
        assert isinstance(self.game, Go)
        return int(_area(self.game)(self.state))

    def use_megabytes(self, megabytes: int) -> None:
        """Lets the tree take no more than this, of what was set aside for it."""
        self._most = min(self._nodes(megabytes), self._capacity)

    def _params_of(self, komi: float) -> tuple[Variables, jax.Array]:
        return self._variables, jnp.float32(komi)

    def _new_search(self) -> TreeSearch:
        search = self._config
        return TreeSearch(
            self.game,
            self._model,
            self._params,
            capacity=self._capacity,
            chunk=_MOST_A_SLICE,
            wave=self._wave,
            c_init=search.c_init,
            c_base=search.c_base,
            c_puct=search.c_puct,
            slots=search.slots,
        )

    def _nodes(self, megabytes: int) -> int:
        return max(_FEWEST_NODES, min(_MOST_NODES, megabytes * 2**20 // self._node_bytes))

    @property
    def state(self) -> State:
        """The position."""
        return self._states[-1]

    @property
    def words(self) -> tuple[str, ...]:
        """The moves from the start to the position, as they were given."""
        return tuple(self._words)

    @property
    def to_move(self) -> int:
        """Player 0 or 1."""
        return int(self.game.to_move(self.state))

    def any_move(self) -> str | None:
        """Returns a move of a position that is over, where there is one all the same, as where nobody can mate."""
        legal = np.flatnonzero(self._moves(self.state)) if self._moves is not None else []
        return self.game.move_name(self.state, int(legal[0])) if len(legal) else None

    @property
    def over(self) -> bool:
        """Whether there is no move to make in the position, even if its past is forgotten."""
        return not self._legal(self.state).any()

    def legal_words(self) -> list[str]:
        """Returns the legal moves of the position by name."""
        return [self.game.move_name(self.state, int(action)) for action in np.flatnonzero(self._legal(self.state))]

    def warm_up(self) -> None:
        """Compiles what thinking needs, so that the next `think` is short; not in a position that is over."""
        if self._is_warm or self.over:
            return
        self._is_warm = True
        self._go_to_root()
        self._search.grow(2)
        # What a move needs: its line by name, the position after it, the tree below it; and what a position needs that
        # comes as text, or that the rules or mate have ended, or some of whose moves alone are asked for: op by op,
        # chess compiles for more than a second.
        best = self._search.look().action
        word, _ = self._names([best, best])
        _ = self.to_move
        self._going_on(self._step(self.state, jnp.int32(self._parsed(self.state, word, "move"))))
        self._without_past(self.state)
        self.any_move()
        self._search.advance(best)
        self._search.start(self.state, self._seed, [best])
        self._root = None

    def place(self, start: str | None, words: Sequence[str]) -> None:
        """Goes to a position; the tree is kept where it leads there.

        A position in which the rules have ended the game, but not the moves, is taken without its past: programs ask
        for moves there, and go on.

        Args:
          start: as `Game.parse_position` takes it; None: the start of a game.
          words: moves from there, as `Game.parse_move` takes them.

        Raises:
          ValueError: "move N: ...": the position stays what it was.
        """
        kept = 0
        if start == self._start:
            while kept < min(len(words), len(self._words)) and words[kept] == self._words[kept]:
                kept += 1
            states, actions = self._states[: kept + 1], self._actions[:kept]
        else:
            first = self.game.init(jax.random.key(0)) if start is None else self.game.parse_position(start)
            states, actions = [self._going_on(first)], []
        for number, word in enumerate(words[kept:], kept + 1):
            actions.append(self._parsed(states[-1], word, f"move {number}"))
            states.append(self._going_on(self._step(states[-1], jnp.int32(actions[-1]))))
        if start != self._start or (self._root is not None and self._root > kept):
            self._root = None
        if start != self._start or list(words) != self._words:
            self._only = None
        self._start, self._words, self._states, self._actions = start, list(words), states, actions

    def forget(self) -> None:
        """Goes to the start of a game and drops the tree."""
        self._root = self._only = None
        self.place(None, [])

    def think_about(self, words: Collection[str] | None) -> None:
        """Thinks about these moves of the position alone, until it changes; None: about all.

        Raises:
          ValueError: one of them is not legal.
        """
        only = None if words is None else [self._parsed(self.state, word, "move") for word in words]
        if only != self._only:
            self._root, self._only = None, only

    def think(self, simulations: int | None = None, seconds: float = SLICE_SECONDS) -> int:
        """Adds simulations for about SLICE_SECONDS; the game must not be over.

        Args:
          simulations: at most; None: as many as the time allows.
          seconds: those that are left, if less; below SHORTEST_SECONDS they count as that.

        Returns:
          How many were added; 0 when the tree is full.
        """
        self.warm_up()
        time_left = min(max(seconds, SHORTEST_SECONDS), SLICE_SECONDS)
        in_time = max(1, int(self._slice * time_left / SLICE_SECONDS) // self._wave) * self._wave
        room, began = self.room, self._clock()
        done = self._search.grow(min(in_time, room, in_time if simulations is None else simulations))
        took = self._clock() - began
        if took > time_left:
            self._slice = max(1, int(self._slice * time_left / took))
        elif done == in_time and took < time_left / 3:
            self._slice = min(2 * self._slice, _MOST_A_SLICE)
        return done

    def think_for(self, seconds: float) -> None:
        """Adds simulations for so long, by the clock on the wall, at least one; less if the tree is full."""
        self.warm_up()
        deadline = time.perf_counter() + seconds
        while self.think(seconds=deadline - time.perf_counter()) and time.perf_counter() < deadline:
            pass

    def thought(self, most: int = 1) -> Thought:
        """Returns what is known of the position: `most` lines at most, one at least; the game must not be over."""
        self._go_to_root()
        look, found = self._search.look(), self._search.variations(most)
        lines = [MoveLine(line.visits, line.q, line.prior, self._names(line.moves)) for line in found]
        if not lines:  # nothing was tried yet
            names = self._names(look.principal_variation)
            lines = [MoveLine(0, look.value, float(look.prior[look.action]), names)]
        return Thought(look.value, look.simulations, tuple(lines))

    def _go_to_root(self) -> None:
        """Makes the tree one of the position."""
        here = len(self._actions)
        if self._root is not None:
            for action in self._actions[self._root :]:
                if not self._search.advance(action):
                    self._root = None
                    break
            else:
                self._root = here
        if self._root is None:
            self._search.start(self.state, self._seed, self._only)
            self._root = here

    def _parsed(self, state: State, word: str, what: str) -> int:
        action = self.game.parse_move(state, word)
        if not 0 <= action < self.game.num_actions or not bool(self._legal(state)[action]):
            raise ValueError(f"{what}: got {word!r}, which is not legal there")
        return action

    def _going_on(self, state: State) -> State:
        """Returns a position in which the game goes on, if it can."""
        return self._without_past(state) if bool(self._over(state)) else state

    def _without_past(self, state: State) -> State:
        try:
            return self.game.without_past(state)
        except ValueError:
            return state

    def _names(self, actions: Sequence[int]) -> tuple[str, ...]:
        names, state = [], self.state
        for number, action in enumerate(actions):
            names.append(self.game.move_name(state, action))
            if number + 1 < len(actions):
                state = self._step(state, jnp.int32(action))
        return tuple(names)


@functools.lru_cache
def _area(game: Go) -> Callable[[State], jax.Array]:
    return jax.jit(lambda state: game.area(state, jnp.bool_(True)))


def _with_komi(game: Go, model: Model) -> Model:
    """Returns the model whose parameters are (variables, komi float32[]): one compiled program plays by any komi."""
    terminated, truncated, to_move = map(jax.vmap, (game.terminated, game.truncated, game.to_move))
    area = jax.vmap(game.area)

    def root(params: Any, rng_key: jax.Array, states: State) -> Any:
        return model.root(params[0], rng_key, states)

    def recurrent(params: Any, rng_key: jax.Array, action: jax.Array, states: State) -> Any:
        output, following = model.recurrent(params[0], rng_key, action, states)
        scored = terminated(following) & ~truncated(following)
        won_by_black = jnp.sign(area(following, scored).astype(jnp.float32) - params[1])
        reward = jnp.where(to_move(states) == 0, won_by_black, -won_by_black)
        return output.replace(reward=jnp.where(scored, reward, 0.0)), following

    return Model(root, recurrent)


def node_bytes(game: Game, slots: int | None) -> int:
    """Returns what a node of the tree takes."""
    shapes = jax.eval_shape(game.init, jax.eval_shape(lambda: jax.random.key(0)))
    state = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    width = num_slots(game, slots)
    # Of an edge: prior, child, visits, Q, and with slots its action; eight numbers of the node itself.
    return state + 32 + (16 * game.num_actions if width is None else 18 * width)
