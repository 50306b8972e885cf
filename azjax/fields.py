"""What the fields of a configuration may hold: a value of the field's type, and a number within the field's range."""

import functools
import math
import typing
from dataclasses import dataclass
from typing import Any

MOST_WHOLE = 2**31 - 1
"""Programs count in int32."""
MOST_NUMBER = 3.4e38
"""Programs compute in float32, where a larger number is infinity."""


@dataclass(frozen=True)
class Range:
    """Numbers from `least` to `most`, these included unless `above` or `below` says otherwise."""

    least: float
    most: float = math.inf
    above: bool = False
    below: bool = False

    def __contains__(self, value: float) -> bool:
        enough = value > self.least if self.above else value >= self.least
        return enough and (value < self.most if self.below else value <= self.most)

    def __str__(self) -> str:
        if self.most == math.inf:
            return f"a number above {self.least}" if self.above else f"at least {self.least}"
        return f"a number from {'above ' * self.above}{self.least} to {'below ' * self.below}{self.most}"


FROM_0 = Range(0)
FROM_1 = Range(1)
ABOVE_0 = Range(0, above=True)
SHARE = Range(0, 1)


def check_fields(record: Any, section: str, **ranges: Range) -> None:
    """Checks every field of a dataclass's record.

    Args:
      record: whose fields are checked.
      section: what their names begin with in messages, such as "search.".
      ranges: one for each field that is a number; a number without one is a KeyError.

    Raises:
      ValueError: one line: the field, what it got, what was expected.
    """
    for name, kind in _kinds(type(record)).items():
        where, value = f"{section}{name}", getattr(record, name)
        if not _is_a(value, kind):
            raise ValueError(f"{where}: got {value!r}, expected {_described(kind)}")
        if type(value) in (int, float):
            _check_number(where, value, float in (kind, *typing.get_args(kind)), ranges[name])


def _check_number(where: str, value: float, real: bool, allowed: Range) -> None:
    if real and not abs(value) <= MOST_NUMBER:
        raise ValueError(f"{where}: got {value!r}, expected a finite number, at most {MOST_NUMBER}")
    if value not in allowed:
        raise ValueError(f"{where}: got {value!r}, expected {allowed}")
    if not real and allowed.most == math.inf and value > MOST_WHOLE:
        raise ValueError(f"{where}: got {value!r}, expected at most {MOST_WHOLE}")


@functools.cache
def _kinds(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _is_a(value: Any, kind: Any) -> bool:
    """Returns whether a value is of a field's type: True is no number, 2.0 no whole one, and 2 is a number."""
    parts = typing.get_args(kind)
    if typing.get_origin(kind) is typing.Literal:
        return type(value) is str and value in parts
    if typing.get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(_is_a(part, parts[0]) for part in value)
    if parts:
        return any(_is_a(value, part) for part in parts)
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind if kind in _WORDS else isinstance(value, kind)


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", type(None): "None"}


def _described(kind: Any) -> str:
    parts = typing.get_args(kind)
    if typing.get_origin(kind) is typing.Literal:
        return f"one of {', '.join(parts)}"
    if typing.get_origin(kind) is tuple:
        return f"a list of {'whole numbers' if parts[0] is int else 'words'}"
    return " or ".join(_WORDS.get(part, "an object of fields") for part in parts or (kind,))
