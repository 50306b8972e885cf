"""Writes docs/images/crosshair.svg, the README's moving picture: python docs/pictures.py

Of the game in crosshair.jsonl beside it, which a run of `make train` (seed 0) kept: its last checkpoint and uct:400.
The run's elo.png lies beside them.
"""

from pathlib import Path

import envs
from azjax.boards import animate, draw_game
from envs.game_files import read_games

IMAGES = Path(__file__).with_name("images")


def crosshair() -> str:
    """Returns the game as one animated SVG."""
    (record,) = read_games(IMAGES / "crosshair.jsonl")
    return animate(draw_game(envs.make(record.game), record))


if __name__ == "__main__":
    (IMAGES / "crosshair.svg").write_text(crosshair(), encoding="utf-8")
