"""From the words of a command line to a command, and to the configuration of a run.

tyro reads the values and prints the help; what it refuses becomes one line. Unknown options are refused before it is
asked, because it sees a run's fields only when the preset they start from is known.
"""

import contextlib
import dataclasses
import difflib
import functools
import io
import re
import types
import typing
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import tyro
from tyro.conf import Positional, Suppress

from azjax.cli.options import COMMANDS, Command, Plan, RunOptions, Train
from azjax.config import RunConfig
from azjax.presets import preset

T = TypeVar("T")
Arity = Literal["flag", "switch", "one", "many"]
"""Values after an option: none; true, false or none; one; all words up to the next option."""

_NUMBER = re.compile(r"-\.?\d")
_POSITIONAL = typing.get_args(Positional[int])[1]


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """A command, and the options that set fields of a run's configuration."""

    command: Command
    settings: tuple[str, ...] = ()  # as tyro takes them, names checked and values not
    words: tuple[str, ...] = ()  # all of them, as they were given


@dataclass(frozen=True, kw_only=True)
class _Settings(RunConfig):
    """A run's configuration without the two fields that have words of their own."""

    game: Suppress[str]
    preset: Suppress[str]


def parse(argv: Sequence[str]) -> CommandLine | None:
    """Reads a command line.

    Returns:
      The command; None when help was asked for and printed.

    Raises:
      ValueError: one line: an unknown command or option, a word too many or too few, a value of the wrong kind.
    """
    name, *tokens = argv or [""]
    if name in ("-h", "--help", "help"):
        print(_overview())
        return None
    if name not in COMMANDS:
        got = repr(name) if name else "no command"
        raise ValueError(f"got {got}, expected one of {', '.join(COMMANDS)}{_near(name, COMMANDS)} (azjax --help)")
    cls = COMMANDS[name]
    if "-h" in tokens or "--help" in tokens:
        _print_help(name, cls, [token for token in tokens if token not in ("-h", "--help")])
        return None
    try:
        own, settings = _sorted(cls, tokens)
        return CommandLine(command=_read(cls, own), settings=tuple(settings), words=tuple(argv))
    except ValueError as error:
        raise ValueError(f"{name}: {error} (azjax {name} --help)") from None


def configure(base: RunConfig, settings: Sequence[str]) -> RunConfig:
    """Returns `base` with the fields that `settings` names replaced.

    Raises:
      ValueError: one line: a value of the wrong kind, or one that the configuration refuses.
    """
    default = _Settings(**{field.name: getattr(base, field.name) for field in dataclasses.fields(base)})
    changed = _read(_Settings, settings, default=default)
    return RunConfig(**{field.name: getattr(changed, field.name) for field in dataclasses.fields(base)})


def _sorted(cls: type[Command], tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the words of the command itself, and those that set fields of a run."""
    own_names = _options(cls)
    setting_names = _options(RunConfig) if issubclass(cls, RunOptions) else {}
    words: list[str] = []
    own: list[str] = []
    settings: list[str] = []
    waiting = deque(tokens)
    while waiting:
        token = waiting.popleft()
        if not _is_option(token):
            words.append(token)
            continue
        name, equals, value = token.partition("=")
        name = name.replace("_", "-")
        known = own_names | setting_names
        if name not in known:
            raise ValueError(f"got unknown option {name}{_near(name, known)}")
        target = own if name in own_names else settings
        target += _with_values(name, known[name], [value] if equals else None, waiting)
    return _counted(cls, words) + own, settings


def _with_values(name: str, arity: Arity, values: list[str] | None, waiting: deque[str]) -> list[str]:
    """Returns the option and its values as tyro takes them."""
    if arity == "flag":
        if values:
            raise ValueError(f"{name}: got {values[0]!r}, expected no value")
        return [name]
    most = 1 if arity in ("one", "switch") else len(waiting)
    if values is None:
        values = []
        while waiting and len(values) < most and not _is_option(waiting[0]):
            if arity == "switch" and waiting[0].lower() not in ("true", "false"):
                break
            values.append(waiting.popleft())
    if arity == "switch":
        word = values[0].lower() if values else "true"
        if word not in ("true", "false"):
            raise ValueError(f"{name}: got {values[0]!r}, expected true or false")
        section, dot, field = name.rpartition(".")
        return [name if word == "true" else f"{section}{dot}no-{field}"]
    if not values:
        raise ValueError(f"{name}: got no value, expected one")
    if "" in values:
        raise ValueError(f"{name}: got '', expected a value")
    return [f"{name}={values[0]}"] if arity == "one" else [name, *values]


def _counted(cls: type[Command], words: list[str]) -> list[str]:
    """Returns the words, which are as many as the command takes."""
    hints = typing.get_type_hints(cls, include_extras=True)
    places = [
        field for field in dataclasses.fields(cls) if _POSITIONAL in getattr(hints[field.name], "__metadata__", ())
    ]
    needed = [field.name.upper() for field in places if field.default is dataclasses.MISSING]
    if len(words) < len(needed):
        raise ValueError(f"got no {needed[len(words)]}, expected {' '.join(needed)}")
    if len(words) > len(places) and not any(_arity(typing.get_type_hints(cls)[p.name]) == "many" for p in places):
        most = f"{len(places)} word{'s' * (len(places) != 1)} at most"
        raise ValueError(f"got {words[len(places)]!r} after the last word, expected {most}")
    return words


@functools.cache
def _options(cls: type, prefix: str = "--") -> dict[str, Arity]:
    """Returns the options that set fields of `cls`: of a run's configuration, also those of its sections."""
    options: dict[str, Arity] = {}
    for name, hint in typing.get_type_hints(cls, include_extras=True).items():
        if _POSITIONAL in getattr(hint, "__metadata__", ()) or (cls is RunConfig and name in ("game", "preset")):
            continue
        plain = typing.get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
        word = prefix + name.replace("_", "-")
        if dataclasses.is_dataclass(plain):
            options |= _options(plain, f"{word}.")
        else:
            options[word] = "switch" if plain is bool and cls not in COMMANDS.values() else _arity(plain)
    return options


def _arity(hint: Any) -> Arity:
    if hint is bool:
        return "flag"
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return "many" if any(typing.get_origin(part) is tuple for part in parts) else "one"


def _is_option(token: str) -> bool:
    return token.startswith("-") and not _NUMBER.match(token)


def _near(name: str, names: Iterable[str]) -> str:
    """Returns "; did you mean NAME?", or nothing when no name is like it."""
    names = list(names)
    ends = [known for known in names if known.endswith("." + name.lstrip("-"))]
    near = ends or difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _read(cls: type[T], args: Sequence[str], default: T | None = None) -> T:
    """Reads options with tyro, whose boxed errors become one line."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            if default is None:
                return tyro.cli(cls, prog="azjax", args=list(args))
            return tyro.cli(cls, prog="azjax", args=list(args), default=default)
    except SystemExit:
        raise ValueError(_one_line(said.getvalue())) from None


def _one_line(box: str) -> str:
    """Returns the message in tyro's box of an error, whose first line is the title."""
    rows = [row.strip(" │") for row in box.splitlines()[1:] if not row.startswith("╰")]
    text = " ".join(row for row in rows if row.strip("─-"))
    text, _, described = text.partition("For full helptext")[0].partition("Argument helptext:")
    if refused := re.match(r"Error parsing (\S+): (.*)", text.strip()):
        where, why = refused.groups()
        shown = described.strip().partition(" ")[2]  # without the option's name
        kind = next((words for name, words in _KINDS.items() if shown.startswith(f"{name} ")), None)
        values = re.findall(r"'([^']*)'", why)
        if kind and values:
            return f"{where}: got {values[0]!r}, expected {kind}"
        text = f"{where}: {why}" if where.startswith("--") else why  # others name the field themselves
    if missing := re.match(r"Missing from azjax: ((--\S+) \S+)", text):
        return f"got no {missing[2]}, expected {missing[1]}"
    choices = re.match(r"invalid choice '(.*)' for argument '(.*)'. Expected one of \((.*?),?\)", text)
    if choices:
        value, where, allowed = choices.groups()
        names = re.findall(r"'(.*?)'", allowed)
        text = f"{where}: got {value!r}, expected one of {', '.join(names)}{_near(value, names)}"
    return text.strip() or "the command line could not be read"


_KINDS = {
    "INT": "a whole number",
    "FLOAT": "a number",
    "{None}|INT": "None or a whole number",
    "{None}|FLOAT": "None or a number",
    "[INT [INT ...]]": "whole numbers",
}
"""What tyro calls a value, and what people do."""


def _overview() -> str:
    lines = [f"  {name:<8}{(cls.__doc__ or '').splitlines()[0]}" for name, cls in COMMANDS.items()]
    return "\n".join(
        [
            "usage: azjax COMMAND ...",
            "",
            "AlphaZero in JAX: train an agent by self-play, measure it, play against it.",
            "",
            *lines,
            "",
            "azjax COMMAND --help tells a command's words and options. First: azjax train crosshair",
        ]
    )


def _print_help(name: str, cls: type[Command], tokens: Sequence[str]) -> None:
    if not issubclass(cls, (Train, Plan)):
        with contextlib.suppress(SystemExit):
            tyro.cli(cls, prog=f"azjax {name}", args=["--help"])
        return
    start = _preset_of(cls, tokens)
    text = f"{cls.__doc__}\n\nDefaults are those of the preset {start.preset} for {start.game}."
    described = dataclass(frozen=True, kw_only=True)(type(cls.__name__, (cls, RunConfig), {"__doc__": text}))
    fields = {field.name: getattr(start, field.name) for field in dataclasses.fields(start)}
    with contextlib.suppress(SystemExit):
        default = described(**fields | {"game": tyro.MISSING})
        tyro.cli(described, prog=f"azjax {name}", args=["--help"], default=default)


def _preset_of(cls: type[Train | Plan], tokens: Sequence[str]) -> RunConfig:
    """Returns the preset that words name; the first that a user meets where they name none, as help must answer."""
    try:
        options = _read(cls, _sorted(cls, tokens)[0])
        return preset(options.preset or "quick", options.game)
    except ValueError:
        return preset("quick", "crosshair", 49)  # its plies; JAX would be asked for them
