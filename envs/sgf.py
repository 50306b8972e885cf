"""The grammar of SGF, Smart Game Format FF[4] (https://www.red-bean.com/sgf/): text to nodes and back, of any game.

(;GM[1]SZ[9]PB[Ada];B[ee];W[ge](;B[fd])(;B[de]))    A node is ";" and properties NAME[value]...; of variations, in
                                                    parentheses, the first is the game as it was played.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_BLANK = " \t\r\n\v\f"
_TOKEN = re.compile(r"(?P<mark>[();])|(?P<name>[A-Za-z]+)|\[(?P<value>[^\\\]]*(?:\\.[^\\\]]*)*)\]", re.DOTALL)
_NODES_A_LINE = 10


@dataclass(frozen=True)
class Property:
    """The values of one property of a node."""

    at: int  # where it begins, in characters
    values: tuple[str, ...]  # as they stand in the text, with their backslashes


@dataclass(frozen=True)
class Node:
    """One node."""

    at: int
    properties: dict[str, Property] = field(default_factory=dict)


@dataclass
class _Tree:
    """An open parenthesis."""

    main: bool  # on the line that was played
    nodes: int = 0
    variations: int = 0


def parse(text: str) -> list[list[Node]]:
    """Returns the nodes of each game of a collection, along its main line; other variations are checked and left out.

    Small letters of names, which older versions of the format have, mean nothing. Text outside of games is refused.

    Raises:
      ValueError: "line L, column C: what was seen, what was expected".
    """
    games: list[list[Node]] = []
    open_trees: list[_Tree] = []
    node: Node | None = None  # to which properties belong
    name, name_at, values = "", 0, []

    def close_property() -> None:
        nonlocal name
        if name and node is not None:
            if not values:
                raise fault(text, name_at, f"property {name} without a value")
            node.properties[name] = Property(name_at, tuple(values))
        name = ""

    at = _skip_blank(text, 0)
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            what = "a value without its ]" if text[at] == "[" else repr(text[at])
            raise fault(text, at, f"got {what}, expected a node, a property or a parenthesis")
        if token["value"] is not None:
            if not name:
                raise fault(text, at, "got a value, expected a property's name before it")
            values.append(token["value"])
        elif token["name"] is not None:
            close_property()
            name, name_at, values = "".join(filter(str.isupper, token["name"])), at, []
            if node is None or not name or name in node.properties:
                expected = "';' before it" if node is None else "capital letters" if not name else "it once in a node"
                raise fault(text, at, f"got the property {token['name'][:20]}, expected {expected}")
        else:
            close_property()
            node = None
            tree = open_trees[-1] if open_trees else None
            if token["mark"] == "(":
                if tree is None:
                    games.append([])
                elif not tree.nodes:
                    raise fault(text, at, "got '(', expected a node, ';'")
                else:
                    tree.variations += 1
                open_trees.append(_Tree(main=tree is None or (tree.main and tree.variations == 1)))
            elif tree is None:
                raise fault(text, at, f"got {token['mark']!r}, expected '('")
            elif token["mark"] == ")":
                if not tree.nodes:
                    raise fault(text, at, "got ')', expected a node, ';'")
                open_trees.pop()
            else:
                if tree.variations:
                    raise fault(text, at, "got a node after a variation, expected ')'")
                tree.nodes += 1
                node = Node(at)
                if tree.main:
                    games[-1].append(node)
        at = _skip_blank(text, token.end())
    if open_trees or not games:
        raise fault(text, len(text), f"got the end, expected {')' if open_trees else '('!r}")
    return games


def write(nodes: Iterable[Mapping[str, Iterable[str]]]) -> str:
    """Returns a game whose nodes have these properties, their values already as `escaped` gives them."""
    written = [
        ";" + "".join(name + "".join(f"[{value}]" for value in values) for name, values in node.items())
        for node in nodes
    ]
    root, moves = written[0], written[1:]
    lines = ["".join(moves[start : start + _NODES_A_LINE]) for start in range(0, len(moves), _NODES_A_LINE)]
    return "(" + "\n".join([root, *lines]) + ")\n"


def escaped(text: str) -> str:
    """Returns one line of text as it stands in a value."""
    return text.replace("\\", "\\\\").replace("]", "\\]")


def one_line(value: str) -> str:
    """Returns what a value says (SimpleText): line ends and other blanks are spaces, escaped line ends nothing."""
    shown = re.sub(r"\\(\r\n|\n\r|.)", lambda match: "" if match[1] in _LINE_ENDS else match[1], value, flags=re.DOTALL)
    return re.sub(r"\r\n|\n\r|[\t\r\n\v\f]", " ", shown)


def fault(text: str, at: int, message: str) -> ValueError:
    """Returns an error that names the place."""
    line, start = text.count("\n", 0, at) + 1, text.rfind("\n", 0, at) + 1
    return ValueError(f"line {line}, column {at - start + 1}: {message}")


_LINE_ENDS = ("\n", "\r", "\r\n", "\n\r")


def _skip_blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at
