"""KIF, the usual format of shogi records in Japan, and lines of USI moves, as records.

    手合割：平手                 a game from the start: no handicap
    先手：Ada                    Black; 後手 is White
       1 ７六歩(77)              number, square (file, rank), piece, where it came from; 打: dropped, 成: it promotes
       2 ３四歩(33)
       3 ２二角成(88)
       4 同　銀(31)              同: on the square of the move before
       5 投了                    how it ended
    変化：3手                    variations follow the game and are passed over, as comments (*) are

KIF does not keep `max_plies`, `opening_plies`, and that a game was cut off (中断, read as unfinished). 持将棋 stands
for the draw at 512 plies, 反則勝ち for every loss of the side that is not to move.
"""

import re
import unicodedata
from collections.abc import Iterable

from envs.record import GameRecord
from envs.shogi import sfen, usi
from envs.shogi.actions import NUM_ACTIONS, action_of, move_of
from envs.shogi.position import Line, Move

_GAME = "shogi"
_RANKS = "一二三四五六七八九"
_NAMES = ("", *"歩香桂銀金角飛玉と", "成香", "成桂", "成銀", "馬", "龍")
_KINDS_BY_NAME = {name: kind for kind, name in enumerate(_NAMES)} | {"王": 8, "杏": 10, "圭": 11, "全": 12, "竜": 14}
_MOVE = re.compile(
    rf"(?:(?P<file>[1-9])(?P<rank>[{_RANKS}1-9])|(?P<same>同))\s*"
    rf"(?P<piece>{'|'.join(sorted(filter(None, _KINDS_BY_NAME), key=len, reverse=True))})"
    r"(?P<how>成|不成|打)?\s*(?:\((?P<from>[1-9][1-9])\))?"
)
_NUMBERED = re.compile(
    r"\s*(?P<number>[0-9]{1,9})\s+(?P<text>\S.*?)\s*(?:\(\s*[0-9]+:[0-9]+(?:\s*/\s*[0-9:]*)?\)\s*\+?)?"
)
_HEADER = re.compile(r"(?P<name>[^：:\s*#&][^：:]{0,39})[：:](?P<value>.*)")
_COLOURS = ("先手", "後手")
_NO_HANDICAP = "平手"
_LOSES, _WINS = (
    {"投了": "resignation", "切れ負け": "time", "反則負け": "forfeit", "詰み": "rules"},
    {"反則勝ち": "forfeit"},
)
_DRAWS, _UNFINISHED = ("千日手", "持将棋"), ("中断", "封じ手")
_ENDS = (*_LOSES, *_WINS, *_DRAWS, *_UNFINISHED)


def write_kif(records: Iterable[GameRecord]) -> str:
    """Returns the games as KIF, one after the other.

    Raises:
      ValueError: a record is of another game, or its moves are not legal.
    """
    return "".join(_written(record, f"game {number}") for number, record in enumerate(records, 1))


def read_kif(text: str) -> list[GameRecord]:
    """Returns the games of a KIF text; a heading of the usual ones after moves begins another.

    Raises:
      ValueError: "line N: ...": a move that is not legal, a game with a handicap or from another position, a line that
        is none of KIF, or a result that is not the rules'.
    """
    games: list[_Reader] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            if not games or (games[-1].begun and _begins_a_game(line)):
                games.append(_Reader())
            games[-1].read(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    records = []
    for number, game in enumerate(games, 1):
        try:
            records += [game.record()] if game.begun or game.headings else []
        except ValueError as error:
            raise ValueError(f"line {len(text.splitlines())}: game {number}: {error}") from None
    return records


def write_usi(records: Iterable[GameRecord]) -> str:
    """Returns the games as lines "position startpos moves ...", which hold the moves alone."""
    lines = []
    for number, record in enumerate(records, 1):
        lines.append(usi.write_line(sfen.START, [move for move, _ in _replay(record, f"game {number}")]))
    return "".join(f"{line}\n" for line in lines)


def read_usi(text: str) -> list[GameRecord]:
    """Returns the games of such lines; blank ones are passed over. A game that the rules do not end is unfinished.

    Raises:
      ValueError: "line N: ...": a move that is not legal, or a game from another position.
    """
    records = []
    for number, words in enumerate(text.split("\n"), 1):
        try:
            if words.strip():
                start, moves = usi.parse_line(words)
                if start != sfen.START:
                    raise ValueError("position: got an sfen, expected a game from its start: startpos")
                line = Line(start.position)
                for move in moves:
                    line.play(move)
                records.append(_record(line, moves, {}, None))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return records


class _Reader:
    """One game of a KIF text, line by line."""

    def __init__(self):
        self.headings: dict[str, str] = {}
        self.line = Line(sfen.START.position)
        self.moves: list[Move] = []
        self.end: str | None = None
        self.in_variation = False

    @property
    def begun(self) -> bool:
        return bool(self.moves) or self.end is not None

    def read(self, line: str) -> None:
        """Takes one line.

        Raises:
          ValueError: it is none of KIF, or its move is not legal.
        """
        if not line.strip() or line[0] in "*#&" or line.startswith(("手数", "まで")) or line.strip()[0] in "|+":
            return
        if line.startswith("変化"):
            self.in_variation = True
        elif self.in_variation:
            return
        elif found := _NUMBERED.fullmatch(line):
            self._play(int(found["number"]), found["text"])
        elif found := _HEADER.fullmatch(line):
            name, value = found["name"].strip(), found["value"].strip()
            if name == "手合割" and value != _NO_HANDICAP:
                raise ValueError(f"手合割: got {value[:40]!r}, expected {_NO_HANDICAP}, a game without handicap")
            if name.endswith("の持駒"):
                raise ValueError(f"{name[:40]}: got a position that is set up, expected a game from its start")
            self.headings.setdefault(name, value)
        else:
            raise ValueError(f"got {line[:40]!r}, expected a move with its number, a heading or a comment")

    def _play(self, number: int, text: str) -> None:
        ply = len(self.moves) + 1
        if self.end is not None:
            raise ValueError(f"ply {number}: got {text[:40]!r} after the end, {self.end}")
        if number != ply:
            raise ValueError(f"got the number {number}, expected {ply}")
        if text in _ENDS:
            self.end = text
            return
        move = self._move(text, ply)
        usi.play_legal(self.line, move, ply)
        self.moves.append(move)

    def _move(self, text: str, ply: int) -> Move:
        found = _MOVE.fullmatch(unicodedata.normalize("NFKC", text))
        if not found or (found["how"] == "打" and found["from"]) or (found["same"] and not self.moves):
            raise ValueError(
                f"ply {ply}: got {text[:40]!r}, expected a move such as ７六歩(77), 同　銀(31) or ５五角打"
            )
        if found["same"]:
            target = self.moves[-1].target
        else:
            target = _square(found["file"], found["rank"])
        kind = _KINDS_BY_NAME[found["piece"]]
        if not found["from"]:
            if found["how"] in ("成", "不成"):
                raise ValueError(f"ply {ply}: got {text[:40]!r}, expected the square that it came from, such as (77)")
            return Move(None, target, drop=kind)
        source = _square(*found["from"])
        if abs(self.line.position.board[source]) != kind:
            raise ValueError(f"ply {ply}: got {text[:40]!r}, but {_NAMES[kind]} does not stand there")
        return Move(source, target, promotes=found["how"] == "成")

    def record(self) -> GameRecord:
        return _record(self.line, self.moves, self.headings, self.end)


def _record(line: Line, moves: list[Move], headings: dict[str, str], end: str | None) -> GameRecord:
    """Returns the record of a line of play that ended so (None: nothing was said)."""
    outcome, mover = line.outcome(), line.position.turn
    ruled = None if outcome is None else _returns(outcome[0])
    if end is None or end in _UNFINISHED:
        returns, how = ruled, "rules" if outcome else "unfinished"
    elif end in _DRAWS:
        returns, how = (0.0, 0.0), "rules"
    else:
        returns, how = _returns(1 - mover if end in _LOSES else mover), {**_LOSES, **_WINS}[end]
        how = "rules" if outcome and returns == ruled else how
    if outcome and returns != ruled:
        raise ValueError(f"got {end}, but the rules ended the game by {outcome[1]} with another result")
    if end == "詰み" and not outcome:
        raise ValueError(f"got {end}, but there are legal moves")
    return GameRecord(
        game=_GAME,
        players=(headings.get(_COLOURS[0]) or "?", headings.get(_COLOURS[1]) or "?"),
        actions=tuple(action_of(move, ply % 2) for ply, move in enumerate(moves)),
        returns=returns,
        end=how,
        date=headings.get("開始日時", "").replace("/", "-"),
        source=headings.get("棋戦", ""),
    )


def _returns(winner: int | None) -> tuple[float, float]:
    return (0.0, 0.0) if winner is None else (1.0 - 2 * winner, 2.0 * winner - 1)


def _replay(record: GameRecord, place: str) -> Iterable[tuple[Move, Line]]:
    """Yields each move with the line after it."""
    if record.game.partition(",")[0] != _GAME:
        raise ValueError(f"{place}: got a record of {record.game}, expected one of {_GAME}")
    line = Line(sfen.START.position)
    for ply, action in enumerate(record.actions, 1):
        move = move_of(action, line.position.turn) if action < NUM_ACTIONS else None
        if move is None:
            raise ValueError(f"{place}: ply {ply}: got {action}, expected an action that stays on the board")
        try:
            usi.play_legal(line, move, ply)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        yield move, line


def _written(record: GameRecord, place: str) -> str:
    headings = {"手合割": _NO_HANDICAP, _COLOURS[0]: record.players[0], _COLOURS[1]: record.players[1]}
    headings |= {"開始日時": record.date.replace("-", "/"), "棋戦": record.source}
    lines = [f"{name}：{value}" for name, value in headings.items() if value and value != "?"]
    lines.append("手数----指手---------消費時間--")
    line, before = Line(sfen.START.position), None
    for ply, (move, line) in enumerate(_replay(record, place), 1):
        lines.append(f"{ply:>4} {_move_text(move, before, line)}")
        before = move.target
    lines.append(f"{len(record.actions) + 1:>4} {_end_word(record, line)}")
    return "\n".join(lines) + "\n\n"


def _move_text(move: Move, before: int | None, line: Line) -> str:
    """Returns a move that led to the last position of a line."""
    row, column = divmod(move.target, 9)
    square = "同　" if move.target == before else f"{chr(ord('１') + 8 - column)}{_RANKS[row]}"
    if move.source is None:
        return f"{square}{_NAMES[move.drop]}打"
    kind = abs(line.positions[-2].board[move.source])
    return f"{square}{_NAMES[kind]}{'成' if move.promotes else ''}({9 - move.source % 9}{move.source // 9 + 1})"


def _end_word(record: GameRecord, line: Line) -> str:
    if record.returns is None or record.truncated:
        return _UNFINISHED[0]
    outcome = line.outcome()
    if record.returns[0] == 0:
        return _DRAWS[outcome is not None and outcome[1] == "512 plies"]
    if record.returns[line.position.turn] > 0:
        return next(iter(_WINS))
    if record.end == "rules":
        return "詰み" if outcome and outcome[1] == "no legal move" else "反則負け"
    return next(word for word, end in _LOSES.items() if end == record.end)


def _square(file: str, rank: str) -> int:
    row = _RANKS.index(rank) if rank in _RANKS else int(rank) - 1
    return row * 9 + 9 - int(file)


def _begins_a_game(line: str) -> bool:
    return line.startswith(("手合割：", *(f"{colour}：" for colour in _COLOURS), "開始日時："))
