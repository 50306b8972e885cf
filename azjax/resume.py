"""What the run in a directory lets a command do: go on, be rated again, print its report, or nothing."""

import dataclasses
from types import SimpleNamespace

from azjax.checkpoint import CheckpointError, Checkpoints, Restored
from azjax.config import RunConfig, differences, from_json
from azjax.metrics import Totals
from azjax.rows import is_number
from azjax.rundir import RunDirectory

SAFE_FIELDS = ("evaluation.", "checkpoint.", "preset", "devices")
"""Fields that may change when a run is resumed: they measure, keep and place, but do not train."""
FILLED_IN = "search.dirichlet_alpha"
"""Computed from the game where a configuration leaves it out; another version may round it otherwise."""
MATCHES = ("gate", "evaluation")
DURING_A_RUN = ("evaluation.every", "evaluation.games")
"""Fields of evaluation that have no part in the report."""


def refuse_changes(old: RunConfig, new: RunConfig, run: RunDirectory) -> None:
    """Refuses to go on with a run as another one.

    `steps` may change too where nothing but the end depends on it: the cosine schedule falls over all of them.

    Raises:
      ValueError: fields differ that train, or the run has already done more steps.
    """
    changed = {name: values for name, values in differences(old, new).items() if not name.startswith(SAFE_FIELDS)}
    if old.learner.schedule != "cosine" and changed.keys() == {"steps"}:
        done = max(Checkpoints(run.checkpoints_path).saved_steps(), default=0)
        if new.steps < done:
            raise ValueError(f"steps: got {new.steps}, expected at least {done}, which {run.path} has done")
        return
    if changed:
        listed = ", ".join(f"{name}: {before} -> {after}" for name, (before, after) in changed.items())
        why = "; the cosine schedule depends on steps" if changed.keys() == {"steps"} else ""
        raise ValueError(
            f"config: {run.path} was started with other values ({listed}){why}; use --fork NAME, or another --out"
        )


def is_finished(old: RunConfig, new: RunConfig, run: RunDirectory) -> bool:
    """Returns whether all steps are done, and rated as `new` wants it."""
    steps = Checkpoints(run.checkpoints_path).saved_steps()
    if not steps or steps[-1] < new.steps or not run.report_path.is_file() or not run.ratings_path.is_file():
        return False
    changed = differences(old, new)
    return not any(name.startswith("evaluation.") and name not in DURING_A_RUN for name in changed)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resumed:
    """What a checkpoint says of its run besides the state."""

    totals: Totals
    gate_streak: int
    waiting: list[str]  # matches of its step that are still to be played


def read_metadata(restored: Restored, config: RunConfig, run: RunDirectory) -> Resumed:
    """Reads a checkpoint's metadata, which a person or another run may have put there.

    Raises:
      CheckpointError: it is not a run's, or that of a run with other values in what trains.
    """
    where = f"checkpoint {restored.step} of {run.path}"
    try:
        refuse_stranger(from_json(restored.metadata["config"]), config, where)
        totals, streak = restored.metadata["totals"], restored.metadata["gate_streak"]
        waiting = list(restored.metadata.get("waiting", ()))
        known = {field.name for field in dataclasses.fields(Totals)}
        if strange := [n for n, value in totals.items() if n not in known or not is_number(value) or value < 0]:
            raise ValueError(f"totals: {strange[0]}")
        if type(streak) is not int or not set(waiting) <= set(MATCHES):
            raise ValueError(f"gate_streak {streak!r}, waiting {waiting}")
        if (step := int(restored.state.step)) != restored.step:
            raise ValueError(f"its state is of step {step}")
        return Resumed(totals=Totals(**totals), gate_streak=streak, waiting=waiting)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{where}: its metadata is not a run's ({error})") from None


def refuse_others(config: RunConfig, run: RunDirectory) -> None:
    """Refuses to begin where checkpoints are, of which no config.json says what run they are of, unless it is this one.

    Raises:
      CheckpointError: they are of a run with other values in what trains, or none is whole.
    """
    checkpoints = Checkpoints(run.checkpoints_path, warn=lambda line: None)  # it says so when it goes on from them
    if checkpoints.present_steps():
        restored = checkpoints.restore_part(None, ("step",))
        read_metadata(dataclasses.replace(restored, state=SimpleNamespace(**restored.state)), config, run)


def refuse_stranger(saved: RunConfig, config: RunConfig, where: str) -> None:
    """Refuses a checkpoint that was trained otherwise than the run in whose directory it is.

    Raises:
      CheckpointError: fields differ that train.
    """
    may_differ = (*SAFE_FIELDS, FILLED_IN) + (() if config.learner.schedule == "cosine" else ("steps",))
    changed = {name: values for name, values in differences(saved, config).items() if not name.startswith(may_differ)}
    if changed:
        listed = ", ".join(f"{name}: {before}, expected {after}" for name, (before, after) in changed.items())
        raise CheckpointError(f"{where} is of a run with other values ({listed})")
