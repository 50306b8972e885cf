"""Axis letters and the records that cross files.

    D  devices              B  lanes (games) of a device     T  plies of a game     L  plies kept in replay
    A  actions              K  legal slots                   N  simulations         M  samples of an update
    H W F  board and planes V  value logits

Views: a value or return "of the mover" is seen by the player to move in that position; "of player i" says so.
"""

from typing import Any

import jax

from envs.core import register_state

Variables = dict[str, Any]
"""Flax variables: {"params": ...} and, where the network has batch norm, {"batch_stats": ...}."""

Metrics = dict[str, jax.Array]
"""Scalars by name."""


@register_state
class Position:
    """What self-play writes of one ply, before the result is known. Leading axes as the context says."""

    state: Any  # the game's compact state, observations are recomputed from it
    search_weights: jax.Array  # float16[A] or [K] of slots, the search policy: the target, no temperature in it
    root_value: jax.Array  # float32[], the search's value, the mover's view
    mover: jax.Array  # int8[], player to move
    slot_actions: Any = None  # int16[K], the action of each slot, -1 where there is none; None: weight a is action a's


@register_state
class Sample:
    """What the learner is given of one position."""

    observation: jax.Array  # float32[M, H, W, F]
    policy: jax.Array  # float32[M, A], in the network's frame
    legal: jax.Array  # bool[M, A], in the network's frame
    outcome: jax.Array  # float32[M], z, the mover's view
    root_value: jax.Array  # float32[M], the mover's view
    value_mask: jax.Array  # bool[M], False where the game was cut off and has no outcome
