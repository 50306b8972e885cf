"""Our engine in matches that other people's programs hold, where they are installed; they keep the clock and judge.

cutechess-cli for chess, gogui-twogtp for Go, `python -m cshogi.cli` for shogi (AZJAX_CSHOGI_PYTHON names the Python
that has cshogi). The clocks are long: the machine may do other things.
"""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import find

ENGINE = f"{sys.executable} -m azjax engine"
SECONDS = 900


def program(name: str) -> str:
    return find(name) or pytest.skip(f"{name} is not installed")


@pytest.mark.slow
def test_cute_chess_holds_a_match(chess_run, tmp_path):
    command = [program("cutechess-cli"), "-engine", "name=azjax", f"cmd={sys.executable}", "proto=uci"]
    command += [f"arg={word}" for word in ("-m", "azjax", "engine", "uci", "--run", chess_run)]
    command += ["-engine", "name=stockfish", f"cmd={program('stockfish')}", "proto=uci", "option.Skill Level=0"]
    # Compiling takes longer than its 15 s, which tscale stretches.
    command += "-each tc=60+1 tscale=10 -games 2 -repeat -pgnout games.pgn".split()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)
    ends = re.findall(r"^Finished game \d \(.*?\): (\S+) \{(.*)\}$", done.stdout, re.MULTILINE)
    assert len(ends) == 2 and {end for _, end in ends} <= {"White mates", "Black mates"}, done.stdout
    assert "Warning" not in done.stdout + done.stderr
    assert (tmp_path / "games.pgn").read_text().count("[Result ") == 2


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", " --resign 0.499"])
def test_gogui_holds_a_match(go_run, tmp_path, options):
    gnugo = f"{program('gnugo')} --mode gtp --chinese-rules"
    command = [program("gogui-twogtp"), "-black", f"{ENGINE} gtp --run {go_run}{options}", "-white", gnugo]
    command += ["-referee", gnugo, *"-size 5 -komi 7.5 -time 2 -games 2 -alternate -auto -sgffile game".split()]
    subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=True)
    lines = [line for line in (tmp_path / "game.dat").read_text().splitlines() if "\t" in line]
    rows = list(csv.DictReader(lines, delimiter="\t"))
    assert [row["ERR"] for row in rows] == ["0", "0"], rows
    ends = [row["RES_R"] for row in rows]
    assert all(re.fullmatch(r"[BW]\+(R(esign)?|[0-9.]+)", end) for end in ends), ends
    assert any("R" in end for end in ends) == bool(options), ends


@pytest.mark.slow
def test_cshogi_holds_a_match(shogi_run, tmp_path):
    python = os.environ.get("AZJAX_CSHOGI_PYTHON") or pytest.skip("AZJAX_CSHOGI_PYTHON is not set")
    engine = tmp_path / "azjax-usi"
    engine.write_text(f"#!/bin/sh\nexec {ENGINE} usi --run {shogi_run}\n")
    engine.chmod(0o755)
    command = [python, "-m", "cshogi.cli", "--name1", "azjax", "--name2", "fairy", "--games", "2", "--draw", "200"]
    command += ["--time", "60000", "--inc", "2000", "--debug", str(engine), program("fairy-stockfish")]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
    said = done.stdout + done.stderr
    assert re.search(r"^azjax playing White: \d-\d-\d", said, re.MULTILINE) and "illegal" not in said.lower(), said[
        -2000:
    ]
    assert len(re.findall(r"^1:bestmove \S+", said, re.MULTILINE)) > 4
