"""Files of game records, in the format that the name's end says: .jsonl (every game), .sgf (Go, Hex, Othello), .pgn
(chess), .kif and .usi (shogi).
"""

import codecs
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from envs.chess.game import Chess
from envs.chess.records import read_records, write_records
from envs.core import Game
from envs.record import GameRecord, read_lines, write_lines
from envs.sgf_games import has_sgf, read_sgf, write_sgf
from envs.shogi.game import Shogi
from envs.shogi.kif import read_kif, read_usi, write_kif, write_usi

FORMATS = (".jsonl", ".sgf", ".pgn", ".kif", ".usi")

_CHARSETS = """
    ascii big5 cp1251 cp1252 cp932 cp949 cp950 euc_jp euc_kr gb18030 gb2312 gbk iso8859-1 iso8859-15 shift_jis utf-8
""".split()


def formats_of(game: Game) -> tuple[str, ...]:
    """Returns the formats in which records of the game can be written."""
    kept = {".jsonl": True, ".sgf": has_sgf(game), ".pgn": isinstance(game, Chess)}
    kept |= dict.fromkeys((".kif", ".usi"), isinstance(game, Shogi))
    return tuple(suffix for suffix in FORMATS if kept[suffix])


def check_format(path: Path, formats: Iterable[str] = FORMATS) -> str:
    """Returns the end of a file's name, in small letters.

    Raises:
      ValueError: it is none of `formats`.
    """
    suffix = path.suffix.lower()
    if suffix not in formats:
        got = f"the format {suffix}" if suffix else "a name without a format"
        raise ValueError(f"{path}: got {got}, expected a file's name that ends in {' or '.join(formats)}")
    return suffix


def read_games(path: Path) -> list[GameRecord]:
    """Reads all games of a file, or none; `envs.playback` then says whether they keep the rules.

    Raises:
      ValueError: "FILE: line N...: what was seen, what was expected".
      OSError: the file cannot be read.
    """
    suffix = check_format(path)
    data = path.read_bytes()
    try:
        if suffix == ".sgf":
            return read_sgf(_decoded(data, _charset(data)))
        if suffix == ".kif" and not _is_utf_8(data):
            return read_kif(_decoded(data, "cp932"))  # the older ones: Shift JIS
        return _READERS[suffix](_decoded(data, "utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def write_games(directory: Path, name: str, game: Game, records: Sequence[GameRecord]) -> None:
    """Writes the records into a directory, in every format that the game has: NAME.jsonl, NAME.sgf."""
    for suffix in formats_of(game):
        (directory / f"{name}{suffix}").write_text(games_text(game, records, suffix), encoding="utf-8")


def games_text(game: Game, records: Iterable[GameRecord], suffix: str) -> str:
    """Returns what a file of these records holds; texts of the same format can be joined."""
    return write_sgf(game, records) if suffix == ".sgf" else _WRITERS[suffix](records)


_READERS = {".jsonl": read_lines, ".pgn": read_records, ".kif": read_kif, ".usi": read_usi}
_WRITERS = {".jsonl": write_lines, ".pgn": write_records, ".kif": write_kif, ".usi": write_usi}


def _charset(data: bytes) -> str:
    """Returns the character set that the property CA names; without it UTF-8 where that fits, else FF[4]'s Latin-1."""
    if named := re.search(rb"\bCA\s*\[([^\]]{0,40})\]", data[:4000]):
        word = named[1].decode("latin-1").strip()
        try:
            charset = codecs.lookup(word).name
        except (LookupError, ValueError):
            charset = ""
        if charset not in _CHARSETS:
            raise ValueError(f"CA: got {word!r}, expected a character set such as UTF-8")
        return charset
    return "utf-8" if _is_utf_8(data) else "iso8859-1"


def _is_utf_8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decoded(data: bytes, charset: str) -> str:
    try:
        return data.decode(charset).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: got a byte that is not {charset}: {error.reason}") from None
