"""What each checkpoint of a run has learned, on one fixed set of positions that nobody was trained on.

top_1   how often the network's likeliest move is the choice of the last checkpoint's long search
winner  how often the network's value knows who will win

The positions are all plies of games that the last checkpoint plays against itself after training: without noise, moves
drawn by visit counts while self-play drew them, the most visited later.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from azjax.config import RunConfig
from azjax.curves import COLORS, tidy
from azjax.expansion import check_no_chance
from azjax.network import evaluate
from azjax.players import LoadedRun
from azjax.report import save_json, save_picture
from azjax.search import first_argmax, mask_logits
from azjax.selfplay import draw_move, search_policy
from azjax.step import AXIS, make_mesh
from azjax.targets import outcome_for
from azjax.types import Variables
from envs.core import Game, State

TITLES = {"top_1": "the policy's first choice is the long search's", "winner": "the winner is predicted"}


class HeldOut(NamedTuple):
    """Games of one agent, side by side: T plies of B games."""

    states: State  # numpy [T, B], before the move
    best: np.ndarray  # int32[T, B], the search's first choice
    playing: np.ndarray  # bool[T, B], False once the game is over
    actions: np.ndarray  # int32[T, B], the move played
    returns: np.ndarray  # float32[B, 2], entry i player i's


class Share(NamedTuple):
    """A share of positions and its 95 % interval; NaN where no position counts."""

    value: float
    low: float
    high: float


def play_held_out(game: Game, agent: LoadedRun, games: int, seed: int, simulations: int | None = None) -> HeldOut:
    """Plays an agent against itself, all games side by side on the devices.

    Args:
      game: without chance.
      agent: who plays.
      games: how many.
      seed: of the moves drawn.
      simulations: of each search; None: the run's own.
    """
    check_no_chance(game)
    most = len(jax.devices())
    mesh = make_mesh(next(number for number in range(most, 0, -1) if games % number == 0))
    play = _ply(game, agent.config, mesh, simulations)
    init_key, key = jax.random.split(jax.random.key(seed))
    states = jax.vmap(game.init)(jax.random.split(init_key, games))
    terminated = jax.jit(jax.vmap(game.terminated))
    rows = []
    for number in range(game.max_plies):
        playing = ~np.asarray(terminated(states))
        if not playing.any():
            break
        drawn = number < agent.config.selfplay.temperature_plies
        temperature = np.float32(agent.config.selfplay.temperature if drawn else 0)
        moved, best, actions = play(agent.variables, jax.random.fold_in(key, number), states, temperature)
        rows.append((jax.device_get(states), np.asarray(best), playing, np.asarray(actions)))
        states = moved
    before, best, playing, actions = zip(*rows, strict=True)
    return HeldOut(
        states=jax.tree.map(lambda *leaves: np.stack(leaves), *before),
        best=np.stack(best),
        playing=np.stack(playing),
        actions=np.stack(actions),
        returns=np.asarray(jax.vmap(game.returns)(states)),
    )


def _ply(
    game: Game, config: RunConfig, mesh: Mesh, simulations: int | None
) -> Callable[..., tuple[State, jax.Array, jax.Array]]:
    """Compiles a move in every game: (states afterwards, the search's first choice, the move played)."""
    search = search_policy(config, game, explore=False, simulations=simulations)

    def play(variables: Variables, rng_key: jax.Array, states: State, temperature: jax.Array) -> Any:
        rng_key = jax.random.fold_in(rng_key, jax.lax.axis_index(AXIS))
        search_key, move_key = jax.random.split(rng_key)
        output = search(variables, search_key, states, jnp.zeros(()))
        action = draw_move(move_key, output, temperature)
        return jax.vmap(game.step)(states, action), output.action, action

    equal, split = PartitionSpec(), PartitionSpec(AXIS)
    mapped = jax.shard_map(
        play, mesh=mesh, in_specs=(equal, equal, split, equal), out_specs=(split, split, split), check_vma=False
    )
    return jax.jit(mapped)


def judge(game: Game, config: RunConfig) -> Callable[[Variables, HeldOut], dict[str, Share]]:
    """Returns a function of a network's variables and the games: its top-1 agreement and its winner prediction.

    Of drawn games and of those that were cut off no winner is asked.
    """

    @jax.jit
    def look(variables: Variables, states: State, best: jax.Array, returns: jax.Array) -> tuple[jax.Array, jax.Array]:
        def ply(row: tuple[State, jax.Array]) -> tuple[jax.Array, jax.Array]:
            states, best = row
            logits, value = evaluate(config.network, game, variables, jax.random.key(0), states)
            legal = jax.vmap(game.legal_action_mask)(states)
            outcome = outcome_for(returns, jax.vmap(game.to_move)(states))
            return jax.vmap(first_argmax)(mask_logits(logits, legal)) == best, value * outcome > 0

        return jax.lax.map(ply, (states, best))

    def judged(variables: Variables, games: HeldOut) -> dict[str, Share]:
        agrees, knows = look(variables, games.states, games.best, games.returns)
        decided = games.playing & (games.returns[:, 0] != 0)
        return {"top_1": share(np.asarray(agrees), games.playing), "winner": share(np.asarray(knows), decided)}

    return judged


def share(hits: np.ndarray, counted: np.ndarray) -> Share:
    """Returns the share of hits among the counted positions bool[T, B], its interval from how much games differ.

    Positions of one game are alike, so that games and not positions are taken for independent: the deviation is
    sqrt(sum over games of (hits - share * plies)^2) / positions, that of a ratio of two sums over games.
    """
    hits_of, plies_of = (hits & counted).sum(0), counted.sum(0)
    if not plies_of.any():
        return Share(math.nan, math.nan, math.nan)
    value = float(hits_of.sum() / plies_of.sum())
    deviation = math.sqrt(float(((hits_of - value * plies_of) ** 2).sum())) / float(plies_of.sum())
    return Share(value, max(value - 1.96 * deviation, 0.0), min(value + 1.96 * deviation, 1.0))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Generation:
    """What one checkpoint knows of the fixed positions."""

    step: int
    top_1: Share
    winner: Share

    def to_json(self) -> dict[str, Any]:
        """Gives {"step", "top_1", "top_1_ci95", "winner", "winner_ci95"}; null where no position counts."""
        found: dict[str, Any] = {"step": self.step}
        for name in TITLES:
            value, low, high = (None if math.isnan(end) else round(end, 4) for end in getattr(self, name))
            found |= {name: value, f"{name}_ci95": [low, high]}
        return found


def judge_generations(game: Game, agents: Sequence[LoadedRun], games: HeldOut) -> list[Generation]:
    """Returns what each agent of one run knows of the positions."""
    judged = judge(game, agents[0].config)
    return [Generation(step=agent.step, **judged(agent.variables, games)) for agent in agents]


def write_generations(directory: Path, rows: Sequence[Generation], about: dict[str, Any], title: str) -> None:
    """Draws both shares over the checkpoints: generations.png, and generations.json with `about` beside the rows."""
    figure = Figure(figsize=(9, 4), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    for axes, (name, meaning), color in zip(figure.subplots(1, 2), TITLES.items(), COLORS, strict=False):
        shares = np.array([getattr(row, name) for row in rows])
        spread = (shares[:, 0] - shares[:, 1], shares[:, 2] - shares[:, 0])
        axes.errorbar([row.step for row in rows], shares[:, 0], spread, color=color, marker="o", capsize=3)
        axes.set(xlabel="training step", title=meaning, ylim=(0, 1))
        axes.yaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
        tidy(axes)
    figure.suptitle(title)
    save_picture(directory / "generations.png", canvas)
    save_json(directory / "generations.json", about | {"generations": [row.to_json() for row in rows]})
