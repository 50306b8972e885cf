"""Every player by its word: compiled ones, engines, and the agent of a run that plays by the clock."""

from collections.abc import Sequence

from azjax import engines
from azjax.connect_four_player import ConnectFourSolver
from azjax.outside import Answer, AnyPlayer, OutsidePlayer, Question
from azjax.players import (
    ENGINES,
    WITH_NETWORK,
    LoadedRun,
    LoadRunFn,
    make_player,
    option_number,
    parse_player,
    resign_value,
    run_of_player,
)
from azjax.thinker import Thinker
from envs.connect_four import ConnectFour
from envs.core import Game


def any_player(game: Game, word: str, load_run: LoadRunFn) -> AnyPlayer:
    """Builds a player; an engine is started.

    Args:
      game: what it plays.
      word: see azjax/players.py.
      load_run: reads agents.

    Raises:
      ValueError: the word is malformed, the run is of another game or cannot be read, or there is no such engine.
    """
    spec = parse_player(word)
    options = dict(spec.options)
    if spec.kind in ENGINES:
        return engines.engine_player(game, word, spec.argument, spec.options)
    if spec.kind == "solver" and isinstance(game, ConnectFour) and not spec.argument:
        return ConnectFourSolver(game)
    if spec.kind not in WITH_NETWORK or "seconds" not in options:
        return make_player(game, word, load_run)
    for name in options:
        if name not in ("seconds", "resign"):
            raise ValueError(f"player {word!r}: got {name} with seconds, expected only resign beside it")
    return ClockPlayer(
        game,
        run_of_player(game, word, load_run),
        word,
        seconds=option_number(word, "seconds", options["seconds"], float, 0.001),
        resign=resign_value(word, options.get("resign")),
    )


class ClockPlayer(OutsidePlayer):
    """An agent that thinks for the same time about each move, of one game at a time, and keeps its tree."""

    most_games = 1

    def __init__(
        self,
        game: Game,
        agent: LoadedRun,
        name: str,
        *,
        seconds: float,
        resign: float | None = None,
        megabytes: int = 64,
    ):
        """Compiles nothing yet: the first move does, and still has its whole time.

        Args:
          game: what it plays.
          agent: whose network evaluates.
          name: the player's.
          seconds: of a move.
          resign: it gives up where it expects a value below this, from -1 to 0; None: never.
          megabytes: of its tree.

        Raises:
          ValueError: the game has dice.
        """
        self.name, self._seconds, self._resign = name, seconds, resign
        self._thinker = Thinker(game, agent, megabytes=megabytes)

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        return [self._answer(question) for question in questions]

    def finish(self, game: int) -> None:
        self._thinker.forget()

    def close(self) -> None:
        pass

    def _answer(self, question: Question) -> Answer:
        thinker = self._thinker
        thinker.place(None, question.moves)
        thinker.think_for(self._seconds)
        best = thinker.thought().lines[0]
        if self._resign is not None and best.q < self._resign:
            return Answer(None, "resignation", f"gave up at {50 * (best.q + 1):.1f} %")
        return Answer(thinker.game.parse_move(thinker.state, best.moves[0]))
