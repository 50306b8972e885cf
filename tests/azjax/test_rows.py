"""The rows of a run's log: what is damaged is told and kept apart, and no row comes twice."""

import json

import pytest

from azjax.rows import is_earned
from azjax.rundir import RunDirectory

MATCH = {"a": "step 2", "b": "random", "score": 0.5, "ci95": [0.1, 0.9]}
ROWS = [
    {"step": 1, "games": 3, "plies": 32, "simulations": 128, "seconds": 0.5, "plies_per_second": 64, "loss": None},
    {"step": 2, "games": 7, "plies": 64, "simulations": 256, "seconds": 1, "plies_per_second": 64, "loss": 2.5},
    {"step": 2, "gate": {"score": 0.5, "streak": 0, "passed": False}},
    {"step": 2, "evaluation": MATCH},
    {"step": 2, "evaluation": MATCH, "final": True},
    {"step": 3, "games": 9, "plies": 96, "simulations": 384, "seconds": 1.5, "plies_per_second": 64, "loss": 2.4},
]
DAMAGED = [
    b"\n",
    b"null\n",
    b"[1]\n",
    b"3\n",
    b'{"a": 1}\n',
    b'{"step": "x"}\n',
    b'{"step": true}\n',
    b'{"step": 2.5}\n',
    b'{"step": 5, "ga\n',
    b"\xff\xfe\n",
    b'{"step": 2, "loss": 1.5}{"step": 3}\n',
    b'{"step": 2, "games": 3}\n',
    b'{"step": 2, "games": "3", "plies": 1, "simulations": 1, "seconds": 1}\n',
    b'{"step": 2, "gate": 3}\n',
    b'{"step": 2, "evaluation": null}\n',
    b'{"step": 2, "evaluation": {"a": "step 2", "b": "random", "score": 0.5}}\n',
    b"[" * 100_000 + b"\n",
]


def line(row: dict) -> bytes:
    return json.dumps(row).encode() + b"\n"


@pytest.mark.parametrize("damage", DAMAGED, ids=lambda text: repr(text[:30]))
def test_a_damaged_line_is_passed_over_and_the_rest_is_read(damage, tmp_path):
    run = RunDirectory(tmp_path)
    run.metrics_path.write_bytes(b"".join([*map(line, ROWS[:3]), damage, *map(line, ROWS[3:])]))
    assert list(run.rows()) == ROWS


def test_a_log_that_is_cut_says_what_was_damaged_and_keeps_it(tmp_path):
    run, said = RunDirectory(tmp_path), []
    whole = b"".join([line(ROWS[0]), *DAMAGED[:3], line(ROWS[1]), line(ROWS[5])])
    run.metrics_path.write_bytes(whole)
    run.cut_rows(2, (), said.append)
    assert said == [
        f"{tmp_path}/metrics.jsonl: 3 damaged lines of 6 dropped; the file as it was is kept in "
        f"{tmp_path}/metrics.jsonl.damaged"
    ]
    assert run.metrics_path.read_bytes() == line(ROWS[0]) + line(ROWS[1])
    assert (tmp_path / "metrics.jsonl.damaged").read_bytes() == whole


@pytest.mark.parametrize("torn", [b"", b"{", b'{"step": 2, "ga', line(ROWS[1])[:-2], b"\xff"])
def test_a_torn_last_line_is_what_a_killed_writer_leaves(torn, tmp_path):
    run, said = RunDirectory(tmp_path), []
    run.metrics_path.write_bytes(line(ROWS[0]) + torn)
    assert list(run.rows()) == ROWS[:1]
    run.cut_rows(1, (), said.append)
    assert run.metrics_path.read_bytes() == line(ROWS[0])
    assert said == [] and not (tmp_path / "metrics.jsonl.damaged").exists()


def test_a_last_row_without_the_end_of_its_line_is_whole(tmp_path):
    run = RunDirectory(tmp_path)
    run.metrics_path.write_bytes(line(ROWS[0]) + line(ROWS[1])[:-1])
    run.cut_rows(2, (), pytest.fail)
    assert run.metrics_path.read_bytes() == line(ROWS[0]) + line(ROWS[1])


@pytest.mark.parametrize(
    ("step", "waiting", "earned"),
    [
        (0, [], []),
        (1, [], [0]),
        (2, [], [0, 1, 2, 3]),
        (2, ["evaluation"], [0, 1, 2]),
        (2, ["gate", "evaluation"], [0, 1]),
        (3, [], [0, 1, 2, 3, 5]),
        (3, ["gate", "evaluation"], [0, 1, 2, 3, 5]),
    ],
)
def test_a_checkpoint_stands_for_what_was_done_when_it_was_saved(step, waiting, earned):
    assert [number for number, row in enumerate(ROWS) if is_earned(row, step, waiting)] == earned
