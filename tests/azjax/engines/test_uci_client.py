"""Chess and shogi engines as players: their words, what goes wrong, and real games to their end."""

import sys
from pathlib import Path

import numpy as np
import pytest

import envs
from azjax.arena import play_match
from azjax.engines.uci import EngineOption, find_option, last_score, read_option
from azjax.opponents import any_player
from azjax.outside import Question
from azjax.players import make_player
from azjax.step import make_mesh
from envs.playback import check_records
from tests.programs import installed

CHESS = envs.make("chess")
FAKE = f"{sys.executable} -S -E {Path(__file__).with_name('fake_engine.py')} uci"


def fake(*script: str, **options):
    words = [f"uci:{FAKE} {' '.join(script)}", *(f"{name}={value}" for name, value in options.items())]
    return any_player(CHESS, ",".join(words), None)


@pytest.fixture(scope="module")
def start():
    """The position before the first move, and bool[A], every move but a1a8 legal."""
    import jax

    state = jax.tree.map(np.asarray, CHESS.init(jax.random.key(0)))
    legal = np.ones(CHESS.num_actions, bool)
    legal[CHESS.parse_move(state, "a1a8")] = False
    return state, legal


def ask(player, start, *moves: str, game: int = 0):
    state, legal = start
    return player.ask([Question(game, 0, moves, state, legal)])[0]


@pytest.mark.parametrize(
    ("fault", "reason", "end"),
    [
        ("crash", "ended with exit status 3: assertion failed: depth > 0", "forfeit"),
        ("hang", "gave no answer to 'go nodes 5' for 0.3 s", "time"),
        ("flood", "wrote more than 16 MiB as one answer", "forfeit"),
        ("drip", "gave no answer to 'go nodes 5' for 0.3 s", "time"),
        ("none", "answered 'bestmove (none)' where there are moves", "forfeit"),
        ("illegal", "played 'a1a8', which is illegal", "forfeit"),
        ("empty", "answered 'bestmove' where there are moves", "forfeit"),
        ("resign", "resigned", "resignation"),
    ],
)
def test_what_an_engine_does_wrong_costs_its_game(start, fault, reason, end):
    player = fake(f"{fault}@2", "e2e4", nodes=5, patience=0.3 if end == "time" else 20)
    assert ask(player, start).action == CHESS.parse_move(start[0], "e2e4")
    bad = ask(player, start, "e2e4", "e7e5")
    assert (bad.action, bad.end, bad.reason) == (None, end, reason)
    player.finish(0)
    assert ask(player, start, game=1).action is not None  # by a process that works
    player.close()


def test_garbage_is_passed_over_until_time_is_up(start):
    player = fake("garbage@1", "e2e4", patience=0.3)
    assert ask(player, start).end == "time"
    player.close()


def test_an_answer_too_many_is_not_taken_for_the_next(start):
    player = fake("twice@1", "e2e4", "d2d4")
    assert ask(player, start).action == CHESS.parse_move(start[0], "e2e4")
    assert ask(player, start, "e2e4", "e7e5").action == CHESS.parse_move(start[0], "d2d4")
    player.close()


def test_an_engine_gives_up_when_it_finds_itself_lost_ten_times_in_a_row(start):
    player = fake("e2e4", resign=900)  # the fake's score is always -9.50
    for _ in range(9):
        assert ask(player, start).action is not None
    assert ask(player, start)[1:] == ("resignation", "gave up at -9.50")
    player.finish(0)
    assert ask(player, start, game=1).action is not None  # counted anew
    player.close()
    stubborn = fake("e2e4", resign=951)
    assert all(ask(stubborn, start).action is not None for _ in range(12))
    stubborn.close()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("sharpness=1", "got option sharpness, expected one of the engine's: Skill Level, Use NNUE"),
        ("skill=21", "got Skill Level '21', expected a whole number from 0 to 20"),
        ("skill=low", "got Skill Level 'low', expected a whole number from 0 to 20"),
        ("use_nnue=no", "got Use NNUE 'no', expected true or false"),
        ("style=wild", "got Style 'wild', expected one of Solid, Normal"),
        ("elo=100", "got UCI_Elo '100', expected a whole number from 1350 to 2850"),
        ("nodes=0", "got nodes '0', expected a number of at least 1"),
    ],
)
def test_wrong_options_are_refused(option, message):
    with pytest.raises(ValueError) as error:
        any_player(CHESS, f"uci:{FAKE},{option}", None)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_engines_play_their_own_games():
    with pytest.raises(ValueError, match="expected chess"):
        any_player(envs.make("go,size=3"), f"uci:{FAKE}", None)
    with pytest.raises(ValueError, match="expected shogi"):
        any_player(CHESS, f"usi:{FAKE}", None)


def test_options_as_engines_tell_them():
    hash_ = read_option("option name USI_Hash type spin default 16 min 1 max 33554432")
    style = read_option("option name Style of Play type combo default Normal var Very Solid var Normal")
    assert hash_ == EngineOption("USI_Hash", "spin", 1, 33554432, ())
    assert style == EngineOption("Style of Play", "combo", None, None, ("Very Solid", "Normal"))
    assert read_option("option name Clear Hash type button") == EngineOption("Clear Hash", "button", None, None, ())
    assert read_option("id name option name") is None and read_option("option type spin") is None
    known = {option.name.lower(): option for option in (hash_, style)}
    assert find_option(known, "hash") is hash_ and find_option(known, "style_of_play") is style
    assert find_option(known, "Style of Play") is style and find_option(known, "skill") is None


@pytest.mark.parametrize(
    ("line", "score"),
    [
        ("info depth 3 score cp -950 nodes 1", -950),
        ("info depth 3 score cp 35 upperbound nodes 1", None),
        ("info depth 3 score cp 1234 lowerbound", None),
        ("info score mate -3 pv e2e4", -100_000),
        ("info score mate 2", 100_000),
        ("info score mate +", 100_000),
        ("info score mate -", -100_000),
        ("info score cp", None),
        ("info score cp x", None),
        ("info string score cp", None),
        ("bestmove e2e4", None),
    ],
)
def test_the_last_score_counts(line, score):
    assert last_score([line]) == score
    assert last_score(["info score cp 7", line]) == (7 if score is None else score)


@pytest.mark.slow
@pytest.mark.skipif(not installed("stockfish"), reason="Stockfish is not installed")
@pytest.mark.parametrize("options", ["skill=0,nodes=100", "elo=1350,seconds=0.01", "use_nnue=false,depth=2,resign=900"])
def test_games_against_stockfish_are_played_to_their_end(options):
    stockfish = any_player(CHESS, f"uci:stockfish,{options}", None)
    match = play_match(CHESS, make_player(CHESS, "random", None), stockfish, games=8, mesh=make_mesh(1), seed=2)
    assert match.losses >= 7 and {record.end for record in match.records} == {"rules"}
    check_records(CHESS, match.records)
    stockfish.close()


@pytest.mark.slow
@pytest.mark.skipif(not installed("fairy-stockfish"), reason="Fairy-Stockfish is not installed")
def test_games_of_shogi_against_fairy_stockfish_are_played_to_their_end():
    shogi = envs.make("shogi")
    fairy = any_player(shogi, "usi:fairy-stockfish,nodes=500", None)
    match = play_match(shogi, make_player(shogi, "random", None), fairy, games=4, mesh=make_mesh(1), seed=2)
    assert match.losses == 4 and {record.end for record in match.records} <= {"rules", "resignation"}
    check_records(shogi, match.records)
    fairy.close()
