"""How the processes of a run find one another, and a launcher of several on this machine. Imports no JAX.

--hosts auto                  Cloud TPU, Slurm, Open MPI, Kubernetes: JAX asks the cluster
--hosts 10.0.0.2:1234,0/4     process 0 of 4; process 0 listens at that address
--hosts local:2               starts two processes here, on CPU, with one run between them
"""

import contextlib
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

PEER_SECONDS = 15.0
"""Processes that have lost a peer end by themselves within this time; afterwards the launcher ends them."""

NAMES: dict[int, str] = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
"""The signals that stop a run once its state is saved. A terminal that is closed, its connection too, sends SIGHUP."""

NOTHING_SAVED = "stopped before the first step; nothing was to be saved"

_ADDRESS = re.compile(
    r"(?P<address>([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):(?P<port>[0-9]{1,5})),(?P<index>[0-9]{1,6})/(?P<count>[0-9]{1,6})"
)


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The word of `--hosts`, taken apart."""

    local: int = 0  # processes to start here; 0: this is one of them
    address: str | None = None  # of process 0; None: the cluster knows
    index: int | None = None
    count: int | None = None


def parse_hosts(word: str) -> Hosts:
    """Takes the word of `--hosts` apart.

    Raises:
      ValueError: it is none of the three forms.
    """
    if word == "auto":
        return Hosts()
    kind, _, number = word.partition(":")
    if kind == "local" and re.fullmatch("[0-9]{1,2}", number) and 2 <= int(number) <= 64:
        return Hosts(local=int(number))
    match = _ADDRESS.fullmatch(word)
    if match and int(match["index"]) < int(match["count"]) <= 1 << 16 and 0 < int(match["port"]) < 1 << 16:
        return Hosts(address=match["address"], index=int(match["index"]), count=int(match["count"]))
    raise ValueError(
        f"--hosts: got {word!r}, expected auto, local:N with N from 2 to 64, or ADDRESS:PORT,INDEX/COUNT "
        "with PORT from 1 to 65535"
    )


def launch(count: int, words: Sequence[str]) -> int:
    """Runs `azjax WORDS` in `count` processes of this machine that train together; their `--hosts` is replaced.

    A signal is handed on to the first process, which tells the others; a second one ends them all at once. When one
    process ends with a failure the others are given PEER_SECONDS to notice; when the first could not be told yet, none.

    Returns:
      0 when all have ended well, 130 or 143 after a signal, else the status of the first that failed.
    """
    address = f"127.0.0.1:{_free_port()}"
    # XLA's pool needs more threads than a process has devices, or an all-reduce may wait for ever.
    environment = {"JAX_PLATFORMS": "cpu", "PJRT_NPROC": "4"} | dict(os.environ)
    processes: list[subprocess.Popen] = []
    try:
        with _handing_on(processes) as caught:
            for index in range(count):
                command = [sys.executable, "-m", "azjax", *_with_hosts(words, f"{address},{index}/{count}")]
                # A session of its own: a terminal's Ctrl-C comes through here alone, not twice.
                processes.append(subprocess.Popen(command, env=environment, start_new_session=True))
            return _wait(processes, caught)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def stopping_signals() -> list[int]:
    """Returns the signals that are to stop a run: SIGHUP is not among them where `nohup` has it ignored."""
    return [number for number in NAMES if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]


def leave_terminal() -> None:
    """After SIGHUP: what was to be written to the terminal, where every write now fails, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(nowhere, stream)


def _wait(processes: Sequence[subprocess.Popen], caught: Sequence[int]) -> int:
    failed, since = 0, 0.0
    if caught:  # while the processes were being started
        _say(NOTHING_SAVED)
        return 128 + caught[0]
    while any(process.poll() is None for process in processes):
        time.sleep(0.1)
        bad = [(index, code) for index, process in enumerate(processes) if (code := process.poll())]
        if bad and not since:
            (failed, code), since = bad[0], time.monotonic()
            if caught and -code in (signal.SIGTERM, signal.SIGHUP):  # it had no handlers yet
                _say(NOTHING_SAVED)
                break
            if not caught:
                how = f"signal {-code}" if code < 0 else f"status {code}"
                _say(f"process {failed} of {len(processes)} ended with {how}")
        if since and time.monotonic() - since > PEER_SECONDS:
            break
    codes = [process.poll() for process in processes]
    if caught:
        return 128 + caught[0]
    first = codes[failed] if since else next((code for code in codes if code), 0)
    return 1 if first is not None and first < 0 else int(first or 0)


@contextlib.contextmanager
def _handing_on(processes: Sequence[subprocess.Popen]) -> Generator[list[int]]:
    caught: list[int] = []

    def handle(number: int, frame: Any) -> None:
        del frame
        if number == signal.SIGHUP:
            leave_terminal()
        if caught:
            for process in processes:
                process.kill()
            _say("stopped at once by a second signal")
        else:
            for process in processes[:1]:
                process.send_signal(signal.SIGHUP if number == signal.SIGHUP else signal.SIGTERM)
            what = "the step or ply in progress is done (before the first step: once it is compiled)"
            _say(f"{NAMES[number]}: the run saves and stops when {what}; a second signal ends it at once")
        caught.append(number)

    old = {number: signal.signal(number, handle) for number in stopping_signals()}
    try:
        yield caught
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _say(line: str) -> None:
    os.write(2, f"azjax: {line}\n".encode())  # not print, whose lock a signal may find taken


def _with_hosts(words: Sequence[str], hosts: str) -> list[str]:
    """Returns the words with another value of `--hosts`."""
    kept, skip = [], False
    for word in words:
        if skip or word.startswith("--hosts"):
            skip = not skip and word == "--hosts"
            continue
        kept.append(word)
    return [*kept, "--hosts", hosts]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
