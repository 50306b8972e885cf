"""What the run in a directory lets a command do: go on, be rated again, print its report, or nothing."""

from azjax.checkpoint import Checkpoints
from azjax.config import RunConfig, differences
from azjax.rundir import RunDirectory

SAFE_FIELDS = ("evaluation.", "checkpoint.", "preset", "devices")
"""Fields that may change when a run is resumed: they measure, keep and place, but do not train."""
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
