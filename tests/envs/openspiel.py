"""OpenSpiel as the referee of games that number their moves as it does."""

from typing import Any

import numpy as np


def compare_with_openspiel(play: Any, name: str, options: dict | None = None) -> int:
    """Requires equal movers, legal moves, ends and results in a `random_play`; returns the number of positions."""
    import pyspiel

    referee = pyspiel.load_game(name, options or {})
    positions = 0
    for lane in range(len(play.plies)):
        state = referee.new_initial_state()
        for ply, move in enumerate(play.moves(lane)):
            assert not state.is_terminal()
            assert state.current_player() == ply % 2
            assert np.flatnonzero(play.masks[ply, lane]).tolist() == state.legal_actions()
            state.apply_action(move)
            positions += 1
        assert state.is_terminal()
        assert play.returns[lane].tolist() == state.returns()
    return positions
