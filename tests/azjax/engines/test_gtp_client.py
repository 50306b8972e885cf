"""Go engines as players: what goes wrong costs the game, and the match goes on. GNU Go is played to the end."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import envs
from azjax.arena import play_match
from azjax.engines.words import find_engine, parse_engine
from azjax.opponents import any_player
from azjax.outside import Question
from azjax.play import Session
from azjax.players import make_player, parse_player
from azjax.step import make_mesh
from azjax.tournament import match_json
from envs.playback import check_records
from tests.programs import needs_gnugo

GO = envs.make("go", size=3)
LEGAL = np.array([False] + [True] * 9)  # all but A3
FAKE = f"{sys.executable} -S -E {Path(__file__).with_name('fake_engine.py')} gtp"


def fake(*script: str, game=GO, **options):
    words = [f"gtp:{FAKE} {' '.join(script)}", *(f"{name}={value}" for name, value in options.items())]
    return any_player(game, ",".join(words), None)


def question(*moves: str, game: int = 0, legal: np.ndarray = LEGAL) -> Question:
    return Question(game, 0, moves, None, legal)


def test_moves_follow_the_script():
    player = fake("B2", "c1", "pass")
    answers = [player.ask([question(*moves)])[0] for moves in [(), ("B2", "A1"), ("B2", "A1", "C1", "A2")]]
    assert [GO.action_name(answer.action) for answer in answers] == ["B2", "C1", "pass"]
    player.close()


@pytest.mark.parametrize(
    ("fault", "reason", "end"),
    [
        ("crash", "ended with exit status 3: assertion failed: depth > 0", "forfeit"),
        ("segfault", "ended with signal 11", "forfeit"),
        ("hang", "gave no answer to 'genmove black' for 0.3 s", "time"),
        ("deaf", "closed its output", "forfeit"),
        ("offspring", "gave no answer to 'genmove black' for 0.3 s", "time"),
        ("flood", "answered 'genmove black' with more than 10000 lines", "forfeit"),
        ("long", "wrote a line of more than 1 MiB", "forfeit"),
        ("none", "played '(none)', which is no move", "forfeit"),
        ("illegal", "played 'A1', which is illegal", "forfeit"),
        ("garbage", "answered 'genmove black' with '?ÿ bestmove', which is not GTP", "forfeit"),
        ("empty", "played '', which is no move", "forfeit"),
        ("refuse", "refused 'genmove black': illegal move", "forfeit"),
        ("resign", "resigned", "resignation"),
    ],
)
def test_what_an_engine_does_wrong_costs_its_game(fault, reason, end):
    player = fake(f"{fault}@2", "B2", patience=0.3 if end == "time" else 20)
    legal = np.ones(10, bool)
    legal[GO.parse_action("A1")] = False
    (good,) = player.ask([question(legal=legal)])
    (bad,) = player.ask([question("B2", "C3", legal=legal)])
    assert good.action == GO.parse_action("B2")
    assert bad.action is None and bad.end == end
    assert bad.reason == reason
    # The next game is played by a process that works.
    player.finish(0)
    assert player.ask([question(game=1)])[0].action == GO.parse_action("B2")
    player.close()


def test_an_answer_too_many_is_not_taken_for_the_next():
    player = fake("twice@1", "B2")
    player.ask([question()])
    (second,) = player.ask([question("B2", "C3")])
    assert second.end == "forfeit" and "which is not GTP" in second.reason
    player.close()


def test_an_engine_that_does_not_speak_gtp_is_told_of_before_the_match():
    with pytest.raises(ValueError, match="the engine ended with exit status 3: assertion failed"):
        fake("crash@0")
    with pytest.raises(ValueError, match="the engine ended with exit status 0"):
        any_player(GO, "gtp:true", None)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("gtp:no-such-engine", "'no-such-engine', which is no program on PATH or in /usr/games; install it"),
        ("gtp:", "expected a program such as gtp:gnugo,level=1"),
        (f"gtp:{FAKE},sharpness=1", "got option sharpness, which is none of the engine's commands"),
        (f"gtp:{FAKE},nodes=10", "got nodes, which GTP does not have"),
        (f"gtp:{FAKE},seconds=0.5", "got seconds 0.5, expected whole ones"),
        (f"gtp:{FAKE},seconds=fast", "got seconds 'fast', expected a number"),
        (f"gtp:{FAKE},processes=0", "got processes '0', expected a number of at least 1"),
        (f"gtp:{FAKE},processes=1.5", "got processes '1.5', expected a whole number"),
        (f"gtp:{FAKE},level", "got option 'level', expected NAME=VALUE"),
    ],
)
def test_wrong_words_are_refused(word, message):
    with pytest.raises(ValueError) as error:
        any_player(GO, word, None)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_engines_play_their_own_games():
    with pytest.raises(ValueError, match="expected a game of Go"):
        any_player(envs.make("tic_tac_toe"), f"gtp:{FAKE}", None)


def test_a_match_goes_on_when_engines_fail():
    mesh = make_mesh(1)
    player = fake("crash@3", "pass", processes=4, level=3)
    match = play_match(GO, make_player(GO, "random", None), player, games=12, mesh=mesh, opening_plies=1)
    ends = [record.end for record in match.records]
    assert ends.count("forfeit") >= 4 and match.games == 12
    for number, record in enumerate(match.records):
        fails = record.end == "forfeit"
        assert record.note == ("ended with exit status 3: assertion failed: depth > 0" if fails else "")
        assert not fails or record.return_of(number % 2) == 1.0
    check_records(GO, match.records)
    given_up = match_json(match)["given_up"]
    assert sum(row["games"] for row in given_up) == ends.count("forfeit")
    assert given_up[0]["player"] == player.name and given_up[0]["reason"].startswith("ended with exit status 3")
    player.close()


def test_our_illegal_move_stops_the_match(monkeypatch):
    import jax.numpy as jnp

    from azjax.players import Player

    corner = Player("corner", lambda params, rng_key, states: jnp.zeros(states.ply.shape, jnp.int32), ())
    player = fake("pass")
    with pytest.raises(RuntimeError, match="illegal move A3 after A3 pass"):
        play_match(GO, corner, player, games=2, mesh=make_mesh(1), opening_plies=0)
    player.close()


@needs_gnugo
@pytest.mark.parametrize(("size", "games"), [(5, 4), pytest.param(9, 8, marks=pytest.mark.slow)])
def test_games_against_gnugo_are_played_to_their_end(size, games):
    game = envs.make("go", size=size)
    gnugo = any_player(game, "gtp:gnugo,level=1,processes=4", None)
    match = play_match(game, make_player(game, "random", None), gnugo, games=games, mesh=make_mesh(1), seed=1)
    assert match.losses == games  # a random player never wins
    assert {record.end for record in match.records} <= {"rules", "resignation"}
    assert any(record.end == "rules" for record in match.records)
    check_records(game, match.records)
    gnugo.close()


@needs_gnugo
def test_the_same_seed_gives_the_same_game_of_gnugo():
    game = envs.make("go", size=5)
    games = []
    for _ in range(2):
        gnugo = any_player(game, "gtp:gnugo,level=1", None)
        games.append([gnugo.ask([question(game=i, legal=np.ones(26, bool))])[0] for i in range(3)])
        gnugo.close()
    assert games[0] == games[1]


def test_an_engine_comes_with_its_arguments():
    spec = parse_player("gtp:sleep 'a b' c,level=3")
    found = parse_engine("gtp:sleep 'a b' c,level=3", spec.argument, spec.options)
    assert found.command == (shutil.which("sleep"), "a b", "c") and found.own == {"level": "3"}
    assert find_engine("gtp:/bin/sh", "/bin/sh") == ("/bin/sh",)


def test_a_person_plays_an_engine_in_the_terminal():
    player = fake("resign@3", "B2", "C1")
    session = Session(GO, player, 0)
    session.play(session.parse("a1"))
    assert GO.action_name(session.suggest().action) == "B2"
    session.reply()  # the engine plays C1: it is told to take B2 back first
    assert session.undo() and session.plies == 0
    session.play(session.parse("a2"))
    assert session.reply() is None and session.result().endswith("resigned.")
    assert (session.game_record().end, session.game_record().returns) == ("resignation", (1.0, -1.0))
    assert session.game_record().note == "resigned"
    player.close()
