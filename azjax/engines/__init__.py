"""Other people's engines as players: programs that speak GTP, UCI or USI over pipes."""

from collections.abc import Sequence

from azjax.engines.gtp import GtpEngine
from azjax.engines.pool import EnginePool
from azjax.engines.uci import UciEngine
from azjax.engines.words import parse_engine
from envs.core import Game

__all__ = ["EnginePool", "engine_player"]


def engine_player(game: Game, word: str, argument: str, options: Sequence[tuple[str, str]]) -> EnginePool:
    """Starts the engine that a word names.

    Args:
      game: what it is to play.
      word: the player's, such as "gtp:gnugo,level=1".
      argument: what follows "KIND:", up to the first comma.
      options: names and values.

    Raises:
      ValueError: there is no such engine, or it does not play this game, or an option is wrong.
    """
    spec = parse_engine(word, argument, options)
    start = GtpEngine if spec.kind == "gtp" else UciEngine
    return EnginePool(game, word, lambda: start(game, spec), spec.processes)
