"""A server on its input and output: reads lines, lets it think between them, and sees that `quit` is heard."""

import os
import queue
import sys
import threading
import time
from typing import TextIO

from azjax.servers.server import LONGEST_LINE, Server

_IDLE_SECONDS = 0.2  # without a line, after which the agent is loaded
_ALONE_SECONDS = 0.1  # between two lines that were not piped in together
_QUIT_SECONDS = 0.35  # for a server to end by itself


def serve(server: Server, source: TextIO) -> None:
    """Runs a server until its conversation ends, by a line or by the end of the input."""
    inbox: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(server, source, inbox), daemon=True).start()
    warm = ended = False
    while not server.over:
        at_work = server.thinking and not server.waiting
        try:
            line = "" if ended else inbox.get_nowait() if at_work else inbox.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            if at_work:
                server.work()
            elif not warm:
                warm = True
                server.warm_up()
            continue
        if ended:
            server.work()
        elif line is None:
            ended = True
            server.end_of_input()
        else:
            server.hear(line)


def write_line(line: str) -> None:
    """Writes a line to stdout at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _read(server: Server, source: TextIO, inbox: "queue.SimpleQueue[str | None]") -> None:
    """Reads lines, None at the end; sees that the line which ends the conversation does so."""
    last, no_more = time.monotonic(), threading.Event()
    while line := source.readline(LONGEST_LINE + 1):
        rest = line
        while not rest.endswith("\n") and (rest := source.readline(LONGEST_LINE)):
            pass  # of a line that is too long, the beginning is enough
        now = time.monotonic()
        alone, last = now - last > _ALONE_SECONDS, now
        inbox.put(line)
        words = server.last_words(line)
        if words is not None:
            threading.Thread(target=_see_off, args=(server, words, alone, no_more), daemon=True).start()
    no_more.set()
    inbox.put(None)


def _see_off(server: Server, words: str, alone: bool, no_more: threading.Event) -> None:
    """Ends the process if the server does not in time.

    The line may have come while the agent is loaded or compiled, which takes seconds and cannot be interrupted. What
    was piped in as a whole, with the end of the input after that line, is answered as a whole.
    """
    time.sleep(_QUIT_SECONDS)
    if not server.over and (alone or not no_more.is_set()):
        os.write(sys.stdout.fileno(), words.encode())
        os._exit(0)
