"""The host loop of a run: start or resume, step, measure, save, report."""

import contextlib
import dataclasses
import functools
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax

import envs
from azjax import hosts
from azjax.arena import Match, play_match
from azjax.checkpoint import Checkpoints
from azjax.config import RunConfig, to_json
from azjax.evaluation import check_anchors, finish_run, rate_against_anchors
from azjax.interrupt import Interrupted, Signals
from azjax.launch import NAMES, NOTHING_SAVED
from azjax.learner import all_finite
from azjax.metrics import MetricsLog, Totals
from azjax.network import num_parameters
from azjax.plan import check_fits, make_plan, plan_table, usable_devices
from azjax.players import LoadedRun, run_player
from azjax.progress import Progress, count, duration
from azjax.resume import is_finished, read_metadata, refuse_changes, refuse_others
from azjax.rundir import RunDirectory, check_cache, naming
from azjax.selfplay import mean_legal_moves
from azjax.step import RunState, Step, make_mesh
from azjax.tournament import match_json
from envs.core import Game

SLOW_STEP_SECONDS = 10.0
"""A signal is answered between steps: one that takes longer is told of, since 15 s after it a machine may be gone."""
MAX_NONFINITE_STEPS = 5
SUMS = ("games", "truncated", "decided", "first_player_wins", "won_by_last_mover", "nonfinite_targets")
SUMS += ("resigned", "would_resign", "false_resign")  # where players may give up


def use_devices(devices: int = 0) -> None:
    """Makes virtual CPU devices, one a core (or `devices`), unless JAX's backend has started; call it before.

    Two devices play 2.6 times as fast as one on two cores: XLA runs a device's loops on one thread.

    Raises:
      ValueError: JAX's compilation cache is open to others.
    """
    check_cache(os.environ.get("JAX_COMPILATION_CACHE_DIR"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jax.distributed.is_initialized():
        devices = max(1, (devices or cores) // jax.process_count())
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", devices or max(1, min(cores, 8)))


def resolve(config: RunConfig, game: Game) -> RunConfig:
    """Fills in what depends on the game: the noise. (How long replay must be, the presets ask the game.)"""
    search = config.search
    if search.dirichlet_alpha is None:
        mean = mean_legal_moves(game, jax.random.key(0))
        search = dataclasses.replace(search, dirichlet_alpha=round(10 / max(mean, 1.0), 3))
    return dataclasses.replace(config, search=search)


def choose_devices(config: RunConfig) -> int:
    """Returns how many devices to use: all, or the most that lanes and batch divide by.

    Raises:
      ValueError: there are several processes and the configuration leaves out devices of one.
    """
    most = len(jax.devices())
    if hosts.several():
        if config.devices not in (0, most):
            raise ValueError(f"devices: got {config.devices}, expected {most}, all of {jax.process_count()} processes")
        return most
    return config.devices or usable_devices(config, most)


def train(config: RunConfig, directory: Path) -> int:
    """Runs to the end of `config`, from where the directory's run stopped or from the beginning.

    Returns:
      0 when finished, 130, 143 or 129 after Ctrl-C, SIGTERM or SIGHUP (the state is saved).

    Raises:
      ValueError: the configuration is wrong, or differs from the run's in what trains.
      CheckpointError: nothing could be saved, or no checkpoint is whole.
    """
    run = RunDirectory(directory, writes=hosts.is_first())
    game = envs.make(config.game)
    with (
        Progress(quiet=not hosts.is_first()) as progress,
        naming(run.path),
        contextlib.ExitStack() as held,
        Signals() as signals,
    ):
        with hosts.together():
            held.enter_context(run.lock())
            old = run.read_config() if run.exists() else None
            if old is not None:
                refuse_changes(old, config, run)
            finished = old is not None and is_finished(old, config, run)
        hosts.require_same(f"whether {run.path} is finished", finished)
        if finished:
            progress.say(f"finished: {run.path}, {config.steps} steps; its report:")
            progress.say(run.report_path.read_text(encoding="utf-8"))
            return 0
        progress.say(f"{'resuming' if run.exists() else 'new run'}: {run.path}, {config.game}, {config.steps} steps")
        progress.doing("compiling")
        signals.nothing_to_save = NOTHING_SAVED
        with hosts.together():
            check_anchors(game, config)
            resolved = resolve(config, game)
            devices = choose_devices(config)
            plan = make_plan(resolved, game, devices)
            check_fits(plan)
            step = Step(resolved, game, make_mesh(devices))
            if old is None:
                refuse_others(resolved, run)
            run.drop_report()  # one of fewer steps, or of another rating
            run.write_config(config)
        progress.table(plan_table(plan))
        checkpoints = Checkpoints(
            run.checkpoints_path,
            keep=config.checkpoint.keep,
            keep_every=config.checkpoint.keep_every,
            write=True,
            warn=progress.say,
        )
        with checkpoints:
            trainer = _Trainer(resolved, game, step, run, checkpoints, progress, signals)
            return trainer.run_to_end()


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
        signals: Signals,
    ):
        self.config, self.game, self.step, self.run = config, game, step, run
        self.checkpoints, self.progress, self.signals = checkpoints, progress, signals
        self.totals = Totals()
        self.gate_streak = 0
        self.waiting: list[str] = []  # matches of the newest step that are still to be played
        self.rating = ""
        self.slow_step_told = False
        self._is_finite = jax.jit(all_finite)
        self.clock = time.perf_counter()

    def run_to_end(self) -> int:
        """Trains, saves, evaluates and reports; returns the exit code."""
        state = self._start()
        self.signals.nothing_to_save = ""
        done = saved = int(state.step)
        with MetricsLog(self.run) as log:
            state = self._measure(state, done, log)  # what the run was stopped in
            due = False
            while done < self.config.steps and not self.signals.caught():
                state, row = self._train_step(state)
                done += 1
                log.write(row)
                self._show(row, final=done == self.config.steps)
                self._stop_if_not_finite(row, state)
                for name, every in (("gate", self.config.gate.every), ("evaluation", self.config.evaluation.every)):
                    self.waiting += [name] if every and done % every == 0 else []
                state = self._measure(state, done, log)
                stopping = bool(self.signals.caught()) or done == self.config.steps
                due |= done % self.config.checkpoint.every == 0
                if due or stopping:
                    due = not self._save(state, done, wait=stopping)
                    saved = saved if due else done
            if saved < done:  # a signal that was first seen where the next step would begin
                self._save(state, done, wait=True)
        if done == self.config.steps and not self.waiting and not self.signals.caught() and self._finish():
            return 0
        number = self.signals.caught()
        self.checkpoints.wait()
        said = f"step {done} is saved" if done else "nothing was to be saved"
        resume = f"azjax train {self.config.game} --resume {self.run.path}"
        self.progress.say(f"{NAMES[number]}: {said}; resume with: {resume}")
        return 128 + number

    def _start(self) -> RunState:
        like = jax.eval_shape(self.step.init, jax.random.key(0))
        self._compile(like)
        self.progress.doing("training")
        newest = max(self.checkpoints.present_steps(), default=-1)
        hosts.require_same(f"newest checkpoint in {self.run.path}", newest)
        if newest < 0:
            self.run.cut_rows(0, (), self.progress.say)
            state = self.step.init(jax.random.key(self.config.seed))
            self.progress.say(
                f"{count(num_parameters(state.learner.variables))} parameters on {self.step.mesh.size} x "
                f"{self.step.mesh.devices.flat[0].device_kind}"
            )
            return state
        restored = self.checkpoints.restore(self.step.placed(like))
        resumed = read_metadata(restored, self.config, self.run)
        self.totals, self.gate_streak, self.waiting = resumed.totals, resumed.gate_streak, resumed.waiting
        self.run.cut_rows(restored.step, self.waiting, self.progress.say)
        self.progress.say(f"resumed at step {restored.step} of {self.config.steps}")
        return restored.state

    def _compile(self, like: RunState) -> None:
        """Compiles the step's programs side by side: XLA compiles without Python's lock."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda compile_one: compile_one(), self.step.programs(like)))

    def _train_step(self, state: RunState) -> tuple[RunState, dict[str, Any]]:
        state, metrics = self.step(state)
        metrics = hosts.fetch(metrics)
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
        if (took := sum(self.step.seconds)) > SLOW_STEP_SECONDS and not self.slow_step_told:
            self.slow_step_told = True
            self.progress.say(
                f"a step takes {took:.0f} s, and a signal is answered after it; smaller selfplay.plies or"
                " learner.updates make it shorter"
            )
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
        worked = row["selfplay_seconds"] + row["learning_seconds"]  # compiling comes once
        left = (self.config.steps - row["step"]) * worked / max(row["step"], 1)
        fields = {
            "step": f"{row['step']}/{self.config.steps}",
            "games": count(row["games"]),
            "plies/s": count(row["plies_per_second"]),
            "sims/s": count(row["simulations_per_second"]),
            "play/learn/eval s": f"{row['selfplay_seconds']:.0f}/{row['learning_seconds']:.0f}/"
            f"{row['evaluation_seconds']:.0f}",
        }
        if row.get("applied"):  # before the first game is finished there is nothing to learn from
            fields["loss"] = f"{row['loss']:.3f} (policy {row['policy_loss']:.3f}, value {row['value_loss']:.3f})"
        if self.rating:
            fields["rating"] = self.rating
        self.progress.row(fields | {"left": duration(left)}, final=final)

    def _stop_if_not_finite(self, row: dict[str, Any], state: RunState) -> None:
        bad = row["nonfinite_targets_in_step"] > 0 or row.get("nonfinite_updates", 0) > 0
        self.totals.nonfinite_steps = self.totals.nonfinite_steps + 1 if bad else 0
        if self.totals.nonfinite_steps >= MAX_NONFINITE_STEPS:
            self._crash(f"{MAX_NONFINITE_STEPS} steps running gave numbers that are not finite", row, state)

    def _crash(self, problem: str, diagnosis: dict[str, Any], state: RunState) -> None:
        """Keeps the state apart from the checkpoints that a run goes on from, and ends the run."""
        with Checkpoints(self.run.crash_path / "checkpoints", write=True) as crash:
            crash.save(int(state.step), state, {"totals": dataclasses.asdict(self.totals)}, wait=True)
        if self.run.writes:
            text = json.dumps(diagnosis, indent=2, default=str)
            (self.run.crash_path / "diagnosis.json").write_text(f"{text}\n", encoding="utf-8")
        rate = self.config.learner.learning_rate / 10
        raise FloatingPointError(
            f"training: {problem}; the state is in {self.run.crash_path}; start anew with other values: azjax train "
            f"{self.config.game} --resume {self.run.path} --fork NAME --learner.clip 1 --learner.learning-rate {rate:g}"
        )

    def _agent(self, state: RunState, step: int) -> LoadedRun:
        return LoadedRun(config=self.config, variables=state.learner.variables, step=step)

    def _measure(self, state: RunState, step: int, log: MetricsLog) -> RunState:
        """Plays the matches that are due. What a signal interrupts stays due, and is played when the run goes on."""
        measures: dict[str, Callable[..., RunState]] = {"gate": self._gate, "evaluation": self._evaluate}
        while self.waiting and not self.signals.caught():
            measure = functools.partial(measures[self.waiting[0]], state, step, log)
            try:
                state = self.signals.interruptible(measure)
            except Interrupted:
                break
            del self.waiting[0]
        self.progress.doing("training")
        return state

    def _evaluate(self, state: RunState, step: int, log: MetricsLog) -> RunState:
        started = time.perf_counter()
        evaluation = rate_against_anchors(
            self.game,
            self._agent(state, step),
            self.step.mesh,
            self.progress,
            self.run,
            games=self.config.evaluation.games,
            on_progress=self.signals.check,
        )
        for match in evaluation.matches:
            log.write({"step": step, "evaluation": match_json(match)})
        self.rating = evaluation.rating
        self._count_evaluation(started)
        return state

    def _gate(self, state: RunState, step: int, log: MetricsLog) -> RunState:
        """Plays the newest parameters against the gate's holder, and lets them in after enough wins running."""
        started = time.perf_counter()
        gate = self.config.gate
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
            on_progress=self.signals.check,
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

    def _save(self, state: RunState, step: int, wait: bool) -> bool:
        """Saves the state; not, unless `wait`, while steps are not finite: a later state is better to go on from."""
        if not self._is_finite((state.learner, state.best)):
            self._crash(f"the parameters of step {step} are not finite", {"step": step}, state)
        if self.totals.nonfinite_steps and not wait:
            return False
        metadata = {
            "totals": dataclasses.asdict(self.totals),
            "gate_streak": self.gate_streak,
            "waiting": self.waiting,
            "config": to_json(self.config),
        }
        with hosts.together():
            self.run.check_held()
        self.checkpoints.save(step, state, metadata, wait=wait)
        return True

    def _finish(self) -> bool:
        """Rates the run and writes its report; returns False if a signal interrupts it."""
        self.checkpoints.wait()
        self.progress.doing("rating")

        def rate() -> None:
            finish_run(
                self.run,
                self.config,
                self.game,
                self.step.mesh,
                self.checkpoints,
                self.totals,
                self.progress,
                self.signals.check,
            )

        try:
            with hosts.together():
                self.signals.interruptible(rate)
        except Interrupted:
            return False
        return True
