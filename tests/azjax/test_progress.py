"""What training shows: lines of a log that fit 80 columns, and a table on a terminal."""

import io
import time

from azjax import progress as shown
from azjax.progress import Progress, bar, count_of, wrapped

FIELDS = {
    "step": "120/320",
    "games": "12.3k",
    "plies/s": "123.4k",
    "sims/s": "7.9M",
    "play/learn/eval s": "1234/567/89",
    "loss": "3.142 (policy 2.718, value 0.424)",
    "rating": "62% [55%, 69%] against run:runs/crosshair-quick@320",
    "left": "1:02:03",
}


def test_a_log_fits_80_columns_and_loses_nothing():
    lines = wrapped(FIELDS)
    assert max(map(len, lines)) < 80 and len(lines) == 3
    assert all(line.startswith("    ") for line in lines[1:])
    assert [part.strip() for line in lines for part in line.split(" | ")] == [f"{k} {v}" for k, v in FIELDS.items()]


def test_a_field_longer_than_a_line_stands_alone():
    assert wrapped({"a": "1", "b": "x" * 100, "c": "2"}) == ["a 1", f"    b {'x' * 100}", "    c 2"]


def heartbeats(monkeypatch, *, terminal: bool, told: bool) -> int:
    """How many are shown in a little time, in which a terminal's would be many and a file's none."""
    monkeypatch.setattr(shown, "HEARTBEAT_SECONDS", 0.1)
    file = io.StringIO()
    monkeypatch.setattr(file, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(file) as progress:
        if told:
            progress.say("a line")
        time.sleep(1.3)
    return file.getvalue().count("... starting")


def test_heartbeats_do_not_stand_between_the_lines_of_a_file(monkeypatch):
    assert heartbeats(monkeypatch, terminal=False, told=True) == 0
    assert heartbeats(monkeypatch, terminal=False, told=False) >= 1  # nothing else was said of it
    assert heartbeats(monkeypatch, terminal=True, told=True) >= 1


def test_one_is_no_plural():
    assert [count_of(number, "game") for number in (0, 1, 2)] == ["0 games", "1 game", "2 games"]


def test_the_bar():
    assert [bar(done, 8, 4) for done in (0, 2, 8, 9)] == ["╌╌╌╌", "━╌╌╌", "━━━━", "━━━━"]


def test_a_file_gets_plain_lines():
    file = io.StringIO()
    with Progress(file) as progress:
        progress.row(FIELDS)
        progress.row(FIELDS)  # too soon after the first
        progress.row(FIELDS, final=True)
    said = file.getvalue()
    assert said.count("step 120/320") == 2 and "\x1b" not in said and max(map(len, said.splitlines())) < 80


def test_a_terminal_gets_a_table_with_a_bar(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(file, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with Progress(file) as progress:
        progress.row(FIELDS)
    assert "120/320  ━━━━━━━━━╌" in file.getvalue()
