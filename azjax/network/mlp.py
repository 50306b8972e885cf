"""A dense network with residual blocks."""

import flax.linen as nn
import jax

from azjax.config import NetworkConfig


class Mlp(nn.Module):
    """Dense network with residual blocks: for Crosshair's 294 inputs 114,290 parameters, as in its author's article.

    h = relu(W x + b); block: h = relu(h + W2 relu(W1 h + b1) + b2); policy W h + b; value W relu(W h + b) + b. The
    observation is flattened row by row: against plane by plane that is a permutation of the first layer's rows.
    """

    num_actions: int
    num_value_logits: int
    config: NetworkConfig

    @nn.compact
    def __call__(self, observation: jax.Array, train: bool) -> tuple[jax.Array, jax.Array]:
        del train
        config = self.config
        hidden = nn.relu(nn.Dense(config.width)(observation.reshape(observation.shape[0], -1)))
        for _ in range(config.blocks):
            inner = nn.relu(nn.Dense(config.width)(hidden))
            hidden = nn.relu(hidden + nn.Dense(config.width)(inner))
        policy_logits = nn.Dense(self.num_actions)(hidden)
        value = nn.relu(nn.Dense(config.value_width)(hidden))
        return policy_logits, nn.Dense(self.num_value_logits)(value)
