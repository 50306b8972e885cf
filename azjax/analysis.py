"""What an agent thinks of a position, move by move, and of a whole game, ply by ply."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich import box
from rich.table import Table

from azjax.players import LoadedRun
from azjax.report import save_picture
from azjax.search import TreeSearch
from azjax.selfplay import network_model
from envs.chance import event_name, step_event
from envs.core import Game, State

MISTAKE = 0.2
"""A move that gives away this much value, of the 2 between a loss and a win, is listed as a mistake."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MoveView:
    """A move as the search sees it."""

    move: str
    prior: float
    visits: int
    q: float | None  # the mover's view, None if never tried


@dataclasses.dataclass(frozen=True, kw_only=True)
class PositionView:
    """A position as the search sees it; values are the view of the player to move, in [-1, 1]."""

    to_move: int
    value: float
    simulations: int
    moves: tuple[MoveView, ...]  # every legal one, the most visited first
    principal_variation: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Gives {"to_move", "value", "simulations", "moves": [{"move", "prior", "visits", "q"}], ...}."""
        return dataclasses.asdict(self)


class Analyst:
    """An agent that looks at positions of one game."""

    def __init__(self, game: Game, agent: LoadedRun, *, most_simulations: int):
        config = agent.config
        search = config.search
        self.game = game
        self._search = TreeSearch(
            game,
            network_model(config, game),
            agent.variables,
            capacity=most_simulations,
            chunk=min(32, most_simulations),
            c_init=search.c_init,
            c_base=search.c_base,
            c_puct=search.c_puct,
            slots=search.slots,
        )
        self._step, self._mask = jax.jit(functools.partial(step_event, game)), jax.jit(game.legal_action_mask)

    def look(self, state: State, *, simulations: int | None = None, seconds: float | None = None) -> PositionView:
        """Searches a position by PUCT, without noise.

        Args:
          state: not terminated, and no chance state.
          simulations: how many, at most `most_simulations`; None: all of them.
          seconds: stop after this time; None: no limit.

        Raises:
          ValueError: there is nothing to search.
        """
        if bool(self.game.terminated(state)):
            raise ValueError("position: the game is over there, expected one with a move to make")
        self._search.start(state)
        self._search.grow(simulations, seconds)
        seen = self._search.look()
        legal = np.flatnonzero(np.asarray(self._mask(state)))
        order = sorted(legal.tolist(), key=lambda action: (-seen.visits[action], -seen.prior[action]))
        return PositionView(
            to_move=int(self.game.to_move(state)),
            value=round(seen.value, 4),
            simulations=seen.simulations,
            moves=tuple(
                MoveView(
                    move=self.game.move_name(state, action),
                    prior=round(float(seen.prior[action]), 4),
                    visits=int(seen.visits[action]),
                    q=round(float(seen.qvalues[action]), 4) if seen.visits[action] else None,
                )
                for action in order
            ),
            principal_variation=tuple(self._line(state, seen.principal_variation)),
        )

    def _line(self, state: State, events: Sequence[int]) -> list[str]:
        names = []
        for event in events:
            names.append(event_name(self.game, state, event))
            state = self.step(state, event)
        return names

    def step(self, state: State, event: int) -> State:
        """Returns the position after a move, or after dice (num_actions + outcome)."""
        return self._step(state, jnp.int32(event))


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlyView:
    """A move of a game that was played."""

    ply: int
    player: int
    move: str
    best: str  # the agent's choice
    value: float  # of the position before it, player 0's view
    lost: float  # value of the agent's choice less that of the move played, the mover's view; 0 where they are one
    opening: bool = False  # a move that neither player chose


def review_game(
    analyst: Analyst,
    events: Sequence[int],
    *,
    simulations: int,
    opening_plies: int = 0,
    on_ply: Callable[[int, int], None] = lambda i, n: None,
) -> tuple[PlyView, ...]:
    """Looks at every position of a game in which a move was made.

    What a move is worth is asked of the position after it, searched as long as the one before: so a move that the
    search never tried is judged as well as one that it liked.

    Args:
      analyst: who looks.
      events: actions, and num_actions + outcome where dice were rolled.
      simulations: of each search.
      opening_plies: so many of the first events were chosen by neither player.
      on_ply: called with (events done, events).
    """
    game = analyst.game
    state = game.init(jax.random.key(0))
    seen: list[tuple[int, State, int, PositionView]] = []
    for number, event in enumerate(events):
        on_ply(number, len(events))
        if event < game.num_actions:
            seen.append((number, state, event, analyst.look(state, simulations=simulations)))
        state = analyst.step(state, event)
    worth = {number: view.value if view.to_move == 0 else -view.value for number, _, _, view in seen}
    if bool(game.terminated(state)):
        worth[len(events)] = float(game.returns(state)[0])
    plies = []
    for index, (number, before, event, view) in enumerate(seen):
        following = seen[index + 1][0] if index + 1 < len(seen) else len(events)
        sign = 1 if view.to_move == 0 else -1
        move, best = game.move_name(before, event), view.moves[0].move
        after = worth.get(following)
        lost = 0.0 if move == best or after is None else max(0.0, view.value - sign * after)
        plies.append(
            PlyView(
                ply=number + 1,
                player=view.to_move,
                move=move,
                best=best,
                value=round(sign * view.value, 4),
                lost=round(lost, 4),
                opening=number < opening_plies,
            )
        )
    return tuple(plies)


def mistakes(plies: Sequence[PlyView], most: int = 5) -> list[PlyView]:
    """Returns the plies that lost at least MISTAKE, the worst first; openings are nobody's."""
    lost = (ply for ply in plies if ply.lost >= MISTAKE and not ply.opening)
    return sorted(lost, key=lambda ply: -ply.lost)[:most]


def position_table(view: PositionView, most: int) -> Table:
    """Lays a position out for people."""
    notes = [f"expects {' '.join(view.principal_variation)}"]
    if untried := sum(not move.visits for move in view.moves):
        notes.append(f"{untried} of {len(view.moves)} moves without a visit: their priors are too low to be tried")
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=f"value {view.value:+.3f} for the player to move, {view.simulations} simulations",
        caption="\n".join(notes),
        title_justify="left",
        caption_justify="left",
    )
    for heading in ("move", "prior", "visits", "Q"):
        table.add_column(heading, justify="left" if heading == "move" else "right")
    for move in view.moves[:most]:
        table.add_row(move.move, f"{move.prior:.1%}", f"{move.visits}", "" if move.q is None else f"{move.q:+.3f}")
    return table


def value_curve(path: Path, plies: Sequence[PlyView], title: str) -> None:
    """Draws the value of a game's positions, player 0's view, with its mistakes (PNG)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.5), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.axhline(0, color="0.7", linewidth=0.8)
    axes.plot([ply.ply for ply in plies], [ply.value for ply in plies], color="C0", linewidth=1.5)
    for ply in mistakes(plies):
        axes.plot(ply.ply, ply.value, "o", color="C3")
        axes.annotate(ply.move, (ply.ply, ply.value), textcoords="offset points", xytext=(4, 6), color="C3")
    axes.set(xlabel="ply", ylabel="value for the first player", ylim=(-1.08, 1.08), title=title.replace("$", r"\$"))
    save_picture(path, canvas)
