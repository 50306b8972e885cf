"""Charts as SVG text: curves with bands, and search trees. For the web page and notebooks; elo.png is report.py's."""

from azjax.charts.curves import Curve, draw_curves
from azjax.charts.tree import draw_tree

__all__ = ["Curve", "draw_curves", "draw_tree"]
