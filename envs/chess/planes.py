"""From sets of squares to what is read by the square: the legal mask and the planes that the network sees.

A plane is two words of 32 squares. All planes stand side by side in uint32[2, planes], and square s reads bit s % 32 of
row s // 32: one shift for each entry of the result, with planes in the place of vector lanes.
"""

import jax
import jax.numpy as jnp
import numpy as np

from envs.chess.actions import NUM_PLANES
from envs.chess.legal import LegalMoves
from envs.chess.rays import kept
from envs.chess.state import CODES

_BITS = np.arange(32, dtype=np.uint32)
_ALL = np.uint32(0xFFFFFFFF)
_ONE = np.float32(1).view(np.uint32)


def mask_of(moves: LegalMoves, over: jax.Array) -> jax.Array:
    """Returns bool[A], where the legal moves are; nowhere if `over` bool[]."""
    words = []
    for word in (0, 1):
        slides = jnp.stack([kept(bits.words[word]) for bits in moves.slides], axis=1).reshape(56)
        promotions = kept(moves.promotions.words[word])
        by_piece = [promotions[7:8], promotions[:2]]  # left, straight, right: NW, N, NE
        words += [slides, kept(moves.leaps.words[word]), *by_piece * 3]
    flat = kept(jnp.where(over, np.uint32(0), jnp.concatenate(words)))
    # Flat to the end: with rows of 73 made one, XLA's CPU code divides by 73 at every entry, 4 us more a position.
    repeated = jnp.concatenate([flat[:NUM_PLANES]] * 32 + [flat[NUM_PLANES:]] * 32)
    return (repeated >> np.repeat(np.concatenate([_BITS, _BITS]), NUM_PLANES)) & 1 != 0


def observation_of(planes: jax.Array) -> jax.Array:
    """Returns float32[8, 8, F] of uint32[3, F]: 1 on the squares of a plane's two words, elsewhere row 2 as float32."""
    planes = kept(planes)
    seen = (planes[:2, None] >> _BITS[None, :, None]) & 1 != 0
    elsewhere = jax.lax.bitcast_convert_type(planes[2], jnp.float32)
    return jnp.where(seen, jnp.float32(1), elsewhere[None, None]).reshape(8, 8, -1)


def board_planes(boards: jax.Array, occurrences: jax.Array, rules: bool) -> jax.Array:
    """Returns uint32[3, T * 14], by board P N B R Q K mine, theirs, been there once, twice; [3, T * 12] without rules.

    For `observation_of`: two words and what is everywhere else.
    """
    history = boards.shape[2]
    codes = np.concatenate([np.pad(CODES, ((0, 0), (0, 1)), constant_values=theirs) for theirs in (False, True)])
    inverted = np.where(codes, np.uint32(0), _ALL)
    pieces = _ALL
    for bit in range(4):
        pieces = pieces & (boards[:, bit, :, None] ^ inverted[None, None, :, bit])
    pieces = jnp.pad(kept(pieces), ((0, 1), (0, 0), (0, 2 * rules)))
    if rules:
        times = (occurrences >> (2 * np.arange(history, dtype=np.uint32))) & 3
        at = np.arange(14)[None] - 11  # 1 and 2 in the planes of repetition
        repeated = jnp.where((times[:, None] == at) & (at > 0), _ONE, np.uint32(0))
        pieces = pieces | jnp.pad(repeated[None], ((2, 0), (0, 0), (0, 0)))
    return pieces.reshape(3, -1)


def constant_planes(values: list[jax.Array]) -> jax.Array:
    """Returns uint32[3, planes], for `observation_of`, of planes that have one value everywhere, each float32[]."""
    return jnp.pad(jax.lax.bitcast_convert_type(jnp.stack(values), jnp.uint32)[None], ((2, 0), (0, 0)))


def any_of(moves: LegalMoves) -> jax.Array:
    """Returns bool[]: there is a legal move."""
    found = moves.leaps
    for bits in moves.slides:
        found = found | bits
    return ((found.words[0] | found.words[1]) != 0).any()
