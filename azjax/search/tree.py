"""The search tree while it grows, and the record that callers get.

mctx keeps [B, N, A] arrays. Here nodes come first, [N, B, A]: simulation i writes node i + 1 of every game, which is
one contiguous block, and every other access is a scalar or a row of one node.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np

ROOT = 0
NO_NODE = -1
_MOST_EDGES = 2**31 - 1
"""Edges are numbered by int32; the number after the last stands for none."""


class GrowingTree(NamedTuple):
    """The loop's carry. N counts the root: simulations + 1. Values are seen by the player to move at the node."""

    prior_logits: jax.Array  # float32[N, B, A]
    children: jax.Array  # int32[N, B, A], node reached by the action, NO_NODE if it was never taken
    visits: jax.Array  # int32[N, B, A], of the edge
    qvalues: jax.Array  # float32[N, B, A], reward + discount * value of the child: the parent's view, 0 if unvisited
    next_action: jax.Array  # int32[N, B], what selection chooses at the node's next visit
    node_visits: jax.Array  # int32[N, B], the node's own evaluation included
    node_values: jax.Array  # float32[N, B], mean of what was backed up through the node
    raw_values: jax.Array  # float32[N, B], the evaluation alone
    parents: jax.Array  # int32[N, B]
    action_from_parent: jax.Array  # int32[N, B]
    rewards: jax.Array  # float32[N, B], of the edge into the node, the parent's view
    discounts: jax.Array  # float32[N, B], of the edge into the node; 0 means that the node is terminal
    embeddings: Any  # [N, B, ...]


def plant(root: mctx.RootFnOutput, num_nodes: int) -> GrowingTree:
    """Returns a tree that holds the root alone, with room for `num_nodes` nodes.

    Raises:
      ValueError: its edges are more than an int32 can number.
    """
    batch_size, num_actions = root.prior_logits.shape
    if num_nodes * batch_size * num_actions > _MOST_EDGES:
        raise ValueError(
            f"search: got {num_nodes - 1} simulations of {batch_size} games side by side with {num_actions} moves "
            "a node, expected fewer than 2^31 edges in all: fewer simulations, or fewer lanes"
        )
    value = root.value.astype(jnp.float32)

    def filled(fill: float, dtype: jnp.dtype, *shape: int) -> jax.Array:
        return jnp.full((num_nodes, batch_size, *shape), fill, dtype)

    def rooted(rest: jax.Array, first: jax.Array) -> jax.Array:
        return rest.at[ROOT].set(first.astype(rest.dtype))

    return GrowingTree(
        prior_logits=rooted(filled(0, jnp.float32, num_actions), root.prior_logits),
        children=filled(NO_NODE, jnp.int32, num_actions),
        visits=filled(0, jnp.int32, num_actions),
        qvalues=filled(0, jnp.float32, num_actions),
        next_action=filled(0, jnp.int32),
        node_visits=rooted(filled(0, jnp.int32), jnp.ones_like(value)),
        node_values=rooted(filled(0, jnp.float32), value),
        raw_values=rooted(filled(0, jnp.float32), value),
        parents=filled(NO_NODE, jnp.int32),
        action_from_parent=filled(NO_NODE, jnp.int32),
        rewards=filled(0, jnp.float32),
        discounts=filled(1, jnp.float32),
        embeddings=jax.tree.map(lambda leaf: rooted(filled(0, leaf.dtype, *leaf.shape[1:]), leaf), root.embedding),
    )


def flat_node(tree: GrowingTree, node: jax.Array, lane: jax.Array) -> jax.Array:
    """Returns the index of (node, lane) in arrays whose first two axes were merged."""
    return node * tree.node_visits.shape[1] + lane


def merged(array: jax.Array) -> jax.Array:
    """Merges the node and lane axes: [N, B, ...] -> [N * B, ...]."""
    return array.reshape(-1, *array.shape[2:])


def take(array: jax.Array, flat: jax.Array) -> jax.Array:
    """Reads entries of [N, B, ...] at flat (node, lane) indices, which must be in range."""
    if flat.shape[0] == 1:  # XLA would make it a slice, and read that again after writing (see _scattered)
        return merged(array).at[jnp.append(flat, flat)].get(mode="promise_in_bounds")[:1]
    return merged(array).at[flat].get(mode="promise_in_bounds")


def take_edge(array: jax.Array, edge: jax.Array) -> jax.Array:
    """Reads entries of [N, B, A] at edges, (node * B + lane) * A + action, which must be in range."""
    return take(array.reshape(-1, 1), edge)


def put_node(array: jax.Array, node: jax.Array, values: jax.Array) -> jax.Array:
    """Writes node int32[] of [N, B, ...] in every game; it must be in range: `at[node].set` would look first."""
    return jax.lax.dynamic_update_index_in_dim(array, values.astype(array.dtype), node, 0)


def put(array: jax.Array, flat: jax.Array, values: jax.Array) -> jax.Array:
    """Writes entries of [N, B] at flat (node, lane) indices; indices past the end are dropped."""
    return _scattered(merged(array), flat, values).reshape(array.shape)


def put_edge(array: jax.Array, edge: jax.Array, values: jax.Array) -> jax.Array:
    """Writes entries of [N, B, A] at edges, (node * B + lane) * A + action; edges past the end are dropped."""
    return _scattered(array.reshape(-1), edge, values).reshape(array.shape)


def _scattered(array: jax.Array, index: jax.Array, values: jax.Array) -> jax.Array:
    values = values.astype(array.dtype)
    if index.shape[0] == 1:
        # XLA makes the scatter of one entry a slice's update, fuses that with what reads the result and copies the
        # whole array: 13 ms a simulation in a tree of 64 MiB, in place of 0.1. So a second entry falls past the end.
        index, values = jnp.append(index, np.int32(array.shape[0])), jnp.concatenate([values, values])
    return array.at[index].set(values, mode="drop", unique_indices=True)


def node_view(tree: GrowingTree, flat: jax.Array, invalid_actions: jax.Array, extra_data: Any) -> mctx.Tree:
    """Returns each node of `flat` [C] as an mctx.Tree of that one node (index 0): what a selection function may see.

    `qvalues` are right. Rewards and signs are already in them: children_rewards is 0, children_discounts 1.
    """

    def one(array: jax.Array) -> jax.Array:
        return take(array, flat)[:, None]

    qvalues = one(tree.qvalues)
    return mctx.Tree(
        node_visits=one(tree.node_visits),
        raw_values=one(tree.raw_values),
        node_values=one(tree.node_values),
        parents=one(tree.parents),
        action_from_parent=one(tree.action_from_parent),
        children_index=one(tree.children),
        children_prior_logits=one(tree.prior_logits),
        children_visits=one(tree.visits),
        children_rewards=jnp.zeros_like(qvalues),
        children_discounts=jnp.ones_like(qvalues),
        children_values=qvalues,
        embeddings=None,
        root_invalid_actions=invalid_actions,
        extra_data=extra_data,
    )


def fresh_view(output: mctx.RecurrentFnOutput, invalid_actions: jax.Array, extra_data: Any) -> mctx.Tree:
    """Returns the nodes that `output` [B, ...] describes as `node_view` shows them: evaluated once, nothing taken."""
    logits = output.prior_logits.astype(jnp.float32)[:, None]
    value = output.value.astype(jnp.float32)[:, None]
    none, nobody = jnp.zeros_like(logits), jnp.full(value.shape, NO_NODE, jnp.int32)
    return mctx.Tree(
        node_visits=jnp.ones_like(nobody),
        raw_values=value,
        node_values=value,
        parents=nobody,
        action_from_parent=nobody,
        children_index=jnp.full(logits.shape, NO_NODE, jnp.int32),
        children_prior_logits=logits,
        children_visits=none.astype(jnp.int32),
        children_rewards=none,
        children_discounts=jnp.ones_like(none),
        children_values=none,
        embeddings=None,
        root_invalid_actions=invalid_actions,
        extra_data=extra_data,
    )


def harvest(tree: GrowingTree, invalid_actions: jax.Array, extra_data: Any) -> mctx.Tree:
    """Returns the grown tree as mctx's record, whose arrays are [B, N, ...]. Unused parts cost nothing under jit."""
    num_nodes, batch_size, num_actions = tree.prior_logits.shape
    lane = jnp.broadcast_to(jnp.arange(batch_size, dtype=jnp.int32), (num_nodes, batch_size))
    edge = flat_node(tree, tree.parents, lane) * num_actions + tree.action_from_parent
    edge = jnp.where(tree.parents == NO_NODE, num_nodes * batch_size * num_actions, edge).reshape(-1)

    def on_edge(of_child: jax.Array) -> jax.Array:
        nothing = jnp.zeros((num_nodes, batch_size, num_actions), of_child.dtype)
        return jnp.swapaxes(put_edge(nothing, edge, of_child.reshape(-1)), 0, 1)

    swapped = jax.tree.map(lambda array: jnp.swapaxes(array, 0, 1), tree)
    return mctx.Tree(
        node_visits=swapped.node_visits,
        raw_values=swapped.raw_values,
        node_values=swapped.node_values,
        parents=swapped.parents,
        action_from_parent=swapped.action_from_parent,
        children_index=swapped.children,
        children_prior_logits=swapped.prior_logits,
        children_visits=swapped.visits,
        children_rewards=on_edge(tree.rewards),
        children_discounts=on_edge(tree.discounts),
        children_values=on_edge(tree.node_values),
        embeddings=swapped.embeddings,
        root_invalid_actions=invalid_actions,
        extra_data=extra_data,
    )
