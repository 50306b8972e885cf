"""SFEN, the notation of positions that USI uses.

lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1
ranks from the top, a digit for so many empty squares     turn, hands (number before letter; capitals: Black's), move
"""

import re
from typing import NamedTuple

from envs.shogi.position import (
    HAND,
    IN_A_SET,
    KINDS,
    KING,
    LONGEST,
    PAWN,
    PROMOTED,
    Position,
    is_dead,
    opening,
)

_PIECE = re.compile(r"\+?[A-Za-z]|[0-9]+|.", re.DOTALL)
_HELD = re.compile(r"([0-9]*)([A-Za-z])|(.)", re.DOTALL)
_NUMBER = re.compile(r"[1-9][0-9]{0,3}")
_WRITTEN_HAND = "RBGSNLP"
_TURNS = ("b", "w")
MOST_MOVES = 593
"""Legal moves that a position can have."""


class Placed(NamedTuple):
    """A position and the number of its next move."""

    position: Position
    number: int  # 1: the first

    @property
    def ply(self) -> int:
        return self.number - 1


START = Placed(opening(), 1)


def parse(text: str) -> Placed:
    """Reads an SFEN of four fields; the word "sfen" may stand before them, "startpos" in their place.

    Composed positions are taken: a king may be missing (that side is never in check), two pawns may stand on a file,
    and the pawns in hand are not counted with those of the board.

    Raises:
      ValueError: "sfen: FIELD: got ..., expected ...": malformed; more pieces of a kind than a set has; two kings
        of a side; a piece that can never move from its square; the side that is not to move in check.
    """
    words = text.split()
    if words == ["startpos"]:
        return START
    words = words[words[:1] == ["sfen"] :]
    if len(words) != 4:
        raise ValueError(f"sfen: got {_short(text)}, expected four fields: board, turn, hands, move number")
    board = _board(words[0])
    if words[1] not in _TURNS:
        raise ValueError(f"sfen: turn: got {_short(words[1])}, expected b or w")
    position = Position(board, _hands(words[2]), _TURNS.index(words[1]))
    if not _NUMBER.fullmatch(words[3]) or int(words[3]) > LONGEST:
        raise ValueError(f"sfen: move number: got {_short(words[3])}, expected a whole number from 1 to {LONGEST}")
    _check(position, words)
    return Placed(position, int(words[3]))


def write(position: Position, number: int = 1) -> str:
    """Returns the SFEN; `parse` gives the position and the number of the next move back."""
    ranks = []
    for row in range(9):
        squares = ["1" if piece == 0 else _letter(piece) for piece in position.board[9 * row : 9 * row + 9]]
        ranks.append(re.sub("1+", lambda run: str(len(run[0])), "".join(squares)))
    held = ""
    for player, hand in enumerate(position.hands):
        for letter in _WRITTEN_HAND:
            if count := hand[HAND.index(KINDS.index(letter))]:
                held += f"{count if count > 1 else ''}{letter.lower() if player else letter}"
    return f"{'/'.join(ranks)} {_TURNS[position.turn]} {held or '-'} {number}"


def _board(text: str) -> tuple[int, ...]:
    ranks = text.split("/")
    if len(ranks) != 9:
        raise ValueError(f"sfen: board: got {len(ranks)} ranks in {_short(text)}, expected 9")
    board: list[int] = []
    for name, rank in zip("abcdefghi", ranks, strict=True):
        pieces: list[int] = []
        for word in _PIECE.findall(rank):
            if word in "123456789":
                pieces += [0] * int(word)
            elif word.upper() in KINDS and word.isascii():
                pieces.append(KINDS.index(word.upper()) * (-1 if word[-1].islower() else 1))
            else:
                raise ValueError(f"sfen: board: rank {name}: got {_short(word)}, expected a piece or 1 to 9")
        if len(pieces) != 9:
            raise ValueError(f"sfen: board: rank {name}: got {len(pieces)} squares in {_short(rank)}, expected 9")
        board += pieces
    return tuple(board)


def _hands(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    counts: dict[str, int] = {}
    for number, letter, other in _HELD.findall("" if text == "-" else text):
        if other or letter.upper() not in _WRITTEN_HAND:
            raise ValueError(f"sfen: hands: got {_short(other or letter)}, expected a piece of {_WRITTEN_HAND}")
        if letter in counts:
            raise ValueError(f"sfen: hands: got {letter!r} twice, expected each piece once")
        if number and not _NUMBER.fullmatch(number):
            raise ValueError(f"sfen: hands: got {_short(number + letter)}, expected a number from 1 before a piece")
        counts[letter] = int(number or 1)
    black, white = (tuple(counts.get(case(KINDS[kind]), 0) for kind in HAND) for case in (str.upper, str.lower))
    return black, white


def _check(position: Position, words: list[str]) -> None:
    """Refuses what no game can lead to."""
    board = position.board
    for piece in (KING, -KING):
        if (count := board.count(piece)) > 1:
            raise ValueError(f"sfen: board: got {count} pieces {_letter(piece)!r}, expected one king of a side at most")
    for index, (kind, most) in enumerate(zip(HAND, IN_A_SET, strict=True)):
        forms = {kind, PROMOTED.get(kind, kind)}
        there, held = sum(abs(piece) in forms for piece in board), sum(hand[index] for hand in position.hands)
        if max(there, held, 0 if kind == PAWN else there + held) > most:
            raise ValueError(
                f"sfen: board and hands: got {there} + {held} pieces {KINDS[kind]!r}, expected {most} at most"
            )
    for square, piece in enumerate(board):
        if piece and is_dead(abs(piece), square, int(piece < 0)):
            name = f"{9 - square % 9}{'abcdefghi'[square // 9]}"
            raise ValueError(
                f"sfen: board: got {_letter(piece)!r} on {name}, expected a piece that can move from there"
            )
    if position.in_check(1 - position.turn):
        other = _TURNS[1 - position.turn]
        raise ValueError(f"sfen: turn: got {words[1]!r}, expected {other!r}: the king of {other} is in check")
    if (count := len(position.legal_moves())) > MOST_MOVES:
        raise ValueError(f"sfen: board: got a position of {count} legal moves, expected {MOST_MOVES} at most")


def _letter(piece: int) -> str:
    return KINDS[piece] if piece > 0 else KINDS[-piece].lower()


def _short(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:77]!r}..."
