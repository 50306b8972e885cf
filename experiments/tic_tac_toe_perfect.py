"""Does a trained agent ever lose at tic-tac-toe? Plays it against every possible sequence of replies, from both seats.

    azjax train tic_tac_toe --preset quick
    python -m experiments.tic_tac_toe_perfect --run runs/tic_tac_toe-quick --simulations 64

The agent plays without noise, so that its move in a position is always the same: the games below are all there are.
"""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

import envs
from azjax.players import Player, run_player
from azjax.rundir import load_run
from azjax.train import use_devices
from envs.core import Game, State

CHUNK = 512
"""Positions the agent is asked about in one call."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcomes:
    """Games by their result, the agent's view."""

    wins: int = 0
    draws: int = 0
    losses: int = 0


def play_every_reply(game: Game, player: Player, seat: int) -> Outcomes:
    """Plays `player` in `seat` (0 or 1) against every sequence of replies."""
    choose, step = jax.jit(player.choose), jax.jit(jax.vmap(game.step))
    ask = jax.jit(lambda states: tuple(jax.vmap(f)(states) for f in (game.terminated, game.returns, game.to_move)))
    legal = jax.jit(jax.vmap(game.legal_action_mask))
    states = jax.tree.map(lambda leaf: leaf[None], game.init(jax.random.key(0)))
    outcomes = Outcomes()
    while (number := len(jax.tree.leaves(states)[0])) > 0:
        over, returns, mover = map(np.asarray, ask(states))
        results = returns[over, seat]
        outcomes = Outcomes(
            wins=outcomes.wins + int((results > 0).sum()),
            draws=outcomes.draws + int((results == 0).sum()),
            losses=outcomes.losses + int((results < 0).sum()),
        )
        if over.any():
            states = _rows(states, np.flatnonzero(~over))
        elif mover[0] == seat:
            states = step(
                states, jnp.concatenate([_choose(choose, player, states, at) for at in range(0, number, CHUNK)])
            )
        else:
            row, action = np.nonzero(np.asarray(legal(states)))
            states = step(_rows(states, row), jnp.asarray(action, jnp.int32))
    return outcomes


def _rows(states: State, rows: np.ndarray) -> State:
    return jax.tree.map(lambda leaf: leaf[rows], states)


def _choose(choose: Any, player: Player, states: State, start: int) -> jax.Array:
    """Asks for the actions of CHUNK positions from `start` on; the last call repeats its last position."""
    number = len(jax.tree.leaves(states)[0])
    rows = np.minimum(np.arange(start, start + CHUNK), number - 1)
    return choose(player.params, jax.random.key(0), _rows(states, rows))[: number - start]


def main(run: Path, simulations: int = 64) -> None:
    """Prints wins, draws and losses of the agent in `run` from each seat."""
    use_devices()
    game = envs.make("tic_tac_toe")
    player = run_player(game, load_run(str(run), None), f"run:{run}", {"simulations": str(simulations)})
    for seat in (0, 1):
        print(f"seat {seat}: {play_every_reply(game, player, seat)}", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
