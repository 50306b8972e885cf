"""What is timed of an engine's answers, and what is told of it."""

import json
from pathlib import Path

import pytest

from experiments.engine_latency import Options, main, row
from tests.azjax.engines.conftest import make_agent, write_run


def test_the_most_and_the_95th_percentile_are_samples():
    told = row("uci", "stop", [number / 1000 for number in range(1, 41)])
    assert (told["samples"], told["median"], told["p95"], told["most"]) == (40, 20.5, 38.0, 40.0)
    assert row("uci", "stop", [0.5])["p95"] == 500.0


def test_without_a_run_nothing_is_measured():
    with pytest.raises(ValueError, match="got no run, expected --uci DIR"):
        main(Options())


@pytest.mark.slow
def test_a_run_of_go_is_timed(tmp_path, capsys):
    run = Path(write_run(make_agent("go,size=5"), tmp_path / "run"))
    assert main(Options(gtp=run, samples=2, starts=1, out=tmp_path / "out")) == 0
    rows = json.loads((tmp_path / "out" / "results.json").read_text())["rows"]
    assert {one["what"]: one["samples"] for one in rows} == {
        "stop": 2,
        "stop of an analysis": 2,
        "a move in 1 s, over": 2,
        "quit": 1,
        "quit while it thinks": 1,
        "quit while loading": 1,
    }
    assert "| gtp | stop | 2 |" in capsys.readouterr().out
    # An answer within half a second is what is promised; a machine that does other things may be slow at it.
    assert all(-1000 < one["most"] < 10_000 for one in rows)
