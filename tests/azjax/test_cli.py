"""The command line: what each mistake is answered with, what a run's options set, what each command prints."""

import dataclasses
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import envs
from azjax import checkpoint, rundir, train
from azjax.cli import main, start
from azjax.cli.options import COMMANDS, RunOptions
from azjax.cli.parse import configure, parse
from azjax.config import RunConfig, to_json
from azjax.presets import PRESETS, preset
from envs.game_files import read_games
from envs.playback import check_records

# Each with what its one line must hold: what is wrong, and what to do.
BAD = [
    ("", "got no command, expected one of train, play"),
    ("tarin crosshair", "did you mean train?"),
    ("--jsno", "got '--jsno'"),
    ("annotate crosshair", "got 'annotate'"),
    ("train", "got no GAME"),
    ("train crosshiar", "did you mean crosshair?"),
    ("train Crosshair", "did you mean crosshair?"),
    ("train ''", "got ''"),
    ("train crosshair chess", "got 'chess' after the last word"),
    ("train crosshair --preset", "--preset: got no value"),
    ("train crosshair --preset slwo", "expected one of smoke, quick, full, paper"),
    ("train crosshair --preset quikc", "did you mean quick?"),
    ("train crosshair --search.simulations 0", "search.simulations: got 0, expected at least 1"),
    ("train crosshair --search.simulations many", "--search.simulations: got 'many', expected a whole number"),
    ("train crosshair --search.simulations 1e3", "got '1e3', expected a whole number"),
    ("train crosshair --search.simulations", "--search.simulations: got no value"),
    ("train crosshair --search.simulations --seed 1", "--search.simulations: got no value"),
    ("train crosshair --serch.simulations 3", "did you mean --search.simulations?"),
    ("train crosshair --simulations 3", "did you mean --search.simulations?"),
    ("train crosshair --search.no-such-field 1", "got unknown option --search.no-such-field"),
    ("train crosshair --game chess", "got unknown option --game"),
    ("train crosshair --search.algorithm pucd", "did you mean puct?"),
    ("train crosshair --search.c-puct none", "--search.c-puct: got 'none', expected None or a number"),
    ("train crosshair --search.c-init x", "--search.c-init: got 'x', expected a number"),
    ("train crosshair --network.policy-planes maybe", "got 'maybe' after the last word"),
    ("train crosshair --network.policy-planes=maybe", "--network.policy-planes: got 'maybe', expected true or false"),
    ("train crosshair --network.kind cnn", "network.kind: got 'cnn'"),
    ("train crosshair --learner.boundaries 3 2", "learner.boundaries: got (3, 2)"),
    ("train crosshair --learner.boundaries a", "--learner.boundaries: got 'a', expected whole numbers"),
    ("train crosshair --selfplay.actor best", "selfplay.actor: got best without a gate"),
    ("train crosshair --seed -1", "seed: got -1"),
    ("train crosshair --seed 99999999999999999999", "seed: got 99999999999999999999"),
    ("train crosshair --evaluation.games 3", "evaluation.games: got 3, expected an even number"),
    ("train tic_tac_toe --search.c-init nan", "search.c_init: got nan, expected a finite number"),
    ("train tic_tac_toe --learner.learning-rate inf", "learner.learning_rate: got inf, expected a finite number"),
    ("train tic_tac_toe --selfplay.opening-plies 99999999999999999999999", "expected at most 2147483647"),
    ("plan tic_tac_toe --network.blocks 99999999999999999999999", "expected a number from 0 to 1000"),
    ("plan tic_tac_toe --evaluation.anchors random abc", "evaluation.anchors: player: got 'abc', expected random"),
    ("plan tic_tac_toe --evaluation.anchors random random", "evaluation.anchors: got random twice"),
    ("train tic_tac_toe --out ''", "--out: got '', expected a value"),
    ("train tic_tac_toe --evaluation.anchors random ''", "--evaluation.anchors: got '', expected a value"),
    ("train crosshair --resume nowhere", "--resume: got nowhere, which has no config.json"),
    ("train crosshair --out a --resume b", "--out and --resume: got both"),
    ("train crosshair --fork ../x", "run name: got '../x'"),
    ("train crosshair --fork .", "run name: got '.'"),
    ("train crosshair --json", "got unknown option --json"),
    ("train crosshair --tyro-print-completion bash", "got unknown option --tyro-print-completion"),
    ("train crosshair -- x", "got unknown option --"),
    ("train crosshair -x", "got unknown option -x"),
    ("train crosshair,size=77", "size: got 77"),
    ("train crosshair,colour=red", "got 'colour'"),
    ("train no_such_file.py:GAME", "no such file"),
    ("plan crosshair --steps 0", "steps: got 0"),
    ("plan crosshair --selfplay.lanes 4000000000", "selfplay.lanes: got 4000000000"),
    ("games chss", "got 'chss'"),
    ("games chss", "go,size=N, pgx:NAME, FILE.py:NAME"),
    ("games --check", "--check: got no GAME"),
    ("games --json=1", "--json: got '1', expected no value"),
    ("match tic_tac_toe random", "got no B, expected GAME A B"),
    ("match tic_tac_toe random random --games 3", "--games: got 3, expected an even number"),
    ("match tic_tac_toe random random --games 0", "--games: got 0"),
    ("match tic_tac_toe random random --opening-plies -1", "--opening-plies: got -1"),
    ("match tic_tac_toe random random --lanes 0", "--lanes: got 0"),
    ("match tic_tac_toe random rnadom", "player: got 'rnadom', expected random"),
    ("match tic_tac_toe random uct:no", "got simulations 'no'"),
    ("match tic_tac_toe random uct:4,d=1", "got option 'd=1'"),
    ("match tic_tac_toe random run:nowhere", "which has no config.json"),
    ("rate", "got no GAME, expected GAME PLAYER PLAYER ..., or --run DIR, or --games FILE"),
    ("rate tic_tac_toe", "players: got 0, expected at least 2"),
    ("rate tic_tac_toe random", "players: got 1, expected at least 2"),
    ("rate tic_tac_toe random random", "got random twice"),
    ("rate tic_tac_toe --run nowhere", "which has no config.json"),
    ("play tic_tac_toe --seat third", "--seat: got 'third', expected one of first, second"),
    ("play tic_tac_toe --run nowhere", "which has no config.json"),
    ("play tic_tac_toe --run x --opponent random", "--run and --opponent: got both"),
    ("play tic_tac_toe --opponent random --simulations 4", "--simulations: got it for the player random"),
    ("play hex,size=3", "there is no runs/hex-size-3-quick, and no agent of hex,size=3 comes with azjax"),
    ("play tic_tac_toe --opponent agent:crosshair", "plays crosshair, expected one of tic_tac_toe"),
    ("play tic_tac_toe --opponent agent:nobody", "agent: got 'nobody', expected one of "),
    ("bench", "bench: got nothing to measure, expected games, search, selfplay or train (azjax"),
    ("bench selfpaly", "did you mean selfplay?"),
    ("bench selfplay --seconds 0", "--seconds: got 0.0"),
    ("bench selfplay --seconds nan", "--seconds: got nan"),
    ("match tic_tac_toe random random --openings nowhere", "got nowhere: No such file or directory, expected one that"),
    ("match tic_tac_toe random random --openings .", "got .: Is a directory, expected a file"),
    (
        "match tic_tac_toe random random --games 99999999999999999998",
        "--games: got 99999999999999999998, expected at most",
    ),
    ("match tic_tac_toe random random --opening-plies 99999999999999999999", "--opening-plies: got 9999"),
    ("match tic_tac_toe random uct:99999999999999999999", "at most 2147483646"),
    ("match tic_tac_toe random uct:99999999", "search: got 99999999 simulations of"),
    ("rate --games nowhere.sgf", "got nowhere.sgf: No such file or directory, expected one that is there"),
    ("rate --games ²", "²: got a name without a format"),
    ("rate --games=nowhere/games.jsonl", "got nowhere/games.jsonl: No such file or directory"),
    ("rate tic_tac_toe random uct:4 --simulations 99999999999999999999", "--simulations: got 9999"),
    ("play tic_tac_toe --opponent random --record nowhere/x.jsonl", "got nowhere/x.jsonl: No such file or directory"),
    ("analyze tic_tac_toe --player random --perfect 99999999999999999999", "--perfect: got 9999"),
    ("analyze tic_tac_toe --run x --simulations 99999999999999", "--simulations: got 99999999999999, expected at most"),
    ("analyze tic_tac_toe --run x --record nowhere.jsonl", "got nowhere.jsonl: No such file or directory"),
    ("analyze tic_tac_toe --run x --book ²", "got ²: No such file or directory"),
    ("analyze tic_tac_toe --run x --book 0", "--book: got 0, expected at least 1"),
    ("export", "export: got no --run, expected --run DIR (azjax export --help)"),
    ("games tic_tac_toe hex", "games: got 'hex' after the last word, expected 1 word at most"),
    ("plan tic_tac_toe --on v9-8", "(v2-N, v3-N, v4-N, v5p-N, v5e-N, v5litepod-N, v6e-N), or devices"),
    (f"train tic_tac_toe --out {'x' * 300}", "File name too long, expected a shorter name"),
    ("games tic\0tac", "expected words without a null character"),
    ("bench selfplay --lanes 7 --game tic_tac_toe", "--lanes: got 7, expected a multiple of the 8 devices"),
]


@pytest.fixture(autouse=True, scope="module")
def backend():
    """Starts it with the tests' eight devices: a command would ask for one a core."""
    jax.devices()


def words(line: str) -> list[str]:
    return ["" if word == "''" else word for word in line.split()]


def one_line(text: str) -> bool:
    return text.startswith("azjax: ") and text.endswith("\n") and len(text.splitlines()) == 1


@pytest.mark.parametrize(("line", "said"), BAD)
def test_wrong_input_is_one_line_and_status_2(line, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words(line)) == 2
    error = capsys.readouterr().err
    assert one_line(error) and said in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        "train crosshiar",
        "match crosshiar random random",
        "plan crosshair --seed x",
        "train crosshair --search.c-init nan",
        "plan crosshair --evaluation.anchors random random",
    ],
)
def test_wrong_input_is_answered_before_jax(line):
    code = "import sys; from azjax.cli import main; print(main(sys.argv[1:]), {'jax', 'flax'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, *line.split()], capture_output=True, text=True, timeout=300)
    assert (done.stdout, one_line(done.stderr)) == ("2 set()\n", True)


WORDS = st.sampled_from(
    [
        *COMMANDS,
        *"crosshair random --seed --preset --search.simulations --learner.boundaries --network.policy-planes".split(),
        *"--json --games --seat --out -- - --= = 0 -1 1e9 true None smoke --search.simulations=3 --x --é".split(),
    ]
)


@settings(max_examples=200)
@given(st.lists(st.one_of(WORDS, st.text(max_size=8)), max_size=7))
def test_any_words_are_a_command_or_one_line(argv):
    if "-h" in argv or "--help" in argv:
        return
    try:
        line = parse(argv)
        assert line is not None
        if isinstance(line.command, RunOptions):
            configure(preset("smoke", "crosshair"), line.settings)
    except ValueError as error:
        assert str(error).strip()


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ValueError("steps: got 0\nexpected 1"), 2, "azjax: steps: got 0 expected 1"),
        (OSError(28, "No space left on device", "runs/x"), 1, "azjax: runs/x: No space left on device"),
        (checkpoint.CheckpointError("no whole checkpoint"), 1, "azjax: no whole checkpoint"),
        (FloatingPointError("not finite"), 1, "azjax: not finite"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory\nmore"), 1, "--selfplay.lanes"),
        (MemoryError(), 1, "out of memory"),
        (TypeError("a\x1b[31mb"), 1, "azjax: TypeError: a [31mb (set AZJAX_TRACEBACK=1"),
        (KeyboardInterrupt(), 130, "azjax: interrupted"),
    ],
)
def test_failures_are_one_line_and_their_status(error, status, said, capsys, monkeypatch):
    def fail(line):
        raise error

    monkeypatch.setattr("azjax.cli.commands.run", fail)
    assert main(["games"]) == status
    told = capsys.readouterr().err
    assert one_line(told) and said in told


@pytest.mark.parametrize(
    "line",
    [
        "match tic_tac_toe random random --out taken",
        "match tic_tac_toe random random --out taken/inside",
        "rate tic_tac_toe random uct:2 --out taken",
        "analyze tic_tac_toe --run x --book 2 --out taken",
        "export tic_tac_toe --run x --out taken/x.safetensors",
        "train tic_tac_toe --out taken",
    ],
)
def test_where_nothing_can_be_written_is_told_of_before_the_work(line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("mine")
    monkeypatch.setattr("azjax.cli.commands.run", lambda line: pytest.fail("the work began"))
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert one_line(error) and "taken is a file; expected a directory" in error
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_file_that_goes_missing_in_the_work_is_a_failure(capsys, monkeypatch):
    def fail(line):
        raise FileNotFoundError(2, "No such file or directory", "runs/x/config.json")

    monkeypatch.setattr("azjax.cli.commands.run", fail)
    assert main(["games", "--json"]) == 1
    assert capsys.readouterr().err == "azjax: runs/x/config.json: No such file or directory\n"


def test_the_number_of_devices_that_the_environment_asks_for():
    code = "import jax; from azjax.cli.start import begin_devices; begin_devices(); print(jax.device_count())"
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "3", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment)
    assert (done.stdout, done.returncode) == ("3\n", 0), done.stderr


@pytest.mark.parametrize("asked", ["0", "x", "-1", "²"])
def test_no_number_of_devices_is_refused(asked, monkeypatch):
    from azjax.cli.start import begin_devices

    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", asked)
    with pytest.raises(ValueError, match=f"^JAX_NUM_CPU_DEVICES: got '{asked}', expected a whole number"):
        begin_devices()


def test_help_names_every_command_and_every_field(capsys):
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert [name for name in COMMANDS if f"  {name} " not in overview] == []
    assert main(["train", "--help"]) == 0
    told = capsys.readouterr().out
    sections = to_json(RunConfig(game="x"))
    fields = [f"--{s}.{f.replace('_', '-')}" for s, v in sections.items() if isinstance(v, dict) for f in v]
    assert len(fields) > 50 and [field for field in fields if field not in told] == []
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
    assert main(["--version"]) == 0


def test_every_field_of_a_run_can_be_set():
    wanted = preset("paper", "black_hole")
    argv = ["train", "black_hole"]
    for section, fields in to_json(wanted).items():
        for name, value in fields.items() if isinstance(fields, dict) else [(None, fields)]:
            if section not in ("game", "preset"):
                option = f"--{section}.{name.replace('_', '-')}" if name else f"--{section}"
                argv += [option, *(str(item) for item in (value if isinstance(value, list) else [value]))]
    line = parse(argv)
    assert line is not None
    start = preset("smoke", "black_hole")
    assert configure(start, line.settings) == dataclasses.replace(wanted, preset="smoke")


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("--network.policy_planes", True),
        ("--network.policy-planes false", False),
        ("--network.policy-planes=TRUE", True),
    ],
)
def test_switches_and_underscores(words, value):
    line = parse(["train", "crosshair", *words.split(), "--seed=7"])
    assert line is not None
    config = configure(preset("quick", "crosshair"), line.settings)
    assert (config.network.policy_planes, config.seed) == (value, 7)


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """Runs started by the test, as (configuration, directory); nothing is trained."""
    monkeypatch.chdir(tmp_path)
    started: list[tuple[RunConfig, Path]] = []
    monkeypatch.setattr(train, "train", lambda config, directory: started.append((config, directory)) or 0)
    return started


@pytest.mark.parametrize("name", PRESETS)
def test_train_takes_the_preset_and_the_default_directory(name, trained):
    assert main(["train", "crosshair,size=5", "--preset", name, "--steps", "3"]) == 0
    config = dataclasses.replace(preset(name, "crosshair,size=5"), steps=3)
    assert trained == [(config, rundir.default_path("crosshair,size=5", name))]


def test_smoke_cuts_chess_off_unless_told_where(trained):
    assert main(["train", "chess", "--preset", "smoke"]) == 0
    assert main(["train", "chess,max_plies=40,history=2", "--preset", "smoke"]) == 0
    assert [config.game for config, _ in trained] == ["chess,max_plies=32", "chess,history=2,max_plies=40"]
    assert trained[0][1] == rundir.default_path("chess", "smoke")


def test_resume_keeps_the_stored_configuration_and_fork_starts_beside_it(trained, tmp_path, capsys):
    stored = dataclasses.replace(preset("smoke", "tic_tac_toe"), steps=5)
    rundir.RunDirectory(tmp_path / "a").write_config(stored)
    assert main(["train", "tic_tac_toe", "--resume", "a"]) == 0
    assert main(["train", "tic_tac_toe", "--resume", "a", "--seed", "4", "--fork", "b"]) == 0
    assert trained == [(stored, Path("a")), (dataclasses.replace(stored, seed=4), Path("b"))]
    capsys.readouterr()
    assert main(["train", "connect_four", "--resume", "a"]) == 2
    assert "run a: got a run of tic_tac_toe, expected one of connect_four" in capsys.readouterr().err


def test_a_run_keeps_the_reference_of_a_game_of_ones_own(trained, tmp_path):
    (tmp_path / "mine.py").write_text("from envs.tic_tac_toe import TicTacToe\nGAME = TicTacToe()\n", "utf-8")
    assert main(["train", "mine.py:GAME", "--preset", "smoke"]) == 0
    assert trained[0][0].game == "mine.py:GAME"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("train --help", preset("quick", "crosshair")),
        ("train crosshair --preset paper --help", preset("paper", "crosshair")),
        ("plan -h tic_tac_toe", preset("quick", "tic_tac_toe")),
    ],
)
def test_help_shows_the_presets_values_and_what_each_field_is(line, shown, capsys):
    assert main(line.split()) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert f"the preset {shown.preset} for {shown.game}" in text
    options = re.split(r" (?=--)", text)
    for name, value in (("steps", shown.steps), ("search.simulations", shown.search.simulations)):
        (option,) = (part for part in options if part.startswith(f"--{name} "))
        assert f"(default: {value})" in option
    for name in ("seed", "steps", "search.algorithm", "search.simulations"):
        (option,) = (part for part in options if part.startswith(f"--{name} "))
        assert len(option.partition("(default")[0].split()) > 5  # a text beside the name and the kind


def last_json(capsys) -> dict:
    said = capsys.readouterr()
    return json.loads(said.out.splitlines()[-1])


def test_games(capsys):
    assert main(["games", "--json"]) == 0
    assert "crosshair" in last_json(capsys)["games"]
    assert main(["games", "crosshair", "--json"]) == 0
    facts = last_json(capsys)
    assert facts["actions"] == 49 and facts["observation_shape"] == [7, 7, 6] and facts["state_bytes"] <= 80
    assert facts["options"] == {"size": 7, "diagonal_pinch": False, "max_plies": 49} and "check" not in facts


def test_the_list_of_games_says_what_else_a_game_can_be(capsys):
    assert main(["games"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[: len(envs.available())] == envs.available()
    words = [line.split()[0] for line in lines if line and line not in envs.available()]
    assert words == ["go,size=N", "pgx:NAME", "FILE.py:NAME", "azjax"]
    assert main(["games", "--help"]) == 0
    assert "[GAME]" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("word", envs.available())
def test_a_game_tells_its_rules_and_options(word, capsys):
    assert main(["games", word]) == 0
    said = capsys.readouterr().out
    assert "first player" in said.replace("\n", " ") and "Planes" in said and "max_plies=" in said
    game = envs.make(word)
    assert said.startswith(game.rules_text) and game.legend in said and game.class_text in said
    assert max(map(len, game.rules_text.splitlines())) <= 80


OWN_GAME = """
from envs.tic_tac_toe import TicTacToe

class Mine(TicTacToe):
    id = "mine"
    def legal_action_mask(self, state):
        {mask}

GAME = Mine()
"""


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        ("return super().legal_action_mask(state)", None),
        ("return super().legal_action_mask(state) | (state.ply > 2)", "legal_action_mask: game "),
        ("return self.nothing", "its code fails: AttributeError: 'Mine' object has no attribute 'nothing' (line 7)"),
        ("assert False, 'mine'", "its code fails: AssertionError: mine (line 7)"),
    ],
)
def test_a_game_is_checked_in_one_line(mask, said, tmp_path, capsys):
    (tmp_path / "mine.py").write_text(OWN_GAME.format(mask=mask), "utf-8")
    assert main(["games", f"{tmp_path}/mine.py:GAME", "--check"]) == (0 if said is None else 2)
    told = capsys.readouterr()
    if said is None:
        assert "keeps the contract in 32 random games" in told.out and told.err == ""
    else:
        assert said in told.err and one_line(told.err) and told.out == ""


def test_match_prints_its_shape_and_writes_only_where_asked(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argv = ["match", "tic_tac_toe", "random", "random", "--games", "6", "--seed", "3", "--json"]
    assert main(argv) == 0
    first = last_json(capsys)
    assert list(tmp_path.iterdir()) == []
    keys = "game a b games wins draws losses score ci95 distinct seconds".split()
    assert keys == [key for key in first if key in keys]
    assert first["wins"] + first["draws"] + first["losses"] == first["games"] == 6
    assert first["score"] == (first["wins"] + first["draws"] / 2) / 6
    assert 0 <= first["ci95"][0] <= first["score"] <= first["ci95"][1] <= 1

    assert main([*argv, "--out", "deep/er"]) == 0
    again = last_json(capsys)
    assert {**first, "seconds": 0} == {**again, "seconds": 0}
    assert json.loads((tmp_path / "deep/er/match.json").read_text("utf-8")) == again
    games = [json.loads(line) for line in (tmp_path / "deep/er/games.jsonl").read_text("utf-8").splitlines()]
    assert len(games) == 6 and len({tuple(game["actions"]) for game in games}) == again["distinct"]
    assert sorted(path.name for path in (tmp_path / "deep/er").iterdir()) == ["games.jsonl", "match.json"]


def test_match_writes_sgf_where_the_game_has_it(tmp_path):
    assert main(["match", "hex,size=3", "random", "random", "--games", "4", "--out", str(tmp_path)]) == 0
    game = envs.make("hex,size=3")
    sgf, lines = (read_games(tmp_path / name) for name in ("games.sgf", "games.jsonl"))
    check_records(game, sgf)
    assert [record.opening_plies for record in lines] == [2] * 4
    assert sgf == [dataclasses.replace(record, opening_plies=0) for record in lines]


def test_play_adds_its_games_to_a_file(tmp_path, monkeypatch):
    path = tmp_path / "games.sgf"
    argv = ["play", "hex,size=3", "--opponent", "random", "--record", str(path)]
    for line in ("b2\nresign\n", "a1\n", ""):  # the last one is left at once: no game
        monkeypatch.setattr(sys, "stdin", io.StringIO(line))
        assert main(argv) == 0
    resigned, left = read_games(path)
    assert (resigned.players, resigned.end, resigned.returns) == (("person", "random"), "resignation", (-1.0, 1.0))
    assert (left.end, left.actions[0], len(left.date)) == ("unfinished", 0, 10)
    check_records(envs.make("hex,size=3"), [resigned, left])


def test_a_game_without_a_move_leaves_no_new_file(tmp_path, monkeypatch):
    path = tmp_path / "games.jsonl"
    argv = ["play", "tic_tac_toe", "--opponent", "random", "--record", str(path)]
    for line in ("resign\n", ""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(line))
        assert main(argv) == 0 and not path.exists()
    path.touch()  # someone's own file stays
    monkeypatch.setattr(sys, "stdin", io.StringIO("quit\n"))
    assert main(argv) == 0 and path.exists()


def test_where_play_cannot_write_is_told_before_the_game(tmp_path, capsys):
    argv = ["play", "tic_tac_toe", "--opponent", "random", "--record"]
    assert main([*argv, str(tmp_path / "game.sgf")]) == 2
    assert "game.sgf: got the format .sgf, expected a file's name that ends in .jsonl" in capsys.readouterr().err
    assert main([*argv, str(tmp_path / "none/game.jsonl")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_how_far_a_match_has_come_is_told_with_a_clock(capsys, monkeypatch):
    times = iter([100.0, 102.0, 131.0])
    monkeypatch.setattr(start, "time", SimpleNamespace(monotonic=lambda: next(times)))
    tell = start.Telling("a against b")
    tell(0, 60)  # too soon
    tell(12, 60)
    assert capsys.readouterr().err == "a against b: 12 of 60 games, 0:31\n"


def test_rate_prints_its_shape(capsys, tmp_path):
    argv = ["rate", "tic_tac_toe", "random", "uct:4", "--games", "6", "--out", str(tmp_path / "r"), "--json"]
    assert main(argv) == 0
    ratings = last_json(capsys)
    assert sorted(ratings) == ["advantage", "draw_elo", "pairs", "players"]
    assert {player["name"] for player in ratings["players"]} == {"random", "uct:4"}
    assert all(sorted(player) == ["ci95", "elo", "games", "name", "score"] for player in ratings["players"])
    assert next(player for player in ratings["players"] if player["name"] == "random")["elo"] == 0
    assert json.loads((tmp_path / "r/ratings.json").read_text("utf-8")) == ratings
    assert (tmp_path / "r/elo.png").read_bytes().startswith(b"\x89PNG")


def test_a_reader_that_leaves_early_is_no_traceback():
    code = "import sys; from azjax.cli import main; sys.exit(main(['games']))"
    command = f'{sys.executable} -c "{code}" | head -c 1'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300)
    assert done.stderr == ""


def test_python_m_azjax():
    done = subprocess.run([sys.executable, "-m", "azjax", "--version"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.startswith("azjax 0.")
