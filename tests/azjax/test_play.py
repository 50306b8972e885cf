"""A game against an agent: what each line typed does, and how a session ends. Driven by scripts, no terminal needed."""

import io
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from azjax.play import Session, converse, play_in_terminal
from azjax.players import RESIGNS, Player, make_player
from envs.playback import check_records

GAME = envs.make("tic_tac_toe")


def choose_first(params, rng_key, states):
    return jnp.argmax(jax.vmap(GAME.legal_action_mask)(states), axis=1).astype(jnp.int32)


FIRST_SQUARE = Player("first square", choose_first, ())


def talk(*lines: str, seat: int = 0, opponent: Player = FIRST_SQUARE) -> list[tuple[str, str]]:
    """Plays the lines, then the end of the input; returns what was told, as (kind, text)."""
    waiting = list(lines)
    told: list[tuple[str, str]] = []
    converse(
        Session(GAME, opponent, seat),
        lambda prompt: waiting.pop(0) if waiting else None,
        lambda text, kind: told.append((kind, text)),
    )
    assert waiting == []
    return told


def kinds(told, kind: str) -> list[str]:
    return [text for of, text in told if of == kind]


def test_a_game_that_is_won():
    told = talk("c1", "b2", "a3")
    assert kinds(told, "move") == ["first square plays a1", "first square plays b1"]
    assert kinds(told, "board")[1] == "  a b c\n1 O . X\n2 . . .\n3 . . ."
    assert told[-2:] == [("board", "  a b c\n1 O O X\n2 . X .\n3 X . ."), ("result", "You won.")]


def test_the_signs_of_a_board_are_explained():
    crosshair = envs.make("crosshair,size=3")
    told: list[tuple[str, str]] = []
    waiting = ["help", "rules"]
    converse(
        Session(crosshair, make_player(crosshair, "random", lambda *_: pytest.fail("no run")), 0),
        lambda prompt: waiting.pop(0) if waiting else None,
        lambda text, kind: told.append((kind, text)),
    )
    plain = kinds(told, "plain")
    assert plain.count(crosshair.legend) == 2 and any("rules    " in text for text in plain)
    assert crosshair.rules_text in plain
    assert all(f"{sign}:" in crosshair.legend for sign in ("[ ]", "+", "."))


def test_a_game_that_is_lost_in_the_second_seat():
    told = talk("a2", "b2", seat=1)
    assert kinds(told, "move") == [f"first square plays {square}" for square in ("a1", "b1", "c1")]
    assert told[-1] == ("result", "You lost.")


def test_an_opponent_may_give_up():
    quits = Player("quitter", lambda p, k, states: jnp.full(states.ply.shape, RESIGNS, jnp.int32), ())
    told = talk("b2", opponent=quits)
    assert told[-1] == ("result", "You won: quitter gave up.")
    assert kinds(talk("hint", opponent=quits), "plain")[2] == "quitter would give up"
    session = Session(GAME, quits, 1)
    converse(session, lambda prompt: None, lambda text, kind: None)
    record = session.game_record()
    assert (record.end, record.returns, record.players) == ("resignation", (-1.0, 1.0), ("quitter", "person"))


def test_a_drawn_game():
    session = Session(GAME, FIRST_SQUARE, 0)
    for square in "b2 a1 c3 a3 a2 c2 b1 b3 c1".split():
        session.play(session.parse(square))
    assert session.over and session.result() == "A draw."


def test_a_game_cut_off_has_no_result():
    short = envs.make("tic_tac_toe,max_plies=2")
    session = Session(short, FIRST_SQUARE, 0)
    session.play(0)
    session.play(1)
    assert session.over and session.result() == "The game was cut off after 2 moves: no result."


@pytest.mark.parametrize("line", ["zz", "a9", "a 1", "\x00", "9" * 5000, "é", "-1", "undo it", "a1;b1"])
def test_what_is_no_move_is_answered_in_one_line_and_asked_again(line):
    told = talk(line, "b2")
    (fault,) = kinds(told, "fault")
    assert fault.startswith("move: got ") and "\n" not in fault
    assert len(kinds(told, "move")) == 1  # b2 was accepted after it


def test_an_illegal_move_changes_nothing():
    session = Session(GAME, FIRST_SQUARE, 0)
    session.play(session.parse("b2"))
    with pytest.raises(ValueError, match=r"got 'b2', which is not legal here"):
        session.parse("b2")
    assert session.plies == 1 and session.legal == [0, 1, 2, 3, 5, 6, 7, 8]


@pytest.mark.parametrize("answer", [-1, 9, 2**40])
def test_an_action_out_of_range_never_reaches_the_rules(answer, monkeypatch):
    session = Session(GAME, FIRST_SQUARE, 0)
    monkeypatch.setattr(type(GAME), "parse_action", lambda self, text: answer)
    with pytest.raises(ValueError, match="not legal here"):
        session.parse("x")


def test_undo_takes_back_ones_move_and_the_reply():
    told = talk("undo", "b2", "undo", "c3")
    assert kinds(told, "fault") == ["undo: there is no move of yours to take back"]
    boards = kinds(told, "board")
    assert boards[2] == boards[0] and boards[3] == "  a b c\n1 O . .\n2 . . .\n3 . . X"


def test_undo_in_the_second_seat_leaves_the_first_move():
    session = Session(GAME, FIRST_SQUARE, 1)
    assert not session.undo()
    session.reply()
    assert not session.undo()
    session.play(session.parse("c3"))
    session.reply()
    assert session.undo() and session.plies == 1


def test_hint_moves_help_resign():
    told = talk("", "MOVES", "hint", "help", "resign")
    assert kinds(told, "plain")[2:4] == ["a1 b1 c1 a2 b2 c2 a3 b3 c3", "first square would play a1"]
    assert "such as a1" in kinds(told, "plain")[4]
    assert told[-1] == ("result", "You resigned; first square won.")


def test_the_record_of_a_game():
    session = Session(GAME, FIRST_SQUARE, 1)
    for square in ("a1", "b2", "b1", "c3"):
        session.play(session.parse(square))
    assert session.undo() and session.plies == 3  # c3 is taken back
    left = session.game_record()
    assert (left.players, left.actions, left.end) == (("first square", "person"), (0, 4, 1), "unfinished")
    session.resigned = session.seat
    assert (session.game_record().end, session.game_record().returns) == ("resignation", (1.0, -1.0))
    for square in ("a2", "c1"):
        session.play(session.parse(square))
    over = session.game_record()
    assert (over.actions, over.end, over.returns) == ((0, 4, 1, 3, 2), "rules", (1.0, -1.0))
    check_records(GAME, [left, over])


@pytest.mark.parametrize("lines", [(), ("quit",), ("exit",), ("b2",)])
def test_leaving_is_polite(lines):
    assert talk(*lines)[-1] == ("plain", "Left the game.")


def test_the_same_seed_gives_the_same_game():
    random = make_player(GAME, "random", None)
    games = [[Session(GAME, random, 1, seed).suggest().action for seed in range(12)] for _ in range(2)]
    assert games[0] == games[1] and len(set(games[0])) > 2


QUICK = {"tic_tac_toe", "connect_four", "backgammon"}  # the others compile or play longer


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in envs.available()]
)
def test_every_game_can_be_played_to_its_end(name):
    game = envs.make(name)
    rng = np.random.default_rng(0)
    session = Session(game, make_player(game, "random", None), 0)
    told: list[str] = []

    def ask(prompt: str) -> str:
        return game.action_name(rng.choice(session.legal))

    converse(session, ask, lambda text, kind: told.append(text))
    assert session.over and told[-1] in ("You won.", "You lost.", "A draw.")


def test_it_works_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("nonsense\nb2\n"))
    assert play_in_terminal(GAME, FIRST_SQUARE, seat=0) == 0
    said = capsys.readouterr().out
    assert "your move: b2\n" in said and said.endswith("Left the game.\n") and "\x1b" not in said


def test_it_works_through_a_pipe():
    argv = [sys.executable, "-m", "azjax", "play", "tic_tac_toe", "--opponent", "random", "--seat", "second"]
    done = subprocess.run(argv, input=b"moves\n\xff\xfe\nresign\n", capture_output=True, timeout=300)
    said = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b""
    assert "random plays" in said and "move: got" in said and said.endswith("You resigned; random won.\n")
