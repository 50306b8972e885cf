"""An engine as a player of many games: a process for each game in progress, replaced when it fails."""

import atexit
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from azjax.engines.engine import Engine, Resigned
from azjax.engines.process import EngineFailure, short
from azjax.outside import Answer, OutsidePlayer, Question
from envs.core import Game


class EnginePool(OutsidePlayer):
    """Plays by an engine. As many processes think at a time as there are cores: more would take time from one another.

    A process that fails loses its game and is replaced when the next game begins.
    """

    def __init__(self, game: Game, name: str, start: Callable[[], Engine], processes: int):
        """Starts one process, so that what is wrong with the engine's word is told now.

        Args:
          game: what it plays.
          name: the player's.
          start: starts a process.
          processes: at most.

        Raises:
          ValueError: the engine cannot play this game or does not take its options.
        """
        self.name, self.most_games = name, processes
        self._game, self._start = game, start
        try:
            self._idle = [start()]
        except EngineFailure as failure:
            raise ValueError(f"player {name!r}: the engine {failure.reason}") from None
        self._playing: dict[int, Engine] = {}
        atexit.register(self.close)
        self._threads = ThreadPoolExecutor(min(processes, os.cpu_count() or 1), thread_name_prefix="engine")

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        return list(self._threads.map(self._answer, questions))

    def finish(self, game: int) -> None:
        engine = self._playing.pop(game, None)
        if engine is not None:
            self._idle.append(engine)

    def close(self) -> None:
        for engine in [*self._idle, *self._playing.values()]:
            engine.close()
        self._idle, self._playing = [], {}
        self._threads.shutdown()
        atexit.unregister(self.close)

    def _answer(self, question: Question) -> Answer:
        try:
            if question.game not in self._playing:
                self._playing[question.game] = self._opened(question.seed)
            word = self._playing[question.game].choose(question.moves)
        except Resigned as how:
            return Answer(None, "resignation", str(how))
        except EngineFailure as failure:
            return self._failed(question.game, failure.end, failure.reason)
        try:
            action = self._game.parse_move(question.state, word)
        except ValueError:
            return self._failed(question.game, "forfeit", f"played {short(word)!r}, which is no move")
        if not 0 <= action < question.legal.size or not question.legal[action]:
            return self._failed(question.game, "forfeit", f"played {short(word)!r}, which is illegal")
        return Answer(action)

    def _opened(self, seed: int) -> Engine:
        """Returns an engine at the start of a game: an idle one that takes it, else a new one."""
        while True:
            try:
                engine = self._idle.pop()
            except IndexError:
                break
            try:
                engine.new_game(seed)
                return engine
            except EngineFailure:  # it ended or lost its way after its last game, which was over
                engine.close()
        try:
            engine = self._start()
        except ValueError as error:
            raise EngineFailure(str(error)) from None
        try:
            engine.new_game(seed)
        except EngineFailure:
            engine.close()
            raise
        return engine

    def _failed(self, game: int, end: str, reason: str) -> Answer:
        engine = self._playing.pop(game, None)
        if engine is not None:
            engine.close()
        return Answer(None, end, reason)
