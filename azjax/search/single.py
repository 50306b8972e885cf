"""The search of one game, piece by piece: grown while there is time, looked at, and kept when a move is made.

For play against people and for engines: `search` and the policies built on it run a fixed number of simulations.
"""

import functools
import time
from collections.abc import Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.search.chance import with_chance
from azjax.search.choice import Selection
from azjax.search.loop import grow
from azjax.search.model import Model
from azjax.search.rule import Rule, puct_rule
from azjax.search.selection import is_illegal, mask_logits
from azjax.search.slots import begin_recurrent, begin_search, num_slots
from azjax.search.trace import Nodes, Simulation, last_simulation
from azjax.search.tree import NO_NODE, ROOT, GrowingTree, plant
from azjax.search.wave import grow_wave
from envs.chance import num_outcomes
from envs.core import Game

_LONGEST_WALK = 128
"""Edges of a walk in a wave, which chooses anew at as many nodes after each of its walks."""


_LONGEST_LINE = 512
"""Edges of any other walk: its scratch space would take time if it were as long as the tree is large."""

_BLOCK = 256
"""Nodes that are moved at a time when a tree is given another root."""


class Variation(NamedTuple):
    """A move and what the search expects after it; the view of the player to move."""

    visits: int
    q: float
    prior: float
    moves: tuple[int, ...]  # the move, then the most visited action, and so on below it


class Look(NamedTuple):
    """What a search says of its position so far; the view of the player to move."""

    action: int  # the most visited
    visits: np.ndarray  # int32[A], with chance [A + C]: moves, then outcomes
    qvalues: np.ndarray  # float32[A], 0 where not visited
    prior: np.ndarray  # float32[A]
    value: float
    simulations: int  # that went through the position, those kept from before included
    principal_variation: tuple[int, ...]  # the most visited action, and so on below it


class TreeSearch:
    """PUCT (see `select_puct`), or another rule of selection, over one growing tree."""

    def __init__(
        self,
        game: Game,
        model: Model,
        params: Any,
        *,
        capacity: int,
        chunk: int = 16,
        wave: int = 1,
        c_init: float = 1.25,
        c_base: float = 19652.0,
        c_puct: float | None = None,
        slots: int | None = None,
        rule: Rule | None = None,
    ):
        """Starts without a position.

        Args:
          game: the rules. In a game with chance the dice are actions too, A + outcome, to `advance` by.
          model: the game and its evaluation, unmasked where the game gets slots (`num_slots`).
          params: of the evaluation.
          capacity: most simulations that a tree holds.
          chunk: simulations of one compiled call: how finely time is kept.
          wave: simulations evaluated as one batch, by virtual loss (`grow_wave`); 1: one after the other, as
            those of a call are that do not fill a wave.
          c_init, c_base, c_puct: exploration.
          slots: most legal actions of a node that are searched; see `num_slots`.
          rule: how actions are selected, in place of PUCT with these constants; Gumbel's needs `wave` 1 and searches a
            tree for exactly the simulations that it was made for.

        Raises:
          ValueError: a size is below 1.
        """
        for name, number in (("capacity", capacity), ("chunk", chunk), ("wave", wave)):
            if number < 1:
                raise ValueError(f"{name}: got {number}, expected at least 1")
        self._model, self._params, self._chunk = model, params, min(chunk, capacity)
        self._num_nodes = capacity + 1
        self._rule = rule = rule or puct_rule(c_init, c_base, c_puct)
        at_root = with_chance(rule.root) if game.has_chance else rule.root
        select = with_chance(rule.interior) if game.has_chance else rule.interior
        recurrent = begin_recurrent(game, model, slots)
        self._num_events, self._has_slots = game.num_actions + num_outcomes(game), num_slots(game, slots) is not None

        def plant_one(params: Any, rng_key: jax.Array, state: Any) -> GrowingTree:
            states = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
            return plant(begin_search(game, model, params, rng_key, states, slots).root, self._num_nodes)

        def grow_some(
            params: Any, rng_key: jax.Array, tree: GrowingTree, first: jax.Array, extra: Any, number: jax.Array
        ) -> GrowingTree:
            invalid = is_illegal(tree.prior_logits[ROOT]).astype(jnp.float32)
            if wave == 1:
                return grow(
                    tree,
                    rng_key,
                    params=params,
                    recurrent_fn=recurrent,
                    root_action_selection_fn=at_root,
                    interior_action_selection_fn=select,
                    first_node=first,
                    num_simulations=number,
                    max_depth=min(self._num_nodes - 1, _LONGEST_LINE),
                    invalid_actions=invalid,
                    extra_data=extra,
                )
            selection = Selection(rng_key, at_root, select, invalid, extra)

            def add(width: int, node: jax.Array, tree: GrowingTree) -> GrowingTree:
                return grow_wave(
                    tree,
                    jax.random.fold_in(rng_key, node),
                    params=params,
                    recurrent_fn=recurrent,
                    selection=selection,
                    first_node=node,
                    width=width,
                    max_depth=min(self._num_nodes - 1, _LONGEST_WALK),
                )

            rest, end = first + number // wave * wave, first + number
            tree = jax.lax.fori_loop(
                0, number // wave, lambda turn, tree: add(wave, first + turn * wave, tree), selection.at_root(tree)
            )
            return jax.lax.fori_loop(rest, end, functools.partial(add, 1), tree)

        self._plant = jax.jit(plant_one)
        self._grow = jax.jit(grow_some, donate_argnums=2)  # one program for every number of simulations
        self._tree: GrowingTree | None = None
        self._extra: Any = None
        self._used = 0
        self._rng_key = jax.random.key(0)

    def start(self, state: Any, seed: int = 0, only: Collection[int] | None = None) -> None:
        """Drops the tree and begins at a position, which must not be terminated.

        Args:
          state: the position.
          seed: of random evaluations.
          only: the moves to search there, at least one of them legal; None: all.
        """
        self._rng_key, key = jax.random.split(jax.random.key(seed))
        tree, self._used = self._plant(self._params, key, state), 1
        if only is not None:
            tree = _restricted(tree, np.isin(self._table(tree)[ROOT], list(only)))
        self._tree = tree
        self._extra = self._rule.extra(jax.random.fold_in(key, 1), tree.prior_logits[ROOT])

    def use(self, params: Any) -> None:
        """Replaces the parameters of the evaluation; a tree that was grown with others is dropped."""
        if params is not self._params:
            self._params, self._tree, self._used = params, None, 0

    @property
    def room(self) -> int:
        """Simulations that the tree can still hold."""
        return self._num_nodes - self._used

    def grow(self, simulations: int | None = None, seconds: float | None = None) -> int:
        """Adds simulations until their number, the time or the room is used up; at least one call's worth of time.

        Args:
          simulations: how many; None: as many as time and room allow.
          seconds: after which no further call of `chunk` simulations begins; None: no limit.

        Returns:
          How many were added.
        """
        tree, deadline = self._position(), None if seconds is None else time.perf_counter() + seconds
        wanted = self.room if simulations is None else min(simulations, self.room)
        done = 0
        while done < wanted and (deadline is None or done == 0 or time.perf_counter() < deadline):
            number = min(self._chunk, wanted - done)
            self._rng_key, key = jax.random.split(self._rng_key)
            tree = self._grow(self._params, key, tree, jnp.int32(self._used), self._extra, jnp.int32(number))
            self._tree = jax.block_until_ready(tree)
            self._used += number
            done += number
        return done

    def step(self) -> Simulation | None:
        """Adds one simulation and tells it; None where there is no room."""
        before = self.nodes()
        return last_simulation(before, self.nodes()) if self.grow(1) else None

    def nodes(self) -> Nodes:
        """Returns the whole tree as arrays on the host."""
        tree = self._position()
        fields = {name: self._used_of(getattr(tree, name)) for name in Nodes._fields if name != "events"}
        return Nodes(**fields, events=np.array(self._table(tree)))

    def state_of(self, node: int) -> Any:
        """Returns the position of a node; where dice are rolled next it waits for them."""
        embeddings = self._position().embeddings
        return jax.tree.map(lambda leaf: np.asarray(leaf)[node, 0], embeddings.inner if self._has_slots else embeddings)

    def look(self) -> Look:
        """Returns what is known so far."""
        tree = self._position()
        visits, children = self._used_of(tree.visits), self._used_of(tree.children)
        qvalues, logits = np.asarray(tree.qvalues[ROOT, 0]), np.asarray(tree.prior_logits[ROOT, 0])
        legal = ~np.asarray(is_illegal(tree.prior_logits[ROOT, 0]))
        prior = np.asarray(jax.nn.softmax(tree.prior_logits[ROOT, 0])) * legal
        table = self._table(tree)

        def by_action(edges: np.ndarray) -> np.ndarray:
            full = np.zeros(self._num_events, edges.dtype)
            full[table[ROOT][legal]] = edges[legal]
            return full

        # Before the first simulation the prior decides.
        scores = visits[ROOT] if visits[ROOT].any() else np.where(legal, logits, -np.inf)
        if visits[ROOT].any():
            # Ties among the most visited go to the first, or as the rule says.
            scores = np.where(visits[ROOT] == visits[ROOT].max(), self._rule.final(tree, self._extra), -np.inf)
        line = _line(table, children, visits, int(np.argmax(scores)))
        return Look(
            action=line[0],
            visits=by_action(visits[ROOT]),
            qvalues=by_action(qvalues),
            prior=by_action(prior),
            value=float(tree.node_values[ROOT, 0]),
            simulations=int(visits[ROOT].sum()),
            principal_variation=line,
        )

    def variations(self, most: int) -> list[Variation]:
        """Returns what is expected after the moves that were tried, the most visited first, `most` of them."""
        tree = self._position()
        visits, children = self._used_of(tree.visits), self._used_of(tree.children)
        qvalues = np.asarray(tree.qvalues[ROOT, 0])
        prior, table = np.asarray(jax.nn.softmax(tree.prior_logits[ROOT, 0])), self._table(tree)
        tried = np.flatnonzero(visits[ROOT])
        order = tried[np.lexsort((-prior[tried], -visits[ROOT, tried]))][:most]
        return [
            Variation(
                visits=int(visits[ROOT, edge]),
                q=float(qvalues[edge]),
                prior=float(prior[edge]),
                moves=_line(table, children, visits, int(edge)),
            )
            for edge in order
        ]

    def advance(self, action: int) -> bool:
        """Makes a move: the tree below it is kept.

        Returns:
          False where nothing is known of the move, so that `start` is needed: it was never tried, or it ends the game.
        """
        tree = self._position()
        edges = np.flatnonzero(self._table(tree)[ROOT] == action)
        child = int(tree.children[ROOT, 0, edges[0]]) if edges.size else NO_NODE
        if child == NO_NODE or float(tree.discounts[child, 0]) == 0:
            self._tree, self._used = None, 0
            return False
        self._tree, self._used = _rerooted(tree, child, self._used)
        return True

    def _table(self, tree: GrowingTree) -> np.ndarray:
        """Returns the action of each edge of the nodes there are, int[n, W], -1 where there is none."""
        if self._has_slots:
            return self._used_of(tree.embeddings.actions)
        return np.broadcast_to(np.arange(self._num_events), (self._used, self._num_events))

    def _used_of(self, array: jax.Array) -> np.ndarray:
        """Returns an array [N, 1, ...] of the tree on the host, of the nodes there are."""
        # Sliced there: on the device each length would be a program of its own, and a tree of 64 MB takes long to copy.
        return np.array(np.asarray(array)[: self._used, 0])

    def _position(self) -> GrowingTree:
        if self._tree is None:
            raise ValueError("search: got no position, expected start(state) first")
        return self._tree


def _line(table: np.ndarray, children: np.ndarray, visits: np.ndarray, edge: int) -> tuple[int, ...]:
    """Returns the action of an edge of the root, then the most visited, and so on below it."""
    line, node = [], ROOT
    while True:
        line.append(int(table[node, edge]))
        node = int(children[node, edge])
        if node == NO_NODE or not visits[node].any():
            return tuple(line)
        edge = int(np.argmax(visits[node]))


@functools.partial(jax.jit, donate_argnums=0)
def _restricted(tree: GrowingTree, kept: jax.Array) -> GrowingTree:
    """Returns the tree of one game with all moves of the root illegal that are not in `kept` bool[W]."""
    logits = mask_logits(tree.prior_logits[ROOT, 0], kept)
    return tree._replace(prior_logits=tree.prior_logits.at[ROOT, 0].set(logits))


def _rerooted(tree: GrowingTree, root: int, used: int) -> tuple[GrowingTree, int]:
    """Returns the tree below node `root`, its nodes numbered anew in their old order, and how many they are."""
    parents = np.array(tree.parents[:, 0])
    kept = np.zeros(len(parents), bool)
    kept[root] = True
    for node in range(root + 1, used):  # a parent has a lower number than its child
        kept[node] = parents[node] != NO_NODE and kept[parents[node]]
    old = np.flatnonzero(kept)
    new = np.full(len(parents) + 1, NO_NODE, np.int32)  # the last entry answers for NO_NODE
    new[old] = np.arange(len(old))
    order = np.arange(len(parents), dtype=np.int32)
    order[: len(old)] = old
    return _renumbered(tree, order, new, np.int32(len(old)), np.int32(used)), len(old)


@functools.partial(jax.jit, donate_argnums=0)
def _renumbered(tree: GrowingTree, order: jax.Array, new: jax.Array, number: jax.Array, used: jax.Array) -> GrowingTree:
    """Returns the tree with node order[i] >= i at i below `number`, cleared from there on; node i is now new[i].

    It is moved block by block and in place, up to where it was `used`: no node lies before the place that it moves to.
    """
    num_nodes = order.shape[0]
    block = min(_BLOCK, num_nodes)
    empty = {"children": NO_NODE, "parents": NO_NODE, "action_from_parent": NO_NODE, "discounts": 1}

    def move_block(turn: jax.Array, tree: GrowingTree) -> GrowingTree:
        start = jnp.minimum(turn * block, num_nodes - block)
        nodes = start + jnp.arange(block, dtype=jnp.int32)
        is_done = nodes < turn * block  # the last block reaches back
        source = jnp.where(is_done, nodes, order[nodes])

        def moved(name: str, leaf: jax.Array) -> jax.Array:
            def column(of_nodes: jax.Array) -> jax.Array:
                return of_nodes.reshape(-1, *(1,) * (leaf.ndim - 1))

            rows = leaf[source]
            if name in ("children", "parents"):
                rows = jnp.where(column(is_done), rows, new[rows])
            rows = jnp.where(column(is_done | (nodes < number)), rows, jnp.asarray(empty.get(name, 0), leaf.dtype))
            return jax.lax.dynamic_update_slice_in_dim(leaf, rows, start, 0)

        fields = tree._asdict().items()
        return GrowingTree(**{name: jax.tree.map(functools.partial(moved, name), field) for name, field in fields})

    tree = jax.lax.fori_loop(0, (used + block - 1) // block, move_block, tree)
    return tree._replace(
        parents=tree.parents.at[ROOT].set(NO_NODE),
        action_from_parent=tree.action_from_parent.at[ROOT].set(NO_NODE),
        rewards=tree.rewards.at[ROOT].set(0),
        discounts=tree.discounts.at[ROOT].set(1),
    )
