"""What takes long: kills and damage by the hundred, half an hour of training. By hand; the figures are in docs."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.checkpoint import CheckpointError, Checkpoints
from azjax.launch import _free_port

pytestmark = pytest.mark.record

RUN = """tic_tac_toe --preset smoke --steps 1000000 --network.width 16 --network.blocks 1 --search.simulations 4
    --search.dirichlet-alpha 1 --selfplay.lanes 8 --selfplay.plies 4 --replay.plies 32 --learner.batch 16
    --learner.updates 2 --checkpoint.every 1 --checkpoint.keep 2""".split()
NAMES = ("learner", "lanes", "replay", "rng_key", "step")


def killed_often(directory: Path, times: int, start, last_words: Path) -> int:
    """Starts a run again and again, kills it (or one process of it) at a random moment, and looks at what is left.

    Returns:
      How many kills left a step half-written.
    """
    moments, torn = random.Random(0), 0
    checkpoints = Checkpoints(directory / "checkpoints")
    newest = 0
    for number in range(times):
        processes = start(number)
        deadline = time.monotonic() + 300
        while not directory.exists() or not (steps := checkpoints.saved_steps()) or steps[-1] <= newest:
            assert time.monotonic() < deadline and all(p.poll() is None for p in processes), last_words.read_text()
            time.sleep(0.02)
        time.sleep(moments.uniform(0, 0.5))
        acknowledged = checkpoints.saved_steps()[-1]
        processes[number % len(processes)].kill()
        for process in processes:
            assert process.wait(timeout=30) != 0
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
    return torn


@pytest.mark.parametrize(("processes", "times"), [(1, 50), (2, 50)])
def test_runs_killed_at_random_lose_no_acknowledged_step(processes, times, tmp_path):
    directory, words = tmp_path / "run", tmp_path / "words"
    environment = {name: value for name, value in os.environ.items() if name != "PJRT_NPROC"}

    def start(number):
        command = [sys.executable, "-m", "azjax", "train", *RUN, "--out", str(directory)]
        address = f"127.0.0.1:{_free_port()}"
        of_each = [["--devices", "1"]]
        if processes > 1:
            of_each = [["--hosts", f"{address},{index}/{processes}"] for index in range(processes)]
        with words.open("w") as file:
            return [subprocess.Popen([*command, *w], env=environment, stdout=file, stderr=file) for w in of_each]

    torn = killed_often(directory, times, start, words)
    print(f"{times} kills of {processes} processes, {torn} in the middle of a save: no acknowledged step lost")


def test_a_thousand_damaged_checkpoints_are_never_loaded_wrong(tmp_path):
    def state(step: int) -> dict[str, jax.Array]:
        key = jax.random.key(step)
        return {"kernel": jax.random.normal(key, (40, 50)), "ring": jax.random.bits(key, (64, 32)), "rng_key": key}

    def content(tree) -> list[bytes]:
        data = {**tree, "rng_key": jax.random.key_data(tree["rng_key"])}
        return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(data)]

    directory = tmp_path / "checkpoints"
    with Checkpoints(directory, write=True) as checkpoints:
        for step in (10, 20):
            checkpoints.save(step, state(step), {"step": step})
    expected = {step: content(state(step)) for step in (10, 20)}
    intact = Path(shutil.copytree(directory, tmp_path / "intact"))
    names = [path.relative_to(intact) for path in (intact / "20").rglob("*") if path.is_file()]
    chance, found = random.Random(0), {"the older step": 0, "equal": 0, "an error": 0}
    like = jax.tree.map(jnp.asarray, state(0))
    for number in range(1000):
        name = names[number % len(names)]
        how = ("flip", "truncate", "empty", "delete")[number // len(names) % 4]
        data = bytearray((intact / name).read_bytes())
        if how == "flip" and data:
            bit = chance.randrange(8 * len(data))
            data[bit // 8] ^= 1 << bit % 8
        data = {"truncate": data[: chance.randrange(len(data) + 1)], "empty": b""}.get(how, data)
        (directory / name).write_bytes(data)
        if how == "delete":
            (directory / name).unlink()
        try:
            restored = Checkpoints(directory, warn=lambda _: None).restore(like)
            assert content(restored.state) == expected[restored.step], (name, how)
            found["equal" if restored.step == 20 else "the older step"] += 1
        except CheckpointError:
            found["an error"] += 1
        (directory / name).write_bytes((intact / name).read_bytes())
    print(f"1,000 damaged checkpoints: {found}")
    assert found["the older step"] > 900


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
