"""What takes long: kills and damage by the hundred, half an hour of training. By hand; the figures are in docs."""

import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from azjax.checkpoint import CheckpointError, Checkpoints
from azjax.launch import _free_port
from azjax.train import train
from tests.azjax.tiny_run import TINY, leaves_by_path, state_of

pytestmark = pytest.mark.record

RUN = """tic_tac_toe --preset smoke --steps 1000000 --network.width 16 --network.blocks 1 --search.simulations 4
    --search.dirichlet-alpha 1 --selfplay.lanes 8 --selfplay.plies 4 --replay.plies 32 --learner.batch 16
    --learner.updates 2 --checkpoint.every 1 --checkpoint.keep 2""".split()
NAMES = ("learner", "best", "lanes", "replay", "rng_key", "step")


# Runs `azjax WORDS` for each line of its input, in a process forked from one that has imported azjax and not yet
# started JAX: importing is most of the time that a start takes.
FORKING = """
import ctypes, gc, json, os, signal, sys
import azjax.cli.commands, azjax.cli.runs, azjax.hosts, azjax.train
from azjax.cli import main

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
gc.freeze()
for line in sys.stdin:
    words, said = json.loads(line)
    if not (process := os.fork()):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.disable()  # a seventh of a start's time, and none of them lives long
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the test
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for stream in (1, 2):
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        os._exit(main(words))
    print(process, flush=True)
"""


class Forked:
    """A process that is not a child of this one."""

    def __init__(self, number: int):
        self.number = number

    def kill(self) -> None:
        os.kill(self.number, signal.SIGKILL)

    def is_alive(self) -> bool:
        return Path(f"/proc/{self.number}").exists()

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.is_alive():
            assert time.monotonic() < deadline, f"process {self.number} still runs"
            time.sleep(0.05)


def killed_often(directory: Path, numbers: range, start, last_words: Path) -> tuple[int, int]:
    """Starts a run again and again, kills it (or one process of it) at a random moment, and looks at what is left.

    Three of four are killed while they train, after a new checkpoint; the fourth before, while it starts, compiles,
    reads what the one before has left and cuts its log.

    Returns:
      How many kills left a step half-written, and how many came before training.
    """
    moments, torn, early, starting = random.Random(numbers.start), 0, 0, 5.0
    checkpoints = Checkpoints(directory / "checkpoints")
    newest = 0
    for number in numbers:
        begun, processes = time.monotonic(), start(number)
        acknowledged = newest
        if number % 4 == 3:
            time.sleep(moments.uniform(0.5, 1) * starting)
            for process in processes:  # all: one that waits for others to come would wait for minutes
                process.kill()
            early += 1
        else:
            deadline = begun + 1200
            while not directory.exists() or not (steps := checkpoints.saved_steps()) or steps[-1] <= newest:
                assert time.monotonic() < deadline and all(p.is_alive() for p in processes), last_words.read_text()
                time.sleep(0.02)
            starting = time.monotonic() - begun
            time.sleep(moments.uniform(0, 0.5))
            acknowledged = checkpoints.saved_steps()[-1]
            processes[number % len(processes)].kill()
        for process in processes:
            process.wait(60)
        if not newest and not checkpoints.present_steps():
            continue
        torn += any("." in path.name for path in (directory / "checkpoints").iterdir())
        said: list[str] = []
        part = Checkpoints(directory / "checkpoints", warn=said.append).load_part(None, NAMES)
        assert not said
        newest = int(part["step"])
        assert newest >= acknowledged
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(part["learner"]))
        rows = (directory / "metrics.jsonl").read_text().splitlines()
        steps_logged = [json.loads(row)["step"] for row in rows[:-1]]
        assert steps_logged == list(range(1, len(steps_logged) + 1)) and len(rows) + 1 >= newest
        print(f"kill {number}: step {newest} is whole, after {time.monotonic() - begun:.0f} s", flush=True)
    return torn, early


KILLS = {1: (10, 20), 2: (5, 10)}
"""Processes: parts of the test, kills in each. A part is run alone by `-k 1p-part3`."""
PARTS = [(processes, part) for processes, (parts, _) in KILLS.items() for part in range(parts)]


@pytest.mark.parametrize(("processes", "part"), PARTS, ids=[f"{n}p-part{part}" for n, part in PARTS])
def test_runs_killed_at_random_lose_no_acknowledged_step(processes, part, tmp_path):
    directory, words = tmp_path / "run", tmp_path / "words"
    environment = {name: value for name, value in os.environ.items() if name != "PJRT_NPROC"}
    environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # small programs too are compiled once

    forking = subprocess.Popen(
        [sys.executable, "-c", FORKING], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert forking.stdin is not None and forking.stdout is not None
    told, answers = forking.stdin, forking.stdout

    def start(number):
        command = ["train", *RUN, "--out", str(directory)]
        address = f"127.0.0.1:{_free_port()}"
        of_each = [["--devices", "1"]]
        if processes > 1:
            of_each = [["--hosts", f"{address},{index}/{processes}"] for index in range(processes)]
        words.write_text("")
        for more in of_each:
            print(json.dumps([[*command, *more], str(words)]), file=told, flush=True)
        return [Forked(int(answers.readline())) for _ in of_each]

    times = KILLS[processes][1]
    numbers = range(part * times, (part + 1) * times)
    with forking:
        torn, early = killed_often(directory, numbers, start, words)
        told.close()
    print(
        f"{times} kills of {processes} process{'es' * (processes > 1)}, {torn} in the middle of a save, {early} before"
        " training: no acknowledged step lost"
    )


WAYS = ("flip", "truncate", "empty", "delete")


def damage(path: Path, how: str, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if how == "delete":
        path.unlink()
        return
    if how == "flip" and data:
        bit = chance.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
    path.write_bytes({"truncate": data[: chance.randrange(len(data) + 1)], "empty": b""}.get(how, data))


def test_a_thousand_damaged_checkpoints_of_a_run_are_never_loaded_wrong(tmp_path):
    """Each file of the newest of three steps, in each way; each fourth time up to nine files of all three."""
    config = dataclasses.replace(TINY, evaluation=dataclasses.replace(TINY.evaluation, final_games=2, checkpoints=1))
    assert train(config, tmp_path / "run") == 0
    directory = tmp_path / "run" / "checkpoints"
    expected = {step: state_of(tmp_path / "run", step) for step in (2, 4, 6)}
    intact = Path(shutil.copytree(directory, tmp_path / "intact"))
    names = {step: sorted(path for path in (intact / str(step)).rglob("*") if path.is_file()) for step in expected}
    everything = [path for paths in names.values() for path in paths]
    chance, found = random.Random(0), dict.fromkeys(("an older step", "equal", "an error"), 0)
    several = 0
    for number in range(1000):
        victims = {names[6][number % len(names[6])]: WAYS[number // len(names[6]) % 4]}
        if number % 4 == 3:
            several += 1
            victims |= {path: chance.choice(WAYS) for path in chance.sample(everything, chance.randint(1, 8))}
        for path, how in victims.items():
            damage(directory / path.relative_to(intact), how, chance)
        said: list[str] = []
        try:
            restored = Checkpoints(directory, warn=said.append).restore_part(None, NAMES)
        except CheckpointError as error:
            assert {int(path.relative_to(intact).parts[0]) for path in victims} == set(expected), (victims, error)
            found["an error"] += 1
        else:
            got = leaves_by_path(restored.state)
            assert got.keys() == expected[restored.step].keys()
            for path, leaf in expected[restored.step].items():
                np.testing.assert_array_equal(got[path], leaf, err_msg=f"{path} {victims}")
            found["equal" if restored.step == 6 else "an older step"] += 1
        assert all("\n" not in line for line in said)
        for path in victims:
            shutil.copyfile(path, directory / path.relative_to(intact))
    print(f"1,000 damaged checkpoints ({len(names[6])} files a step; {several} times several files): {found}")
    assert found["an older step"] > 700 and found["an error"] > 10


def resident_megabytes(process: int) -> float:
    (line,) = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return int(line) / 1000


def test_half_an_hour_is_as_fast_at_its_end_and_grows_no_larger(tmp_path):
    """AZJAX_MINUTES=30, or fewer to try it. Throughput is told by the clock and by the time that the CPU gave."""
    minutes = float(os.environ.get("AZJAX_MINUTES", "30"))
    directory, said = tmp_path / "run", tmp_path / "said"
    command = [sys.executable, "-m", "azjax", "train", "crosshair", "--preset", "quick", "--steps", "1000000"]
    command += ["--evaluation.every", "0", "--checkpoint.every", "50", "--out", str(directory)]
    ticks = os.sysconf("SC_CLK_TCK")
    samples = []  # (minutes, rows, CPU seconds, MB)
    with said.open("w") as file:
        environment = {name: value for name, value in os.environ.items() if name != "PJRT_NPROC"}
        process = subprocess.Popen(command, env=environment | {"JAX_LOG_COMPILES": "1"}, stdout=file, stderr=file)
        try:
            while not (directory / "metrics.jsonl").exists() or not (directory / "metrics.jsonl").stat().st_size:
                assert process.poll() is None, said.read_text()[-2000:]
                time.sleep(0.5)
            compiled_after = None
            started = time.monotonic()
            while time.monotonic() - started < 60 * minutes:
                time.sleep(60 * minutes / 100)
                assert process.poll() is None, said.read_text()[-2000:]
                stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                rows = (directory / "metrics.jsonl").read_text().count("\n")
                cpu = (int(stat[11]) + int(stat[12])) / ticks
                samples.append(((time.monotonic() - started) / 60, rows, cpu, resident_megabytes(process.pid)))
                if compiled_after is None and len(samples) == 20:
                    compiled_after = said.read_text().count("Finished XLA compilation")
            compiled = said.read_text().count("Finished XLA compilation") - (compiled_after or 0)
        finally:
            process.terminate()
            process.wait(timeout=60)
    fifth = len(samples) // 5

    def rate(part: int, column: int) -> float:
        first, last = samples[part * fifth], samples[(part + 1) * fifth - 1]
        return (last[1] - first[1]) / (last[column] - first[column])

    by_clock, by_cpu = rate(4, 0) / rate(1, 0), rate(4, 2) / rate(1, 2)
    growth = np.median([s[3] for s in samples[4 * fifth :]]) - np.median([s[3] for s in samples[fifth : 2 * fifth]])
    print(
        f"{minutes:g} minutes, {samples[-1][1]} steps: last fifth against second {by_clock:.1%} by the clock,"
        f" {by_cpu:.1%} by CPU time; memory {growth:+.0f} MB to {samples[-1][3]:.0f} MB; {compiled} compilations"
    )
    assert by_cpu >= 0.97 and growth < 50 and compiled == 0
