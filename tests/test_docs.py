"""What README and docs say can be run as it stands there: the game, the commands, the links, the tables."""

import dataclasses
import importlib.util
import re
import runpy
import shlex
import sys
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import envs
from azjax.cli.parse import configure, parse
from azjax.presets import preset
from envs.check import check_game
from tests.pages import ROOT, block, write_block

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
PLACEHOLDERS = {"COMMAND", "DIR", "DIRECTORY", "GAME", "NAME", "FILE.py:NAME"}


def commands(page: Path) -> list[list[str]]:
    """The words of every azjax command of a page, in a block of commands or between backticks."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
    lines += re.findall(r"`((?:python -m )?azjax [^`]+)`", text)
    words = [
        shlex.split(line, comments=True)[1:]
        for line in (line.removeprefix("python -m ") for line in lines)
        if line.startswith("azjax ")
    ]
    return [line for line in words if len(line) > 1 and not PLACEHOLDERS & set(line)]


ALL_COMMANDS = [(page.name, words) for page in PAGES for words in commands(page)]


def readme_game(folder: Path) -> Path:
    """The README's game as its reader saves it."""
    return write_block(folder / "nim.py", "README.md", "class Nim(")


def test_the_readmes_game_keeps_the_contract(tmp_path):
    seen = check_game(envs.make(f"{readme_game(tmp_path)}:GAME"), thorough=False)
    assert (seen.id, seen.draws, seen.truncated) == ("nim", 0, 0)
    assert 7 <= seen.longest <= 21


def test_the_pages_game_with_a_die_keeps_the_contract(tmp_path):
    readme_game(tmp_path)
    sys.modules.pop("nim", None)
    game = envs.make(f"{write_block(tmp_path / 'dice_nim.py', 'docs/own_game.md', 'class DiceNim(')}:GAME")
    seen = check_game(game, thorough=False)
    assert (seen.id, seen.draws, seen.truncated) == ("dice_nim", 0, 0)
    assert 1.5 < seen.mean_legal_actions < 2.1  # a die of one to three, and the counters that are left
    rolled = game.step_chance(game.init(jax.random.key(0)), jnp.int32(1))
    assert game.legal_action_mask(rolled).tolist() == [True, True, False]
    del sys.modules["nim"]  # later tests may have another


def test_the_pages_board_game_keeps_the_contract(tmp_path):
    game = envs.make(f"{write_block(tmp_path / 'gomoku.py', 'docs/own_game.md', 'class Gomoku(')}:GAME,size=5")
    seen = check_game(game, thorough=False)
    assert (seen.id, len(game.symmetries), game.max_plies) == ("gomoku,size=5", 8, 25)
    state = game.init(jax.random.key(0))
    for action in (0, 1, 6, 2, 12, 3, 18, 4):
        state = game.step(state, jnp.int32(action))
        assert not game.terminated(state)
    assert game.returns(game.step(state, jnp.int32(24))).tolist() == [1.0, -1.0]  # a1 to e5
    assert game.returns(game.step(state, jnp.int32(7))).tolist() == [0.0, 0.0]


def test_the_pages_symmetry_is_one(tmp_path):
    head = "import jax.numpy as jnp\nimport numpy as np\nfrom envs.core import Symmetry\n"
    (tmp_path / "symmetry.py").write_text(head + block("docs/own_game.md", "columns[::-1]"), encoding="utf-8")
    identity, mirror = runpy.run_path(str(tmp_path / "symmetry.py"))["symmetries"].fget(None)
    assert [(s.permutation.dtype, s.permutation.tolist()) for s in (identity, mirror)] == [
        ("int16", [0, 1, 2]),
        ("int16", [2, 1, 0]),
    ]
    observation = jnp.arange(6.0).reshape(1, 3, 2)
    assert mirror.observation(observation)[0, :, 0].tolist() == [4.0, 2.0, 0.0]


def test_the_page_of_games_has_every_game_and_option():
    page = (ROOT / "docs/games.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for word in envs.available():
        assert f"`{word}`" in page and f"`{word}`" in readme
        (section,) = [part for part in page.split("\n## ") if f"`{word}`" in part]
        options = [field.name for field in dataclasses.fields(envs.make(word)) if field.name != "max_plies"]
        assert [option for option in options if f"`{option}" not in section] == []


def test_who_takes_the_readmes_last_counter_wins(tmp_path):
    game = envs.make(f"{readme_game(tmp_path)}:GAME")
    state = game.init(jax.random.key(0))
    for taken in (3, 3, 3, 3, 3, 3, 2):
        state = game.step(state, jnp.int32(taken - 1))
    assert game.legal_action_mask(state).tolist() == [True, False, False]
    state = game.step(state, jnp.int32(0))
    assert bool(game.terminated(state))
    assert game.returns(state).tolist() == [-1.0, 1.0]  # the eighth move is the second player's


def run_block(folder: Path, page: str, mark: str) -> None:
    """Runs the block of a page's Python that holds `mark`."""
    runpy.run_path(str(write_block(folder / "block.py", page, mark)))


def test_the_pages_network_has_the_shapes_that_it_says(tmp_path, monkeypatch, capsys):
    write_block(tmp_path / "pooled.py", "docs/own_network.md", "class PooledNet(")
    monkeypatch.syspath_prepend(tmp_path)
    run_block(tmp_path, "docs/own_network.md", "num_parameters(")
    # 6 planes: 54 * 32 + 32; a block: 9 * 32 * 32 + 32, 32 * 32 + 32, 64; heads: 1568 * 49 + 49, 1568 * 32 + 32, 33
    assert capsys.readouterr().out == f"{1760 + 3 * (9248 + 1056 + 64) + 76881 + 50208 + 33} (2, 49) (2, 1)\n"
    del sys.modules["pooled"]


def test_the_search_of_the_api_page_runs(tmp_path, capsys):
    run_block(tmp_path, "docs/api/index.md", "puct_policy")
    actions, shape = capsys.readouterr().out.rsplit(" (", 1)
    assert all(0 <= int(action) < 9 for action in actions.strip("[]").split())
    assert shape == "8, 9)\n"


def test_pages_hold_commands():
    assert len(ALL_COMMANDS) > 20


@pytest.mark.parametrize(
    ("page", "words"), ALL_COMMANDS, ids=lambda value: value if isinstance(value, str) else value[0]
)
def test_commands_are_ones_that_azjax_takes(page, words):
    line = parse(words)
    if line is not None and line.settings:
        configure(preset("quick", words[1]), line.settings)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_fields_are_ones_that_a_run_takes(page):
    text = page.read_text(encoding="utf-8")
    settings = [shlex.split(words) for words in re.findall(r"`(--[a-z]+\.[a-z_-]+ [^`]+)`", text)]
    for words in settings:
        if not any(word.isupper() for word in words):  # N stands for a number, NAME for a name
            line = parse(["train", "crosshair", *words])
            assert line is not None
            configure(preset("quick", "crosshair"), line.settings)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) + re.findall(r'<img src="([^"]+)"', text)
    missing = [t for t in targets if not t.startswith("https://") and not (page.parent / t).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_tests_that_a_page_names_are_there(page):
    named = re.findall(r"`((?:azjax|envs|experiments|tests|docs)/[\w./]+\.\w+)(?:::(\w+))?`", page.read_text("utf-8"))
    assert [path for path, _ in named if not (ROOT / path).is_file()] == []
    tests = [(path, test) for path, test in named if test]
    assert [test for path, test in tests if f"def {test}(" not in (ROOT / path).read_text("utf-8")] == []


def test_every_statement_of_the_papers_says_where():
    """The rows of paper.md's tables with three columns, but for those that say that azjax has nothing there."""
    text = (ROOT / "docs/paper.md").read_text(encoding="utf-8").partition("## Presets that are not")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if len(row) == 3 and row[0] not in ("the source", "the article", "---")]
    assert len(rows) > 60
    assert [row[0] for row in rows if not re.search(r"`(azjax|envs|experiments|tests)/", row[2])] == []


def test_the_site_lists_every_page():
    """`make docs` says so too, later."""
    listed = set(re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M))
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.name != "README.md"}


def test_the_architecture_names_every_file():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    files = [path for folder in ("azjax", "envs") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 40
    assert [str(path.relative_to(ROOT)) for path in files if path.name not in text] == []


def writer(name: str) -> types.ModuleType:
    """A program of docs/ that writes a page."""
    spec = importlib.util.spec_from_file_location(f"page_of_{name}", ROOT / f"docs/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_the_configuration_is_current():
    module = writer("configuration")
    message = "configuration.md is not what azjax/config.py says: run python docs/configuration.py"
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), message


def test_the_page_of_games_has_the_rules_that_the_games_tell():
    module = writer("games")
    text = module.PAGE.read_text(encoding="utf-8")
    assert text == module.page(text), "games.md is not what the games say: run python docs/games.py"
    for word in envs.available():
        assert envs.make(word).rules_text in text
