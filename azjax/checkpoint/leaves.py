"""The leaves of a state under names that stay: the path of their fields, and for typed keys their data."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def is_key(leaf: Any) -> bool:
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


key_data = jax.jit(jax.random.key_data)


@functools.cache
def wrap_key(impl: str, sharding: jax.sharding.Sharding | None = None) -> Callable[[jax.Array], jax.Array]:
    return jax.jit(functools.partial(jax.random.wrap_key_data, impl=impl), out_shardings=sharding)


def by_path(tree: Any) -> tuple[dict[str, Any], list[str]]:
    """Returns the leaves by their path, and the names of the top-level fields, leaves in them or not."""
    top, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: node is not tree)
    leaves: dict[str, Any] = {}
    for keys, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        names = [jax.tree_util.keystr((key,), simple=True) for key in keys]
        path = "/".join(names)
        if not path or path in leaves or any("/" in name or not name for name in names):
            raise ValueError(f"leaf {path!r} has no path of its own, expected named fields without '/'")
        if not isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
            raise ValueError(f"{path} is a {type(leaf).__name__}, expected a jax array")
        leaves[path] = leaf
    return leaves, [jax.tree_util.keystr(keys, simple=True) for keys, _ in top]


def describe(leaf: Any) -> dict[str, Any]:
    """Says what is stored of a leaf: of a typed key its data, and the name of its generator."""
    key = str(jax.random.key_impl(jnp.empty((), leaf.dtype))) if is_key(leaf) else None
    data = jax.eval_shape(key_data, leaf) if key else leaf
    return {"shape": list(data.shape), "dtype": str(data.dtype), "key": key}


def nested(leaves: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """Returns leaves by path as dicts in dicts; a field without leaves is an empty dict."""
    tree: dict[str, Any] = {field: {} for field in fields}
    for path, leaf in leaves.items():
        *parents, last = path.split("/")
        functools.reduce(lambda inner, parent: inner.setdefault(parent, {}), parents, tree)[last] = leaf
    return tree
