"""Ratings against closed forms, another algorithm, finite differences and tournaments whose truth is known."""

import itertools
import json
import math
import random
import time

import choix
import numpy as np
import pytest

from azjax.rating import PairResult, Ratings, _free_directions, _Posterior, elo_difference, fit_ratings, score_interval


def pair(a: str, b: str, wins: int, draws: int, losses: int) -> PairResult:
    return PairResult(a=a, b=b, wins=wins, draws=draws, losses=losses)


def both_seats(a: str, b: str, wins: int, draws: int, losses: int) -> list[PairResult]:
    """a's wins, draws and losses with a first, and the same with b first."""
    return [pair(a, b, wins, draws, losses), pair(b, a, losses, draws, wins)]


def elos(ratings: Ratings) -> dict[str, float]:
    return {player.name: player.elo for player in ratings.players}


def ci95(ratings: Ratings, name: str) -> tuple[float, float]:
    return next(player.ci95 for player in ratings.players if player.name == name)


def play(rng, truth, games, advantage=0.0, draw_elo=0.0) -> list[PairResult]:
    """A round robin: every ordered pair of players plays `games` games by the model's probabilities, written out."""
    results = []
    for a, b in itertools.permutations(truth, 2):
        difference = truth[a] - truth[b] + advantage
        win = 1 / (1 + 10 ** ((draw_elo - difference) / 400))
        loss = 1 / (1 + 10 ** ((draw_elo + difference) / 400))
        results.append(pair(a, b, *map(int, rng.multinomial(games, [win, max(1 - win - loss, 0), loss]))))
    return results


def test_three_points_of_four_are_191_elo():
    ratings = fit_ratings(both_seats("a", "b", 7500, 0, 2500), anchors={"b": 100.0}, prior_draws=0)
    a, b = ratings.players
    assert (a.name, b.name) == ("a", "b")
    assert a.elo == pytest.approx(290.8485, abs=1e-3)
    # The logit of p from n games has the variance 1 / (n p (1 - p)); one logit is 173.7178 Elo.
    assert a.ci95[1] - a.elo == pytest.approx(1.959964 * 173.7178 / math.sqrt(20000 * 0.75 * 0.25), abs=1e-3)
    assert (a.games, a.score, b.score) == (20000, 0.75, 0.25)
    assert (b.elo, b.ci95) == (100.0, (100.0, 100.0))
    assert ratings.advantage == pytest.approx(0.0, abs=1e-9)
    assert ratings.draw_elo == 0.0


def test_advantage_and_draws_of_one_pair_are_solved_for_exactly():
    # Three unknowns, four free frequencies made from d = 100, advantage = 30, draw_elo = 90 in 10^9 games.
    chance = [1 / (1 + 10 ** (x / 400)) for x in (-100 - 30 + 90, 100 + 30 + 90, -100 + 30 + 90, 100 - 30 + 90)]
    win, loss, loss_second, win_second = (round(1e9 * p) for p in chance)
    results = [
        pair("a", "b", win, 10**9 - win - loss, loss),
        pair("b", "a", win_second, 10**9 - win_second - loss_second, loss_second),
    ]
    ratings = fit_ratings(results, anchors={"b": 0.0}, prior_draws=0)
    assert elos(ratings)["a"] == pytest.approx(100, abs=1e-4)
    assert ratings.advantage == pytest.approx(30, abs=1e-4)
    assert ratings.draw_elo == pytest.approx(90, abs=1e-4)


def test_two_virtual_draws_weigh_as_two_wins_and_two_losses():
    # Ten wins of ten: 12 wins to 2 losses, 400 log10(6) = 311.2605; twice the prior: 14 to 4, 217.6272.
    results = both_seats("a", "b", 5, 0, 0)
    assert elos(fit_ratings(results, anchors={"b": 0.0}))["a"] == pytest.approx(311.2605, abs=1e-3)
    assert elos(fit_ratings(results, anchors={"b": 0.0}, prior_draws=4))["a"] == pytest.approx(217.6272, abs=1e-3)


def test_virtual_draws_are_spread_by_games_played():
    # b played a 30 times and c 10 times. With 2 draws a player: a and c bring 1 each to their only pair, b brings
    # 3/4 and 1/4. So a-b gets 1.75 and b-c 1.25, and with even results but for these the two pairs are independent.
    results = [*both_seats("a", "b", 10, 0, 5), *both_seats("c", "b", 4, 0, 1)]
    found = elos(fit_ratings(results, anchors={"b": 0.0}, fit_advantage=False))
    assert found["a"] == pytest.approx(400 * math.log10(21.75 / 11.75), abs=1e-6)
    assert found["c"] == pytest.approx(400 * math.log10(9.25 / 3.25), abs=1e-6)


def test_without_draw_elo_a_draw_is_half_a_win_and_half_a_loss():
    ratings = fit_ratings(both_seats("a", "b", 5, 4, 1), anchors={"b": 0.0}, prior_draws=0, fit_draw=False)
    assert elos(ratings)["a"] == pytest.approx(400 * math.log10(7 / 3), abs=1e-6)
    assert ratings.draw_elo == 0.0


def test_bradley_terry_equals_minorization_maximization():
    rng = np.random.default_rng(7)
    truth = dict(zip("abcdefgh", rng.normal(0, 200, 8), strict=True))
    results = play(rng, truth, games=20)
    wins = dict.fromkeys(itertools.permutations(truth, 2), 0)
    for result in results:
        wins[result.a, result.b] += result.wins
        wins[result.b, result.a] += result.losses
    # Hunter, Annals of Statistics 32:384-406, 2004: strength_i <- wins_i / sum_j n_ij / (strength_i + strength_j).
    strength = dict.fromkeys(truth, 1.0)
    for _ in range(5000):
        for i in truth:
            others = [j for j in truth if j != i]
            weight = sum((wins[i, j] + wins[j, i]) / (strength[i] + strength[j]) for j in others)
            strength[i] = sum(wins[i, j] for j in others) / weight
    found = elos(fit_ratings(results, anchors={}, prior_draws=0, fit_advantage=False))
    mean = sum(math.log10(value) for value in strength.values()) / 8
    assert found == pytest.approx({name: 400 * (math.log10(strength[name]) - mean) for name in truth}, abs=1e-4)
    assert sum(found.values()) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_bradley_terry_equals_choix(seed):
    """With draws, advantage and prior off the model is Bradley and Terry's, which choix fits by another algorithm."""
    rng = np.random.default_rng(seed)
    names = [f"p{number}" for number in range(12)]
    results = play(rng, dict(zip(names, rng.normal(0, 250, 12), strict=True)), games=6)
    won = []
    for result in results:
        a, b = names.index(result.a), names.index(result.b)
        won += [(a, b)] * result.wins + [(b, a)] * result.losses
    expected = 400 / math.log(10) * choix.ilsr_pairwise(12, won)
    found = elos(fit_ratings(results, anchors={}, prior_draws=0, fit_advantage=False, fit_draw=False))
    assert found == pytest.approx(dict(zip(names, expected - expected.mean(), strict=True)), abs=0.5)


def test_first_and_second_derivatives_are_those_of_the_posterior():
    rng = np.random.default_rng(3)
    first, second = np.array(list(itertools.permutations(range(4), 2))).T
    wins, draws, losses = rng.uniform(0, 9, (3, 12))
    posterior = _Posterior(first=first, second=second, wins=wins, draws=draws, losses=losses)
    theta = np.array([0.3, -1.2, 0.8, 0.1, 0.2, 0.6])
    gradient, hessian = posterior.derivatives(theta)
    for i, unit in enumerate(np.eye(6) * 1e-5):
        slope = (posterior.value(theta + unit) - posterior.value(theta - unit)) / 2e-5
        curve = (posterior.derivatives(theta + unit)[0] - posterior.derivatives(theta - unit)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-6)
        np.testing.assert_allclose(hessian[i], curve, atol=1e-6)


@pytest.mark.parametrize("anchored", [[False] * 5, [True, False, False, True, False], [True] * 5])
def test_free_directions_are_orthonormal_and_keep_anchors_or_the_mean(anchored):
    basis = _free_directions(anchored, True, False)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    assert basis.shape == (7, 1 + (5 - sum(anchored) if any(anchored) else 4))
    if any(anchored):
        assert not basis[:5][anchored].any()
    else:
        np.testing.assert_allclose(basis[:5].sum(0), 0, atol=1e-12)


def test_an_interval_without_anchor_is_relative_to_the_mean():
    # Two players: each is half the difference from the mean, and so is its interval.
    results = both_seats("a", "b", 60, 10, 30)
    to_b, to_mean = fit_ratings(results, anchors={"b": 0.0}), fit_ratings(results, anchors={})
    assert [2 * end for end in ci95(to_mean, "a")] == pytest.approx(ci95(to_b, "a"), abs=1e-6)


def test_results_in_any_order_and_any_portions_give_the_same_ratings():
    rng = np.random.default_rng(11)
    results = play(rng, {"a": 0.0, "b": 100.0, "c": -50.0, "d": 30.0}, games=15, advantage=40, draw_elo=60)
    single = [
        pair(result.a, result.b, *outcome)
        for result in results
        for outcome, count in (((1, 0, 0), result.wins), ((0, 1, 0), result.draws), ((0, 0, 1), result.losses))
        for _ in range(count)
    ]
    random.Random(5).shuffle(single)
    assert len(single) == 180
    assert fit_ratings(single, anchors={"a": 0.0}) == fit_ratings(results, anchors={"a": 0.0})


@pytest.mark.parametrize(
    "results",
    [
        [pair("a", "b", 1, 0, 0)],
        [pair("a", "b", 0, 1, 0)],
        both_seats("a", "b", 0, 10**6, 0),
        both_seats("a", "b", 10**6, 0, 0),
        both_seats("a", "b", 8, 2, 0),
        [pair("a", "b", 9, 0, 0), pair("b", "a", 9, 0, 0)],  # the first mover always wins
        [*both_seats("a", "b", 99, 0, 0), *both_seats("b", "c", 99, 0, 0), *both_seats("c", "d", 99, 1, 0)],
        [pair("a", "b", 3, 1, 2), pair("c", "d", 3, 1, 2)],  # two islands
    ],
)
@pytest.mark.parametrize("anchors", [{}, {"a": 0.0}, {"a": 0.0, "b": 4000.0}])
@pytest.mark.parametrize("prior_draws", [0.0, 0.01, 2.0])
def test_every_set_of_results_converges(results, anchors, prior_draws):
    ratings = fit_ratings(results, anchors=anchors, prior_draws=prior_draws)
    assert all(math.isfinite(player.elo) for player in ratings.players)
    assert all(player.ci95[0] <= player.elo <= player.ci95[1] for player in ratings.players)
    assert math.isfinite(ratings.advantage)
    assert ratings.draw_elo >= 0
    assert {name: elo for name, elo in elos(ratings).items() if name in anchors} == anchors


def test_what_games_do_not_bound_has_an_infinite_interval():
    everything = (-math.inf, math.inf)
    wins = both_seats("a", "b", 5, 0, 0)
    assert ci95(fit_ratings(wins, anchors={"b": 0.0}, prior_draws=0), "a") == everything
    assert elos(fit_ratings(wins, anchors={"b": 0.0}, prior_draws=0))["a"] > 2000
    # a always moved first: its rating and the advantage are one number.
    one_seat = [pair("a", "b", 30, 0, 10)]
    assert ci95(fit_ratings(one_seat, anchors={"b": 0.0}, prior_draws=0), "a") == everything
    assert math.isfinite(ci95(fit_ratings(one_seat, anchors={"b": 0.0}, prior_draws=0, fit_advantage=False), "a")[0])
    # c and d never met anybody who met the anchor; a did, and keeps its own interval.
    islands = [*both_seats("a", "b", 6, 0, 3), *both_seats("c", "d", 6, 0, 3)]
    ratings = fit_ratings(islands, anchors={"b": 0.0}, fit_advantage=False)
    assert ci95(ratings, "c") == ci95(ratings, "d") == everything
    assert ci95(ratings, "a") == pytest.approx(
        ci95(fit_ratings(both_seats("a", "b", 6, 0, 3), anchors={"b": 0.0}, fit_advantage=False), "a")
    )
    assert elos(ratings)["c"] - elos(ratings)["d"] == pytest.approx(elos(ratings)["a"])


@pytest.mark.parametrize(
    ("players", "games", "tournaments", "advantage", "draw_elo", "prior_draws", "anchored"),
    [
        (8, 10, 720, 30.0, 100.0, 2.0, True),
        (8, 10, 720, 30.0, 0.0, 0.0, True),
        (12, 6, 420, 60.0, 200.0, 2.0, False),
    ],
)
def test_95_of_100_intervals_hold_the_truth(players, games, tournaments, advantage, draw_elo, prior_draws, anchored):
    rng = np.random.default_rng(20250)
    held = total = 0
    for _ in range(tournaments):
        strengths = rng.normal(0, 100, players)
        truth = dict(zip("abcdefghijkl", strengths - (0 if anchored else strengths.mean()), strict=False))
        results = play(rng, truth, games, advantage, draw_elo)
        anchors = {"a": truth["a"]} if anchored else {}
        for player in fit_ratings(results, anchors=anchors, prior_draws=prior_draws).players:
            if player.name not in anchors:
                held += player.ci95[0] <= truth[player.name] <= player.ci95[1]
                total += 1
    assert total >= 5000
    print(f"{held / total:.4f} of {total}")
    assert 0.94 <= held / total <= 0.96


def test_50_players_and_20000_games():
    rng = np.random.default_rng(1)
    truth = {f"p{i}": elo for i, elo in enumerate(rng.normal(0, 200, 50))}
    results = play(rng, truth, games=8, advantage=20, draw_elo=80)
    start = time.perf_counter()
    ratings = fit_ratings(results, anchors={"p0": truth["p0"]})
    seconds = time.perf_counter() - start
    print(f"{seconds:.2f} s for {sum(player.games for player in ratings.players) // 2} games")
    assert seconds < 20  # 2 are asked for, where nothing else runs: an algorithm of another order takes minutes
    assert sum(player.games for player in ratings.players) == 2 * 19600
    assert (
        np.corrcoef([truth[player.name] for player in ratings.players], [p.elo for p in ratings.players])[0, 1] > 0.98
    )
    assert ratings.advantage == pytest.approx(20, abs=8)
    assert ratings.draw_elo == pytest.approx(80, abs=8)


def test_json_has_the_shape_that_others_rely_on():
    ratings = fit_ratings([pair("a", "b", 3, 0, 1)], anchors={"b": 0.0}, prior_draws=0)
    found = json.loads(json.dumps(ratings.to_json(), allow_nan=False))
    assert found == {
        "players": [
            {"name": "a", "elo": pytest.approx(95.4243, abs=1e-3), "ci95": [None, None], "games": 4, "score": 0.75},
            {"name": "b", "elo": 0.0, "ci95": [0.0, 0.0], "games": 4, "score": 0.25},
        ],
        "advantage": pytest.approx(95.4243, abs=1e-3),
        "draw_elo": 0.0,
        "pairs": [
            {"a": "a", "b": "b", "wins": 3, "draws": 0, "losses": 1, "score": 0.75}
            | {"ci95": pytest.approx([0.3006, 0.9544], abs=1e-4)}
        ],
    }


def test_head_to_head_adds_up_both_seats_from_the_stronger_ones_side():
    results = [pair("c", "a", 1, 2, 0), pair("a", "c", 15, 1, 3), pair("b", "c", 9, 0, 0), pair("a", "b", 0, 0, 2)]
    ratings = fit_ratings(results, anchors={})
    assert [player.name for player in ratings.players] == ["b", "a", "c"]
    assert ratings.pairs == (pair("b", "a", 2, 0, 0), pair("b", "c", 9, 0, 0), pair("a", "c", 15, 3, 4))


@pytest.mark.parametrize(
    ("results", "arguments", "message"),
    [
        ([], {}, "no games"),
        ([pair("a", "b", 0, 0, 0)], {}, "no games"),
        ([pair("a", "b", 1, 0, 0)], {"anchors": {"c": 0.0}}, "c=0.0, expected a finite Elo of one of a, b"),
        ([pair("a", "b", 1, 0, 0)], {"anchors": {"a": math.nan}}, "a=nan"),
        ([pair("a", "b", 1, 0, 0)], {"prior_draws": -1}, "prior_draws: got -1"),
        ([pair("a", "b", 1, 0, 0)], {"prior_draws": math.inf}, "prior_draws: got inf"),
    ],
)
def test_wrong_input_is_refused(results, arguments, message):
    with pytest.raises(ValueError, match=message):
        fit_ratings(results, **({"anchors": {}} | arguments))


@pytest.mark.parametrize(("a", "b", "wins"), [("a", "a", 1), ("a", "b", -1)])
def test_impossible_results_are_refused(a, b, wins):
    with pytest.raises(ValueError, match="expected two players and no count below 0"):
        pair(a, b, wins, 0, 0)


@pytest.mark.parametrize(("score", "elo"), [(0.5, 0), (0.75, 190.8485), (0.25, -190.8485), (10 / 11, 400)])
def test_elo_difference(score, elo):
    assert elo_difference(score) == pytest.approx(elo, abs=1e-4)


def test_elo_difference_at_and_beyond_the_ends():
    assert (elo_difference(1), elo_difference(0)) == (math.inf, -math.inf)
    with pytest.raises(ValueError, match=r"got 1\.1, expected a number from 0 to 1"):
        elo_difference(1.1)


@pytest.mark.parametrize(
    ("wins", "losses", "low", "high"),
    [(8, 2, 0.4902, 0.9433), (10, 0, 0.7225, 1), (0, 10, 0, 0.2775), (1, 0, 0.2065, 1), (500, 500, 0.4691, 0.5309)],
)
def test_without_draws_the_interval_is_wilsons(wins, losses, low, high):
    score, lo, hi = score_interval(wins, 0, losses)
    assert score == wins / (wins + losses)
    assert (lo, hi) == pytest.approx((low, high), abs=1e-4)
    p, n, z2 = score, wins + losses, 1.959963984540054**2
    half = math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    assert (lo, hi) == pytest.approx(((p + z2 / 2 / n) / (1 + z2 / n) - half, (p + z2 / 2 / n) / (1 + z2 / n) + half))


def test_draws_alone_leave_room_on_both_sides():
    # n difference^2 = z^2 (difference - difference^2): difference = z^2 / (n + z^2) = 0.27753.
    assert score_interval(0, 10, 0) == pytest.approx((0.5, 0.5 - 0.138766, 0.5 + 0.138766), abs=1e-5)


def test_the_interval_is_tangos_and_mirrors_with_the_players():
    # Fagerland, Lydersen and Laake, Statistics in Medicine 33:2850-2875, 2014, airway hyper-responsiveness: 1 and 7
    # discordant pairs of 21, Tango's interval for the difference -0.517 to -0.026.
    score, lo, hi = score_interval(1, 13, 7)
    assert (2 * lo - 1, 2 * hi - 1) == pytest.approx((-0.517, -0.026), abs=6e-4)
    assert score_interval(7, 13, 1) == pytest.approx((1 - score, 1 - hi, 1 - lo))


@pytest.mark.parametrize("draw", [0.0, 0.1, 0.4, 0.8])
@pytest.mark.parametrize("games", [20, 60])
def test_the_score_interval_covers_95_of_100(games, draw):
    """Exactly, over every result of a match, at scores from one end to the other."""
    factorial = [math.lgamma(k + 1) for k in range(games + 1)]
    matches = [(w, d, games - w - d) for w in range(games + 1) for d in range((games - w if draw else 0) + 1)]
    bounds = [score_interval(*match)[1:] for match in matches]
    coverages = []
    for share in np.linspace(0.02, 0.98, 33):
        win, loss = (1 - draw) * share, (1 - draw) * (1 - share)
        truth, covered, total = win + draw / 2, 0.0, 0.0
        for (w, d, lost), (lo, hi) in zip(matches, bounds, strict=True):
            drawn = d * math.log(draw) if draw else 0.0
            ways = factorial[games] - factorial[w] - factorial[d] - factorial[lost]
            chance = math.exp(ways + w * math.log(win) + drawn + lost * math.log(loss))
            total += chance
            covered += chance * (lo <= truth <= hi)
        assert total == pytest.approx(1)
        coverages.append(covered)
    print(f"mean {np.mean(coverages):.4f}, least {min(coverages):.4f}")
    assert 0.94 <= np.mean(coverages) <= 0.97
    assert min(coverages) >= 0.88


@pytest.mark.parametrize("counts", [(0, 0, 0), (3, -1, 0)])
def test_a_match_without_games_has_no_score(counts):
    with pytest.raises(ValueError, match="expected none below 0 and one in all"):
        score_interval(*counts)
