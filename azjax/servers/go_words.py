"""Colours, points, handicaps and lines of analysis as GTP has them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from azjax.thinker import MoveLine

COLOURS = {"b": 0, "black": 0, "w": 1, "white": 1}

_LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"


class Refused(Exception):
    """A command is answered with "?" and this text."""


def colour(word: str) -> int:
    """Returns 0 for Black, 1 for White."""
    if word.lower() not in COLOURS:
        raise Refused("invalid color")
    return COLOURS[word.lower()]


def number(words: Sequence[str], index: int, kind: type, least: float, most: float) -> Any:
    """Returns the word at `index` as a number of this kind within these bounds."""
    try:
        value = kind(words[index])
    except (ValueError, IndexError):
        raise Refused("syntax error") from None
    if not least <= value <= most:
        raise Refused("syntax error")
    return value


def vertex(word: str, size: int) -> str:
    """Returns a point as `Go.action_name` writes it, or "pass"."""
    if word.lower() == "pass":
        return "pass"
    column, row = word[:1].upper(), word[1:]
    on_board = column in _LETTERS[:size] and row.isascii() and row.isdigit() and len(row) < 4 and 1 <= int(row) <= size
    if not column or not on_board:
        raise Refused("invalid color or coordinate")
    return f"{column}{int(row)}"


def alternating(plays: Sequence[tuple[int, str]], to_move: int | None = None) -> list[str]:
    """Returns the moves of a game in which the colours take turns: who plays twice in a row lets the other pass.

    Args:
      plays: colour and vertex of each move.
      to_move: whose turn it is to be at the end; None: whoever's it is.
    """
    moves: list[str] = []
    for player, word in plays:
        if moves[-2:] == ["pass", "pass"]:  # the game would be over; play after it takes the passes back
            del moves[-2:]
        _let_move(moves, player)
        moves.append(word)
    if to_move is not None and moves[-2:] != ["pass", "pass"]:
        _let_move(moves, to_move)
    return moves


def _let_move(moves: list[str], player: int) -> None:
    """Makes it this player's turn, by a pass, or without the one before."""
    if len(moves) % 2 != player:
        if moves[-1:] == ["pass"]:
            moves.pop()
        else:
            moves.append("pass")


def most_handicap(size: int) -> int:
    """Returns how many stones a fixed handicap has at most."""
    return 0 if size < 7 else 9 if size % 2 and size > 7 else 4


def fixed_handicap(size: int, stones: int) -> list[str]:
    """Returns the points of a fixed handicap as the specification has them (section 4.1.1)."""
    if not 2 <= stones <= most_handicap(size):
        raise Refused("invalid number of stones")
    edge = 3 if size < 12 else 4  # as GNU Go, the reference where the specification says nothing
    low, middle, high = edge, (size + 1) // 2, size + 1 - edge
    corners = [(low, low), (high, high), (low, high), (high, low)]
    sides = [(low, middle), (high, middle)]
    ends = [(middle, low), (middle, high)]
    points = corners[:stones]
    if stones >= 6:
        points += sides
    if stones >= 8:
        points += ends
    if stones in (5, 7, 9):
        points.append((middle, middle))
    return [f"{_LETTERS[column - 1]}{row}" for column, row in points]


def leela_line(order: int, line: "MoveLine") -> str:
    """Returns a move as lz-analyze describes it: chances in hundredths of a percent."""
    return (
        f"info move {line.moves[0]} visits {line.visits} winrate {round(5000 * (line.q + 1))} "
        f"prior {round(10000 * line.prior)} order {order} pv {' '.join(line.moves)}"
    )


def kata_line(order: int, line: "MoveLine") -> str:
    """Returns a move as kata-analyze describes it, without what we do not estimate (scores)."""
    return (
        f"info move {line.moves[0]} visits {line.visits} utility {line.q:.4f} winrate {(line.q + 1) / 2:.4f} "
        f"prior {line.prior:.4f} order {order} pv {' '.join(line.moves)}"
    )
