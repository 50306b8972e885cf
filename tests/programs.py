"""Other people's programs, which tests need and a machine may lack."""

import os
import shutil

import pytest


def find(program: str) -> str | None:
    """Returns the path of a program, on PATH or where Debian puts games; None where it is not installed."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/games")


def installed(program: str) -> bool:
    return find(program) is not None


needs_gnugo = pytest.mark.skipif(not installed("gnugo"), reason="GNU Go is not installed")
