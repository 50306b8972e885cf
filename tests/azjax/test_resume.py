"""What a run can be resumed as: bit for bit at any point, on other devices, and never with another meaning."""

import dataclasses
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from azjax import evaluation
from azjax import train as module
from azjax.checkpoint import CheckpointError, Checkpoints
from azjax.cli import main
from azjax.config import (
    CheckpointConfig,
    GateConfig,
    NetworkConfig,
    ReplayConfig,
    from_json,
    to_json,
)
from azjax.network import evaluate
from azjax.resume import SAFE_FIELDS, refuse_changes
from azjax.rundir import RunDirectory, check_cache, load_run
from azjax.train import train
from tests.azjax.tiny_run import TINY, assert_same_state, rows_of, state_of, stopped_after

DATA = Path(__file__).parents[1] / "data"
GAMES = {
    "tic_tac_toe": TINY,
    "connect_four": dataclasses.replace(
        TINY, game="connect_four", replay=ReplayConfig(plies=64), gate=GateConfig(every=2, games=2, score=0.0)
    ),
    "go,size=3": dataclasses.replace(
        TINY,
        game="go,size=3",
        replay=ReplayConfig(plies=32),
        network=NetworkConfig(kind="resnet", blocks=1, channels=4, value_width=4),
        search=dataclasses.replace(TINY.search, algorithm="gumbel"),
    ),
}


@pytest.fixture(scope="module", params=GAMES)
def whole(request, tmp_path_factory):
    """A run that was never interrupted, and its configuration."""
    config, directory = GAMES[request.param], tmp_path_factory.mktemp("runs") / "whole"
    assert train(config, directory) == 0
    return config, directory


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5])
def test_stopped_anywhere_a_run_goes_on_bit_for_bit(whole, cut, tmp_path, monkeypatch):
    config, uninterrupted = whole
    directory = tmp_path / "resumed"
    with stopped_after(cut, monkeypatch):
        assert train(config, directory) == 143
    assert Checkpoints(directory / "checkpoints").saved_steps()[-1] == cut
    assert train(config, directory) == 0
    assert_same_state(uninterrupted, directory, 6)
    training = [[row for row in rows_of(run) if "loss" in row or "gate" in row] for run in (uninterrupted, directory)]
    assert training[0] == training[1]


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 2])
def test_a_run_of_eight_devices_goes_on_with_fewer(devices, tmp_path, monkeypatch, capsys):
    directory, eight = tmp_path / "run", dataclasses.replace(TINY, devices=8)
    with stopped_after(3, monkeypatch):
        assert train(eight, directory) == 143
    saved = state_of(directory, 3)
    assert train(dataclasses.replace(TINY, devices=devices), directory) == 0
    assert "resumed at step 3 of 6" in capsys.readouterr().err
    resumed = Checkpoints(directory / "checkpoints")
    assert resumed.saved_steps()[-1] == 6
    assert state_of(directory, 6)["['replay']['outcome']"].shape == saved["['replay']['outcome']"].shape
    assert [row["step"] for row in rows_of(directory) if "loss" in row] == [1, 2, 3, 4, 5, 6]
    # What was played on eight devices is still there: the ring has 32 rows, 24 are filled.
    np.testing.assert_array_equal(
        state_of(directory, 6)["['replay']['positions']['mover']"][:12], saved["['replay']['positions']['mover']"][:12]
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "tiny"
    assert train(TINY, directory) == 0
    return directory


def stand_ins(value):
    """Other values of a field, of which a configuration may refuse some."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value + 2, value * 2 + 2]
    if isinstance(value, float):
        return [value / 2 + 0.25]
    if isinstance(value, str):
        names = "connect_four random adamw sgd stepwise constant gumbel mctx win_draw_loss none best false resnet quick"
        return [name for name in (*names.split(), "training_and_search", "smoke") if name != value]
    if isinstance(value, list):
        return [["random"], [1, 2]]
    return [1, 1.5]


def changed_in_every_field():
    """(dotted name, configuration with another value there) of every field."""
    for section, value in to_json(TINY).items():
        for name in value if isinstance(value, dict) else [None]:
            for other in stand_ins(value[name] if name else value):
                fields = json.loads(json.dumps(to_json(TINY)))
                if name:
                    fields[section][name] = other
                else:
                    fields[section] = other
                try:
                    config = from_json(fields)
                except (ValueError, TypeError):
                    continue
                yield f"{section}.{name}" if name else section, config
                break


def test_every_field_that_trains_is_refused_by_name_before_orbax_and_the_others_are_not(tiny, monkeypatch):
    monkeypatch.setattr("orbax.checkpoint.v1.load", lambda *_: pytest.fail("reached Orbax"))
    refused, passed = set(), set()
    for name, config in changed_in_every_field():
        before = {path: path.stat().st_mtime_ns for path in tiny.iterdir() if path.name != "lock"}
        try:
            refuse_changes(TINY, config, RunDirectory(tiny))
            passed.add(name)
        except ValueError as error:
            assert f"{name}: " in str(error) and "--fork NAME" in str(error)
            refused.add(name)
            if name in ("game", "network.width", "steps", "learner.batch"):
                with pytest.raises(ValueError, match=rf"started with other values \({name}: "):
                    train(config, tiny)
        assert {path: path.stat().st_mtime_ns for path in tiny.iterdir() if path.name != "lock"} == before
    fields = {
        f"{s}.{n}" if isinstance(v, dict) else s
        for s, v in to_json(TINY).items()
        for n in (v if isinstance(v, dict) else [s])
    }
    # selfplay.actor cannot be best without a gate: that is refused as a configuration.
    assert fields - refused - passed <= {"selfplay.actor", "search.parallel"}
    assert passed == {name for name in fields if name.startswith(SAFE_FIELDS)}


def test_another_state_is_refused_with_its_leaves_before_orbax(tiny, tmp_path, monkeypatch):
    """A configuration that says the same, of a program that keeps other arrays."""
    directory = Path(shutil.copytree(tiny, tmp_path / "run"))
    (directory / "report.md").unlink()
    original = module.Step.init if hasattr(module.Step, "init") else None
    assert original is None  # the compiled program is made with the step
    real = module.Step._init

    def other(self, rng_key):
        state = real(self, rng_key)
        return dataclasses.replace(state, lanes=dataclasses.replace(state.lanes, ply=state.lanes.ply.astype(jnp.int16)))

    monkeypatch.setattr(module.Step, "_init", other)
    monkeypatch.setattr(module._Trainer, "_compile", lambda self, like: None)
    monkeypatch.setattr("orbax.checkpoint.v1.load", lambda *_: pytest.fail("reached Orbax"))
    with pytest.raises(CheckpointError, match=r"lanes/ply is int32\[8\], expected int16\[8\]"):
        train(TINY, directory)


def test_a_match_that_a_signal_interrupts_is_played_when_the_run_goes_on(tmp_path, monkeypatch):
    config = dataclasses.replace(
        TINY,
        evaluation=dataclasses.replace(TINY.evaluation, every=2),
        gate=GateConfig(every=2, games=2, score=0.0),
        checkpoint=CheckpointConfig(every=6, keep=3),
    )
    assert train(config, tmp_path / "whole") == 0
    directory = tmp_path / "resumed"
    real, interrupted = module.play_match, []

    def signalled(*args, on_progress, **kwargs):
        if len(interrupted) < 2 and kwargs["seed"] == 4:  # the gate's match of step 4, twice
            interrupted.append(threading.current_thread().name)
            os.kill(os.getpid(), signal.SIGTERM)
            while True:
                on_progress(0, 2)
        return real(*args, on_progress=on_progress, **kwargs)

    monkeypatch.setattr(module, "play_match", signalled)
    assert train(config, directory) == 143
    assert Checkpoints(directory / "checkpoints").saved_steps() == [4]
    assert [row["step"] for row in rows_of(directory) if "gate" in row] == [2]
    assert train(config, directory) == 143  # nothing new was trained
    assert train(config, directory) == 0
    assert interrupted == ["interruptible"] * 2
    for path in (directory, tmp_path / "whole"):
        shutil.rmtree(path / "checkpoints" / "4", ignore_errors=True)
    kept = [
        [row for row in rows_of(run) if row["step"] < 6 or "loss" in row] for run in (tmp_path / "whole", directory)
    ]
    assert kept[0] == kept[1]
    assert_same_state(tmp_path / "whole", directory, 6)


@pytest.mark.parametrize("look", [1, 2, 3, 4])
def test_the_newest_step_is_saved_whichever_look_for_a_signal_answers_it(look, tmp_path, monkeypatch, capsys):
    """Several processes agree on a look, which need not be the one after a step; there is one before a step too."""
    looks = itertools.count(1)
    monkeypatch.setattr(module.Signals, "caught", lambda self: signal.SIGTERM if next(looks) >= look else 0)
    config = dataclasses.replace(TINY, checkpoint=CheckpointConfig(every=6, keep=3))
    assert train(config, tmp_path / "run") == 143
    trained = [row["step"] for row in rows_of(tmp_path / "run")]
    assert trained == list(range(1, look // 2 + 1))
    assert Checkpoints(tmp_path / "run" / "checkpoints").saved_steps() == trained[-1:]
    said = f"step {trained[-1]} is saved" if trained else "nothing was to be saved"
    assert f"SIGTERM: {said}; resume with: azjax train tic_tac_toe --resume" in capsys.readouterr().err


def test_parameters_that_are_not_finite_are_never_the_newest_checkpoint(tmp_path, monkeypatch):
    original = module._Trainer._train_step

    def poisoning(self, state):
        state, row = original(self, state)
        if row["step"] == 3:
            poison = jax.tree.map(lambda leaf: leaf * math.nan, state.learner.variables)
            state = dataclasses.replace(state, learner=dataclasses.replace(state.learner, variables=poison))
        return state, row

    monkeypatch.setattr(module._Trainer, "_train_step", poisoning)
    with pytest.raises(FloatingPointError, match=r"parameters of step 4 are not finite; the state is in .*crash"):
        train(TINY, tmp_path / "run")
    assert Checkpoints(tmp_path / "run" / "checkpoints").saved_steps() == [2]
    assert Checkpoints(tmp_path / "run" / "crash" / "checkpoints").saved_steps() == [4]
    assert load_run(str(tmp_path / "run"), None).step == 2
    replay = state_of(tmp_path / "run" / "crash", 4)
    assert all(
        np.isfinite(replay[f"['replay']['positions']['{name}']"]).all() for name in ("search_weights", "root_value")
    )


def matches_of(directory):
    """(step, a, b) of every evaluation in the log, and how many of them are the report's."""
    rows = [row for row in rows_of(directory) if "evaluation" in row]
    return [(row["step"], row["evaluation"]["a"], row["evaluation"]["b"]) for row in rows], sum(
        "final" in row for row in rows
    )


def test_a_run_that_is_killed_after_a_late_match_writes_it_once(tmp_path, monkeypatch):
    config = dataclasses.replace(
        TINY,
        evaluation=dataclasses.replace(TINY.evaluation, every=2),
        checkpoint=CheckpointConfig(every=6, keep=3),
    )
    directory, real = tmp_path / "run", evaluation.play_match

    def signalled(*args, on_progress, **kwargs):
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            on_progress(0, 2)

    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "play_match", signalled)
        assert train(config, directory) == 143
    assert Checkpoints(directory / "checkpoints").saved_steps() == [2]
    with monkeypatch.context() as patch:
        patch.setattr(module._Trainer, "_train_step", lambda self, state: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(OSError, match="killed"):
            train(config, directory)
    late = [(2, "step 2", "random"), (2, "step 2", "uct:2")]
    assert evaluation.play_match is real and matches_of(directory) == (late, 0)
    with stopped_after(3, monkeypatch):
        assert train(config, directory) == 143
    assert matches_of(directory) == (late, 0)


def test_a_lost_report_is_made_again_and_its_matches_come_once_in_a_log_whose_damage_is_told(tiny, tmp_path, capsys):
    directory = Path(shutil.copytree(tiny, tmp_path / "run"))
    before, ratings = rows_of(directory), (directory / "ratings.json").read_text()
    assert matches_of(directory)[1] == 6
    (directory / "report.md").unlink()
    log = directory / "metrics.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:2], b"null\n", b'{"step": 3, "ga\n', *lines[2:]])
    log.write_bytes(damaged)
    assert train(TINY, directory) == 0
    assert (directory / "report.md").is_file() and rows_of(directory) == before
    assert (directory / "ratings.json").read_text() == ratings
    said = f"metrics.jsonl: 2 damaged lines of {len(lines) + 2} dropped; the file as it was is kept in"
    assert said in " ".join(capsys.readouterr().err.split())
    assert (directory / "metrics.jsonl.damaged").read_bytes() == damaged


def test_a_finished_run_is_rated_again_where_its_rating_is_asked_for_otherwise(tiny, tmp_path, capsys):
    directory = Path(shutil.copytree(tiny, tmp_path / "run"))

    def asked(**fields):
        return dataclasses.replace(TINY, evaluation=dataclasses.replace(TINY.evaluation, **fields))

    assert train(asked(every=3, games=4), directory) == 0  # nothing of the report
    assert "its report:" in capsys.readouterr().err
    for wanted in (asked(final_games=4), asked(final_games=4, anchors=("random",))):
        assert train(wanted, directory) == 0
        said = capsys.readouterr().err
        assert "4 games a pair" in said and "its report:" not in said
        assert train(wanted, directory) == 0
        assert "its report:" in capsys.readouterr().err
        assert RunDirectory(directory).read_config() == wanted
    players = json.loads((directory / "ratings.json").read_text())["players"]
    assert {player["name"]: player["games"] for player in players} == dict.fromkeys(("step 4", "step 6", "random"), 8)
    assert [row["step"] for row in rows_of(directory) if "loss" in row] == [1, 2, 3, 4, 5, 6]


def test_an_older_checkpoint_that_is_damaged_is_left_out_of_the_report(tiny, tmp_path, capsys):
    directory = Path(shutil.copytree(tiny, tmp_path / "run"))
    (directory / "report.md").unlink()
    victim = max((directory / "checkpoints" / "4" / "state").rglob("d/*"), key=lambda path: path.stat().st_size)
    damaged = bytearray(victim.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    victim.write_bytes(damaged)
    assert train(TINY, directory) == 0
    assert "checkpoints/4 is damaged: " in (said := capsys.readouterr().err) and "; it is left out" in said
    names = {player["name"] for player in json.loads((directory / "ratings.json").read_text())["players"]}
    assert names == {"step 2", "step 6", "random", "uct:2"}


def test_steps_may_change_down_to_those_done_where_the_schedule_does_not_depend_on_them(tiny):
    def asked(schedule, steps):
        learner = dataclasses.replace(TINY.learner, schedule=schedule)
        return dataclasses.replace(TINY, steps=steps, learner=learner)

    run = RunDirectory(tiny)
    for schedule in ("constant", "stepwise"):
        refuse_changes(asked(schedule, 8), asked(schedule, 6), run)
        refuse_changes(asked(schedule, 6), asked(schedule, 8), run)
        with pytest.raises(ValueError, match=r"^steps: got 5, expected at least 6, which .*tiny has done$"):
            refuse_changes(asked(schedule, 6), asked(schedule, 5), run)
    with pytest.raises(ValueError, match=r"steps: 6 -> 8\); the cosine schedule depends on steps; use --fork NAME"):
        refuse_changes(TINY, asked("cosine", 8), run)
    with pytest.raises(ValueError, match=r"steps: 6 -> 8, learner\.schedule: constant -> cosine"):
        refuse_changes(asked("constant", 6), asked("cosine", 8), run)


@pytest.mark.slow
def test_a_run_that_is_lengthened_is_the_one_that_was_so_long_from_the_start(tmp_path, capsys):
    constant = dataclasses.replace(TINY, learner=dataclasses.replace(TINY.learner, schedule="constant"))
    longer = dataclasses.replace(constant, steps=8)
    assert train(longer, tmp_path / "whole") == 0
    assert train(constant, tmp_path / "run") == 0
    capsys.readouterr()
    assert train(longer, tmp_path / "run") == 0
    assert "resumed at step 6 of 8" in capsys.readouterr().err
    assert_same_state(tmp_path / "whole", tmp_path / "run", 8)
    assert rows_of(tmp_path / "run") == rows_of(tmp_path / "whole")


@pytest.mark.parametrize(
    ("anchors", "said"),
    [
        (("random", "abc"), r"evaluation\.anchors: player: got 'abc', expected random"),
        (("uct:no",), r"evaluation\.anchors: player 'uct:no': got simulations 'no'"),
        (("run:/nonexist",), r"evaluation\.anchors: run: got /nonexist, which has no config\.json"),
        (("gtp:/nonexist",), r"evaluation\.anchors: player 'gtp:/nonexist': .*nonexist"),
    ],
)
def test_a_wrong_anchor_is_refused_before_anything_is_compiled(anchors, said, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "Step", lambda *_: pytest.fail("made a step"))
    evaluation = dataclasses.replace(TINY.evaluation, anchors=anchors)
    with pytest.raises(ValueError, match=said):
        train(dataclasses.replace(TINY, evaluation=evaluation), tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_configuration_of_another_network_than_the_checkpoints_is_refused_by_its_field(tiny, tmp_path):
    directory = Path(shutil.copytree(tiny, tmp_path / "run"))
    fields = to_json(TINY)
    fields["network"]["width"] = 32
    (directory / "config.json").write_text(json.dumps(fields))
    with pytest.raises(
        ValueError, match=r"config\.json: network\.width: got 32, expected 16, by which checkpoint 6 was"
    ):
        load_run(str(directory), None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "got a file that is not JSON"),
        ('{"game": "tic_tac_toe", "steps": ' + "9" * 5000 + "}", "got a file that is not JSON"),
        ('{"game": 5}', "game: got 5, expected text"),
        ('{"game": "tic_tac_toe", "ste', "got a file that is not JSON"),
        ("null", "configuration: got None, expected an object of fields"),
    ],
    ids=lambda text: text[:12],
)
def test_a_config_json_that_is_none_is_one_line_with_its_path(text, said, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(tmp_path))}/config\.json: {said}") as error:
        RunDirectory(tmp_path).read_config()
    assert "\n" not in str(error.value)


WORDS = """tic_tac_toe --preset smoke --steps 6 --devices 2 --network.width 16 --network.blocks 1 --search.simulations 4
    --search.dirichlet-alpha 1 --selfplay.lanes 8 --selfplay.plies 4 --selfplay.temperature-plies 4 --replay.plies 32
    --learner.batch 16 --learner.updates 2 --checkpoint.every 2 --checkpoint.keep 3 --evaluation.anchors random uct:2
    --evaluation.final-games 2 --evaluation.checkpoints 2 --evaluation.simulations 2""".split()


# The largest file that may be written stands for the disk; it is full after two steps.
FILLING = """
import resource, sys
from azjax import train
from azjax.cli import main

step = train._Trainer._train_step
def filling(self, state):
    if int(state.step) == 2:
        self.checkpoints.wait()
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
    return step(self, state)
train._Trainer._train_step = filling
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("room", "file"), [(8192, "checkpoints"), (200, "metrics.jsonl")])
def test_a_full_disk_is_one_line_that_names_the_file_and_the_space(room, file, tmp_path):
    directory = tmp_path / "run"
    words = ["train", *WORDS, "--out", str(directory)]
    done = subprocess.run([sys.executable, "-c", FILLING, str(room), *words], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("azjax: ")]
    assert len(said) == 1 and str(directory / file) in said[0] and "MB free there" in said[0]
    assert Checkpoints(directory / "checkpoints").saved_steps() == [2]
    assert main(words) == 0
    assert [row["step"] for row in rows_of(directory) if "loss" in row] == [1, 2, 3, 4, 5, 6]


def test_a_second_process_is_refused(tiny):
    with RunDirectory(tiny).lock():
        done = subprocess.run(
            [sys.executable, "-m", "azjax", "train", *WORDS, "--out", str(tiny)], capture_output=True, text=True
        )
    assert done.returncode == 2
    assert f"is being trained by process {os.getpid()} on " in done.stderr.splitlines()[-1]


def test_a_compilation_cache_that_others_can_write_is_refused(tmp_path):
    cache = tmp_path / "cache"
    check_cache(None)
    check_cache(str(cache))  # JAX makes it, for this user alone to write
    cache.mkdir(mode=0o755)
    check_cache(str(cache))
    cache.chmod(0o777)
    with pytest.raises(ValueError, match=r"cache, which is writable by everyone; expected one that you alone"):
        check_cache(str(cache))
    cache.chmod(0o755)
    if os.getuid() == 0:
        os.chown(cache, 12345, -1)
        with pytest.raises(ValueError, match=r"cache, which is user 12345's; expected"):
            check_cache(str(cache))


@pytest.mark.parametrize("part", ["checkpoints", "metrics.jsonl", "config.json"])
def test_a_part_of_a_run_that_is_a_link_is_refused(part, tiny, tmp_path):
    directory = Path(shutil.copytree(tiny, tmp_path / "run"))
    (directory / part).rename(tmp_path / "elsewhere")
    (directory / part).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=f"{part} is a link, expected a run whose files are all inside it"):
        train(TINY, directory)


def test_a_checkpoint_with_another_programs_metadata_is_refused(tiny, tmp_path):
    from azjax.manifest import MANIFEST, hash_manifest

    directory = Path(shutil.copytree(tiny, tmp_path / "run"))
    (directory / "report.md").unlink()
    path = directory / "checkpoints" / "6" / MANIFEST
    manifest = json.loads(path.read_text())
    manifest["metadata"]["totals"]["worlds"] = 3
    manifest["sha256"] = hash_manifest(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"checkpoint 6 of .*: its metadata is not a run's .*worlds"):
        train(TINY, directory)


@pytest.mark.parametrize(
    ("version", "logits", "value"),
    [(1, [-0.0007, 0.005, -0.0077, 0.0006, 0.011, -0.0025, -0.0026, 0.0072, 0.0048], 0.0221)],
)
def test_a_run_that_was_kept_of_each_format_is_read_and_thinks_what_it_thought(version, logits, value):
    """Of the empty board of tic-tac-toe. A new format adds its own run to tests/data and keeps the older ones."""
    agent = load_run(str(DATA / f"run_format_{version}"), None)
    game = envs.make(agent.config.game)
    board = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 1))
    got, got_value = evaluate(agent.config.network, game, agent.variables, jax.random.key(0), board)
    np.testing.assert_allclose(got[0], logits, atol=1e-4)
    np.testing.assert_allclose(got_value[0], value, atol=1e-4)
    assert agent.step == 4
