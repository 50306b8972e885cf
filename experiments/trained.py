"""Runs of an experiment: trained to their end, or stopped by a signal with their state saved."""

import re
from pathlib import Path

from azjax.config import RunConfig
from azjax.rundir import RunDirectory
from azjax.train import train


class Stopped(Exception):
    """A signal stopped a training; run again, the experiment goes on with it."""

    def __init__(self, status: int):
        super().__init__(f"stopped by a signal ({status})")
        self.status = status


def slug(game: str) -> str:
    """Returns a game's name as that of a folder."""
    return re.sub(r"[^a-z0-9]+", "-", game)


def trained(config: RunConfig, directory: Path) -> RunDirectory:
    """Trains a run, or goes on with it, or finds it finished.

    Raises:
      Stopped: a signal stopped it.
      ValueError: the directory's run has another configuration.
    """
    if status := train(config, directory):
        raise Stopped(status)
    return RunDirectory(directory)
