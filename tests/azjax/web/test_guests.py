"""Players whom the command line lets in: visitors choose among their words, and start nothing else."""

import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from azjax.web.app import make_app
from azjax.web.guests import Guests
from azjax.web.roster import Roster
from tests.programs import installed

FAKE = Path(__file__).parents[1] / "engines" / "fake_engine.py"
ENGINE = f"gtp:{sys.executable} -S -E {FAKE} gtp"


def client_of(tmp_path, *words: str) -> TestClient:
    return TestClient(make_app(Roster(tmp_path, players=words)), base_url="http://127.0.0.1:8765")


def new(client, game: str, text: str = "") -> dict:
    answer = client.post("/api/new", json={"game": game, "text": text})
    assert answer.status_code == 200, answer.text
    return answer.json()


def reply(client, table: str, word: str) -> dict:
    return client.post("/api/reply", json={"table": table, "agent": {"kind": "player", "word": word}}).json()


def test_each_is_offered_in_the_games_that_it_plays(tmp_path, runs_folder):
    words = ["uct:4", "solver", ENGINE, f"alphabeta:{runs_folder / 'small'}", "agent:crosshair,simulations=2"]
    client = client_of(tmp_path, *words)
    offered = {game: new(client, game)["players"] for game in ("tic_tac_toe", "crosshair", "hex", "go,size=3")}
    assert offered == {
        "tic_tac_toe": [words[0], "solver", words[3]],
        "crosshair": ["uct:4", words[4]],
        "hex": ["uct:4"],
        "go,size=3": ["uct:4", ENGINE],
    }
    table = new(client, "tic_tac_toe", "a1 b1")["table"]
    for plies, word in enumerate(offered["tic_tac_toe"], 3):
        assert len(reply(client, table, word)["moves"]) == plies


def test_the_solver_wins_where_it_can(tmp_path):
    client = client_of(tmp_path, "solver")
    table = new(client, "tic_tac_toe", "a1 a2 b1 b2")["table"]
    assert reply(client, table, "solver")["result"] == "first player won"


def test_a_visitors_word_starts_nothing(tmp_path):
    mark = tmp_path / "it ran"
    client = client_of(tmp_path, "solver")
    table = new(client, "go,size=3")["table"]
    for word in (f"gtp:touch {mark}", ENGINE, "solver,", "agent:crosshair"):
        assert "not one of those that azjax serve --player names" in reply(client, table, word)["error"]
    assert reply(client, table, "solver")["error"] == f"player: solver does not play {new(client, 'go,size=3')['game']}"
    assert not mark.exists()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("gtp:no-such-program", "which is no program on PATH"),
        ("stockfish", "player: got 'stockfish', expected random"),
        ("run:nothing", "which has no config.json"),
        ("agent:nothing", "agent: got 'nothing'"),
    ],
)
def test_words_that_name_nobody_are_told_of_at_once(word, message):
    with pytest.raises(ValueError, match=message):
        Guests([word])


def test_an_engine_follows_games_and_may_give_up(tmp_path):
    word = f"{ENGINE} resign@2 B2 C1"
    client = client_of(tmp_path, word)
    view = new(client, "go,size=3")
    assert reply(client, view["table"], word)["moves"] == ["B2"]
    client.post("/api/move", json={"table": view["table"], "action": 8})
    ended = reply(client, view["table"], word)
    assert (ended["over"], ended["result"], ended["legal"]) == (True, "second player won, the other resigned", [])
    assert "action" in client.post("/api/move", json={"table": view["table"], "action": 0}).json()["error"]
    assert "the game is over" in reply(client, view["table"], word)["error"]
    (record,) = client.post("/api/record", json={"table": view["table"], "players": ["a", "b"]}).json()["files"][:1]
    assert '"end": "resignation"' in record[1]
    back = client.post("/api/back", json={"table": view["table"], "plies": 1}).json()
    assert (back["over"], back["plies"]) == (False, 1)


def test_an_engine_that_fails_is_told_of_and_the_game_goes_on(tmp_path):
    word = f"{ENGINE} crash@1"
    client = client_of(tmp_path, word)
    table = new(client, "go,size=3")["table"]
    assert "ended with exit status 3" in reply(client, table, word)["error"]
    assert reply(client, table, "random")["error"].startswith("player: got 'random'")
    answer = client.post("/api/reply", json={"table": table, "agent": {"kind": "random"}}).json()
    assert len(answer["moves"]) == 1 and not answer["over"]


def test_an_engine_that_answers_no_position_of_its_own(tmp_path):
    client = client_of(tmp_path, "uci:stockfish,nodes=1") if installed("stockfish") else pytest.skip("no Stockfish")
    table = new(client, "chess", "7k/P7/8/8/8/8/8/K7 w - - 0 1")["table"]
    assert "follows a game from its start" in reply(client, table, "uci:stockfish,nodes=1")["error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "word"),
    [
        ("go_9x9", "gtp:gnugo,level=1"),
        ("chess", "uci:stockfish,nodes=100"),
        ("shogi", "usi:fairy-stockfish,nodes=100"),
    ],
)
def test_engines_that_are_installed_play(tmp_path, game, word):
    if not installed(word.partition(":")[2].partition(",")[0]):
        pytest.skip(f"{word} is not installed")
    client = client_of(tmp_path, word)
    one, other = new(client, game), new(client, game)
    for plies in range(1, 7):  # two games by turns
        for view in (one, other):
            assert len(reply(client, view["table"], word)["moves"]) == plies
