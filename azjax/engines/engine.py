"""What the clients of the three protocols have in common."""

import abc
from collections.abc import Sequence


class Resigned(Exception):
    """An engine gave its game up; the message says how."""


class Engine(abc.ABC):
    """An engine's process, spoken to in its protocol. All methods but `close` raise EngineFailure."""

    @abc.abstractmethod
    def new_game(self, seed: int) -> None:
        """Begins a game; `seed` is for engines that take one."""

    @abc.abstractmethod
    def choose(self, moves: Sequence[str]) -> str:
        """Returns what the engine plays after `moves` from the start of the game, as it writes it.

        Raises:
          Resigned: it gives up.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the process; may be called twice."""
