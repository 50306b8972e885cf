"""Plain text of rules as a page shows it: paragraphs, lists numbered `1. `, drawings made of characters."""

import html
import re

_ITEM = re.compile(r"\d+\. ")
_DRAWN = re.compile(r"^\s|\S {2,}\S", re.M)  # a line that begins with a space, or columns


def as_html(text: str) -> str:
    """Returns HTML without anything of the text's own in it but words; `a1` becomes code."""
    return "".join(map(_block, filter(None, re.split(r"\n\s*\n", text.strip("\n")))))


def _block(text: str) -> str:
    lines = text.splitlines()
    if _ITEM.match(lines[0]):
        items = (_words(item.partition(". ")[2]) for item in re.split(r"\n(?=\d+\. )", text))
        return f"<ol>{''.join(f'<li>{item}</li>' for item in items)}</ol>"
    if _DRAWN.search(text):
        return f"<pre>{html.escape(text)}</pre>"
    return f"<p>{_words(text)}</p>"


def _words(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(" ".join(text.split())))
