"""The Python that README and docs show, for tests to run."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def block(page: str, mark: str) -> str:
    """Returns the one block of a page's Python that holds `mark`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    (found,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if mark in block]
    return found


def write_block(path: Path, page: str, mark: str) -> Path:
    """Writes the block as its reader saves it."""
    path.write_text(block(page, mark), encoding="utf-8")
    return path
