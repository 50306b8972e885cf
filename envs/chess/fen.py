"""Forsyth-Edwards Notation: a position as one line of text.

    rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1
    board, from a8 row by row; side to move; castling; square passed over by a pawn; half-moves without progress; move

An en-passant square is written only where a pawn may take there, so that positions which are one to the rules are one
as text; any square that a pawn may just have passed over is read.
"""

import re

from envs.chess.position import BLACK, CASTLES, WHITE, Position, parse_square, square_name

START_FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
_MOST_MOVES = 9999


def write_fen(position: Position) -> str:
    """Returns the position's FEN."""
    rows = [position.board[start : start + 8] for start in range(0, 64, 8)]
    board = "/".join(re.sub(r"\.+", lambda gap: str(len(gap[0])), row) for row in rows)
    passed = "-"
    if position.en_passant is not None and position.can_take_en_passant:
        passed = square_name(position.en_passant)
    words = [board, "wb"[position.turn], position.castling or "-", passed, position.halfmoves, position.fullmoves]
    return " ".join(map(str, words))


def parse_fen(text: str) -> Position:
    """Returns the position of a FEN; the two numbers at its end may be left out.

    Raises:
      ValueError: "FEN: FIELD: got VALUE, expected ...": malformed, or a position that no game can have: a side without
        one king, with too many pieces, a pawn on the first or last row, castling without king and rook at home, an
        en-passant square that no pawn passed, or the side that has moved in check.
    """
    words = text.split()
    if len(words) not in (4, 6):
        raise ValueError(f"FEN: got {_short(text)}, expected four or six words, such as {START_FEN}")
    board = _board(words[0])
    if words[1] not in ("w", "b"):
        raise _fault("side to move", words[1], "w or b")
    turn = WHITE if words[1] == "w" else BLACK
    castling = _castling(words[2], board)
    passed = None if words[3] == "-" else _passed(words[3], board, turn)
    halfmoves, fullmoves = 0, 1
    if len(words) == 6:
        halfmoves = _number("half-moves without progress", words[4], least=0)
        fullmoves = _number("move", words[5], least=1)
    position = Position(board, turn, castling, passed, halfmoves, fullmoves)
    if position.gives_illegal_check:
        raise _fault("board", words[0], f"{('Black', 'White')[turn]}, who has just moved, not in check")
    return position


def _board(word: str) -> str:
    rows = word.split("/")
    if len(rows) != 8:
        raise _fault("board", word, "eight rows with / between them")
    for row in rows:
        if not re.fullmatch(r"[pnbrqkPNBRQK1-8]+", row) or re.search(r"[1-8]{2}", row) or len(_filled(row)) != 8:
            raise _fault("board", row, "rows of eight squares: letters pnbrqk, PNBRQK and numbers of empty squares")
    board = "".join(map(_filled, rows))
    for side, pawn, king, officers in (("White", "P", "K", "QRBN"), ("Black", "p", "k", "qrbn")):
        if board.count(king) != 1:
            raise _fault("board", word, f"one king of {side}, not {board.count(king)}")
        pawns = board.count(pawn)
        promoted = sum(
            max(board.count(piece) - at_first, 0) for piece, at_first in zip(officers, (1, 2, 2, 2), strict=True)
        )
        if pawns + promoted > 8:
            raise _fault("board", word, f"at most eight pawns and promoted pieces of {side}, not {pawns + promoted}")
    if set("pP") & set(board[:8] + board[56:]):
        raise _fault("board", word, "no pawns on the first and last row")
    return board


def _filled(row: str) -> str:
    return re.sub(r"[1-8]", lambda gap: "." * int(gap[0]), row)


def _castling(word: str, board: str) -> str:
    letters = "" if word == "-" else word
    if not re.fullmatch(r"[KQkq]+|-", word) or len(set(letters)) != len(letters):
        raise _fault("castling", word, "some of KQkq, each once, or -")
    for letter in letters:
        king, rook = ("K", "R") if letter.isupper() else ("k", "r")
        if board[CASTLES[letter].king] != king or board[CASTLES[letter].rook] != rook:
            squares = f"{square_name(CASTLES[letter].king)} and {square_name(CASTLES[letter].rook)}"
            raise _fault("castling", word, f"{letter} only with king and rook on {squares}")
    return "".join(letter for letter in CASTLES if letter in letters)


def _passed(word: str, board: str, turn: int) -> int:
    try:
        square = parse_square(word)
    except ValueError:
        raise _fault("en passant", word, "a square such as e3, or -") from None
    row, down, pawn = (2, 8, "p") if turn == WHITE else (5, -8, "P")
    if square // 8 != row or (board[square - down], board[square], board[square + down]) != (".", ".", pawn):
        raise _fault("en passant", word, "a square that a pawn has just passed over in two steps")
    return square


def _number(field: str, word: str, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", word) or int(word) < least:
        raise _fault(field, word, f"a whole number from {least} to {_MOST_MOVES}")
    return int(word)


def _fault(field: str, value: str, expected: str) -> ValueError:
    return ValueError(f"FEN: {field}: got {_short(value)}, expected {expected}")


def _short(value: str) -> str:
    text = repr(value)
    return text if len(text) <= 90 else f"{text[:87]}..."
