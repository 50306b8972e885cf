"""Lines that are nearly commands, or not at all, and servers that have to bear them."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TRANSCRIPTS = Path(__file__).with_name("transcripts")


def said_in(prefix: str) -> list[str]:
    """Returns what was said to the server in the transcripts of this name."""
    return [
        line[2:]
        for path in TRANSCRIPTS.glob(f"{prefix}-*.txt")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("> ")
    ]


def gibberish(rng: random.Random, words: list[str], corpus: list[str]) -> str:
    """Returns a line of words, or one of the corpus, with some characters put in and taken out."""
    if rng.random() < 0.5:
        line = " ".join(rng.choice(words) for _ in range(rng.randrange(1, 8)))
    else:
        line = rng.choice(corpus)
    characters = list(line)
    for _ in range(rng.choice([0, 0, 0, 1, 3, 20])):
        at = rng.randrange(len(characters) + 1)
        if rng.random() < 0.5:
            code = rng.choice([0, 7, 9, 10, 32, 48, 65, 97, 127, 233, 0x2028, 0x4E00, 0x1F600, 0xDCFF])
            characters.insert(at, chr(code))
        elif characters:
            del characters[at - 1]
    return "".join(characters) * rng.choice([1] * 200 + [1000])


def ends(line: str) -> bool:
    """Can this line end the conversation? Control characters are dropped from a line."""
    return "quit" in "".join(filter(str.isprintable, line))


HANG_SECONDS = 1.0
"""What no line may take, in time of this process's processor: the machine may be busy with something else."""


class Slowest:
    """The longest call so far."""

    def __init__(self):
        self.seconds, self.what = 0.0, ""

    def time(self, what: str, call: Callable[..., Any], *args: Any) -> None:
        wall, began = time.perf_counter(), time.process_time()
        call(*args)
        seconds = min(time.process_time() - began, time.perf_counter() - wall)
        if seconds > self.seconds:
            self.seconds, self.what = seconds, what[:200]


def fuzz(talk: Any, words: list[str], lines: int, slices: list[int]) -> None:
    """Says lines to a server, which must go on; neither a line nor a slice of thought may hang.

    Args:
      talk: the conversation; everything is compiled.
      words: of which lines are made up, besides those of the transcripts of `talk.prefix`.
      lines: how many.
      slices: of thought after a line, drawn from these.
    """
    rng, slowest = random.Random(lines), Slowest()
    corpus, began, said = said_in(talk.prefix), time.perf_counter(), 0
    while said < lines:
        line = gibberish(rng, words, corpus)
        if ends(line):
            continue
        said += 1
        slowest.time(line, talk.server.hear, line)
        for _ in range(rng.choice(slices)):
            if not talk.server.thinking or talk.server.waiting:
                break
            slowest.time(f"a slice after {line}", talk.server.work)
        talk.heard()
        assert not talk.server.over
    print(
        f"{talk.prefix}: {said} lines in {time.perf_counter() - began:.0f} s, the longest took "
        f"{slowest.seconds:.3f} s: {slowest.what!r}"
    )
    assert slowest.seconds < HANG_SECONDS, slowest.what
