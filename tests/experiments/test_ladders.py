"""A ladder: an agent, and engines that play one another; once played, it is not played again."""

import json

import pytest

import envs
from azjax.players import parse_player
from experiments.ladders import GAMES, LADDERS, STEPS, Options, configuration, main
from tests.programs import needs_gnugo


@pytest.mark.parametrize("budget", GAMES)
def test_every_ladder_begins_with_an_engine_and_has_random(budget):
    for word in GAMES[budget]:
        players = LADDERS[word]
        assert parse_player(players[0]).kind in ("gtp", "uci", "usi") and "random" in players
        game = envs.make(word)
        config = configuration(game, word, budget, 3)
        assert config.game == word and config.seed == 3 and config.steps == STEPS[budget][word]
        assert config.replay.plies > game.max_plies


def test_an_unknown_game_is_refused(tmp_path):
    with pytest.raises(ValueError, match="--games: got checkers, expected some of go,size=5"):
        main(Options(games=("checkers",), runs=tmp_path))


@pytest.mark.slow
@needs_gnugo
def test_the_smoke_budget_plays_its_ladder_once(tmp_path, capsys):
    options = Options(match_games=2, runs=tmp_path / "runs", out=tmp_path / "out")
    assert main(options) == 0
    (report,) = json.loads((tmp_path / "out" / "results.json").read_text())["games"].values()
    assert len(report["matches"]) == 6 and all(match["games"] == 2 for match in report["matches"])
    rated = {player["name"]: player for player in report["ratings"]["players"]}
    assert set(rated) == {report["agent"], *LADDERS["go,size=5"]} and rated["gtp:gnugo,level=0"]["elo"] == 0
    assert "**azjax, 2 steps, 8 simulations**" in capsys.readouterr().out
    played = next((tmp_path / "runs").rglob("matches.jsonl")).read_text()
    assert main(options) == 0
    assert next((tmp_path / "runs").rglob("matches.jsonl")).read_text() == played
