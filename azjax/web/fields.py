"""Fields of a request's JSON object, each checked where it is read."""

import json
from typing import Any


class Refused(ValueError):
    """A request that asks for something impossible; its text is shown."""


class Fields:
    """A JSON object of a request."""

    def __init__(self, values: dict[str, Any]):
        self._values = values

    @classmethod
    def read(cls, body: bytes) -> "Fields":
        """Reads a body.

        Raises:
          Refused: it is not a JSON object.
        """
        try:
            values = json.loads(body, parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise Refused("body: expected a JSON object") from None
        if not isinstance(values, dict):
            raise Refused("body: expected a JSON object")
        return cls(values)

    def number(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """Returns a whole number from `low` to `high`."""
        value = self._values.get(name, default)
        if type(value) is not int or not low <= value <= high:
            raise Refused(f"{name}: got {_short(value)}, expected a whole number from {low} to {high}")
        return value

    def optional_number(self, name: str, low: int, high: int) -> int | None:
        """Returns a whole number, or None where there is none."""
        return None if self._values.get(name) is None else self.number(name, low, high)

    def text(self, name: str, longest: int, default: str | None = None) -> str:
        """Returns a text."""
        value = self._values.get(name, default)
        if not isinstance(value, str) or len(value) > longest:
            raise Refused(f"{name}: got {_short(value)}, expected a text of at most {longest} characters")
        return value

    def one_of(self, name: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """Returns one of the words allowed."""
        value = self.text(name, 100, default)
        if value not in allowed:
            raise Refused(f"{name}: got {_short(value)}, expected one of {', '.join(allowed)}")
        return value

    def inside(self, name: str) -> "Fields":
        """Returns an object within this one."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise Refused(f"{name}: got {_short(value)}, expected an object")
        return Fields(value)

    def texts(self, name: str, most: int, longest: int) -> list[str]:
        """Returns a list of texts."""
        value = self._values.get(name)
        if not isinstance(value, list) or len(value) > most:
            raise Refused(f"{name}: got {_short(value)}, expected a list of at most {most}")
        return [Fields({name: item}).text(name, longest) for item in value]


def _no_number(word: str) -> None:
    raise ValueError(f"got {word}")


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
