"""The referee of a match with outside players: tells them what was played, and lets no illegal move pass."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from azjax.outside import Answer, OutsidePlayer, Question
from azjax.players import RESIGNS
from envs.core import Game, State


class Referee:
    """Follows the games in all lanes on the host."""

    def __init__(
        self,
        game: Game,
        lanes: int,
        seed: int,
        openings: np.ndarray,
        advance: Callable[[State, Any, jax.Array], tuple[State, Any]],
    ):
        """Reads the openings.

        Args:
          game: the rules.
          lanes: games side by side.
          seed: of the match.
          openings: int[number, plies], the moves of each opening, -1 where none was played; game g has number g // 2.
          advance: (states [lanes, ...], moves int32[lanes], -1 to stay, a key for dice) -> (states, outcomes).

        Raises:
          ValueError: the game has dice, of whose rolls outside players are not told.
        """
        if game.has_chance:
            raise ValueError(f"player: got an engine in {game.id}, expected a game without dice")
        self.given_up: dict[int, Answer] = {}
        """Lanes whose player to move gave up."""
        self._game, self._seed = game, seed
        self._states: Any = None
        self._legal = np.zeros((lanes, game.num_actions), bool)
        self._game_of = np.zeros(lanes, int)
        self._moves: list[list[str]] = []
        self._openings: list[list[str]] = []
        start = _programs(game)[0](lanes)
        for first in range(0, len(openings), lanes):
            part = np.full((lanes, openings.shape[1]), -1, np.int32)
            part[: len(openings) - first] = openings[first : first + lanes]
            self._moves, states = [[] for _ in range(lanes)], start
            for moves in part.T:
                self.look(states)
                self.write(moves)
                states, _ = advance(states, moves, jax.random.key(0))
            self._openings += self._moves
        self._moves = [[] for _ in range(lanes)]

    def place(self, lane: int, game: int) -> None:
        """Starts a game of the match in a lane, after the moves of its opening."""
        self._game_of[lane] = game
        self._moves[lane] = list(self._openings[game // 2])

    def look(self, states: State) -> None:
        """Takes in the positions [lanes, ...] in which moves will now be made."""
        self._states = jax.tree.map(np.asarray, states)
        self._legal = np.asarray(_programs(self._game)[1](states))

    def ask(self, player: OutsidePlayer, lanes: np.ndarray) -> np.ndarray:
        """Returns int32, what the player does in each of these lanes; RESIGNS where a game is given up (`given_up`)."""
        questions = [
            Question(
                game=int(self._game_of[lane]),
                seed=int(np.random.SeedSequence([self._seed, self._game_of[lane]]).generate_state(1)[0]),
                moves=tuple(self._moves[lane]),
                state=self._state(lane),
                legal=self._legal[lane],
            )
            for lane in lanes
        ]
        answers = player.ask(questions)
        for lane, answer in zip(lanes, answers, strict=True):
            if answer.action is None:
                self.given_up[int(lane)] = answer
        return np.array([RESIGNS if answer.action is None else answer.action for answer in answers], np.int32)

    def write(self, moves: Sequence[int] | np.ndarray) -> None:
        """Takes down int32[lanes], the moves made in the positions of the last `look`, -1 where none was.

        Raises:
          RuntimeError: one is illegal; outside players were asked for legal ones, so this is a fault of the program.
        """
        for lane, move in enumerate(moves):
            if move < 0:
                continue
            name = self._game.move_name(self._state(lane), int(move))
            if not self._legal[lane, move]:
                raise RuntimeError(f"illegal move {name} after {' '.join(self._moves[lane]) or 'no move'}")
            self._moves[lane].append(name)

    def _state(self, lane: int) -> State:
        return jax.tree.map(lambda leaf: leaf[lane], self._states)


@functools.lru_cache
def _programs(game: Game) -> tuple[Callable[[int], State], Callable[[State], jax.Array]]:
    """Returns start(number of games) -> states, and compiled legal(states [B, ...]) -> bool[B, A]."""
    start = jax.jit(jax.vmap(game.init))
    return lambda number: start(jax.random.split(jax.random.key(0), number)), jax.jit(jax.vmap(game.legal_action_mask))
