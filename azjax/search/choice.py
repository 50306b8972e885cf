"""What is chosen at the nodes of a growing tree, whose choices are kept until a node's row changes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.search.tree import ROOT, GrowingTree, fresh_view, node_view


class Selection(NamedTuple):
    """What is chosen at nodes: the caller's functions, shown one node each."""

    rng_key: jax.Array
    root_fn: mctx.RootActionSelectionFn
    interior_fn: mctx.InteriorActionSelectionFn
    invalid_actions: jax.Array  # [B, A], at the root
    extra_data: Any  # [B, ...]

    def at_root(self, tree: GrowingTree) -> GrowingTree:
        """Chooses at every game's root."""
        lanes = jnp.arange(tree.node_visits.shape[1], dtype=jnp.int32)
        view = node_view(tree, lanes, self.invalid_actions, self.extra_data)
        action = jax.vmap(lambda one: self.root_fn(self.rng_key, one, ROOT))(view)
        return tree._replace(next_action=tree.next_action.at[ROOT].set(action.astype(jnp.int32)))

    def fresh(self, output: mctx.RecurrentFnOutput, depth: jax.Array) -> jax.Array:
        """Returns the choice int32[B] at new nodes."""
        return self._inside(fresh_view(output, jnp.zeros_like(self.invalid_actions), self.extra_data), depth)

    def walked(self, tree: GrowingTree, flat: jax.Array, lane: jax.Array, depth: jax.Array) -> jax.Array:
        """Returns the choice int32[C] at nodes, by their flat (node, lane) indices, lanes and depths."""
        here = jax.tree.map(lambda leaf: leaf[lane], self.extra_data)
        return self._inside(node_view(tree, flat, jnp.zeros_like(self.invalid_actions[lane]), here), depth)

    def _inside(self, view: mctx.Tree, depth: jax.Array) -> jax.Array:
        choose = jax.vmap(lambda one, level: self.interior_fn(self.rng_key, one, ROOT, level))
        return choose(view, depth).astype(jnp.int32)
