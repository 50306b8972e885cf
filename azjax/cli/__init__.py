"""The command line: `azjax COMMAND ...`, also `python -m azjax`.

Words are read and configurations checked before JAX is imported, so that help and mistakes are answered at once.
Exit status: 2 for wrong input, 1 for a failure while running, 130 after Ctrl-C; each with one line on stderr.
"""

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import azjax

INPUT, FAILURE, INTERRUPTED = 2, 1, 130

_EXPECTED = {
    errno.ENOENT: "one that is there",
    errno.ENOTDIR: "a path that leads through directories only",
    errno.EISDIR: "a file",
    errno.ENAMETOOLONG: "a shorter name",
    errno.ELOOP: "a link that leads somewhere",
}
"""What a path that was given should have been, by the system's error."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit status."""
    status = _answer(sys.argv[1:] if argv is None else list(argv))
    if status and "azjax.train" in sys.modules:
        from azjax.interrupt import leave

        leave(status)
    return status


def _answer(argv: Sequence[str]) -> int:
    try:
        status = _run(argv)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has gone; Python would complain once more at exit
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except ValueError as error:
        return _say(str(error), INPUT)
    except OSError as error:
        expected = _EXPECTED.get(error.errno or 0)
        if expected and any(_is_within(error.filename, word) for word in argv):
            return _say(f"got {error.filename}: {error.strerror}, expected {expected}", INPUT)
        return _say(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error), FAILURE)
    except Exception as error:
        return _say(_failure(error), FAILURE)


def _is_within(path: object, word: str) -> bool:
    """Returns whether a path is the one that a word of the command line says, or lies in it."""
    said = word.rpartition("=")[2] if word.startswith("-") else word
    return isinstance(path, str | os.PathLike) and said != "" and Path(path).is_relative_to(said)


def _run(argv: Sequence[str]) -> int:
    if list(argv) in (["--version"], ["-V"]):
        print(f"azjax {azjax.__version__}")
        return 0
    if wrong := [word for word in argv if "\0" in word]:
        raise ValueError(f"got {wrong[0]!r}, expected words without a null character")
    from azjax.cli.parse import parse

    line = parse(argv)
    if line is None:
        return 0
    from azjax.cli.commands import run

    return run(line)


def _failure(error: Exception) -> str:
    """Says what failed while running."""
    text = f"{error}"
    if "RESOURCE_EXHAUSTED" in text or isinstance(error, MemoryError):
        first = text.splitlines()[0] if text else "out of memory"
        return f"{first}; make it smaller: --selfplay.lanes, --search.simulations, --learner.batch (azjax plan GAME)"
    if isinstance(error, FloatingPointError) or type(error).__name__ in (
        "CheckpointError",
        "PeerError",
    ):  # their files import JAX
        return text
    if os.environ.get("AZJAX_TRACEBACK"):
        traceback.print_exc()
    return f"{type(error).__name__}: {text or 'no message'} (set AZJAX_TRACEBACK=1 to see where)"


def _say(message: str, status: int) -> int:
    """Prints one line, whatever the message holds."""
    line = "".join(char if char.isprintable() else " " for char in " ".join(message.split()))
    with contextlib.suppress(OSError, ValueError):
        print(f"azjax: {line[:2000].encode(errors='replace').decode()}", file=sys.stderr, flush=True)
    return status
