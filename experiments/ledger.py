"""Matches of an experiment, kept in a file as they are played: run again, an experiment plays only what is missing."""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from jax.sharding import Mesh

from azjax.arena import play_match
from azjax.openings import Opening
from azjax.outside import AnyPlayer, OutsidePlayer
from azjax.rating import PairResult
from azjax.tournament import match_json, pair_results
from envs.core import Game
from experiments.provenance import say


class Ledger:
    """The matches in one file of JSON lines.

    A match is known by its game, its players' names, games, seed and openings; so a name must say all that decides how
    its player plays, and the file lies beside the runs that the names speak of.
    """

    def __init__(self, path: Path):
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def find(self, key: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the row of a match that was played."""
        return next((row for row in self.rows if row["key"] == key), None)

    def play(
        self,
        game: Game,
        a: str,
        b: str,
        player: Callable[[str], AnyPlayer],
        *,
        games: int,
        mesh: Mesh,
        seed: int = 0,
        opening_plies: int = 2,
        openings: Sequence[Opening] | None = None,
    ) -> dict[str, Any]:
        """Returns {"key", "match": match_json, "pairs": results by who moved first}; plays the match if it is missing.

        Args:
          game, games, mesh, seed, opening_plies, openings: as `play_match`.
          a, b: names of the players.
          player: makes one by its name; asked only when the match is to be played.
        """
        opened = [opening.name for opening in openings] if openings is not None else opening_plies
        key = {"game": game.id, "a": a, "b": b, "games": games, "seed": seed, "openings": opened}
        if known := self.find(key):
            return known
        match = play_match(
            game,
            player(a),
            player(b),
            games=games,
            mesh=mesh,
            seed=seed,
            opening_plies=opening_plies,
            openings=openings,
        )
        pairs = [dataclasses.asdict(result) for result in pair_results(match.records)]
        row = {"key": key, "match": match_json(match), "pairs": pairs}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)
        say(f"{a} against {b}: {match.wins} won, {match.draws} drawn, {match.losses} lost, {match.seconds:.0f} s")
        return row


def results(rows: Iterable[dict[str, Any]]) -> list[PairResult]:
    """Returns the results of matches as ratings take them."""
    return [PairResult(**result) for row in rows for result in row["pairs"]]


class Roster:
    """Players made when they are first asked for; engines end with it."""

    def __init__(self, make: Callable[[str], AnyPlayer]):
        self._make = functools.lru_cache(maxsize=None)(make)
        self._outside: dict[str, OutsidePlayer] = {}

    def __call__(self, name: str) -> AnyPlayer:
        player = self._make(name)
        if isinstance(player, OutsidePlayer):
            self._outside[name] = player
        return player

    def __enter__(self) -> "Roster":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        for player in self._outside.values():
            player.close()
