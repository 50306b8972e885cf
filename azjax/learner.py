"""The learner: one gradient step on a batch of positions.

loss = (z - v)^2 - pi . log p + c |theta|^2        AlphaZero, equation 1
"""

import functools
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import optax

from azjax.config import LearnerConfig, RunConfig
from azjax.network import apply, value_of
from azjax.replay import Drawn
from azjax.search import mask_logits
from azjax.targets import make_sample, value_target
from azjax.types import Metrics, Sample, Variables
from envs.core import Game, register_state


@register_state
class Learner:
    """What learning changes."""

    variables: Variables
    opt_state: Any
    updates: jax.Array  # int32[], updates applied


def learning_rate(config: LearnerConfig, total_updates: int) -> optax.Schedule:
    """Returns the rate as a function of the updates applied so far."""
    base = config.learning_rate
    if config.schedule == "stepwise":
        main = optax.piecewise_constant_schedule(base, dict.fromkeys(config.boundaries, config.decay))
    elif config.schedule == "cosine":
        main = optax.cosine_decay_schedule(base, max(total_updates - config.warmup, 1), config.final_fraction)
    else:
        main = optax.constant_schedule(base)
    if not config.warmup:
        return main
    return optax.join_schedules([optax.linear_schedule(0.0, base, config.warmup), main], [config.warmup])


def make_optimizer(config: LearnerConfig, total_updates: int) -> optax.GradientTransformation:
    """Returns the optimiser; weight decay of sgd stands in the loss, of adamw here."""
    rate = learning_rate(config, total_updates)
    if config.optimizer == "sgd":
        main = optax.sgd(rate, momentum=config.momentum or None)
    else:
        main = optax.adamw(rate, weight_decay=config.weight_decay)
    return optax.chain(optax.clip_by_global_norm(config.clip), main) if config.clip else main


def policy_loss(policy_logits: jax.Array, policy: jax.Array, legal: jax.Array) -> jax.Array:
    """Computes -pi . log p over legal actions, float32[M]; illegal logits have no influence and no gradient.

    Args:
      policy_logits: float32[M, A].
      policy: float32[M, A], the target pi.
      legal: bool[M, A].
    """
    log_probs = jax.nn.log_softmax(mask_logits(policy_logits, legal))
    return -jnp.sum(jnp.where(legal, policy * log_probs, 0.0), axis=-1)


def value_loss(config: RunConfig, value_logits: jax.Array, target: jax.Array) -> jax.Array:
    """Computes the value head's loss, float32[M].

    expected_outcome: (z - tanh v)^2. win_draw_loss: cross-entropy against the classes (1, 0, -1), a target between two
    of them split linearly. binary: cross-entropy against (1 + z) / 2.

    Args:
      config: which head.
      value_logits: float32[M, V].
      target: float32[M] in [-1, 1], the mover's view.
    """
    head = config.network.value_head
    if head == "win_draw_loss":
        classes = jnp.stack([jnp.maximum(target, 0), 1 - jnp.abs(target), jnp.maximum(-target, 0)], axis=-1)
        return optax.softmax_cross_entropy(value_logits, classes)
    if head == "binary":
        return optax.sigmoid_binary_cross_entropy(value_logits[..., 0], (1 + target) / 2)
    return jnp.square(target - value_of(config.network, value_logits))


def total_loss(
    params: Any, statistics: Any, config: RunConfig, game: Game, sample: Sample, axis_name: str | None
) -> tuple[jax.Array, tuple[Any, Metrics]]:
    """Computes the loss of a batch, a mean over it.

    Returns:
      (loss float32[], (new batch statistics, metrics)).
    """
    variables = {"params": params} | ({"batch_stats": statistics} if statistics else {})
    (policy_logits, value_logits), new_statistics = apply(
        config.network, game, variables, sample.observation, True, axis_name
    )
    learner = config.learner
    target = value_target(learner, sample)
    on_policy = jnp.mean(policy_loss(policy_logits, sample.policy, sample.legal))
    counted = sample.value_mask.astype(jnp.float32)
    on_value = jnp.sum(value_loss(config, value_logits, target) * counted) / jnp.maximum(jnp.sum(counted), 1)
    loss = on_policy + learner.value_weight * on_value
    if learner.optimizer == "sgd":
        loss = loss + learner.weight_decay * optax.tree.norm(params, squared=True)
    value = value_of(config.network, value_logits)
    metrics = {
        "loss": loss,
        "policy_loss": on_policy,
        "value_loss": on_value,
        "target_entropy": jnp.mean(-jnp.sum(jax.scipy.special.xlogy(sample.policy, sample.policy), axis=-1)),
        "target_legal_mass": jnp.mean(jnp.sum(jnp.where(sample.legal, sample.policy, 0.0), axis=-1)),
        "winner_predicted": jnp.sum((value * sample.outcome > 0) * counted)
        / jnp.maximum(jnp.sum((sample.outcome != 0) * counted), 1),
    }
    return loss, (new_statistics, metrics)


def start_learner(config: RunConfig, variables: Variables, total_updates: int) -> Learner:
    """Returns a learner at update 0."""
    opt_state = make_optimizer(config.learner, total_updates).init(variables["params"])
    return Learner(variables=variables, opt_state=opt_state, updates=jnp.int32(0))


def _mean_over_devices(tree: Any, axis_name: str) -> Any:
    """Averages float32 leaves over the axis in one all-reduce.

    One, because each costs a round trip; and on CPU each waits in a thread of XLA's pool, where several can wait for
    one another for ever.
    """
    flat, unravel = jax.flatten_util.ravel_pytree(tree)
    return unravel(jax.lax.pmean(flat, axis_name))


def all_finite(tree: Any) -> jax.Array:
    """Returns bool[]: no leaf holds NaN or infinity."""
    return jnp.array([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()


def update(
    config: RunConfig,
    game: Game,
    total_updates: int,
    learner: Learner,
    drawn: Drawn,
    rng_key: jax.Array,
    axis_name: str | None = None,
) -> tuple[Learner, Metrics]:
    """Applies one update, unless nothing was ready to learn from or a number would not be finite.

    Both conditions are equal on all devices, because they are computed from averages over them.

    Args:
      config, game, total_updates: constants.
      learner: before.
      drawn: M positions of this device.
      rng_key: draws symmetries, consumed.
      axis_name: mesh axis over which gradients are averaged; None on one device without a mesh.

    Returns:
      The learner afterwards and metrics of this device; `applied` is 1.0 where the update counted.
    """
    symmetry_key = None if config.learner.symmetry == "none" else rng_key
    sample = make_sample(game, drawn.position, drawn.outcome, drawn.has_outcome, symmetry_key)
    variables = learner.variables
    statistics = variables.get("batch_stats", {})
    compute = jax.grad(functools.partial(total_loss), has_aux=True)
    gradients, (new_statistics, metrics) = compute(variables["params"], statistics, config, game, sample, axis_name)
    ready = drawn.ready.astype(jnp.float32)
    if axis_name is not None:
        gradients, new_statistics, ready = _mean_over_devices((gradients, new_statistics, ready), axis_name)
    optimizer = make_optimizer(config.learner, total_updates)
    changes, opt_state = optimizer.update(gradients, learner.opt_state, variables["params"])
    new_variables = dict(variables) | {"params": optax.apply_updates(variables["params"], changes)}
    if new_statistics:
        new_variables["batch_stats"] = new_statistics
    moved = Learner(variables=new_variables, opt_state=opt_state, updates=learner.updates + 1)
    finite = all_finite((gradients, moved))
    applied = (ready == 1) & finite
    kept = jax.tree.map(lambda new, old: jnp.where(applied, new, old), moved, learner)
    metrics |= {
        "applied": applied.astype(jnp.float32),
        "nonfinite_updates": ((ready == 1) & ~finite).astype(jnp.float32),
        "gradient_norm": optax.tree.norm(gradients),
    }
    return kept, metrics
