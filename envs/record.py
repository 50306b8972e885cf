"""Records of games: who played what, and how it ended. One JSON object a game, one game a line.

{"format": 1, "game": "tic_tac_toe", "players": ["uct:400", "random"], "actions": [4, 0, 8, 2, 1, 7, 5, 3, 6],
 "returns": [0.0, 0.0], "end": "rules"}                                            docs/records.md tells the fields.

Reading checks a record's form; `envs.playback` plays it again. Importing this file imports no JAX.
"""

import dataclasses
import json
import unicodedata
from collections.abc import Iterable
from typing import Any, NoReturn

FORMAT = 1
"""Of the JSON object; a reader refuses one that it does not know."""

ENDS = ("rules", "plies", "resignation", "time", "forfeit", "unfinished")
"""Over by the rules; cut off by `max_plies`; given up, lost on time, forfeited by the loser; not over."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GameRecord:
    """One game from its start."""

    game: str  # Game.id
    players: tuple[str, str] = ("?", "?")  # names, player 0's first
    actions: tuple[int, ...]  # in order; num_actions + outcome where dice were rolled
    returns: tuple[float, float] | None  # player i's, in [-1, 1]; None: unfinished
    end: str = "rules"  # one of ENDS
    opening_plies: int = 0  # of `actions`, chosen by neither player
    date: str = ""  # as SGF has it: 2026-11-30
    source: str = ""
    note: str = ""  # what else is to be known, such as why it was forfeited

    def __post_init__(self):
        if not (isinstance(self.players, tuple) and len(self.players) == 2):
            raise ValueError(f"players: got {_short(self.players)}, expected two names")
        texts = {"game": self.game, "date": self.date, "source": self.source, "note": self.note}
        for name, text in [*texts.items(), *(("players", player) for player in self.players)]:
            _check_text(name, text)
        if not self.game:
            raise ValueError("game: got '', expected a game's id")
        for ply, action in enumerate(self.actions, 1):
            if type(action) is not int or not 0 <= action < 2**31:
                raise ValueError(f"actions: ply {ply}: got {_short(action)}, expected a whole number of at least 0")
        if type(self.opening_plies) is not int or not 0 <= self.opening_plies <= len(self.actions):
            raise ValueError(
                f"opening_plies: got {_short(self.opening_plies)}, expected a whole number from 0 to the game's "
                f"{len(self.actions)} plies"
            )
        self._check_result()

    def return_of(self, player: int) -> float:
        """Returns player 0's or 1's return.

        Raises:
          ValueError: the game is unfinished.
        """
        if self.returns is None:
            raise ValueError("returns: got none of an unfinished game, expected a finished one")
        return self.returns[player]

    def _check_result(self) -> None:
        if self.end not in ENDS:
            raise ValueError(f"end: got {_short(self.end)}, expected one of {', '.join(ENDS)}")
        if self.returns is None or self.end == "unfinished":
            if self.returns is not None or self.end != "unfinished":
                raise ValueError(
                    f"returns: got {_short(self.returns)} with end {self.end!r}, expected null exactly when unfinished"
                )
            return
        numbers = isinstance(self.returns, tuple) and len(self.returns) == 2 and {*map(type, self.returns)} == {float}
        if not numbers or self.returns[0] != -self.returns[1] or not abs(self.returns[0]) <= 1:
            raise ValueError(f"returns: got {_short(self.returns)}, expected two numbers in [-1, 1] whose sum is 0")
        expected = {"rules": None, "plies": False}.get(self.end, True)
        if expected is not None and expected != (self.returns[0] != 0):
            what = "a winner" if expected else "0 for both"
            raise ValueError(f"returns: got {_short(self.returns)} with end {self.end!r}, expected {what}")

    @property
    def truncated(self) -> bool:
        """Whether the game was cut off by a limit that is not the rules'."""
        return self.end == "plies"


def to_json(record: GameRecord) -> str:
    """Returns the record as one line; options that were not used are left out."""
    fields: dict[str, Any] = {"format": FORMAT}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name not in _OPTIONAL or value != field.default:
            fields[field.name] = value
    return json.dumps(fields)


def from_json(text: str) -> GameRecord:
    """Reads one record.

    Raises:
      ValueError: not JSON, not of this format, or a field that is missing, unknown or wrong.
    """
    try:
        fields = json.loads(text, object_pairs_hook=_once_each, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"column {error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError("not a record: lists within lists without end") from None
    if not isinstance(fields, dict):
        raise ValueError(f"got {_short(fields)}, expected an object in braces")
    if type(fields.get("format")) is not int or fields["format"] != FORMAT:
        raise ValueError(f"format: got {_short(fields.get('format'))}, expected {FORMAT}")
    names = [field.name for field in dataclasses.fields(GameRecord)]
    for name in fields:
        if name not in (*names, "format"):
            raise ValueError(f"got a field {_short(name)}, expected only {', '.join(names)}")
    for name in names:
        if name not in fields and name not in _OPTIONAL:
            raise ValueError(f"{name}: got none, expected this field")
    for name in ("players", "actions"):
        if not isinstance(fields[name], list):
            raise ValueError(f"{name}: got {_short(fields[name])}, expected a list")
    returns = fields["returns"]
    if isinstance(returns, list):
        returns = tuple(float(value) if type(value) is int and abs(value) <= 1 else value for value in returns)
    given: dict[str, Any] = {name: value for name, value in fields.items() if name != "format"}
    given |= {"players": tuple(fields["players"]), "actions": tuple(fields["actions"]), "returns": returns}
    return GameRecord(**given)


def write_lines(records: Iterable[GameRecord]) -> str:
    """Returns the records, one a line."""
    return "".join(to_json(record) + "\n" for record in records)


def read_lines(text: str) -> list[GameRecord]:
    """Reads records, one a line; blank lines are passed over.

    Raises:
      ValueError: "line N: ...", the first that is no record.
    """
    records = []
    # Not splitlines: a JSON string may hold characters that end a line for it.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                records.append(from_json(line))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
    return records


_OPTIONAL = {field.name for field in dataclasses.fields(GameRecord)} - {"game", "players", "actions", "returns", "end"}


def _check_text(name: str, text: Any) -> None:
    """Refuses what could not be shown on one line or written as UTF-8: control characters and lone surrogates."""
    if not isinstance(text, str):
        raise ValueError(f"{name}: got {_short(text)}, expected text")
    for char in text:
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            raise ValueError(f"{name}: got {_short(text)}, expected one line of text, without the character {char!r}")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"got the field {_short(twice)} twice, expected it once")
    return fields


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"got {word}, expected a number")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
