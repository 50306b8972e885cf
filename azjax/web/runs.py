"""Runs on the page: curves of one or several, live while they train, and the games they kept."""

import itertools
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from azjax.charts import Curve, draw_curves
from azjax.checkpoint import Checkpoints
from azjax.config import RunConfig
from azjax.line import Line
from azjax.progress import count, duration
from azjax.rating import elo_difference
from azjax.rows import is_number, parsed, read_lines, whole_row
from azjax.rundir import RunDirectory
from azjax.web.fields import Refused
from envs.core import Game
from envs.game_files import read_games
from envs.record import GameRecord

AXES = ("games", "minutes", "step")
MOST_POINTS = 300
MOST_RUNS = 6


class RunLog:
    """The rows of a run's metrics.jsonl, of which only what is new is read each time."""

    def __init__(self, run: RunDirectory):
        self.run = run
        self.rows: list[dict[str, Any]] = []
        self.damaged = 0  # lines that are no rows
        self._read, self._file = 0, 0

    def update(self) -> None:
        """Reads what has come; from the beginning where it is another file: a run that was resumed cuts its log into a
        new one, which may have grown longer than the old one was.
        """
        path = self.run.metrics_path
        if not path.is_file():
            return
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())
            if stat.st_ino != self._file or stat.st_size < self._read:
                self.rows, self.damaged, self._read, self._file = [], 0, 0, stat.st_ino
            file.seek(self._read)
            for line, size in read_lines(file):
                if not line.endswith(b"\n"):
                    break  # still being written
                self._read += size
                row = whole_row(line)
                if row is None:
                    self.damaged += 1  # resuming cuts it off
                else:
                    self.rows.append(row)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The rows of training steps."""
        return [row for row in self.rows if "games" in row]


class RunsView:
    """What the page's second tab shows."""

    def __init__(
        self,
        found: Callable[[], dict[str, RunDirectory]],
        why_closed: Callable[[RunDirectory, RunConfig], str],
    ):
        """Args:
        found: returns the runs by name.
        why_closed: says why agents and games of a run are not loaded; "" where they are.
        """
        self._found, self._why_closed = found, why_closed
        self._logs: dict[Path, RunLog] = {}

    def listed(self) -> list[dict[str, Any]]:
        """Returns a line for each run."""
        return [self._summary(name, run) for name, run in self._found().items()]

    def curves(self, names: Sequence[str], axis: str) -> dict[str, Any]:
        """Returns charts of runs side by side: {"charts": [svg, ...]}.

        Raises:
          Refused: a run is not there.
        """
        found = self._found()
        for name in names:
            if name not in found:
                raise Refused(f"run: got {name[:80]!r}, which is not one of those found")
        logs = [(name, self._log(found[name])) for name in names]
        charts = [
            draw_curves([_rating(name, log, axis) for name, log in logs], title=_rating_title(logs), x_label=axis),
            *(
                draw_curves(
                    [_values(name, log, axis, field) for name, log in logs], title=title, x_label=axis, from_zero=True
                )
                for field, title in (
                    ("policy_loss", "Policy loss"),
                    ("value_loss", "Value loss"),
                    ("plies_per_second", "Plies a second"),
                    ("simulations_per_second", "Simulations a second"),
                )
            ),
        ]
        return {"charts": charts}

    def config(self, name: str) -> RunConfig:
        """Returns a run's configuration.

        Raises:
          Refused: the run is not there, or not opened.
        """
        run = self._run(name)
        try:
            config = run.read_config()
        except ValueError as error:
            raise Refused(str(error)) from None
        if why := self._why_closed(run, config):
            raise Refused(f"run: {name} is {why}")
        return config

    def games(self, name: str) -> list[dict[str, Any]]:
        """Returns the files of games of a run."""
        return [{"file": file, "bytes": path.stat().st_size} for file, path in self._files(name).items()]

    def records(self, name: str, file: str) -> list[GameRecord]:
        """Returns the games of a file, which must be one of those that `games` lists.

        Raises:
          Refused: it is not, or it cannot be read.
        """
        path = self._files(name).get(file)
        if path is None:
            raise Refused(f"file: got {file[:80]!r}, which is not one of the run's games")
        try:
            return read_games(path)
        except RecursionError:
            raise Refused(f"{path}: got JSON nested too deeply, expected records of games") from None
        except ValueError as error:
            raise Refused(str(error)) from None

    def replay(self, game: Game, record: GameRecord) -> Line:
        """Returns the line of a recorded game.

        Raises:
          Refused: the record does not keep the rules.
        """
        try:
            return Line(game, events=record.actions)
        except ValueError as error:
            raise Refused(str(error)) from None

    def _run(self, name: str) -> RunDirectory:
        run = self._found().get(name)
        if run is None:
            raise Refused(f"run: got {name[:80]!r}, which is not one of those found")
        return run

    def _files(self, name: str) -> dict[str, Path]:
        run = self._run(name)
        return {path.stem: path for path in sorted(run.games_path.glob("*.jsonl"))} if run.games_path.is_dir() else {}

    def _log(self, run: RunDirectory) -> RunLog:
        log = self._logs.setdefault(run.path, RunLog(run))
        log.update()
        return log

    def _summary(self, name: str, run: RunDirectory) -> dict[str, Any]:
        log = self._log(run)
        try:
            config = run.read_config()
        except ValueError as error:
            return {"name": name, "fault": str(error)}
        last = log.steps[-1] if log.steps else None
        ratings = _ratings(run)
        notes = [self._why_closed(run, config)]
        notes += (
            [f"{log.damaged} damaged line{'s' * (log.damaged > 1)} in {run.metrics_path.name}"] if log.damaged else []
        )
        notes += [f"{run.ratings_path.name} is damaged"] if ratings is None else []
        matches = _of_the_agent(log)
        return {
            "name": name,
            "game": config.game,
            "preset": config.preset,
            "steps": config.steps,
            "step": last["step"] if last else 0,
            "games": count(last["games"]) if last else "0",
            "time": duration(last["seconds"]) if last else "0:00",
            "plies_per_second": count(last["plies_per_second"]) if last else "",
            "score": f"{matches[max(matches)]['score']:.0%} against {_anchor(log)}" if matches else "",
            "state": run.progress(),
            "checkpoints": Checkpoints(run.checkpoints_path).saved_steps(),
            "ratings": ratings or [],
            "note": "; ".join(filter(None, notes)),
        }


def _ratings(run: RunDirectory) -> list[dict[str, Any]] | None:
    """Returns the players of ratings.json; None where it holds something else."""
    if not run.ratings_path.is_file():
        return []
    try:
        players = parsed(run.ratings_path.read_bytes())["players"]
    except (ValueError, LookupError, TypeError):
        return None
    return players if isinstance(players, list) and all(map(_is_player, players)) else None


def _is_player(value: Any) -> bool:
    """Returns whether a part of ratings.json is one as `azjax.rating` writes it; an interval's end may be null."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return False
    ends = value.get("ci95")
    return all(is_number(value.get(name)) for name in ("elo", "games", "score")) and (
        ends is None or (isinstance(ends, list) and all(end is None or is_number(end) for end in ends))
    )


def _of_the_agent(log: RunLog) -> dict[int, dict[str, Any]]:
    """Returns the agent's matches against the run's last anchor, by step."""
    anchor, matches = _anchor(log), {}
    for row in log.rows:
        match = row.get("evaluation")
        if match and match["b"] == anchor and match["a"] == f"step {row['step']}":
            matches[row["step"]] = match
    return matches


def _rating(name: str, log: RunLog, axis: str) -> Curve:
    """Returns Elo above the last anchor, from the matches that were played during training."""
    at = {row["step"]: _along(row, axis) for row in log.steps}
    matches = {step: match for step, match in _of_the_agent(log).items() if step in at}

    def elo(score: float) -> float:
        return elo_difference(min(max(score, 1e-3), 1 - 1e-3))

    steps = sorted(matches)
    return Curve(
        name=name,
        x=[at[step] for step in steps],
        y=[elo(matches[step]["score"]) for step in steps],
        low=[elo(matches[step]["ci95"][0]) for step in steps],
        high=[elo(matches[step]["ci95"][1]) for step in steps],
        dots=True,
    )


def _anchor(log: RunLog) -> str:
    return next((row["evaluation"]["b"] for row in reversed(log.rows) if "evaluation" in row), "")


def _rating_title(logs: Sequence[tuple[str, RunLog]]) -> str:
    anchors = {anchor for _, log in logs if (anchor := _anchor(log))}
    return f"Elo above {anchors.pop()}, 95 % interval" if len(anchors) == 1 else "Elo above each run's last anchor"


def _values(name: str, log: RunLog, axis: str, field: str) -> Curve:
    rows = [row for row in log.steps if is_number(row.get(field))]
    if field.endswith("loss"):
        rows = [row for row in rows if row.get("applied", 1)]  # before the first finished game nothing is learned
    rows = rows[:: max(1, math.ceil(len(rows) / MOST_POINTS))]
    # Games end in bunches: of steps in which none ended, one point with their mean, not a stroke.
    bunches = [(x, [row[field] for row in same]) for x, same in itertools.groupby(rows, lambda row: _along(row, axis))]
    return Curve(name=name, x=[x for x, _ in bunches], y=[sum(values) / len(values) for _, values in bunches])


def _along(row: dict[str, Any], axis: str) -> float:
    return row["seconds"] / 60 if axis == "minutes" else row[axis]
