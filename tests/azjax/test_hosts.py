"""Several processes, one run: the words of --hosts, the launcher, and two real processes of jax.distributed on CPU."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from azjax import launch
from azjax.checkpoint import Checkpoints
from azjax.cli import main
from azjax.launch import Hosts, parse_hosts

STEPS = 60
RUN = f"""
    tic_tac_toe --preset smoke --steps {STEPS} --network.width 16 --network.blocks 1
    --search.simulations 4 --search.dirichlet-alpha 1 --selfplay.lanes 8 --selfplay.plies 4 --replay.plies 32
    --learner.batch 16 --learner.updates 2 --learner.fused true --gate.every 20 --gate.games 4
    --evaluation.anchors random uct:2 --evaluation.every 30 --evaluation.games 4 --evaluation.final-games 2
    --evaluation.checkpoints 2 --evaluation.simulations 2 --checkpoint.every 5 --checkpoint.keep 3
""".split()
DEPENDS_ON_THE_CLOCK = {"seconds", "selfplay_seconds", "learning_seconds", "evaluation_seconds"}
DEPENDS_ON_THE_CLOCK |= {"plies_per_second", "simulations_per_second"}


@pytest.mark.parametrize(
    ("word", "hosts"),
    [
        ("auto", Hosts()),
        ("local:2", Hosts(local=2)),
        ("10.0.0.2:1234,0/4", Hosts(address="10.0.0.2:1234", index=0, count=4)),
        ("node-1.example:80,3/4", Hosts(address="node-1.example:80", index=3, count=4)),
        ("[::1]:80,1/2", Hosts(address="[::1]:80", index=1, count=2)),
    ],
)
def test_the_words_of_hosts(word, hosts):
    assert parse_hosts(word) == hosts


@pytest.mark.parametrize(
    "word",
    [
        *("", "two", "local", "local:1", "local:-2", "local:9999", "host:1", "host:1,2/2", "host,0/2", "a b:1,0/2"),
        *("host:99999,0/1", "host:0,0/2", "local:²", "host:1,0/²"),
    ],
)
def test_other_words_are_refused_before_jax(word, capsys):
    assert main(["train", "tic_tac_toe", "--hosts", word]) == 2
    said = capsys.readouterr().err
    assert "--hosts: got" in said and said.count("\n") == 1


def test_processes_that_do_not_meet_are_told_of_in_one_line(monkeypatch, capsys):
    def refuse(*args, **kwargs):
        raise RuntimeError("Failed to add port 1 to server\nmore")

    monkeypatch.setattr(jax.distributed, "initialize", refuse)
    assert main(["train", "tic_tac_toe", "--hosts", "127.0.0.1:1,0/1"]) == 1
    said = "azjax: --hosts: the processes did not find one another at 127.0.0.1:1: Failed to add port 1 to server\n"
    assert capsys.readouterr().err == said


def test_each_process_gets_the_same_words_and_its_own_number():
    words = ["train", "hex", "--hosts", "local:2", "--seed", "1", "--hosts=local:3"]
    assert launch._with_hosts(words, "h:1,0/2") == ["train", "hex", "--seed", "1", "--hosts", "h:1,0/2"]


def test_a_process_that_fails_ends_the_others_and_its_status_is_the_launchers(monkeypatch, capfd):
    code = "import sys, time; i = int(sys.argv[-1][-3]); time.sleep(0.2 if i else 60); sys.exit(7 * i)"
    monkeypatch.setattr(launch, "PEER_SECONDS", 0.5)
    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **k: real([sys.executable, "-c", code, command[-1]], **k))
    started = time.monotonic()
    assert launch.launch(2, ["train", "hex"]) == 7
    assert time.monotonic() - started < 30
    assert capfd.readouterr().err == "azjax: process 1 of 2 ended with status 7\n"


def test_a_signal_while_the_processes_are_being_started_is_told_and_ends_them(monkeypatch, capfd):
    real = subprocess.Popen

    def popen(command, **k):
        process = real([sys.executable, "-c", "import time; time.sleep(60)"], **k)
        signal.raise_signal(signal.SIGTERM)
        return process

    monkeypatch.setattr(subprocess, "Popen", popen)
    assert launch.launch(1, ["train", "hex"]) == 143
    told, ended = capfd.readouterr().err.splitlines()
    assert told.startswith("azjax: SIGTERM: the run saves and stops when ")
    assert ended == "azjax: stopped before the first step; nothing was to be saved"


def environment() -> dict[str, str]:
    # Tests run with a pool of 32 threads for eight devices; these processes have one device each.
    return {name: value for name, value in os.environ.items() if name != "PJRT_NPROC"}


def command(directory: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "azjax", "train", *RUN, "--out", str(directory), *more]


def start(directory: Path, said: Path, *more: str) -> subprocess.Popen:
    with said.open("a") as file:
        return subprocess.Popen(command(directory, *more), env=environment(), stdout=file, stderr=file)


def rows_of(directory: Path) -> list[dict]:
    path = directory / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def wait_for(condition, process: subprocess.Popen, said: Path, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline, said.read_text()[-3000:]
        time.sleep(0.05)


def leaves_of(directory: Path, step: int) -> dict[str, np.ndarray]:
    names = ("learner", "best", "lanes", "replay", "rng_key", "step")
    part = Checkpoints(directory / "checkpoints").load_part(step, names)
    return {
        jax.tree_util.keystr(path): np.asarray(
            jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
        )
        for path, leaf in jax.tree_util.tree_leaves_with_path(part)
    }


def without_times(row: dict) -> dict:
    row = {name: value for name, value in row.items() if name not in DEPENDS_ON_THE_CLOCK}
    if "evaluation" in row:
        row["evaluation"] = {name: value for name, value in row["evaluation"].items() if name != "seconds"}
    return row


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """The run by one process with two devices."""
    directory = tmp_path_factory.mktemp("hosts") / "alone"
    done = subprocess.run(
        command(directory, "--devices", "2"), env=environment() | {"PJRT_NPROC": "4"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return directory


def assert_equal_runs(one: Path, other: Path) -> None:
    expected, got = leaves_of(one, STEPS), leaves_of(other, STEPS)
    assert expected.keys() == got.keys()
    for path, leaf in expected.items():
        if np.issubdtype(leaf.dtype, np.floating):
            np.testing.assert_allclose(got[path], leaf, atol=1e-5, err_msg=path)
        else:
            np.testing.assert_array_equal(got[path], leaf, err_msg=path)
    rows, expected_rows = map(rows_of, (other, one))
    assert [row["step"] for row in rows] == [row["step"] for row in expected_rows]
    for row, expected_row in zip(rows, expected_rows, strict=True):
        row, expected_row = without_times(row), without_times(expected_row)
        assert row.keys() == expected_row.keys()
        for name, value in row.items():
            assert value == (
                pytest.approx(expected_row[name], abs=1e-5) if isinstance(value, float) else expected_row[name]
            )
    ratings, expected_ratings = (json.loads((run / "ratings.json").read_text()) for run in (other, one))
    assert ratings["players"] == expected_ratings["players"]


@pytest.mark.slow
def test_two_processes_stopped_and_resumed_are_one_process_with_two_devices(alone, tmp_path):
    directory, said = tmp_path / "two", tmp_path / "said"
    process = start(directory, said, "--hosts", "local:2")
    wait_for(lambda: len(rows_of(directory)) > 12, process, said)
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143, said.read_text()[-3000:]
    assert time.monotonic() - started < 15
    step = Checkpoints(directory / "checkpoints").saved_steps()[-1]
    assert f"SIGTERM: step {step} is saved; resume with: " in said.read_text() and step < STEPS
    process = start(directory, said, "--hosts", "local:2")
    assert process.wait(timeout=600) == 0, said.read_text()[-3000:]
    assert_equal_runs(alone, directory)
    # Only process 0 writes: one log a session, and no line comes twice.
    assert len(list((directory / "tensorboard").iterdir())) == 2
    assert said.read_text().count("resumed at step") == 1
    # The same words again print the report, and other fields are refused, by every process alike.
    process = start(directory, said, "--hosts", "local:2")
    assert process.wait(timeout=300) == 0 and "its report:" in said.read_text()
    process = start(directory, said, "--hosts", "local:2", "--seed", "1")
    assert process.wait(timeout=300) == 2 and "seed: 0 -> 1" in said.read_text()
    assert "Traceback" not in said.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_dead_peer_is_noticed_within_15_seconds_and_the_run_goes_on_by_one_process(alone, tmp_path, killed):
    directory, said = tmp_path / "two", [tmp_path / "said0", tmp_path / "said1"]
    address = f"127.0.0.1:{launch._free_port()}"
    processes = [start(directory, said[i], "--hosts", f"{address},{i}/2") for i in (0, 1)]
    checkpoints = Checkpoints(directory / "checkpoints")
    wait_for(lambda: directory.exists() and checkpoints.saved_steps(), processes[0], said[0])
    acknowledged = checkpoints.saved_steps()[-1]
    processes[killed].kill()
    started = time.monotonic()
    other = processes[1 - killed]
    assert other.wait(timeout=60) not in (0, None)
    assert time.monotonic() - started < 15
    processes[killed].wait()
    assert checkpoints.saved_steps()[-1] >= acknowledged
    done = subprocess.run(
        command(directory, "--devices", "2"),
        env=environment() | {"PJRT_NPROC": "4"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert_equal_runs(alone, directory)


# A match of minutes whose plies take a fraction of a second.
MATCH = "--steps 1000 --evaluation.every 3 --evaluation.games 40000 --evaluation.anchors uct:100".split()
PHASES = {  # what to wait for in what was said, and other words of the command
    "starting": (lambda directory, said: True, []),
    "compiling": (lambda directory, said: "new run: " in said, []),
    "self-play": (
        lambda directory, said: len(rows_of(directory)) > 3,
        ["--steps", "100000", "--evaluation.every", "0"],
    ),
    # It says so after 8 s and again later, when its programs are compiled: several processes wait for that.
    "a match": (lambda directory, said: said.count("playing uct:100") >= 2, MATCH),
    "a save": (
        lambda directory, said: any(".new" in path.name for path in (directory / "checkpoints").glob("*")),
        ["--steps", "100000", "--evaluation.every", "0", "--checkpoint.every", "1"],
    ),
    "the report": (
        lambda directory, said: said.count("... rating") >= 2,
        "--steps 3 --evaluation.every 0 --evaluation.anchors uct:100 uct:101 --evaluation.final-games 40000".split(),
    ),
}
SIGNALLED = {
    (phase, number)
    for phase in PHASES
    for number in ((signal.SIGTERM, signal.SIGINT) if phase in ("compiling", "a match") else (signal.SIGTERM,))
}


def signalled(phase: str, directory: Path, said: Path) -> subprocess.Popen:
    """Starts a run of two processes, which is then in that phase."""
    condition, more = PHASES[phase]
    process = start(directory, said, *more, "--hosts", "local:2")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_for(lambda: len(children.read_text().split()) == 2, process, said)
    wait_for(lambda: condition(directory, said.read_text()), process, said)
    return process


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "number"), sorted(SIGNALLED), ids=lambda value: str(getattr(value, "name", value)))
def test_two_processes_that_are_signalled_save_within_15_seconds_or_say_why_not(phase, number, tmp_path):
    directory, said = tmp_path / "two", tmp_path / "said"
    process = signalled(phase, directory, said)
    checkpoints = Checkpoints(directory / "checkpoints")
    acknowledged = max(checkpoints.saved_steps(), default=0)
    started = time.monotonic()
    process.send_signal(number)
    name, status = ("Ctrl-C", 130) if number == signal.SIGINT else ("SIGTERM", 143)
    told = (
        f"azjax: {name}: the run saves and stops when the step or ply in progress is done (before the first step: onc"
    )
    assert process.wait(timeout=120) == status, said.read_text()[-3000:]
    took = time.monotonic() - started
    words = said.read_text()
    print(f"{name} during {phase}: {took:.1f} s")
    assert told in words and "Traceback" not in words
    steps = checkpoints.saved_steps()
    if phase in ("starting", "compiling"):
        assert steps == [] and "nothing was to be saved" in words
        assert phase == "compiling" or took < 5
        return
    assert took < 15
    assert steps[-1] >= acknowledged and f"SIGTERM: step {steps[-1]} is saved; resume with: " in words
    assert int(checkpoints.load_part(None, ("step",))["step"]) == steps[-1]
    trained = [row["step"] for row in rows_of(directory) if "loss" in row]
    assert trained == list(range(1, steps[-1] + 1))


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["compiling", "a match", "a save"])
def test_a_second_signal_ends_two_processes_at_once_and_loses_nothing_that_was_saved(phase, tmp_path):
    directory, said = tmp_path / "two", tmp_path / "said"
    process = signalled(phase, directory, said)
    checkpoints = Checkpoints(directory / "checkpoints")
    acknowledged = max(checkpoints.saved_steps(), default=0)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    started = time.monotonic()
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert time.monotonic() - started < 3
    assert max(checkpoints.saved_steps(), default=0) >= acknowledged
    if acknowledged:
        warnings: list[str] = []
        whole = Checkpoints(directory / "checkpoints", warn=warnings.append).load_part(None, ("step",))
        assert int(whole["step"]) >= acknowledged and warnings == []
    assert "Traceback" not in said.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "number", "statuses"),
    [((1,), signal.SIGTERM, (143, 143)), ((1,), signal.SIGINT, (143, 130)), ((0, 1), signal.SIGTERM, (143, 143))],
    ids=["SIGTERM to the second", "Ctrl-C at the second", "SIGTERM to both"],
)
def test_any_process_may_be_told_to_stop(told, number, statuses, tmp_path):
    """As hosts of their own are: no launcher is between."""
    directory, said = tmp_path / "two", [tmp_path / "said0", tmp_path / "said1"]
    address = f"127.0.0.1:{launch._free_port()}"
    more = ["--steps", "100000", "--evaluation.every", "0"]
    processes = [start(directory, said[i], *more, "--hosts", f"{address},{i}/2") for i in (0, 1)]
    wait_for(lambda: len(rows_of(directory)) > 3, processes[0], said[0])
    started = time.monotonic()
    for index in told:
        processes[index].send_signal(number)
    assert tuple(process.wait(timeout=60) for process in processes) == statuses, said[0].read_text()[-3000:]
    assert time.monotonic() - started < 15
    (*_, step) = Checkpoints(directory / "checkpoints").saved_steps()
    assert f"step {step} is saved; resume with: " in said[0].read_text()
    assert [row["step"] for row in rows_of(directory) if "loss" in row] == list(range(1, step + 1))
