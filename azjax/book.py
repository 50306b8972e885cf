"""Openings in the eyes of a run: how often its checkpoints begin so in self-play, and what it prefers along each line.

The first is the AlphaZero paper's Table 2 (Silver et al. 2018): prevalence of human openings over training, with the
principal variation from each.
"""

import collections
import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich import box
from rich.table import Table
from rich.text import Text

from azjax.analysis import Analyst
from azjax.arena import ask
from azjax.config import RunConfig
from azjax.curves import COLORS, MARKERS, plain, tidy
from azjax.expansion import check_no_chance, size
from azjax.openings import Opening, rules
from azjax.players import ChooseFn, LoadedRun, Player
from azjax.report import save_json, save_picture
from azjax.selfplay import search_policy
from envs.core import Game, State


@dataclasses.dataclass(frozen=True, kw_only=True)
class BookMove:
    """A move of an opening beside what the agent's search makes of its position."""

    move: str
    prior: float
    visits: float  # share of the search's visits
    preferred: str  # the most visited move


@dataclasses.dataclass(frozen=True, kw_only=True)
class BookLine:
    """An opening as an agent sees it."""

    name: str
    moves: tuple[BookMove, ...]
    prevalence: tuple[float, ...]  # share of self-play games that begin so, of each checkpoint
    value: float  # of the position after it, player 0's view
    principal_variation: tuple[str, ...]  # from there on

    def to_json(self) -> dict[str, Any]:
        """Gives the fields, and those of each move."""
        return dataclasses.asdict(self)


def selfplay_beginnings(
    game: Game, agent: LoadedRun, *, games: int, plies: int, mesh: Mesh, seed: int = 0
) -> np.ndarray:
    """Returns int32[games, plies], how games of an agent's self-play begin; -1 after the end of one.

    Noise and temperature are those of the run's training; random opening moves (`selfplay.opening_plies`) are left out.

    Args:
      game: without chance.
      agent: who plays; its configuration says the noise (`azjax.train.resolve`).
      games: how many.
      plies: of each.
      mesh: devices to use.
      seed: of the noise and of the moves drawn.
    """
    check_no_chance(game)
    config = agent.config
    step = jax.jit(jax.vmap(game.step))
    terminated = jax.jit(jax.vmap(game.terminated))
    states: State = jax.vmap(game.init)(jax.random.split(jax.random.key(seed), games))
    moves = np.full((games, plies), -1, np.int32)
    for ply in range(plies):
        going = ~np.asarray(terminated(states))
        drawn = ply < config.selfplay.temperature_plies
        player = Player("self-play", _explorer(game, config, drawn), agent.variables)
        chosen = ask(player, states, mesh, seed=seed * plies + ply)
        moves[going, ply] = chosen[going]
        states = step(states, chosen)
    return moves


@functools.lru_cache
def _explorer(game: Game, config: RunConfig, drawn: bool) -> ChooseFn:
    policy = search_policy(config, game, explore=True)
    temperature = config.selfplay.temperature if drawn else 0.0

    def choose(params: Any, rng_key: jax.Array, states: State) -> jax.Array:
        return policy(params, rng_key, states, jnp.full((size(states),), temperature)).action

    return choose


def most_played(game: Game, beginnings: np.ndarray, most: int) -> tuple[Opening, ...]:
    """Returns the most frequent beginnings int32[games, plies] as openings, named by their moves.

    Games that are over by then are left out: no move follows them.
    """
    counted = collections.Counter(tuple(moves) for moves in beginnings.tolist() if min(moves) >= 0)
    openings: list[Opening] = []
    for actions, _ in counted.most_common():
        if len(openings) == most:
            break
        state, names = game.init(jax.random.key(0)), []
        for action in actions:
            names.append(game.move_name(state, action))
            state = rules(game)[0](state, np.int32(action))
        if not bool(game.terminated(state)):
            openings.append(Opening(" ".join(names), actions))
    return tuple(openings)


def prevalence(beginnings: np.ndarray, openings: Sequence[Opening]) -> list[float]:
    """Returns the share of beginnings int32[games, plies] that each opening is the start of, move by move."""
    return [float((beginnings[:, : len(o.actions)] == np.array(o.actions)).all(1).mean()) for o in openings]


def read_lines(
    analyst: Analyst,
    openings: Sequence[Opening],
    shares: Sequence[Sequence[float]],
    simulations: int,
    on_line: Callable[[int, int], None] = lambda done, number: None,
) -> list[BookLine]:
    """Searches every position of every opening.

    Args:
      analyst: who looks.
      openings: none of which ends the game.
      shares: of each opening, its prevalence in each checkpoint.
      simulations: of each search.
      on_line: called with (openings done, openings).
    """
    game, lines = analyst.game, []
    for number, (opening, of_each) in enumerate(zip(openings, shares, strict=True)):
        on_line(number, len(openings))
        state, moves = game.init(jax.random.key(0)), []
        for action in opening.actions:
            view = analyst.look(state, simulations=simulations)
            name = game.move_name(state, action)
            move = next(move for move in view.moves if move.move == name)
            visits = move.visits / max(sum(other.visits for other in view.moves), 1)
            moves.append(BookMove(move=name, prior=move.prior, visits=round(visits, 4), preferred=view.moves[0].move))
            state = analyst.step(state, action)
        view = analyst.look(state, simulations=simulations)
        lines.append(
            BookLine(
                name=opening.name,
                moves=tuple(moves),
                prevalence=tuple(round(share, 5) for share in of_each),
                value=view.value if view.to_move == 0 else -view.value,
                principal_variation=view.principal_variation,
            )
        )
    return lines


def book_table(lines: Sequence[BookLine]) -> Table:
    """Lays the openings out for a terminal: prevalence at the last checkpoint, and where the agent would leave them."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("opening", "agent", "and then"):
        table.add_column(heading, overflow="fold")
    for heading in ("self-play", "value"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in lines:
        leaves = [f"{m.preferred} for {m.move} ({ply})" for ply, m in enumerate(line.moves, 1) if m.move != m.preferred]
        cells = line.name, leaves[0] if leaves else "plays it", " ".join(line.principal_variation[:8])
        table.add_row(*map(Text, cells), f"{line.prevalence[-1]:.1%}", f"{line.value:+.2f}")
    return table


def write_book(
    directory: Path, lines: Sequence[BookLine], steps: Sequence[int], about: dict[str, Any], title: str
) -> None:
    """Draws the prevalence of each opening over the checkpoints: openings.png, and openings.json with `about`.

    Args:
      directory: where both go.
      lines: at least one.
      steps: of the checkpoints, as `BookLine.prevalence` has them.
      about: more fields of the file.
      title: stands above the picture.
    """
    columns = min(4, len(lines))
    high = -(-len(lines) // columns)
    figure = Figure(figsize=(3 * columns, 2.2 * high + 0.5), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels = np.atleast_1d(figure.subplots(high, columns, sharex=True, sharey=True)).flat
    top = max(0.02, *(share for line in lines for share in line.prevalence))
    for number, (axes, line) in enumerate(zip(panels, lines, strict=False)):
        color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
        axes.plot(steps, line.prevalence, color=color, marker=marker, markersize=4)
        axes.set_title(plain(line.name), fontsize="small")
        axes.set_ylim(0, 1.08 * top)
        axes.yaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
        tidy(axes)
    for axes in figure.axes[len(lines) :]:
        axes.set_visible(False)
    figure.supxlabel("training step")
    figure.supylabel("share of self-play games")
    figure.suptitle(title)
    save_picture(directory / "openings.png", canvas)
    listed = [line.to_json() for line in lines]
    save_json(directory / "openings.json", about | {"steps": list(steps), "openings": listed})
