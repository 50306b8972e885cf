"""Games of Go, Hex and Othello as SGF: the coordinates and properties that each of them has.

Go (GM[1]): two letters, column and row from the upper left; a pass is empty, in older files "tt".
Hex (GM[11]): column letter and row number, as here; the swap is "swap-pieces". "resign" and "forfeit" may end a game.
Othello (GM[2]), of which FF[4] says nothing: column letter and row number, as Edax and Cassio write them, the four
discs of the start, and "PA" for a pass. A pass may be left out, for it is forced.

SGF does not keep `max_plies` and `opening_plies`; a game that was cut off has no result there (RE[Void]).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from envs import sgf
from envs.core import Game
from envs.go import Go
from envs.hex import Hex
from envs.othello import Othello
from envs.record import GameRecord

_COLOURS = ("B", "W")
_GIVEN_UP = {"resignation": ("R", "RESIGN"), "time": ("T", "TIME"), "forfeit": ("F", "FORFEIT")}
_NUMBER = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})")
_SUICIDE_RULES = ("NZ", "GOE", "TROMP-TAYLOR")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def has_sgf(game: Game) -> bool:
    """Returns whether records of the game can be written as SGF."""
    return type(game) in _KINDS


def write_sgf(game: Game, records: Iterable[GameRecord]) -> str:
    """Returns a collection of the records, all of `game`.

    Raises:
      ValueError: the game has no SGF, a record is of another game, or an action is none of the game's.
    """
    if not has_sgf(game):
        raise ValueError(f"sgf: got {game.id}, expected Go, Hex or Othello")
    return "".join(_written(game, record, f"game {number}") for number, record in enumerate(records, 1))


def read_sgf(text: str) -> list[GameRecord]:
    """Reads the main line of each game of a collection; whether its moves are legal is for `envs.playback` to say.

    Raises:
      ValueError: "line L, column C: ...": not SGF, another game, a position that was set up, or what is no move.
    """
    return [_record(_Source(text, nodes)) for nodes in sgf.parse(text)]


@dataclass(frozen=True)
class _Source:
    """One game of a collection as it stands in the text."""

    text: str
    nodes: list[sgf.Node]

    def line(self, name: str) -> str:
        """Returns what a property of the root says, as one line; "" where there is none."""
        found = self.nodes[0].properties.get(name)
        if found is None:
            return ""
        if len(found.values) > 1:
            raise self.fault(found.at, f"{name}: got {len(found.values)} values, expected one")
        return sgf.one_line(found.values[0]).strip()

    def refused(self, name: str, expected: str) -> ValueError:
        """Returns the error about a property of the root, which need not be there."""
        found = self.nodes[0].properties.get(name)
        at = self.nodes[0].at if found is None else found.at
        return self.fault(at, f"{name}: got {self.line(name)[:40]!r}, expected {expected}")

    def fault(self, at: int, message: str) -> ValueError:
        return sgf.fault(self.text, at, message)


class _Kind(NamedTuple):
    """How SGF writes one of the games."""

    number: int  # GM
    make: Callable[[_Source], Game]
    rules: Callable[[Any], dict[str, str]]  # properties of the root, such as the size
    start: Callable[[Any], Mapping[str, Sequence[str]]]  # set-up properties of the game's own starting position
    write: Callable[[Any, int], str]  # an action as a move
    read: Callable[[Any, str], int]
    pass_is_forced: bool = False


def _written(game: Game, record: GameRecord, place: str) -> str:
    if record.game != game.id:
        raise ValueError(f"{place}: got a record of {record.game}, expected one of {game.id}")
    kind = _KINDS[type(game)]
    root = {"GM": str(kind.number), "FF": "4", "CA": "UTF-8", **kind.rules(game)}
    root |= {"PB": record.players[0], "PW": record.players[1], "DT": record.date, "SO": record.source}
    root |= {"GC": record.note}
    lines = {name: [sgf.escaped(value)] for name, value in root.items() if value}
    nodes: list[Mapping[str, Sequence[str]]] = [{**lines, **kind.start(game), "RE": [_result_word(record)]}]
    for ply, action in enumerate(record.actions):
        if action >= game.num_actions:
            raise ValueError(f"{place}: ply {ply + 1}: got {action}, expected an action below {game.num_actions}")
        nodes.append({_COLOURS[ply % 2]: [kind.write(game, action)]})
    return sgf.write(nodes)


def _result_word(record: GameRecord) -> str:
    if record.returns is None or record.truncated:
        return "Void"
    if record.returns[0] == 0:
        return "Draw"
    return f"{_COLOURS[record.returns[0] < 0]}+{_GIVEN_UP.get(record.end, ('',))[0]}"


def _record(source: _Source) -> GameRecord:
    number = source.line("GM") or "1"
    kind = next((kind for kind in _KINDS.values() if number == str(kind.number)), None)
    if kind is None:
        raise source.refused("GM", "1 (Go), 2 (Othello) or 11 (Hex)")
    game = kind.make(source)
    _check_start(source, kind.start(game))
    returns, end = _result(source)
    actions, given_up = _actions(source, kind, game)
    if given_up is not None:
        loser, end = given_up
        if returns not in (None, _won_by(1 - loser)):
            raise source.refused("RE", f"{_COLOURS[1 - loser]}+, for {_COLOURS[loser]} gave up")
        returns = _won_by(1 - loser)
    try:
        return GameRecord(
            game=game.id,
            players=(source.line("PB") or "?", source.line("PW") or "?"),
            actions=tuple(actions),
            returns=returns,
            end=end,
            date=source.line("DT"),
            source=source.line("SO"),
            note=source.line("GC"),
        )
    except ValueError as error:
        raise source.fault(source.nodes[0].at, str(error)) from None


def _check_start(source: _Source, start: Mapping[str, Sequence[str]]) -> None:
    """Refuses a position that is set up, unless it is the one that the game starts from."""
    for node in source.nodes:
        for name in ("AB", "AW", "AE", "PL"):
            found = node.properties.get(name)
            expected = start.get(name, ["B"] if name == "PL" else [])
            if found is not None and (node is not source.nodes[0] or _sorted(found.values) != _sorted(expected)):
                raise source.fault(found.at, f"{name}: got a position that is set up, expected a game from its start")


def _sorted(points: Sequence[str]) -> list[str]:
    return sorted(point.strip().lower() for point in points)


def _result(source: _Source) -> tuple[tuple[float, float] | None, str]:
    word = source.line("RE").upper()
    if word in ("", "?", "VOID"):
        return None, "unfinished"
    if word in ("0", "DRAW"):
        return (0.0, 0.0), "rules"
    winner, plus, how = word.partition("+")
    end = next((end for end, words in _GIVEN_UP.items() if how in words), "rules")
    if winner not in _COLOURS or not plus or not (end != "rules" or not how or _NUMBER.fullmatch(how)):
        raise source.refused("RE", "such as B+3.5, W+R, Draw or Void")
    return _won_by(_COLOURS.index(winner)), end


def _actions(source: _Source, kind: _Kind, game: Game) -> tuple[list[int], tuple[int, str] | None]:
    """Returns the moves and, where the last of them gives the game up, whose it is and how."""
    actions: list[int] = []
    given_up = None
    for node in source.nodes:
        colours = [colour for colour in _COLOURS if colour in node.properties]
        if not colours:
            continue
        played = node.properties[colours[0]]
        mover, value = _COLOURS.index(colours[0]), played.values[0].strip()
        if kind.pass_is_forced and mover != len(actions) % 2:
            actions.append(kind.read(game, ""))
        wrong = (
            "two moves in one node"
            if len(colours) > 1 or len(played.values) > 1
            else "a move after the end"
            if given_up is not None
            else f"{colours[0]}, whose turn it is not"
            if mover != len(actions) % 2
            else None
        )
        if wrong is not None:
            raise source.fault(played.at, f"ply {len(actions) + 1}: got {wrong}")
        if kind is _HEX and value.lower() in ("resign", "forfeit"):
            given_up = (mover, "resignation" if value.lower() == "resign" else "forfeit")
            continue
        try:
            actions.append(kind.read(game, value))
        except ValueError as error:
            raise source.fault(played.at, f"ply {len(actions) + 1}: {error}") from None
    return actions, given_up


def _won_by(player: int) -> tuple[float, float]:
    return (1.0, -1.0) if player == 0 else (-1.0, 1.0)


def _size(source: _Source, default: int) -> int:
    columns, colon, rows = (source.line("SZ") or str(default)).partition(":")
    if not re.fullmatch("[0-9]{1,3}", columns) or (colon and rows != columns):
        raise source.refused("SZ", "the size of a square board")
    return int(columns)


def _made(source: _Source, make: Callable[[], Game]) -> Game:
    try:
        return make()
    except ValueError as error:
        raise source.fault(source.nodes[0].at, str(error)) from None


def _make_go(source: _Source) -> Game:
    size, komi, rules = _size(source, 19), source.line("KM") or "0", source.line("RU").upper()
    if not _NUMBER.fullmatch(komi):
        raise source.refused("KM", "a number")
    suicide = "SUI1" in rules or rules in _SUICIDE_RULES
    return _made(source, lambda: Go(size=size, komi=float(komi), suicide=suicide))


def _go_rules(game: Go) -> dict[str, str]:
    # The rules' name in KataGo's words, the only ones that say all of them.
    rules = f"koPOSITIONALscoreAREAtaxNONEsui{int(game.suicide)}"
    return {"SZ": str(game.size), "KM": format(Decimal(repr(game.komi)), "f"), "RU": rules}


def _write_go(game: Go, action: int) -> str:
    row, column = divmod(action, game.size)
    return "" if row == game.size else _LETTERS[column] + _LETTERS[row]


def _read_go(game: Go, value: str) -> int:
    if value == "" or (value == "tt" and game.size <= 19):
        return game.size**2
    letters = _LETTERS[: game.size]
    if len(value) != 2 or value[0] not in letters or value[1] not in letters:
        raise ValueError(f"got {value[:40]!r}, expected two letters from a to {letters[-1]}, or nothing for a pass")
    return letters.index(value[1]) * game.size + letters.index(value[0])


def _make_hex(source: _Source) -> Game:
    size, swap = _size(source, 11), source.line("RU").lower() != "no swap"
    return _made(source, lambda: Hex(size=size, swap=swap))


def _othello_start(game: Othello) -> dict[str, list[str]]:
    low, high = (game.size // 2 - 1) * (game.size + 1), game.size // 2 * (game.size + 1)
    black, white = (low + 1, high - 1), (low, high)
    names = [[game.action_name(square) for square in squares] for squares in (black, white)]
    return {"AB": names[0], "AW": names[1], "PL": ["B"]}


_GO = _Kind(1, _make_go, _go_rules, lambda game: {}, _write_go, _read_go)
_HEX = _Kind(
    11,
    _make_hex,
    lambda game: {"SZ": str(game.size)} | ({} if game.swap else {"RU": "no swap"}),
    lambda game: {},
    lambda game, action: "swap-pieces" if action == game.size**2 else game.action_name(action),
    lambda game, value: game.parse_action("swap" if game.swap and value.lower() == "swap-pieces" else value),
)
_OTHELLO = _Kind(
    2,
    lambda source: _made(source, lambda: Othello(size=_size(source, 8))),
    lambda game: {"SZ": str(game.size)},
    _othello_start,
    lambda game, action: "PA" if action == game.size**2 else game.action_name(action),
    lambda game, value: game.parse_action("pass" if value.upper() in ("", "PA") else value),
    pass_is_forced=True,
)
_KINDS: dict[type, _Kind] = {Go: _GO, Hex: _HEX, Othello: _OTHELLO}
