"""Tournaments: matches between pairs of players, and their results as ratings take them."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh

from azjax.arena import Match, play_match, summarize
from azjax.openings import Opening
from azjax.outside import AnyPlayer
from azjax.rating import PairResult, score_interval
from azjax.sprt import Sprt, count_pairs
from envs.core import Game
from envs.record import GameRecord


def round_robin(
    game: Game,
    players: Sequence[AnyPlayer],
    *,
    games: int,
    mesh: Mesh,
    seed: int = 0,
    opening_plies: int = 2,
    openings: Sequence[Opening] | None = None,
    lanes: int = 512,
    pairs: Sequence[tuple[int, int]] | None = None,
    on_match: Callable[[Match], None] = lambda match: None,
    on_progress: Callable[[int, int], None] = lambda done, games: None,
) -> tuple[list[Match], list[PairResult]]:
    """Plays a match between each two players.

    Every match has the same openings, so that players are compared on the same positions.

    Args:
      game: the rules.
      players: at least two, of different names.
      games: of each match, an even number.
      mesh: devices to use.
      seed: of openings and of random choices: the same arguments give the same games.
      opening_plies: random plies before the players take over.
      openings: these in turn, in place of random ones.
      lanes: games side by side, at most.
      pairs: indices into `players` of those who meet; None for everyone against everyone.
      on_match: called after each match.
      on_progress: as `play_match`, in each of them.

    Returns:
      The matches in the order of `pairs`, and their results by who moved first.

    Raises:
      ValueError: fewer than two players, a name that comes twice, or an odd number of games.
    """
    names = [player.name for player in players]
    if len(names) < 2:
        raise ValueError(f"players: got {len(names)}, expected at least 2")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"players: got {name} twice, expected different players")
    matches, results = [], []
    for first, second in itertools.combinations(range(len(players)), 2) if pairs is None else pairs:
        match = play_match(
            game,
            players[first],
            players[second],
            games=games,
            mesh=mesh,
            seed=seed,
            opening_plies=opening_plies,
            openings=openings,
            lanes=lanes,
            on_progress=on_progress,
        )
        on_match(match)
        matches.append(match)
        results += pair_results(match.records)
    return matches, results


def sequential_match(
    game: Game,
    a: AnyPlayer,
    b: AnyPlayer,
    sprt: Sprt,
    *,
    games: int,
    mesh: Mesh,
    seed: int = 0,
    opening_plies: int = 2,
    openings: Sequence[Opening] | None = None,
    lanes: int = 512,
    on_round: Callable[[Match], None] = lambda match: None,
) -> Match:
    """Plays rounds of games until `sprt` has decided, or `games` are played.

    A round's games are all finished before the test looks at them: stopping at once would favour short games.

    Args:
      game, a, b, mesh, seed, opening_plies, openings: as `play_match`; round i has the seed `seed + i`, and goes on in
        the list of openings.
      sprt: the test, of a against b.
      games: at most, an even number.
      lanes: games side by side, and of a round.
      on_round: called after each round with all games so far.
    """
    done: Match | None = None
    number = 0
    while done is None or (done.games < games and sprt.accepted(match_pairs(done)) is None):
        left = games if done is None else games - done.games
        turn = 0 if done is None or not openings else done.games // 2 % len(openings)
        part = play_match(
            game,
            a,
            b,
            games=min(left, max(2, lanes // 2 * 2)),
            mesh=mesh,
            seed=seed + number,
            opening_plies=opening_plies,
            openings=openings and [*openings[turn:], *openings[:turn]],
            lanes=lanes,
        )
        if done is not None:
            part = summarize(game.id, a.name, b.name, done.records + part.records, done.seconds + part.seconds)
        done = part
        number += 1
        on_round(done)
    return done


def match_pairs(match: Match) -> np.ndarray:
    """Returns int64[5], the match's pairs of games by a's points (`azjax.sprt.count_pairs`)."""
    return count_pairs([record.return_of(number % 2) for number, record in enumerate(match.records)])


def pair_results(records: Iterable[GameRecord]) -> list[PairResult]:
    """Returns games by who moved first against whom; a truncated game is a draw, an unfinished one is left out."""
    values: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if record.returns is not None:
            values.setdefault(record.players, []).append(record.returns[0])
    results = []
    for (first, second), of_pair in values.items():
        wins, losses = sum(value > 0 for value in of_pair), sum(value < 0 for value in of_pair)
        results.append(PairResult(a=first, b=second, wins=wins, draws=len(of_pair) - wins - losses, losses=losses))
    return results


def match_json(match: Match) -> dict[str, Any]:
    """Gives {"game", "a", "b", "games", "wins", "draws", "losses", "score", "ci95": [lo, hi], "distinct", "seconds",
    "truncated", "given_up": [{"player", "end", "reason", "games"}]}, from a's side.

    `score` is points a game, a draw half a point; truncated games are draws; `given_up` counts games that a player
    resigned or forfeited, by how and why.
    """
    score, lo, hi = score_interval(match.wins, match.draws, match.losses)
    return {
        "game": match.game,
        "a": match.a,
        "b": match.b,
        "games": match.games,
        "wins": match.wins,
        "draws": match.draws,
        "losses": match.losses,
        "score": score,
        "ci95": [lo, hi],
        "distinct": match.distinct,
        "seconds": round(match.seconds, 3),
        "truncated": sum(record.truncated for record in match.records),
        "given_up": given_up(match.records),
    }


def given_up(records: Iterable[GameRecord]) -> list[dict[str, Any]]:
    """Returns {"player", "end", "reason", "games"} of games resigned or forfeited, the most frequent first."""
    counts = Counter(
        (record.players[record.return_of(0) > 0], record.end, record.note)
        for record in records
        if record.end not in ("rules", "plies", "unfinished")
    )
    return [
        {"player": player, "end": end, "reason": reason, "games": games}
        for (player, end, reason), games in counts.most_common()
    ]
