"""Standard algebraic notation: Nf3, exd5, O-O, e8=Q+. A move is named by piece, target and what tells it apart."""

import re

from envs.chess.position import Move, Position, parse_square, parse_uci, square_name

_SAN = re.compile(r"([KQRBN]?)([a-h]?)([1-8]?)[x:-]?([a-h][1-8])(?:=?([QRBN]))?")
_CASTLING = re.compile(r"(?:O-O|0-0)(-O|-0)?")


def write_san(position: Position, move: Move) -> str:
    """Returns a legal move's name, with + for check and # for mate."""
    after = position.play(move)
    check = "" if not after.in_check else "+" if after.legal_moves else "#"
    if position.is_castling(move):
        return f"{'O-O' if move.target % 8 == 6 else 'O-O-O'}{check}"
    piece = position.board[move.source].lower()
    capture = "x" if position.is_capture(move) else ""
    if piece == "p":
        source = square_name(move.source)[0] if capture else ""
        promotion = f"={move.promotion.upper()}" if move.promotion else ""
        return f"{source}{capture}{square_name(move.target)}{promotion}{check}"
    return f"{piece.upper()}{_source(position, move, piece)}{capture}{square_name(move.target)}{check}"


def _source(position: Position, move: Move, piece: str) -> str:
    """Returns what tells the move's piece from others of its kind: its file, else its rank, else both."""
    name = square_name(move.source)
    others = [square_name(other.source) for other in position.legal_moves_of(piece, move.target) if other != move]
    if not others:
        return ""
    if all(other[0] != name[0] for other in others):
        return name[0]
    return name[1] if all(other[1] != name[1] for other in others) else name


def parse_san(position: Position, text: str) -> Move:
    """Returns the legal move that a name means; marks such as + # ! ? after it are passed over.

    Raises:
      ValueError: it is no name, or no legal move's, or more than one's.
    """
    word = text.rstrip("+#!?")
    if castling := _CASTLING.fullmatch(word):
        king = position.board.index("K" if position.turn == 0 else "k")
        found = position.legal_moves_of("k", king + (-2 if castling[1] else 2)) if king % 8 == 4 else []
        found = [move for move in found if position.is_castling(move)]
    elif name := _SAN.fullmatch(word):
        piece, file, rank, target, promotion = name.groups()
        found = [
            move
            for move in position.legal_moves_of(piece.lower() or "p", parse_square(target))
            if square_name(move.source)[0] in (file or "abcdefgh")
            and square_name(move.source)[1] in (rank or "12345678")
            and move.promotion == (promotion or "").lower()
            and not position.is_castling(move)
        ]
        if not promotion and not found and not piece and parse_square(target) // 8 in (0, 7):
            raise ValueError(f"move: got {text!r}, expected the piece that the pawn becomes too, such as {word}=Q")
    else:
        raise ValueError(f"move: got {_short(text)}, expected a move such as Nf3, exd5, O-O or e8=Q")
    if len(found) != 1:
        several = ", ".join(move.uci for move in found)
        why = f"expected one move, not any of {several}" if found else "which is not legal there"
        raise ValueError(f"move: got {text!r}, {why}")
    return found[0]


def parse_move(position: Position, text: str) -> Move:
    """Returns the move that a person or a program wrote, as UCI (which need not be legal) or as SAN (which must be).

    Raises:
      ValueError: it is neither.
    """
    word = text.strip()
    try:
        return parse_uci(word.lower())
    except ValueError:
        pass
    # Small letters are alike but for "b", which is a file.
    if word[:1] in ("n", "r", "q", "k", "o"):
        word = word.upper() if word[0] == "o" else word[0].upper() + word[1:]
    return parse_san(position, word)


def _short(value: str) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
