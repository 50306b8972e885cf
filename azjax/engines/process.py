"""An engine's process: lines in, lines out, each within a time, and no way for it to harm the program that uses it.

Nothing is read while no answer is waited for: an engine that talks unasked fills its pipe and waits.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence

MOST_BYTES = 16 << 20
"""Of one answer; Stockfish at full output writes less than 1 MB a minute."""
LONGEST_LINE = 1 << 20

_CHUNK = 1 << 16
_LAST_WORDS = 2000  # bytes kept of what it said on stderr
_GRACE = 0.5  # seconds for a process to end by itself


class EngineFailure(Exception):
    """An engine broke its protocol, its time or itself; the game it was playing is lost.

    `end` is how a record of that game says so: "forfeit" or "time".
    """

    def __init__(self, reason: str, end: str = "forfeit"):
        super().__init__(reason)
        self.reason, self.end = reason, end


class EngineProcess:
    """A program that is told lines and answers with lines.

    `send` and `read_line` raise EngineFailure when it is gone, is late or writes too much; then it has to be closed.
    """

    def __init__(self, command: Sequence[str]):
        """Starts the program, in a process group of its own.

        Raises:
          ValueError: it cannot be started.
        """
        try:
            self._popen = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ValueError(f"engine: cannot start {command[0]!r}: {error}") from None
        self._stdin, self._stdout, self._stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        assert self._stdin is not None and self._stdout is not None and self._stderr is not None
        self._sources = [self._stdout.fileno(), self._stderr.fileno()]
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._lines: deque[str] = deque()
        self._begun = b""  # a line whose end has not come
        self._last_words = b""
        self._bytes = 0  # read since the last `send`

    @property
    def pid(self) -> int:
        """The program's process, which leads its group."""
        return self._popen.pid

    def send(self, line: str, seconds: float = 5.0) -> None:
        """Writes a line, waiting `seconds` at most for the program to take it."""
        assert self._stdin is not None
        deadline, self._bytes = time.monotonic() + seconds, 0
        data = f"{line}\n".encode(errors="replace")
        while data:
            # What it says is read meanwhile: it may listen only when that has gone.
            if self._wait(deadline, f"took no input for {seconds:g} s", self._stdin.fileno()):
                try:
                    data = data[os.write(self._stdin.fileno(), data) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    raise self._gone() from None

    def read_line(self, deadline: float, late: str) -> str:
        """Returns the next line without its end.

        Args:
          deadline: of time.monotonic.
          late: what to say when no line has come by then.
        """
        while not self._lines:
            self._wait(deadline, late)
        return self._lines.popleft()

    def close(self, farewell: str | None = None) -> None:
        """Ends the program and all that it started, by the line `farewell` or else by force; may be called twice."""
        if self._popen.returncode is None and farewell is not None:
            with contextlib.suppress(EngineFailure, subprocess.TimeoutExpired):
                self.send(farewell, _GRACE)
                self._popen.wait(_GRACE)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody of the group is left
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        for pipe in (self._stdin, self._stdout, self._stderr):
            if pipe is not None:
                pipe.close()

    def _wait(self, deadline: float, late: str, writable: int | None = None) -> bool:
        """Waits until something came or `writable` can be written to, and takes in what came.

        Returns:
          Whether `writable` can be written to.
        """
        left = deadline - time.monotonic()
        writers = [] if writable is None else [writable]
        came, ready, _ = select.select(self._sources, writers, [], max(left, 0.0))
        if not came and not ready:
            raise EngineFailure(late, "time")
        for source in came:
            try:
                data = os.read(source, _CHUNK)
            except BlockingIOError:
                continue
            if source == self._sources[0]:
                if not data:
                    raise self._gone()
                self._take_in(data)
            elif data:
                self._last_words = (self._last_words + data)[-_LAST_WORDS:]
            else:
                self._sources.remove(source)  # it closed stderr
        return bool(ready)

    def _take_in(self, data: bytes) -> None:
        self._bytes += len(data)
        *lines, self._begun = (self._begun + data).split(b"\n")
        if len(self._begun) > LONGEST_LINE or any(len(line) > LONGEST_LINE for line in lines):
            raise EngineFailure(f"wrote a line of more than {LONGEST_LINE >> 20} MiB")
        if self._bytes > MOST_BYTES:
            raise EngineFailure(f"wrote more than {MOST_BYTES >> 20} MiB as one answer")
        self._lines += [line.removesuffix(b"\r").decode(errors="replace") for line in lines]

    def _gone(self) -> EngineFailure:
        """Returns what to raise when the program has closed its pipes."""
        try:
            status = self._popen.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return EngineFailure("closed its output")
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        with contextlib.suppress(BlockingIOError):
            if self._stderr is not None and self._stderr.fileno() in self._sources:
                self._last_words += os.read(self._stderr.fileno(), _CHUNK)
        words = self._last_words.decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(words) if line.strip()), "")
        return EngineFailure(f"ended with {how}" + (f": {short(last)}" if last else ""))


def short(text: str, most: int = 80) -> str:
    """Returns what an engine wrote as one line that can be shown and recorded."""
    line = "".join(char if char.isprintable() else "?" for char in text)
    return line if len(line) <= most else f"{line[: most - 3]}..."
