"""A search looked at simulation by simulation: what is told adds up to the tree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from azjax.charts import draw_tree
from azjax.line import Line
from azjax.search import TreeSearch, game_model, gumbel_rule, num_slots, puct_rule
from azjax.search.gumbel import considered_visits


def evaluate_for(game):
    """Logits and values that depend on the position and on nothing else."""

    def evaluate(params, rng_key, states):
        seen = jax.vmap(game.observe)(states).reshape(jax.tree.leaves(states)[0].shape[0], -1)
        weights = jnp.sin(jnp.arange(seen.shape[1], dtype=jnp.float32) * 12.9898)
        mixed = seen @ weights
        logits = jnp.cos(mixed[:, None] + jnp.arange(game.num_actions, dtype=jnp.float32)[None])
        return logits, jnp.tanh(jnp.sin(3 * mixed))

    return evaluate


def search_of(game, capacity, rule=None) -> TreeSearch:
    model = game_model(game, evaluate_for(game), masked=num_slots(game) is None)
    return TreeSearch(game, model, (), capacity=capacity, chunk=8, rule=rule)


@pytest.fixture(params=["tic_tac_toe", "double_turns", pytest.param("backgammon", marks=pytest.mark.slow)])
def game(request):
    return request.getfixturevalue("double_turns") if request.param == "double_turns" else envs.make(request.param)


def test_what_simulations_back_up_adds_up_to_the_tree(game):
    search = search_of(game, 60)
    line = Line(game)
    search.start(line.state)
    sums: dict[tuple[int, int], list[float]] = {}
    expanded = set()
    for number in range(60):
        told = search.step()
        assert told is not None and told.nodes[0] == 0 and len(told.events) == len(told.nodes) - 1
        assert told.expanded == (told.nodes[-1] not in expanded) and (told.expanded or told.terminal)
        expanded.add(told.nodes[-1])
        for node, event, value in zip(told.nodes, told.events, told.backed_up, strict=False):
            sums.setdefault((node, event), []).append(value)
        assert told.nodes[-1] == number + 1 or not told.expanded
    assert search.step() is None
    nodes = search.nodes()
    assert int(nodes.visits.sum()) == sum(map(len, sums.values()))
    for (node, event), values in sums.items():
        (edge,) = np.flatnonzero((nodes.events[node] == event) & (nodes.visits[node] > 0))
        assert nodes.visits[node, edge] == len(values)
        assert nodes.qvalues[node, edge] == pytest.approx(np.mean(values), abs=1e-5)


def test_steps_one_by_one_are_the_search():
    game = envs.make("tic_tac_toe")
    one_by_one, at_once = search_of(game, 40), search_of(game, 40)
    for search in (one_by_one, at_once):
        search.start(Line(game).state)
    for _ in range(40):
        one_by_one.step()
    at_once.grow(40)
    for name in ("visits", "qvalues", "parents", "children"):
        assert np.array_equal(getattr(one_by_one.nodes(), name), getattr(at_once.nodes(), name))


def test_gumbels_rule_halves_and_chooses_among_the_most_visited():
    game = envs.make("tic_tac_toe")
    search = search_of(game, 16, gumbel_rule(16, 4))
    search.start(Line(game).state, seed=5)
    order = [search.step().events[0] for _ in range(16)]
    assert len(set(order[:4])) == 4 and set(order) == set(order[:4])
    before = [order[:number].count(action) for number, action in enumerate(order)]
    assert before == considered_visits(4, 16)[4].tolist()
    seen = search.look()
    assert seen.visits[seen.action] == seen.visits.max()


def test_other_parameters_drop_the_tree():
    game = envs.make("tic_tac_toe")

    def evaluate(params, rng_key, states):
        size = jax.tree.leaves(states)[0].shape[0]
        return jnp.zeros((size, 9)), jnp.full((size,), params)

    values = jnp.float32(0.5), jnp.float32(-0.5)
    search = TreeSearch(game, game_model(game, evaluate), values[0], capacity=4, rule=puct_rule())
    search.start(Line(game).state)
    assert search.look().value == 0.5
    search.use(values[1])
    with pytest.raises(ValueError, match="no position"):
        search.look()
    search.start(Line(game).state)
    assert search.look().value == -0.5


def test_the_state_of_a_node_is_the_position_after_its_path(game):
    search = search_of(game, 20)
    line = Line(game)
    search.start(line.state)
    told = [search.step() for _ in range(20)][-1]
    state = line.state
    for event in told.events:
        step = game.step if event < game.num_actions else game.step_chance
        state = step(state, jnp.int32(event if event < game.num_actions else event - game.num_actions))
    assert all(map(np.array_equal, jax.tree.leaves(search.state_of(told.nodes[-1])), jax.tree.leaves(state)))


def test_the_drawn_tree_shows_the_last_path_and_no_more_nodes_than_asked_for():
    game = envs.make("tic_tac_toe")
    search = search_of(game, 60)
    search.start(Line(game).state)
    search.grow(59)
    last = search.step()
    svg = draw_tree(search.nodes(), lambda node, event: f"<{event}>", last, most=6)
    assert 0 < svg.count("<circle") <= 2 * (1 + 6 + len(last.nodes))
    assert svg.count('stroke-width="4"') == len(last.events) + last.expanded
    assert "&lt;" in svg and "search tree of 60 simulations" in svg
