"""The host loop of a run: start or resume, step, measure, save, report."""

import contextlib
import dataclasses
import json
import math
import os
import signal
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tensorboardX import SummaryWriter

import envs
from azjax.arena import Match, play_match
from azjax.checkpoint import Checkpoints
from azjax.config import RunConfig, differences, to_json
from azjax.evaluation import finish_run, rate_against_anchors
from azjax.network import num_parameters
from azjax.plan import check_fits, make_plan, plan_table
from azjax.players import LoadedRun, run_player
from azjax.progress import Progress, count, duration
from azjax.rundir import RunDirectory
from azjax.selfplay import mean_legal_moves
from azjax.step import RunState, Step, make_mesh
from azjax.tournament import match_json
from envs.core import Game

SAFE_FIELDS = ("evaluation.", "checkpoint.", "preset")
"""Fields that may change when a run is resumed: they measure and keep, but do not train."""
MAX_NONFINITE_STEPS = 5
SUMS = ("games", "truncated", "decided", "first_player_wins", "won_by_last_mover", "nonfinite_targets")
SUMS += ("resigned", "would_resign", "false_resign")  # where players may give up


@dataclasses.dataclass(kw_only=True)
class Totals:
    """What a run has done so far: host integers, since they pass 2^31. Kept in every checkpoint's metadata."""

    games: int = 0
    plies: int = 0
    simulations: int = 0
    updates: int = 0
    seconds: float = 0.0  # wall clock of training, compiling included, evaluation not
    selfplay_seconds: float = 0.0  # of a fused step: all of it
    learning_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    nonfinite_steps: int = 0  # running


def use_devices(devices: int = 0) -> None:
    """Makes virtual CPU devices, one a core (or `devices`), unless JAX's backend has started; call it before.

    Two devices play 2.6 times as fast as one on two cores: XLA runs a device's loops on one thread.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", devices or max(1, min(cores, 8)))


def resolve(config: RunConfig, game: Game) -> RunConfig:
    """Fills in what depends on the game or the machine: the noise, and the ring's length if a game outgrows it."""
    search = config.search
    if search.dirichlet_alpha is None:
        mean = mean_legal_moves(game, jax.random.key(0))
        search = dataclasses.replace(search, dirichlet_alpha=round(10 / max(mean, 1.0), 3))
    return dataclasses.replace(config, search=search)


def choose_devices(config: RunConfig) -> int:
    """Returns how many devices to use: all, or the most that lanes and batch divide by."""
    if config.devices:
        return config.devices
    most = len(jax.devices())
    fits = (n for n in range(most, 0, -1) if config.selfplay.lanes % n == 0 and config.learner.batch % n == 0)
    return next(fits)


def train(config: RunConfig, directory: Path) -> int:
    """Runs to the end of `config`, from where the directory's run stopped or from the beginning.

    Returns:
      0 when finished, 130 or 143 after Ctrl-C or SIGTERM (the state is saved).

    Raises:
      ValueError: the configuration is wrong, or differs from the run's in more than SAFE_FIELDS.
      CheckpointError: nothing could be saved, or no checkpoint is whole.
    """
    run = RunDirectory(directory)
    game = envs.make(config.game)
    with Progress() as progress, contextlib.closing(run.lock()), _signals() as caught:
        if run.exists():
            _refuse_changes(run.read_config(), config, run)
            if _finished(run, config):
                progress.say(f"finished: {run.path}, {config.steps} steps; its report:")
                progress.say(run.report_path.read_text(encoding="utf-8"))
                return 0
        progress.say(f"{'resuming' if run.exists() else 'new run'}: {run.path}, {config.game}, {config.steps} steps")
        progress.doing("compiling")
        resolved = resolve(config, game)
        devices = choose_devices(config)
        plan = make_plan(resolved, game, devices)
        check_fits(plan)
        progress.table(plan_table(plan))
        mesh = make_mesh(devices)
        step = Step(resolved, game, mesh)
        run.write_config(config)
        checkpoints = Checkpoints(
            run.checkpoints_path,
            keep=config.checkpoint.keep,
            keep_every=config.checkpoint.keep_every,
            write=True,
            warn=progress.say,
        )
        with checkpoints:
            trainer = _Trainer(resolved, game, step, run, checkpoints, progress, caught)
            return trainer.run_to_end()


def _refuse_changes(old: RunConfig, new: RunConfig, run: RunDirectory) -> None:
    changed = {k: v for k, v in differences(old, new).items() if not k.startswith(SAFE_FIELDS)}
    if changed:
        listed = ", ".join(f"{name}: {before} -> {after}" for name, (before, after) in changed.items())
        raise ValueError(
            f"config: {run.path} was started with other values ({listed}); use --fork NAME, or another --out"
        )


def _finished(run: RunDirectory, config: RunConfig) -> bool:
    steps = Checkpoints(run.checkpoints_path).saved_steps()
    return bool(steps) and steps[-1] >= config.steps and run.report_path.is_file() and run.ratings_path.is_file()


@contextlib.contextmanager
def _signals() -> Generator[list[int]]:
    """Collects SIGINT and SIGTERM in the list it yields; a second one ends the process at once."""
    caught: list[int] = []

    def handle(number: int, frame: Any) -> None:
        del frame
        if caught:
            os._exit(128 + number)
        caught.append(number)

    old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


class _Trainer:
    """One session of a run."""

    def __init__(
        self,
        config: RunConfig,
        game: Game,
        step: Step,
        run: RunDirectory,
        checkpoints: Checkpoints,
        progress: Progress,
        caught: list[int],
    ):
        self.config, self.game, self.step, self.run = config, game, step, run
        self.checkpoints, self.progress, self.caught = checkpoints, progress, caught
        self.totals = Totals()
        self.gate_streak = 0
        self.rating = ""
        self.clock = time.perf_counter()

    def run_to_end(self) -> int:
        """Trains, saves, evaluates and reports; returns the exit code."""
        state = self._start()
        done = int(state.step)
        with _Log(self.run) as log:
            while done < self.config.steps:
                state, row = self._train_step(state)
                done += 1
                log.write(row)
                self._show(row, final=done == self.config.steps)
                self._stop_if_not_finite(row, state)
                if self.config.gate.every and done % self.config.gate.every == 0:
                    state = self._gate(state, log)
                if self.config.evaluation.every and done % self.config.evaluation.every == 0 and not self.caught:
                    self._evaluate(state, done, log)
                if done % self.config.checkpoint.every == 0 or done == self.config.steps or self.caught:
                    self._save(state, done, wait=bool(self.caught) or done == self.config.steps)
                if self.caught and done < self.config.steps:
                    name = "Ctrl-C" if self.caught[0] == signal.SIGINT else "SIGTERM"
                    self.progress.say(
                        f"{name}: saved step {done}; resume with: azjax train {self.config.game} "
                        f"--resume {self.run.path}"
                    )
                    return 128 + self.caught[0]
            return self._finish(state)

    def _start(self) -> RunState:
        like = jax.eval_shape(self.step.init, jax.random.key(0))
        self._compile(like)
        self.progress.doing("training")
        if not self.checkpoints.saved_steps():
            self.run.cut_rows(0)
            state = self.step.init(jax.random.key(self.config.seed))
            self.progress.say(
                f"{count(num_parameters(state.learner.variables))} parameters on {self.step.mesh.size} x "
                f"{self.step.mesh.devices.flat[0].device_kind}"
            )
            return state
        restored = self.checkpoints.restore(self.step.placed(like))
        self.totals = Totals(**restored.metadata["totals"])
        self.gate_streak = restored.metadata["gate_streak"]
        self.run.cut_rows(restored.step)
        self.progress.say(f"resumed at step {restored.step} of {self.config.steps}")
        return restored.state

    def _compile(self, like: RunState) -> None:
        """Compiles the step's programs side by side: XLA compiles without Python's lock."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda compile_one: compile_one(), self.step.programs(like)))

    def _train_step(self, state: RunState) -> tuple[RunState, dict[str, Any]]:
        state, metrics = self.step(state)
        metrics = {name: np.asarray(value) for name, value in metrics.items()}
        summed = {name: int(metrics[name].sum()) for name in SUMS if name in metrics}
        means = {name: float(value.mean()) for name, value in metrics.items() if name not in SUMS}
        totals, selfplay = self.totals, self.config.selfplay
        now = time.perf_counter()
        plies = selfplay.lanes * selfplay.plies
        totals.games += summed["games"]
        totals.plies += plies
        totals.simulations += plies * self.config.search.simulations
        totals.updates += round(means.get("applied", 0.0) * self.config.learner.updates)
        totals.selfplay_seconds += self.step.seconds[0]
        totals.learning_seconds += self.step.seconds[1]
        totals.seconds += now - self.clock
        self.clock = now
        step = int(state.step)
        row = {
            "step": step,
            **{k: round(v, 3) if isinstance(v, float) else v for k, v in dataclasses.asdict(totals).items()},
            **{f"{name}_in_step": value for name, value in summed.items()},
            **means,
            "learning_rate": self.step.learning_rate(totals.updates),
            "plies_per_second": plies / max(sum(self.step.seconds), 1e-9),
            "simulations_per_second": plies * self.config.search.simulations / max(sum(self.step.seconds), 1e-9),
        }
        return state, row

    def _show(self, row: dict[str, Any], final: bool) -> None:
        left = (self.config.steps - row["step"]) * row["seconds"] / max(row["step"], 1)
        fields = {
            "step": f"{row['step']}/{self.config.steps}",
            "games": count(row["games"]),
            "plies/s": count(row["plies_per_second"]),
            "sims/s": count(row["simulations_per_second"]),
            "play/learn/eval s": f"{row['selfplay_seconds']:.0f}/{row['learning_seconds']:.0f}/"
            f"{row['evaluation_seconds']:.0f}",
        }
        if "loss" in row:
            fields["loss"] = f"{row['loss']:.3f} (policy {row['policy_loss']:.3f}, value {row['value_loss']:.3f})"
        if self.rating:
            fields["rating"] = self.rating
        self.progress.row(fields | {"left": duration(left)}, final=final)

    def _stop_if_not_finite(self, row: dict[str, Any], state: RunState) -> None:
        bad = row["nonfinite_targets_in_step"] > 0 or row.get("nonfinite_updates", 0) > 0
        self.totals.nonfinite_steps = self.totals.nonfinite_steps + 1 if bad else 0
        if self.totals.nonfinite_steps < MAX_NONFINITE_STEPS:
            return
        self.run.crash_path.mkdir(exist_ok=True)
        (self.run.crash_path / "diagnosis.json").write_text(
            json.dumps(row, indent=2, default=str) + "\n", encoding="utf-8"
        )
        with Checkpoints(self.run.crash_path / "checkpoints", write=True) as crash:
            crash.save(row["step"], state, {"totals": dataclasses.asdict(self.totals)}, wait=True)
        raise FloatingPointError(
            f"training: {MAX_NONFINITE_STEPS} steps running gave numbers that are not finite; the state is in "
            f"{self.run.crash_path}; lower learner.learning_rate or set learner.clip, and start from an earlier step"
        )

    def _agent(self, state: RunState, step: int) -> LoadedRun:
        return LoadedRun(config=self.config, variables=state.learner.variables, step=step)

    def _evaluate(self, state: RunState, step: int, log: "_Log") -> None:
        started = time.perf_counter()
        evaluation = rate_against_anchors(
            self.game,
            self._agent(state, step),
            self.step.mesh,
            self.progress,
            self.run,
            games=self.config.evaluation.games,
        )
        for match in evaluation.matches:
            log.write({"step": step, "evaluation": match_json(match)})
        self.rating = evaluation.rating
        self._count_evaluation(started)

    def _gate(self, state: RunState, log: "_Log") -> RunState:
        """Plays the newest parameters against the gate's holder, and lets them in after enough wins running."""
        started = time.perf_counter()
        step, gate = int(state.step), self.config.gate
        newest = run_player(self.game, self._agent(state, step), f"step {step}")
        holder = newest._replace(name="gate", params=state.best)
        match: Match = play_match(
            self.game,
            newest,
            holder,
            games=gate.games,
            mesh=self.step.mesh,
            seed=step,
            opening_plies=self.config.evaluation.opening_plies,
        )
        score = (match.wins + match.draws / 2) / match.games
        self.gate_streak = self.gate_streak + 1 if score >= gate.score else 0
        passed = self.gate_streak >= gate.streak
        log.write({"step": step, "gate": {"score": score, "streak": self.gate_streak, "passed": passed}})
        if passed:
            self.gate_streak = 0
            # A copy: the step donates its argument, and one buffer cannot be given away twice.
            state = dataclasses.replace(state, best=jax.tree.map(lambda leaf: leaf.copy(), state.learner.variables))
        self._count_evaluation(started)
        return state

    def _count_evaluation(self, started: float) -> None:
        self.totals.evaluation_seconds += time.perf_counter() - started
        self.clock = time.perf_counter()

    def _save(self, state: RunState, step: int, wait: bool) -> None:
        metadata = {
            "totals": dataclasses.asdict(self.totals),
            "gate_streak": self.gate_streak,
            "config": to_json(self.config),
        }
        self.checkpoints.save(step, state, metadata, wait=wait)

    def _finish(self, state: RunState) -> int:
        self.checkpoints.wait()
        started = time.perf_counter()
        self.progress.doing("rating")
        finish_run(self.run, self.config, self.game, self.step.mesh, self.checkpoints, self.totals, self.progress)
        self._count_evaluation(started)
        return 0


class _Log:
    """metrics.jsonl and TensorBoard."""

    def __init__(self, run: RunDirectory):
        self._file = run.metrics_path.open("a", encoding="utf-8")
        self._board = SummaryWriter(str(run.tensorboard_path), flush_secs=10)

    def __enter__(self) -> "_Log":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()
        self._board.close()

    def write(self, row: dict[str, Any]) -> None:
        # JSON has no NaN: a number that is not finite is null there.
        row = {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in row.items()}
        self._file.write(json.dumps(row, allow_nan=False) + "\n")
        self._file.flush()
        for name, value in row.items():
            if isinstance(value, int | float) and name != "step":
                self._board.add_scalar(name, value, row["step"])
