"""Giving up in self-play: who may, who would have, and whether that was wrong."""

import functools
import os
import re
import signal
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import train
from azjax.config import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    NetworkConfig,
    ReplayConfig,
    RunConfig,
    SearchConfig,
    SelfPlayConfig,
)
from azjax.replay import start_replay, write
from azjax.rundir import RunDirectory
from azjax.selfplay import Lanes, Resigning, SearchOutput, count, is_hopeless, play_ply, resign_share, start_lanes
from envs.tic_tac_toe import GAME

KEY = jax.random.key(0)
CONFIG = RunConfig(game="tic_tac_toe", selfplay=SelfPlayConfig(resign_value=-0.9, no_resign_share=0.5))


def tree(value, best):
    """A root of this value float[B] with two visited children, the better of value `best`, and one not visited."""
    visits = jnp.broadcast_to(jnp.array([3, 1, 0]), (len(value), 1, 3))
    qvalues = jnp.stack([jnp.asarray(best), jnp.full(len(value), -1.0), jnp.ones(len(value))], axis=1)
    return types.SimpleNamespace(
        node_values=jnp.asarray(value)[:, None], children_visits=visits, qvalues=lambda root: qvalues, ROOT_INDEX=0
    )


def scripted(variables, rng_key, states, temperature):
    """Plays the moves and has the values that are given as the network's variables."""
    moves, value, best = variables
    weights, legal = jnp.ones((len(moves), 1)), jnp.ones((len(moves), 1), jnp.bool_)
    return SearchOutput(moves, weights, legal, None, None, tree(value, best))


def test_hopeless_is_a_root_and_a_best_child_below_the_threshold():
    values, bests = jnp.array([-0.95, -0.95, -0.5, -0.9]), jnp.array([-0.91, -0.5, -0.95, -0.95])
    assert is_hopeless(tree(values, bests), -0.9).tolist() == [True, False, False, False]


#   X wins the top row at ply 5, or O the middle row at ply 6
X_WINS, O_WINS = (0, 3, 1, 4, 2), (0, 3, 1, 4, 8, 5)


@pytest.fixture(scope="module")
def played():
    """Five games in which player 1 sees no hope at its second move, replay of them, and each ply's results."""
    games = [X_WINS, O_WINS, X_WINS, O_WINS, X_WINS]
    allowed = jnp.array([True, False, False, True, False])
    best = [-0.99, -0.99, -0.99, 0.0, -0.99]  # the fourth has a move that is not so bad
    lanes = start_lanes(GAME, KEY, 5)
    lanes = Lanes(state=lanes.state, ply=lanes.ply, resigning=Resigning(allowed, jnp.full(5, -1, jnp.int8)))
    advance = jax.jit(functools.partial(play_ply, CONFIG, GAME, scripted))
    replay, results = None, []
    for ply in range(6):
        free = np.asarray(jax.vmap(GAME.legal_action_mask)(lanes.state)).argmax(-1)
        moves = [game[ply] if ply < len(game) and (lane, ply < 4) != (0, False) else free[lane]
                 for lane, game in enumerate(games)]  # fmt: skip
        value = jnp.full(5, -0.99 if ply == 3 else 0.0)
        variables = (jnp.array(moves, jnp.int32), value, jnp.array(best) if ply == 3 else jnp.zeros(5))
        lanes, result = advance(variables, jax.random.key(ply), lanes)
        replay = start_replay(result.position, 10, 9) if replay is None else replay
        replay = write(replay, result)
        results.append(result)
    return lanes, replay, results


def test_giving_up_ends_the_game_as_a_loss_in_place_of_the_move(played):
    _, replay, results = played
    third = results[3]
    assert third.over.tolist() == [True, False, False, False, False]
    assert third.returns[0].tolist() == [1.0, -1.0] and not third.truncated[0]
    assert replay.outcome[:4, 0].tolist() == [1, -1, 1, -1] and replay.has_outcome[:4, 0].all()
    assert third.position.mover[0] == 1
    assert count(third) | {"games": 1, "decided": 1, "first_player_wins": 1, "resigned": 1} == count(third)
    assert count(third)["won_by_last_mover"] == 0


def test_games_played_on_tell_whether_it_would_have_been_wrong(played):
    _, _, results = played
    totals = {name: sum(int(count(result)[name]) for result in results) for name in count(results[0])}
    # Of the three that may not give up the second is won all the same; the fourth had hope.
    assert (totals["resigned"], totals["would_resign"], totals["false_resign"]) == (1, 3, 1)
    assert results[4].gave_up.would_have.tolist() == [False, False, True, False, True]
    assert results[5].gave_up.wrong.tolist() == [False, True, False, False, False]


def test_a_new_game_draws_anew_and_remembers_nothing(played):
    lanes, _, _ = played
    assert (lanes.resigning.would_have == -1).all()
    many = start_lanes(GAME, KEY, 4096, resign_share=0.9).resigning
    assert abs(float(many.allowed.mean()) - 0.9) < 0.03 and (many.would_have == -1).all()


def test_without_it_nothing_is_kept():
    assert resign_share(SelfPlayConfig()) is None
    assert resign_share(SelfPlayConfig(resign_value=-0.8, no_resign_share=0.25)) == 0.75
    assert start_lanes(GAME, KEY, 4).resigning is None
    config = RunConfig(game="tic_tac_toe")
    variables = (jnp.zeros(4, jnp.int32), jnp.full(4, -1.0), jnp.full(4, -1.0))
    lanes, result = play_ply(config, GAME, scripted, variables, KEY, start_lanes(GAME, KEY, 4))
    assert lanes.resigning is None and result.gave_up is None and "resigned" not in count(result)


@pytest.mark.parametrize("value", [-1.1, 0.0, 0.5, float("nan")])
def test_wrong_thresholds_are_refused(value):
    expected = "a finite number" if value != value else "a number from -1"
    with pytest.raises(ValueError, match=re.escape(f"selfplay.resign_value: got {value!r}, expected {expected}")):
        SelfPlayConfig(resign_value=value)


@pytest.mark.slow
def test_a_run_in_which_players_give_up_is_resumed_as_it_was(tmp_path, monkeypatch):
    config = RunConfig(
        game="tic_tac_toe",
        steps=4,
        devices=2,
        network=NetworkConfig(width=16, blocks=0),
        search=SearchConfig(simulations=8, dirichlet_alpha=1.0),
        selfplay=SelfPlayConfig(lanes=32, plies=8, temperature_plies=4, resign_value=-0.1, no_resign_share=0.5),
        replay=ReplayConfig(plies=32),
        learner=LearnerConfig(batch=16, updates=1),
        evaluation=EvaluationConfig(anchors=("random",), games=2, final_games=2, checkpoints=1, simulations=2),
        checkpoint=CheckpointConfig(every=2),
    )
    assert train.train(config, tmp_path / "whole") == 0
    original = train._Trainer._train_step

    def stopping(self, state):
        state, row = original(self, state)
        if row["step"] == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return state, row

    monkeypatch.setattr(train._Trainer, "_train_step", stopping)
    assert train.train(config, tmp_path / "cut") == 143
    monkeypatch.setattr(train._Trainer, "_train_step", original)
    assert train.train(config, tmp_path / "cut") == 0
    logs = [
        [
            {k: row[k] for k in row if k.endswith(("_in_step", "loss"))}
            for row in RunDirectory(path).rows()
            if "loss" in row
        ]
        for path in (tmp_path / "whole", tmp_path / "cut")
    ]
    assert logs[0] == logs[1] and len(logs[0]) == 4
    totals = {name: sum(row[f"{name}_in_step"] for row in logs[0]) for name in ("resigned", "would_resign", "games")}
    assert 0 < totals["resigned"] < totals["games"] and totals["would_resign"] > 0
