"""Backgammon, checker by checker: two dice, fifteen checkers each; gammons count twice, backgammons three times.

 13 14 15 16 17 18 | 19 20 21 22 23 24   Points are numbered by the player to move, whose checkers go from 24 down to 1
 X5  .  .  . O3  . | O5  .  .  .  . X2   and off the board; 25 is the bar. Player 0 (X) begins. A die takes one checker
                                         as many points on, but not to a point with two enemy checkers or more. A single
 O5  .  .  . X3  . | X5  .  .  .  . O2   enemy there goes to its bar, and must enter before others of its side move.
 12 11 10  9  8  7 |  6  5  4  3  2  1

Once all are on points 1 to 6, checkers are borne off: from the die's own point, or from the highest if none stands on
or behind that. Both dice must be played if that is possible, else the larger if that is; a double four times, or as
often as it can be.

Action = 6 * source + die - 1, where source 0 passes, 1 is the bar, 2 is point 24, ..., 25 is point 1: pgx's numbers. A
turn is one move for each die; action 0 passes when no die that is left can be played, and only then. Before each turn
a chance outcome is the roll of both dice.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.core import RULES_BOUND, Game, absorb, check_max_plies, game_id, register_state, stack_planes

CHECKERS = 15
ROLLS = np.array([*itertools.combinations(range(1, 7), 2), *((die, die) for die in range(1, 7))], np.int8)
"""int8[21, 2], the dice of each outcome, the smaller first. Doubles come last: the first roll has 15 outcomes."""

_BAR = 25
_PLACES = np.arange(_BAR + 1, dtype=np.int32)  # 0: the enemy's bar, 1 to 24: points, 25: the mover's bar
_START = {24: 2, 13: 5, 8: 3, 6: 5}
_SOURCE, _DIE = np.divmod(np.arange(6 * 26, dtype=np.int32), 6) + np.array([[0], [1]], np.int32)
_FIRST_PROBS = np.where(np.arange(21) < 15, 1 / 15, 0).astype(np.float32)
_LATER_PROBS = np.where(np.arange(21) < 15, 1 / 18, 1 / 36).astype(np.float32)
_USUAL_PLIES, _MOST_PLIES = 2000, np.iinfo(np.int16).max


@register_state
class BackgammonState:
    """One position, as the player to move sees it; before a roll and at the end, the player whose turn would come."""

    board: jax.Array  # int8[26], by place: > 0 the mover's checkers, < 0 the other's; 0 and 25 are the bars
    low: jax.Array  # int8[], the smaller of two dice to play, 0 if there is one kind
    high: jax.Array  # int8[], the other, 0 before the roll
    times: jax.Array  # int8[], how often `high` may be played: up to 4
    player: jax.Array  # int8[], who is to move
    ply: jax.Array  # int16[], moves and passes made


class Playable(NamedTuple):
    """What may be played now."""

    low: jax.Array  # uint32[], bit p: a checker on place p may be moved by the smaller die
    high: jax.Array  # uint32[], by the other
    passes: jax.Array  # bool[], neither, and it is time to move


_RULES = """\
Two dice say how far checkers go: each die takes one checker as many points on,
a double counts four times. The players go in opposite directions, each from its
own point 24 down to point 1 and off the board; the first player is red, X in
the terminal.

A point with two enemy checkers or more is closed. A single one is hit: it goes
to the bar, and must come in again before others of its side move. Once all of
your checkers are on points 1 to 6, they are borne off: by the die's own number,
or by a higher one if no checker stands farther away. Both dice must be played
if possible, else the larger one.

Who has borne off all fifteen checkers first wins: 1 point; 2, a gammon, if the
other has borne off none; 3, a backgammon, if besides one of the other's is
still on the bar or on the winner's points 1 to 6. There is no doubling cube.

One move is one checker by one die; points count as seen by who moves. Moves:
`13/7`, `bar/22`, `6/off`, `pass`. The first player begins, and the dice are
rolled before each turn.
"""


@dataclasses.dataclass(frozen=True)
class Backgammon(Game):
    """Backgammon without the doubling cube; returns are points / 3. The rules set no limit of plies: 2,000 truncate.

    Planes, on points 1 to 24 in the mover's count: my checkers there are 1 or more, 2 or more, 3 or more, (their number
    - 3) / 2 above that; the same of theirs (Tesauro, Practical Issues in Temporal Difference Learning, 1992, section
    4). Then constants: on the bar / 2, mine, theirs; borne off / 15, mine, theirs; how often each die 1 to 6 is to be
    played.
    """

    max_plies: int = RULES_BOUND

    num_actions = 6 * 26
    max_legal_actions = 2 * CHECKERS  # no player has checkers on more than 15 places, and two kinds of dice
    observation_shape = (1, 24, 18)
    has_chance = True
    rules = _RULES
    legend = "X: the first player's checkers; O: the second's, with their number; points count as the mover sees them."

    def __post_init__(self):
        limit = _USUAL_PLIES if self.max_plies is None else self.max_plies
        object.__setattr__(self, "max_plies", check_max_plies(limit, _MOST_PLIES))

    @property
    def id(self) -> str:
        return game_id("backgammon", self, plies=_USUAL_PLIES)

    def init(self, rng_key: jax.Array) -> BackgammonState:
        del rng_key
        board = np.zeros(_BAR + 1, np.int8)
        for point, number in _START.items():
            board[point] += number
            board[_BAR - point] -= number
        zero = jnp.int8(0)
        return BackgammonState(jnp.asarray(board), zero, zero, zero, zero, jnp.int16(0))

    def step(self, state: BackgammonState, action: jax.Array) -> BackgammonState:
        die = action % 6 + 1
        source = _BAR + 1 - action // 6
        passes = source > _BAR
        target = jnp.where(passes | (source <= die), -1, source - die)  # -1: no place, the checker is off
        arrives = target == _PLACES
        hits = (arrives & (state.board == -1)).any()
        change = arrives.astype(jnp.int8) * (1 + hits) - (source == _PLACES) - (hits & (_PLACES == 0))
        board = state.board + change.astype(jnp.int8)

        two_kinds = state.low > 0
        times = jnp.where(two_kinds, jnp.int8(1), state.times - jnp.int8(1))
        other = jnp.where(two_kinds, state.low + state.high - die.astype(jnp.int8), state.high)
        turn_over = passes | (times == 0) | ~(board > 0).any()
        zero = jnp.int8(0)
        next_state = BackgammonState(
            board=jnp.where(turn_over, -board[::-1], board),
            low=zero,
            high=jnp.where(turn_over, zero, other),
            times=jnp.where(turn_over, zero, times),
            player=state.player ^ turn_over.astype(jnp.int8),
            ply=state.ply + jnp.int16(1),
        )
        return absorb(self.terminated(state) | (state.high == 0), state, next_state)

    def is_chance(self, state: BackgammonState) -> jax.Array:
        return (state.high == 0) & ~self.terminated(state)

    def chance_probs(self, state: BackgammonState) -> jax.Array:
        """Returns float32[21], the probabilities of ROLLS: without doubles at first, when the dice say who begins."""
        return jnp.where(state.ply == 0, _FIRST_PROBS, _LATER_PROBS)

    def step_chance(self, state: BackgammonState, outcome: jax.Array) -> BackgammonState:
        rolled = np.arange(len(ROLLS), dtype=np.int32) == outcome
        low, high = (jnp.where(rolled, ROLLS[:, die], jnp.int8(0)).max() for die in (0, 1))
        double = low == high
        next_state = dataclasses.replace(
            state,
            low=jnp.where(double, jnp.int8(0), low),
            high=high,
            times=jnp.where(double, jnp.int8(4), jnp.int8(1)),
        )
        return absorb(~self.is_chance(state), state, next_state)

    def legal_action_mask(self, state: BackgammonState) -> jax.Array:
        playable = self._playable(state)
        with_high, with_low = state.high == _DIE, state.low == _DIE
        places = jnp.where(with_high, playable.high, jnp.where(with_low, playable.low, jnp.uint32(0)))
        moves = (places >> (_BAR + 1 - _SOURCE).astype(np.uint32)) & 1 != 0
        return moves | (playable.passes & (np.arange(self.num_actions) == 0))

    def legal_actions(self, state: BackgammonState) -> jax.Array:
        playable = self._playable(state)
        slots = np.arange(self.max_legal_actions, dtype=np.uint32)

        def number_from(place: jax.Array) -> jax.Array:
            """Returns uint32[slots], the number of moves from a place and the places above it."""
            return jax.lax.population_count(playable.low >> place) + jax.lax.population_count(playable.high >> place)

        # Actions are ordered by place downwards and die upwards. A slot's place is the highest from which upwards
        # there are more moves than slots before it: five steps of a binary search, eight times as fast as comparing
        # every slot with every move.
        place = jnp.zeros_like(slots)
        for step in (16, 8, 4, 2, 1):
            higher = place | np.uint32(step)
            place = jnp.where(number_from(higher) > slots, higher, place)
        with_low = slots < number_from(place + 1) + ((playable.low >> place) & 1)
        die = jnp.where(with_low, state.low, state.high).astype(jnp.int32)
        action = 6 * (_BAR + 1 - place.astype(jnp.int32)) + die - 1
        chosen = jnp.where(slots < number_from(jnp.uint32(0)), action, -1).astype(jnp.int16)
        return jnp.where(playable.passes & (slots == 0), jnp.int16(0), chosen)

    def to_move(self, state: BackgammonState) -> jax.Array:
        return state.player.astype(jnp.int32)

    def terminated(self, state: BackgammonState) -> jax.Array:
        return self._won(state) | (state.ply >= self.max_plies)

    def truncated(self, state: BackgammonState) -> jax.Array:
        return ~self._won(state) & (state.ply >= self.max_plies)

    def returns(self, state: BackgammonState) -> jax.Array:
        gammon = state.board.sum(dtype=jnp.int32) == CHECKERS  # the loser, who is to move, has borne off none
        far = gammon & (state.board[19:] > 0).any()
        points = jnp.where(self._won(state), 1 + gammon + far, 0)
        value = (points * (2 * state.player - 1)).astype(jnp.float32) / 3
        return jnp.stack([value, -value])

    def observe(self, state: BackgammonState) -> jax.Array:
        board = state.board.astype(jnp.float32)
        planes = []
        for sign in (1, -1):
            number = jnp.maximum(sign * board[1:_BAR], 0)
            planes += [*((number >= least).astype(jnp.float32) for least in (1, 2, 3)), jnp.maximum(number - 3, 0) / 2]
        off = [(CHECKERS - jnp.maximum(sign * board, 0).sum()) / CHECKERS for sign in (1, -1)]
        dice = [jnp.where(state.high == die, state.times, state.low == die).astype(jnp.float32) for die in range(1, 7)]
        constants = [board[_BAR] / 2, -board[0] / 2, *off, *dice]
        planes += [jnp.broadcast_to(constant, (24,)) for constant in constants]
        return stack_planes([plane.reshape(1, 24) for plane in planes])

    def action_name(self, action: int) -> str:
        source, die = _BAR + 1 - action // 6, action % 6 + 1
        if source > _BAR:
            return "pass" if die == 1 else f"pass({die})"  # those that no position allows
        start = "bar" if source == _BAR else str(source)
        if source > die:
            return f"{start}/{source - die}"
        return f"{start}/off" if source == die else f"{start}/off({die})"

    def render(self, state: BackgammonState) -> str:
        board, player = np.asarray(state.board).tolist(), int(state.player)
        names = ("X", "O")[player], ("O", "X")[player]

        def place(point: int) -> str:
            number = board[point]
            return f"{names[number < 0]}{abs(number)}" if number else "."

        def line(points: range, text: Callable[[int], str]) -> str:
            cells = [f"{text(point):>3}" for point in points]
            return "".join([*cells[:6], " |", *cells[6:]])

        upper, lower = range(13, _BAR), range(12, 0, -1)
        low, high, times = int(state.low), int(state.high), int(state.times)
        dice = "-".join(map(str, [high] * times + [low] * (low > 0)))
        turn = f"{names[0]} plays {dice}" if dice else f"{names[0]} to roll"
        sides = [
            f"{name}: bar {abs(bar)}, off {CHECKERS - sum(max(sign * number, 0) for number in board)}"
            for name, bar, sign in ((names[0], board[_BAR], 1), (names[1], board[0], -1))
        ]
        return "\n".join([line(upper, str), line(upper, place), "", line(lower, place), line(lower, str), turn, *sides])

    def _won(self, state: BackgammonState) -> jax.Array:
        """Returns bool[]: the other player, whose turn it was, has borne off all checkers."""
        return ~(state.board < 0).any()

    def _playable(self, state: BackgammonState) -> Playable:
        """Returns the moves that leave as many of the dice to be played as any, of one die alone the larger."""
        board = state.board
        mine, several = _word(board > 0), _word(board > 1)
        free = _word((board > -2) & (_PLACES > 0) & (_PLACES < _BAR))
        low, high = state.low.astype(jnp.uint32), state.high.astype(jnp.uint32)
        alive = (state.high > 0) & ~self.terminated(state)
        with_low = jnp.where(alive & (low > 0), _movable(mine, free, low), 0)
        with_high = jnp.where(alive, _movable(mine, free, high), 0)

        # Of two dice, the moves after which the other die can be played. A double needs no such look: its checkers move
        # by one number and cannot get in each other's way, so that every order plays as many of the four.
        place = jnp.uint32(1) << np.arange(_BAR + 1, dtype=np.uint32)

        def followed(moves: jax.Array, die: jax.Array, other: jax.Array) -> jax.Array:
            after = (mine & ~(place & ~several)) | ((place >> die) & ~jnp.uint32(1))
            return moves & _word(_movable(after, free, other) != 0)

        low_first, high_first = followed(with_low, low, high), followed(with_high, high, low)
        both, two_kinds = (low_first | high_first) != 0, low > 0
        only_low = jnp.where(with_high == 0, with_low, 0)
        playable_low = jnp.where(both, low_first, only_low)
        playable_high = jnp.where(two_kinds & both, high_first, with_high)
        return Playable(playable_low, playable_high, alive & ((playable_low | playable_high) == 0))


def _word(places: jax.Array) -> jax.Array:
    """Returns uint32[], with bit p set where places[p] bool[26] is."""
    return jnp.where(places, jnp.uint32(1) << np.arange(_BAR + 1, dtype=np.uint32), jnp.uint32(0)).sum(dtype=jnp.uint32)


def _movable(mine: jax.Array, free: jax.Array, die: jax.Array) -> jax.Array:
    """Returns the places from which a checker can be moved by a die.

    Args:
      mine: uint32[...], the places of the mover's checkers.
      free: uint32[], the points without two enemies.
      die: uint32[].
    """
    steps = mine & (free << die)
    # Below point 7, the highest place: all bits under it are filled, and then all but it taken away.
    filled = mine | (mine >> 1)
    filled = filled | (filled >> 2)
    filled = filled | (filled >> 4)
    highest = filled ^ (filled >> 1)
    off = jnp.where(mine >> (die + 1) == 0, highest, mine & (jnp.uint32(1) << die))
    home, on_bar = mine < 1 << 7, mine >> _BAR != 0
    return jnp.where(on_bar, steps & np.uint32(1 << _BAR), jnp.where(home, steps | off, steps))


GAME = Backgammon()
