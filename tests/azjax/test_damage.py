"""What people and machines do to the directory of a run: one clear line each, and nothing that was saved is lost."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from azjax import manifest, rows
from azjax import train as module
from azjax.checkpoint import CheckpointError, Checkpoints, Restored
from azjax.cli import main
from azjax.config import to_json
from azjax.manifest import MANIFEST, hash_file, hash_manifest
from azjax.resume import read_metadata
from azjax.rundir import RunDirectory, load_run
from azjax.train import train
from tests.azjax.tiny_run import TINY, assert_same_state, rows_of

NAMES = ("learner", "best", "lanes", "replay", "rng_key", "step")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A finished run with the steps 2, 4 and 6."""
    directory = tmp_path_factory.mktemp("runs") / "whole"
    assert train(TINY, directory) == 0
    return directory


@pytest.fixture
def run(whole, tmp_path) -> Path:
    """A copy of it that lacks its report: the same command goes on with it."""
    directory = Path(shutil.copytree(whole, tmp_path / "run"))
    (directory / "report.md").unlink()
    return directory


@pytest.fixture(scope="module")
def stranger(tmp_path_factory) -> Path:
    """A run that differs in its seed."""
    directory = tmp_path_factory.mktemp("runs") / "stranger"
    assert train(dataclasses.replace(TINY, seed=1), directory) == 0
    return directory


@pytest.fixture(scope="module")
def like():
    """The run's state as shapes with shardings, as `train` asks for it."""
    step = module.Step(TINY, module.envs.make(TINY.game), module.make_mesh(TINY.devices))
    return step.placed(jax.eval_shape(step.init, jax.random.key(0)))


def newest(directory: Path) -> tuple[int, list[str]]:
    """Which step is loaded, after a look that it is what was saved in it, and what was said of the others."""
    said: list[str] = []
    found = Checkpoints(directory / "checkpoints", warn=said.append).restore_part(None, ("step",))
    assert int(found.state["step"]) == found.step
    assert all("\n" not in line for line in said)
    return found.step, said


def rewrite(folder: Path, **changes) -> None:
    """Changes a manifest and makes its own hash right, as a stranger would."""
    path = folder / MANIFEST
    fields = json.loads(path.read_text()) | changes
    fields["sha256"] = hash_manifest(fields)
    path.write_text(json.dumps(fields))


def test_two_steps_that_were_exchanged_are_passed_over(run):
    checkpoints = run / "checkpoints"
    for source, target in (("4", "x"), ("6", "4"), ("x", "6")):
        (checkpoints / source).rename(checkpoints / target)
    step, said = newest(run)
    assert step == 2 and len(said) == 2 and all("or is of another step" in line for line in said)


def largest(folder: Path) -> Path:
    return max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


def cut_to(size: int, path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def with_a_hole(path: Path) -> None:
    size = path.stat().st_size
    cut_to(size // 2, path)
    cut_to(size, path)


def another_kind(path: Path) -> None:
    """A directory in the place of a file, a file in a directory's."""
    if path.is_dir():
        shutil.rmtree(path)
        path.touch()
    else:
        path.unlink()
        path.mkdir()


BY_HAND = {  # what is done to step 6, the step that is then loaded, how many are passed over
    "a page is left": (lambda step: cut_to(4096, largest(step)), 4, 1),
    "a hole": (lambda step: with_a_hole(largest(step)), 4, 1),
    "a byte more": (lambda step: largest(step).write_bytes(largest(step).read_bytes() + b"0"), 4, 1),
    "a directory in a file's place": (lambda step: another_kind(largest(step)), 4, 1),
    "a directory in the manifest's place": (lambda step: another_kind(step / MANIFEST), 4, 1),
    "a file in a directory's place": (lambda step: another_kind(step / "state"), 4, 1),
    "a file in the step's place": (another_kind, 4, 1),
    "an older number": (lambda step: step.rename(step.with_name("5")), 4, 1),
    "a newer number": (lambda step: step.rename(step.with_name("77")), 4, 1),
    "two of it": (lambda step: shutil.copytree(step, step.with_name("7")), 6, 1),
    "a name that is no number": (lambda step: step.rename(step.with_name("06")), 4, 0),
    "a copy of another name": (lambda step: shutil.copytree(step, step.with_name("6 (copy)")), 6, 0),
    "times of the next century": (lambda step: [os.utime(path, (4e9, 4e9)) for path in step.rglob("*")], 6, 0),
}


@pytest.mark.parametrize("how", BY_HAND)
def test_what_hands_do_to_a_step_is_noticed(how, run):
    do, expected, passed_over = BY_HAND[how]
    do(run / "checkpoints" / "6")
    step, said = newest(run)
    assert (step, len(said)) == (expected, passed_over)
    assert load_run(str(run), None).step == expected


def test_every_file_of_another_step_is_noticed(run, whole):
    for path in sorted((whole / "checkpoints" / "6").rglob("*")):
        name = path.relative_to(whole / "checkpoints" / "6")
        other = whole / "checkpoints" / "4" / name
        if not other.is_file():
            continue
        target = run / "checkpoints" / "6" / name
        shutil.copyfile(other, target)
        step, said = newest(run)
        assert (step == 6) == (other.read_bytes() == path.read_bytes()), name
        assert len(said) == (step != 6)
        shutil.copyfile(path, target)


def test_a_checkpoint_of_another_run_is_refused_with_the_fields(run, stranger):
    shutil.rmtree(run / "checkpoints" / "6")
    shutil.copytree(stranger / "checkpoints" / "6", run / "checkpoints" / "6")
    before = (run / "metrics.jsonl").read_bytes()
    with pytest.raises(CheckpointError, match=r"checkpoint 6 of .*run is of a run with other values \(seed: 1, exp"):
        train(TINY, run)
    assert (run / "metrics.jsonl").read_bytes() == before
    shutil.rmtree(run / "checkpoints" / "6")
    assert train(TINY, run) == 0


def test_a_manifest_of_another_run_does_not_fit_its_files(run, stranger):
    shutil.copyfile(stranger / "checkpoints" / "6" / MANIFEST, run / "checkpoints" / "6" / MANIFEST)
    step, said = newest(run)
    assert step == 4 and "checkpoints/6 is damaged: " in said[0]


def test_a_configuration_that_was_changed_by_hand_is_refused_by_its_checkpoints(run):
    path = run / "config.json"
    fields = json.loads(path.read_text())
    fields["learner"]["learning_rate"] = 0.5
    path.write_text(json.dumps(fields))
    with pytest.raises(CheckpointError, match=r"other values \(learner\.learning_rate: 0\.\d+, expected 0\.5\)"):
        train(RunDirectory(run).read_config(), run)


def test_a_run_without_its_configuration_goes_on_as_itself_alone(run, whole):
    (run / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"is of a run with other values \(seed: 0, expected 1\)"):
        train(dataclasses.replace(TINY, seed=1), run)
    assert not (run / "config.json").exists()
    assert train(TINY, run) == 0
    assert RunDirectory(run).read_config() == TINY
    assert rows_of(run) == rows_of(whole)


def test_rows_that_are_not_there_are_told_of(run):
    said: list[str] = []
    (run / "metrics.jsonl").unlink()
    RunDirectory(run).cut_rows(0, (), said.append)
    assert said == []
    RunDirectory(run).cut_rows(6, (), said.append)
    assert said == [f"{run}/metrics.jsonl: 6 of the rows of 6 steps are not there; curves lack them"]


def test_fields_that_do_not_train_may_have_changed_since_a_checkpoint(run):
    longer = dataclasses.replace(TINY, evaluation=dataclasses.replace(TINY.evaluation, final_games=4))
    assert train(longer, run) == 0


@pytest.mark.parametrize("part", ["checkpoints", "checkpoints/6", "checkpoints/6/state", "checkpoints/6/manifest.json"])
def test_a_link_out_of_the_directory_is_not_followed(part, run, tmp_path):
    (run / part).rename(tmp_path / "elsewhere")
    (run / part).symlink_to(tmp_path / "elsewhere")
    if part == "checkpoints":
        with pytest.raises(ValueError, match="checkpoints is a link, expected a run whose files are all inside it"):
            load_run(str(run), None)
    else:
        step, said = newest(run)
        assert step == 4 and len(said) == 1
        assert load_run(str(run), None).step == 4


def test_a_link_in_the_place_of_a_file_to_be_written_is_not_followed(run, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    game = next((run / "games").glob("*.jsonl"))
    game.unlink()
    game.symlink_to(victim)
    with pytest.raises(ValueError, match=rf"run: {game} is a link, expected a run whose files are all inside it"):
        train(TINY, run)
    assert victim.read_text() == "mine"
    assert load_run(str(run), None).step == 6


def test_files_without_an_end_are_not_read(run, monkeypatch):
    """/dev/zero, a pipe that nobody writes to, a manifest of a terabyte."""
    checkpoints = run / "checkpoints"
    (checkpoints / "6" / MANIFEST).unlink()
    (checkpoints / "6" / MANIFEST).symlink_to("/dev/zero")
    (checkpoints / "4" / MANIFEST).unlink()
    os.mkfifo(checkpoints / "4" / MANIFEST)
    step, said = newest(run)
    assert step == 2 and all("manifest.json is missing" in line for line in said)
    victim = next(path for path in (checkpoints / "2" / "state").rglob("*") if path.is_file())
    victim.unlink()
    os.mkfifo(victim)
    with pytest.raises(CheckpointError, match=r"no whole checkpoint in .*, damaged: 2, 4, 6"):
        newest(run)
    (checkpoints / "6" / MANIFEST).unlink()
    with (checkpoints / "6" / MANIFEST).open("wb") as file:
        file.truncate(2**40)
    said = []
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        Checkpoints(checkpoints, warn=said.append).load_part(None, NAMES)
    assert f"manifest.json has {2**40} bytes, expected at most {manifest.MOST_BYTES}" in said[0]
    with (run / "config.json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ValueError, match=f"config.json: got {2**40} bytes, expected a run's fields"):
        RunDirectory(run).read_config()


LEAF = "replay/outcome"


@pytest.mark.parametrize(
    "changes",
    [
        *({"shape": shape} for shape in ([1, 8], [64, 8], [32, 9], [8, 32], [256], [-1, 8], [32.0, 8], ["32", 8])),
        *({"shape": shape} for shape in ([1 << 62, 1 << 62], [1 << 40, 8], [0, 1 << 62], [], "32", None, {})),
        *({"dtype": dtype} for dtype in ("float64", "int32", "bfloat16", "O", "S9999999999", "U99999999", "V8")),
        *({"dtype": dtype} for dtype in ("nonsense", "", None, 3, [["a", "<f4"]])),
        *({"key": key} for key in ("threefry2x32", "nonsense", 3)),
    ],
    ids=str,
)
def test_a_declared_array_that_is_not_the_stored_one_is_an_error(changes, run, like):
    """A stranger's manifest, whose own hash is right."""
    folder = run / "checkpoints" / "6"
    leaves = json.loads((folder / MANIFEST).read_text())["leaves"]
    rewrite(folder, leaves=leaves | {LEAF: leaves[LEAF] | changes})
    with pytest.raises(CheckpointError) as raised:
        Checkpoints(run / "checkpoints").restore(like, step=6)
    assert "\n" not in str(raised.value) and str(folder) in str(raised.value)
    with pytest.raises(CheckpointError, match="checkpoints/6"):
        Checkpoints(run / "checkpoints").load_part(6, NAMES)


@pytest.mark.parametrize(
    "metadata",
    [
        *(None, [], "x", 3, {}, {"totals": None, "gate_streak": 0}, {"totals": {}, "gate_streak": "1"}),
        *({"totals": {"games": value}, "gate_streak": 0} for value in ("3", True, None, [1], -1, float("inf"))),
        {"totals": {"worlds": 3}, "gate_streak": 0},
        *({"totals": {}, "gate_streak": 0, "waiting": waiting} for waiting in (["lunch"], [["gate"]], "gate", 3, None)),
        {"totals": {}, "gate_streak": 0, "config": {"game": "tic_tac_toe", "pickle": 1}},
    ],
    ids=str,
)
def test_metadata_that_is_no_runs_is_one_line(metadata, tmp_path):
    if isinstance(metadata, dict):
        metadata = {"config": to_json(TINY)} | metadata
    restored = Restored(6, SimpleNamespace(step=6), metadata)
    with pytest.raises(CheckpointError, match=r"^checkpoint 6 of .*: its metadata is not a run's \(") as raised:
        read_metadata(restored, TINY, RunDirectory(tmp_path))
    assert "\n" not in str(raised.value)


def test_a_state_of_another_step_than_its_folder_says_is_refused(run):
    (run / "checkpoints" / "6").rename(run / "checkpoints" / "5")
    rewrite(run / "checkpoints" / "5", step=5)
    with pytest.raises(CheckpointError, match=r"checkpoint 5 of .*its state is of step 6"):
        train(TINY, run)


def test_a_run_whose_every_manifest_is_gone_does_not_begin_anew(run):
    for step in ("2", "4", "6"):
        (run / "checkpoints" / step / MANIFEST).unlink()
    before = (run / "metrics.jsonl").read_bytes()
    with pytest.raises(CheckpointError, match=r"no whole checkpoint in .*, damaged: 2, 4, 6"):
        train(TINY, run)
    assert (run / "metrics.jsonl").read_bytes() == before


def test_a_damaged_step_is_kept_and_takes_no_good_ones_place(run):
    (run / "checkpoints" / "4" / MANIFEST).write_text("{}")
    shutil.rmtree(run / "checkpoints" / "6")
    config = dataclasses.replace(TINY, checkpoint=dataclasses.replace(TINY.checkpoint, every=3, keep=2))
    assert train(config, run) == 0  # from step 2; saves 3 and 6
    assert Checkpoints(run / "checkpoints").saved_steps() == [3, 4, 6]
    assert newest(run) == (6, [])


NUL = b"\0" * 5000


@pytest.mark.parametrize(
    ("where", "damaged"),
    [
        ("at the end", 0),  # as some file systems leave a file after a power failure
        ("in the middle", 1),
        ("before a row", 1),
        ("a long line", 1),
        ("cut in the middle", 0),
    ],
)
def test_a_log_with_zeros_or_without_its_end_goes_on(where, damaged, run, whole, capsys):
    log = run / "metrics.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    text = {
        "at the end": b"".join([*lines, NUL]),
        "in the middle": b"".join([*lines[:2], NUL, b"\n", *lines[2:]]),
        "before a row": b"".join([*lines[:2], NUL, *lines[2:]]),
        "a long line": b"".join([*lines[:2], b"x" * (3 * rows.MOST_BYTES), b"\n", *lines[2:]]),
        "cut in the middle": b"".join(lines)[: sum(map(len, lines[:3])) - 7],
    }[where]
    log.write_bytes(text)
    assert train(TINY, run) == 0
    steps = [row["step"] for row in rows_of(run) if "loss" in row]
    kept = {"before a row": [1, 2, 4, 5, 6], "cut in the middle": [1, 2]}.get(where, [1, 2, 3, 4, 5, 6])
    assert steps == kept
    said = capsys.readouterr().err
    assert said.count("metrics.jsonl: 1 damaged line") == damaged
    assert_same_state(whole, run, 6)


def test_zeros_without_end_are_not_read_into_memory(run):
    with (run / "metrics.jsonl").open("r+b") as file:
        file.truncate(2**30)  # takes no room on the disk
    begun = time.process_time()
    kept = [row for line, row in zip(range(100), RunDirectory(run).rows(), strict=False)]
    assert len(kept) > 6 and all(row["step"] for row in kept)
    assert time.process_time() - begun < 60


def moving(at: int, move, monkeypatch):
    """Does something to the directory after a step; what was asked to be saved before is then on the disk."""
    original = module._Trainer._train_step

    def stepping(self, state):
        state, row = original(self, state)
        if row["step"] == at:
            self.checkpoints.wait()
            move()
        return state, row

    monkeypatch.setattr(module._Trainer, "_train_step", stepping)


@pytest.mark.parametrize("how", ["moved", "moved, another in its place", "lock removed"])
def test_a_run_that_is_moved_while_it_trains_stops_and_goes_on_where_it_is_now(how, whole, tmp_path, monkeypatch):
    directory, elsewhere = tmp_path / "run", tmp_path / "elsewhere"

    def move():
        if how == "lock removed":
            (directory / "lock").unlink()
            return
        directory.rename(elsewhere)
        if how != "moved":
            directory.mkdir()
            (directory / "lock").touch()

    with monkeypatch.context() as patch:
        moving(4, move, patch)
        with pytest.raises(OSError, match=r"^run: .*run was moved or removed while it was trained, or its lock was; "):
            train(TINY, directory)
    found = directory if how == "lock removed" else elsewhere
    if how == "moved, another in its place":
        assert [path.name for path in directory.iterdir()] == ["lock"]  # nothing was written over another's
    elif how == "moved":
        assert not directory.exists()
    assert Checkpoints(found / "checkpoints").saved_steps() == [2]
    assert train(TINY, found) == 0
    assert_same_state(whole, found, 6)
    assert [row["step"] for row in rows_of(found) if "loss" in row] == [1, 2, 3, 4, 5, 6]


def test_a_save_that_is_under_way_when_its_directory_goes_is_one_line(tmp_path, monkeypatch, capfd):
    directory = tmp_path / "checkpoints"
    checkpoints = Checkpoints(directory, write=True)
    acknowledge = checkpoints._acknowledge

    def late(step, fields):
        directory.rename(tmp_path / "elsewhere")
        acknowledge(step, fields)

    monkeypatch.setattr(checkpoints, "_acknowledge", late)
    checkpoints.save(3, {"a": jax.numpy.ones(3)}, {})
    with pytest.raises(CheckpointError, match=r"^cannot save checkpoint .*3: FileNotFoundError") as raised:
        checkpoints.wait()
    assert "\n" not in str(raised.value) and "Traceback" not in capfd.readouterr().err
    assert not directory.exists()


def test_a_run_that_is_removed_while_it_trains_is_not_made_again(tmp_path, monkeypatch):
    directory = tmp_path / "run"
    moving(3, lambda: shutil.rmtree(directory), monkeypatch)
    with pytest.raises(OSError, match="was moved or removed while it was trained"):
        train(TINY, directory)
    assert not directory.exists()


def test_a_copy_that_is_made_while_it_trains_is_a_run(whole, tmp_path, monkeypatch):
    config = dataclasses.replace(TINY, checkpoint=dataclasses.replace(TINY.checkpoint, every=1))
    directory, copies = tmp_path / "run", []

    def copy(number: int):
        target = tmp_path / f"copy{number}"
        subprocess.run(["cp", "-r", str(directory), str(target)], stderr=subprocess.DEVNULL)  # of what vanishes
        copies.append((number, target))

    original = module._Trainer._save

    def saving(self, state, step, wait):
        saved = original(self, state, step, wait)
        copy(step)  # while the files are being written
        return saved

    with monkeypatch.context() as patch:
        patch.setattr(module._Trainer, "_save", saving)
        assert train(config, directory) == 0
    assert len(copies) == 6
    for number, target in copies[1:]:
        said: list[str] = []
        step = Checkpoints(target / "checkpoints", warn=said.append).restore_part(None, ("step",)).step
        assert step in (number, number - 1)
    for _, target in copies[2:5:2]:
        assert train(config, target) == 0
        assert_same_state(whole, target, 6)


def test_a_clock_that_is_set_back_changes_nothing(whole, tmp_path, monkeypatch):
    """Each look at it finds it an hour earlier than the one before."""
    clock = [2e9]

    def earlier() -> float:
        clock[0] -= 3600
        return clock[0]

    monkeypatch.setattr(time, "time", earlier)
    monkeypatch.setattr(time, "time_ns", lambda: int(earlier() * 1e9))
    assert train(TINY, tmp_path / "run") == 0
    assert clock[0] < 2e9 - 3600
    assert_same_state(whole, tmp_path / "run", 6)
    assert rows_of(tmp_path / "run") == rows_of(whole)


@pytest.fixture
def others_files():
    """A directory that this process may read and not write to, whoever runs the tests."""
    with tempfile.TemporaryDirectory(prefix="azjax-") as name:
        directory = Path(name)
        yield directory
        for path in [directory, *directory.rglob("*")]:
            path.chmod(0o755)


@pytest.fixture
def nobody():
    """Root may write everywhere: it becomes somebody else for a while."""
    if os.geteuid():
        yield
        return
    written_from = jax.config.values["jax_persistent_cache_min_compile_time_secs"]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1e6)  # the tests' cache is root's
    os.seteuid(65534)
    yield
    os.seteuid(0)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", written_from)


def test_a_directory_that_cannot_be_written_is_one_line_and_its_agent_plays(whole, others_files, request, capsys):
    run = Path(shutil.copytree(whole, others_files / "run"))
    (run / "report.md").unlink()
    for path in [others_files, run, *run.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    request.getfixturevalue("nobody")
    words = ["train", "tic_tac_toe", "--preset", "smoke"]
    for out, named in ((run, run / "lock"), (others_files / "new", others_files / "new")):
        argv = [*words, "--out", str(out)] if out != run else ["train", "tic_tac_toe", "--resume", str(run)]
        assert main(argv) in (1, 2)
        said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("azjax: ")]
        assert len(said) == 1 and str(named) in said[0] and "Permission denied" in said[0]
    assert load_run(str(run), None).step == 6
    assert main(["match", "tic_tac_toe", f"run:{run}", "random", "--games", "2"]) == 0


@pytest.mark.parametrize("part", ["checkpoints", "checkpoints/6"])
def test_checkpoints_that_cannot_be_read_are_no_new_beginning(part, whole, others_files, request, capsys):
    run = Path(shutil.copytree(whole, others_files / "run"))
    (run / "report.md").unlink()
    if os.geteuid() == 0:
        for path in [others_files, run, *run.rglob("*")]:
            os.chown(path, 65534, -1)
    log = (run / "metrics.jsonl").read_bytes()
    (run / part).chmod(0)
    request.getfixturevalue("nobody")
    if part == "checkpoints":
        assert main(["train", "tic_tac_toe", "--resume", str(run)]) == 1
        assert (run / "metrics.jsonl").read_bytes() == log
        said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("azjax: ")]
        assert said == [f"azjax: {run / part}: Permission denied"]
    else:
        step, lines = newest(run)
        assert step == 4 and len(lines) == 1 and "PermissionError" in lines[0]


FULL = """
mount -t tmpfs -o size={size}k tmpfs "$0" || exit 77
"$@"
code=$?
cp -r "$0" "$0.after"
exit $code
"""


def on_a_full_disk(disk: Path, size: int, words: list[str]) -> subprocess.CompletedProcess:
    """Runs azjax with `disk` as a disk of so many kilobytes, whose files are then in DISK.after; 77: not allowed to."""
    disk.mkdir()
    command = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
    command += ["sh", "-c", FULL.format(size=size), str(disk), sys.executable, "-m", "azjax", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 60, 200, 400, 700])
def test_a_disk_that_is_full_is_one_line_and_what_was_saved_is_whole(size, tmp_path):
    disk = tmp_path / "disk"
    words = """train tic_tac_toe --preset smoke --steps 1000 --devices 1 --network.width 16 --network.blocks 1
        --search.simulations 4 --search.dirichlet-alpha 1 --selfplay.lanes 8 --selfplay.plies 4 --replay.plies 32
        --learner.batch 16 --learner.updates 2 --checkpoint.every 2 --checkpoint.keep 100 --evaluation.every 0"""
    done = on_a_full_disk(disk, size, [*words.split(), "--out", str(disk / "run")])
    if done.returncode == 77:
        pytest.skip("no file system can be mounted here")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("azjax: ")]
    assert len(said) == 1 and "No space left on device" in said[0] and str(disk) in said[0], done.stderr
    assert "MB free there" in said[0]
    left = Path(f"{disk}.after")
    steps = Checkpoints(left / "run" / "checkpoints").saved_steps() if (left / "run" / "checkpoints").exists() else []
    if size >= 400:
        assert steps
    for step in steps:
        part = Checkpoints(left / "run" / "checkpoints").load_part(step, NAMES)
        assert int(part["step"]) == step
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(part["learner"]))


@pytest.mark.slow
def test_of_trainers_that_start_at_once_one_trains(tmp_path):
    words = ["train", "tic_tac_toe", "--preset", "smoke", "--steps", "100000", "--out", str(tmp_path / "run")]
    said = [tmp_path / f"said{number}" for number in range(3)]
    processes = []
    for path in said:
        with path.open("w") as file:
            command = [sys.executable, "-m", "azjax", *words]
            processes.append(subprocess.Popen(command, stdout=file, stderr=file))
    deadline = time.monotonic() + 300
    while sum(process.poll() is None for process in processes) > 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    (trainer,) = [process for process in processes if process.poll() is None]
    while "step " not in (text := said[processes.index(trainer)].read_text()) and time.monotonic() < deadline:
        assert trainer.poll() is None, text
        time.sleep(0.1)
    trainer.send_signal(signal.SIGTERM)
    assert trainer.wait(timeout=60) == 143
    for process, path in zip(processes, said, strict=True):
        if process is not trainer:
            assert process.returncode == 2
            assert f"run: {tmp_path}/run is being trained by process {trainer.pid} on " in path.read_text()
    trained = [row["step"] for row in rows_of(tmp_path / "run") if "loss" in row]
    assert trained == list(range(1, len(trained) + 1))


def test_an_unknown_field_of_a_configuration_is_named(run, capsys):
    path = run / "config.json"
    path.write_text(json.dumps(to_json(TINY) | {"pickle": "x"}))
    assert main(["match", "tic_tac_toe", f"run:{run}", "random", "--games", "2"]) == 2
    said = capsys.readouterr().err
    assert f"{path}: got unknown field pickle, expected one of " in said and said.count("\n") == 1


def test_files_that_are_not_listed_do_not_change_what_is_loaded(run, whole):
    """Such as what a file manager leaves; and a listed file outside is not read at all."""
    for name in (".DS_Store", "state/notes", "state/d/extra", "extra/x"):
        path = run / "checkpoints" / "6" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(100))
    assert newest(run) == (6, [])
    assert_same_state(whole, run, 6)
    secret = run.parent / "secret"
    secret.write_text("x")
    for name in ("../../../secret", str(secret)):
        files = json.loads((run / "checkpoints" / "6" / MANIFEST).read_text())["files"]
        rewrite(run / "checkpoints" / "6", files=files | {name: hash_file(secret)})
        assert newest(run)[0] == 4
        shutil.copyfile(whole / "checkpoints" / "6" / MANIFEST, run / "checkpoints" / "6" / MANIFEST)
