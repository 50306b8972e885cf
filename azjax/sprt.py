"""Sequential tests: games are played until they decide between two Elo differences, and no longer.

Wald's sequential probability ratio test (1945), on pairs of games. The two games of an opening are not independent, so
what is counted is the pair's points, 0, 1/2, 1, 3/2 or 2 ("pentanomial"). The likelihoods are the greatest that a
distribution over these five can have while its mean is the one that the hypothesis says (Van den Bergh, "A practical
introduction to the GSPRT", 2019), as in the tests of Stockfish's developers.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

PAIR_POINTS = np.arange(5) / 4
"""Points a game of each kind of pair."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sprt:
    """The test of H0: a is elo0 stronger than b, against H1: it is elo1 stronger.

    Raises:
      ValueError: elo0 is not below elo1, a number is not finite, or alpha or beta is not within (0, 0.5).
    """

    elo0: float
    elo1: float
    alpha: float = 0.05  # how often H1 is accepted though H0 holds, at most (but for what is lost in steps)
    beta: float = 0.05  # how often H0 is accepted though H1 holds

    def __post_init__(self):
        if not (math.isfinite(self.elo0) and math.isfinite(self.elo1) and self.elo0 < self.elo1):
            raise ValueError(f"sprt: got {self.elo0:g},{self.elo1:g}, expected two Elo differences, the lower first")
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) < 0.5:
                raise ValueError(f"{name}: got {getattr(self, name)}, expected a number between 0 and 0.5")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which H0 and H1 are accepted: ln(beta / (1 - alpha)), ln((1 - beta) / alpha)."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def llr(self, pairs: Sequence[int] | np.ndarray) -> float:
        """Returns the log-likelihood ratio of H1 to H0.

        Args:
          pairs: how many pairs of games gave a 0, 1/2, 1, 3/2, 2 points.
        """
        counts = np.asarray(pairs, np.float64)
        if counts.sum() == 0:
            return 0.0
        # A kind of pair that has not come yet is not impossible.
        probs = np.maximum(counts, 1e-3) / np.maximum(counts, 1e-3).sum()
        tilts = [_tilt(probs, expected_score(elo)) for elo in (self.elo0, self.elo1)]
        return float(counts.sum() * np.sum(probs * np.log(tilts[0] / tilts[1])))

    def accepted(self, pairs: Sequence[int] | np.ndarray) -> str | None:
        """Returns "H0", "H1", or None while neither is."""
        llr, (lower, upper) = self.llr(pairs), self.bounds
        return "H0" if llr <= lower else "H1" if llr >= upper else None

    def to_json(self, pairs: Sequence[int] | np.ndarray) -> dict[str, Any]:
        """Gives {"elo0", "elo1", "alpha", "beta", "pentanomial", "llr", "bounds": [lower, upper], "accepted"}."""
        return dataclasses.asdict(self) | {
            "pentanomial": [int(count) for count in pairs],
            "llr": round(self.llr(pairs), 4),
            "bounds": [round(bound, 4) for bound in self.bounds],
            "accepted": self.accepted(pairs),
        }


def expected_score(elo: float) -> float:
    """Returns 1 / (1 + 10^(-elo / 400)), points a game."""
    return 1 / (1 + 10 ** (-elo / 400))


def count_pairs(returns: Sequence[float]) -> np.ndarray:
    """Returns int64[5], pairs of games by a's points.

    Args:
      returns: of games 2i and 2i + 1, which have the same opening, to a: above 0 won, below lost.
    """
    points = np.sign(np.asarray(returns)).astype(int).reshape(-1, 2) + 1  # twice the points of each game
    return np.bincount(points.sum(1), minlength=5)


def _tilt(probs: np.ndarray, mean: float) -> np.ndarray:
    """Returns 1 + t (x - mean) for the t with which probs / (1 + t (x - mean)) has this mean.

    That distribution is the likeliest of those with the mean, if `probs` are the frequencies seen.
    """
    offset = PAIR_POINTS - mean
    low, high = -1 / offset[-1], -1 / offset[0]  # between them all factors are positive
    for _ in range(100):  # the mean falls as t grows
        middle = (low + high) / 2
        if np.sum(probs * offset / (1 + middle * offset)) > 0:
            low = middle
        else:
            high = middle
    return 1 + (low + high) / 2 * offset
