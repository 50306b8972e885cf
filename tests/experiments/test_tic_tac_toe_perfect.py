"""Every sequence of replies is played, once; the smoke budget trains, plays and writes."""

import json

import jax
import jax.numpy as jnp
import pytest

from azjax.players import Player
from envs.tic_tac_toe import GAME
from experiments.tic_tac_toe_perfect import Options, Outcomes, main, play_every_reply


def first_free(params, rng_key, states):
    """Moves to the first free square."""
    return jnp.argmax(jax.vmap(GAME.legal_action_mask)(states), axis=1)


@pytest.mark.parametrize("seat", [0, 1])
def test_every_sequence_of_replies_is_played(seat):
    counts = {"wins": 0, "draws": 0, "losses": 0}

    def walk(board, mover):
        """Counts the games from here on by a slow twin of the rules: -1 free, else the seat."""
        lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
        for line in lines:
            if board[line[0]] >= 0 and len({board[square] for square in line}) == 1:
                counts["wins" if board[line[0]] == seat else "losses"] += 1
                return
        free = [square for square, owner in enumerate(board) if owner < 0]
        if not free:
            counts["draws"] += 1
        for square in free[:1] if mover == seat else free:
            walk([*board[:square], mover, *board[square + 1 :]], 1 - mover)

    walk([-1] * 9, 0)
    assert play_every_reply(GAME, Player("first free", first_free, ()), seat) == Outcomes(**counts)


@pytest.mark.slow
def test_the_smoke_budget_trains_plays_and_writes(tmp_path, capsys):
    options = Options(budget="smoke", simulations=2, runs=tmp_path / "runs", out=tmp_path / "out")
    assert main(options) == 0
    report = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [row["seat"] for row in report["rows"]] == ["first", "second"]
    assert all(row["wins"] + row["draws"] + row["losses"] >= 50 for row in report["rows"])
    assert "| second | " in capsys.readouterr().out
    assert main(options) == 0
    assert json.loads((tmp_path / "out" / "results.json").read_text())["rows"] == report["rows"]
