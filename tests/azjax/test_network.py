import dataclasses
import functools
import itertools
import re

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import network
from azjax.config import NetworkConfig
from azjax.network.equivariant import flip_group, walsh
from envs.black_hole import GAME as BLACK_HOLE
from envs.connect_four import GAME as CONNECT_FOUR
from envs.core import Symmetry
from envs.crosshair import GAME as CROSSHAIR
from envs.crosshair import Crosshair, CrosshairState
from envs.random_games import random_games
from envs.tic_tac_toe import GAME as TIC_TAC_TOE
from envs.tic_tac_toe import TicTacToe

KEY = jax.random.key(0)


def shapes(config, game):
    return jax.eval_shape(functools.partial(network.init, config, game), KEY)


@functools.cache
def openings(game):
    """The first ten turns of eight random games."""
    return list(itertools.islice(random_games(game, jax.random.split(KEY, 8), np.random.default_rng(0)), 10))


def positions(game, plies):
    """States [8] after `plies` random plies."""
    return jax.tree.map(jnp.asarray, openings(game)[plies].state)


def test_crosshairs_mlp_has_the_articles_number_of_parameters():
    assert network.num_parameters(shapes(NetworkConfig(), CROSSHAIR)) == 114_290


@pytest.mark.parametrize(
    ("blocks", "width", "value_width", "head", "count"),
    [
        # Tic-tac-toe: 18 inputs, 9 actions. 18 w + w; 2 (w w + w) a block; 9 w + 9; w v + v; v V + V.
        (0, 16, 4, "expected_outcome", 18 * 16 + 16 + 9 * 16 + 9 + 16 * 4 + 4 + 5),
        (3, 8, 2, "win_draw_loss", 18 * 8 + 8 + 6 * 72 + 81 + 18 + 9),
    ],
)
def test_parameters_of_an_mlp(blocks, width, value_width, head, count):
    config = NetworkConfig(blocks=blocks, width=width, value_width=value_width, value_head=head)
    assert network.num_parameters(shapes(config, TIC_TAC_TOE)) == count


@pytest.mark.parametrize("blocks", [0, 2, 20])
@pytest.mark.parametrize(("game", "planes"), [(CROSSHAIR, False), (CROSSHAIR, True), (CONNECT_FOUR, False)])
def test_parameters_of_a_resnet(game, planes, blocks):
    config = NetworkConfig(kind="resnet", blocks=blocks, channels=24, value_width=10, policy_planes=planes)
    height, width, features = game.observation_shape
    squares, actions, c = height * width, game.num_actions, 24
    norm = lambda channels: 2 * channels  # noqa: E731  scale and bias; convolutions have none
    tower = 9 * features * c + norm(c) + blocks * 2 * (9 * c * c + norm(c))
    policy = 2 * c + norm(2) + 2 * squares * actions + actions
    if planes:
        kinds = actions // squares
        policy = 9 * c * c + norm(c) + c * kinds + kinds
    value = c + norm(1) + squares * 10 + 10 + 10 + 1
    variables = shapes(config, game)
    assert network.num_parameters(variables) == tower + policy + value
    # One running mean and one variance for each channel that is normalised.
    normalised = c * (1 + 2 * blocks) + (c if planes else 2) + 1
    assert sum(leaf.size for leaf in jax.tree.leaves(variables["batch_stats"])) == 2 * normalised


def test_the_papers_resnet_on_a_chess_sized_board():
    @dataclasses.dataclass(frozen=True)
    class Chess(TicTacToe):
        num_actions = 4672
        observation_shape = (8, 8, 119)

    config = NetworkConfig(kind="resnet", blocks=20, channels=256, value_width=256, policy_planes=True)
    variables = shapes(config, Chess())
    kernels = [leaf.shape for leaf in jax.tree.leaves(variables["params"]) if leaf.ndim == 4]
    assert kernels.count((3, 3, 256, 256)) == 41  # 40 in the tower, 1 in the policy head
    assert (3, 3, 119, 256) in kernels and (1, 1, 256, 73) in kernels and (1, 1, 256, 1) in kernels


def test_policy_planes_need_a_plane_for_every_kind_of_move():
    with pytest.raises(ValueError, match=re.escape("network.policy_planes: got 7 actions on 42 squares")):
        shapes(NetworkConfig(kind="resnet", policy_planes=True), CONNECT_FOUR)


def test_an_mlp_computes_what_its_docstring_says():
    config = NetworkConfig(width=8, blocks=2, value_width=4)
    variables = network.init(config, TIC_TAC_TOE, KEY)
    observation = np.random.default_rng(0).standard_normal((5, 3, 3, 2)).astype(np.float32)
    (logits, value), _ = network.apply(config, TIC_TAC_TOE, variables, jnp.asarray(observation), False)
    dense = [jax.tree.map(np.asarray, variables["params"][f"Dense_{i}"]) for i in range(8)]

    def layer(index, x):
        return x @ dense[index]["kernel"] + dense[index]["bias"]

    relu = functools.partial(np.maximum, 0)
    hidden = relu(layer(0, observation.reshape(5, -1)))
    hidden = relu(hidden + layer(2, relu(layer(1, hidden))))
    hidden = relu(hidden + layer(4, relu(layer(3, hidden))))
    np.testing.assert_allclose(logits, layer(5, hidden), atol=1e-5)
    np.testing.assert_allclose(value, layer(7, relu(layer(6, hidden))), atol=1e-5)


@pytest.mark.parametrize(("head", "outputs"), [("expected_outcome", 1), ("win_draw_loss", 3), ("binary", 1)])
def test_shapes_of_the_heads(head, outputs):
    config = NetworkConfig(kind="resnet", blocks=1, channels=4, value_width=4, value_head=head)
    variables = shapes(config, CONNECT_FOUR)
    run = functools.partial(network.apply, config, CONNECT_FOUR)
    (logits, value), statistics = jax.eval_shape(
        lambda v, o: run(v, o, True), variables, jax.ShapeDtypeStruct((6, 6, 7, 2), jnp.float32)
    )
    assert (logits.shape, value.shape) == ((6, 7), (6, outputs))
    assert jax.tree.map(jnp.shape, statistics) == jax.tree.map(jnp.shape, variables["batch_stats"])


def test_batch_norm_learns_from_batches_and_evaluates_by_what_it_learnt():
    config = NetworkConfig(kind="resnet", blocks=0, channels=3, value_width=2)
    variables = jax.jit(functools.partial(network.init, config, TIC_TAC_TOE))(KEY)
    observation = jnp.asarray(np.random.default_rng(0).standard_normal((64, 3, 3, 2)), jnp.float32)
    apply = jax.jit(functools.partial(network.apply, config, TIC_TAC_TOE), static_argnums=2)
    trained, statistics = apply(variables, observation, True)
    first = jax.lax.conv_general_dilated(
        observation,
        variables["params"]["Conv_0"]["kernel"],
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    # Running statistics start at mean 0 and variance 1 and move a tenth of the way.
    moved = statistics["BatchNorm_0"]
    np.testing.assert_allclose(moved["mean"], 0.1 * first.mean((0, 1, 2)), atol=1e-6)
    np.testing.assert_allclose(moved["var"], 0.9 + 0.1 * first.var((0, 1, 2)), atol=1e-5)
    # Not training, a batch neither counts nor changes anything.
    whole, same = apply(variables, observation, False)
    part, _ = apply(variables, observation[:3], False)
    np.testing.assert_allclose(whole[0][:3], part[0], atol=1e-5)
    assert all((a == b).all() for a, b in zip(*map(jax.tree.leaves, (same, variables["batch_stats"])), strict=True))
    assert np.abs(whole[0] - trained[0]).max() > 0.01


def test_value_of_each_head():
    value = functools.partial(network.value_of, NetworkConfig())
    np.testing.assert_allclose(value(jnp.array([[0.0], [0.5], [-20.0]])), [0, 0.46211716, -1], atol=1e-6)
    value = functools.partial(network.value_of, NetworkConfig(value_head="win_draw_loss"))
    np.testing.assert_allclose(value(jnp.log(jnp.array([[0.5, 0.3, 0.2], [0, 0, 1.0]]))), [0.3, -1.0], atol=1e-6)
    value = functools.partial(network.value_of, NetworkConfig(value_head="binary"))
    np.testing.assert_allclose(value(jnp.array([[0.0], [np.log(3)], [-np.log(3)]])), [0, 0.5, -0.5], atol=1e-6)


def test_modules_of_ones_own_are_imported(tmp_path, monkeypatch):
    text = """
import flax.linen as nn

class Net(nn.Module):
    num_actions: int
    num_value_logits: int
    config: object

    @nn.compact
    def __call__(self, observation, train):
        flat = observation.reshape(observation.shape[0], -1)
        return nn.Dense(self.num_actions)(flat), nn.Dense(self.num_value_logits)(flat)
"""
    (tmp_path / "own_network_of_a_test.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    config = NetworkConfig(kind="own_network_of_a_test:Net", value_head="win_draw_loss")
    assert network.num_parameters(shapes(config, TIC_TAC_TOE)) == 19 * 9 + 19 * 3


@pytest.mark.parametrize("kind", ["no_module_of_this_name:Net", "azjax.network:NoClassOfThisName"])
def test_modules_that_cannot_be_imported_are_refused(kind):
    with pytest.raises(ValueError, match=rf"^network.kind: got '{kind}', which cannot be imported: "):
        shapes(NetworkConfig(kind=kind), TIC_TAC_TOE)


# ---- the equivariant network


def randomised(variables):
    """The same variables with every number drawn, the biases too, which start at 0."""
    rng = np.random.default_rng(1)
    return jax.tree.map(lambda leaf: jnp.asarray(rng.standard_normal(leaf.shape) / 4, jnp.float32), variables)


@pytest.mark.parametrize(("game", "flips"), [(CROSSHAIR, 4), (CONNECT_FOUR, 2), (TIC_TAC_TOE, 4), (BLACK_HOLE, 2)])
def test_flips_are_a_group_of_the_games_symmetries(game, flips):
    observation, policy = flip_group(game)
    assert len(observation) == len(policy) == flips
    for one, other in itertools.product(range(flips), repeat=2):
        np.testing.assert_array_equal(observation[one][observation[other]], observation[one ^ other])
        np.testing.assert_array_equal(policy[one][policy[other]], policy[one ^ other])
    known = {np.asarray(symmetry.permutation).tobytes() for symmetry in game.symmetries}
    assert {row.astype(np.int16).tobytes() for row in policy} <= {
        np.frombuffer(entry, np.int16).tobytes() for entry in known
    }
    assert len({row.tobytes() for row in policy}) == flips


@pytest.mark.parametrize("game", [CROSSHAIR, CONNECT_FOUR, TIC_TAC_TOE, BLACK_HOLE])
@pytest.mark.parametrize("blocks", [0, 2])
def test_an_equivariant_network_says_of_an_image_the_image_of_what_it_says(game, blocks):
    config = NetworkConfig(kind="equivariant_mlp", width=16, blocks=blocks, value_width=4, value_head="win_draw_loss")
    variables = randomised(network.init(config, game, KEY))
    apply = jax.jit(lambda x: network.apply(config, game, variables, x, False)[0])
    x = jnp.asarray(np.random.default_rng(0).standard_normal((5, *game.observation_shape)), jnp.float32)
    logits, value = apply(x)
    observation, policy = flip_group(game)
    for entries, actions in zip(observation, policy, strict=True):
        image = x.reshape(5, -1)[:, entries].reshape(x.shape)
        image_logits, image_value = apply(image)
        np.testing.assert_allclose(image_logits, logits[:, actions], atol=1e-5)
        np.testing.assert_allclose(image_value, value, atol=1e-5)
    # And of other arrangements it says something else.
    turned_logits, turned_value = apply(x.reshape(5, -1)[:, ::-1].at[:, 0].set(7.0).reshape(x.shape))
    assert np.abs(turned_logits - logits).max() > 0.1 and np.abs(turned_value - value).max() > 0.01
    assert np.abs(logits[:, 0] - logits[:, 1]).max() > 0.1


def test_parameters_of_an_equivariant_network():
    # 294 inputs, 4 flips, 48 units an element: one copy of the first layer; 4 matrices and a bias a hidden layer.
    hidden = 4 * 48 * 48 + 48
    count = 294 * 48 + 48 + 4 * hidden + 48 * 49 + 49 + 48 * 32 + 32 + 32 + 1
    config = NetworkConfig(kind="equivariant_mlp", width=192)
    assert network.num_parameters(shapes(config, CROSSHAIR)) == count == 55_218


@pytest.mark.slow
def test_an_equivariant_network_starts_as_lively_as_a_dense_one():
    x = jnp.asarray(np.random.default_rng(0).standard_normal((256, 7, 7, 6)), jnp.float32)
    spread = {}
    for kind in ("mlp", "equivariant_mlp"):
        config = NetworkConfig(kind=kind, width=192)
        (logits, _), _ = network.apply(config, CROSSHAIR, network.init(config, CROSSHAIR, KEY), x, False)
        spread[kind] = float(jnp.std(logits))
    assert 0.7 < spread["equivariant_mlp"] / spread["mlp"] < 1.4


def test_a_hidden_layer_commutes_with_the_group_because_walsh_turns_shifts_into_signs():
    parts = [jnp.asarray(np.random.default_rng(k).standard_normal(3), jnp.float32) for k in range(4)]
    matrix = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    np.testing.assert_allclose(np.stack(walsh(parts)), matrix @ np.stack(parts), atol=1e-6)
    np.testing.assert_allclose(np.stack(walsh(walsh(parts))), np.stack(parts), atol=1e-6)


def test_a_width_that_the_flips_do_not_divide_is_refused():
    with pytest.raises(ValueError, match=r"^network.width: got 130, expected a multiple of 4, the flips of crosshair"):
        shapes(NetworkConfig(kind="equivariant_mlp", width=130), CROSSHAIR)


# ---- evaluation in the mover's frame


class EachSquareForItself(nn.Module):
    """Commutes with every permutation of the squares: a logit looks at its own square, the value at all alike."""

    num_actions: int
    num_value_logits: int
    config: NetworkConfig

    @nn.compact
    def __call__(self, observation, train):
        features = observation.reshape(observation.shape[0], self.num_actions, -1)
        hidden = nn.tanh(nn.Dense(8)(features))
        return nn.Dense(1)(hidden)[..., 0], nn.Dense(1)(hidden.mean(1))


OWN = NetworkConfig(kind=f"{__name__}:EachSquareForItself")


@pytest.mark.parametrize(
    ("game", "plies"),
    [(TIC_TAC_TOE, 2), (TIC_TAC_TOE, 3), pytest.param(CROSSHAIR, 6, marks=pytest.mark.slow), (CROSSHAIR, 7)],
)
def test_a_random_symmetry_does_not_change_what_an_equivariant_network_says(game, plies):
    states = positions(game, plies)
    variables = network.init(OWN, game, KEY)

    @jax.jit
    def evaluate(key, states):
        plain = network.evaluate(OWN, game, variables, key, states)
        return plain, network.evaluate(OWN, game, variables, key, states, random_symmetry=True)

    for number in range(4):
        (logits, value), (turned_logits, turned_value) = evaluate(jax.random.key(number), states)
        assert np.asarray(logits).std(-1).min() > 1e-3  # squares are told apart
        np.testing.assert_allclose(turned_logits, logits, atol=1e-5)
        np.testing.assert_allclose(turned_value, value, atol=1e-5)


def test_a_random_symmetry_shows_an_ordinary_network_each_of_them():
    state = TIC_TAC_TOE.init(KEY)
    for move in (0, 1, 5):  # a position without any symmetry of its own
        state = TIC_TAC_TOE.step(state, jnp.int32(move))
    states = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], 256, 0), state)
    config = NetworkConfig(width=8)
    variables = network.init(config, TIC_TAC_TOE, KEY)
    evaluate = jax.jit(functools.partial(network.evaluate, config, TIC_TAC_TOE, random_symmetry=True))
    _, value = evaluate(variables, KEY, states)
    seen, counts = np.unique(np.asarray(value).round(4), return_counts=True)
    assert len(seen) == 8 and counts.min() > 10


def colours_swapped(game: Crosshair, states: CrosshairState) -> CrosshairState:
    """The same position seen by the other player: colours swapped, the board transposed, the other to move."""

    def turn(bits):
        board = game.grid.unpack(bits).reshape(game.size, game.size)
        return game.grid.pack(board.T.reshape(-1))

    def one(state):
        row, column = state.last // game.size, state.last % game.size
        last = jnp.where(state.last < 0, state.last, column * game.size + row)
        return CrosshairState(turn(state.blue), turn(state.red), last, state.ply + 1, state.winner)

    return jax.vmap(one)(states)


@pytest.mark.parametrize("plies", [pytest.param(8, marks=pytest.mark.slow), 9])
def test_crosshair_is_evaluated_in_the_movers_frame(plies):
    states = positions(CROSSHAIR, plies)
    swapped = jax.jit(lambda states: colours_swapped(CROSSHAIR, states))(states)
    config = NetworkConfig(width=32)
    variables = network.init(config, CROSSHAIR, KEY)
    # Blind to the number of plies (the last of the six planes), the one thing that differs.
    kernel = variables["params"]["Dense_0"]["kernel"]
    variables["params"]["Dense_0"]["kernel"] = kernel.at[5::6].set(0)
    evaluate = jax.jit(functools.partial(network.evaluate, config, CROSSHAIR, variables, KEY))
    logits, value = evaluate(states)
    swapped_logits, swapped_value = evaluate(swapped)
    np.testing.assert_allclose(swapped_value, value, atol=1e-5)
    boards = np.asarray(logits).reshape(-1, 7, 7)
    assert np.abs(boards - boards.transpose(0, 2, 1)).max() > 0.01
    np.testing.assert_allclose(np.asarray(swapped_logits).reshape(-1, 7, 7), boards.transpose(0, 2, 1), atol=1e-5)
    # And with the plane in sight the value does change: the check above is not empty.
    variables["params"]["Dense_0"]["kernel"] = kernel
    seeing = jax.jit(functools.partial(network.evaluate, config, CROSSHAIR, variables, KEY))
    assert np.abs(seeing(swapped)[1] - seeing(states)[1]).max() > 1e-4


@pytest.mark.parametrize("game", [TIC_TAC_TOE, CROSSHAIR, CONNECT_FOUR])
def test_every_symmetry_has_one_that_takes_it_back(game):
    number = len(game.symmetries)
    observation = jnp.asarray(np.random.default_rng(0).random((number, *game.observation_shape)), jnp.float32)
    there = jnp.repeat(jnp.arange(number), number)
    back = jnp.tile(jnp.arange(number), number)
    repeated = jnp.repeat(observation, number, 0)
    moved, first = network.transform(game, repeated, there)
    returned, second = network.transform(game, moved, back)
    is_same = np.isclose(returned, repeated).all((1, 2, 3)).reshape(number, number)
    assert (is_same.sum(1) == 1).all() and is_same[0, 0]
    # policy -> policy[first] -> policy[first][second] is the policy again for those pairs, and only for those.
    both = jnp.take_along_axis(first, second, axis=1)
    identity = (np.asarray(both) == np.arange(game.num_actions)).all(-1).reshape(number, number)
    np.testing.assert_array_equal(identity, is_same)


def test_symmetries_that_do_not_permute_are_refused():
    @dataclasses.dataclass(frozen=True)
    class Wrong(TicTacToe):
        @property
        def symmetries(self):
            squares = np.arange(9, dtype=np.int16)
            return (Symmetry(lambda x: x, squares), Symmetry(lambda x: x * 0, squares))

    with pytest.raises(ValueError, match="symmetries: number 1 of tic_tac_toe does not permute"):
        network.transform(Wrong(), jnp.zeros((2, 3, 3, 2)), jnp.array([0, 1]))
