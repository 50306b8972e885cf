"""Boards as pictures: one drawing a game, for the web page, notebooks and files.

draw(game, state)                       a Drawing, which a notebook shows; .svg() is the text of the picture
draw_game(game, record)                 every position of a recorded game
animate(draw_game(game, record))        the game as one animated picture
"""

from azjax.boards.draw import draw, draw_game, draw_move, event_names, legend_of, zones_of
from azjax.boards.drawing import Drawing, Zone
from azjax.boards.marks import Mark, draw_marks
from azjax.boards.movie import animate

__all__ = [
    "Drawing",
    "Mark",
    "Zone",
    "animate",
    "draw",
    "draw_game",
    "draw_marks",
    "draw_move",
    "event_names",
    "legend_of",
    "zones_of",
]
