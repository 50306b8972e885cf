"""A process that is told lines: what it may do wrong, and that nothing of it is left."""

import os
import sys
import time

import pytest

from azjax.engines.process import EngineFailure, EngineProcess, short


def python(code: str) -> EngineProcess:
    return EngineProcess([sys.executable, "-S", "-E", "-u", "-c", code])


def in_seconds(seconds: float) -> float:
    return time.monotonic() + seconds


def test_lines_go_both_ways():
    echo = python("import sys\nfor line in sys.stdin: print('>', line, end='')")
    for text in ("one", "", "zwölf ♞", "x" * 200_000):
        echo.send(text)
        assert echo.read_line(in_seconds(20), "late") == f"> {text}"
    echo.close()


def test_ends_of_lines_and_bytes_that_are_no_text():
    process = python(r"import os; os.write(1, b'a\r\n\xff\n\nb\nrest')")
    assert [process.read_line(in_seconds(20), "late") for _ in range(4)] == ["a", "�", "", "b"]
    with pytest.raises(EngineFailure, match=r"^ended with exit status 0$"):  # a line without its end is none
        process.read_line(in_seconds(20), "late")
    process.close()


def test_it_may_talk_unasked_for_as_long_as_it_likes():
    process = python(
        "import sys\nfor number in range(20000): print(number)\nfor line in sys.stdin: print('heard', line)"
    )
    process.send("hello")
    for number in range(20000):
        assert process.read_line(in_seconds(20), "late") == str(number)
    assert process.read_line(in_seconds(20), "late") == "heard hello"
    process.close()


@pytest.mark.parametrize(
    ("code", "message", "end"),
    [
        ("raise SystemExit(3)", "ended with exit status 3", "forfeit"),
        ("import os; os.kill(os.getpid(), 11)", "ended with signal 11", "forfeit"),
        ("import sys; sys.exit('no weights\\n\\n')", "ended with exit status 1: no weights", "forfeit"),
        ("import os, time; os.close(1); time.sleep(99)", "closed its output", "forfeit"),
        ("import time; time.sleep(99)", "it is late", "time"),
        ("import time\nwhile True: print(end='x', flush=True); time.sleep(0.05)", "it is late", "time"),
        ("while True: print(end='x' * 9999)", "wrote a line of more than 1 MiB", "forfeit"),
    ],
)
def test_what_it_may_do_wrong(code, message, end):
    process = python(code)
    # Those that fail have long enough to do so on a busy machine.
    with pytest.raises(EngineFailure, match=f"^{message}$") as failure:
        process.read_line(in_seconds(0.5 if end == "time" else 20), "it is late")
    assert failure.value.end == end
    process.close()


def test_a_flood_is_stopped():
    process = python("while True: print('x' * 9999)")
    began = time.monotonic()
    with pytest.raises(EngineFailure, match=r"^wrote more than 16 MiB as one answer$"):
        while time.monotonic() < began + 60:
            process.read_line(in_seconds(20), "late")
    process.close()


def test_who_does_not_listen_is_late_too():
    process = python("import time; time.sleep(99)")
    with pytest.raises(EngineFailure, match=r"^took no input for 0.3 s$"):
        process.send("x" * 1_000_000, 0.3)
    process.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def test_its_children_end_with_it():
    process = python(
        "import subprocess, sys, signal\nsignal.signal(15, signal.SIG_IGN)\n"
        "print(subprocess.Popen(['sleep', '1000']).pid)\nfor line in sys.stdin: pass"
    )
    child = int(process.read_line(in_seconds(20), "late"))
    assert alive(child) and alive(process.pid)
    process.close()
    process.close()
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(child) and not alive(process.pid)


@pytest.mark.parametrize(
    ("code", "most"),
    [("input()", 20.0), ("import time\nwhile True: time.sleep(99)", 5.0)],
)
def test_a_farewell_is_not_waited_for_long(code, most):
    process = python(code)
    began = time.monotonic()
    process.close("quit")
    assert time.monotonic() - began < most and not alive(process.pid)


def test_no_such_program():
    with pytest.raises(ValueError, match=r"^engine: cannot start '/no/such/engine': .*No such file"):
        EngineProcess(["/no/such/engine"])


def test_what_it_wrote_is_shown_on_one_line():
    assert short("a\tb\x00\n") == "a?b??" and short("x" * 90) == "x" * 77 + "..."
