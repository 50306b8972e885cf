"""Chess on the host: one position, its legal moves and how a game ends, from the rules themselves.

8 r n b q k b n r      square = row * 8 + column, row 0 on top as White sees the board: a8 is 0, h8 7, a1 56, h1 63.
7 p p p p p p p p      Capital letters are White's pieces, "." is an empty square.
  . . . . . . . .
2 P P P P P P P P      Nothing here is fast: every move is made and then looked at. `rules.py` is what devices run, and
1 R N B Q K B N R      the two are compared in tests, move by move.
  a b c d e f g h
"""

import dataclasses
import functools
from typing import NamedTuple

WHITE, BLACK = 0, 1
PROMOTIONS = "qrbn"
ORTHOGONAL = ((-1, 0), (0, 1), (1, 0), (0, -1))
DIAGONAL = ((-1, 1), (1, 1), (1, -1), (-1, -1))
KNIGHT = ((-2, 1), (-1, 2), (1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1))
_SLIDES = {"b": DIAGONAL, "r": ORTHOGONAL, "q": ORTHOGONAL + DIAGONAL}
_LEAPS = {"n": KNIGHT, "k": ORTHOGONAL + DIAGONAL}

_LONGEST = 512
"""Plies after which a game is drawn, as in AlphaZero's training."""


class Castle(NamedTuple):
    """One of the four ways to castle."""

    king: int
    rook: int
    king_to: int
    rook_to: int


CASTLES = {"K": Castle(60, 63, 62, 61), "Q": Castle(60, 56, 58, 59), "k": Castle(4, 7, 6, 5), "q": Castle(4, 0, 2, 3)}


class Move(NamedTuple):
    """A move as UCI has it: castling is the king's two squares."""

    source: int
    target: int
    promotion: str = ""  # one of PROMOTIONS, or "" where no pawn is promoted

    @property
    def uci(self) -> str:
        """The move as UCI writes it, such as e2e4 or a7a8q."""
        return f"{square_name(self.source)}{square_name(self.target)}{self.promotion}"


def square_name(square: int) -> str:
    """Returns the name of a square, such as "e4"."""
    return f"{'abcdefgh'[square % 8]}{8 - square // 8}"


def parse_square(name: str) -> int:
    """Returns the square of a name.

    Raises:
      ValueError: it names none.
    """
    if len(name) != 2 or name[0] not in "abcdefgh" or name[1] not in "12345678":
        raise ValueError(f"square: got {name!r}, expected a letter a to h and a digit 1 to 8")
    return (8 - int(name[1])) * 8 + "abcdefgh".index(name[0])


def parse_uci(text: str) -> Move:
    """Returns the move of a text such as "e2e4" or "e7e8q"; it need not be legal anywhere.

    Raises:
      ValueError: it is none.
    """
    if len(text) in (4, 5) and (text[4:] == "" or text[4:] in PROMOTIONS):
        try:
            return Move(parse_square(text[:2]), parse_square(text[2:4]), text[4:])
        except ValueError:
            pass
    raise ValueError(f"move: got {text!r}, expected two squares and a promotion to q, r, b or n, such as e2e4 or e7e8q")


@dataclasses.dataclass(frozen=True)
class Position:
    """A position without its past."""

    board: str  # 64 letters
    turn: int  # WHITE or BLACK
    castling: str  # letters of CASTLES in that order: who may still castle, if the way is ever free
    en_passant: int | None  # the square that a pawn passed over in the last move
    halfmoves: int  # since the last capture or pawn move
    fullmoves: int  # number of the move to come, from 1

    @property
    def ply(self) -> int:
        """Plies since the start of the game, by the number of the move."""
        return 2 * (self.fullmoves - 1) + self.turn

    def is_own(self, square: int) -> bool:
        piece = self.board[square]
        return piece != "." and piece.isupper() == (self.turn == WHITE)

    @functools.cached_property
    def legal_moves(self) -> tuple[Move, ...]:
        """Every legal move; those of a game that a draw has ended too."""
        return tuple(move for move in self._moves() if not self._leaves_king_attacked(move))

    def legal_moves_of(self, piece: str, target: int) -> list[Move]:
        """Returns the legal moves of one kind of piece ("p" to "k") to a square."""
        moves = [move for move in self._moves() if move.target == target and self.board[move.source].lower() == piece]
        return [move for move in moves if not self._leaves_king_attacked(move)]

    def is_legal(self, move: Move) -> bool:
        """Whether the player to move may make it."""
        return self.is_own(move.source) and move in self.legal_moves_of(self.board[move.source].lower(), move.target)

    @property
    def in_check(self) -> bool:
        """Whether the king of the player to move is attacked."""
        return _is_attacked(self.board, self._king(self.turn), 1 - self.turn)

    @property
    def gives_illegal_check(self) -> bool:
        """Whether the king of the side that just moved is attacked: no move leads to such a position."""
        return _is_attacked(self.board, self._king(1 - self.turn), self.turn)

    @property
    def can_take_en_passant(self) -> bool:
        """Whether a legal move takes en passant: only then does the square tell positions apart."""
        return any(self.is_en_passant(move) for move in self.legal_moves)

    @property
    def key(self) -> tuple[str, int, str, int | None]:
        """What two positions have in common that count as a repetition."""
        return self.board, self.turn, self.castling, self.en_passant if self.can_take_en_passant else None

    @property
    def is_dead(self) -> bool:
        """Whether neither side has the material to mate: K v K, K+N v K, or kings and bishops of one square colour."""
        pieces = [(piece.lower(), square) for square, piece in enumerate(self.board) if piece not in ".kK"]
        if [piece for piece, _ in pieces] == ["n"]:
            return True
        return all(piece == "b" for piece, _ in pieces) and len({sum(divmod(at, 8)) % 2 for _, at in pieces}) <= 1

    def is_en_passant(self, move: Move) -> bool:
        return move.target == self.en_passant and self.board[move.source].lower() == "p" and _columns(move) == 1

    def is_castling(self, move: Move) -> bool:
        return self.board[move.source].lower() == "k" and _columns(move) == 2

    def is_capture(self, move: Move) -> bool:
        return self.board[move.target] != "." or self.is_en_passant(move)

    def play(self, move: Move) -> "Position":
        """Returns the position after a legal move."""
        pawn = self.board[move.source].lower() == "p"
        double = pawn and abs(move.target - move.source) == 16
        touched = {move.source, move.target}
        castling = "".join(
            letter for letter in self.castling if not touched & {CASTLES[letter].king, CASTLES[letter].rook}
        )
        return Position(
            board=self._board_after(move),
            turn=1 - self.turn,
            castling=castling,
            en_passant=(move.source + move.target) // 2 if double else None,
            halfmoves=0 if pawn or self.is_capture(move) else self.halfmoves + 1,
            fullmoves=self.fullmoves + self.turn,
        )

    def _board_after(self, move: Move) -> str:
        board = list(self.board)
        piece = board[move.source]
        if self.is_en_passant(move):
            board[move.target + (8 if self.turn == WHITE else -8)] = "."
        if self.is_castling(move):
            castle = next(castle for castle in CASTLES.values() if castle[::2] == (move.source, move.target))
            board[castle.rook], board[castle.rook_to] = ".", board[castle.rook]
        if move.promotion:
            piece = move.promotion.upper() if self.turn == WHITE else move.promotion
        board[move.source], board[move.target] = ".", piece
        return "".join(board)

    def _leaves_king_attacked(self, move: Move) -> bool:
        board = self._board_after(move)
        return _is_attacked(board, board.index("K" if self.turn == WHITE else "k"), 1 - self.turn)

    def _king(self, colour: int) -> int:
        return self.board.index("K" if colour == WHITE else "k")

    def _moves(self) -> list[Move]:
        """Returns the moves that the pieces make, the king's safety left aside."""
        moves = self._castling_moves()
        for source in filter(self.is_own, range(64)):
            piece = self.board[source].lower()
            if piece == "p":
                moves += self._pawn_moves(source)
            for step in _SLIDES.get(piece, ()):
                square = _moved(source, step)
                while square is not None:
                    if not self.is_own(square):
                        moves.append(Move(source, square))
                    square = _moved(square, step) if self.board[square] == "." else None
            for step in _LEAPS.get(piece, ()):
                square = _moved(source, step)
                if square is not None and not self.is_own(square):
                    moves.append(Move(source, square))
        return moves

    def _pawn_moves(self, source: int) -> list[Move]:
        up = -1 if self.turn == WHITE else 1
        targets = []
        ahead = _moved(source, (up, 0))
        if ahead is not None and self.board[ahead] == ".":
            targets.append(ahead)
            second = _moved(ahead, (up, 0))
            if source // 8 == (6 if self.turn == WHITE else 1) and second is not None and self.board[second] == ".":
                targets.append(second)
        for side in (-1, 1):
            aside = _moved(source, (up, side))
            if aside is not None:
                enemy = self.board[aside] != "." and not self.is_own(aside)
                targets += [aside] * (enemy or aside == self.en_passant)
        last = 0 if self.turn == WHITE else 7
        return [
            Move(source, target, word) for target in targets for word in (PROMOTIONS if target // 8 == last else ("",))
        ]

    def _castling_moves(self) -> list[Move]:
        moves = []
        for letter in self.castling:
            castle = CASTLES[letter]
            between = range(min(castle.king, castle.rook) + 1, max(castle.king, castle.rook))
            walked = range(min(castle.king, castle.king_to), max(castle.king, castle.king_to) + 1)
            if (
                letter.isupper() == (self.turn == WHITE)
                and all(self.board[square] == "." for square in between)
                and not any(_is_attacked(self.board, square, 1 - self.turn) for square in walked)
            ):
                moves.append(Move(castle.king, castle.king_to))
        return moves


START = Position("rnbqkbnrpppppppp" + "." * 32 + "PPPPPPPPRNBQKBNR", WHITE, "KQkq", None, 0, 1)


class End(NamedTuple):
    """How a game ended."""

    reason: str  # checkmate, stalemate, dead position, repetition, fifty moves, length
    winner: int | None  # None: a draw


class Line:
    """A position and the moves that were made from it."""

    def __init__(self, start: Position = START):
        self.positions = [start]
        self.moves: list[Move] = []

    @property
    def position(self) -> Position:
        return self.positions[-1]

    def play(self, move: Move) -> None:
        """Makes a legal move."""
        self.positions.append(self.position.play(move))
        self.moves.append(move)

    @property
    def occurrences(self) -> int:
        """How often the position has been on the board, itself included."""
        now = self.position
        return sum(position.board == now.board and position.key == now.key for position in self.positions)

    @property
    def end(self) -> End | None:
        """How the game ended; None: it goes on. Mate and stalemate come before any draw."""
        position = self.position
        if not position.legal_moves:
            return End("checkmate", 1 - position.turn) if position.in_check else End("stalemate", None)
        draws = {
            "dead position": position.is_dead,
            "repetition": self.occurrences >= 3,
            "fifty moves": position.halfmoves >= 100,
            "length": position.ply >= _LONGEST,
        }
        return next((End(reason, None) for reason, holds in draws.items() if holds), None)


def _columns(move: Move) -> int:
    return abs(move.target % 8 - move.source % 8)


def _moved(square: int, step: tuple[int, int]) -> int | None:
    """Returns the square a step of (rows, columns) away, None off the board."""
    row, column = square // 8 + step[0], square % 8 + step[1]
    return row * 8 + column if 0 <= row < 8 and 0 <= column < 8 else None


def _is_attacked(board: str, square: int, colour: int) -> bool:
    """Returns whether a piece of `colour` attacks the square."""

    def holds(at: int | None, pieces: str) -> bool:
        return at is not None and board[at] in (pieces.upper() if colour == WHITE else pieces)

    down = 1 if colour == WHITE else -1  # from a square to the pawns that attack it
    if any(holds(_moved(square, (down, side)), "p") for side in (-1, 1)):
        return True
    if any(holds(_moved(square, step), piece) for piece, steps in _LEAPS.items() for step in steps):
        return True
    for steps, pieces in ((ORTHOGONAL, "rq"), (DIAGONAL, "bq")):
        for step in steps:
            at = _moved(square, step)
            while at is not None and board[at] == ".":
                at = _moved(at, step)
            if holds(at, pieces):
                return True
    return False
