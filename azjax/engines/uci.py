"""A client of UCI (chess) and of USI, its sister for shogi."""

import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from azjax.engines.engine import Engine, Resigned
from azjax.engines.process import EngineFailure, EngineProcess, short
from azjax.engines.words import EngineSpec
from envs.core import Game

RESIGN_MOVES = 10
"""How often in a row an engine must find itself lost before it gives up (Silver et al. 2018)."""

_SETUP_SECONDS = 120.0  # an engine may load a network, or compile one
_GAMES = {"uci": "chess", "usi": "shogi"}
_MATE = 100_000  # centipawns

_ALIASES = {"skill": "Skill Level", "elo": "UCI_Elo"}
"""Options that have a shorter name in a player's word."""

_OPTION = re.compile(r"option name (?P<name>.+?) type (?P<type>\S+)(?P<rest>.*)")


class EngineOption(NamedTuple):
    """What an engine says of one of its options."""

    name: str
    type: str  # check, spin, combo, button, string, filename
    least: int | None
    most: int | None
    choices: tuple[str, ...]


class UciEngine(Engine):
    """A chess or shogi engine. Options of its own are those that it announces: `hash=64`, `use_nnue=false`."""

    def __init__(self, game: Game, spec: EngineSpec):
        """Starts the engine and sets its options.

        Raises:
          ValueError: the game is not the protocol's, or the engine has no such option.
          EngineFailure: the engine does not answer as the protocol has it.
        """
        wanted = _GAMES[spec.kind]
        if type(game).__module__.split(".")[1] != wanted:
            raise ValueError(f"player {spec.word!r}: got {game.id}, expected {wanted}")
        self._spec, self._lost = spec, 0
        self._process = EngineProcess(spec.command)
        try:
            self._set_up()
        except BaseException:
            self._process.close()
            raise

    def _set_up(self) -> None:
        kind = self._spec.kind
        lines = self._until(kind, f"{kind}ok", _SETUP_SECONDS)
        options = {option.name.lower(): option for line in lines if (option := read_option(line)) is not None}
        own = dict(self._spec.own)
        if "elo" in own and "uci_limitstrength" in options:
            own.setdefault("UCI_LimitStrength", "true")
        for name, value in own.items():
            option = find_option(options, name)
            if option is None:
                known = ", ".join(option.name for option in options.values())
                raise ValueError(
                    f"player {self._spec.word!r}: got option {name}, expected one of the engine's: {known}"
                )
            self._process.send(f"setoption name {option.name} value {self._checked(option, value)}")
        self._until("isready", "readyok", _SETUP_SECONDS)

    def _checked(self, option: EngineOption, value: str) -> str:
        """Returns a value as the option takes it: engines pass over a wrong one, and would play at full strength."""
        expected = None
        if option.type == "check" and value.lower() not in ("true", "false"):
            expected = "true or false"
        elif option.type == "combo" and value.lower() not in (choice.lower() for choice in option.choices):
            expected = f"one of {', '.join(option.choices)}"
        elif option.type == "spin":
            low, high = option.least, option.most
            number = int(value) if re.fullmatch(r"-?\d{1,18}", value) else None
            if number is None or (low is not None and number < low) or (high is not None and number > high):
                expected = f"a whole number from {low} to {high}"
        if expected is not None:
            raise ValueError(f"player {self._spec.word!r}: got {option.name} {value!r}, expected {expected}")
        return value

    def new_game(self, seed: int) -> None:
        del seed
        self._lost = 0
        self._process.send("ucinewgame" if self._spec.kind == "uci" else "usinewgame")
        self._until("isready", "readyok", _SETUP_SECONDS)

    def choose(self, moves: Sequence[str]) -> str:
        # What it still had to say of an earlier search comes before this answer.
        self._until("isready", "readyok", _SETUP_SECONDS)
        played = f" moves {' '.join(moves)}" if moves else ""
        self._process.send(f"position startpos{played}")
        lines = self._until(f"go{self._limits()}", "bestmove", (self._spec.seconds or 0.0) + self._spec.patience)
        best = lines[-1].split()[1:2]
        if not best or best[0] in ("(none)", "0000"):
            raise EngineFailure(f"answered {short(lines[-1])!r} where there are moves")
        if best[0] == "resign":
            raise Resigned("resigned")
        self._give_up_if_lost(lines)
        return best[0]

    def close(self) -> None:
        self._process.close("quit")

    def _give_up_if_lost(self, lines: Sequence[str]) -> None:
        """Adjudicates as the paper did: an engine gives up whose own score was low several times in a row."""
        score = last_score(lines)
        if self._spec.resign is None or score is None:
            return
        self._lost = self._lost + 1 if score <= -self._spec.resign else 0
        if self._lost >= RESIGN_MOVES:
            raise Resigned(f"gave up at {score / 100:+.2f}")

    def _limits(self) -> str:
        spec, words = self._spec, ""
        if spec.seconds is not None:
            milliseconds = max(1, round(1000 * spec.seconds))
            words += f" movetime {milliseconds}" if spec.kind == "uci" else f" btime 0 wtime 0 byoyomi {milliseconds}"
        if spec.nodes is not None:
            words += f" nodes {spec.nodes}"
        if spec.depth is not None:
            words += f" depth {spec.depth}"
        return words

    def _until(self, command: str, last: str, seconds: float) -> list[str]:
        """Sends a command and returns the lines up to the one whose first word is `last`."""
        deadline = time.monotonic() + seconds
        late = f"gave no answer to {command!r} for {seconds:g} s"
        self._process.send(command)
        lines = []
        while True:
            line = self._process.read_line(deadline, late).strip()
            if not line.startswith("info ") or " score " in line:  # the others are many, and not asked for
                lines.append(line)
            if line.split()[:1] == [last]:
                return lines


def read_option(line: str) -> EngineOption | None:
    """Reads "option name NAME type TYPE ...", None where the line is another."""
    found = _OPTION.fullmatch(line.strip())
    if found is None:
        return None
    rest = found["rest"]
    bounds = [re.search(rf"\b{word} (-?\d{{1,18}})\b", rest) for word in ("min", "max")]
    least, most = (None if bound is None else int(bound[1]) for bound in bounds)
    choices = tuple(choice.strip() for choice in re.split(r"\bvar ", rest)[1:])
    return EngineOption(found["name"], found["type"], least, most, choices)


def find_option(options: dict[str, EngineOption], name: str) -> EngineOption | None:
    """Returns the option that a word names: small letters and underscores in place of spaces will do.

    Args:
      options: by their names in small letters.
    """
    name = _ALIASES.get(name.lower(), name).lower()
    plain = {known.replace(" ", "_"): option for known, option in options.items()}
    return options.get(name) or plain.get(name) or plain.get(f"usi_{name}")


def last_score(lines: Sequence[str]) -> int | None:
    """Returns the last score in centipawns that lines of `info` tell, the engine's own view; a mate counts 100,000."""
    for line in reversed(lines):
        words = line.split()
        if words[:1] != ["info"] or "score" not in words or {"lowerbound", "upperbound"} & set(words):
            continue
        kind, value = [*words[words.index("score") + 1 :], "", ""][:2]
        if kind == "mate" and re.fullmatch(r"[+-]\d*|\d+", value):  # USI may leave the number of moves out
            return -_MATE if value.startswith("-") else _MATE
        if kind == "cp" and re.fullmatch(r"[+-]?\d{1,9}", value):
            return int(value)
    return None
