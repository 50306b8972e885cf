"""Strength against thinking: players rated at several numbers of simulations, with the time that a move takes them."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator, StrMethodFormatter

from azjax.curves import COLORS, MARKERS, finite, plain, tidy
from azjax.expansion import random_positions, rows, size
from azjax.outside import AnyPlayer
from azjax.players import Player, parse_player
from azjax.rating import Ratings
from azjax.report import save_json, save_picture
from envs.core import Game

_MOVES = 12
"""Moves of which the time is taken, each in another position."""
_TRIES = 3
"""Of each move: other work on the machine makes a try slower, never faster."""


_BUDGETS = {"run": "simulations", "agent": "simulations", "alphabeta": "evaluations"}
"""What a player's word calls its number of evaluations of the network."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scaled:
    """A player at one number of simulations."""

    player: str  # without the number
    word: str  # with it
    simulations: int  # of alpha-beta: evaluations


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScalingPoint:
    """How strong a player is at one number of simulations, and what a move takes."""

    player: str
    simulations: int
    seconds_a_move: float  # one game alone
    elo: float
    lo: float  # the ends of the 95 % interval, infinite where unknown
    hi: float


def at_simulations(words: Sequence[str], numbers: Sequence[int]) -> list[Scaled]:
    """Returns every searching player at each of the numbers; others, such as `random`, are left out.

    Raises:
      ValueError: a word is malformed.
    """
    scaled = []
    for word in words:
        spec = parse_player(word)
        options = [f"{name}={value}" for name, value in spec.options if name not in _BUDGETS.values()]
        if spec.kind == "uct":
            base = ",".join(["uct", *options])
            scaled += [Scaled(player=base, word=",".join([f"uct:{n}", *options]), simulations=n) for n in numbers]
        elif spec.kind in _BUDGETS and "search=policy" not in options:
            base, budget = ",".join([f"{spec.kind}:{spec.argument}", *options]), _BUDGETS[spec.kind]
            scaled += [Scaled(player=base, word=f"{base},{budget}={n}", simulations=n) for n in numbers]
    return scaled


def seconds_a_move(game: Game, player: Player) -> float:
    """Returns the time of a move in one game, on one device: the median over positions of the best of three tries."""
    positions = random_positions(game, 8, 0)
    states = rows(positions.states, np.linspace(0, size(positions.states) - 1, _MOVES).astype(int))
    choose, taken = jax.jit(player.choose), []
    for number in range(_MOVES):
        state = jax.device_put(rows(states, slice(number, number + 1)))
        tries = []
        for _ in range(_TRIES + (number == 0)):  # the very first one compiles, and is no minimum
            started = time.perf_counter()
            jax.block_until_ready(choose(player.params, jax.random.key(number), state))
            tries.append(time.perf_counter() - started)
        taken.append(min(tries))
    return float(np.median(taken))


def scaling_points(
    game: Game, scaled: Sequence[Scaled], players: Sequence[AnyPlayer], ratings: Ratings
) -> list[ScalingPoint]:
    """Returns a point for each of `scaled`, whose players are found by their names."""
    by_name = {player.name: player for player in players if isinstance(player, Player)}
    rated = {player.name: player for player in ratings.players}
    points = []
    for one in scaled:
        lo, hi = rated[one.word].ci95
        points.append(
            ScalingPoint(
                player=one.player,
                simulations=one.simulations,
                seconds_a_move=seconds_a_move(game, by_name[one.word]),
                elo=rated[one.word].elo,
                lo=lo,
                hi=hi,
            )
        )
    return points


def write_scaling(directory: Path, points: Sequence[ScalingPoint], title: str) -> None:
    """Draws Elo against simulations and against the time of a move, both on logarithmic scales: scaling.png and .json.

    It is the AlphaZero paper's Figure 2 (Silver et al. 2018), "scalability with thinking time", for any players.
    """
    figure = Figure(figsize=(11, 4.5), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    for number, name in enumerate(dict.fromkeys(point.player for point in points)):
        those = sorted((point for point in points if point.player == name), key=lambda point: point.simulations)
        elo = np.array([point.elo for point in those])
        ends = [[finite(getattr(point, end)) for point in those] for end in ("lo", "hi")]
        lo, hi = (np.where([e is None for e in side], elo, [e or 0.0 for e in side]) for side in ends)
        style = {"color": COLORS[number % len(COLORS)], "marker": MARKERS[number % len(MARKERS)], "capsize": 3}
        for axes, values in ((left, [p.simulations for p in those]), (right, [p.seconds_a_move for p in those])):
            axes.errorbar(values, elo, (elo - lo, hi - elo), label=plain(name), linewidth=1.5, **style)
    for axes, name in ((left, "simulations"), (right, "seconds a move")):
        axes.set_xscale("log")
        axes.set(xlabel=name)
        axes.xaxis.set_minor_formatter(NullFormatter())
        tidy(axes)
    left.xaxis.set_major_locator(FixedLocator(sorted({point.simulations for point in points})))
    left.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    left.xaxis.set_minor_locator(NullLocator())
    right.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    right.xaxis.set_major_formatter(StrMethodFormatter("{x:.3g}"))
    left.set(ylabel="Elo, with its 95 % interval")
    left.legend(loc="best", frameon=False, fontsize="small")
    figure.suptitle(title)
    save_picture(directory / "scaling.png", canvas)
    listed = [dataclasses.asdict(point) | {"lo": finite(point.lo), "hi": finite(point.hi)} for point in points]
    save_json(directory / "scaling.json", {"title": title, "points": listed})
