"""The table, the report and the picture hold the numbers they were given, and are written whole or not at all."""

import io
import itertools
import json
import math
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from rich.console import Console

from azjax.bench.report import bench_table, comparison
from azjax.rating import PairResult, PlayerRating, Ratings, fit_ratings
from azjax.report import (
    EloPoint,
    MatchRecord,
    RunSummary,
    _apart,
    _duration,
    elo_picture,
    head_to_head_table,
    ratings_picture,
    ratings_table,
    write_ratings,
    write_report,
)

LONG_NAME = "run:runs/crosshair-quick@120,simulations=400,search=gumbel,temperature=0,top_p=1"
RATINGS = Ratings(
    players=(
        PlayerRating(name=LONG_NAME, elo=1234.4, ci95=(1187.2, 1281.6), games=1200, score=0.925),
        PlayerRating(name="[b]uct|400", elo=352.0, ci95=(352.0, 352.0), games=400, score=0.5),
        PlayerRating(name="random", elo=-17.6, ci95=(-math.inf, math.inf), games=400, score=0.004),
    ),
    advantage=23.7,
    draw_elo=97.3,
)
SUMMARY = RunSummary(
    run="runs/crosshair-quick",
    game="crosshair",
    preset="quick",
    parameters=114290,
    device="2 CPU cores",
    versions={"azjax": "0.1.0", "jax": "0.10.2"},
    steps=120,
    updates=4800,
    games=39900,
    plies=1234567,
    simulations=39506144,
    selfplay_seconds=313.4,
    learning_seconds=34.56,
    evaluation_seconds=61,
    evaluation_simulations=64,
    seconds=3725,
    commands={"play against it": "azjax play crosshair --run runs/crosshair-quick"},
)
MATCH = MatchRecord(a="run:runs/crosshair-quick", b="uct:400", wins=880, draws=20, losses=100, distinct=997)


def points(count: int) -> list[EloPoint]:
    return [
        EloPoint(step=i, games=1000 * i, seconds=30.0 * i, elo=100.0 * i, lo=100.0 * i - 40, hi=100.0 * i + 40)
        for i in range(count)
    ]


def printed(table, **console) -> str:
    output = io.StringIO()
    Console(file=output, **console).print(table)
    return output.getvalue()


def png_pixels(path: Path) -> tuple[int, int]:
    """Width and height of a PNG whose every chunk has the right checksum and whose last is the end."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, kind = 8, b""
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        kind = content[at + 4 : at + 8]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length])[0] == zlib.crc32(
            content[at + 4 : at + 8 + length]
        )
        at += 12 + length
    assert kind == b"IEND"
    return struct.unpack(">II", content[16:24])


def test_the_table_fits_80_columns_and_holds_every_number():
    text = printed(ratings_table(RATINGS), width=80)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert LONG_NAME in "".join(line[4:38].strip() for line in lines)
    (first,) = (line for line in lines if "+1234" in line)
    assert first.split()[0] == "1"
    assert all(part in first for part in ("+1187 … +1282", "1,200", "92.5 %"))
    (second,) = (line for line in lines if "[b]uct|400" in line)  # a name is no markup
    assert all(part in second for part in ("+352", "anchor", "50.0 %"))
    (third,) = (line for line in lines if "random" in line)
    assert all(part in third for part in ("-18", "unbounded", "0.4 %"))
    assert "Moving first is worth +24 Elo; draw_elo 97." in text


NAMES = ("run:runs/crosshair-quick,simulations=400", "run:runs/crosshair-quick,simulations=1600", "uct:400")


def test_names_break_between_their_words_alone():
    pairs = [PairResult(a=a, b=b, wins=3, draws=0, losses=1) for a, b in itertools.combinations(NAMES, 2)]
    ratings = fit_ratings(pairs, anchors={"uct:400": 0.0})
    for table in (ratings_table(ratings), head_to_head_table(ratings)):
        lines = printed(table, width=80).splitlines()
        words = {word for line in lines for word in line.split()}
        assert any("95 % interval" in line for line in lines)
        assert max(map(len, lines)) <= 80
        pieces = set(NAMES) | {"run:runs/", "crosshair-quick,", "run:runs/crosshair-quick,"}
        assert {word for word in words if re.search("run|cross|simul|quick|uct", word)} <= pieces | {
            "simulations=400",
            "simulations=1600",
            "crosshair-quick,simulations=400",
        }
        assert set(NAMES) <= {word for line in printed(table, width=200).splitlines() for word in line.split()}


def test_a_benchmarks_numbers_are_alike_and_its_words_whole():
    case = "self-play crosshair, equivariant_mlp, puct, 64 simulations, 256 games"
    rows = [
        comparison(case, 50858.6, 141562.0, "the network alone", "new nodes/s"),
        comparison(case, 1234567.0, 54321.0, "the same self-play with mctx.gumbel_muzero_policy", "simulations/s"),
        comparison("crosshair", 1.41562, 12.5, "pgx 2.6.0", "us", lower_is_better=True),
    ]
    text = printed(bench_table({"device": "1 x cpu", "cores": 2, "rows": rows}), width=80)
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text and "e+0" not in text
    for word in (
        "50,859",
        "141,560",
        "1,234,600",
        "54,321",
        "1.4156",
        "12.5",
        "equivariant_mlp,",
        "simulations/s",
        "mctx.gumbel_",
    ):
        assert word in text.split()


def test_the_table_is_plain_text_where_there_is_no_terminal():
    assert "\x1b" not in printed(ratings_table(RATINGS), width=80)
    assert "\x1b" in printed(ratings_table(RATINGS), width=80, force_terminal=True, color_system="standard")


def test_ratings_json_is_the_shape_that_others_rely_on(tmp_path):
    write_ratings(tmp_path / "ratings.json", RATINGS)
    text = (tmp_path / "ratings.json").read_text("utf-8")
    assert json.loads(text) == {
        "players": [
            {"name": LONG_NAME, "elo": 1234.4, "ci95": [1187.2, 1281.6], "games": 1200, "score": 0.925},
            {"name": "[b]uct|400", "elo": 352.0, "ci95": [352.0, 352.0], "games": 400, "score": 0.5},
            {"name": "random", "elo": -17.6, "ci95": [None, None], "games": 400, "score": 0.004},
        ],
        "advantage": 23.7,
        "draw_elo": 97.3,
        "pairs": [],
    }
    assert "Infinity" not in text
    assert [path.name for path in tmp_path.iterdir()] == ["ratings.json"]


def test_a_picture_of_ratings_is_as_high_as_its_players_need(tmp_path):
    ratings_picture(tmp_path / "elo.png", RATINGS, "three players")  # one with an infinite interval, one with a $
    width, height = png_pixels(tmp_path / "elo.png")
    assert width == 1200 and height == round((1.4 + 0.4 * 3) * 150)
    with pytest.raises(ValueError, match="got no players"):
        ratings_picture(tmp_path / "none.png", Ratings(players=(), advantage=0.0, draw_elo=0.0), "nobody")
    assert [path.name for path in tmp_path.iterdir()] == ["elo.png"]


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch):
    write_ratings(tmp_path / "ratings.json", RATINGS)
    before = (tmp_path / "ratings.json").read_bytes()

    def disk_is_full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", disk_is_full)
    with pytest.raises(OSError, match="No space left"):
        write_ratings(tmp_path / "ratings.json", Ratings(players=(), advantage=0.0, draw_elo=0.0))
    assert (tmp_path / "ratings.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["ratings.json"]


def test_the_report_holds_what_was_trained_what_it_took_and_how_strong_it_is(tmp_path):
    write_report(tmp_path / "report.md", SUMMARY, ratings=RATINGS, matches=[MATCH], picture="elo.png")
    text = (tmp_path / "report.md").read_text("utf-8")
    assert text.startswith("# crosshair, quick\n")
    for line in (
        "| network | 114,290 parameters |",
        "| device | 2 CPU cores |",
        "| versions | azjax 0.1.0, jax 0.10.2 |",
        "| steps | 120 |",
        "| updates | 4,800 |",
        "| games | 39,900 |",
        "| plies | 1,234,567 |",
        "| simulations | 39,506,144 |",
        "| time: self-play | 5 min 13 s |",
        "| time: learning | 34.6 s |",
        "| time: evaluation while training | 1 min 01 s |",
        "| time: in all, without the rating below | 1 h 02 min |",
        f"| `{LONG_NAME}` | +1234 | +1187 … +1282 | 1,200 | 92.5 % |",
        "| `[b]uct\\|400` | +352 | anchor | 400 | 50.0 % |",
        # Wilson's interval for 890 wins in 1,000 is 86.9 to 90.8; draws make it narrower.
        "| `run:runs/crosshair-quick` | `uct:400` | 880 / 20 / 100 | 89.0 % | 87.0 – 90.7 % | 997 of 1000 |",
        "![Elo over the games of training](elo.png)",
        "azjax play crosshair --run runs/crosshair-quick",
    ):
        assert line in text.splitlines(), line


def test_a_report_without_evaluation_has_no_empty_sections(tmp_path):
    write_report(tmp_path / "report.md", SUMMARY)
    text = (tmp_path / "report.md").read_text("utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## Totals", "## What to do next"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.4, "59.4 s"), (59.6, "1 min 00 s"), (3599.7, "1 h 00 min"), (90000, "25 h 00 min")],
)
def test_durations(seconds, text):
    assert _duration(seconds) == text


@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize("anchors", [{}, {"random": 0.0, "uct:400": 352.0}])
def test_the_picture_is_a_png_of_1200_by_750(tmp_path, count, anchors):
    elo_picture(tmp_path / "elo.png", points(count), anchors, "crosshair, quick")
    assert png_pixels(tmp_path / "elo.png") == (1200, 750)
    assert [path.name for path in tmp_path.iterdir()] == ["elo.png"]


def test_the_picture_shows_points_in_any_order_and_differs_with_them(tmp_path):
    for name, drawn in (("a", points(5)), ("b", points(5)[::-1]), ("c", points(6))):
        elo_picture(tmp_path / name, drawn, {"random": 0.0}, "title")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()


def test_the_picture_takes_unknown_intervals_and_clocks_that_stand(tmp_path):
    drawn = [
        EloPoint(step=0, games=0, seconds=0.0, elo=0.0, lo=-math.inf, hi=math.inf),
        EloPoint(step=1, games=0, seconds=0.0, elo=5.0, lo=-30.0, hi=30.0),
        EloPoint(step=2, games=10, seconds=0.0, elo=9.0, lo=-math.inf, hi=math.inf),
    ]
    elo_picture(tmp_path / "elo.png", drawn, {"random": 0.0}, "title")
    assert png_pixels(tmp_path / "elo.png") == (1200, 750)


def test_a_picture_of_nothing_is_refused(tmp_path):
    with pytest.raises(ValueError, match="got no points"):
        elo_picture(tmp_path / "elo.png", [], {}, "title")


def test_labels_of_close_anchors_are_moved_apart():
    assert _apart([352.0, 0.0, 358.0], 40.0) == [352.0, 0.0, 392.0]
    assert _apart([], 40.0) == []


@pytest.mark.parametrize(
    ("module", "absent"), [("azjax.rating", "jax matplotlib scipy rich"), ("azjax.report", "jax matplotlib scipy")]
)
def test_importing_is_light(module, absent):
    code = f"import sys, {module}; print(set('{absent}'.split()) & set(sys.modules))"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr
