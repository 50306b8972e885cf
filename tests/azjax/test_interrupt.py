"""Signals: noticed in the middle of what can be done again, and answered within seconds."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time

import pytest

from azjax import interrupt
from azjax.checkpoint import Checkpoints
from azjax.interrupt import Interrupted, Signals


def to_self(number, after=0.0):
    threading.Timer(after, os.kill, (os.getpid(), number)).start()
    if not after:
        time.sleep(0.05)


@pytest.fixture
def hangup():
    """SIGHUP is not ignored, as it is where the tests were started with nohup."""
    old = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, old)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_kept_and_the_old_handler_comes_back(number, hangup):
    before = signal.getsignal(number)
    with Signals() as signals:
        assert signals.caught() == 0
        signals.check(1, 2)
        to_self(number)
        assert signals.caught() == number
        with pytest.raises(Interrupted):
            signals.check(1, 2)
    assert signal.getsignal(number) is before


def test_work_is_left_when_a_signal_comes_and_its_result_is_not_waited_for():
    release = threading.Event()
    with Signals() as signals:
        to_self(signal.SIGTERM, after=0.2)
        started = time.monotonic()
        with pytest.raises(Interrupted):
            signals.interruptible(lambda: release.wait(60))
        assert time.monotonic() - started < 10
        left = [thread for thread in threading.enumerate() if thread.name == interrupt.THREAD_NAME]
        assert len(left) == 1 and left[0].daemon
        release.set()
        left[0].join(10)


def test_work_that_looks_ends_by_itself():
    with Signals() as signals:
        to_self(signal.SIGTERM, after=0.2)

        def work():
            while True:
                time.sleep(0.01)
                signals.check()

        with pytest.raises(Interrupted):
            signals.interruptible(work)
    assert not [thread for thread in threading.enumerate() if thread.name == interrupt.THREAD_NAME]


def test_work_that_is_done_gives_its_result_and_its_errors():
    with Signals() as signals:
        assert signals.interruptible(lambda: 7) == 7
        assert signals.interruptible(lambda: None) is None
        with pytest.raises(ZeroDivisionError):
            signals.interruptible(lambda: 1 // 0)


ENDS = """
import sys, time
from azjax.interrupt import Signals
with Signals() as signals:
    signals.nothing_to_save = sys.argv[1]
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("first", "number", "status", "said"),
    [
        ("", signal.SIGINT, 130, "stopped at once by a second signal"),
        ("nothing was to be saved", signal.SIGTERM, 143, "nothing was to be saved"),
    ],
)
def test_the_second_signal_ends_at_once_and_the_first_if_nothing_is_to_be_saved(first, number, status, said):
    process = subprocess.Popen(
        [sys.executable, "-c", ENDS, first], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    with contextlib.closing(process.stdout), contextlib.closing(process.stderr):
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        if not first:
            time.sleep(0.5)
            assert process.poll() is None
            process.send_signal(number)
        assert process.wait(timeout=10) == status
        assert process.stderr.read() == f"azjax: {said}\n"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("during", ["training", "a match"])
def test_a_run_that_is_signalled_saves_within_15_seconds_and_says_how_to_go_on(tmp_path, number, status, during):
    directory = tmp_path / "run"
    command = [sys.executable, "-m", "azjax", "train", "tic_tac_toe", "--preset", "smoke", "--out", str(directory)]
    command += ["--search.simulations", "4", "--steps", "100000", "--checkpoint.every", "100000"]
    if during == "a match":  # of some minutes
        command += ["--evaluation.every", "3", "--evaluation.anchors", "uct:3000", "--evaluation.games", "100"]
    said = tmp_path / "said"
    with said.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        deadline = time.monotonic() + 300
        wanted = "playing uct:3000" if during == "a match" else "step "
        while wanted not in said.read_text() and time.monotonic() < deadline:
            assert process.poll() is None, said.read_text()
            time.sleep(0.1)
        started = time.monotonic()
        process.send_signal(number)
        assert process.wait(timeout=60) == status, said.read_text()
        took = time.monotonic() - started
    assert took < 15
    last = said.read_text().splitlines()[-1]
    (step,) = Checkpoints(directory / "checkpoints").saved_steps()
    name = {130: "Ctrl-C", 143: "SIGTERM"}[status]
    assert last == f"{name}: step {step} is saved; resume with: azjax train tic_tac_toe --resume {directory}"
    assert step % 3 == 0 or during == "training"  # a match is played after every third


AT_TERMINAL = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may have been started with nohup
terminal = os.open(sys.argv[1], os.O_RDWR)  # a session's leader is told of the end of the first that it opens
for stream in (0, 1, 2):
    os.dup2(terminal, stream)
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [(), ("--hosts", "local:2")], ids=["one process", "two"])
def test_a_run_whose_terminal_is_closed_saves_its_newest_step(tmp_path, hosts):
    directory = tmp_path / "run"
    command = [sys.executable, "-m", "azjax", "train", "tic_tac_toe", "--preset", "smoke", "--out", str(directory)]
    command += ["--search.simulations", "4", "--steps", "100000", "--checkpoint.every", "100000", *hosts]
    environment = {name: value for name, value in os.environ.items() if name != "PJRT_NPROC"}
    terminal, its_end = pty.openpty()
    at_terminal = [sys.executable, "-c", AT_TERMINAL, os.ttyname(its_end), *command]
    process = subprocess.Popen(at_terminal, env=environment, start_new_session=True)
    said, deadline = b"", time.monotonic() + 300
    while b"step " not in said and time.monotonic() < deadline:
        said += os.read(terminal, 4096)
    os.close(its_end)
    time.sleep(0.5)
    os.close(terminal)  # as a closed window or a lost connection does
    assert process.wait(timeout=60) == 129, said.decode()
    rows = (directory / "metrics.jsonl").read_text().splitlines()
    assert Checkpoints(directory / "checkpoints").saved_steps() == [json.loads(rows[-1])["step"]]


def test_nohup_keeps_a_run_from_being_stopped_with_its_terminal():
    process = subprocess.Popen(["nohup", sys.executable, "-c", ENDS, ""], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with contextlib.closing(process.stdout):
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert process.poll() is None
        process.kill()
        process.wait()
