"""Writes the pictures of docs/images that are drawn by azjax: python docs/pictures.py

crosshair.svg, the README's moving picture: the game in crosshair.jsonl beside it, which a run of `make train` (seed 0)
kept: its last checkpoint and uct:400. The run's elo.png lies beside them.

terminal.svg: boards as `azjax play` shows them in a terminal, two side by side.
"""

import io
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

import envs
from azjax.boards import animate, draw_game
from azjax.boards.terminal import paint
from azjax.line import read_line
from envs.game_files import read_games

IMAGES = Path(__file__).with_name("images")

BOARDS = {
    "crosshair": "d4 d2 d3 a3 a5 c5 c4 f4 f6",
    "black_hole": "c4 b3 d5 c5 b4 c3 d6 c6",
    "othello": "d3 c5 e6 f5 f6 e3 c3 d2",
    "hex,size=7": "d3 d4 e3 c5 b5 e4 f3",
    "go_9x9": "E5 E3 C4 G4 D7 G6 F7 G7 F3 F4 E4 F2",
    "ultimate_tic_tac_toe": "e5 d4 b2 e6 e7 d1 c3 i9 g7",
}
"""Games, and the moves to the position that is shown."""

# As rich's own, without its fonts, which a reader would load from the network.
SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px; }}
{styles}
</style>
<defs>{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#292929"/>
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def crosshair() -> str:
    """Returns the game as one animated SVG."""
    (record,) = read_games(IMAGES / "crosshair.jsonl")
    return animate(draw_game(envs.make(record.game), record))


def terminal() -> str:
    """Returns the boards."""
    console = Console(record=True, width=110, file=io.StringIO(), highlight=False, color_system="truecolor")
    table = Table.grid(padding=(0, 2, 1, 0), expand=True)
    shown = []
    for word, moves in BOARDS.items():
        line = read_line(envs.make(word), moves)
        title = Text(f"azjax play {word}", style="bold cyan")
        shown.append(Text("\n").join([title, paint(line.game, line.game.render(line.state))]))
    for left, right in zip(shown[::2], shown[1::2], strict=True):
        table.add_row(left, right)
    console.print(table)
    return console.export_svg(title="", code_format=SVG, unique_id="terminal")


if __name__ == "__main__":
    (IMAGES / "crosshair.svg").write_text(crosshair(), encoding="utf-8")
    (IMAGES / "terminal.svg").write_text(terminal(), encoding="utf-8")
