"""One position of shogi with what the rules and the network need of its past, and how a move changes it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from envs.core import register_state
from envs.shogi import tables
from envs.shogi.actions import FIRST_DROP, FIRST_PROMOTING, PLANES
from envs.shogi.moves import Moves, any_move, fence, legal_moves
from envs.shogi.position import LONGEST, OCCURRENCES, Position

HISTORY = 8  # positions that the network sees
GOES_ON, LOST, WON, DRAWN = 0, -1, 1, 2
"""Results, in the view of the player to move."""

_SQUARES = np.arange(81, dtype=np.int32)
_LOW, _COLOUR = np.uint32(0x0F0F0F0F), np.uint32(0x10101010)


@register_state
class ShogiState:
    """A position, seen by the player to move: own pieces move up. L is the game's limit of plies."""

    recent: jax.Array  # uint32[81], the codes of 4 boards, 8 bits each, the newest lowest (tables.py)
    older: jax.Array  # uint32[81], of the 4 boards before these
    hands: jax.Array  # uint32[8], what the player to move held then, the newest first
    other_hands: jax.Array  # uint32[8]
    repetitions: jax.Array  # uint32[], how often each of the 8 positions had been there by then, 4 bits each
    hashes: jax.Array  # uint32[2, L], of the positions after 0, 1, ... plies
    ply: jax.Array  # int16[]
    player: jax.Array  # int8[], who is to move
    checks: jax.Array  # int16[], how many of the player's own last moves gave check, without a break
    other_checks: jax.Array  # int16[]
    result: jax.Array  # int8[], GOES_ON, LOST, WON or DRAWN, the limits of plies left out


def placed(position: Position, ply: int, max_plies: int) -> ShogiState:
    """Returns a position without a past (host side)."""
    board, hands = np.array(position.board), position.hands
    if position.turn:
        board, hands = -board[::-1], hands[::-1]
    codes = np.where(board < 0, tables.ENEMY, 0).astype(np.uint32) + tables.CODES[np.abs(board)]
    words = [sum(int(number) << int(s) for number, s in zip(hand, tables.HAND_SHIFT, strict=True)) for hand in hands]
    own, other = (np.array([word] + [0] * (HISTORY - 1), np.uint32) for word in words)
    hashes = np.zeros((2, max_plies), np.uint32)
    state = ShogiState(
        recent=jnp.asarray(codes),
        older=jnp.zeros(81, jnp.uint32),
        hands=jnp.asarray(own),
        other_hands=jnp.asarray(other),
        repetitions=jnp.uint32(1),
        hashes=jnp.asarray(hashes),
        ply=jnp.int16(ply),
        player=jnp.int8(position.turn),
        checks=jnp.int16(0),
        other_checks=jnp.int16(0),
        result=jnp.int8(GOES_ON if position.legal_moves() else LOST),
    )
    if ply >= max_plies:
        return state
    return dataclasses.replace(state, hashes=state.hashes.at[:, ply].set(_hash(state)))


def board_codes(state: ShogiState) -> jax.Array:
    """Returns uint32[81], the board of now."""
    return fence(state.recent) & 31


def moved(state: ShogiState, action: jax.Array) -> ShogiState:
    """Returns the position after a legal action int32[], before its result is known: `judged` comes next."""
    square, plane = action // PLANES, action % PLANES
    drops = plane >= FIRST_DROP
    promotes = (plane >= FIRST_PROMOTING) & ~drops
    line = jnp.where(drops, 0, plane - FIRST_PROMOTING * promotes)
    target = square + jnp.where(drops, 0, jnp.asarray(tables.OFFSETS)[line])
    codes = state.recent & 31
    leaves, arrives = (square == _SQUARES) & ~drops, target == _SQUARES
    kind = jnp.where(np.arange(FIRST_DROP, PLANES, dtype=np.int32) == plane, tables.DROP_CODES, 0).max()
    piece = kind + jnp.where(leaves, codes, 0).max() + 8 * promotes.astype(jnp.uint32)
    taken = jnp.where(arrives, codes, 0).max()
    units = jnp.asarray(tables.UNITS)
    hand = state.hands[0] + units[taken & 7] - units[kind]

    newest = fence(jnp.where(arrives, piece, jnp.where(leaves, jnp.uint32(0), codes)))
    return dataclasses.replace(
        state,
        recent=fence(_turned((state.recent << 8) | newest)),
        older=fence(_turned((state.older << 8) | (state.recent >> 24))),
        hands=jnp.concatenate([state.other_hands[:1], state.other_hands[:-1]]),
        other_hands=jnp.concatenate([hand[None], state.hands[:-1]]),
        ply=state.ply + jnp.int16(1),
        player=jnp.int8(1) - state.player,
        checks=state.other_checks,
        other_checks=state.checks,
    )


def judged(state: ShogiState, over: jax.Array) -> ShogiState:
    """Returns a state that `moved` made with its repetitions and result; one that was `over` bool[] as it is."""
    moves = legal_moves(board_codes(state), state.hands[0])
    new = _hash(state)
    ply = state.ply.astype(jnp.int32)
    plies = np.arange(state.hashes.shape[1], dtype=np.int32)
    same = (state.hashes[0] == new[0]) & (state.hashes[1] == new[1]) & (plies < ply)
    count = same.sum(dtype=jnp.int32) + 1
    # Both have made as many moves since the position was there first.
    each = (ply - jnp.where(same, plies, LONGEST).min()) // 2
    other_checks = jnp.where(moves.in_check, state.other_checks + jnp.int16(1), jnp.int16(0))
    checking, checked = state.checks >= each, other_checks >= each
    draw = jnp.where(checking == checked, DRAWN, jnp.where(checked, WON, LOST))
    result = jnp.where(any_move(moves), jnp.where(count >= OCCURRENCES, draw, GOES_ON), LOST)
    after = dataclasses.replace(
        state,
        repetitions=(state.repetitions << 4) | count.astype(jnp.uint32),
        hashes=jnp.where((plies == ply)[None], new[:, None], state.hashes),
        other_checks=other_checks,
        result=result.astype(jnp.int8),
    )
    return jax.tree.map(lambda old, new: jnp.where(over, old, new), state, after)


def legal(state: ShogiState) -> Moves:
    """Returns the legal moves, whether or not the game is over by another rule."""
    return legal_moves(board_codes(state), state.hands[0])


def _turned(boards: jax.Array) -> jax.Array:
    """Returns four boards as the other player sees them."""
    turned = boards[::-1]
    return turned ^ (((turned & _LOW) + _LOW) & _COLOUR)


def _hash(state: ShogiState) -> jax.Array:
    """Returns uint32[2]: sums of random weights times codes and counts, so that unequal positions differ but by chance.

    Two positions have equal hashes with a probability below 2^-54: each word's weights are random, and what they are
    multiplied by differs by less than 32.
    """
    codes = fence(state.recent) & 31
    counts = [(hand[:1] >> tables.HAND_SHIFT) & tables.HAND_MASK for hand in (state.hands, state.other_hands)]
    words = []
    for word in (0, 1):
        total = (codes * tables.BOARD_KEYS[word]).sum(dtype=jnp.uint32)
        for hand, keys in zip(counts, tables.HAND_KEYS[word], strict=True):
            total += (hand * keys).sum(dtype=jnp.uint32)
        words.append(total + state.player.astype(jnp.uint32) * tables.TURN_KEYS[word])
    return jnp.stack(words)
