"""What a run shows while it runs: a live table on a terminal, plain lines elsewhere, and never silence.

A heartbeat speaks at least every ten seconds, also while XLA compiles; in a file, where it stays between the lines,
at least every half minute once there are other lines of what is being done.
"""

import sys
import threading
import time
from collections.abc import Mapping
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

HEARTBEAT_SECONDS = 8.0
FILE_HEARTBEAT_SECONDS = 28.0
LINE_SECONDS = 5.0


def duration(seconds: float) -> str:
    """Returns 1:02:03 or 2:03."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def count(number: float) -> str:
    """Returns 1.2M, 34.5k or 678."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= unit:
            return f"{number / unit:.1f}{name}"
    return f"{number:.0f}"


def count_of(number: int, noun: str) -> str:
    """Returns "1 game" or "2 games"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def wrapped(fields: Mapping[str, str], width: int = 79) -> list[str]:
    """Returns "name value | name value" in lines that a terminal of 80 columns shows whole, the later ones set in."""
    lines: list[str] = []
    for name, value in fields.items():
        field = f"{name} {value}"
        if lines and len(lines[-1]) + 3 + len(field) <= width:
            lines[-1] += f" | {field}"
        else:
            lines.append(f"    {field}" if lines else field)
    return lines


def bar(done: int, whole: int, width: int = 24) -> str:
    """Returns a bar of `width` characters, filled as far as a share of the whole is done."""
    filled = round(width * min(done / max(whole, 1), 1))
    return "━" * filled + "╌" * (width - filled)


class Progress:
    """Shows what a run is doing, or nothing if it is to be quiet; use as a context manager."""

    def __init__(self, file: TextIO | None = None, *, quiet: bool = False):
        self._console = Console(file=file or sys.stderr, highlight=False, soft_wrap=True, quiet=quiet)
        self._live: Live | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._started = self._last = time.monotonic()
        self._last_row = 0.0
        self._doing, self._told = "starting", False  # whether a line stands already of what is being done
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> "Progress":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._live is not None:
            self._live.stop()

    def say(self, line: str) -> None:
        """Prints a line that stays."""
        with self._lock:
            self._console.print(line, markup=False)
            self._last, self._told = time.monotonic(), True

    def table(self, table: Table) -> None:
        """Prints a table that stays."""
        with self._lock:
            self._console.print(table)

    def doing(self, what: str) -> None:
        """Says what the heartbeat is to report from now on."""
        if what != self._doing:
            self._doing, self._told = what, False

    def row(self, fields: Mapping[str, str], *, final: bool = False) -> None:
        """Shows the state of training; in a file, a line every few seconds and the last."""
        now = time.monotonic()
        if self._console.is_terminal:
            table = Table(show_header=False, box=None, pad_edge=False)
            for name, value in fields.items():
                done, slash, whole = value.partition("/")
                if name == "step" and slash and done.isdigit() and whole.isdigit():
                    value = f"{value}  {bar(int(done), int(whole))}"
                table.add_row(name, Text(value))
            if self._live is None:
                self._live = Live(console=self._console, auto_refresh=False)
                self._live.start()
            self._live.update(table, refresh=True)
            self._last = now
        elif final or self._last_row == 0.0 or now - self._last_row >= LINE_SECONDS:
            self._last_row = now
            for line in wrapped(fields):
                self.say(line)

    def _beat(self) -> None:
        while not self._stop.wait(0.5):
            told = self._told
            patience = FILE_HEARTBEAT_SECONDS if told and not self._console.is_terminal else HEARTBEAT_SECONDS
            if time.monotonic() - self._last >= patience:
                self.say(f"... {self._doing}, {duration(time.monotonic() - self._started)}")
                self._told = told
