"""Records of chess games as PGN.

PGN does not say why a game is over. What stands at the end of the moves and the tag Termination tell: a finished game
whose last position is one that goes on was given up, or drawn by agreement. It does not keep the game's options,
`opening_plies`, and that a game was cut off (`*`, read as unfinished).
"""

from collections.abc import Iterable

from envs.chess.actions import action_of, move_of
from envs.chess.pgn import PgnGame, read_pgn, write_pgn
from envs.chess.position import START, Line
from envs.record import GameRecord

_GAME = "chess"
_RESULTS = {"1-0": (1.0, -1.0), "0-1": (-1.0, 1.0), "1/2-1/2": (0.0, 0.0), "*": None}
_TERMINATIONS = {"time": "time forfeit", "forfeit": "rules infraction", "plies": "unterminated"}


def write_records(records: Iterable[GameRecord]) -> str:
    """Returns the games as PGN.

    Raises:
      ValueError: a record is of another game, or its moves are not legal.
    """
    return write_pgn(_game(record, number) for number, record in enumerate(records, 1))


def read_records(text: str) -> list[GameRecord]:
    """Returns the games of a PGN text.

    Raises:
      ValueError: it is no PGN, a move is not legal, a game begins elsewhere, or its result is not the rules'.
    """
    return [_record(game, f"game {number}") for number, game in enumerate(read_pgn(text), 1)]


def _game(record: GameRecord, number: int) -> PgnGame:
    if record.game.partition(",")[0] != _GAME:
        raise ValueError(f"game {number}: got a record of {record.game}, expected one of {_GAME}")
    line = Line()
    for ply, action in enumerate(record.actions, 1):
        try:
            move = move_of(action, line.position)
        except ValueError as error:
            raise ValueError(f"game {number}: ply {ply}: {error}") from None
        if not line.position.is_legal(move):
            raise ValueError(f"game {number}: ply {ply}: got {move.uci}, which is not legal there")
        line.play(move)
    result = next(word for word, returns in _RESULTS.items() if returns == record.returns or word == "*")
    tags = {"White": record.players[0], "Black": record.players[1], "Date": record.date.replace("-", ".")}
    tags |= {"Annotator": record.source, "Termination": _TERMINATIONS.get(record.end, "")}
    known = {name: value for name, value in tags.items() if value and value != "?"}
    return PgnGame(tuple(line.moves), "*" if record.truncated else result, known)


def _record(game: PgnGame, place: str) -> GameRecord:
    if game.start != START:
        raise ValueError(f"{place}: FEN: got a position that is set up, expected a game from its start")
    line = Line()
    for move in game.moves:
        line.play(move)
    returns = _RESULTS[game.result]
    end = "unfinished" if returns is None else "rules"
    given = game.tags.get("Termination", "").lower()
    if returns is not None and returns[0] != 0 and line.end is None:
        end = next((end for end, word in _TERMINATIONS.items() if word == given), "resignation")
    try:
        return GameRecord(
            game=_GAME,
            players=(game.tags.get("White") or "?", game.tags.get("Black") or "?"),
            actions=tuple(action_of(move, ply % 2) for ply, move in enumerate(game.moves)),
            returns=returns,
            end=end,
            date=game.tags.get("Date", "").replace(".", "-"),
            source=game.tags.get("Annotator", ""),
        )
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
