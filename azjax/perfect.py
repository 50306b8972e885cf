"""How perfectly a player plays: the share of its moves that keep a position's exact value, ply by ply."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh
from rich import box
from rich.table import Table

from azjax.arena import ask
from azjax.expansion import random_positions, rows, size
from azjax.oracle import ValuesFn
from azjax.players import RESIGNS, Player
from azjax.rating import score_interval
from envs.core import Game


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlyShare:
    """A player's moves in positions of one ply, or of all."""

    ply: int | None  # moves made before; None: all plies
    positions: int
    kept: int  # in how many the value was kept
    critical: int  # positions in which some legal move gives value away
    critical_kept: int

    def to_json(self) -> dict[str, Any]:
        """Gives the fields, "share" and "critical_share", and their intervals "ci95", "critical_ci95"; null of none."""
        shares: dict[str, Any] = {}
        for name, kept, number in (("", self.kept, self.positions), ("critical_", self.critical_kept, self.critical)):
            share, lo, hi = score_interval(kept, 0, number - kept) if number else (None, None, None)
            shares |= {f"{name}share": share, f"{name}ci95": [lo, hi] if number else None}
        return dataclasses.asdict(self) | shares


def kept_values(
    game: Game,
    player: Player,
    values: ValuesFn,
    mesh: Mesh,
    *,
    positions: int = 2000,
    seed: int = 0,
    first_ply: int = 0,
) -> list[PlyShare]:
    """Asks a player about different positions of random games.

    Positions of random games and not of the player's own: there, a player that plays well meets few critical ones, and
    two players are asked about different ones.

    Args:
      game: without chance.
      player: plays once in each.
      values: of `azjax.oracle.oracle`.
      mesh: devices to use.
      positions: at most, spread evenly over the plies.
      seed: of the games and of the player's choices.
      first_ply: positions of earlier plies are left out, whose values may be out of reach.

    Returns:
      A share for each ply, and one for all at the end.
    """
    found = random_positions(game, max(64, positions // 4), seed)
    late = np.flatnonzero(found.ply >= first_ply)
    chosen = late[_spread(found.ply[late], positions, np.random.default_rng(seed))]
    states, plies = rows(found.states, chosen), found.ply[chosen]
    worth = values(states)
    moves = ask(player, states, mesh, seed)
    best = worth.max(1)
    kept = (worth[np.arange(size(states)), moves] == best) & (moves != RESIGNS)
    critical = np.where(np.isneginf(worth), np.inf, worth).min(1) < best

    def share(ply: int | None, those: np.ndarray) -> PlyShare:
        return PlyShare(
            ply=ply,
            positions=int(those.sum()),
            kept=int((kept & those).sum()),
            critical=int((critical & those).sum()),
            critical_kept=int((kept & critical & those).sum()),
        )

    return [*(share(int(ply), plies == ply) for ply in np.unique(plies)), share(None, np.ones(len(plies), bool))]


def _spread(plies: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Returns indices of `number` positions at most, as many of each ply as there are or as of the other plies."""
    order = rng.permutation(len(plies))
    # The k-th position of its ply, for each position in this order: those with small k come first.
    turn = np.zeros(len(plies), int)
    for ply in np.unique(plies):
        those = plies[order] == ply
        turn[those] = np.arange(those.sum())
    return np.sort(order[np.argsort(turn, kind="stable")][:number])


def kept_table(shares: Sequence[PlyShare], title: str) -> Table:
    """Lays the shares out for a terminal."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for heading in ("ply", "positions", "value kept", "critical", "value kept", "95 % interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    for share in shares:
        said = share.to_json()
        cells = [f"{said[name]:.1%}" if said[name] is not None else "" for name in ("share", "critical_share")]
        ends = said["critical_ci95"]
        interval = f"{ends[0]:.1%} – {ends[1]:.1%}" if ends else ""
        ply = "all" if share.ply is None else f"{share.ply}"
        table.add_row(ply, f"{share.positions:,}", cells[0], f"{share.critical:,}", cells[1], interval)
    return table
