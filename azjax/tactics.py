"""Positions that the player to move wins by force, in one move or two, found by the rules alone, and who finds them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

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
    if theirs.size:
        reply = expand(game, rows(first.states, theirs), after.legal[theirs])
        answered = facts(game, reply.states)
        back = ~answered.over & (answered.mover == mover[theirs[reply.parent]])
        lost = answered.over & (answered.returns[np.arange(len(back)), mover[theirs[reply.parent]]] > 0)
        refuted = ~back & ~lost
        if back.any():
            refuted[back] = ~wins_in_one(game, rows(reply.states, back), answered.legal[back]).any(1)
        holds = np.ones(len(theirs), bool)
        np.logical_and.at(holds, reply.parent, ~refuted)
        forced[theirs] = holds
    wins = np.zeros_like(legal)
    wins[first.parent[forced], first.action[forced]] = True
    return wins


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
    found: list[list[Wins]] = [[], []]
    for turn in range(rounds):
        states = random_positions(game, games, seed * rounds + turn).states
        # In any order: the first ones would be of the first plies.
        states = rows(states, np.random.default_rng([seed, turn]).permutation(size(states)))
        legal = facts(game, states).legal
        one = wins_in_one(game, states, legal)
        _keep(found[0], Wins(1, states, one))
        left = np.flatnonzero(~one.any(1))
        for start in range(0, len(left), _BATCH):
            if _count(found[1]) >= number:
                break
            part = left[start : start + _BATCH]
            _keep(found[1], Wins(2, rows(states, part), wins_in_two(game, rows(states, part), legal[part])))
        if min(map(_count, found)) >= number:
            break
    one, two = (_different(parts, number) for parts in found)
    return one, two


def _keep(parts: list[Wins], wins: Wins) -> None:
    won = wins.winning.any(1)
    parts.append(Wins(wins.moves, rows(wins.states, won), wins.winning[won]))


def _count(parts: Sequence[Wins]) -> int:
    return sum(len(part.winning) for part in parts)


def _different(parts: Sequence[Wins], number: int) -> Wins:
    states, winning = joined([part.states for part in parts]), np.concatenate([part.winning for part in parts])
    _, first = np.unique(row_bytes(states), return_index=True)
    kept = np.sort(first)[:number]
    return Wins(parts[0].moves, rows(states, kept), winning[kept])


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
