"""Writes the rules into docs/games.md as the games tell them themselves (`Game.rules`): python docs/games.py"""

import re
from pathlib import Path

import envs

PAGE = Path(__file__).with_name("games.md")
_RULES = re.compile(r"(<!-- rules of (\S+) -->\n).*?(\n<!-- end of the rules -->)", re.S)


def page(text: str) -> str:
    """Returns the page with the rules between their marks replaced."""
    return _RULES.sub(lambda found: f"{found[1]}\n{envs.make(found[2]).rules_text}\n{found[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
