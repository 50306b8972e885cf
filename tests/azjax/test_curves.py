"""Curves: where points lie, what is left out, ticks at round numbers; when another player was passed."""

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from azjax.charts import Curve, draw_curves
from azjax.curves import largest_drop, passed
from azjax.report import EloPoint

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_points_lie_where_their_numbers_say():
    curve = Curve(name="a", x=[0, 50, 100], y=[-1, 0, 1])
    svg = draw_curves([curve], title="T", x_label="games", y_range=(-1, 1), height=240)
    (line,) = ElementTree.fromstring(svg).iter(f"{SVG}polyline")
    corners = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
    assert corners == [(58, 200), (302, 115), (546, 30)]
    assert {"0", "20", "100", "-1", "-0.5", "1", "games", "T"} <= set(texts(svg))


def test_what_is_not_finite_leaves_a_gap():
    svg = draw_curves([Curve(name="a", x=range(5), y=[1, 2, math.nan, 3, 4])], title="T", x_label="step")
    assert svg.count("<polyline") == 2


def test_intervals_are_a_band_and_bars():
    curve = Curve(name="a", x=[1, 2], y=[0, 1], low=[-1, 0], high=[1, math.inf], dots=True)
    svg = draw_curves([curve, Curve(name="b", x=[1], y=[2])], title="T", x_label="x")
    assert svg.count("<polygon") == 0 and svg.count("<circle") == 3  # one end is unbounded: no band of one point
    assert {"a", "b"} <= set(texts(svg))


def test_nothing_yet():
    assert "nothing yet" in draw_curves([Curve(name="a", x=[], y=[])], title="T", x_label="x")


def test_one_value_alone_is_drawn():
    svg = draw_curves([Curve(name="a", x=[3], y=[7])], title="<T>", x_label="x", marker=3)
    assert [word for word in texts(svg) if word.isdigit()].count("3") == 1  # whole numbers of plies, each once
    assert svg.count("<circle") == 1 and "&lt;T&gt;" in svg


def test_large_numbers_are_short():
    assert {"2M", "4M"} <= set(texts(draw_curves([Curve(name="a", x=[0, 5e6], y=[0, 1])], title="T", x_label="x")))


def test_the_last_number_of_an_axis_ends_inside_the_picture():
    svg = draw_curves([Curve(name="a", x=[6144], y=[0])], title="T", x_label="games")
    last = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]*)</text>', svg)
    ends = {words: float(x) + 3.4 * len(words) for x, words in last}
    assert ends["6.145k"] <= 560


def training(*elos):
    """A point every ten steps."""
    return [EloPoint(step=10 * n, games=n, seconds=n, elo=elo, lo=elo, hi=elo) for n, elo in enumerate(elos, 1)]


@pytest.mark.parametrize(
    ("elo", "first", "for_good"), [(-5, 10, 10), (0, 20, 20), (60, 20, 40), (150, 40, 40), (200, None, None)]
)
def test_when_a_player_was_passed(elo, first, for_good):
    when = passed(training(0, 90, 50, 200, 190), elo)
    assert [point and point.step for point in (when.first, when.for_good)] == [first, for_good]


def test_a_player_passed_and_met_again_is_not_passed_for_good():
    when = passed(training(0, 90, 50), 70)
    assert when.first is not None and when.first.step == 20 and when.for_good is None


def test_the_largest_drop_is_from_the_best_before_to_the_worst_after():
    drop = largest_drop(training(0, 90, 50, 70, 40, 200, 160))
    assert (drop.elo, drop.start.step, drop.end.step) == (50, 20, 50)
    assert largest_drop(training(1, 2, 3)).elo == 0


def test_names_without_room_beside_the_title_stand_below_it():
    curves = [Curve(name=f"a-run-with-a-long-name-{number}", x=[0, 1], y=[0, 1]) for number in range(6)]
    svg = draw_curves(curves, title="Elo above uct:400, 95 % interval", x_label="games", height=240)
    height = float(re.findall(r'viewBox="0 0 560 ([\d.]+)"', svg)[0])
    (frame_top,) = re.findall(r'<rect x="58" y="([\d.]+)"', svg)
    places = [
        float(y)
        for y, name in re.findall(r'<text x="[\d.]+" y="([\d.]+)"[^>]*>([^<]*)</text>', svg)
        if name.startswith("a-run")
    ]
    assert len(places) == 6 and min(places) > 25 and max(places) < float(frame_top)
    assert height == 240 + float(frame_top) - 30
