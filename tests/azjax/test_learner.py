"""Losses, schedules and updates by numbers worked out by hand."""

import dataclasses
import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, PartitionSpec

from azjax import network
from azjax.config import LearnerConfig, NetworkConfig, RunConfig
from azjax.learner import learning_rate, policy_loss, start_learner, total_loss, update, value_loss
from azjax.replay import Drawn
from azjax.types import Position, Sample
from envs.tic_tac_toe import GAME as TIC_TAC_TOE

KEY = jax.random.key(0)


class Constant(nn.Module):
    """Says the same of every position: its parameters are the logits."""

    num_actions: int
    num_value_logits: int
    config: NetworkConfig

    @nn.compact
    def __call__(self, observation, train):
        logits = self.param("logits", nn.initializers.zeros, (self.num_actions,))
        value = self.param("value", nn.initializers.zeros, (self.num_value_logits,))
        size = observation.shape[0]
        return jnp.broadcast_to(logits, (size, self.num_actions)), jnp.broadcast_to(value, (size, value.size))


def config_of(head="expected_outcome", **learner: Any) -> RunConfig:
    fields = {"symmetry": "none", "schedule": "constant", "learning_rate": 0.1, "weight_decay": 0.0} | learner
    kind = NetworkConfig(kind=f"{__name__}:Constant", value_head=head)
    return RunConfig(game="g", network=kind, learner=LearnerConfig(**fields))


def sample_of(policy, legal, outcome, value_mask=None) -> Sample:
    size = len(outcome)
    return Sample(
        observation=jnp.zeros((size, 1, 1, 1)),
        policy=jnp.array(policy, jnp.float32),
        legal=jnp.array(legal),
        outcome=jnp.array(outcome, jnp.float32),
        root_value=jnp.zeros(size),
        value_mask=jnp.ones(size, bool) if value_mask is None else jnp.array(value_mask),
    )


# ---- losses


def test_policy_loss():
    # p = (1/4, 3/4) over the legal two: -(.25 ln .25 + .75 ln .75) = 0.562335; (1, 0) against the same: ln 4.
    logits = jnp.array([[0.0, np.log(3), 7.0], [0.0, np.log(3), 7.0]])
    legal = jnp.array([[True, True, False]] * 2)
    loss = policy_loss(logits, jnp.array([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]]), legal)
    np.testing.assert_allclose(loss, [0.5623351, 1.3862944], atol=1e-6)


def test_illegal_logits_change_neither_loss_nor_gradient_and_have_none():
    rng = np.random.default_rng(0)
    logits = jnp.asarray(rng.standard_normal((6, 9)), jnp.float32)
    legal = jnp.asarray(rng.random((6, 9)) < 0.6).at[:, 0].set(True)
    policy = jnp.asarray(rng.random((6, 9)), jnp.float32) * legal
    policy = policy / policy.sum(-1, keepdims=True)

    @jax.jit
    def both(logits):
        return jax.value_and_grad(lambda x: policy_loss(x, policy, legal).sum())(logits)

    loss, gradient = both(logits)
    for raised in (10.0, 1e4, -1e4):
        other_loss, other_gradient = both(jnp.where(legal, logits, logits + raised))
        assert other_loss == loss
        np.testing.assert_array_equal(other_gradient, gradient)
        assert (np.asarray(other_gradient)[~np.asarray(legal)] == 0.0).all()
    masked = np.where(legal, logits, -np.inf)
    probs = np.exp(masked) / np.exp(masked).sum(-1, keepdims=True)
    np.testing.assert_allclose(gradient, probs - policy, atol=1e-6)


@pytest.mark.parametrize(
    ("head", "logits", "target", "loss"),
    [
        ("expected_outcome", [0.5], 1.0, 0.2893179),  # (1 - 0.4621172)^2
        ("expected_outcome", [0.5], -1.0, 2.1377866),
        ("expected_outcome", [0.0], 0.0, 0.0),
        # p = (.5, .3, .2) for win, draw, loss
        ("win_draw_loss", np.log([0.5, 0.3, 0.2]), 1.0, 0.6931472),
        ("win_draw_loss", np.log([0.5, 0.3, 0.2]), 0.0, 1.2039728),
        ("win_draw_loss", np.log([0.5, 0.3, 0.2]), -1.0, 1.6094379),
        ("win_draw_loss", np.log([0.5, 0.3, 0.2]), 0.25, 1.0762664),  # .25 * .6931472 + .75 * 1.2039728
        ("win_draw_loss", np.log([0.5, 0.3, 0.2]), -0.5, 1.4067054),
        # p = 3/4: -ln 3/4, -ln 1/4, their mean for a draw
        ("binary", [np.log(3)], 1.0, 0.2876821),
        ("binary", [np.log(3)], -1.0, 1.3862944),
        ("binary", [np.log(3)], 0.0, 0.8369882),
    ],
)
def test_value_loss(head, logits, target, loss):
    result = value_loss(config_of(head), jnp.array([logits], jnp.float32), jnp.array([target], jnp.float32))
    np.testing.assert_allclose(result, [loss], atol=1e-6)


def test_a_draw_is_no_loss():
    """z = 0 pulls every head to 0, not to -1."""
    for head, at_zero in (("expected_outcome", [0.0]), ("win_draw_loss", [0.0, 20.0, 0.0]), ("binary", [0.0])):
        logits = jnp.array([at_zero])
        gradient = jax.grad(lambda x, head=head: value_loss(config_of(head), x, jnp.zeros(1)).sum())(logits)
        np.testing.assert_allclose(gradient, np.zeros_like(logits), atol=1e-6)
        np.testing.assert_allclose(network.value_of(config_of(head).network, logits), [0], atol=1e-6)


PARAMS = {"logits": jnp.array([0.0, np.log(3), 5.0]), "value": jnp.array([0.5])}


@dataclasses.dataclass(frozen=True)
class ThreeActions:
    """All that a network of one's own needs of a game."""

    num_actions: int = 3


def loss_and_gradient(config, sample):
    compute = jax.jit(jax.value_and_grad(total_loss, has_aux=True), static_argnums=(2, 3, 5))
    (loss, (_, metrics)), gradient = compute(PARAMS, {}, config, ThreeActions(), sample, None)
    return loss, gradient, metrics


def test_the_papers_loss():
    sample = sample_of([[0.25, 0.75, 0.0]], [[True, True, False]], [1.0])
    config = config_of(optimizer="sgd", weight_decay=0.01)
    loss, gradient, metrics = loss_and_gradient(config, sample)
    # .5623351 + .2893179 + .01 * (0 + ln(3)^2 + 25 + .25)
    np.testing.assert_allclose(loss, 0.5623351 + 0.2893179 + 0.2645695, atol=1e-6)
    np.testing.assert_allclose([metrics["policy_loss"], metrics["value_loss"]], [0.5623351, 0.2893179], atol=1e-6)
    # The policy is right already, so that only 2 c theta is left: for the illegal logit too, exactly.
    np.testing.assert_allclose(gradient["logits"], [0.0, 0.0219722, 0.1], atol=1e-6)
    # -2 (z - v) (1 - v^2) = -2 * .5378828 * .7864477 = -.8460333, + .01
    np.testing.assert_allclose(gradient["value"], [-0.8360333], atol=1e-6)


def test_adamw_keeps_weight_decay_out_of_the_loss():
    sample = sample_of([[0.25, 0.75, 0.0]], [[True, True, False]], [1.0])
    loss, gradient, _ = loss_and_gradient(config_of(optimizer="adamw", weight_decay=0.01), sample)
    np.testing.assert_allclose(loss, 0.5623351 + 0.2893179, atol=1e-6)
    assert gradient["logits"][2] == 0.0


def test_value_weight_and_outcome_weight():
    sample = sample_of([[0.25, 0.75, 0.0]], [[True, True, False]], [1.0])
    sample = dataclasses.replace(sample, root_value=jnp.array([-1.0]))
    # Target .25 * 1 + .75 * -1 = -.5: (.5 + .4621172)^2 = .9256694.
    config = config_of(optimizer="sgd", value_weight=2.0, outcome_weight=0.25)
    loss, _, metrics = loss_and_gradient(config, sample)
    np.testing.assert_allclose(loss, 0.5623351 + 2 * 0.9256694, atol=1e-6)
    np.testing.assert_allclose(metrics["value_loss"], 0.9256694, atol=1e-6)


def test_a_game_that_was_cut_off_teaches_policy_alone():
    legal = [[True, True, False]] * 2
    both = sample_of([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]], legal, [1.0, 0.0], value_mask=[True, False])
    config = config_of(optimizer="sgd")
    loss, gradient, metrics = loss_and_gradient(config, both)
    # The policy loss is a mean over both, the value loss over the one that has an outcome.
    np.testing.assert_allclose(loss, (0.5623351 + 1.3862944) / 2 + 0.2893179, atol=1e-6)
    np.testing.assert_allclose(gradient["value"], [-0.8460333], atol=1e-6)
    assert metrics["winner_predicted"] == 1.0
    neither = dataclasses.replace(both, value_mask=jnp.array([False, False]))
    loss, gradient, metrics = loss_and_gradient(config, neither)
    np.testing.assert_allclose(loss, (0.5623351 + 1.3862944) / 2, atol=1e-6)
    assert gradient["value"][0] == 0.0 and metrics["value_loss"] == 0.0


def test_metrics_of_the_labels():
    legal = [[True, True, False]] * 4
    policy = [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]]
    sample = sample_of(policy, legal, [1.0, -1.0, 0.0, 1.0], [True, True, True, False])
    _, _, metrics = loss_and_gradient(config_of(), sample)
    # Entropies ln 2, 0, 1.5 ln 2, 0. Half of the third target is on an illegal action. Of the two decided games that
    # count, the value (+.46) foretells one.
    np.testing.assert_allclose(metrics["target_entropy"], 2.5 * np.log(2) / 4, atol=1e-6)
    np.testing.assert_allclose(metrics["target_legal_mass"], 3.5 / 4, atol=1e-6)
    np.testing.assert_allclose(metrics["winner_predicted"], 0.5)


# ---- schedules


def rates(total, at, **learner):
    schedule = learning_rate(config_of(**learner).learner, total)
    return [float(schedule(count)) for count in at]


def test_stepwise_schedule_of_the_paper():
    steps = (99_999, 100_000, 299_999, 300_000, 500_000, 699_999)
    got = rates(700_000, steps, schedule="stepwise", learning_rate=0.2, boundaries=(100_000, 300_000, 500_000))
    np.testing.assert_allclose(got, [0.2, 0.02, 0.02, 0.002, 0.0002, 0.0002], rtol=1e-5)


def test_cosine_schedule():
    got = rates(100, (0, 25, 50, 100, 300), schedule="cosine", final_fraction=0.01)
    # .1 (.99 (1 + cos(pi t / 100)) / 2 + .01); cos(pi / 4) = .7071068
    np.testing.assert_allclose(got, [0.1, 0.0855018, 0.0505, 0.001, 0.001], rtol=1e-5)


def test_warm_up():
    got = rates(110, (0, 5, 10, 60, 110), schedule="cosine", warmup=10, final_fraction=0.01)
    np.testing.assert_allclose(got, [0.0, 0.05, 0.1, 0.0505, 0.001], rtol=1e-5)
    np.testing.assert_allclose(rates(110, (0, 4, 8, 200), warmup=8), [0, 0.05, 0.1, 0.1], rtol=1e-6)


# ---- updates, on a toy game whose positions teach z = 1 and a uniform policy


def drawn_of(game, outcome=(1.0, 1.0), ready=True, has_outcome=True, weight=1.0) -> Drawn:
    size = len(outcome)
    legal = np.ones((size, game.num_actions), np.float16)
    return Drawn(
        position=Position(
            state=jax.vmap(game.init)(jax.random.split(KEY, size)),
            search_weights=jnp.asarray(weight * legal / game.num_actions, jnp.float16),
            root_value=jnp.zeros(size),
            mover=jnp.zeros(size, jnp.int8),
        ),
        outcome=jnp.array(outcome, jnp.float32),
        has_outcome=jnp.full(size, has_outcome),
        ready=jnp.asarray(ready),
    )


def learner_of(config, game, total_updates=100):
    variables = network.init(config.network, game, KEY)
    step = jax.jit(functools.partial(update, config, game, total_updates))
    return start_learner(config, variables, total_updates), lambda learner, drawn: step(learner, drawn, KEY)


def value_of(learner) -> float:
    return float(learner.variables["params"]["value"][0])


def test_two_updates_of_sgd_with_momentum(every_move_loses):
    learner, step = learner_of(config_of(optimizer="sgd", momentum=0.9), every_move_loses)
    learner, metrics = step(learner, drawn_of(every_move_loses))
    # g0 = -2 (1 - 0) (1 - 0) = -2: theta = .2
    np.testing.assert_allclose(value_of(learner), 0.2, rtol=1e-6)
    np.testing.assert_allclose(metrics["gradient_norm"], 2.0, rtol=1e-6)
    learner, _ = step(learner, drawn_of(every_move_loses))
    # tanh .2 = .1973753; g1 = -2 * .8026247 * .9610430 = -1.5427137; theta += .1 (.9 * 2 + 1.5427137)
    np.testing.assert_allclose(value_of(learner), 0.5342714, rtol=1e-6)
    np.testing.assert_allclose(learner.variables["params"]["logits"], np.zeros(3), atol=1e-6)
    assert learner.updates == 2


def test_the_first_update_of_adamw(every_move_loses):
    config = config_of(optimizer="adamw", weight_decay=0.2)
    learner, step = learner_of(config, every_move_loses)
    params = {"logits": jnp.zeros(3), "value": jnp.array([0.5])}
    learner = dataclasses.replace(learner, variables={"params": params})
    learner, _ = step(learner, drawn_of(every_move_loses))
    # The first step is the rate, whatever the gradient; decay takes .1 * .2 * .5 away: .5 + .1 - .01.
    np.testing.assert_allclose(value_of(learner), 0.59, rtol=1e-5)


def test_gradients_are_clipped_to_their_norm(every_move_loses):
    learner, step = learner_of(config_of(optimizer="sgd", momentum=0.0, clip=0.5), every_move_loses)
    learner, metrics = step(learner, drawn_of(every_move_loses))
    np.testing.assert_allclose(value_of(learner), 0.05, rtol=1e-5)
    np.testing.assert_allclose(metrics["gradient_norm"], 2.0, rtol=1e-6)


def assert_same(one, other):
    for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("bad", ["outcome", "target", "parameters"])
def test_an_update_that_is_not_finite_is_skipped_and_counted(every_move_loses, optimizer, bad):
    learner, step = learner_of(config_of(optimizer=optimizer), every_move_loses)
    learner, _ = step(learner, drawn_of(every_move_loses))
    good, drawn = learner, drawn_of(every_move_loses)
    if bad == "outcome":
        drawn = dataclasses.replace(drawn, outcome=jnp.array([1.0, np.nan]))
    elif bad == "target":
        drawn = drawn_of(every_move_loses, weight=np.nan)
    else:
        params = {"logits": jnp.zeros(3), "value": jnp.array([np.nan])}
        learner = dataclasses.replace(learner, variables={"params": params})
    after, metrics = step(learner, drawn)
    assert_same(after, learner)
    assert (metrics["applied"], metrics["nonfinite_updates"]) == (0, 1)
    after, metrics = step(good, drawn_of(every_move_loses))
    assert (metrics["applied"], metrics["nonfinite_updates"]) == (1, 0)
    assert after.updates == 2 and np.isfinite(value_of(after))


def test_a_finite_gradient_whose_square_is_not_does_not_spoil_adam(every_move_loses):
    """2e20 squared is infinite in float32, and the second moment would stay so for ever."""
    learner, step = learner_of(config_of(optimizer="adamw", value_weight=1e20), every_move_loses)
    after, metrics = step(learner, drawn_of(every_move_loses))
    assert_same(after, learner)
    assert (metrics["applied"], metrics["nonfinite_updates"]) == (0, 1)


def test_nothing_is_learnt_before_a_game_is_finished(every_move_loses):
    learner, step = learner_of(config_of(optimizer="sgd"), every_move_loses)
    after, metrics = step(learner, drawn_of(every_move_loses, ready=False))
    assert_same(after, learner)
    assert (metrics["applied"], metrics["nonfinite_updates"]) == (0, 0)


def test_schedules_count_the_updates_that_were_applied(every_move_loses):
    config = config_of(optimizer="sgd", momentum=0.0, schedule="stepwise", boundaries=(1,))
    learner, step = learner_of(config, every_move_loses)
    for _ in range(3):
        learner, _ = step(learner, drawn_of(every_move_loses, ready=False))
        learner, _ = step(learner, drawn_of(every_move_loses, outcome=(np.nan, 1.0)))
    assert learner.updates == 0
    learner, _ = step(learner, drawn_of(every_move_loses))
    np.testing.assert_allclose(value_of(learner), 0.2, rtol=1e-6)  # still the first rate
    learner, _ = step(learner, drawn_of(every_move_loses))
    np.testing.assert_allclose(value_of(learner), 0.2 + 0.01 * 1.5427137, rtol=1e-6)
    assert learner.updates == 2


# ---- devices


def tic_tac_toe_batch(size=64) -> Drawn:
    """Positions after none to four marks, with targets and outcomes of every kind."""
    rng = np.random.default_rng(0)

    def after(moves):
        state = TIC_TAC_TOE.init(KEY)
        for number in range(4):
            moved = TIC_TAC_TOE.step(state, moves[number])
            state = jax.tree.map(lambda new, old, n=number: jnp.where(n < moves[4], new, old), moved, state)
        return state

    moves = np.stack([np.append(rng.permutation(9)[:4], rng.integers(0, 5)) for _ in range(size)])
    states = jax.jit(jax.vmap(after))(jnp.asarray(moves))
    weights = rng.random((size, 9)) * np.asarray(jax.vmap(TIC_TAC_TOE.legal_action_mask)(states))
    return Drawn(
        position=Position(
            state=states,
            search_weights=jnp.asarray(weights / weights.sum(-1, keepdims=True), jnp.float16),
            root_value=jnp.asarray(rng.uniform(-1, 1, size), jnp.float32),
            mover=jnp.asarray(moves[:, 4] % 2, jnp.int8),
        ),
        outcome=jnp.asarray(rng.integers(-1, 2, size), jnp.float32),
        has_outcome=jnp.ones(size, bool),
        ready=jnp.array(True),
    )


def on_devices(config, number, drawn, learner):
    """One update with the batch spread over devices."""
    mesh = Mesh(np.array(jax.devices()[:number]), ("data",), axis_types=(AxisType.Auto,))
    equal, spread = PartitionSpec(), PartitionSpec("data")
    specs = Drawn(position=spread, outcome=spread, has_outcome=spread, ready=equal)

    def one(learner, drawn):
        return update(config, TIC_TAC_TOE, 100, learner, drawn, KEY, "data")[0]

    mapped = jax.shard_map(one, mesh=mesh, in_specs=(equal, specs), out_specs=equal, check_vma=False)
    return jax.jit(mapped)(learner, drawn)


def small(kind, **fields) -> RunConfig:
    sizes = {"width": 16, "blocks": 1, "channels": 8, "value_width": 8}
    return RunConfig(
        game="tic_tac_toe",
        network=NetworkConfig(kind=kind, **(sizes | fields)),
        learner=LearnerConfig(optimizer="sgd", learning_rate=0.1, symmetry="none"),
    )


def assert_close(one, other, atol):
    for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


def test_two_devices_learn_what_one_does():
    config, drawn = small("mlp"), tic_tac_toe_batch()
    variables = network.init(config.network, TIC_TAC_TOE, KEY)
    learner = start_learner(config, variables, 100)
    alone, _ = jax.jit(functools.partial(update, config, TIC_TAC_TOE, 100))(learner, drawn, KEY)
    moved = max(np.abs(a - b).max() for a, b in zip(*map(jax.tree.leaves, (alone, learner)), strict=True))
    assert moved > 0.01
    assert_close(on_devices(config, 2, drawn, learner), alone, 1e-6)


@pytest.mark.slow
def test_a_resnet_learns_the_mean_over_devices_or_with_synchronised_statistics_what_one_device_does():
    drawn = tic_tac_toe_batch()
    halves = [jax.tree.map(lambda leaf, i=i: leaf[32 * i : 32 * i + 32] if leaf.ndim else leaf, drawn) for i in (0, 1)]
    for synchronised in (True, False):
        config = small("resnet", sync_statistics=synchronised)
        variables = network.init(config.network, TIC_TAC_TOE, KEY)
        learner = start_learner(config, variables, 100)
        step = jax.jit(functools.partial(update, config, TIC_TAC_TOE, 100))
        two = on_devices(config, 2, drawn, learner)
        if synchronised:
            assert_close(two.variables, step(learner, drawn, KEY)[0].variables, 1e-5)
        else:
            parts = [step(learner, half, KEY)[0].variables for half in halves]
            mean = jax.tree.map(lambda a, b: (a + b) / 2, *parts)
            assert_close(two.variables, mean, 1e-5)
            difference = jax.tree.map(
                lambda a, b: jnp.abs(a - b).max(), two.variables, step(learner, drawn, KEY)[0].variables
            )
            assert max(jax.tree.leaves(difference)) > 1e-4
