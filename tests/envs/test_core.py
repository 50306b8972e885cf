"""What the contract's file offers to games: the list of a mask's entries."""

import functools

import jax
import numpy as np
import pytest

from envs.core import list_true


@pytest.mark.parametrize(("actions", "size"), [(1, 1), (31, 31), (32, 9), (33, 33), (64, 70), (100, 40)])
def test_list_of_a_mask(actions, size):
    """None, all and any number of entries; of more than fit the first ones."""
    shares = np.linspace(0, 1, 40)[:, None]
    masks = np.random.default_rng(0).random((40, actions)) < shares
    masks[0], masks[-1] = False, True
    listed = jax.jit(jax.vmap(functools.partial(list_true, size=size)))(masks)
    for mask, entries in zip(masks, np.asarray(listed), strict=True):
        expected = np.flatnonzero(mask)[:size].tolist()
        assert entries.tolist() == expected + [-1] * (size - len(expected))
    assert listed.dtype == np.int16
