"""Who meets whom, what a move costs, and what is told of it; the smoke budget plays, stops and goes on."""

import dataclasses
import json

import jax
import pytest

import envs
from azjax import network
from azjax.players import LoadedRun
from experiments.figure_2 import (
    EVALUATIONS,
    Options,
    configuration,
    equal_matches,
    evaluations_a_move,
    main,
    name_of,
    pairings,
    rows_of,
)


def test_everyone_meets_those_of_equal_and_neighbouring_numbers():
    pairs = list(pairings((25, 50, 100), "uct:400"))
    assert len(pairs) == len(set(pairs)) == 3 + 3 + 2 * (3 + 9) + 2 * 3
    assert ("puct, 25", "policy") in pairs and ("puct, 50", "policy") not in pairs
    assert ("puct, 50", "alphabeta, 50") in pairs and ("gumbel, 50", "alphabeta, 25") in pairs
    assert ("puct, 100", "puct, 25") not in pairs
    assert {a for a, b in pairs if b == "uct:400"} == {name_of(s, n) for s in SEARCHES for n in (25, 50)}


SEARCHES = ("puct", "gumbel", "alphabeta")


def test_the_papers_games_have_its_constants():
    config = configuration("paper", "shogi")
    assert (config.preset, config.search.simulations, config.network.blocks) == ("paper", 800, 20)
    assert EVALUATIONS["paper"][-1] > 50 * config.search.simulations


def test_scores_at_equal_numbers_are_seen_from_the_first_players_side():
    def match(a, b, first, second):
        results = [dict(zip(("wins", "draws", "losses"), counts, strict=True)) for counts in (first, second)]
        return {"a": a, "b": b, "results": [{"a": a, "b": b} | results[0], {"a": b, "b": a} | results[1]]}

    matches = [
        match("puct, 8", "alphabeta, 8", (6, 1, 3), (2, 3, 5)),
        match("gumbel, 8", "alphabeta, 8", (0, 0, 10), (10, 0, 0)),
        match("puct, 8", "gumbel, 8", (9, 0, 1), (1, 0, 9)),
        match("puct, 8", "alphabeta, 4", (9, 0, 1), (1, 0, 9)),
    ]
    puct, gumbel = equal_matches(matches, (4, 8))
    assert (puct["search"], puct["evaluations"], puct["games"], puct["score"]) == ("puct", 8, 20, 13 / 20)
    assert (gumbel["search"], gumbel["score"], gumbel["low"]) == ("gumbel", 0.0, 0.0)
    assert gumbel["high"] > 0


@pytest.mark.parametrize("search", SEARCHES)
def test_a_move_takes_at_most_its_evaluations_and_fewer_near_the_end(search):
    config = dataclasses.replace(configuration("smoke", "crosshair,size=4"), game="tic_tac_toe")
    game = envs.make(config.game)
    agent = LoadedRun(config, network.init(config.network, game, jax.random.key(0)), 0)
    assert 0 < evaluations_a_move(game, agent, search, 4) <= 4
    # Positions of random games: of the last ones, all that follows is over after a few moves.
    assert evaluations_a_move(game, agent, search, 200) < 190


@pytest.mark.slow
def test_the_smoke_budget_plays_both_games_and_goes_on(tmp_path, capsys):
    options = Options(budget="smoke", match_games=2, runs=tmp_path / "runs", out=tmp_path / "out")
    for word in ("crosshair,size=4", "connect_four"):  # a game today, a game tomorrow
        assert main(dataclasses.replace(options, times="none", games=(word,))) == 0
    assert "Times were not measured." in (tmp_path / "out" / "results.md").read_text()
    assert main(options) == 0
    report = json.loads((tmp_path / "out" / "results.json").read_text())
    assert list(report["games"]) == ["crosshair,size=4", "connect_four"]
    rows = rows_of(report["games"])
    assert len(rows) == 2 * 3 * 2
    for row in rows:
        assert 0 < row["evaluations_made"] <= row["evaluations"] and row["seconds_a_move"] > 0
        assert row["low"] < row["elo"] < row["high"]
    for about in report["games"].values():
        assert about["games"] == 2 * (3 + 3 + 3 + 9 + 6)
        assert [row["evaluations"] for row in about["at_equal_evaluations"]] == [4, 8, 4, 8]
    assert (tmp_path / "out" / "results.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    text = (tmp_path / "out" / "results.md").read_text()
    assert "| 8 |" in text and "uct:8 has" in text and "load average" in text
    capsys.readouterr()
    # Nothing is trained, played or measured again, but the times on demand.
    assert main(options) == 0
    assert "4 against" not in (said := capsys.readouterr().err) and "ms a move" not in said
    assert json.loads((tmp_path / "out" / "results.json").read_text())["games"] == report["games"]
    assert main(dataclasses.replace(options, times="again", games=("connect_four",))) == 0
    assert "4 against" not in (said := capsys.readouterr().err) and said.count("ms a move") == 6
