"""Exact values of late positions: the solver's, and those of given endgames of Black Hole."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from azjax import network
from azjax.config import NetworkConfig, RunConfig
from azjax.endgame import LANES, endgame_values, exact_values, opening_values, policy_logits
from azjax.expansion import random_positions, rows, size
from azjax.oracle import oracle
from azjax.solver import look_up, solve
from envs.black_hole import BlackHole
from envs.tic_tac_toe import GAME

_ENDGAMES = json.loads((Path(__file__).parents[1] / "data" / "blackhole_endgames.json").read_text())


def in_order(game):
    """Tries moves by their numbers."""
    return lambda states: np.zeros((size(states), game.num_actions), np.float32)


@pytest.fixture(scope="module")
def positions():
    found = random_positions(GAME, 200, 3)
    return rows(found.states, np.flatnonzero(found.ply >= 2))


def test_values_are_the_solvers(positions):
    expected = np.asarray(look_up(solve(GAME), positions))
    assert {-1.0, 0.0, 1.0} == set(expected.tolist())
    assert len(expected) > LANES  # more than are searched at once, on any number of devices
    np.testing.assert_array_equal(exact_values(GAME, positions), expected)
    np.testing.assert_array_equal(exact_values(GAME, rows(positions, slice(0, 3))), expected[:3])


def test_the_value_of_every_move_is_the_oracles(positions):
    some = rows(positions, slice(0, 60))
    with oracle(GAME) as values:
        np.testing.assert_array_equal(endgame_values(GAME)(some), values(some))


def test_a_game_that_is_over_is_worth_its_return():
    state = GAME.init(jax.random.key(0))
    for action in (0, 3, 1, 4, 2):  # the first player has a row
        state = GAME.step(state, np.int32(action))
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
    mover = int(GAME.to_move(state))
    assert exact_values(GAME, states).tolist() == [float(GAME.returns(state)[mover])]


def test_openings_of_tic_tac_toe_are_corners_edges_and_the_centre():
    told = []
    openings = opening_values(GAME, in_order(GAME), on_progress=lambda done, number: told.append((done, number)))
    assert told[0] == (0, 24) and told[-1][0] <= 24
    assert [opening.actions for opening in openings] == [(0, 2, 6, 8), (1, 3, 5, 7), (4,)]
    assert [opening.value for opening in openings] == [0.0, 0.0, 0.0]


def test_given_endgames_of_black_hole():
    given = [endgame for endgame in _ENDGAMES if endgame["rows"] == 5]
    game = BlackHole(5)
    assert len(given) > 5
    states = []
    for endgame in given:
        state = game.init(jax.random.key(0))
        for action in endgame["actions"]:
            state = game.step(state, np.int32(action))
        states.append(state)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    values = endgame_values(game)(stacked)
    for endgame, worth in zip(given, values, strict=True):
        sign = 1 if endgame["to_move"] == 0 else -1
        expected = {int(cell): sign * value for cell, value in endgame["action_values_p0"].items()}
        assert {int(cell): worth[cell] for cell in np.flatnonzero(np.isfinite(worth))} == expected


def test_openings_of_the_smallest_black_hole_are_draws():
    # Two rows: one tile each and the hole; the tiles are equal, whichever cell stays empty.
    (opening,) = opening_values(BlackHole(2), in_order(BlackHole(2)))
    assert opening == ((0, 1, 2), 0.0)


def test_a_networks_order_is_by_move():
    game = BlackHole(5)
    config = RunConfig(game="black_hole,rows=5", network=NetworkConfig(width=8, blocks=1))
    variables = network.init(config.network, game, jax.random.key(1))
    found = random_positions(game, 4, 0)
    logits = policy_logits(game, config, variables)(found.states)
    assert logits.shape == (size(found.states), 15) and len(np.unique(logits)) > 15
