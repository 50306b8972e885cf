"""Several simulations of one game at a time: leaves are found one after the other, evaluated as one batch.

Each walk makes the nodes it passes look worse until the results are known (virtual loss: as if the walk had been lost),
so that the next one goes elsewhere. Chaslot, Winands and van den Herik 2008, "Parallel Monte-Carlo Tree Search".
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.search.choice import Selection
from azjax.search.loop import Walk, room, settle, walk_down
from azjax.search.tree import NO_NODE, ROOT, GrowingTree, put, put_edge, take, take_edge


class _Paths(NamedTuple):
    """W walks of one game."""

    edges: jax.Array  # int32[W, D]
    length: jax.Array  # int32[W]


def grow_wave(
    tree: GrowingTree,
    rng_key: jax.Array,
    *,
    params: Any,
    recurrent_fn: mctx.RecurrentFn,
    selection: Selection,
    first_node: int | jax.Array,
    width: int,
    max_depth: int,
) -> GrowingTree:
    """Adds `width` simulations to the tree of one game, evaluated together; width 1 is what `grow` does.

    Two walks that end at the same new edge share its node; the second backs the node's evaluation up again.

    Args:
      tree: of one game, B = 1, with room for `width` nodes from `first_node` on.
      rng_key: consumed.
      params, recurrent_fn: as `search`; called with a batch of `width`.
      selection: of the tree's game; its choice at the root is up to date.
      first_node: the first free node.
      width: W.
      max_depth: longest walk in edges.
    """
    lane = jnp.zeros((1,), jnp.int32)

    def descend(number: jax.Array, carry: tuple[GrowingTree, _Paths]) -> tuple[GrowingTree, _Paths]:
        virtual, paths = carry
        walk = walk_down(virtual, room(1, max_depth), lane, max_depth)
        paths = _Paths(
            edges=paths.edges.at[number].set(walk.edges[:, 0]),
            length=paths.length.at[number].set(walk.length[0]),
        )
        return _lose(virtual, walk, selection), paths

    integers = jnp.zeros((width, max_depth), jnp.int32)
    start = tree, _Paths(integers, integers[:, 0])
    _, paths = jax.lax.fori_loop(0, width, descend, start)

    last = jnp.take_along_axis(paths.edges, paths.length[:, None] - 1, axis=1)[:, 0]
    parent, action = jnp.divmod(last, tree.prior_logits.shape[2])
    embedding = jax.tree.map(lambda leaf: leaf[parent, 0], tree.embeddings)
    outputs, embeddings = recurrent_fn(params, rng_key, action, embedding)

    def end(number: jax.Array, tree: GrowingTree) -> GrowingTree:
        output, embedding = jax.tree.map(lambda leaf: leaf[number][None], (outputs, embeddings))
        walk = _walked_again(tree, jax.tree.map(lambda leaf: leaf[number], paths))
        return settle(tree, walk, first_node + number, output, embedding, selection)[0]

    return jax.lax.fori_loop(0, width, end, tree)


def _lose(tree: GrowingTree, walk: Walk, selection: Selection) -> GrowingTree:
    """Counts a walk as lost by every player who moved in it, and chooses anew at its nodes."""
    num_nodes, _, num_actions = tree.prior_logits.shape
    depth = jnp.arange(walk.edges.shape[0], dtype=jnp.int32)
    edge = walk.edges[:, 0]
    node, lane = edge // num_actions, jnp.zeros_like(depth)
    inside = depth < walk.length[0]
    target = jnp.where(inside, node, num_nodes)  # past the end: dropped
    edge_target = jnp.where(inside, edge, num_nodes * num_actions)
    visits = take_edge(tree.visits, edge)
    qvalues = (take_edge(tree.qvalues, edge) * visits - 1) / (visits + 1)
    tree = tree._replace(
        visits=put_edge(tree.visits, edge_target, visits + 1),
        qvalues=put_edge(tree.qvalues, edge_target, qvalues),
        node_visits=put(tree.node_visits, target, take(tree.node_visits, node) + 1),
    )
    chosen = selection.walked(tree, node, lane, depth)
    below = jnp.where(depth == 0, num_nodes, target)
    return selection.at_root(tree._replace(next_action=put(tree.next_action, below, chosen)))


def _walked_again(tree: GrowingTree, path: _Paths) -> Walk:
    """Returns a walk along a path [D] with what the tree says now."""
    node = path.edges // tree.prior_logits.shape[2]
    child = take_edge(tree.children, path.edges)
    below = jnp.maximum(child, ROOT)
    last = path.length - 1
    return room(1, node.shape[0])._replace(
        edges=path.edges[:, None],
        visits=take(tree.node_visits, node)[:, None],
        values=take(tree.node_values, node)[:, None],
        rewards=take(tree.rewards, below)[:, None],
        discounts=take(tree.discounts, below)[:, None],
        length=path.length[None],
        child=child[last][None],
        raw_value=jnp.where(child[last] == NO_NODE, 0.0, take(tree.raw_values, below)[last])[None],
    )
