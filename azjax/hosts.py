"""The processes of a run, on one host or several: one program over all their devices, of which process 0 writes.

Every process runs the same host loop on the same numbers. What a process alone can decide, such as whether a directory
is free, is agreed on before the others go on: a process that waits for one that has left would wait for ever.
"""

import contextlib
from collections.abc import Generator
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Sharding

from azjax.launch import Hosts

HEARTBEAT_SECONDS = 10
"""A process that has said nothing for so long counts as dead; JAX then ends the others with a message that names it."""


class PeerError(RuntimeError):
    """Another process of the run could not go on."""


def connect(hosts: Hosts) -> None:
    """Joins the other processes; called once, before a backend starts. JAX then owns SIGTERM.

    Raises:
      ValueError: no cluster was found that could say who the others are.
      PeerError: the processes do not find one another.
    """
    try:
        jax.distributed.initialize(
            hosts.address,
            hosts.count,
            hosts.index,
            cluster_detection_method=None if hosts.address is None else "deactivate",
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=HEARTBEAT_SECONDS,
        )
    except ValueError as error:
        raise ValueError(
            f"--hosts: got auto, and no cluster was recognised ({error}); expected ADDRESS:PORT,INDEX/COUNT"
        ) from None
    except RuntimeError as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        where = "the cluster" if hosts.address is None else hosts.address
        raise PeerError(f"--hosts: the processes did not find one another at {where}: {first}") from error


def several() -> bool:
    """Returns whether this process is one of several."""
    return jax.distributed.is_initialized() and jax.process_count() > 1


def is_first() -> bool:
    """Returns whether this is the process that writes and speaks."""
    return not several() or jax.process_index() == 0


@contextlib.contextmanager
def together() -> Generator[None]:
    """Leaves its block only when every process has come to its end.

    Raises:
      PeerError: another process left its block by an error; that process raises its own.
    """
    try:
        yield
    except Exception:
        _failed_at(True)
        raise
    if failed := _failed_at(False):
        raise PeerError(f"process {failed[0]} of {jax.process_count()} could not go on; it says why")


def _failed_at(failed: bool) -> list[int]:
    return np.flatnonzero(_all_values(int(failed))).tolist()


def require_same(what: str, value: int) -> None:
    """Compares a number over all processes.

    Raises:
      PeerError: they differ.
    """
    values = _all_values(value)
    if (values != value).any():
        listed = ", ".join(map(str, values.tolist()))
        raise PeerError(f"{what}: the processes see {listed}, expected one value: they need one shared directory")


def _all_values(value: int) -> np.ndarray:
    if not several():
        return np.array([value])
    return np.asarray(multihost_utils.process_allgather(np.int32(value)))


def fetch(tree: Any) -> Any:
    """Returns arrays as numpy's, whole, in every process."""
    if not several():
        return jax.tree.map(np.asarray, tree)
    return jax.tree.map(np.asarray, multihost_utils.process_allgather(tree, tiled=True))


def place(tree: Any, sharding: Sharding) -> Any:
    """Spreads arrays that are equal in every process over the devices of all; of one process, leaves that to jit."""
    if not several():
        return tree

    def spread(leaf: jax.Array) -> jax.Array:
        whole = np.asarray(leaf)
        return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])

    return jax.tree.map(spread, tree)
