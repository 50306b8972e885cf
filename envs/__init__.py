"""Games: pure JAX rules behind one contract (`envs.core.Game`).

    import envs
    game = envs.make("crosshair", size=5)       # or in one word: envs.make("crosshair,size=5")
    game = envs.make("path/to/my_game.py:GAME")  # a game of one's own; also "package.module:GAME"
    game = envs.make("pgx:gardner_chess")       # any two-player environment of pgx

Importing this package imports no JAX: a wrong name is answered at once.
"""

import ast
import dataclasses
import difflib
import importlib
import inspect
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from envs.core import Game


class _Entry(NamedTuple):
    """Where a game's class is, and the options that its name fixes."""

    module: str
    name: str
    fixed: Mapping[str, Any] = MappingProxyType({})
    listed: bool = True  # False: a family of games that `available` names by their usual members


_GAMES = {
    "tic_tac_toe": _Entry("envs.tic_tac_toe", "TicTacToe"),
    "connect_four": _Entry("envs.connect_four", "ConnectFour"),
    "crosshair": _Entry("envs.crosshair", "Crosshair"),
    "black_hole": _Entry("envs.black_hole", "BlackHole"),
    "othello": _Entry("envs.othello", "Othello"),
    "hex": _Entry("envs.hex", "Hex"),
    "ultimate_tic_tac_toe": _Entry("envs.ultimate_tic_tac_toe", "UltimateTicTacToe"),
    "backgammon": _Entry("envs.backgammon", "Backgammon"),
    "chess": _Entry("envs.chess.game", "Chess"),
    "shogi": _Entry("envs.shogi.game", "Shogi"),
    "go": _Entry("envs.go", "Go", listed=False),
    "go_9x9": _Entry("envs.go", "Go", MappingProxyType({"size": 9})),
    "go_13x13": _Entry("envs.go", "Go", MappingProxyType({"size": 13})),
    "go_19x19": _Entry("envs.go", "Go", MappingProxyType({"size": 19})),
}

FAMILIES = MappingProxyType(
    {
        "go,size=N": "boards of other sizes",
        "pgx:NAME": "a two-player game of pgx, such as pgx:gardner_chess",
        "FILE.py:NAME": "a game of one's own; also MODULE:NAME",
    }
)
"""What `make` takes besides the names that `available` lists."""

_REFERENCE = re.compile(r"(?P<where>.+?):(?P<name>[^:,]*)(?P<options>,.*)?", re.DOTALL)


def available() -> list[str]:
    """Returns the names of games that `make` knows, simplest first. Boards of other sizes: "go,size=7"."""
    return [name for name, entry in _GAMES.items() if entry.listed]


def make(name: str, **options: Any) -> "Game":
    """Returns the game that `name` says.

    Args:
      name: one of `available()`, `path/to/file.py:ATTRIBUTE`, `module:ATTRIBUTE` or `pgx:ENVIRONMENT`; options may
        follow after commas, as in "crosshair,size=5" (whole numbers, decimals, true, false, words).
      **options: the same options as values.

    Raises:
      ValueError: one line that says what was wrong, what was given and what was expected.
    """
    if not isinstance(name, str):
        raise ValueError(f"game: got {name!r}, expected a name such as {'crosshair'!r}")
    if reference := _REFERENCE.fullmatch(name.strip()):
        options = _merged(name, reference["options"] or "", options)
        if reference["where"] == "pgx":
            from envs.pgx import from_pgx

            _check_options(name, from_pgx, options, given={"name"})
            return from_pgx(reference["name"], **options)
        from envs.own import load

        return load(reference["where"], reference["name"], options)
    word, _, tail = name.strip().partition(",")
    entry = _GAMES.get(word.strip())
    if entry is None:
        expected = expected_names(word, available())
        raise ValueError(f"game: got {word!r}, expected {expected}; or {', '.join(FAMILIES)}")
    options = _merged(word, tail, options)
    game_class = getattr(importlib.import_module(entry.module), entry.name)
    _check_options(word, game_class, options, given=set(entry.fixed))
    return game_class(**entry.fixed, **options)


def fixed_options(name: str) -> frozenset[str]:
    """Returns the options that a game's word itself says, as "go_9x9" says its size."""
    entry = _GAMES.get(name.partition(",")[0].strip())
    return frozenset(entry.fixed) if entry is not None else frozenset()


def is_named(game: "Game", name: str) -> bool:
    """Returns whether `name`, as it stands in a stranger's file, names this game. Runs no file that has not run yet.

    Raises:
      ValueError: it names no game.
    """
    reference = _REFERENCE.fullmatch(name.strip())
    if reference and reference["where"] != "pgx":
        from envs.own import is_loaded

        if not is_loaded(reference["where"]):
            return False
    return make(name).id == game.id


def reference(name: str) -> tuple[str, str] | None:
    """Returns the file or module and the attribute that `make` would run code of for `name`; None where it runs
    azjax's own or pgx's alone.
    """
    found = _REFERENCE.fullmatch(name.strip())
    return None if found is None or found["where"] == "pgx" else (found["where"], found["name"])


def _merged(name: str, text: str, options: dict[str, Any]) -> dict[str, Any]:
    """Returns `options` and those of the text "a=1,b=true"."""
    merged = dict(options)
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not (equals and key and value):
            raise ValueError(f"game {name}: option: got {part!r}, expected NAME=VALUE, such as size=5")
        if key in merged:
            raise ValueError(f"game {name}: option {key}: got it twice, expected it once")
        merged[key] = _value(value)
    return merged


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        number = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return number if isinstance(number, int | float) else text


def _check_options(name: str, target: Any, options: dict[str, Any], given: set[str]) -> None:
    """Raises ValueError unless `target` (a game's class or a function) takes every one of the options."""
    if dataclasses.is_dataclass(target):
        names = [field.name for field in dataclasses.fields(target) if field.init]
    else:
        names = list(inspect.signature(target).parameters)
    allowed = [option for option in names if option not in given]
    for option in options:
        if option not in allowed:
            expected = expected_names(option, allowed) if allowed else "none: this game has no options"
            raise ValueError(f"game {name}: option: got {option!r}, expected {expected}")


def expected_names(word: str, names: Sequence[str]) -> str:
    """Returns the names as one phrase, with the one most like `word` asked for."""
    near = difflib.get_close_matches(word.lower().replace("-", "_").replace(" ", "_"), names, n=1)
    return f"one of {', '.join(names)}" + (f" (did you mean {near[0]}?)" if near else "")
