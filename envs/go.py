"""Go, as in the AlphaZero paper: area scoring, positional superko, two passes or 2 N^2 plies end the game.

   A B C D E
 5 . X O . .   Black (player 0, X) starts. Chains of stones without an empty point beside them (a liberty) come off the
 4 X . X O .   board, the enemy's first. Here White may take the stone at C4 by B4. Black may not take back at once: no
 3 . X O . .   stone may make a whole board that was there before, whoever was to move then (positional superko). Nor
 2 . . . . .   may it leave its own chain without a liberty (suicide), unless that option is on.
 1 . . . . .

The score is Black's stones and the empty points that reach Black's stones alone, minus the same of White, minus komi.
No stone is dead by agreement: what is dead must be captured before the passes (Tromp-Taylor).
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from envs.core import RULES_BOUND, Game, Symmetry, absorb, check_max_plies, game_id, register_state, two_player_returns
from envs.go_board import Board

_COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"  # of a GTP vertex: no I
_NAMED_SIZES = (9, 13, 19)
_HISTORY = 8  # boards that the network sees


@register_state
class GoState:
    """One position on N x N points."""

    chains: (
        jax.Array
    )  # int16[N^2 + 2 N], codes (go_board.py) between a row of zeros above and one below; Black positive
    boards: jax.Array  # uint16[N^2], the last 8 boards, 2 bits each, the newest lowest: 1 Black, 2 White
    hashes: (
        jax.Array
    )  # uint32[2, max_plies], of the positions after 0, 1, ... plies; 0, the empty board's, where none yet
    ply: jax.Array  # int16[]
    passes: jax.Array  # int8[], passes since the last stone


_RULES = """\
Black, the first player, and White place stones in turn on the points of the
board. Stones that touch along a line are one chain; a chain without an empty
point beside it, a liberty, is taken off, the enemy's first. No move may leave
its own chain without a liberty, and none may make a whole board that was there
before (positional superko).

Two passes one after the other end the game, or 2 N^2 moves on a board of N
lines. A side's score is its stones and the empty points that touch only its
stones (area). No stone is dead by agreement: take off before you pass what is
dead. White gets komi, points for moving second.

Black is X in the terminal, White O. Moves: `D4`, `pass`; columns have no I,
rows count from below.
"""


@dataclasses.dataclass(frozen=True)
class Go(Game):
    """Go on `size` x `size` points. Action = row * size + column, row 0 on top; the last action is the pass.

    Planes: my stones now, theirs now, mine one ply ago, theirs, ... (8 boards, zeros before the first), 1 if Black
    is to move.
    """

    size: int = 19
    komi: float = 7.5  # points that White gets for moving second; a whole number allows draws
    suicide: bool = False  # a move may take off its own chain of two stones or more
    max_plies: int = RULES_BOUND

    rules = _RULES
    legend = "X: Black's stones, who begins; O: White's; .: an empty point."

    def __post_init__(self):
        largest = len(_COLUMNS)
        if isinstance(self.size, bool) or not isinstance(self.size, int) or not 2 <= self.size <= largest:
            raise ValueError(f"go: size: got {self.size!r}, expected a whole number from 2 to {largest}")
        if isinstance(self.komi, bool) or not isinstance(self.komi, int | float) or not math.isfinite(self.komi):
            raise ValueError(f"go: komi: got {self.komi!r}, expected a number such as 7.5")
        if not isinstance(self.suicide, bool):
            raise ValueError(f"go: suicide: got {self.suicide!r}, expected true or false")
        object.__setattr__(self, "komi", float(self.komi) + 0.0)  # -0.0 would be an equal game of another id
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, self._longest))

    @property
    def id(self) -> str:
        if self.size in _NAMED_SIZES:
            return game_id(f"go_{self.size}x{self.size}", self, plies=self._longest, named=("size",))
        return game_id("go", self, plies=self._longest)

    @property
    def num_actions(self) -> int:
        return self.board.points + 1

    @property
    def max_legal_actions(self) -> int:
        return self.num_actions

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        return (self.size, self.size, 2 * _HISTORY + 1)

    @functools.cached_property
    def board(self) -> Board:
        """The points, and what moves do to the stones on them."""
        return Board(self.size)

    @property
    def _longest(self) -> int:
        """The ply at which the rules end and score the game."""
        return 2 * self.size**2

    def init(self, rng_key: jax.Array) -> GoState:
        del rng_key
        return GoState(
            chains=jnp.zeros(self.board.code_entries, jnp.int16),
            boards=jnp.zeros(self.board.points, jnp.uint16),
            hashes=jnp.zeros((2, self.max_plies), jnp.uint32),
            ply=jnp.int16(0),
            passes=jnp.int8(0),
        )

    def step(self, state: GoState, action: jax.Array) -> GoState:
        board, sign = self.board, self._sign(state)
        chains = board.place(state.chains * sign, action, self.suicide) * sign
        stones = board.on_board(chains)
        newest = jnp.where(stones > 0, jnp.uint16(1), jnp.where(stones < 0, jnp.uint16(2), jnp.uint16(0)))
        written = np.arange(self.max_plies, dtype=np.int32)[None] == state.ply + 1
        next_state = GoState(
            chains=chains,
            boards=(state.boards << 2) | newest,
            hashes=jnp.where(written, board.hash(chains)[:, None], state.hashes),
            ply=state.ply + jnp.int16(1),
            passes=jnp.where(action == board.points, state.passes + jnp.int8(1), jnp.int8(0)),
        )
        return absorb(self.terminated(state), state, next_state)

    def legal_action_mask(self, state: GoState) -> jax.Array:
        codes = state.chains * self._sign(state)
        points = self.board.playable(codes, self.suicide) & ~self._repeating(state, codes)
        return jnp.append(points, True) & ~self.terminated(state)

    def to_move(self, state: GoState) -> jax.Array:
        return (state.ply % 2).astype(jnp.int32)

    def terminated(self, state: GoState) -> jax.Array:
        return (state.passes >= 2) | (state.ply >= self.max_plies)

    def truncated(self, state: GoState) -> jax.Array:
        return (state.passes < 2) & (state.ply >= self.max_plies) & (state.ply < self._longest)

    def area(self, state: GoState, scored: jax.Array) -> jax.Array:
        """Returns int32[], Black's area on the board as it stands less White's; not to be used where ~`scored`."""
        return self.board.area(state.chains, scored)

    def returns(self, state: GoState) -> jax.Array:
        scored = self.terminated(state) & ~self.truncated(state)
        area = self.area(state, scored)
        # Whole numbers on both sides: in float32 a komi just above 7 would be 7.
        below, above = (
            min(max(whole, -self.num_actions), self.num_actions)
            for whole in (math.floor(self.komi), math.ceil(self.komi))
        )
        black_wins, white_wins = area > below, area < above
        return two_player_returns(scored & (black_wins | white_wins), winner=white_wins.astype(jnp.int32))

    def observe(self, state: GoState) -> jax.Array:
        black_moves = self.to_move(state) == 0
        boards = state.boards.astype(jnp.uint32)
        swapped = ((boards & 0x5555) << 1) | ((boards >> 1) & 0x5555)
        # One bit a plane, the last plane's too.
        bits = jnp.where(black_moves, boards | (1 << 2 * _HISTORY), swapped)
        planes = (bits[:, None] >> np.arange(2 * _HISTORY + 1, dtype=np.uint32)[None]) & 1
        return planes.astype(jnp.float32).reshape(self.observation_shape)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The eight symmetries of the square: rotations, each also mirrored left to right."""
        squares = np.arange(self.board.points, dtype=np.int16).reshape(self.size, self.size)

        def turned(quarters: int, mirrored: bool) -> Symmetry:
            def transform(board, numpy):
                return numpy.flip(numpy.rot90(board, quarters), 1) if mirrored else numpy.rot90(board, quarters)

            permutation = np.append(transform(squares, np).reshape(-1), np.int16(self.board.points))
            return Symmetry(lambda observation: transform(observation, jnp), permutation)

        return tuple(turned(quarters, mirrored) for mirrored in (False, True) for quarters in range(4))

    def action_name(self, action: int) -> str:
        """Returns the GTP vertex: column letter without I, row number from below; or "pass"."""
        if action == self.board.points:
            return "pass"
        row, column = divmod(action, self.size)
        return f"{_COLUMNS[column]}{self.size - row}"

    def without_past(self, state: GoState) -> GoState:
        """Returns the position, whoever's move it is, as if no board had been there before it.

        Raises:
          ValueError: two passes have ended the game.
        """
        if int(state.passes) >= 2:
            raise ValueError("position: two passes have ended the game, expected one that can go on")
        ply = int(state.ply) % 2
        hashes = np.zeros((2, self.max_plies), np.uint32)
        hashes[:, ply : ply + 1] = np.asarray(self.board.hash(state.chains))[:, None]
        return dataclasses.replace(state, hashes=jnp.asarray(hashes), ply=jnp.int16(ply))

    def render(self, state: GoState) -> str:
        stones = np.asarray(self.board.on_board(state.chains)).reshape(self.size, self.size)
        letters = np.where(stones > 0, "X", np.where(stones < 0, "O", "."))
        rows = [f"{self.size - row:>2} {' '.join(letters[row])}" for row in range(self.size)]
        return "\n".join([f"   {' '.join(_COLUMNS[: self.size])}", *rows])

    def _sign(self, state: GoState) -> jax.Array:
        """Returns int16[], what turns codes into the mover's frame and back."""
        return jnp.where(self.to_move(state) == 0, jnp.int16(1), jnp.int16(-1))

    def _repeating(self, state: GoState, codes: jax.Array) -> jax.Array:
        """Returns bool[points]: where a stone would make a board that was there before.

        A stone on q repeats an earlier position only if the mover had then just the stones of now and one on q, so
        the hashes of the past name the few points to try (mostly none, or one in a ko); a suicide takes own stones off
        and is always tried. Two different boards count as the same by chance in 1 of 2^44 pairs at worst, those in
        which one colour's stones are equal; 2^64 in general.
        """
        board, sign = self.board, self._sign(state)
        now = board.hash(state.chains)
        black_moves = sign > 0
        own_words, own_word = (jnp.where(black_moves, words[0], words[1]) for words in (state.hashes, now))
        named = board.one_stone_more(own_words, own_word)  # point + 1; 0: none
        numbers = np.arange(1, board.points + 1, dtype=np.int32)
        suicides = jnp.where(board.suicides(codes), numbers, 0) if self.suicide else None

        def next_below(number: jax.Array) -> jax.Array:
            lower = jnp.max(jnp.where(named < number, named, 0))
            if suicides is None:
                return lower
            return jnp.maximum(lower, jnp.max(jnp.where(suicides < number, suicides, 0)))

        def body(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            number, repeating = carry
            after = board.hash(board.stones_after(codes, number - 1, self.suicide) * sign)
            seen = (state.hashes == after[:, None]).all(0).any()
            return next_below(number), repeating | ((numbers == number) & seen)

        start = (next_below(jnp.int32(board.points + 1)), jnp.zeros(board.points, jnp.bool_))
        return jax.lax.while_loop(lambda carry: carry[0] > 0, body, start)[1]


GAME = Go()
