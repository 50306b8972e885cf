"""Portable Game Notation: tags in brackets, then the moves in SAN and the result.

    [White "A"]
    [Black "B"]

    1. e4 {a comment} e5 2. Nf3 (2. f4 exf4) 2... Nc6 $1 *

Read is the main line; comments, variations and marks are passed over. Written are tags, moves and result alone.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from envs.chess.fen import parse_fen, write_fen
from envs.chess.position import START, Move, Position
from envs.chess.san import parse_san, write_san

RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
ROSTER = ("Event", "Site", "Date", "Round", "White", "Black", "Result")
"""The tags that every game has, in this order."""
_UNKNOWN = {"Event": "?", "Site": "?", "Date": "????.??.??", "Round": "?", "White": "?", "Black": "?"}
_COLUMNS = 80

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|;[^\n]*|(?m:^)%[^\n]*|\$\d+)
  | (?P<comment>\{[^}]*\})
  | (?P<tag>\[\s*(?P<name>\w+)\s*"(?P<value>(?:[^"\\\n]|\\[^\n])*)"\s*\])
  | (?P<open>\()
  | (?P<close>\))
  | (?P<result>(?:1-0|0-1|1/2-1/2)(?![\w/-])|\*)
  | (?P<zeros>0-0(?:-0)?[+\#!?]*(?![\w/-]))
  | (?P<number>\d+\.*|\.+|[!?]+)
  | (?P<move>[A-Za-z][\w+\#=:!?-]*)
    """,
    re.VERBOSE | re.ASCII,
)


@dataclasses.dataclass(frozen=True)
class PgnGame:
    """One game."""

    moves: tuple[Move, ...]  # legal ones
    result: str = "*"  # one of RESULTS
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)  # what is known; without Result, SetUp, FEN
    start: Position = START


class _Token(NamedTuple):
    kind: str
    text: str
    line: int
    name: str = ""  # of a tag
    value: str = ""


def read_pgn(text: str) -> list[PgnGame]:
    """Returns the games of a PGN text, or none.

    Raises:
      ValueError: "line N: FIELD: got VALUE, expected ...": not PGN, or a move that is not legal.
    """
    reader = _Reader()
    for token in _tokens(text):
        try:
            reader.take(token)
        except ValueError as error:
            raise ValueError(f"line {token.line}: {error}") from None
    reader.finish()
    return reader.games


def write_pgn(games: Iterable[PgnGame]) -> str:
    """Returns the games as PGN, in its export format."""
    return "".join(_written(game) for game in games)


class _Reader:
    """Games out of tokens."""

    def __init__(self):
        self.games: list[PgnGame] = []
        self._begin()

    def _begin(self) -> None:
        self._tags: dict[str, str] = {}
        self._start = self._position = START
        self._moves: list[Move] = []
        self._in_moves = False

    def take(self, token: _Token) -> None:
        if token.kind == "tag":
            if self._in_moves:
                self._end(self._tags.get("Result", "*"))
            if token.name in self._tags:
                raise ValueError(f"tag {token.name}: got it twice, expected it once")
            self._tags[token.name] = re.sub(r"\\(.)", r"\1", token.value)
            if token.name == "FEN":
                self._start = self._position = parse_fen(self._tags["FEN"])
            if token.name == "Result" and self._tags["Result"] not in RESULTS:
                raise ValueError(f"tag Result: got {self._tags['Result'][:40]!r}, expected one of {', '.join(RESULTS)}")
        elif token.kind == "result":
            self._end(token.text)
        else:
            self._in_moves = True
            if token.kind in ("move", "zeros"):
                move = parse_san(self._position, token.text)
                self._moves.append(move)
                self._position = self._position.play(move)

    def _end(self, result: str) -> None:
        said = self._tags.get("Result", result)
        if said != result and result != "*" != said:
            raise ValueError(f"result: got {result} after the moves, expected {said} as the tag Result says")
        known = {name: value for name, value in self._tags.items() if _UNKNOWN.get(name) != value}
        tags = {name: value for name, value in known.items() if name not in ("Result", "SetUp", "FEN")}
        self.games.append(PgnGame(tuple(self._moves), said if result == "*" else result, tags, self._start))
        self._begin()

    def finish(self) -> None:
        if self._in_moves or self._tags:
            self._end(self._tags.get("Result", "*"))


def _tokens(text: str) -> Iterator[_Token]:
    """Yields the tokens outside of comments and variations."""
    at, depth, line, opened = 0, 0, 1, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            if depth and text[at] not in "{[":  # a variation may hold what is no move, such as "--"
                at += 1
                continue
            raise ValueError(f"line {line}: got {text[at : at + 20]!r}, expected a tag, a move or a result")
        kind, word = found.lastgroup or "", found[0]
        kind = "tag" if found["tag"] else kind
        if kind == "open":
            opened = line if depth == 0 else opened
            depth += 1
        elif kind == "close":
            if depth == 0:
                raise ValueError(f"line {line}: variation: got ')', expected a '(' before it")
            depth -= 1
        elif depth == 0 and kind not in ("space", "comment"):
            yield _Token(kind, word, line, found["name"] or "", found["value"] or "")
        line += word.count("\n")
        at = found.end()
    if depth:
        raise ValueError(f"line {opened}: variation: got no ')', expected one to its '('")


def _written(game: PgnGame) -> str:
    tags = {**_UNKNOWN, **game.tags, "Result": game.result}
    if game.start != START:
        tags |= {"SetUp": "1", "FEN": write_fen(game.start)}
    names = sorted(tags, key=lambda name: ROSTER.index(name) if name in ROSTER else len(ROSTER))
    lines = [f'[{name} "{_escaped(tags[name])}"]' for name in names]
    return "\n".join([*lines, "", *_wrapped(_words(game)), "", ""])


def _escaped(value: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", re.sub(r"\s", " ", value))


def _words(game: PgnGame) -> list[str]:
    position, words = game.start, []
    for move in game.moves:
        if position.turn == 0:
            words.append(f"{position.fullmoves}.")
        elif not words:
            words.append(f"{position.fullmoves}...")
        words.append(write_san(position, move))
        position = position.play(move)
    return [*words, game.result]


def _wrapped(words: list[str]) -> list[str]:
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) < _COLUMNS:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
