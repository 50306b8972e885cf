"""Shogi from its rules, one move after the other: slow plain Python, which text and tests are checked by.

9 8 7 6 5 4 3 2 1
l n s g k g s n l  a     square = row * 9 + column: row 0 is rank a, column 0 is file 9, so 7g is 6 * 9 + 2 = 56
. r . . . . . b .  b
p p p p p p p p p  c     Capital letters are Black's (sente, player 0, at the bottom, moves first), who moves up the
. . . . . . . . .  d     board; small ones White's (gote). A + before a letter marks a promoted piece.
. . . . . . . . .  e
. . . . . . . . .  f     A piece is its number in KINDS, White's with a minus.
P P P P P P P P P  g
. B . . . . . R .  h
L N S G K G S N L  i
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import NamedTuple

KINDS = ("", "P", "L", "N", "S", "G", "B", "R", "K", "+P", "+L", "+N", "+S", "+B", "+R")
PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK, KING, TOKIN, *_ = range(1, len(KINDS))
HAND = (PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK)
"""The kinds that can be held in hand, in the order of a hand's numbers."""
IN_A_SET = (18, 4, 4, 4, 4, 2, 2)
"""How many of each there are, on the board and in both hands."""
PROMOTED = {PAWN: 9, LANCE: 10, KNIGHT: 11, SILVER: 12, BISHOP: 13, ROOK: 14}
LONGEST = 512
"""The ply at which the game is a draw."""
OCCURRENCES = 4
"""Of the same position, which end the game."""

_UNPROMOTED = {promoted: kind for kind, promoted in PROMOTED.items()}
_FORWARD = ((-1, 0),)
_DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))
_STRAIGHT = ((-1, 0), (0, -1), (0, 1), (1, 0))
_GOLD_STEPS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, 0))
STEPS = {
    PAWN: _FORWARD,
    KNIGHT: ((-2, -1), (-2, 1)),
    SILVER: (*_FORWARD, *_DIAGONAL),
    KING: (*_STRAIGHT, *_DIAGONAL),
    PROMOTED[BISHOP]: _STRAIGHT,
    PROMOTED[ROOK]: _DIAGONAL,
    **dict.fromkeys((GOLD, *(PROMOTED[kind] for kind in (PAWN, LANCE, KNIGHT, SILVER))), _GOLD_STEPS),
}
"""Black's (rows, columns) of one step."""
SLIDES = {
    LANCE: _FORWARD,
    **dict.fromkeys((BISHOP, PROMOTED[BISHOP]), _DIAGONAL),
    **dict.fromkeys((ROOK, PROMOTED[ROOK]), _STRAIGHT),
}
"""The same of moves that go on until something stands in the way."""


class Move(NamedTuple):
    """A move, or a drop from the hand."""

    source: int | None  # square; None: a drop
    target: int  # square
    promotes: bool = False
    drop: int = 0  # the kind that is dropped


@dataclasses.dataclass(frozen=True)
class Position:
    """Who stands where, what is in hand, who moves; nothing of the past."""

    board: tuple[int, ...]  # 81 pieces; 0: empty
    hands: tuple[tuple[int, ...], tuple[int, ...]]  # Black's, White's: the number of each kind of HAND
    turn: int  # 0: Black moves

    def legal_moves(self) -> list[Move]:
        """Returns every legal move, in no particular order."""
        return [move for square in range(81) for move in self._moves_from(square) if self._is_allowed(move)]

    def is_legal(self, move: Move) -> bool:
        """Returns whether one move is legal, much quicker than from all."""
        square = move.target if move.source is None else move.source
        return move in self._moves_from(square) and self._is_allowed(move)

    def in_check(self, player: int | None = None) -> bool:
        """Returns whether a player's king is attacked, by default that of the player to move."""
        player = self.turn if player is None else player
        king = self.king(player)
        return king is not None and self._attacked(king, 1 - player)

    def king(self, player: int) -> int | None:
        """Returns the square of a player's king, if it is there."""
        piece = _piece(KING, player)
        return self.board.index(piece) if piece in self.board else None

    def play(self, move: Move) -> "Position":
        """Returns the position after a move that is possible, if not legal."""
        board, hands = list(self.board), [list(hand) for hand in self.hands]
        if move.source is None:
            hands[self.turn][HAND.index(move.drop)] -= 1
            board[move.target] = _piece(move.drop, self.turn)
        else:
            kind, taken = abs(board[move.source]), abs(board[move.target])
            if taken and taken != KING:
                hands[self.turn][HAND.index(_UNPROMOTED.get(taken, taken))] += 1
            board[move.source] = 0
            board[move.target] = _piece(PROMOTED[kind] if move.promotes else kind, self.turn)
        return Position(tuple(board), (tuple(hands[0]), tuple(hands[1])), 1 - self.turn)

    def _moves_from(self, square: int) -> Iterator[Move]:
        """Yields the moves of the piece there, or the drops there, without regard to what happens to the own king."""
        piece = self.board[square]
        if piece == 0:
            yield from self._drops(square)
        elif (piece < 0) == self.turn:
            for target in _targets(self.board, square):
                if self.board[target] == 0 or (self.board[target] < 0) != self.turn:
                    yield from self._with_promotion(square, target)

    def _drops(self, square: int) -> Iterator[Move]:
        for kind, number in zip(HAND, self.hands[self.turn], strict=True):
            pawn = _piece(PAWN, self.turn)
            two_pawns = kind == PAWN and pawn in self.board[square % 9 :: 9]
            if number and not two_pawns and not is_dead(kind, square, self.turn):
                yield Move(None, square, drop=kind)

    def _with_promotion(self, source: int, target: int) -> Iterator[Move]:
        kind = abs(self.board[source])
        if kind in PROMOTED and min(_rank(source, self.turn), _rank(target, self.turn)) < 3:
            yield Move(source, target, promotes=True)
        if not is_dead(kind, target, self.turn):
            yield Move(source, target)

    def _is_allowed(self, move: Move) -> bool:
        """Returns whether a move leaves the own king safe and is no pawn drop that mates."""
        after = self.play(move)
        if after.in_check(self.turn):
            return False
        # A pawn that gives check stands beside the king: no drop helps, so this looks no further than one move.
        return not (move.drop == PAWN and after.in_check() and not after.legal_moves())

    def _attacked(self, square: int, by: int) -> bool:
        return any(
            square in _targets(self.board, source)
            for source, piece in enumerate(self.board)
            if piece and (piece < 0) == by and square in _REACH[piece][source]
        )


class Line:
    """A game from some position on: every position so far, and how the game stands."""

    def __init__(self, start: Position, ply: int = 0):
        self.start_ply = ply
        self.positions = [start]
        self.checks: list[bool] = []  # of each move, whether it gave check
        self._legal: list[Move] | None = None

    @property
    def position(self) -> Position:
        return self.positions[-1]

    @property
    def ply(self) -> int:
        return self.start_ply + len(self.checks)

    def play(self, move: Move) -> None:
        after = self.position.play(move)
        self.positions.append(after)
        self.checks.append(after.in_check())
        self._legal = None

    def legal_moves(self) -> list[Move]:
        """Returns the legal moves, whether or not the game is over by another rule."""
        if self._legal is None:
            self._legal = self.position.legal_moves()
        return self._legal

    def repetitions(self) -> int:
        """Returns how often this position has been there, now included."""
        return self.positions.count(self.position)

    def outcome(self) -> tuple[int | None, str] | None:
        """Returns the winner (None: a draw) and the rule that ended the game, or None while it goes on."""
        if not self.legal_moves():
            return 1 - self.position.turn, "no legal move"
        return self.drawn_out()

    def drawn_out(self) -> tuple[int | None, str] | None:
        """Returns `outcome` where there is a legal move."""
        if self.repetitions() >= OCCURRENCES:
            since = self.checks[self.positions.index(self.position) :]
            mover = self.position.turn
            # The last move is the other player's.
            checking = [player for player in (0, 1) if all(since[-1 - (player == mover) :: -2])]
            if len(checking) == 1:
                return 1 - checking[0], "perpetual check"
            return None, "repetition"
        return (None, "512 plies") if self.ply >= LONGEST else None


def is_dead(kind: int, square: int, player: int) -> bool:
    """Returns whether a piece would never be able to move from there again."""
    rank = _rank(square, player)
    return (kind in (PAWN, LANCE) and rank == 0) or (kind == KNIGHT and rank < 2)


def opening() -> Position:
    """Returns the position that games start from."""
    back = (LANCE, KNIGHT, SILVER, GOLD, KING, GOLD, SILVER, KNIGHT, LANCE)
    second = (0, BISHOP, 0, 0, 0, 0, 0, ROOK, 0)
    half = (*([PAWN] * 9), *second, *back)
    return Position((*(-piece for piece in reversed(half)), *([0] * 27), *half), ((0,) * 7, (0,) * 7), 0)


def count_leaves(position: Position, depth: int) -> int:
    """Returns the number of sequences of `depth` legal moves (perft)."""
    moves = position.legal_moves()
    if depth == 1:
        return len(moves)
    return sum(count_leaves(position.play(move), depth - 1) for move in moves)


def _piece(kind: int, player: int) -> int:
    return -kind if player else kind


def _rank(square: int, player: int) -> int:
    """Returns how far a square is from the far side, 0 there."""
    return 8 - square // 9 if player else square // 9


def _targets(board: tuple[int, ...], source: int) -> Iterator[int]:
    """Yields the squares that the piece there attacks: empty ones, enemies', and own pieces that it protects."""
    for line in _LINES[board[source]][source]:
        for target in line:
            yield target
            if board[target]:
                break


@functools.cache
def _line(square: int, step: tuple[int, int], length: int) -> tuple[int, ...]:
    squares = []
    row, column = divmod(square, 9)
    for _ in range(length):
        row, column = row + step[0], column + step[1]
        if not (0 <= row < 9 and 0 <= column < 9):
            break
        squares.append(row * 9 + column)
    return tuple(squares)


def _lines_of(piece: int) -> list[list[tuple[int, ...]]]:
    """Returns, of each square, the lines of squares that the piece attacks from there if they are empty."""
    kind, sign = abs(piece), -1 if piece < 0 else 1
    steps = [(step, 1) for step in STEPS.get(kind, ())] + [(step, 8) for step in SLIDES.get(kind, ())]
    turned = [((sign * rows, columns), length) for (rows, columns), length in steps]
    return [[line for step, length in turned if (line := _line(square, step, length))] for square in range(81)]


_LINES = {piece: _lines_of(piece) for piece in range(-14, 15) if piece}
_REACH = {piece: [set().union(*lines) for lines in squares] for piece, squares in _LINES.items()}
