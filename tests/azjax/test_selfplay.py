"""Games through lanes and replay: who is said to have won, what is kept of a move, what carries over."""

import functools
import types
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

import envs
from azjax import network
from azjax.config import NetworkConfig, RunConfig, SearchConfig, SelfPlayConfig
from azjax.replay import start_replay, write
from azjax.selfplay import (
    Lanes,
    SearchOutput,
    count,
    mean_legal_moves,
    play_ply,
    position_shapes,
    search_policy,
    start_lanes,
)
from envs.black_hole import BlackHole
from envs.connect_four import GAME as CONNECT_FOUR
from envs.core import Game
from envs.crosshair import Crosshair
from envs.tic_tac_toe import GAME as TIC_TAC_TOE
from envs.tic_tac_toe import TicTacToe

KEY = jax.random.key(0)
OPENINGS = (0, 1, 2, 3)
"""Plies made before a lane starts."""


class Played(NamedTuple):
    """Games played through lanes and replay, each from several openings."""

    movers: list[np.ndarray]  # of game and opening: int[plies]
    outcomes: list[np.ndarray]  # float[plies], z
    has_outcome: list[np.ndarray]
    returns: list[np.ndarray]  # float[2], of each game
    counts: dict[str, int]


def scripted(variables, rng_key, states, temperature) -> Any:
    """A policy that plays the move given as the network's variables and says nothing else."""
    size = variables.shape[0]
    root = types.SimpleNamespace(node_values=jnp.zeros((size, 1)), ROOT_INDEX=0)
    weights = jnp.zeros((size, 1))
    legal = jnp.ones((size, 1), jnp.bool_)
    return SearchOutput(variables, weights, legal, None, None, root)


def play(game: Game, games: list[list[int]]) -> Played:
    """Plays each game from every opening in a lane of its own, until all are over once."""
    config = RunConfig(game=game.id)
    lanes = [(moves, opening) for moves in games for opening in OPENINGS]
    step_all = jax.jit(jax.vmap(game.step))
    state = jax.jit(jax.vmap(game.init))(jax.random.split(KEY, len(lanes)))
    started = state
    for ply in range(max(OPENINGS)):
        moved = step_all(started, jnp.array([moves[ply] for moves, _ in lanes], jnp.int32))
        before = np.array([ply < opening for _, opening in lanes])
        started = jax.tree.map(
            lambda new, old, where=before: jnp.where(where.reshape(-1, *(1,) * (old.ndim - 1)), new, old),
            moved,
            started,
        )
    lanes_now = Lanes(state=started, ply=jnp.array([opening for _, opening in lanes], jnp.int32))

    @jax.jit
    def advance(lanes_now, replay, actions):
        after, result = play_ply(config, game, scripted, actions, KEY, lanes_now)
        return after, write(replay, result) if replay is not None else None, result, count(result)

    replay = start_replay(
        jax.eval_shape(advance, lanes_now, None, jnp.zeros(len(lanes), jnp.int32))[2].position,
        game.max_plies + 1,
        game.max_plies,
    )
    rows, returns, totals = [{} for _ in lanes], [None for _ in lanes], {}
    legal = jax.jit(jax.vmap(game.legal_action_mask))
    for ply in range(max(len(moves) for moves in games)):
        # Once its game is over a lane goes on with any legal move of the next one.
        anything = np.asarray(legal(lanes_now.state)).argmax(-1)
        actions = [
            moves[ply + opening] if ply + opening < len(moves) else anything[lane]
            for lane, (moves, opening) in enumerate(lanes)
        ]
        lanes_now, replay, result, counted = advance(lanes_now, replay, jnp.array(actions, jnp.int32))
        for lane, (moves, opening) in enumerate(lanes):
            rows[lane][ply + opening] = ply
            if ply + opening == len(moves) - 1:
                assert result.over[lane], "a game ends with its last move"
                returns[lane] = np.asarray(result.returns[lane])
            elif ply + opening < len(moves) - 1:
                assert not result.over[lane]
        totals = {name: totals.get(name, 0) + int(value) for name, value in counted.items()}
    at = [[rows[lane][p] for p in range(opening, len(moves))] for lane, (moves, opening) in enumerate(lanes)]

    def of(array):
        return [np.asarray(array)[one, lane] for lane, one in enumerate(at)]

    return Played(of(replay.positions.mover), of(replay.outcome), of(replay.has_outcome), returns, totals)


def decided_games(game: Game) -> list[list[int]]:
    """Moves of two random games, won by the first and by the second player."""
    batch = 256
    rng = np.random.default_rng(0)

    @jax.jit
    def games(noise):
        def ply(states, noise):
            mask = jax.vmap(game.legal_action_mask)(states)
            actions = jnp.argmax(mask * noise, axis=-1).astype(jnp.int32)
            return jax.vmap(game.step)(states, actions), (actions, mask.any(-1))

        start = jax.vmap(game.init)(jax.random.split(KEY, batch))
        end, (actions, playing) = jax.lax.scan(ply, start, noise)
        return actions, playing, jax.vmap(game.returns)(end)

    noise = rng.uniform(0.5, 1, (game.max_plies, batch, game.num_actions)).astype(np.float32)
    actions, playing, returns = map(np.asarray, games(noise))
    chosen = [int(np.flatnonzero(np.sign(returns[:, 0]) == sign)[0]) for sign in (1, -1)]
    return [actions[playing[:, one], one].tolist() for one in chosen]


# Columns 1 to 7; the second player wins with the last disc.
LAST_DISC = "2 1 1 1 3 1 4 1 6 5 7 2 3 4 5 6 7 7 6 5 4 3 2 7 6 5 4 3 2 2 3 4 5 6 7 7 6 5 4 3 2 1"


@pytest.fixture(
    scope="module",
    params=[TIC_TAC_TOE, CONNECT_FOUR, Crosshair(size=5), BlackHole(rows=5)],
    ids=lambda game: game.id,
)
def decided(request):
    """(game, one game won by each side and played through lanes and replay)."""
    game = request.param
    return game, play(game, decided_games(game))


def test_z_is_the_return_of_the_side_to_move(decided):
    game, played = decided
    assert np.sign([returns[0] for returns in played.returns]).tolist() == [1] * 4 + [-1] * 4
    for movers, outcomes, has_outcome, returns, opening in zip(
        played.movers, played.outcomes, played.has_outcome, played.returns, OPENINGS * 2, strict=True
    ):
        # Both players move in turn in these games, and the first ply kept is the one after the opening.
        np.testing.assert_array_equal(movers, (opening + np.arange(len(movers))) % 2)
        np.testing.assert_array_equal(outcomes, returns[movers])
        assert has_outcome.all()
        if game.id.startswith("black_hole"):
            continue
        winner = int(returns[1] > 0)
        assert (outcomes[movers == winner] == 1.0).all() and (outcomes[movers != winner] == -1.0).all()
        assert movers[-1] == winner and outcomes[-1] == 1.0  # who moves last has won


def test_games_and_winners_are_counted(decided):
    game, played = decided
    counts = played.counts
    assert counts["games"] >= 8 and counts["decided"] >= 8 and counts["nonfinite_targets"] == 0
    assert 4 <= counts["first_player_wins"] <= counts["decided"] - 4
    if not game.id.startswith("black_hole"):
        assert counts["won_by_last_mover"] == counts["decided"]


def test_a_win_with_the_last_disc_is_a_win():
    played = play(CONNECT_FOUR, [[int(column) - 1 for column in LAST_DISC.split()]])
    for movers, outcomes in zip(played.movers, played.outcomes, strict=True):
        assert movers[-1] == 1 and outcomes[-1] == 1.0
        np.testing.assert_array_equal(outcomes, np.where(movers == 1, 1.0, -1.0))


def test_a_draw_is_zero_for_both():
    # X O X / X O O / O X X
    played = play(TIC_TAC_TOE, [[0, 1, 2, 4, 3, 5, 7, 6, 8]])
    for outcomes, has_outcome in zip(played.outcomes, played.has_outcome, strict=True):
        assert (outcomes == 0.0).all() and has_outcome.all()
    assert played.counts["decided"] == 0 and played.counts["truncated"] == 0 and played.counts["games"] >= 4


def test_a_game_that_is_cut_off_has_no_outcome():
    game = TicTacToe(max_plies=5)
    played = play(game, [[0, 1, 2, 4, 3], [0, 3, 1, 4, 2]])  # the second is won with the fifth mark
    for index, (outcomes, has_outcome) in enumerate(zip(played.outcomes, played.has_outcome, strict=True)):
        assert has_outcome.all() == (index >= 4) and has_outcome.any() == (index >= 4)
        assert (outcomes == 0.0).all() == (index < 4)
    assert played.counts["truncated"] >= 4
    assert played.counts["decided"] == played.counts["won_by_last_mover"]


def test_a_player_who_moves_twice_keeps_the_sign(double_turns):
    """Player 0 waits twice, player 1 strikes twice and wins; and player 0 wins at once."""
    game = double_turns
    config = RunConfig(game=game.id)
    lanes = start_lanes(game, KEY, 2)
    advance = jax.jit(lambda lanes, actions: play_ply(config, game, scripted, actions, KEY, lanes))
    _, first = advance(lanes, jnp.zeros(2, jnp.int32))
    replay = start_replay(first.position, 5, 4)
    for actions in ([0, 1], [0, 1], [1, 0], [1, 0]):
        lanes, result = advance(lanes, jnp.array(actions, jnp.int32))
        replay = jax.jit(write)(replay, result)
    np.testing.assert_array_equal(replay.positions.mover[:4, 0], [0, 0, 1, 1])
    np.testing.assert_array_equal(replay.outcome[:4, 0], [-1, -1, 1, 1])
    np.testing.assert_array_equal(replay.outcome[:2, 1], [1, 1])
    np.testing.assert_array_equal(replay.has_outcome[:4, 1], [True, True, False, False])


# ---- searched moves

CONFIG = RunConfig(
    game="tic_tac_toe",
    network=NetworkConfig(width=16, blocks=1, value_width=8),
    search=SearchConfig(simulations=16, dirichlet_alpha=1.0),
    selfplay=SelfPlayConfig(temperature_plies=2),
)


@pytest.fixture(scope="module")
def explorer():
    """(variables, compiled self-play policy, compiled ply by it) of a small network, for 64 games."""
    variables = network.init(CONFIG.network, TIC_TAC_TOE, KEY)
    policy = jax.jit(search_policy(CONFIG, TIC_TAC_TOE, explore=True))
    return variables, policy, jax.jit(functools.partial(play_ply, CONFIG, TIC_TAC_TOE, policy))


def test_openings_are_random_games_of_every_length():
    game = CONNECT_FOUR
    lanes = start_lanes(game, KEY, 4096, opening_plies=3)
    stones = np.asarray(jax.vmap(game.observe)(lanes.state)).sum((1, 2, 3))
    np.testing.assert_array_equal(stones, lanes.ply)
    lengths = np.bincount(lanes.ply, minlength=4) / 4096
    np.testing.assert_allclose(lengths, 0.25, atol=5 * np.sqrt(0.25 * 0.75 / 4096))
    firsts = np.asarray(jax.vmap(game.observe)(lanes.state))[np.asarray(lanes.ply) == 1].sum((0, 1, 3))
    np.testing.assert_allclose(firsts / firsts.sum(), 1 / 7, atol=5 * np.sqrt(1 / 7 * 6 / 7 / 1024))


def test_an_opening_never_ends_a_game():
    lanes = start_lanes(TIC_TAC_TOE, KEY, 2048, opening_plies=9)
    assert not np.asarray(jax.vmap(TIC_TAC_TOE.terminated)(lanes.state)).any()
    marks = np.asarray(jax.vmap(TIC_TAC_TOE.observe)(lanes.state)).sum((1, 2, 3))
    np.testing.assert_array_equal(marks, lanes.ply)
    assert lanes.ply.max() == 8 and len(np.unique(lanes.ply)) == 9


def test_a_game_that_ended_begins_again_with_an_opening():
    config = RunConfig(game="tic_tac_toe", selfplay=SelfPlayConfig(opening_plies=4))
    advance = jax.jit(functools.partial(play_ply, config, TIC_TAC_TOE, scripted))
    lanes = start_lanes(TIC_TAC_TOE, KEY, 512)
    for move in (0, 3, 1, 4, 2):  # X wins the top row
        lanes, result = advance(jnp.full(512, move, jnp.int32), KEY, lanes)
    assert result.over.all()
    assert set(np.asarray(lanes.ply).tolist()) == {0, 1, 2, 3, 4}
    assert len(np.unique(np.asarray(jax.vmap(TIC_TAC_TOE.observe)(lanes.state)).reshape(512, -1), axis=0)) > 50


def same(one, other) -> bool:
    return all((a == b).all() for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True))


def test_a_lane_that_was_reset_is_searched_like_a_new_game(explorer):
    variables, policy, _ = explorer
    fresh = start_lanes(TIC_TAC_TOE, KEY, 64)
    advance = jax.jit(functools.partial(play_ply, CONFIG, TIC_TAC_TOE, scripted))
    lanes = fresh
    for move in (0, 3, 1, 4, 2):  # X wins the top row
        before = lanes
        lanes, result = advance(jnp.full(64, move, jnp.int32), KEY, lanes)
    assert result.over.all() and not before.state.won.any()
    assert same(lanes, fresh)
    temperature = jnp.ones(64)
    one = policy(variables, KEY, lanes.state, temperature)
    other = policy(variables, KEY, fresh.state, temperature)
    np.testing.assert_array_equal(one.search_tree.children_visits, other.search_tree.children_visits)
    np.testing.assert_array_equal(one.action, other.action)
    root_visits = np.asarray(one.search_tree.children_visits[:, mctx.Tree.ROOT_INDEX])
    assert (root_visits.sum(-1) == 16).all() and (one.search_tree.children_index >= 0).sum() == 64 * 16


def test_the_target_is_the_search_policy_whatever_the_temperature(explorer):
    variables, policy, _ = explorer
    states = start_lanes(TIC_TAC_TOE, KEY, 64).state
    outputs = [
        policy(variables, KEY, states, jnp.full(64, temperature, jnp.float32)) for temperature in (0.0, 0.5, 1.0)
    ]
    visits = np.asarray(outputs[0].search_tree.children_visits[:, mctx.Tree.ROOT_INDEX])
    for output in outputs:
        np.testing.assert_allclose(output.action_weights, visits / 16, atol=1e-6)
    np.testing.assert_array_equal(outputs[0].action, visits.argmax(-1))
    assert len(set(map(tuple, visits.tolist()))) > 8  # noise makes the games differ
    assert (outputs[2].action != outputs[0].action).sum() > 10


def test_the_first_plies_are_drawn_and_the_later_ones_are_the_most_visited(explorer):
    variables, _, advance = explorer
    states = start_lanes(TIC_TAC_TOE, KEY, 64).state

    def moves_of(plies):
        after, result = advance(variables, KEY, Lanes(state=states, ply=jnp.full(64, plies, jnp.int32)))
        np.testing.assert_array_equal(after.ply, np.full(64, plies + 1))
        marks = np.asarray(jax.vmap(TIC_TAC_TOE.observe)(after.state))[..., 1].reshape(64, 9)
        return marks.argmax(-1), np.asarray(result.position.search_weights)

    drawn, weights = moves_of(1)
    strongest, same_weights = moves_of(2)
    np.testing.assert_array_equal(weights, same_weights)
    np.testing.assert_array_equal(strongest, weights.argmax(-1))
    assert (drawn != strongest).sum() > 10


def test_what_is_written_of_a_ply_is_the_position_before_it(explorer):
    variables, _, advance = explorer
    lanes = start_lanes(TIC_TAC_TOE, KEY, 64)
    for ply in range(6):
        after, result = advance(variables, jax.random.key(ply), lanes)
        assert same(result.position.state, lanes.state)
        np.testing.assert_array_equal(result.position.mover, jax.vmap(TIC_TAC_TOE.to_move)(lanes.state))
        legal = np.asarray(jax.vmap(TIC_TAC_TOE.legal_action_mask)(lanes.state))
        assert (np.asarray(result.position.search_weights)[~legal] == 0).all()
        assert (np.abs(result.position.root_value) <= 1).all()
        assert (np.asarray(result.returns)[~np.asarray(result.over)] == 0).all()
        lanes = after


@pytest.mark.parametrize(
    ("word", "slots"), [("tic_tac_toe", None), ("tic_tac_toe", 4), ("backgammon", None), ("backgammon", 4)]
)
def test_the_shapes_of_what_a_ply_writes_are_known_without_it(word, slots):
    game = envs.make(word)
    search = SearchConfig(simulations=2, dirichlet_alpha=1.0, slots=slots)
    config = RunConfig(game=word, network=NetworkConfig(width=4, blocks=0), search=search)

    def written(rng_key):
        lanes = start_lanes(game, rng_key, 3)
        variables = network.init(config.network, game, rng_key)
        return play_ply(config, game, search_policy(config, game, explore=True), variables, rng_key, lanes)[1].position

    expected = jax.eval_shape(written, KEY)
    shapes = position_shapes(config, game, expected.state)
    assert jax.tree.structure(shapes) == jax.tree.structure(expected)
    for got, leaf in zip(jax.tree.leaves(shapes), jax.tree.leaves(expected), strict=True):
        assert (got.shape, got.dtype) == (leaf.shape, leaf.dtype)


def test_a_network_that_is_not_finite_writes_nothing_that_is_not(explorer):
    variables, _, advance = explorer
    lanes = start_lanes(TIC_TAC_TOE, KEY, 64)
    broken = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), variables)
    legal = np.asarray(jax.vmap(TIC_TAC_TOE.legal_action_mask)(lanes.state))
    for ply in range(3):
        before = lanes
        lanes, result = advance(broken, jax.random.key(ply), lanes)
        np.testing.assert_allclose(result.position.search_weights, legal / legal.sum(-1, keepdims=True), atol=1e-3)
        assert (result.position.root_value == 0).all() and not result.finite.any()
        assert count(result)["nonfinite_targets"] == 64
        legal_then, legal = legal, np.asarray(jax.vmap(TIC_TAC_TOE.legal_action_mask)(lanes.state))
        assert ((legal_then & ~legal).sum(-1) == 1).all() and (legal <= legal_then).all()  # a legal move was made
        np.testing.assert_array_equal(lanes.ply, before.ply + 1)
    _, result = advance(variables, KEY, lanes)
    assert result.finite.all() and count(result)["nonfinite_targets"] == 0


def test_gumbels_constants_come_from_the_configuration():
    """The target is softmax(logits + sigma(Q)): the prior alone where sigma is next to nothing."""
    states = start_lanes(TIC_TAC_TOE, KEY, 4).state
    shape = NetworkConfig(kind="mlp", width=8, blocks=1)
    variables = network.init(shape, TIC_TAC_TOE, KEY)
    (logits, _), _ = network.apply(shape, TIC_TAC_TOE, variables, jax.vmap(TIC_TAC_TOE.observe)(states), False)

    def target(**constants: Any) -> np.ndarray:
        search = SearchConfig(algorithm="gumbel", simulations=8, considered_actions=4, **constants)
        policy = search_policy(RunConfig(game="tic_tac_toe", network=shape, search=search), TIC_TAC_TOE, explore=True)
        return np.asarray(jax.jit(policy)(variables, KEY, states, jnp.ones(4)).action_weights)

    np.testing.assert_allclose(target(c_scale=1e-9), jax.nn.softmax(logits), atol=1e-6)
    assert target(c_scale=10.0).max() > 0.99
    # The small differences of an untrained network's values change little; rescaled, they are the whole range.
    assert target(rescale_values=False).max() < 0.5 < target(rescale_values=True).max()


def test_self_play_without_a_noise_constant_is_refused():
    with pytest.raises(ValueError, match=r"^search.dirichlet_alpha: got None, expected a number"):
        search_policy(RunConfig(game="tic_tac_toe"), TIC_TAC_TOE, explore=True)
    search_policy(RunConfig(game="tic_tac_toe", search=SearchConfig(algorithm="gumbel")), TIC_TAC_TOE, explore=True)


def test_mean_number_of_legal_moves(double_turns):
    # Tic-tac-toe: 9, 8, 7, ... until the game ends; all games reach ply 5, few ply 9. Measured over 100,000: 5.7.
    assert 5.4 < mean_legal_moves(TIC_TAC_TOE, KEY, num_games=256) < 6.0
    assert mean_legal_moves(double_turns, KEY) == 2.0
