"""USI, the protocol of shogi engines: moves ("7g7f", "8h2b+", "P*5e") and lines of moves.

position startpos moves 7g7f 3c3d 8h2b+
position sfen BOARD TURN HANDS NUMBER moves ...
"""

import re
from typing import NamedTuple

from envs.shogi import sfen
from envs.shogi.position import KINDS, Line, Move

_MOVE = re.compile(r"([1-9])([a-i])([1-9])([a-i])(\+?)|([PLNSGBR])\*([1-9])([a-i])")
_RANKS = "abcdefghi"


class Moves(NamedTuple):
    """A position and what was played from there."""

    start: sfen.Placed
    moves: list[Move]


def write_move(move: Move) -> str:
    """Returns the move as USI has it."""
    if move.source is None:
        return f"{KINDS[move.drop]}*{square_name(move.target)}"
    return f"{square_name(move.source)}{square_name(move.target)}{'+' if move.promotes else ''}"


def parse_move(text: str) -> Move:
    """Reads a move, which need not be possible anywhere. Capital and small letters are alike.

    Raises:
      ValueError: "move: got ...": `text` is no USI move.
    """
    # Not lower(): beyond ASCII it makes letters out of what is none.
    word = text.strip()
    if word.isascii():
        word = word.lower()
        word = word[:1].upper() + word[1:]
    found = _MOVE.fullmatch(word)
    if not found or (found[1] and found.group(1, 2) == found.group(3, 4)):
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        raise ValueError(f"move: got {shown!r}, expected USI such as '7g7f', '8h2b+' or 'P*5e'")
    if found[6]:
        return Move(None, _square(found[7], found[8]), drop=KINDS.index(found[6]))
    return Move(_square(found[1], found[2]), _square(found[3], found[4]), promotes=bool(found[5]))


def write_line(start: sfen.Placed, moves: list[Move]) -> str:
    """Returns "position startpos moves ..." or "position sfen ... moves ..."."""
    place = "startpos" if start == sfen.START else f"sfen {sfen.write(*start)}"
    return " ".join(["position", place, *(["moves", *map(write_move, moves)] if moves else [])])


def parse_line(text: str) -> Moves:
    """Reads such a line; the word "position" may be left out. Every move must be legal.

    Raises:
      ValueError: "sfen: ..." of the position, or "ply N: ..." of a move.
    """
    words = text.split()
    words = words[words[:1] == ["position"] :]
    cut = words.index("moves") if "moves" in words else len(words)
    if words[:1] not in (["startpos"], ["sfen"]):
        raise ValueError(f"position: got {' '.join(words[:1])[:40]!r}, expected startpos or sfen")
    start = sfen.parse(" ".join(words[:cut]))
    line = Line(start.position, start.ply)
    moves = []
    for ply, word in enumerate(words[cut + 1 :], 1):
        try:
            moves.append(parse_move(word))
        except ValueError as error:
            raise ValueError(f"ply {ply}: {error}") from None
        play_legal(line, moves[-1], ply)
    return Moves(start, moves)


def play_legal(line: Line, move: Move, ply: int) -> None:
    """Plays a move of a record.

    Raises:
      ValueError: "ply N: ...": the game is over there, or the move is not legal.
    """
    name = write_move(move)
    if outcome := line.drawn_out():
        raise ValueError(f"ply {ply}: got {name!r}, but the game was over: {outcome[1]}")
    if not line.position.is_legal(move):
        raise ValueError(f"ply {ply}: got {name!r}, which is not legal there")
    line.play(move)


def square_name(square: int) -> str:
    """Returns the square as USI has it: file from the right, rank from the top ("7g")."""
    row, column = divmod(square, 9)
    return f"{9 - column}{_RANKS[row]}"


def _square(file: str, rank: str) -> int:
    return _RANKS.index(rank) * 9 + 9 - int(file)
