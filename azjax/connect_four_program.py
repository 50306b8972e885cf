"""A program of its own: Connect Four's exact values by the package bitbully, which is AGPL and so stays out of azjax.

    python -m azjax.connect_four_program

It says "ready"; then to each line of 42 characters, the board from its upper left with X for the first player, O for
the second and . for free squares, it answers one of seven words: each column's value for the player to move (above 0:
it wins, below: it loses), or - where the column is full. Nothing imports this file.
"""

import sys

WITHOUT = 3
"""Exit status where bitbully is not installed."""


def main() -> int:
    """Answers until the end of the input; returns the exit status."""
    try:
        from bitbully import BitBully, Board
    except ImportError:
        return WITHOUT
    solver, number = BitBully(), {".": 0, "X": 1, "O": 2}
    print("ready", flush=True)
    for line in sys.stdin:
        squares = [number[square] for square in line.strip()]
        scores = solver.score_all_moves(Board([squares[row : row + 7] for row in range(0, 42, 7)]))
        print(*(scores.get(column, "-") for column in range(7)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
