"""The tree is updated where it lies: read from the compiled program, for what no timing can prove."""

import math
import os
import re

import jax
import mctx
import pytest

from azjax.bench.search import Case, _ours, _program

# What hands an array on or writes entries of it; the inside of a fusion is looked at on its own.
IN_PLACE = {
    "constant",
    "parameter",
    "get-tuple-element",
    "bitcast",
    "dynamic-update-slice",
    "scatter",
    "fusion",
    "while",
}
# The tests' own flags (tests/conftest.py) choose an emitter with which other operations fuse.
OWN_EMITTER = "--xla_cpu_use_fusion_emitters=false" in os.environ["XLA_FLAGS"]
AS_SHIPPED = {"xla_cpu_use_fusion_emitters": True} if OWN_EMITTER else None
INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%[\w.\-]+ = \w+\[([\d,]*)\]\S* ([\w\-]+)\(")
CALLED = re.compile(r"(?:body|condition|calls|to_apply)=%([\w.\-]+)")


def computations(text: str) -> dict[str, list[str]]:
    """The lines of each computation of an HLO module."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if begun := re.match(r"(?:ENTRY )?%([\w.\-]+) \(.*\{$", line):
            lines = found[begun[1]] = []
        else:
            lines.append(line)
    return found


def inside_the_loop(text: str, simulations: int) -> list[str]:
    """The lines of everything that the loop over simulations runs, however deep."""
    parts = computations(text)
    loops = [
        line
        for lines in parts.values()
        for line in lines
        if " while(" in line and f'"known_trip_count":{{"n":"{simulations}"}}' in line
    ]
    assert len(loops) == 1, "expected one loop over simulations"
    waiting, seen = CALLED.findall(loops[0]), set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += [called for line in parts[name] for called in CALLED.findall(line)]
    return [line for name in seen for line in parts[name]]


def whole_arrays_made(case: Case, policy) -> list[str]:
    """The instructions of the loop that make an array as large as one of the tree's, other than in place."""
    lowered = _program(policy, case).lower(jax.random.key(0))
    text = lowered.compile(compiler_options=AS_SHIPPED).as_text()
    tree = (case.simulations + 1) * case.games
    made = []
    for line in inside_the_loop(text, case.simulations):
        if instruction := INSTRUCTION.match(line):
            size = math.prod(int(n) for n in instruction[1].split(",") if n)
            if size >= tree and instruction[2] not in IN_PLACE:
                made.append(line.strip())
    return made


# Sizes at which nothing else is as large: 23 simulations of 8 games, 23 > the 9 entries of a row.
CASES = [
    Case("puct", 9, 23, 8),
    pytest.param(Case("gumbel", 9, 23, 8), marks=pytest.mark.slow),
    Case("puct", 18, 23, 8, legal=4, slots=9),
    Case("puct", 9, 499, 1),  # of one game scatters and gathers are of one entry, which XLA makes slices of
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_whole_array_of_the_tree_is_copied_or_selected(case):
    assert whole_arrays_made(case, _ours(case)) == []


def test_mctx_copies_whole_arrays():
    """So that the test above is known to see them."""
    made = whole_arrays_made(CASES[0], mctx.muzero_policy)
    assert any(" copy(" in line or " select(" in line for line in made)
