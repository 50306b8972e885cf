"""The paper's convolutional network."""

import functools

import flax.linen as nn
import jax

from azjax.config import NetworkConfig


class ResNet(nn.Module):
    """The paper's residual network: conv 3x3, batch norm, ReLU; blocks of two with a skip; two heads.

    Source: AlphaZero, Methods: Representation, with AlphaGo Zero's heads: policy conv 1x1 to 2 planes (or conv 3x3 and
    one plane per kind of move), value conv 1x1 to 1 plane and a hidden dense layer; all before the outputs with batch
    norm and ReLU. Convolutions have no bias: batch norm has one.
    """

    num_actions: int
    num_value_logits: int
    config: NetworkConfig
    axis_name: str | None

    @nn.compact
    def __call__(self, observation: jax.Array, train: bool) -> tuple[jax.Array, jax.Array]:
        config = self.config
        height, width = observation.shape[1:3]
        norm = functools.partial(
            nn.BatchNorm,
            use_running_average=not train,
            momentum=0.9,
            axis_name=self.axis_name if config.sync_statistics and train else None,
        )

        def conv(x: jax.Array, channels: int, size: int) -> jax.Array:
            return norm()(nn.Conv(channels, (size, size), use_bias=False)(x))

        hidden = nn.relu(conv(observation, config.channels, 3))
        for _ in range(config.blocks):
            inner = nn.relu(conv(hidden, config.channels, 3))
            hidden = nn.relu(hidden + conv(inner, config.channels, 3))
        if config.policy_planes:
            planes, rest = divmod(self.num_actions, height * width)
            if rest:
                raise ValueError(
                    f"network.policy_planes: got {self.num_actions} actions on {height * width} squares, "
                    "expected a multiple (set network.policy_planes to False)"
                )
            tower = nn.relu(conv(hidden, config.channels, 3))
            policy_logits = nn.Conv(planes, (1, 1))(tower).reshape(observation.shape[0], -1)
        else:
            tower = nn.relu(conv(hidden, 2, 1)).reshape(observation.shape[0], -1)
            policy_logits = nn.Dense(self.num_actions)(tower)
        value = nn.relu(conv(hidden, 1, 1)).reshape(observation.shape[0], -1)
        value = nn.relu(nn.Dense(config.value_width)(value))
        return policy_logits, nn.Dense(self.num_value_logits)(value)
