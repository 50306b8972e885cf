"""A dense network that treats a position and its mirror images alike, by construction.

Group-equivariant layers (Cohen and Welling 2016, "Group Equivariant Convolutional Networks") for a group whose elements
are their own inverses: the flips of a board. With G = 2^k elements it is {0, 1}^k under exclusive or:

    input   units y[g] = relu(W (image of x under g) + b), one copy of W for every element g, c units each
    hidden  y --walsh--> G parts [c] --one matrix each--> G parts --walsh--> + b, relu
    policy  sum over g of the image of V y[g];  value: of the sum of y[g] over g

A layer that commutes with the group is, after its Fourier transform (Walsh-Hadamard here), G small dense layers: 1 / G
of the multiplications of a dense layer over all units, and every parameter learns from all G images at once. Measured
for Crosshair on one CPU core, in us a position: 192 units 2.4, the dense network of 128 units 1.7, of 192 units 3.2.
"""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from azjax.config import NetworkConfig
from azjax.network.symmetry import observation_tables
from envs.core import Game


def walsh(parts: list[jax.Array]) -> list[jax.Array]:
    """Returns the orthonormal Walsh-Hadamard transform over a list of 2^k arrays of one shape; its own inverse."""
    if len(parts) == 1:
        return parts
    scale = 0.5**0.5
    even, odd = walsh(parts[0::2]), walsh(parts[1::2])  # by the lowest bit of the element
    pairs = [((a + b) * scale, (a - b) * scale) for a, b in zip(even, odd, strict=True)]
    return [part for pair in pairs for part in pair]


@functools.lru_cache
def flip_group(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """Returns a group of symmetries that are their own inverses, as large as their order in `game.symmetries` allows.

    Returns:
      (observation int[G, n], policy int[G, A]): element e maps a flattened observation x to x[observation[e]] and the
      policy p to p[policy[e]]; elements e and f, one after the other, are element e ^ f.
    """
    entries = np.arange(np.prod(game.observation_shape), dtype=np.int32)
    group = [(entries, np.arange(game.num_actions, dtype=np.int32))]

    def after(one: tuple[np.ndarray, ...], other: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
        return one[0][other[0]], one[1][other[1]]

    def same(one: tuple[np.ndarray, ...], other: tuple[np.ndarray, ...]) -> bool:
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))

    for symmetry, observation in zip(game.symmetries, observation_tables(game), strict=True):
        found = (observation, np.asarray(symmetry.permutation, np.int32))
        commutes = all(same(after(found, other), after(other, found)) for other in group)
        if same(after(found, found), group[0]) and commutes and not any(same(found, other) for other in group):
            group += [after(found, other) for other in group]
    return np.stack([observation for observation, _ in group]), np.stack([policy for _, policy in group])


class EquivariantMlp(nn.Module):
    """`Mlp` with `width` units over all elements of the group together.

    For each element g: policy(x[observation[g]]) = policy(x)[policy[g]], and the value is the same. A game without
    symmetries has G = 1.
    """

    game: Game
    num_value_logits: int
    config: NetworkConfig

    @nn.compact
    def __call__(self, observation: jax.Array, train: bool) -> tuple[jax.Array, jax.Array]:
        del train
        config, (inputs, actions) = self.config, flip_group(self.game)
        number = len(inputs)
        units = config.width // number
        if units * number != config.width:
            raise ValueError(
                f"network.width: got {config.width}, expected a multiple of {number}, the flips of {self.game.id}"
            )

        def dense(images: list[jax.Array], name: str) -> list[jax.Array]:
            parts = [nn.Dense(units, use_bias=False, name=f"{name}_{k}")(part) for k, part in enumerate(walsh(images))]
            bias = self.param(f"{name}_bias", nn.initializers.zeros, (units,))
            return [image + bias[None] for image in walsh(parts)]

        flat = observation.reshape(observation.shape[0], -1)
        kernel = self.param("input", nn.initializers.lecun_normal(), (flat.shape[1], units))
        bias = self.param("input_bias", nn.initializers.zeros, (units,))
        hidden = [nn.relu(flat @ kernel[index] + bias[None]) for index in inputs]
        for block in range(config.blocks):
            inner = [nn.relu(image) for image in dense(hidden, f"block_{block}_first")]
            change = dense(inner, f"block_{block}_second")
            hidden = [nn.relu(a + b) for a, b in zip(hidden, change, strict=True)]

        spread = nn.initializers.variance_scaling(1 / number, "fan_in", "truncated_normal")  # G kernels add up
        kernel = self.param("policy", spread, (units, self.game.num_actions))
        bias = self.param("policy_bias", nn.initializers.zeros, (self.game.num_actions,))
        images = jnp.concatenate([kernel[:, permutation] for permutation in actions])
        policy_logits = jnp.concatenate(hidden, axis=1) @ images + jnp.mean(bias[actions], axis=0)[None]
        total = sum(hidden[1:], start=hidden[0]) / number**0.5
        value = nn.relu(nn.Dense(config.value_width, name="value_hidden")(total))
        return policy_logits, nn.Dense(self.num_value_logits, name="value")(value)
