"""One game at a time: sequential halving whose phases run side by side, beside the same search one after the other."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import envs
from azjax import network
from azjax.bench.report import comparison
from azjax.bench.turns import in_turns
from azjax.config import NetworkConfig, RunConfig, SearchConfig
from azjax.selfplay import search_policy
from envs.random_games import random_games

ROUNDS = 15
PLIES = 8
"""Random plies before the position that is searched."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What is searched."""

    game: str
    network: NetworkConfig
    simulations: int

    def __str__(self) -> str:
        net = self.network
        size = f"{net.blocks}x{net.channels}" if net.kind == "resnet" else f"{net.blocks}x{net.width}"
        return f"search gumbel parallel {self.game} N={self.simulations} B=1, {net.kind} {size}"


SETTINGS = (
    Setting(game="crosshair", network=NetworkConfig(kind="mlp"), simulations=64),
    Setting(game="go_9x9", network=NetworkConfig(kind="resnet", blocks=6, channels=64), simulations=64),
)


def bench_parallel(setting: Setting, say: Callable[[str], None]) -> dict[str, Any]:
    """Measures milliseconds a move with `search.parallel` on and off, in turns: a row, whose reference is "off".

    The network has fresh weights; the medians are of ROUNDS moves from one position.
    """
    game = envs.make(setting.game)
    say(f"{setting}: compiling")
    variables = network.init(setting.network, game, jax.random.key(0))
    turns = random_games(game, jax.random.split(jax.random.key(1), 1), np.random.default_rng(0))
    state = next(turn.state for turn in turns if turn.number == PLIES)
    programs = []
    for parallel in (True, False):
        search = SearchConfig(algorithm="gumbel", simulations=setting.simulations, parallel=parallel)
        config = RunConfig(game=setting.game, network=setting.network, search=search)
        programs.append(jax.jit(search_policy(config, game, explore=False)))

    def moves(program: Callable) -> Callable[[int], Callable[[], Any]]:
        return lambda turn: lambda: program(variables, jax.random.key(turn), state, jnp.zeros(()))

    ours, reference = (seconds * 1000 for seconds in in_turns([moves(program) for program in programs], ROUNDS))
    return comparison(str(setting), ours, reference, "one after the other", "ms a move", lower_is_better=True)
