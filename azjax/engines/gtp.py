"""A client of GTP, the Go Text Protocol, version 2 (Farneback 2002): a command a line, an answer a paragraph."""

import time
from collections.abc import Sequence
from pathlib import Path

from azjax.engines.engine import Engine, Resigned
from azjax.engines.process import EngineFailure, EngineProcess, short
from azjax.engines.words import EngineSpec
from envs.core import Game
from envs.go import Go

_COLOURS = ("black", "white")
_MOST_LINES = 10_000  # of one answer
_SETUP_SECONDS = 120.0  # for answers that need no thought, though some load a network first


class GtpEngine(Engine):
    """A Go engine. Options of its own are GTP commands: `level=1` is the command "level 1"."""

    def __init__(self, game: Game, spec: EngineSpec):
        """Starts the engine and tells it the rules.

        Raises:
          ValueError: the game is not Go, or the engine knows no such option.
          EngineFailure: the engine does not answer as GTP has it.
        """
        if not isinstance(game, Go):
            raise ValueError(f"player {spec.word!r}: got {game.id}, expected a game of Go")
        for name in ("nodes", "depth", "resign"):
            if getattr(spec, name) is not None:
                raise ValueError(f"player {spec.word!r}: got {name}, which GTP does not have")
        if spec.seconds is not None and spec.seconds != int(spec.seconds):
            raise ValueError(
                f"player {spec.word!r}: got seconds {spec.seconds:g}, expected whole ones: GTP has no others"
            )
        self._spec, self._number = spec, 0
        self._known: list[str] | None = None  # the moves on its board; None: not this game's
        self._process = EngineProcess([*spec.command, *_arguments(spec, game)])
        try:
            self._commands = set(self._tell("list_commands").split())
            self._set_up(game)
        except BaseException:
            self._process.close()
            raise

    def _set_up(self, game: Go) -> None:
        self._tell(f"boardsize {game.size}")
        self._tell(f"komi {game.komi:g}")
        for name, value in self._spec.own.items():
            if name not in self._commands:
                raise ValueError(
                    f"player {self._spec.word!r}: got option {name}, which is none of the engine's commands"
                )
            self._tell(f"{name} {value}")
        if "kata-set-rules" in self._commands:
            self._tell("kata-set-rules tromp-taylor")
        if self._spec.seconds is not None:
            self._tell(f"time_settings 0 {int(self._spec.seconds)} 1")

    def new_game(self, seed: int) -> None:
        self._tell("clear_board")
        if "set_random_seed" in self._commands:  # GNU Go
            self._tell(f"set_random_seed {seed % 2**31}")
        self._known = []

    def choose(self, moves: Sequence[str]) -> str:
        self._show(moves)
        colour = _COLOURS[len(moves) % 2]
        if self._spec.seconds is not None:
            self._tell(f"time_left {colour} {int(self._spec.seconds)} 1")
        answer = self._tell(f"genmove {colour}", (self._spec.seconds or 0.0) + self._spec.patience)
        if answer.lower() == "resign":
            self._known = None
            raise Resigned("resigned")
        assert self._known is not None
        self._known.append(answer.lower())
        return answer

    def close(self) -> None:
        self._process.close("quit")

    def _show(self, moves: Sequence[str]) -> None:
        """Puts the moves on the engine's board, the new ones alone where it has the others."""
        words = [move.lower() for move in moves]
        if self._known is None or self._known != words[: len(self._known)]:
            self._tell("clear_board")
            self._known = []
        for ply in range(len(self._known), len(words)):
            self._tell(f"play {_COLOURS[ply % 2]} {moves[ply]}")
            self._known.append(words[ply])

    def _tell(self, command: str, seconds: float = _SETUP_SECONDS) -> str:
        """Returns the engine's answer, its lines joined; the command's number tells it from others."""
        self._number += 1
        deadline = time.monotonic() + seconds
        late = f"gave no answer to {command!r} for {seconds:g} s"
        self._process.send(f"{self._number} {command}")
        opened = self._process.read_line(deadline, late)
        while not opened.strip():
            opened = self._process.read_line(deadline, late)
        head, _, first = opened.partition(" ")
        lines = [first]
        while line := self._process.read_line(deadline, late).rstrip():
            lines.append(line)
            if len(lines) > _MOST_LINES:
                raise EngineFailure(f"answered {command!r} with more than {_MOST_LINES} lines")
        answer = "\n".join(lines).strip()
        if head == f"?{self._number}":
            raise EngineFailure(f"refused {command!r}: {short(answer)}")
        if head != f"={self._number}":
            raise EngineFailure(f"answered {command!r} with {short(opened)!r}, which is not GTP")
        return answer


def _arguments(spec: EngineSpec, game: Go) -> list[str]:
    """Returns what GNU Go needs to be told before it starts: our rules. Others get the command as it was given."""
    if Path(spec.command[0]).name != "gnugo" or len(spec.command) > 1:
        return []
    suicide = "--allow-suicide" if game.suicide else "--forbid-suicide"
    # Nothing is dead by agreement, so it plays on until dead stones are off the board.
    return ["--mode", "gtp", "--chinese-rules", "--positional-superko", suicide, "--capture-all-dead"]
