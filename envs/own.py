"""Games of one's own: a file or a module that holds a Game."""

import contextlib
import dataclasses
import importlib
import importlib.util
import inspect
import os
import sys
import types
import zlib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from envs.core import Game

_METHODS = (
    *("init", "step", "legal_action_mask", "legal_actions", "to_move", "terminated", "truncated", "returns"),
    *("observe", "policy_index"),
)
_CONTRACT = (
    *("id", "num_actions", "max_legal_actions", "max_plies", "observation_shape", "has_chance", "symmetries"),
    *_METHODS,
)


def load(where: str, name: str, options: dict[str, Any]) -> Game:
    """Returns the game that attribute `name` of a file or module holds.

    Args:
      where: a Python file's path (it ends in .py) or a module's dotted name, also one in the working directory.
      name: the attribute: a Game, or a Game's class, which is made with the options.
      options: replace the fields of a Game that is a dataclass.

    Raises:
      ValueError: one line: no such file, module or attribute, loading failed, not a Game, or wrong options.
    """
    reference = f"{where}:{name}"
    module = _from_file(Path(where)) if where.endswith(".py") else _from_name(where)
    if not hasattr(module, name):
        games = [key for key, value in vars(module).items() if isinstance(value, Game)]
        holds = f"the name of a Game, such as {games[0]}" if games else "the name of a Game, and it holds none"
        raise ValueError(f"game {reference}: no such attribute: got {name!r}, expected {holds}")
    game = getattr(module, name)
    if isinstance(game, type):
        # Before it is made: a class that is no game may do anything when it is called.
        _refuse_missing(reference, [member for member in _METHODS if not hasattr(game, member)])
        _refuse_missing(reference, sorted(getattr(game, "__abstractmethods__", ())))
        game = _made(reference, game, options)
    elif options:
        if not dataclasses.is_dataclass(game):
            raise ValueError(f"game {reference}: options: got {', '.join(options)}, expected none: it is no dataclass")
        # max_plies of a built game is a number: of an option not given, the class makes its own default again.
        kept = {
            field.name: getattr(game, field.name) for field in dataclasses.fields(game) if field.name != "max_plies"
        }
        game = _made(reference, type(game), kept | options)
    _refuse_missing(reference, [member for member in _CONTRACT if not hasattr(game, member)])
    return game


def is_loaded(where: str) -> bool:
    """Returns whether the file or module has been loaded already, so that its games can be had without running it."""
    path = Path(where).expanduser().resolve()
    return (_module_name(path) if where.endswith(".py") and path.is_file() else where) in sys.modules


def _module_name(path: Path) -> str:
    """Returns one name for each version of a file: games loaded twice are equal, an edited file is read again."""
    stat = path.stat()
    version = zlib.crc32(f"{path}:{stat.st_mtime_ns}:{stat.st_size}".encode())
    return f"_own_game_{path.stem}_{version:08x}"


def _from_file(path: Path) -> types.ModuleType:
    path = path.expanduser().resolve()
    if not path.is_file():
        raise ValueError(f"game: no such file: got {path}, expected a Python file that holds a Game")
    module_name = _module_name(path)
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None  # always so for a name that ends in .py
    loader = spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look their module up while they are made
    try:
        _loaded(str(path), str(path.parent), lambda: loader.exec_module(module))
    except ValueError:
        del sys.modules[module_name]
        raise
    return module


def _from_name(name: str) -> types.ModuleType:
    def find() -> types.ModuleType:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
                raise ValueError(
                    f"game: no such module: got {name!r}, expected a module, FILE.py:NAME or one of azjax's own games"
                ) from None
            raise

    return _loaded(name, os.getcwd(), find)


@contextlib.contextmanager
def importing_from(folder: str) -> Generator[None]:
    """Puts a folder last on the import path, so that what is loaded may import what lies beside it."""
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _loaded(where: str, folder: str, run: Callable[[], Any]) -> Any:
    try:
        with importing_from(folder):
            return run()
    except (Exception, SystemExit) as error:
        if isinstance(error, ValueError) and str(error).startswith("game: "):
            raise
        raise ValueError(f"game: {where} fails to load: {fault(error, where)}") from error


def _made(reference: str, game_class: type, options: dict[str, Any]) -> Any:
    names = list(inspect.signature(game_class).parameters)
    for option in options:
        if option not in names:
            expected = f"one of {', '.join(names)}" if names else "none: this game has no options"
            raise ValueError(f"game {reference}: option: got {option!r}, expected {expected}")
    try:
        return game_class(**options)
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"game {reference}: making it fails: {_cause(error)}") from error


def _refuse_missing(reference: str, missing: list[str]) -> None:
    if missing:
        raise ValueError(f"game {reference}: not a Game: it lacks {', '.join(missing)} (see envs.core.Game)")


def fault(error: BaseException, where: str) -> str:
    """Returns what went wrong in one line, with the last line of the Python file `where` that ran."""
    return f"{_cause(error)}{_line(error, where)}"


def _cause(error: BaseException) -> str:
    first_line = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__


def _line(error: BaseException, where: str) -> str:
    """Returns " (line N)", the last line of the user's file that ran, where there is one."""
    if isinstance(error, SyntaxError):
        return ""  # its message names the line
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == where:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" (line {line})" if line else ""
