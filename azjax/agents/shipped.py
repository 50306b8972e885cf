"""The agents that come with azjax, by name. Imports no JAX."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import envs
from azjax.agents.file import SUFFIX, AgentHeader, read_header

if TYPE_CHECKING:
    from envs.core import Game

FOLDER = Path(__file__).parent


@functools.cache
def shipped() -> dict[str, AgentHeader]:
    """Returns the agents by name."""
    return {path.stem: read_header(path) for path in sorted(FOLDER.glob(f"*{SUFFIX}"))}


def shipped_for(game: "Game") -> str | None:
    """Returns the name of the agent that plays exactly this game; None where there is none."""
    return next((name for name, header in shipped().items() if envs.is_named(game, header.config.game)), None)


def find_agent(word: str) -> AgentHeader:
    """Returns what a player's word means: the name of a shipped agent, or a file.

    Raises:
      ValueError: there is no such agent, or the file is not an agent's.
    """
    if word in shipped():
        return shipped()[word]
    if not word.endswith(SUFFIX):
        raise ValueError(f"agent: got {word!r}, expected one of {', '.join(shipped())}, or FILE{SUFFIX}")
    if not Path(word).is_file():
        raise ValueError(f"agent: got {word}, which is no file; expected one that azjax export wrote")
    return read_header(Path(word))
