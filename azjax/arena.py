"""The arena: matches of many games side by side on the device, each opening played with both seats.

The host keeps the list of games; a lane whose game ended takes the next one. The rules and the players' choices are
compiled programs over all devices; of several processes, each keeps the whole list. Outside players, such as engines,
are asked on the host.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from azjax import hosts
from azjax.openings import Opening, listed_openings, merge, random_openings
from azjax.outside import Answer, AnyPlayer, OutsidePlayer
from azjax.players import RESIGNS, ChooseFn, Player
from azjax.referee import Referee
from azjax.step import AXIS
from envs.chance import step_games
from envs.core import Game, State
from envs.record import GameRecord

_LOST_BY = ((-1.0, 1.0), (1.0, -1.0))
"""The returns of a game that player 0, or 1, gave up."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Match:
    """The result of a match, from a's side."""

    game: str
    a: str
    b: str
    wins: int
    draws: int
    losses: int
    distinct: int  # different games, by their moves
    seconds: float
    records: tuple[GameRecord, ...]

    @property
    def games(self) -> int:
        """How many were played."""
        return self.wins + self.draws + self.losses


def play_match(
    game: Game,
    a: AnyPlayer,
    b: AnyPlayer,
    *,
    games: int,
    mesh: Mesh,
    seed: int = 0,
    opening_plies: int = 2,
    openings: Sequence[Opening] | None = None,
    lanes: int = 512,
    on_progress: Callable[[int, int], None] = lambda done, games: None,
) -> Match:
    """Plays `games` games between a and b; game 2i and 2i + 1 have the same opening and exchanged seats.

    A truncated game counts as a draw and says so in its record. A player may give a game up (RESIGNS), an outside one
    forfeit it too; the record says how and why.

    Args:
      game: the rules.
      a, b: players.
      games: an even number.
      mesh: devices to use.
      seed: of openings and of random choices: the same arguments give the same games.
      opening_plies: random plies before the players take over; fewer where the game would end.
      openings: these in turn, in place of random ones.
      lanes: games side by side, at most; an outside player may take fewer.
      on_progress: called with (games done, games).

    Raises:
      ValueError: games is odd or below 2, or an outside player cannot play such a game.
      RuntimeError: with an outside player: a compiled player made an illegal move.
    """
    if games < 2 or games % 2:
        raise ValueError(f"games: got {games}, expected an even number of at least 2 (both seats of each opening)")
    started = time.perf_counter()
    key = jax.random.key(seed)
    chance_key = jax.random.fold_in(key, 2**31)
    if openings is None:
        starts, opening_actions = _openings(game, games // 2, opening_plies)(jax.random.fold_in(key, 0))
    else:
        starts, opening_actions = listed_openings(game, openings, games // 2)
    opening_actions = np.asarray(opening_actions)
    players = (a, b)
    outside = [player for player in players if isinstance(player, OutsidePlayer)]
    if outside and jax.process_count() > 1:
        raise ValueError(f"player: got {outside[0].name} in a run of several processes, expected one process")
    num_lanes = min([lanes, games, *(player.most_games for player in outside)])
    width = -(-num_lanes // (2 * mesh.size)) * mesh.size
    advance, load, look = _programs(game)

    played = _Games(game, (a.name, b.name), games, num_lanes, opening_actions)
    states = load(starts, played.in_lane // 2)
    referee = None
    if outside:
        referee = Referee(game, num_lanes, seed, opening_actions, advance)
        for lane in range(num_lanes):
            referee.place(lane, lane)
    given_up: dict[int, Answer] = referee.given_up if referee else {}
    number = 0
    while played.in_progress.any():
        mover, over, truncated, returns = map(np.asarray, look(states))
        refill = np.zeros(num_lanes, bool)
        for lane in sorted({*np.flatnonzero(played.in_progress & over).tolist(), *given_up}):
            for player in outside:
                player.finish(int(played.in_lane[lane]))
            if gave_up := given_up.pop(lane, None):
                refill[lane] = played.end(lane, _LOST_BY[mover[lane]], gave_up.end, gave_up.reason)
            else:
                refill[lane] = played.end(lane, returns[lane], "plies" if truncated[lane] else "rules")
            if referee and refill[lane]:
                referee.place(lane, int(played.in_lane[lane]))
        if refill.any():
            fresh = load(starts, played.in_lane // 2)
            states = merge(jnp.asarray(refill), fresh, states)
            on_progress(played.done, games)
            continue
        moves = np.full(num_lanes, -1, np.int32)
        if referee:
            referee.look(states)
        for index, player in enumerate(players):
            waiting = played.waiting_for(index, mover)
            if not waiting.size:
                continue
            if isinstance(player, OutsidePlayer):
                assert referee is not None
                moves[waiting] = referee.ask(player, waiting)
                continue
            waiting = waiting[:width]
            # Lanes that find no room wait for the next round; padding repeats the first.
            rows = np.resize(waiting, width)
            rows[waiting.size :] = waiting[0]
            number += 1
            choose = _chooser(player.choose, mesh)
            chosen = choose(player.params, jax.random.fold_in(key, number), load(states, rows))
            moves[waiting] = chosen[: waiting.size]
            for lane in waiting[moves[waiting] == RESIGNS]:
                given_up[int(lane)] = Answer(None, "resignation", "gave up")
        if referee:
            referee.write(moves)
        states, rolled = advance(states, moves, jax.random.fold_in(chance_key, number))
        played.write(moves, np.asarray(rolled))
        on_progress(played.done, games)
    return summarize(game.id, a.name, b.name, played.records(), time.perf_counter() - started)


class _Games:
    """The games of a match, in their order: which lane plays which, what was played, how each ended."""

    def __init__(self, game: Game, names: tuple[str, str], number: int, lanes: int, openings: np.ndarray):
        """Puts the first games into the lanes, each after its opening: int[number / 2, plies], -1: no move."""
        self._game, self._names = game, names
        self._events = [[int(move) for move in openings[g // 2] if move >= 0] for g in range(number)]
        self._opened = [len(moves) for moves in self._events]
        self._records: list[GameRecord | None] = [None] * number
        self._next = lanes
        self.in_lane = np.arange(lanes)  # the game's number
        self.in_progress = np.ones(lanes, bool)
        self.done = 0

    def waiting_for(self, player: int, mover: np.ndarray) -> np.ndarray:
        """Returns the lanes in which a (0) or b (1) is to move; a is player 0 in the games of even number."""
        is_a = mover == self.in_lane % 2
        return np.flatnonzero(self.in_progress & (is_a if player == 0 else ~is_a))

    def write(self, moves: np.ndarray, rolled: np.ndarray) -> None:
        """Takes down a move and the outcome that followed in each lane, -1 where there was none."""
        for lane in np.flatnonzero(moves >= 0):
            self._events[self.in_lane[lane]].append(int(moves[lane]))
        for lane in np.flatnonzero(rolled >= 0):
            self._events[self.in_lane[lane]].append(self._game.num_actions + int(rolled[lane]))

    def end(self, lane: int, returns: Sequence[float] | np.ndarray, end: str, note: str = "") -> bool:
        """Records the end of the game in a lane; returns whether the lane has a new one."""
        g, (first, second) = int(self.in_lane[lane]), self._names
        self._records[g] = GameRecord(
            game=self._game.id,
            players=(first, second) if g % 2 == 0 else (second, first),
            actions=tuple(self._events[g]),
            returns=(float(returns[0]), float(returns[1])),
            end=end,
            opening_plies=self._opened[g],
            note=note,
        )
        self.done += 1
        if self._next == len(self._records):
            self.in_progress[lane] = False
            return False
        self.in_lane[lane] = self._next
        self._next += 1
        return True

    def records(self) -> tuple[GameRecord, ...]:
        """Returns the games that ended."""
        return tuple(filter(None, self._records))


def ask(player: Player, states: State, mesh: Mesh, seed: int = 0, lanes: int = 256) -> np.ndarray:
    """Returns int32[N], what a player does in positions [N, ...], asked about `lanes` at a time: moves, or RESIGNS."""
    number = len(jax.tree.leaves(states)[0])
    width = -(-min(lanes, number) // mesh.size) * mesh.size
    choose, moves = _chooser(player.choose, mesh), []
    for start in range(0, number, width):
        rows = np.minimum(np.arange(start, start + width), number - 1)
        part = jax.tree.map(lambda leaf, rows=rows: leaf[rows], states)
        chosen = choose(player.params, jax.random.fold_in(jax.random.key(seed), start), part)
        moves.append(np.asarray(chosen)[: number - start])
    return np.concatenate(moves)


def summarize(game: str, a: str, b: str, records: tuple[GameRecord, ...], seconds: float) -> Match:
    """Counts games between a and b, of which a moved first in every other one, beginning with the first."""
    of_a = [record.return_of(number % 2) for number, record in enumerate(records)]
    return Match(
        game=game,
        a=a,
        b=b,
        wins=sum(value > 0 for value in of_a),
        draws=sum(value == 0 for value in of_a),
        losses=sum(value < 0 for value in of_a),
        distinct=len({record.actions for record in records}),
        seconds=seconds,
        records=records,
    )


@functools.lru_cache
def _openings(game: Game, number: int, plies: int) -> Callable[[jax.Array], tuple[State, jax.Array]]:
    """Returns a compiled program: key -> (states [number], actions int32[number, plies], -1 where none was played)."""
    return jax.jit(lambda rng_key: random_openings(game, rng_key, number, plies))


@functools.lru_cache
def _programs(game: Game) -> tuple[Callable, Callable, Callable]:
    """Returns compiled advance(states, moves int32[B], -1 to stay, rng_key), load(states, rows) and look(states)."""

    def advance(states: State, moves: jax.Array, rng_key: jax.Array) -> tuple[State, jax.Array]:
        moved, rolled = step_games(game, rng_key, states, jnp.maximum(moves, 0))
        return merge(moves >= 0, moved, states), jnp.where(moves >= 0, rolled, -1)

    def load(states: State, rows: jax.Array) -> State:
        return jax.tree.map(lambda leaf: leaf[rows], states)

    def look(states: State) -> tuple[jax.Array, ...]:
        return tuple(jax.vmap(ask)(states) for ask in (game.to_move, game.terminated, game.truncated, game.returns))

    return jax.jit(advance), jax.jit(load), jax.jit(look)


@functools.lru_cache
def _chooser(choose: ChooseFn, mesh: Mesh) -> Callable[[Any, jax.Array, State], np.ndarray]:
    """Compiles `choose` over the mesh: the games are split over the devices, each with a key of its own."""

    def on_device(params: Any, rng_key: jax.Array, states: State) -> jax.Array:
        return choose(params, jax.random.fold_in(rng_key, jax.lax.axis_index(AXIS)), states)

    equal, lanes = PartitionSpec(), PartitionSpec(AXIS)
    mapped = jax.shard_map(on_device, mesh=mesh, in_specs=(equal, equal, lanes), out_specs=lanes, check_vma=False)
    compiled, spread = jax.jit(mapped), NamedSharding(mesh, lanes)

    def chosen(params: Any, rng_key: jax.Array, states: State) -> np.ndarray:
        return hosts.fetch(compiled(params, rng_key, hosts.place(states, spread)))

    return chosen
