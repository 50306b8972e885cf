"""Players whom the owner of the server lets in by their words, such as engines: visitors choose among these alone."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import envs
from azjax.agents.shipped import find_agent
from azjax.engines.words import find_engine
from azjax.line import Line
from azjax.opponents import any_player
from azjax.outside import Answer, AnyPlayer, OutsidePlayer, Question
from azjax.players import ENGINES, RESIGNS, PlayerSpec, parse_player
from azjax.rundir import RunDirectory, load_run
from azjax.web.fields import Refused
from envs.chess.game import Chess
from envs.connect_four import ConnectFour
from envs.core import Game, State
from envs.go import Go
from envs.shogi.game import Shogi
from envs.tic_tac_toe import TicTacToe

_MOST_STARTED = 8
_PLAYS = {"gtp": Go, "uci": Chess, "usi": Shogi, "solver": (TicTacToe, ConnectFour)}
"""Kinds of players whose games their words do not name. The solver goes through every position of any other game."""


class Guests:
    """The players of the command line. A process is started when its player is first to move."""

    def __init__(self, words: Sequence[str]):
        """Starts nothing.

        Raises:
          ValueError: a word names no player, no program that is there, or no run.
        """
        self._game_of = {word: _game_of(word) for word in words}
        self._started: dict[tuple[str, str], tuple[AnyPlayer, Line | None]] = {}  # the one used last is the last

    def words(self, game: Game) -> list[str]:
        """Returns the words of those who play a game."""
        return [word for word in self._game_of if self._plays(game, word)]

    def answer(self, word: str, line: Line, seed: int) -> Answer:
        """Returns what a player does in the position now; the same seed gives the same answer of one that draws.

        Raises:
          Refused: the player is not one of those let in, does not play this, or fails.
        """
        game = line.game
        if word not in self._game_of:
            raise Refused(f"player: got {word[:80]!r}, which is not one of those that azjax serve --player names")
        if not self._plays(game, word):
            raise Refused(f"player: {word} does not play {game.id}")
        player = self._player(game, word, line)
        if not isinstance(player, OutsidePlayer):
            states = jax.tree.map(lambda leaf: leaf[None], line.state)
            action = int(chooser(player.choose)(player.params, jax.random.key(seed), states)[0])
            return Answer(None, "resignation", "gave up") if action == RESIGNS else Answer(action)
        if not line.own_start:
            raise Refused(f"player: {word} follows a game from its start, and this one began elsewhere")
        state: State = jax.tree.map(np.asarray, line.state)
        mask = np.zeros(game.num_actions, bool)
        mask[line.legal] = True
        (answer,) = player.ask([Question(0, seed, tuple(line.names()), state, mask)])
        if answer.action is None and answer.end != "resignation":
            raise Refused(f"player: {word} {answer.reason}")
        return answer

    def close(self) -> None:
        """Ends the processes."""
        for player, _ in self._started.values():
            _close(player)
        self._started = {}

    def _plays(self, game: Game, word: str) -> bool:
        """Returns whether a player's word is of this game, without starting anything."""
        wanted = self._game_of[word]
        return envs.is_named(game, wanted) if isinstance(wanted, str) else isinstance(game, wanted)

    def _player(self, game: Game, word: str, line: Line) -> AnyPlayer:
        """Returns the player, which follows one game at a time: another one begins anew."""
        key = game.id, word
        try:
            player, follows = self._started.pop(key, None) or (any_player(game, word, load_run), None)
        except ValueError as error:
            raise Refused(str(error)) from None
        if isinstance(player, OutsidePlayer) and follows is not line:
            player.finish(0)
        self._started[key] = player, line
        while len(self._started) > _MOST_STARTED:
            _close(self._started.pop(next(iter(self._started)))[0])
        return player


@functools.lru_cache(maxsize=32)
def chooser(choose: Any) -> Any:
    """Returns a player's function compiled."""
    return jax.jit(choose)


def _close(player: AnyPlayer) -> None:
    if isinstance(player, OutsidePlayer):
        player.close()


def _game_of(word: str) -> str | type[Game] | tuple[type[Game], ...]:
    """Returns the game that a player's word is of: its name, or the classes of those that its kind plays.

    Raises:
      ValueError: there is no such player.
    """
    spec: PlayerSpec = parse_player(word)
    match spec.kind:
        case "agent":
            return find_agent(spec.argument).config.game
        case "run" | "alphabeta":
            word_of_game = RunDirectory(spec.argument.partition("@")[0]).read_config().game
            if envs.reference(word_of_game) is None:
                envs.make(word_of_game)
            return word_of_game
        case kind if kind in ENGINES:
            find_engine(word, spec.argument)
    return _PLAYS.get(spec.kind, Game)
