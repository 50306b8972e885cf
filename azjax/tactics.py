"""Positions that the player to move wins by force, in one move or two, found by the rules alone, and who finds them."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from azjax.arena import ask
from azjax.expansion import expand, facts, joined, random_positions, row_bytes, rows, size
from azjax.players import RESIGNS, Player
from azjax.rating import score_interval
from envs.core import Game, State

_BATCH = 64
"""Positions that are searched for a win in two at a time, for each may have a hundred thousand lines."""


class Wins(NamedTuple):
    """Different positions that the player to move wins by force, and no sooner."""

    moves: int  # in how many of that player's moves
    states: State  # numpy [N, ...]
    winning: np.ndarray  # bool[N, A], the moves that do it


def wins_in_one(game: Game, states: State, legal: np.ndarray) -> np.ndarray:
    """Returns bool[N, A], the legal moves that end the game as a win of the player who makes them.

    Args:
      game: without chance.
      states: numpy [N, ...].
      legal: bool[N, A] of them.
    """
    wins = np.zeros_like(legal)
    if legal.any():
        found = expand(game, states, legal)
        after, mover = facts(game, found.states), facts(game, states).mover[found.parent]
        won = after.over & (np.take_along_axis(after.returns, mover[:, None], axis=1)[:, 0] > 0)
        wins[found.parent[won], found.action[won]] = True
    return wins


def wins_in_two(game: Game, states: State, legal: np.ndarray) -> np.ndarray:
    """Returns bool[N, A], the legal moves after which every reply allows a win in one, or is itself a loss.

    Where the mover is to move again, a win by that move is enough. A reply after which the opponent is to move again is
    taken for a defence.

    Args:
      game: without chance.
      states: numpy [N, ...], in which nobody wins in one.
      legal: bool[N, A] of them.
    """
    wins = np.zeros_like(legal)
    for start in range(0, len(legal), _BATCH):
        part = slice(start, start + _BATCH)
        wins[part] = _in_two(game, rows(states, part), legal[part])
    return wins


def _in_two(game: Game, states: State, legal: np.ndarray) -> np.ndarray:
    first = expand(game, states, legal)
    mover = facts(game, states).mover[first.parent]
    after = facts(game, first.states)
    forced = np.zeros(len(mover), bool)
    # The mover's own turn again: a win at once is enough.
    again = np.flatnonzero(~after.over & (after.mover == mover))
    if again.size:
        forced[again] = wins_in_one(game, rows(first.states, again), after.legal[again]).any(1)
    theirs = np.flatnonzero(~after.over & (after.mover != mover))
    # One reply refutes nearly every move, so that a first look at one spares most positions the look at all.
    one_reply = np.zeros_like(after.legal)
    one_reply[np.arange(len(one_reply)), after.legal.argmax(1)] = True
    for replies in (one_reply, after.legal):
        if theirs.size:
            theirs = theirs[_no_defence(game, rows(first.states, theirs), replies[theirs], mover[theirs])]
    forced[theirs] = True
    wins = np.zeros_like(legal)
    wins[first.parent[forced], first.action[forced]] = True
    return wins


def _no_defence(game: Game, states: State, replies: np.ndarray, winner: np.ndarray) -> np.ndarray:
    """Returns bool[N], whether every reply bool[N, A] lets `winner` int[N] win at once, or loses by itself."""
    reply = expand(game, states, replies)
    after, winner = facts(game, reply.states), winner[reply.parent]
    fails = after.over & (after.returns[np.arange(len(winner)), winner] > 0)
    back = ~after.over & (after.mover == winner)
    if back.any():
        fails[back] = wins_in_one(game, rows(reply.states, back), after.legal[back]).any(1)
    holds = np.ones(len(replies), bool)
    np.logical_and.at(holds, reply.parent, fails)
    return holds


def find_wins(game: Game, number: int, *, seed: int = 0, games: int = 256, rounds: int = 8) -> tuple[Wins, Wins]:
    """Returns positions of random games that are won in one and in two moves, `number` of each where there are so many.

    Args:
      game: without chance.
      number: of each, at most.
      seed: of the games: the same arguments give the same positions.
      games: played in a round.
      rounds: at most.

    Raises:
      ValueError: the game has chance.
    """
    found = [Wins(moves, _none(game), np.zeros((0, game.num_actions), bool)) for moves in (1, 2)]
    for turn in range(rounds):
        states = random_positions(game, games, seed * rounds + turn).states
        # In any order: the first ones would be of the first plies.
        order = np.random.default_rng([seed, turn]).permutation(size(states))
        for start in range(0, len(order), _BATCH):
            part = rows(states, order[start : start + _BATCH])
            legal = facts(game, part).legal
            one = wins_in_one(game, part, legal)
            found[0] = _with(found[0], part, one, number)
            left = ~one.any(1)
            if left.any() and len(found[1].winning) < number:
                rest = rows(part, left)
                found[1] = _with(found[1], rest, wins_in_two(game, rest, legal[left]), number)
            if min(len(wins.winning) for wins in found) >= number:
                return found[0], found[1]
    return found[0], found[1]


def _none(game: Game) -> State:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None][:0], game.init(jax.random.key(0)))


def _with(wins: Wins, states: State, winning: np.ndarray, most: int) -> Wins:
    """Adds the positions that have a winning move and are not there yet, up to `most` in all."""
    won = winning.any(1)
    states, winning = joined([wins.states, rows(states, won)]), np.concatenate([wins.winning, winning[won]])
    _, first = np.unique(row_bytes(states), return_index=True)
    kept = np.sort(first)[:most]
    return Wins(wins.moves, rows(states, kept), winning[kept])


def share_found(player: Player, wins: Wins, mesh: Mesh, seed: int = 0) -> dict[str, Any]:
    """Asks a player about every position.

    Returns:
      {"moves", "positions", "found", "share", "ci95": [lo, hi]}, of the positions in which it plays a winning move;
      share and ci95 are null where there is no position.
    """
    number, found = len(wins.winning), 0
    share: dict[str, Any] = {"share": None, "ci95": None}
    if number:
        moves = ask(player, wins.states, mesh, seed)
        found = int((wins.winning[np.arange(number), moves] & (moves != RESIGNS)).sum())
        value, lo, hi = score_interval(found, 0, number - found)
        share = {"share": value, "ci95": [lo, hi]}
    return {"moves": wins.moves, "positions": number, "found": found} | share
