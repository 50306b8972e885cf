"""Games by name and games of one's own: what is found, and one clear line for what is not."""

import subprocess
import sys
import textwrap

import pytest

import envs
from envs.core import Game

_OWN = """
    import dataclasses
    from envs.tic_tac_toe import TicTacToe

    @dataclasses.dataclass(frozen=True)
    class Mine(TicTacToe):
        id = "mine"
        wrap: bool = False

    GAME = Mine()
    NUMBER = 3
"""


def _write(folder, text, name="own_game.py"):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


@pytest.mark.parametrize("name", envs.available())
def test_every_name_makes_its_game(name):
    game = envs.make(name)
    assert isinstance(game, Game)
    assert game.id == name
    assert envs.make(name) == game
    module = __import__(type(game).__module__, fromlist=["GAME"])
    assert isinstance(module.GAME, type(game))


def test_importing_and_listing_imports_no_jax():
    code = "import envs, sys; assert envs.available(); assert 'jax' not in sys.modules"
    wrong = "\ntry: envs.make('ches')\nexcept ValueError: assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code + wrong], check=True)


def test_own_backend_is_not_started_by_games():
    code = """
        import jax, envs
        for name in envs.available():
            envs.make(name).symmetries
        import envs.pgx, envs.check
        jax.config.update("jax_num_cpu_devices", 3)
        assert jax.device_count() == 3
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("crosshair,size=5", {"size": 5}),
        (" crosshair , size = 5 , diagonal_pinch = True ", {"size": 5, "diagonal_pinch": True}),
        ("crosshair,max_plies=30,diagonal_pinch=false", {"max_plies": 30}),
        ("crosshair,", {}),
    ],
)
def test_options_in_the_name_are_those_given_as_values(text, options):
    assert envs.make(text) == envs.make("crosshair", **options)
    assert envs.make(envs.make(text).id) == envs.make(text)


def test_words_stay_words():
    assert envs.make("black_hole,rows=5,tie_break=none").tie_break == "none"
    assert envs.make("black_hole,rows=5,tie_break=none").id == "black_hole,rows=5,tie_break=none"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("conect_four", "game: got 'conect_four', expected one of tic_tac_toe, .*did you mean connect_four"),
        ("Connect-Four", "did you mean connect_four"),
        ("", "game: got '', expected one of tic_tac_toe"),
        (7, "game: got 7, expected a name such as 'crosshair'"),
        ("crosshair,sise=5", "game crosshair: option: got 'sise', expected one of size, .*did you mean size"),
        ("tic_tac_toe,rows=5", "game tic_tac_toe: option: got 'rows', expected one of max_plies"),
        ("crosshair,size", "game crosshair: option: got 'size', expected NAME=VALUE"),
        ("crosshair,size=", "game crosshair: option: got 'size=', expected NAME=VALUE"),
        ("crosshair,size=5,size=6", "game crosshair: option size: got it twice"),
        ("crosshair,size=big", "crosshair: size: got 'big', expected a whole number from 1 to 32"),
        ("crosshair,size=5.0", "crosshair: size: got 5.0, expected a whole number"),
        ("crosshair,max_plies=0", "max_plies: got 0, expected a whole number of at least 1"),
        ("black_hole,rows=4", "black_hole: rows: got 4, expected one of 2, 5, 6"),
        ("nowhere.py:GAME", "game: no such file: got .*nowhere.py"),
        ("no_such_module:GAME", "game: no such module: got 'no_such_module'"),
        ("no_such.module:GAME", "game: no such module: got 'no_such.module'"),
        ("json:GAME", "game json:GAME: no such attribute: got 'GAME', expected the name of a Game"),
        ("json:dumps", "game json:dumps: not a Game: it lacks id, num_actions, .*policy_index"),
    ],
)
def test_wrong_names_are_answered_in_one_line(name, message):
    with pytest.raises(ValueError, match=message) as caught:
        envs.make(name)
    assert "\n" not in str(caught.value)


def test_option_given_as_text_and_as_value():
    with pytest.raises(ValueError, match="game crosshair: option size: got it twice"):
        envs.make("crosshair,size=5", size=5)


def test_own_game_by_path(tmp_path, monkeypatch):
    path = _write(tmp_path, _OWN)
    game = envs.make(f"{path}:GAME")
    assert (game.id, game.wrap) == ("mine", False)
    assert envs.make(f"{path}:GAME") == game  # loaded once
    assert envs.make(f"{path}:GAME,wrap=true,max_plies=5").max_plies == 5
    assert envs.make(f"{path}:Mine,wrap=true") == envs.make(f"{path}:GAME", wrap=True)
    monkeypatch.chdir(tmp_path)
    assert envs.make("own_game.py:GAME") == game
    assert envs.make("own_game:GAME").id == "mine"  # as a module of the working directory
    assert str(tmp_path) not in sys.path


def test_own_game_may_import_its_neighbour(tmp_path):
    _write(tmp_path, _OWN, "neighbour_of_a_game.py")
    path = _write(tmp_path, "from neighbour_of_a_game import GAME", "importing_game.py")
    assert envs.make(f"{path}:GAME").id == "mine"


def test_edited_game_is_read_again(tmp_path):
    path = _write(tmp_path, _OWN)
    assert envs.make(f"{path}:GAME").id == "mine"
    _write(tmp_path, _OWN.replace('"mine"', '"mine, edited"'))
    assert envs.make(f"{path}:GAME").id == "mine, edited"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (_OWN, "GAMES", "no such attribute: got 'GAMES', expected the name of a Game, such as GAME"),
        (_OWN, "NUMBER", "not a Game: it lacks id, num_actions"),
        (_OWN, "GAME,warp=true", "option: got 'warp', expected one of .*wrap"),
        (
            "from envs.core import Game\nclass Half(Game):\n  id = 'half'",
            "Half",
            "not a Game: it lacks init, legal_action_mask",
        ),
        ("import no_such_package", "GAME", "fails to load: ModuleNotFoundError: .*no_such_package.* \\(line 1\\)"),
        ("x = 1\ny = x / 0", "GAME", "fails to load: ZeroDivisionError: division by zero \\(line 2\\)"),
        ("def f(:", "GAME", "fails to load: SyntaxError"),
        ("raise SystemExit(3)", "GAME", "fails to load: SystemExit: 3"),
        ("raise ValueError('one\\ntwo')", "GAME", "fails to load: ValueError: one"),
        (
            "from envs.tic_tac_toe import TicTacToe as T\nclass Odd(T):\n def __init__(self):\n  raise KeyError('k')",
            "Odd",
            "making it fails: KeyError: 'k'",
        ),
    ],
)
def test_own_games_that_cannot_be_used(tmp_path, text, name, message):
    path = _write(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        envs.make(f"{path}:{name}")
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("reference", ["subprocess:Popen,args=true", "collections:OrderedDict", "builtins:list"])
def test_a_class_that_is_no_game_is_never_called(reference, monkeypatch):
    monkeypatch.setattr("subprocess.Popen.__init__", lambda *_, **__: pytest.fail("was called"))
    with pytest.raises(ValueError, match="not a Game: it lacks init, step"):
        envs.make(reference)


def test_a_strangers_word_runs_no_file(tmp_path):
    """A run's config.json names its game: comparing it with the game that is played must not run it."""
    path = tmp_path / "stranger.py"
    path.write_text("raise SystemExit('ran')\n")
    game = envs.make("tic_tac_toe")
    assert not envs.is_named(game, f"{path}:GAME")
    assert not envs.is_named(game, "antigravity:GAME") and "antigravity" not in sys.modules
    assert envs.is_named(game, "tic_tac_toe") and not envs.is_named(game, "connect_four")
    path.write_text("from envs.tic_tac_toe import GAME\n")
    assert not envs.is_named(game, f"{path}:GAME")
    assert envs.is_named(envs.make(f"{path}:GAME"), f"{path}:GAME")  # which has run by now
