"""Names of moves: every action of every game has one of its own, which is read back, as other programs write it."""

import pyspiel
import pytest

import envs
from envs.go import Go
from envs.othello import Othello

OTHERS = ("go,size=2", "go,size=25", "hex,size=32", "hex,size=1,swap=false", "othello,size=32")
NAMES = [*(name for name in envs.available() if name not in ("chess", "shogi")), *OTHERS]  # those have their own tests
SPIEL = {"othello": "othello", "hex,size=5": "hex(board_size=5,swap=True)"}


@pytest.mark.parametrize("name", NAMES)
def test_every_action_has_a_name_of_its_own(name):
    game = envs.make(name)
    names = [game.action_name(action) for action in range(game.num_actions)]
    assert len({name.lower() for name in names}) == game.num_actions
    for action, text in enumerate(names):
        assert text.isascii() and text.isprintable() and len(text.split()) == 1
        assert game.parse_action(text) == game.parse_action(f" {text.upper()}\n") == action


@pytest.mark.parametrize(
    ("name", "action", "text"),
    [
        ("tic_tac_toe", 5, "c2"),
        ("connect_four", 0, "1"),
        ("crosshair", 8, "b2"),
        ("black_hole", 20, "f6"),
        ("black_hole", 3, "a3"),
        ("othello", 19, "d3"),
        ("othello", 64, "pass"),
        ("hex", 4 * 11 + 6, "g5"),
        ("hex", 121, "swap"),
        ("hex,size=32", 27, "ab1"),
        ("ultimate_tic_tac_toe", 4 * 9 + 8, "f6"),
        ("ultimate_tic_tac_toe", 1 * 9 + 0, "d1"),
    ],
)
def test_names(name, action, text):
    game = envs.make(name)
    assert game.action_name(action) == text
    assert game.parse_action(text) == action


@pytest.mark.parametrize(
    ("size", "row", "column", "vertex"),
    [(19, 0, 0, "A19"), (19, 18, 18, "T1"), (19, 3, 7, "H16"), (19, 3, 8, "J16"), (9, 8, 8, "J1"), (25, 0, 24, "Z25")],
)
def test_gos_names_are_gtps_vertices(size, row, column, vertex):
    game = Go(size)
    assert game.action_name(row * size + column) == vertex
    assert game.parse_action(vertex.lower()) == row * size + column
    assert game.parse_action("PASS") == size**2


@pytest.mark.parametrize(
    "text", ["", "i5", "a0", "a10", "resign", "a-1", "aa", "5a", "a５", "a5 b6", "\x00", "a" * 9999]
)
def test_what_names_no_move_is_refused(text):
    with pytest.raises(ValueError, match=r"^move: got .*, expected one of this game's moves, such as 'A9'$"):
        Go(9).parse_action(text)


@pytest.mark.parametrize("name", SPIEL)
def test_open_spiel_has_the_same_names(name):
    game, spiel = envs.make(name), pyspiel.load_game(SPIEL[name])
    state = spiel.new_initial_state()
    state.apply_action(state.legal_actions()[0])
    theirs = {action: state.action_to_string(action) for action in state.legal_actions()}
    assert len(theirs) in (3, 25)
    for action, text in theirs.items():
        assert game.action_name(action) == text


def test_open_spiels_go_names_are_ours_but_for_capital_letters():
    game, state = Go(9), pyspiel.load_game("go", {"board_size": 9}).new_initial_state()
    theirs = [state.action_to_string(action).split()[1] for action in state.legal_actions()]
    assert {game.parse_action(name) for name in theirs} == {*range(82)}


def test_othellos_pass_is_a_move_of_that_name_alone():
    game = Othello(4)
    assert [game.action_name(action) for action in range(17)][-2:] == ["d4", "pass"]
