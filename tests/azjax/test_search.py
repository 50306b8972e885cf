"""Search against mctx's, and what it does differently on purpose."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.search import dirichlet_noise, game_model, gumbel_policy, is_illegal, mask_logits, puct_policy, search
from envs.tic_tac_toe import GAME as TIC_TAC_TOE

EXACT = ("node_visits", "parents", "action_from_parent", "children_index", "children_visits")
CLOSE = ("raw_values", "node_values", "children_values", "children_rewards", "children_discounts")
ROOT = mctx.Tree.ROOT_INDEX


class Place(NamedTuple):
    """A position of a Dream."""

    points: jax.Array  # float32[B, 16]
    path: jax.Array  # uint32[B], a number that tells by which actions it was reached


class Dream:
    """A game without rules: positions are points, priors and values smooth functions of them."""

    def __init__(self, num_actions: int, illegal_share: float = 0.0, illegal_logit: float | None = None):
        keys = jax.random.split(jax.random.key(num_actions), 3)
        self.num_actions = num_actions
        self.policy = jax.random.normal(keys[0], (16, num_actions))
        self.value = jax.random.normal(keys[1], (16,))
        self.moves = jax.random.normal(keys[2], (num_actions, 16))
        self.illegal_share, self.illegal_logit = illegal_share, illegal_logit

    def legal(self, path):
        """bool[..., A], at random; from whole numbers alone, so that every program computes the same."""
        actions = jnp.arange(1, self.num_actions + 1, dtype=jnp.uint32).reshape(*(1,) * path.ndim, -1)
        mixed = (path[..., None] + actions) * jnp.uint32(2654435761)
        mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(0x85EBCA6B)
        return (mixed >> 16) >= int(self.illegal_share * 2**16)

    def evaluate(self, place):
        logits, value = place.points @ self.policy, jnp.tanh(place.points @ self.value)
        if not self.illegal_share:
            return logits, value
        legal = self.legal(place.path)
        if self.illegal_logit is not None:
            logits = jnp.where(legal, logits, self.illegal_logit)
        return mask_logits(logits, legal), value

    def root(self, batch_size: int, seed: int = 1) -> mctx.RootFnOutput:
        points = jax.random.normal(jax.random.key(seed), (batch_size, 16))
        place = Place(points, jnp.arange(batch_size, dtype=jnp.uint32) * jnp.uint32(1000))
        logits, value = self.evaluate(place)
        return mctx.RootFnOutput(prior_logits=logits, value=value, embedding=place)

    def recurrent(self, params, rng_key, action, place):
        path = (place.path + action.astype(jnp.uint32) + 1) * jnp.uint32(1664525)
        place = Place(jnp.sin(place.points * 1.7 + self.moves[action]), path)
        logits, value = self.evaluate(place)
        output = mctx.RecurrentFnOutput(
            reward=jnp.zeros_like(value), discount=-jnp.ones_like(value), prior_logits=logits, value=value
        )
        return output, place


def run(policy: Any, dream: Dream, simulations: int, batch_size: int = 16, **kwargs: Any) -> mctx.PolicyOutput:
    """Compiles and runs a policy; `invalid_actions` may be given, all else is constant."""
    root = dream.root(batch_size)
    compiled = jax.jit(lambda key: policy((), key, root, dream.recurrent, simulations, **kwargs))
    return jax.device_get(compiled(jax.random.key(7)))


def assert_same_tree(ours: mctx.Tree, theirs: mctx.Tree) -> None:
    for name in EXACT:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    for name in CLOSE:
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-5, err_msg=name)


def assert_same_gumbel(dream: Dream, simulations: int, **kwargs: Any) -> None:
    ours = run(gumbel_policy, dream, simulations, **kwargs)
    theirs = run(mctx.gumbel_muzero_policy, dream, simulations, **kwargs)
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(ours.action_weights, theirs.action_weights, atol=1e-6)
    one, other = ours.search_tree.summary(), theirs.search_tree.summary()
    np.testing.assert_array_equal(one.visit_counts, other.visit_counts)
    np.testing.assert_allclose(one.qvalues, other.qvalues, atol=1e-5)
    np.testing.assert_allclose(one.value, other.value, atol=1e-5)
    assert_same_tree(ours.search_tree, theirs.search_tree)


def test_gumbels_weights_are_on_valid_actions_where_none_has_a_prior():
    """Every valid logit is the lowest number there is, as a mask's: the invalid ones must still be below them."""
    lowest = jnp.finfo(jnp.float32).min
    dream = Dream(num_actions=7)
    invalid = jnp.zeros((16, 7), jnp.int32).at[:, :4].set(1).at[3].set(1)

    def root(policy: Any) -> mctx.PolicyOutput:
        start = dream.root(16)
        start = start.replace(prior_logits=jnp.where(invalid == 0, lowest, start.prior_logits))
        return jax.device_get(
            jax.jit(lambda key: policy((), key, start, dream.recurrent, 9, invalid_actions=invalid))(jax.random.key(3))
        )

    ours, theirs = root(gumbel_policy), root(mctx.gumbel_muzero_policy)
    np.testing.assert_allclose(ours.action_weights, theirs.action_weights, atol=1e-6)
    playing = np.arange(16) != 3
    assert (
        ours.action[playing].min() >= 4
        and ours.action_weights[playing, :4].max() == 0
        and ours.action_weights[playing, 4:].min() > 0
    )


def test_a_tree_of_more_edges_than_int32_counts_is_refused():
    dream = Dream(num_actions=7)
    for policy in (puct_policy, gumbel_policy):
        with pytest.raises(
            ValueError, match=r"^search: got 99999999 simulations of 16 games side by side with 7 moves"
        ):
            run(policy, dream, 99_999_999)


def assert_same_puct(dream: Dream, simulations: int, **kwargs: Any) -> None:
    policy = functools.partial(puct_policy, dirichlet_fraction=0.0)
    ours = run(policy, dream, simulations, implementation="azjax", **kwargs)
    theirs = run(policy, dream, simulations, implementation="mctx", **kwargs)
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(ours.action_weights, theirs.action_weights, atol=1e-6)
    assert_same_tree(ours.search_tree, theirs.search_tree)


def masks(num_actions: int, batch_size: int = 16) -> jax.Array:
    """float32[B, A], 1 where illegal: nothing in the first four games, at random in the others, never everything."""
    invalid = jax.random.uniform(jax.random.key(5), (batch_size, num_actions)) < 0.4
    return invalid.at[:, 0].set(False).at[:4].set(False).astype(jnp.float32)


def test_gumbel_search_is_mctxs():
    assert_same_gumbel(Dream(9, illegal_share=0.3), 33, invalid_actions=masks(9))


def test_puct_search_grows_mctxs_tree():
    assert_same_puct(Dream(49, illegal_share=0.3), 24, max_depth=2, invalid_actions=masks(49))


@pytest.mark.slow
@pytest.mark.parametrize("max_depth", [None, 3])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("simulations", [8, 33, 64])
@pytest.mark.parametrize("num_actions", [3, 9, 49])
def test_searches_are_mctxs(num_actions, simulations, masked, max_depth):
    invalid = masks(num_actions) if masked else None
    dream = Dream(num_actions, illegal_share=0.3 if masked else 0.0)
    if num_actions == 3:
        dream = Dream(num_actions)  # with three actions too often nothing would be legal inside
    assert_same_gumbel(dream, simulations, max_depth=max_depth, invalid_actions=invalid)
    assert_same_puct(dream, simulations, max_depth=max_depth, invalid_actions=invalid)


@pytest.fixture(scope="module")
def dreamt_tree():
    """A PUCT tree of 24 simulations of Dream(9), without noise."""
    return run(functools.partial(puct_policy, dirichlet_fraction=0.0), Dream(9), 24).search_tree


def test_a_game_is_searched_as_if_it_were_alone(dreamt_tree):
    dream = Dream(9)
    policy = functools.partial(puct_policy, dirichlet_fraction=0.0)
    root = jax.tree.map(lambda leaf: leaf[11:12], dream.root(16))
    alone = jax.jit(lambda key: policy((), key, root, dream.recurrent, 24))(jax.random.key(7)).search_tree
    assert_same_tree(alone, jax.tree.map(lambda leaf: leaf[11:12], dreamt_tree))


def test_no_simulation_is_refused():
    dream = Dream(3)
    with pytest.raises(ValueError, match="num_simulations: got 0, expected at least 1"):
        run(puct_policy, dream, 0)


# ---- games with an end


def state_after(game: Any, *moves: int) -> Any:
    state = game.init(jax.random.key(0))
    for move in moves:
        state = game.step(state, jnp.int32(move))
    return state


def batch_of(states: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def flat_evaluation(value: float, num_actions: int) -> Any:
    """The same value, for whoever is to move, and a uniform prior."""

    def evaluate(params, rng_key, states):
        size = jax.tree.leaves(states)[0].shape[0]
        return jnp.zeros((size, num_actions)), jnp.full((size,), value, jnp.float32)

    return evaluate


def search_game(game: Any, states: Any, policy: Any, simulations: int, value: float = 0.0, **kwargs: Any):
    model = game_model(game, flat_evaluation(value, game.num_actions))

    def run_once(key):
        return policy((), key, model.root((), key, states), model.recurrent, simulations, **kwargs)

    return jax.device_get(jax.jit(run_once)(jax.random.key(3)))


# X to move; X wins in one at the squares named; nine minus moves are legal.
#   X X .   X X O   X O .   X O X   X . .
#   O O .   . O .   O X .   . X O   O X O
#   . . .   . . X   . . .   O . .   . . .
WINS = {(0, 3, 1, 4): {2}, (0, 2, 1, 4, 8, 6): set(), (0, 1, 4, 3): {8}, (0, 1, 2, 5, 4, 6): {8}, (0, 3, 4, 5): {8}}


@pytest.fixture(scope="module")
def won_positions():
    """Positions [4] with a win in one for the mover, the winning move and the number of legal moves of each."""
    moves = [moves for moves, wins in WINS.items() if wins]
    states = batch_of([state_after(TIC_TAC_TOE, *one) for one in moves])
    return states, np.array([max(WINS[one]) for one in moves]), np.array([9 - len(one) for one in moves])


@pytest.fixture(scope="module")
def won_trees(won_positions):
    """PUCT trees after 10 simulations (twice the five legal moves at most) of a value head that says +1 everywhere."""
    policy = functools.partial(puct_policy, dirichlet_fraction=0.0)
    return search_game(TIC_TAC_TOE, won_positions[0], policy, 10, value=1.0)


def test_a_win_in_one_is_found_within_two_simulations_a_legal_move(won_positions, won_trees):
    _, winning, legal = won_positions
    assert (2 * legal <= 10).all()
    games = np.arange(len(winning))
    qvalues = np.asarray(won_trees.search_tree.summary().qvalues)
    assert (qvalues[games, winning] == 1.0).all()
    others = (np.arange(9)[None] != winning[:, None]) & (won_trees.search_tree.children_visits[:, ROOT] > 0)
    assert (qvalues[others] == -1.0).all()  # +1 for the other player
    np.testing.assert_array_equal(won_trees.action, winning)


def test_nothing_is_searched_below_a_terminal_node(won_positions, won_trees):
    _, winning, _ = won_positions
    tree = won_trees.search_tree
    for game, action in enumerate(winning):
        terminal = tree.children_index[game, ROOT, action]
        assert tree.children_visits[game, ROOT, action] == tree.node_visits[game, terminal] >= 3
        assert (tree.children_index[game, terminal] == -1).all()
        assert terminal not in tree.parents[game]
        assert tree.node_values[game, terminal] == tree.raw_values[game, terminal]
        assert tree.children_discounts[game, ROOT, action] == 0.0
        assert tree.children_rewards[game, ROOT, action] == 1.0


@pytest.mark.parametrize("algorithm", ["puct", pytest.param("gumbel", marks=pytest.mark.slow)])
def test_where_every_move_loses_each_has_value_minus_one(every_move_loses, algorithm):
    policy = functools.partial(puct_policy, dirichlet_fraction=0.0) if algorithm == "puct" else gumbel_policy
    output = search_game(every_move_loses, batch_of([state_after(every_move_loses)] * 2), policy, 6, value=1.0)
    assert (output.search_tree.summary().qvalues == -1.0).all()
    assert (output.search_tree.children_visits[:, ROOT] > 0).all()


@pytest.mark.parametrize("algorithm", [pytest.param("puct", marks=pytest.mark.slow), "gumbel"])
def test_the_ancestors_of_terminal_nodes_have_mctxs_statistics(algorithm):
    rng = np.random.default_rng(0)
    states = []
    while len(states) < 48:
        state = state_after(TIC_TAC_TOE, *rng.permutation(9)[: rng.integers(3, 8)].tolist())
        if not state.won:
            states.append(state)
    states = batch_of(states)
    if algorithm == "gumbel":
        ours = search_game(TIC_TAC_TOE, states, gumbel_policy, 32, value=0.1)
        theirs = search_game(
            TIC_TAC_TOE, states, functools.partial(gumbel_policy, implementation="mctx"), 32, value=0.1
        )
    else:
        policy = functools.partial(puct_policy, dirichlet_fraction=0.0)
        ours = search_game(TIC_TAC_TOE, states, policy, 32, value=0.1)
        theirs = search_game(TIC_TAC_TOE, states, functools.partial(policy, implementation="mctx"), 32, value=0.1)
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(ours.action_weights, theirs.action_weights, atol=1e-6)
    one, other = ours.search_tree.summary(), theirs.search_tree.summary()
    np.testing.assert_array_equal(one.visit_counts, other.visit_counts)
    np.testing.assert_allclose(one.qvalues, other.qvalues, atol=1e-5)
    np.testing.assert_allclose(one.value, other.value, atol=1e-5)


def test_the_sign_of_an_edge_comes_from_who_moves_before_and_after(double_turns):
    """A strikes, A moves again and may win: the strike is worth +1, and a sign that alternates would say -1."""

    def exact(params, rng_key, states):
        # A may strike again and win, or (ply 3) B may; all else is worth nothing to the mover.
        value = jnp.where(states.struck & (states.ply % 2 == 1), 1.0, 0.0)
        return jnp.zeros((states.ply.shape[0], 2)), value

    model = game_model(double_turns, exact)
    policy = functools.partial(puct_policy, dirichlet_fraction=0.0)
    states = batch_of([state_after(double_turns), state_after(double_turns, 0, 0)])

    def run_once(key):
        return policy((), key, model.root((), key, states), model.recurrent, 24)

    output = jax.device_get(jax.jit(run_once)(jax.random.key(3)))
    tree = output.search_tree
    assert (output.action == 1).all()
    for game in range(2):
        strike = tree.children_index[game, ROOT, 1]
        assert tree.children_discounts[game, ROOT, 1] == 1.0  # the same player moves on
        assert tree.raw_values[game, strike] == 1.0
        win = tree.children_index[game, strike, 1]
        assert tree.children_rewards[game, strike, 1] == 1.0
        assert tree.node_values[game, win] == 0.0
        assert tree.summary().qvalues[game, 1] > 0.8
        # Waiting twice hands the turn over: there the sign changes.
        waited = tree.children_index[game, ROOT, 0]
        handed = tree.children_index[game, waited, 0]
        if handed >= 0 and game == 0:
            assert tree.children_discounts[game, waited, 0] == -1.0


# ---- illegal actions


@pytest.mark.parametrize("algorithm", [pytest.param("puct", marks=pytest.mark.slow), "puct with noise", "gumbel"])
def test_no_visit_is_spent_on_an_illegal_action_at_any_node(algorithm):
    dream = Dream(9, illegal_share=0.5, illegal_logit=50.0)
    policies = {
        "puct": functools.partial(puct_policy, dirichlet_fraction=0.0),
        "puct with noise": functools.partial(puct_policy, dirichlet_fraction=0.9, dirichlet_alpha=0.3),
        "gumbel": gumbel_policy,
    }
    root = dream.root(32)
    legal_at_root = np.array(dream.legal(root.embedding.path))
    # In the last game nothing is legal at the root, as in a game that is over.
    legal_at_root[-1] = False
    legal_at_root[:-1, 0] |= ~legal_at_root[:-1].any(-1)
    shown = root.replace(prior_logits=jnp.where(legal_at_root, root.prior_logits, 50.0))
    invalid = jnp.asarray(~legal_at_root, jnp.float32)

    def run_once(key):
        return policies[algorithm]((), key, shown, dream.recurrent, 48, invalid_actions=invalid)

    output = jax.device_get(jax.jit(run_once)(jax.random.key(7)))
    tree = output.search_tree
    for leaf in jax.tree.leaves((output.action_weights, tree.node_values, tree.children_values, tree.raw_values)):
        assert np.isfinite(leaf).all()
    legal = np.array(dream.legal(jnp.asarray(tree.embeddings.path)))
    legal[:, ROOT] = legal_at_root
    blocked = ~legal & legal.any(-1, keepdims=True)  # where nothing is legal, no choice is right
    assert blocked.sum() > 1000 and (tree.children_visits > 0)[:, 1:].sum() > 100
    assert (tree.children_visits[blocked] == 0).all()
    assert (tree.children_index[blocked] == -1).all()
    some = legal_at_root.any(-1)
    assert (output.action_weights[some][~legal_at_root[some]] == 0).all()
    np.testing.assert_allclose(output.action_weights[some].sum(-1), 1, atol=1e-5)
    assert legal_at_root[np.arange(32), output.action][some].all()
    assert ((output.action >= 0) & (output.action < 9)).all()


@pytest.fixture(scope="module")
def noisy_priors():
    """Priors [256, 4672] with 30 legal actions each, uniform among them, after noise of weight 0.25 and alpha 0.3."""
    rng = np.random.default_rng(0)
    legal = np.zeros((256, 4672), bool)
    for row in legal:
        row[rng.choice(4672, 30, replace=False)] = True
    logits = jnp.where(legal, 1.0, 9.0)  # what the network says of illegal actions must not matter
    noisy = jax.jit(functools.partial(dirichlet_noise, fraction=0.25, alpha=0.3))(jax.random.key(0), logits, legal)
    return legal, np.asarray(noisy)


def test_noise_gives_illegal_actions_nothing(noisy_priors):
    legal, noisy = noisy_priors
    priors = np.asarray(jax.nn.softmax(noisy))
    assert (priors[~legal] == 0).all()
    np.testing.assert_allclose(priors.sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(is_illegal(noisy), ~legal)


def test_all_of_the_noise_reaches_the_legal_actions(noisy_priors):
    legal, noisy = noisy_priors
    priors = np.asarray(jax.nn.softmax(noisy))[legal].reshape(256, 30)
    assert (priors >= 0.75 / 30 - 1e-6).all()  # the share that is left of the prior
    distance = 0.5 * np.abs(priors - 1 / 30).sum(-1)
    sample = np.random.default_rng(1).dirichlet([0.3] * 30, 20_000)
    expected = 0.25 * 0.5 * np.abs(sample - 1 / 30).sum(-1)
    # Drawn over all actions, 30 of 4672, the distance would be some 0.0016 of the 0.25.
    assert abs(distance.mean() - expected.mean()) < 5 * expected.std() / np.sqrt(256)
    assert abs(distance.std() / expected.std() - 1) < 0.2
    largest = (priors.max(-1) - 0.75 / 30) / 0.25
    assert abs(largest.mean() - sample.max(-1).mean()) < 5 * sample.max(-1).std() / np.sqrt(256)


def test_noise_is_mixed_into_the_root_alone(dreamt_tree):
    dream, clean = Dream(9), dreamt_tree
    noisy = run(functools.partial(puct_policy, dirichlet_fraction=0.25, dirichlet_alpha=1.0), dream, 24).search_tree
    root = dream.root(16)
    at_root = jax.nn.softmax(jnp.asarray(noisy.children_prior_logits[:, ROOT]))
    assert (at_root >= 0.75 * jax.nn.softmax(root.prior_logits) - 1e-6).all()
    assert (np.abs(at_root - jax.nn.softmax(root.prior_logits)).max(-1) > 0.001).all()
    np.testing.assert_allclose(
        jax.nn.softmax(jnp.asarray(clean.children_prior_logits[:, ROOT])), jax.nn.softmax(root.prior_logits), atol=1e-6
    )
    below, _ = dream.evaluate(jax.tree.map(lambda leaf: leaf[:, 1:].reshape(-1, *leaf.shape[2:]), noisy.embeddings))
    np.testing.assert_allclose(
        noisy.children_prior_logits[:, 1:].reshape(-1, 9), jax.nn.log_softmax(below), rtol=1e-5, atol=1e-5
    )


# ---- the tree adds up


def test_visits_add_up_and_values_are_means(dreamt_tree):
    tree = dreamt_tree
    assert (tree.node_visits[:, ROOT] == 25).all()
    np.testing.assert_array_equal(tree.node_visits, 1 + tree.children_visits.sum(-1))
    for game in range(4):
        for node in range(25):
            visits = tree.children_visits[game, node]
            total = tree.raw_values[game, node] - (visits * tree.children_values[game, node]).sum()
            np.testing.assert_allclose(tree.node_values[game, node], total / (1 + visits.sum()), atol=1e-5)
            if node:
                parent, action = tree.parents[game, node], tree.action_from_parent[game, node]
                assert parent < node and tree.children_index[game, parent, action] == node
                assert tree.children_visits[game, parent, action] == tree.node_visits[game, node]


def test_search_takes_selection_functions_of_ones_own():
    """Round robin at the root, the depth's own action below: any function of the node, its index and the depth."""
    dream = Dream(3)

    def at_root(rng_key, tree, node_index):
        return jnp.argmin(tree.children_visits[node_index] + tree.extra_data)

    def inside(rng_key, tree, node_index, depth):
        return (jnp.int32(depth) + tree.node_visits[node_index]) % 3  # mctx counts depth in float32

    def grow(implementation, key):
        return implementation(
            (),
            key,
            root=dream.root(4),
            recurrent_fn=dream.recurrent,
            root_action_selection_fn=at_root,
            interior_action_selection_fn=inside,
            num_simulations=20,
            extra_data=jnp.array([[0, 0.5, 0.2], [0.5, 0, 0], [9, 0, 0], [0, 0, 0]]),
        )

    ours = jax.jit(functools.partial(grow, search))(jax.random.key(0))
    theirs = jax.jit(functools.partial(grow, mctx.search))(jax.random.key(0))
    assert_same_tree(ours, theirs)
    np.testing.assert_array_equal(ours.extra_data, theirs.extra_data)
    np.testing.assert_array_equal(ours.root_invalid_actions, theirs.root_invalid_actions)
