"""From an agent's file to its variables, which are held against what its configuration makes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import safe_open

import envs
from azjax import network
from azjax.agents.file import AgentHeader
from azjax.types import Variables
from envs.core import Game


def load_variables(header: AgentHeader, game: Game, *, own_network: bool = False) -> Variables:
    """Reads an agent's variables.

    Args:
      header: of its file.
      game: what it is to play.
      own_network: allow a network of the configuration's own, MODULE:CLASS, whose module is then imported.

    Raises:
      ValueError: one line: it is of another game, or its tensors are not those of its configuration.
    """
    path, config = header.path, header.config
    if not envs.is_named(game, config.game):
        raise ValueError(f"agent: {path} plays {config.game}, expected one of {game.id}")
    if ":" in config.network.kind and not own_network:
        raise ValueError(f"agent: {path} names a network of its own, {config.network.kind}: play its run instead")
    expected = {name: (str(leaf.dtype), tuple(leaf.shape)) for name, leaf in _expected(header, game).items()}
    for name in sorted(expected.keys() | header.tensors.keys()):
        if header.tensors.get(name) != expected.get(name):
            got, wanted = (_text(found.get(name)) for found in (header.tensors, expected))
            raise ValueError(f"agent: {path}: {name} is {got}, expected {wanted}, by its configuration")
    arrays: dict[str, np.ndarray] = {}
    with safe_open(path, framework="numpy") as file:
        for name in expected:
            arrays[name] = file.get_tensor(name)
            if not np.isfinite(arrays[name]).all():
                raise ValueError(f"agent: {path}: {name} has values that are not finite")
    return _nested({name: jnp.asarray(array) for name, array in arrays.items()})


def by_path(variables: Variables) -> dict[str, Any]:
    """Returns the leaves by their path, such as "params/Dense_0/kernel"."""
    leaves = jax.tree_util.tree_flatten_with_path(variables)[0]
    return {"/".join(jax.tree_util.keystr((key,), simple=True) for key in keys): leaf for keys, leaf in leaves}


def _expected(header: AgentHeader, game: Game) -> dict[str, Any]:
    """Returns the shapes that the configuration makes, from nothing but shapes."""
    settings = header.config.network
    size = header.path.stat().st_size
    for name in ("width", "channels", "blocks", "value_width"):
        if getattr(settings, name) > max(size, 256):  # a unit has at least a byte, and a block a tensor
            raise ValueError(f"agent: {header.path}: network.{name} is {getattr(settings, name)}, more than its file")
    if settings.blocks > len(header.tensors):
        raise ValueError(f"agent: {header.path}: network.blocks is {settings.blocks}, more than its tensors")
    try:
        return by_path(jax.eval_shape(lambda: network.init(settings, game, jax.random.key(0))))
    except Exception as error:
        why = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise ValueError(f"agent: {header.path}: its configuration makes no network: {why}") from None


def _text(found: tuple[str, tuple[int, ...]] | None) -> str:
    return "missing" if found is None else f"{found[0]}{list(found[1])}"


def _nested(leaves: dict[str, Any]) -> Variables:
    tree: Variables = {}
    for path, leaf in leaves.items():
        *parents, last = path.split("/")
        inner = tree
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = leaf
    return tree
