"""Random numbers: no key is used twice, no two lanes draw alike; and no choice, however random, is illegal."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.config import (
    LearnerConfig,
    NetworkConfig,
    ReplayConfig,
    RunConfig,
    SearchConfig,
    SelfPlayConfig,
)
from azjax.learner import update
from azjax.replay import draw, start_replay, write
from azjax.search import gumbel_policy, puct_policy, random_action, sample_move
from azjax.selfplay import SearchOutput, play_ply, start_lanes
from azjax.step import Step, make_mesh
from envs.backgammon import GAME as BACKGAMMON
from envs.hex import Hex
from envs.tic_tac_toe import GAME as TIC_TAC_TOE

CONFIG = RunConfig(
    game="tic_tac_toe",
    network=NetworkConfig(width=8, blocks=1, value_width=4),
    search=SearchConfig(simulations=2, dirichlet_alpha=1.0),
    selfplay=SelfPlayConfig(lanes=4, plies=2, opening_plies=2),
    replay=ReplayConfig(plies=16),
    learner=LearnerConfig(batch=4, updates=1, symmetry="training"),
)


class _Tree:
    ROOT_INDEX = 0

    def __init__(self, values):
        self.node_values = values


def stub_policy(game):
    """Search without its loop: mctx's own code uses a key twice, which hides what ours does."""

    def policy(variables, rng_key, states, temperature):
        del variables, temperature
        legal = jax.vmap(game.legal_action_mask)(states)
        weights = legal / jnp.maximum(legal.sum(axis=1, keepdims=True), 1)
        tree = _Tree(jnp.zeros((legal.shape[0], 1)))
        return SearchOutput(random_action(rng_key, legal), weights, legal, None, None, tree)

    return policy


WITH_DICE = dataclasses.replace(BACKGAMMON, max_plies=12)


@pytest.mark.parametrize(
    "game", [TIC_TAC_TOE, pytest.param(WITH_DICE, marks=pytest.mark.slow)], ids=lambda game: game.id
)
def test_no_key_is_used_twice_in_a_ply_and_an_update(game):
    config = dataclasses.replace(CONFIG, replay=ReplayConfig(plies=game.max_plies + 1))
    step = Step(config, game, make_mesh(1))
    learner = step.init(jax.random.key(1)).learner

    @jax.jit
    def two_plies_and_an_update(rng_key, learner):
        lanes_key, first_key, second_key, draw_key, update_key = jax.random.split(rng_key, 5)
        lanes = start_lanes(game, lanes_key, 4, config.selfplay.opening_plies)
        ply = functools.partial(play_ply, config, game, stub_policy(game), learner.variables)
        lanes, result = ply(first_key, lanes)
        replay = write(start_replay(result.position, config.replay.plies, game.max_plies), result)
        _, result = ply(second_key, lanes)
        drawn = draw(write(replay, result), draw_key, 4)
        return update(config, game, 10, learner, drawn, update_key)[0].updates

    with jax.debug_key_reuse(True):
        two_plies_and_an_update(jax.random.key(0), learner)
        with pytest.raises(Exception, match="already consumed"):  # the check sees what it should
            jax.jit(lambda key: jax.random.bits(key) + jax.random.bits(key))(jax.random.key(0))


@pytest.mark.slow
def test_no_two_of_1024_lanes_on_eight_devices_play_alike():
    game = Hex(size=5)
    config = dataclasses.replace(
        CONFIG,
        game="hex,size=5",
        selfplay=SelfPlayConfig(lanes=1024, plies=10, temperature_plies=30),
        replay=ReplayConfig(plies=game.max_plies + 1),
        learner=LearnerConfig(batch=64, updates=0),
    )
    step = Step(config, game, make_mesh(8))
    state, _ = step(step.init(jax.random.key(0)))
    states = jax.device_get(state.replay.positions.state)
    played = np.concatenate([np.asarray(leaf)[:10].reshape(10, 1024, -1) for leaf in jax.tree.leaves(states)], axis=2)
    games = {played[:, lane].tobytes() for lane in range(1024)}
    assert len(games) == 1024


@pytest.mark.slow
def test_of_a_million_random_masks_no_illegal_action_is_chosen():
    """Masks of 1 to 16 of 16 actions, by every way of choosing; a legal action may have no prior at all."""
    number, batch, actions = 1_000_000, 20_000, 16

    def dreamt(params, rng_key, action, embedding):
        del params, action
        shape = (embedding.shape[0],)
        logits_key, value_key = jax.random.split(rng_key)
        return mctx.RecurrentFnOutput(
            reward=jnp.zeros(shape),
            discount=-jnp.ones(shape),
            prior_logits=jax.random.normal(logits_key, (*shape, actions)),
            value=jax.random.uniform(value_key, shape, minval=-1),
        ), embedding

    @jax.jit
    def illegal(rng_key):
        keys = jax.random.split(rng_key, 9)
        few = jax.random.uniform(keys[0], (batch, 1))
        legal = jax.random.uniform(keys[1], (batch, actions)) < few
        sure = jax.nn.one_hot(jax.random.randint(keys[2], (batch,), 0, actions), actions, dtype=bool)
        legal = legal | sure
        # Some priors are so sharp that nothing legal has any.
        logits = 100 * jax.random.normal(keys[3], (batch, actions))
        root = mctx.RootFnOutput(prior_logits=logits, value=jnp.zeros(batch), embedding=jnp.zeros(batch))
        masked = {"invalid_actions": (~legal).astype(jnp.float32)}
        searched = [
            puct_policy((), keys[4], root, dreamt, 3, dirichlet_fraction=0.25, dirichlet_alpha=0.3, **masked),
            gumbel_policy((), keys[5], root, dreamt, 3, **masked),
        ]
        weights = jnp.where(jax.random.uniform(keys[7], (batch, 1)) < 0.1, 0.0, searched[0].action_weights)
        chosen = [output.action for output in searched]
        chosen += [random_action(keys[6], legal), sample_move(keys[8], weights, legal, 1.0)]
        chosen += [sample_move(keys[8], weights, legal, 0.0)]
        of_each = [~jnp.take_along_axis(legal, action[:, None], axis=1).all() for action in chosen]
        weighed = [jnp.any((output.action_weights > 0) & ~legal) for output in searched]
        return jnp.stack(of_each + weighed), jnp.mean(legal)

    root_key = jax.random.key(0)
    shares = []
    for index in range(number // batch):
        wrong, share = illegal(jax.random.fold_in(root_key, index))
        assert not wrong.any(), (index, wrong)
        shares.append(float(share))
    assert 0.4 < np.mean(shares) < 0.7
