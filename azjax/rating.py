"""Ratings of players from the results of their games, by BayesElo's model, and intervals for the score of one match.

The model (Coulom, "Bayesian Elo Rating", https://www.remi-coulom.fr/Bayesian-Elo/): with d = elo(first) - elo(second)
and f(x) = 1 / (1 + 10^(x / 400)),

    P(first wins)  = f(-d - advantage + draw_elo)
    P(second wins) = f( d + advantage + draw_elo)
    P(draw)        = 1 - the two = (10^(draw_elo / 200) - 1) P(first wins) P(second wins).

So a draw says about the ratings what one win and one loss say together, and the log-likelihood is concave in ratings,
advantage and draw_elo jointly: Newton's method with a line search finds its one maximum.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

_LOGITS_PER_ELO = math.log(10) / 400
_Z95 = 1.959963984540054  # the normal distribution's 97.5 % point

_UNIDENTIFIED = 1e-7  # a direction whose curvature is below what one game won with certainty 1 - 1e-7 gives
_ROUNDING = 1e-13  # share of the games, or of the largest eigenvalue, that is taken for rounding
_CONVERGED = 1e-14  # the gain in log-posterior that the last step promised
_LONGEST_STEP = 5.0  # logits: Newton's own steps are endless where every result is nearly certain
_MAX_STEPS = 500


@dataclass(frozen=True, kw_only=True)
class PairResult:
    """Games of a against b; in the results that are rated a moved first (player 0). Counts are from a's side."""

    a: str
    b: str
    wins: int
    draws: int
    losses: int

    def __post_init__(self):
        if self.a == self.b or min(self.wins, self.draws, self.losses) < 0:
            raise ValueError(f"result: got {self}, expected two players and no count below 0")


@dataclass(frozen=True, kw_only=True)
class PlayerRating:
    """One player's rating."""

    name: str
    elo: float
    ci95: tuple[float, float]  # of elo relative to the anchors; equal to elo for an anchor, infinite if unidentified
    games: int
    score: float  # points a game in [0, 1], a draw is half a point


@dataclass(frozen=True, kw_only=True)
class Ratings:
    """Players from the strongest down, and the two parameters they share."""

    players: tuple[PlayerRating, ...]
    advantage: float  # Elo that moving first is worth
    draw_elo: float  # Elo; 0 where no game was drawn
    pairs: tuple[PairResult, ...] = ()  # head to head, both seats added up, from the stronger one's side

    def to_json(self) -> dict[str, Any]:
        """Gives {"players": [{"name", "elo", "ci95", "games", "score"}], "advantage", "draw_elo",
        "pairs": [{"a", "b", "wins", "draws", "losses", "score", "ci95"}]}; null is infinite.
        """
        players = [
            {**asdict(player), "elo": _finite(player.elo), "ci95": [_finite(end) for end in player.ci95]}
            for player in self.players
        ]
        pairs = []
        for pair in self.pairs:
            score, lo, hi = score_interval(pair.wins, pair.draws, pair.losses)
            pairs.append({**asdict(pair), "score": score, "ci95": [lo, hi]})
        shared = {"advantage": _finite(self.advantage), "draw_elo": _finite(self.draw_elo)}
        return {"players": players, **shared, "pairs": pairs}


def fit_ratings(
    results: Sequence[PairResult],
    *,
    anchors: Mapping[str, float],
    prior_draws: float = 2.0,
    fit_advantage: bool = True,
    fit_draw: bool = True,
) -> Ratings:
    """Finds the ratings of largest posterior probability and their intervals.

    Prior: BayesElo's virtual draws. Each player i brings prior_draws / 2 of them, spread over its opponents in
    proportion to the games played, so that the pair (i, j) gets (prior_draws / 2) n_ij (1 / n_i + 1 / n_j), half with
    either player first: on average prior_draws a player. A virtual draw enters as the model's one win and one loss,
    which for a given draw_elo is BayesElo's posterior exactly. It is not counted among the draws that tell draw_elo,
    so that draw_elo is 0 where no game was drawn, and finite where every game was.

    Intervals: +- 1.96 marginal standard deviations, from the inverse of the exact Hessian over all that was fitted,
    relative to the anchors (or the mean). They hold the model and the independence of the games for true.

    Args:
        results: counts in any order; the same pair may come any number of times.
        anchors: Elo of the players that are held there. Without any, the mean of the players is 0.
        prior_draws: virtual draws a player; 0 turns the prior off.
        fit_advantage: whether moving first may be worth something; otherwise advantage = 0.
        fit_draw: whether draw_elo is fitted; otherwise draw_elo = 0 and a draw is half a win and half a loss.

    Returns:
        Ratings. A player whose games do not bound its rating has the interval (-inf, inf): no games join it to an
        anchor, its rating and the advantage are confounded, or, without a prior, it won or lost all its games. In the
        last case no finite maximum exists and elo is where the search stopped, thousands away from the rest.

    Raises:
        ValueError: no games, an anchor that has played none, a number that is not finite.
    """
    if not 0 <= prior_draws < math.inf:
        raise ValueError(f"prior_draws: got {prior_draws}, expected a finite number >= 0")
    pairs = _add_up(results)
    if not pairs:
        raise ValueError("results: got no games, expected at least one")
    names = sorted({name for pair in pairs for name in pair})
    for name, elo in anchors.items():
        if name not in names or not math.isfinite(elo):
            raise ValueError(f"anchors: got {name}={elo}, expected a finite Elo of one of {', '.join(names)}")

    index = {name: i for i, name in enumerate(names)}
    first, second = np.array([(index[a], index[b]) for a, b in pairs]).T
    wins, draws, losses = np.array(list(pairs.values()), np.float64).T
    games, points = np.zeros(len(names)), np.zeros(len(names))
    for player, won in ((first, wins), (second, losses)):
        np.add.at(games, player, wins + draws + losses)
        np.add.at(points, player, won + draws / 2)
    draw_is_fitted = fit_draw and bool(draws.sum() > 0)
    half_points = 0 * draws if fit_draw else draws / 2
    virtual = prior_draws / 4 * (wins + draws + losses) * (1 / games[first] + 1 / games[second])

    # A virtual draw is played once either way round: the pair's other order is a row of its own.
    posterior = _Posterior(
        first=np.concatenate([first, second]),
        second=np.concatenate([second, first]),
        wins=np.concatenate([wins + half_points + virtual, virtual]),
        draws=np.concatenate([draws * draw_is_fitted, 0 * virtual]),
        losses=np.concatenate([losses + half_points + virtual, virtual]),
    )
    middle = sum(anchors.values()) / max(len(anchors), 1)
    start = _LOGITS_PER_ELO * np.array([*(anchors.get(name, middle) for name in names), 0, 100 * draw_is_fitted])
    basis = _free_directions([name in anchors for name in names], fit_advantage, draw_is_fitted)
    solution = _maximize(posterior, start, basis)
    deviation = _standard_deviations(posterior.derivatives(solution)[1], basis)
    elos, margin = solution / _LOGITS_PER_ELO, _Z95 * deviation / _LOGITS_PER_ELO
    players = []
    for i, name in enumerate(names):
        elo, width, played = float(anchors.get(name, elos[i])), float(margin[i]), int(games[i])
        ci95, score = (elo - width, elo + width), float(points[i]) / played
        players.append(PlayerRating(name=name, elo=elo, ci95=ci95, games=played, score=score))
    players.sort(key=lambda player: (-player.elo, player.name))
    return Ratings(
        players=tuple(players),
        advantage=float(elos[-2]) + 0.0,
        draw_elo=float(elos[-1]),
        pairs=_head_to_head(pairs, [player.name for player in players]),
    )


def elo_difference(score: float) -> float:
    """Gives the Elo difference with this expected score: 400 log10(score / (1 - score)), +-inf at 1 and 0."""
    if not 0 <= score <= 1:
        raise ValueError(f"score: got {score}, expected a number from 0 to 1")
    return 400 * math.log10(score / (1 - score)) if 0 < score < 1 else math.copysign(math.inf, score - 0.5)


def score_interval(wins: int, draws: int, losses: int) -> tuple[float, float, float]:
    """Gives a match's score, points a game with a draw as half, and its 95 % interval.

    The score interval for the mean of a trinomial: every s that |s_hat - s| <= 1.96 sqrt(variance(s) / n) does not
    refute, the variance being that of one game's points under s with the draw rate most likely under s. It is Tango's
    interval for the difference of paired proportions, here wins minus losses (T. Tango, Statistics in Medicine
    17:891-908, 1998), and without draws Wilson's. It is sensible at 0 and 1 and after a single game.

    Returns (score, lo, hi), all in [0, 1], from the side of the player whose wins are counted. Not guaranteed: 95 %
    where games are not independent, such as two games from one opening.
    """
    games = wins + draws + losses
    if min(wins, draws, losses) < 0 or games == 0:
        raise ValueError(f"results: got {wins}, {draws} and {losses} games, expected none below 0 and one in all")
    low, high = _lower_difference(wins, losses, games), -_lower_difference(losses, wins, games)
    return (wins + draws / 2) / games, (1 + low) / 2, (1 + high) / 2


def _lower_difference(wins: int, losses: int, games: int) -> float:
    """The least difference P(win) - P(loss) that the results do not refute at 95 %, by bisection."""
    observed = (wins - losses) / games
    low, high = -1.0, observed
    for _ in range(60):
        difference = (low + high) / 2
        variance = _variance_of_difference(wins, losses, games, difference)
        if games * (observed - difference) ** 2 > _Z95**2 * variance:
            low = difference
        else:
            high = difference
    return high


def _variance_of_difference(wins: int, losses: int, games: int, difference: float) -> float:
    """One game's variance of win - loss at the likeliest draw rate for P(win) - P(loss) = difference (Tango 1998)."""
    # q = P(loss) solves wins / (q + difference) + losses / q = 2 draws / (1 - 2 q - difference), a quadratic.
    linear = (2 * games - wins + losses) * difference - wins - losses
    root = math.sqrt(max(linear**2 + 8 * games * losses * difference * (1 - difference), 0.0))
    q = (root - linear) / (4 * games)
    return 2 * q + difference * (1 - difference)


def _add_up(results: Sequence[PairResult]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Wins, draws and losses of each ordered pair that has played, in the order of the names."""
    counts: dict[tuple[str, str], tuple[int, int, int]] = {}
    for result in results:
        wins, draws, losses = counts.get((result.a, result.b), (0, 0, 0))
        counts[result.a, result.b] = (wins + result.wins, draws + result.draws, losses + result.losses)
    return {pair: count for pair, count in sorted(counts.items()) if sum(count)}


def _head_to_head(
    pairs: Mapping[tuple[str, str], tuple[int, int, int]], order: Sequence[str]
) -> tuple[PairResult, ...]:
    """Each two players' games, whoever moved first, from the side of the one that comes first in `order`."""
    results = []
    for a, b in itertools.combinations(order, 2):
        one, other = pairs.get((a, b), (0, 0, 0)), pairs.get((b, a), (0, 0, 0))
        wins, draws, losses = (x + y for x, y in zip(one, other[::-1], strict=True))
        if wins + draws + losses:
            results.append(PairResult(a=a, b=b, wins=wins, draws=draws, losses=losses))
    return tuple(results)


@dataclass(frozen=True, kw_only=True)
class _Posterior:
    """The log-posterior of theta = (ratings, advantage, draw_elo), all in units of 400 / ln 10 Elo."""

    first: np.ndarray  # int[R], player that moves first in the row's games
    second: np.ndarray  # int[R]
    wins: np.ndarray  # float64[R], of the first player
    draws: np.ndarray  # float64[R], 0 where draw_elo is not fitted
    losses: np.ndarray  # float64[R]

    def value(self, theta: np.ndarray) -> float:
        """The sum of every row's wins log P(first wins) + draws log P(draw) + losses log P(second wins)."""
        edge, draw = theta[self.first] - theta[self.second] + theta[-2], theta[-1]
        value = -self.wins @ np.logaddexp(0, draw - edge) - self.losses @ np.logaddexp(0, draw + edge)
        # As (1 - e^-2u) f(u - s) f(u + s), with u = draw and s = edge, P(draw) loses no digits where draw is large.
        value -= self.draws @ (np.logaddexp(0, edge - draw) + np.logaddexp(0, -edge - draw))
        return float(value) + (self.draws.sum() * math.log(-math.expm1(-2 * draw)) if self.draws.any() else 0.0)

    def derivatives(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient, float64[P + 2], and the Hessian, float64[P + 2, P + 2]."""
        edge, draw = theta[self.first] - theta[self.second] + theta[-2], theta[-1]
        won, not_won = _f(draw - edge), _f(edge - draw)  # [R], P(first wins) and 1 - P(first wins)
        lost, not_lost = _f(draw + edge), _f(-edge - draw)
        by_edge = self.wins * not_won - self.draws * (won - lost) - self.losses * not_lost
        by_draw = -self.wins * not_won + self.draws * (won + lost) - self.losses * not_lost
        won_curve = (self.wins + self.draws) * won * not_won
        lost_curve = (self.losses + self.draws) * lost * not_lost
        sum_curve, difference = won_curve + lost_curve, won_curve - lost_curve
        gradient, hessian = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
        ends = ((self.first, 1), (self.second, -1))
        for player, sign in ends:
            np.add.at(gradient, player, sign * by_edge)
            np.add.at(hessian[-2], player, -sign * sum_curve)
            np.add.at(hessian[-1], player, sign * difference)
            for other, other_sign in ends:
                np.add.at(hessian, (player, other), -sign * other_sign * sum_curve)
        gradient[-2:] = by_edge.sum(), by_draw.sum()
        hessian[-2:, -2:] = [[-sum_curve.sum(), difference.sum()], [difference.sum(), -sum_curve.sum()]]
        hessian[:, -2:] = hessian[-2:].T
        if self.draws.any():
            rest, draws = math.exp(-2 * draw), self.draws.sum()
            gradient[-1] += 2 * draws * rest / (1 - rest)
            hessian[-1, -1] -= 4 * draws * rest / (1 - rest) ** 2
        return gradient, hessian


def _free_directions(anchored: Sequence[bool], fit_advantage: bool, fit_draw: bool) -> np.ndarray:
    """Orthonormal directions, float64[P + 2, free], in which theta may move."""
    directions = np.eye(len(anchored))[:, ~np.array(anchored)]
    if not any(anchored):  # the complement of (1, ..., 1): the mean stays
        directions = np.linalg.svd(np.ones((1, len(anchored))))[2][1:].T
    shared = np.eye(len(anchored) + 2)[:, [-2] * fit_advantage + [-1] * fit_draw]
    return np.hstack([np.pad(directions, ((0, 2), (0, 0))), shared])


def _maximize(posterior: _Posterior, start: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Newton's method within the basis, each step halved until the posterior grows by a share of what it promised."""
    theta, value = start, posterior.value(start)
    weight = 1 + float((posterior.wins + posterior.draws + posterior.losses).sum())
    for _ in range(_MAX_STEPS):
        gradient, hessian = posterior.derivatives(theta)
        curvature, axes = np.linalg.eigh(-basis.T @ hessian @ basis)
        curvature = np.maximum(curvature, _ROUNDING * max(1.0, curvature.max(initial=0)))
        slope = axes.T @ (basis.T @ gradient)
        slope[np.abs(slope) < _ROUNDING * weight] = 0
        step = basis @ (axes @ (slope / curvature))
        promise = float(slope @ (slope / curvature))
        size = min(1.0, _LONGEST_STEP / max(np.abs(step).max(), _LONGEST_STEP))
        size = size if size * step[-1] >= -0.9 * theta[-1] else -0.9 * theta[-1] / step[-1]  # draw_elo stays above 0
        while posterior.value(theta + size * step) < value + 1e-4 * size * promise - 1e-12 * abs(value):
            size /= 2
        theta, value = theta + size * step, posterior.value(theta + size * step)
        if promise < _CONVERGED:
            return theta
    raise RuntimeError(f"ratings did not converge in {_MAX_STEPS} steps")


def _standard_deviations(hessian: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """float64[P + 2]: marginal standard deviations, 0 where nothing is free, infinite along what is unidentified."""
    curvature, axes = np.linalg.eigh(-basis.T @ hessian @ basis)
    axes = basis @ axes
    identified = curvature > max(_UNIDENTIFIED, _ROUNDING * curvature.max(initial=0))
    variance = (axes[:, identified] ** 2 / curvature[identified]).sum(1)
    return np.where((axes[:, ~identified] ** 2).sum(1) > 1e-8, np.inf, np.sqrt(variance))


def _f(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, x))


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
