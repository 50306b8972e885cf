"""Sequential tests: the likelihood ratio against numbers worked out otherwise, and error rates by simulation."""

import json
import math

import numpy as np
import pytest

from azjax.cli import main
from azjax.sprt import PAIR_POINTS, Sprt, _tilt, count_pairs, expected_score


def test_pairs_are_counted_by_points():
    won, drawn, lost = 1.0, 0.0, -1.0
    games = [won, won, won, drawn, won, lost, drawn, drawn, lost, drawn, lost, lost, 0.2, -0.1]
    assert count_pairs(games).tolist() == [1, 1, 3, 1, 1]


def test_bounds_are_walds():
    lower, upper = Sprt(elo0=0, elo1=5).bounds
    assert (lower, upper) == (pytest.approx(-math.log(19)), pytest.approx(math.log(19)))
    lower, upper = Sprt(elo0=0, elo1=5, alpha=0.01, beta=0.1).bounds
    assert (lower, upper) == (pytest.approx(math.log(0.1 / 0.99)), pytest.approx(math.log(90)))


def test_the_likeliest_distribution_has_the_mean_and_beats_others():
    probs = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    mean = expected_score(40)
    best = probs / _tilt(probs, mean)
    assert best.sum() == pytest.approx(1) and best @ PAIR_POINTS == pytest.approx(mean)
    rng = np.random.default_rng(0)
    for _ in range(200):
        step = rng.normal(size=5) * 0.01
        basis = np.stack([np.ones(5), PAIR_POINTS], 1)
        other = best + step - basis @ np.linalg.lstsq(basis, step, rcond=None)[0]  # the same sum and mean
        assert (other > 0).all() and probs @ np.log(other) < probs @ np.log(best)


def test_the_ratio_of_wins_and_losses_alone_is_the_binomials():
    """Every pair won or lost twice over: the ratio is that of coins whose heads are the expected scores."""
    sprt = Sprt(elo0=0, elo1=100)
    p0, p1 = expected_score(0), expected_score(100)
    expected = 60 * math.log(p1 / p0) + 40 * math.log((1 - p1) / (1 - p0))
    assert sprt.llr([40, 0, 0, 0, 60]) == pytest.approx(expected, abs=0.02)
    assert sprt.llr([0, 0, 0, 0, 0]) == 0


def test_pairs_that_are_split_say_less_than_games_that_are_independent():
    """Each opening won by whoever has the better seat: no evidence for either, whatever their number."""
    assert abs(Sprt(elo0=-5, elo1=5).llr([0, 0, 1000, 0, 0])) < 1e-6
    near = Sprt(elo0=0, elo1=5)
    assert near.accepted([0, 0, 1000, 0, 0]) == "H0"  # so even a match is not 5 Elo ahead
    assert near.accepted([300, 0, 400, 0, 300]) is None


def test_ratio_turns_round_with_the_players():
    pairs = np.array([10, 30, 50, 40, 25])
    assert Sprt(elo0=-10, elo1=20).llr(pairs) == pytest.approx(-Sprt(elo0=-20, elo1=10).llr(pairs[::-1]))


@pytest.mark.parametrize(("elo", "wrong"), [(0.0, "H1"), (60.0, "H0")])
def test_error_rates(elo, wrong):
    """400 tests with the truth at one hypothesis: the other is accepted in 5 % of them, as asked."""
    sprt = Sprt(elo0=0, elo1=60)
    rng = np.random.default_rng(7)
    base = np.array([0.15, 0.1, 0.5, 0.1, 0.15])
    truth = base / _tilt(base, expected_score(elo))
    verdicts = {"H0": 0, "H1": 0}
    for _ in range(400):
        pairs = np.zeros(5, int)
        while (verdict := sprt.accepted(pairs)) is None:
            pairs = pairs + rng.multinomial(16, truth / truth.sum())
        verdicts[verdict] += 1
    assert 0.01 < verdicts[wrong] / 400 < 0.08


@pytest.mark.parametrize("numbers", [(5, 0), (3, 3), (float("nan"), 4), (0, float("inf"))])
def test_wrong_hypotheses_are_refused(numbers):
    with pytest.raises(ValueError, match="two Elo differences, the lower first"):
        Sprt(elo0=numbers[0], elo1=numbers[1])


def test_wrong_error_rates_are_refused():
    with pytest.raises(ValueError, match=r"alpha: got 0.5, expected a number between"):
        Sprt(elo0=0, elo1=1, alpha=0.5)


@pytest.mark.parametrize("text", ["5", "a,b", "10,0", "0,10,20", "nan,3"])
def test_the_command_refuses(text, capsys):
    assert main(["match", "tic_tac_toe", "random", "random", "--sprt", text]) == 2
    assert capsys.readouterr().err.startswith("azjax: match: --sprt: got ")


def test_a_match_stops_when_it_is_decided(capsys):
    argv = "match tic_tac_toe uct:30 random --games 400 --sprt 0,100 --json".split()
    assert main(argv) == 0
    said = capsys.readouterr()
    result = json.loads(said.out)
    test = result["sprt"]
    assert test["accepted"] == "H1" and test["llr"] >= test["bounds"][1]
    assert result["games"] % 64 == 0 and result["games"] < 400
    assert 2 * sum(test["pentanomial"]) == result["games"] == result["wins"] + result["draws"] + result["losses"]
    points = sum(number * count for number, count in enumerate(test["pentanomial"])) / 2
    assert points == result["wins"] + result["draws"] / 2
    assert said.err.count("log-likelihood ratio") == result["games"] / 64
