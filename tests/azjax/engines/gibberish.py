"""Lines that are nearly commands, or not at all."""

import random
from pathlib import Path

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
