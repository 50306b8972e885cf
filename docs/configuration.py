"""Writes docs/configuration.md from azjax/config.py: python docs/configuration.py"""

import ast
import dataclasses
import typing
from pathlib import Path
from typing import Any

from azjax import config

PAGE = Path(__file__).with_name("configuration.md")
HEAD = """\
# Configuration

Written by `python docs/configuration.py` from azjax/config.py; a test fails when the two differ.

A run's configuration is one record with a section for each stage. On the command line a field is
`--SECTION.FIELD VALUE`, such as `--search.simulations 100`; a switch is `--network.sync-statistics true`; a list is its
values one after another. The defaults below are those of the records; a preset replaces some of them, for some games
others. What a run uses stands in its `config.json`, and `azjax plan GAME --preset NAME` shows what it needs.

Of a run that is resumed, the fields of `evaluation` and `checkpoint` may be changed, `preset`, `devices`, and `steps`
where the schedule is not `cosine`; all others are refused, by name.
"""


def page() -> str:
    """Returns the text of configuration.md."""
    sections = [field.name for field in dataclasses.fields(config.RunConfig) if dataclasses.is_dataclass(field.type)]
    parts = [HEAD, _section("The run", config.RunConfig)]
    kinds = typing.get_type_hints(config.RunConfig)
    return "\n".join(parts + [_section(f"`{name}`", kinds[name], f"{name}.") for name in sections])


def _section(title: str, cls: type, prefix: str = "") -> str:
    meanings = _meanings(cls)
    rows = [
        (
            f"`{prefix}{field.name}`",
            _default(field),
            _kind(field.type),
            meanings[field.name],
        )
        for field in dataclasses.fields(cls)
        if not dataclasses.is_dataclass(field.type)
    ]
    lines = [("field", "default", "values", "meaning"), ("---",) * 4, *rows]
    table = "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
    return f"## {title}\n\n{cls.__doc__}\n\n{table}"


def _default(field: "dataclasses.Field[Any]") -> str:
    if field.default is dataclasses.MISSING:
        return "(needed)"
    if isinstance(field.default, tuple):
        return f"`{' '.join(map(str, field.default))}`" if field.default else "(empty)"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def _kind(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return ", ".join(f"`{choice}`" for choice in typing.get_args(kind))
    names = {int: "whole number", float: "number", bool: "true or false", str: "text", type(None): "None"}
    parts = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return f"list of {'whole numbers' if parts[0] is int else 'words'}"
    return " or ".join(names[part] for part in parts or (kind,))


def _meanings(cls: type) -> dict[str, str]:
    """Returns the text under each field of a dataclass."""
    tree = ast.parse(Path(config.__file__).read_text(encoding="utf-8"))
    (node,) = (part for part in tree.body if isinstance(part, ast.ClassDef) and part.name == cls.__name__)
    meanings = {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(meaning))),
            ):
                meanings[name] = " ".join(meaning.split())
    return meanings


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
