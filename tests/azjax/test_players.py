import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import network
from azjax.config import LearnerConfig, NetworkConfig, RunConfig, SearchConfig
from azjax.players import RESIGNS, LoadedRun, make_player, parse_player, run_player
from envs.random_games import random_games
from envs.tic_tac_toe import GAME as TIC_TAC_TOE

KEY = jax.random.key(0)


def no_run(directory, step):
    raise AssertionError("no run is needed")


@pytest.mark.parametrize(
    ("word", "kind", "argument", "options"),
    [
        ("random", "random", "", ()),
        ("uct:400", "uct", "400", ()),
        ("uct:400,c=0.7", "uct", "400", (("c", "0.7"),)),
        (
            "run:runs/a@20,simulations=400,search=gumbel,temperature=0.5",
            "run",
            "runs/a@20",
            (("simulations", "400"), ("search", "gumbel"), ("temperature", "0.5")),
        ),
        ("run:C:/runs/a,search=policy,top_p=0.9", "run", "C:/runs/a", (("search", "policy"), ("top_p", "0.9"))),
    ],
)
def test_a_players_word(word, kind, argument, options):
    spec = parse_player(word)
    assert (spec.kind, spec.argument, spec.options) == (kind, argument, options)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("stockfish", "player: got 'stockfish', expected random, uct:400, run:runs/NAME, agent:crosshair, alphabeta:"),
        ("", "player: got '', expected random"),
        ("Random", "player: got 'Random', expected random"),
        ("random,c=1", "player 'random,c=1': got option 'c=1', expected no options"),
        ("uct:400,d=1", "player 'uct:400,d=1': got option 'd=1', expected c=..."),
        ("uct:400,c", "player 'uct:400,c': got option 'c', expected c=..."),
        ("uct:400,", "player 'uct:400,': got option '', expected c=..."),
        ("random:5", "player: got 'random:5', expected random without an argument"),
        ("uct", "player 'uct': got simulations '', expected a whole number of at least 1"),
        ("uct:0", "player 'uct:0': got simulations '0', expected a whole number of at least 1"),
        ("uct:1.5", "player 'uct:1.5': got simulations '1.5', expected a whole number of at least 1"),
        ("uct:many", "player 'uct:many': got simulations 'many', expected a whole number of at least 1"),
        ("uct:9,c=-1", "player 'uct:9,c=-1': got c '-1', expected a number of at least 0"),
        ("uct:9,c=nan", "player 'uct:9,c=nan': got c 'nan', expected a number of at least 0"),
        ("run:", "player: got 'run:', expected run:DIRECTORY"),
        ("agent:", "agent: got '', expected one of "),
        ("agent:crosshair,c=1", "player 'agent:crosshair,c=1': got option 'c=1', expected simulations=..."),
        ("run:a@last", "player 'run:a@last': got step 'last', expected a whole number of at least 0"),
        ("run:a@-1", "player 'run:a@-1': got step '-1', expected a whole number of at least 0"),
        ("run:a,depth=3", "player 'run:a,depth=3': got option 'depth=3', expected simulations=..., search=..."),
    ],
)
def test_a_word_that_names_no_player_is_refused(word, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        make_player(TIC_TAC_TOE, word, no_run)


CONFIG = RunConfig(
    game="tic_tac_toe",
    network=NetworkConfig(width=8, blocks=0, value_width=4),
    search=SearchConfig(simulations=8),
)


@pytest.fixture(scope="module")
def loaded() -> LoadedRun:
    return LoadedRun(config=CONFIG, variables=network.init(CONFIG.network, TIC_TAC_TOE, KEY), step=20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("search=mcts", "got search=mcts, expected gumbel, puct or policy"),
        ("search=alphabeta", "got search=alphabeta, expected gumbel, puct or policy"),
        ("search=policy,top_p=0", "got top_p=0.0, expected a number above 0, at most 1"),
        ("search=policy,top_p=1.5", "got top_p=1.5, expected a number above 0, at most 1"),
        ("top_p=0.5", "got top_p with search=puct, expected search=policy"),
        ("search=policy,resign=0.05", "got resign with search=policy, expected search=gumbel or puct"),
        ("resign=0.9", "got resign=0.9, expected points of a game below 0.5, such as 0.05"),
        ("resign=0", "got resign=0.0, expected points of a game below 0.5, such as 0.05"),
        ("resign=-0.9", "got resign '-0.9', expected a number of at least 0"),
        ("temperature=-1", "got temperature '-1', expected a number of at least 0"),
        ("simulations=few", "got simulations 'few', expected a whole number"),
    ],
)
def test_wrong_options_of_a_run_are_refused(loaded, options, message):
    word = f"run:a,{options}"
    with pytest.raises(ValueError, match=f"^{re.escape(f'player {word!r}: {message}')}"):
        make_player(TIC_TAC_TOE, word, lambda directory, step: loaded)


def test_a_run_is_loaded_at_the_step_that_was_asked_for(loaded):
    asked = []

    def load_run(directory, step):
        asked.append((directory, step))
        return loaded

    for word in ("run:runs/a", "run:runs/a@20", "run:runs/a@0,search=policy"):
        player = make_player(TIC_TAC_TOE, word, load_run)
        assert player.name == word and player.params is loaded.variables
    assert asked == [("runs/a", None), ("runs/a", 20), ("runs/a", 0)]


def test_a_run_of_another_game_is_refused(loaded):
    other = loaded._replace(config=dataclasses.replace(CONFIG, game="crosshair"))
    with pytest.raises(
        ValueError, match=re.escape("player 'run:a': got a run of crosshair, expected one of tic_tac_toe")
    ):
        make_player(TIC_TAC_TOE, "run:a", lambda directory, step: other)


def test_steps_of_a_run_share_one_program(loaded):
    first = run_player(TIC_TAC_TOE, loaded, "run:a@10", {"simulations": "4"})
    config = dataclasses.replace(CONFIG, seed=5, learner=LearnerConfig(learning_rate=0.5))
    second = run_player(TIC_TAC_TOE, loaded._replace(config=config, step=30), "run:a@30", {"simulations": "4"})
    assert first.choose is second.choose
    assert first.choose is not run_player(TIC_TAC_TOE, loaded, "run:a", {"simulations": "5"}).choose


# ---- choices


@functools.cache
def compiled(choose):
    """Players share their functions, so tests of the same player share what they compile."""
    return jax.jit(choose)


@pytest.fixture(scope="module")
def positions():
    """States [128] of random games, none of them over, and their legal moves."""
    turns, kept, masks = random_games(TIC_TAC_TOE, jax.random.split(KEY, 40), np.random.default_rng(0)), [], []
    for turn in turns:
        kept.append(turn.state)
        masks.append(turn.position.legal_action_mask)
        if turn.number == 8:
            break
    masks = np.concatenate(masks)
    going = np.flatnonzero(masks.any(-1))[-128:]
    states = jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[going], *kept)
    return states, masks[going]


@pytest.mark.parametrize(
    "word",
    [
        "random",
        "uct:200",
        "run:a,simulations=6",
        "run:a,search=gumbel,simulations=6",
        pytest.param("run:a,simulations=6,temperature=2", marks=pytest.mark.slow),
        "alphabeta:a,evaluations=6",
        "run:a,search=policy",
        "run:a,search=policy,temperature=5,top_p=0.95",
    ],
)
def test_every_player_plays_legal_moves(loaded, positions, word):
    states, legal = positions
    player = make_player(TIC_TAC_TOE, word, lambda directory, step: loaded)
    choose = compiled(player.choose)
    for seed in range(3):
        moves = np.asarray(choose(player.params, jax.random.key(seed), states))
        assert moves.dtype == np.int32 and moves.shape == (128,)
        assert legal[np.arange(128), moves].all()


def test_random_moves_are_uniform_over_the_legal_ones(positions):
    states, legal = positions
    one = int(np.flatnonzero(legal.sum(-1) == 5)[0])
    repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf[one : one + 1], 5000, 0), states)
    player = make_player(TIC_TAC_TOE, "random", no_run)
    counts = np.bincount(jax.jit(player.choose)((), KEY, repeated), minlength=9)
    assert counts.sum() == counts[legal[one]].sum() == 5000
    assert np.sum((counts[legal[one]] - 1000) ** 2 / 1000) < 18.5  # chi-square, 4 degrees: p = 0.001


@pytest.fixture(scope="module")
def opinion(loaded):
    """A run whose network thinks of the nine squares, in every position, what PROBS says."""
    variables = jax.tree.map(jnp.zeros_like, loaded.variables)
    variables["params"]["Dense_1"]["bias"] = jnp.log(jnp.array(PROBS))
    return loaded._replace(variables=variables)


PROBS = [0.30, 0.05, 0.20, 0.10, 0.15, 0.02, 0.08, 0.04, 0.06]


def moves_of(opinion, options, after=()):
    player = run_player(TIC_TAC_TOE, opinion, "run:a", {"search": "policy"} | options)
    state = TIC_TAC_TOE.init(KEY)
    for move in after:
        state = TIC_TAC_TOE.step(state, jnp.int32(move))
    states = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], 4000, 0), state)
    return np.bincount(compiled(player.choose)(player.params, KEY, states), minlength=9) / 4000


def test_policy_alone_plays_its_likeliest_legal_move(opinion):
    np.testing.assert_array_equal(moves_of(opinion, {}), np.eye(9)[0])
    np.testing.assert_array_equal(moves_of(opinion, {}, after=(0,)), np.eye(9)[2])
    np.testing.assert_array_equal(moves_of(opinion, {}, after=(0, 2)), np.eye(9)[4])


def test_policy_alone_at_a_temperature(opinion):
    probs = np.array(PROBS)
    np.testing.assert_allclose(moves_of(opinion, {"temperature": "1"}), probs, atol=0.03)
    squared = probs**2 / (probs**2).sum()
    np.testing.assert_allclose(moves_of(opinion, {"temperature": "0.5"}), squared, atol=0.03)
    left = probs * (np.arange(9) != 0)
    np.testing.assert_allclose(moves_of(opinion, {"temperature": "1"}, after=(0,)), left / left.sum(), atol=0.03)


def test_top_p_keeps_the_likeliest_moves_that_reach_it(opinion):
    # .30 + .20 + .15 reach .6 (not .5): of those three .30 / .65, .20 / .65, .15 / .65.
    expected = np.array([0.4615, 0, 0.3077, 0, 0.2308, 0, 0, 0, 0])
    got = moves_of(opinion, {"temperature": "1", "top_p": "0.6"})
    np.testing.assert_allclose(got, expected, atol=0.03)
    assert (got[expected == 0] == 0).all()
    np.testing.assert_array_equal(moves_of(opinion, {"temperature": "1", "top_p": "0.25"}), np.eye(9)[0])
    # The temperature acts first: squared, .09 / .1742 = .517 alone reaches .5.
    np.testing.assert_array_equal(moves_of(opinion, {"temperature": "0.5", "top_p": "0.5"}), np.eye(9)[0])


@pytest.mark.parametrize("temperature", ["1e-40", "1e38"])
def test_no_temperature_makes_an_illegal_move_likely(opinion, temperature):
    got = moves_of(opinion, {"temperature": temperature}, after=(0, 1, 2, 4))
    assert got[[0, 1, 2, 4]].sum() == 0
    if float(temperature) < 1:
        assert got[3] == 1.0  # .10, the likeliest that is left
    else:
        np.testing.assert_allclose(got[[3, 5, 6, 7, 8]], 0.2, atol=0.03)


def test_search_without_exploration_is_the_same_whatever_the_key(loaded, positions):
    states, _ = positions
    for kind in ("puct", "gumbel"):
        player = run_player(TIC_TAC_TOE, loaded, "run:a", {"search": kind, "simulations": "6"})
        one, other = (compiled(player.choose)(player.params, jax.random.key(seed), states) for seed in (1, 2))
        np.testing.assert_array_equal(one, other)


def test_a_run_gives_up_where_every_move_loses(loaded):
    #   O X O
    #   . . X   X to move; O has two ways to win
    #   O . X
    state = doomed = TIC_TAC_TOE.init(KEY)
    for move in (1, 0, 5, 6, 8, 2):
        doomed = TIC_TAC_TOE.step(doomed, jnp.int32(move))
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), state, doomed)
    player = run_player(TIC_TAC_TOE, loaded, "run:a", {"simulations": "200", "resign": "0.25"})
    moves = np.asarray(compiled(player.choose)(player.params, KEY, states))
    assert moves[0] >= 0 and moves[1] == RESIGNS
    stubborn = run_player(TIC_TAC_TOE, loaded, "run:a", {"simulations": "200"})
    assert np.asarray(compiled(stubborn.choose)(stubborn.params, KEY, states)).min() >= 0


def test_uct_takes_a_win_and_stops_one():
    player = make_player(TIC_TAC_TOE, "uct:200", no_run)
    states = []
    #   X X .   X . .    X to move wins at 2; O to move must stop X at 6.
    #   O O .   X O .
    for moves in ((0, 3, 1, 4), (0, 4, 3)):
        state = TIC_TAC_TOE.init(KEY)
        for move in moves:
            state = TIC_TAC_TOE.step(state, jnp.int32(move))
        states.append(state)
    states = jax.tree.map(lambda *leaves: jnp.repeat(jnp.stack(leaves), 64, 0), *states)
    np.testing.assert_array_equal(compiled(player.choose)((), KEY, states), [2] * 64 + [6] * 64)
