"""Dice in the tree: on a game whose values plain recursion gives, and on the parts that roll them between moves."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.arena import play_match
from azjax.config import LearnerConfig, NetworkConfig, ReplayConfig, RunConfig, SearchConfig, SelfPlayConfig
from azjax.openings import random_openings
from azjax.play import Session
from azjax.players import LoadedRun, alphabeta_player, make_player
from azjax.search import TreeSearch, begin_search, game_model, gumbel_policy, num_slots, puct_policy, uct_policy
from azjax.step import Step, make_mesh
from envs.chance import num_outcomes, play_chance, start_games
from envs.check import check_game
from envs.core import RULES_BOUND, Game, absorb, check_max_plies, register_state
from envs.playback import check_records
from envs.record import read_lines, write_lines

ROOT = 0
KEY = jax.random.key(5)
ROLLS = 4
PROBS = ((0.25, 0.25, 0.4, 0.1), (0.4, 0.1, 0.25, 0.25), (0.1, 0.3, 0.6, 0.0), (0.5, 0.3, 0.2, 0.0))
STOP = (-0.3, -0.5, 0.1, -0.25)


@register_state
class GambleState:
    rolls: jax.Array  # int32[], dice rolled
    waits: jax.Array  # bool[], for dice
    roller: jax.Array  # int32[], who decides or has decided
    value: jax.Array  # float32[], player 0's, once over
    over: jax.Array  # bool[]
    moves: jax.Array  # int32[]


@dataclasses.dataclass(frozen=True)
class Gamble(Game):
    """0 stops, which is worth STOP[rolls] to who stops; 1 rolls: win, loss, the other's turn, one's own turn again.

    After four rolls without a decision the game is drawn.
    """

    max_plies: int = RULES_BOUND

    id, num_actions, max_legal_actions, observation_shape, has_chance = "gamble", 2, 2, (1, 1, 5), True

    def __post_init__(self):
        object.__setattr__(self, "max_plies", check_max_plies(self.max_plies, ROLLS))

    def init(self, rng_key):
        return GambleState(jnp.int32(0), jnp.bool_(False), jnp.int32(0), jnp.float32(0), jnp.bool_(False), jnp.int32(0))

    def step(self, state, action):
        stop = jnp.asarray(STOP, jnp.float32)[jnp.minimum(state.rolls, 3)] * (1 - 2 * state.roller)
        moved = dataclasses.replace(
            state,
            waits=action == 1,
            value=jnp.where(action == 0, stop, 0.0),
            over=action == 0,
            moves=state.moves + 1,
        )
        return absorb(self.terminated(state) | state.waits, state, moved)

    def chance_probs(self, state):
        return jnp.asarray(PROBS, jnp.float32)[jnp.minimum(state.rolls, 3)]

    def step_chance(self, state, outcome):
        won, lost = outcome == 0, outcome == 1
        rolls = state.rolls + 1
        drawn = GambleState(
            rolls,
            jnp.bool_(False),
            jnp.where(outcome == 2, 1 - state.roller, state.roller),
            (won.astype(jnp.float32) - lost) * (1 - 2 * state.roller),
            won | lost | (rolls == ROLLS),
            state.moves,
        )
        return absorb(~state.waits, state, drawn)

    def is_chance(self, state):
        return state.waits

    def legal_action_mask(self, state):
        return jnp.broadcast_to(~(self.terminated(state) | state.waits), (2,))

    def to_move(self, state):
        return state.roller

    def terminated(self, state):
        return state.over | self.truncated(state)

    def truncated(self, state):
        return ~state.over & ~state.waits & (state.moves >= self.max_plies)

    def returns(self, state):
        value = jnp.where(state.over, state.value, 0.0)
        return jnp.stack([value, -value])

    def observe(self, state):
        return jax.nn.one_hot(state.rolls, 5).reshape(1, 1, 5)


GAME = Gamble()


def exact(rolls: int) -> tuple[float, float]:
    """(value of stopping, value of rolling) to who decides after `rolls` rolls."""
    if rolls == ROLLS:
        return 0.0, 0.0
    win, loss, other, again = PROBS[rolls]
    after = max(exact(rolls + 1))
    return STOP[rolls], win - loss - other * after + again * after


def nothing(params, rng_key, states):
    """An evaluation that knows nothing."""
    return jnp.zeros((states.rolls.shape[0], 2)), jnp.zeros(states.rolls.shape[0])


MODEL = game_model(GAME, nothing)
POLICIES = {
    "puct": functools.partial(puct_policy, dirichlet_fraction=0.0),
    "gumbel": functools.partial(gumbel_policy, gumbel_scale=0.0),
    "parallel": functools.partial(gumbel_policy, gumbel_scale=0.0, parallel=True),
    "uct": functools.partial(uct_policy, exploration=0.5),
    "mctx": functools.partial(puct_policy, dirichlet_fraction=0.0, implementation="mctx"),
}


def after_rolls(number):
    states, _ = start_games(GAME, KEY, 2)
    return dataclasses.replace(states, rolls=jnp.full((2,), number, jnp.int32))


@functools.lru_cache
def found(name, rolls, simulations):
    @jax.jit
    def run(key, states):
        root, recurrent, actions, _ = begin_search(GAME, MODEL, (), key, states)
        return POLICIES[name]((), key, root, recurrent, simulations, has_chance=True), actions

    return jax.device_get(run(KEY, after_rolls(rolls)))


def test_the_game_keeps_the_contract():
    check_game(GAME)
    assert num_outcomes(GAME) == 4 and num_slots(GAME) == 4


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in ("parallel", "uct", "mctx"))) for n in POLICIES]
)
def test_searches_find_the_exact_values_of_both_moves(name):
    simulations = 1200 if name == "mctx" else 3000
    for rolls in (0,) if name == "mctx" else (0, 2):
        output, actions = found(name, rolls, simulations)
        np.testing.assert_array_equal(actions, [[0, 1, -1, -1]] * 2)  # slots: the two moves, and two left for outcomes
        stop, roll = exact(rolls)
        qvalues = output.search_tree.summary().qvalues
        visits = output.search_tree.children_visits[:, ROOT]
        assert (visits[:, 2:] == 0).all()
        assert qvalues[0, 0] == pytest.approx(stop, abs=1e-5)
        assert qvalues[0, 1] == pytest.approx(roll, abs=0.06)
        assert (output.action == int(roll > stop)).all()


def test_outcomes_are_taken_as_often_as_they_are_likely():
    tree = found("puct", 0, 3000)[0].search_tree
    chance = tree.children_index[0, ROOT, 1]
    visits = tree.children_visits[0, chance]
    assert visits.sum() > 1000
    assert (np.abs(visits - visits.sum() * np.array(PROBS[0])) < 1).all()
    # Neither the dice nor who rolls them turns the view: the move did, and its chance node is the next mover's.
    assert tree.children_discounts[0, ROOT, 1] == 1.0  # who rolled is to move until the outcome says otherwise
    nexts = tree.children_index[0, chance]
    assert tree.children_discounts[0, chance].tolist() == [0.0, 0.0, -1.0, 1.0]
    assert tree.children_rewards[0, chance].tolist() == [1.0, -1.0, 0.0, 0.0]
    assert (tree.node_visits[0, nexts] == visits).all()


def test_a_chance_node_is_worth_one_of_its_outcomes():
    """With an evaluation that knows the exact value, the raw values of chance nodes average to the roll's."""

    def knows(params, rng_key, states):
        table = jnp.array([max(exact(rolls)) for rolls in range(ROLLS + 1)], jnp.float32)
        return jnp.zeros((states.rolls.shape[0], 2)), table[states.rolls]

    model = game_model(GAME, knows)
    states, _ = start_games(GAME, KEY, 4096)
    output, _ = jax.jit(model.recurrent)((), KEY, jnp.ones(4096, jnp.int32), states)
    assert (output.discount == 1).all()
    # Won, lost, the other's turn, one's own turn again: on average exactly the value of rolling.
    values, after = np.asarray(output.value), np.float32(max(exact(1)))
    assert set(np.unique(values)) == {1.0, -1.0, -after, after}
    assert values.mean() == pytest.approx(exact(0)[1], abs=float(4 * values.std() / 64))


def test_tree_search_rolls_too():
    search = TreeSearch(GAME, MODEL, (), capacity=600)
    search.start(jax.tree.map(lambda leaf: leaf[0], after_rolls(0)))
    search.grow(400)
    look = search.look()
    assert look.action == int(exact(0)[1] > exact(0)[0]) and look.visits[2:].sum() == 0
    assert look.qvalues[1] == pytest.approx(exact(0)[1], abs=0.12)
    assert search.advance(1) and search.advance(GAME.num_actions + 3)  # the move, then the dice
    assert search.look().value == pytest.approx(max(exact(1)), abs=0.15)


CONFIG = RunConfig(
    game="gamble",
    network=NetworkConfig(width=8, blocks=1, value_width=4),
    search=SearchConfig(algorithm="gumbel", simulations=8, considered_actions=2),
    selfplay=SelfPlayConfig(lanes=16, plies=4, opening_plies=2),
    replay=ReplayConfig(plies=12),
    learner=LearnerConfig(batch=16, updates=1),
)


def test_a_step_trains_on_moves_only():
    step = Step(CONFIG, GAME, make_mesh(1))
    state = step.init(KEY)
    games = 0
    for _ in range(4):
        state, metrics = step(state)
        games += int(metrics["games"].sum())
    assert games > 16 and float(metrics["applied"].mean()) == 1 and np.isfinite(metrics["loss"]).all()
    kept = jax.tree.map(np.asarray, state.replay.positions)
    assert not kept.state.waits.any() and not np.asarray(state.lanes.state.waits).any()
    assert (kept.slot_actions < GAME.num_actions).all()


def test_records_of_matches_tell_the_dice():
    players = [make_player(GAME, word, None) for word in ("random", "uct:20")]
    match = play_match(GAME, *players, games=32, mesh=make_mesh(1), seed=1, opening_plies=1, lanes=8)
    check_records(GAME, read_lines(write_lines(match.records)))
    rolled = 0
    for record in match.records:
        state = GAME.init(KEY)
        for event in record.actions:
            if event >= GAME.num_actions:
                assert state.waits
                state = GAME.step_chance(state, jnp.int32(event - GAME.num_actions))
                rolled += 1
            else:
                assert not state.waits and not state.over
                state = GAME.step(state, jnp.int32(event))
        assert state.over and GAME.returns(state).tolist() == list(record.returns)
    assert rolled > 16
    states, played = random_openings(GAME, KEY, 64, 2)
    assert played.shape == (64, 5) and not np.asarray(states.waits).any()
    assert (np.asarray(played)[:, 1] <= 1).all() and (np.asarray(played)[:, 2] != 1).all()


def test_a_person_meets_rolled_dice():
    session = Session(GAME, make_player(GAME, "random", None), seat=0)
    session.play(1)
    assert not bool(session.state.waits) and int(session.state.rolls) == 1
    record = session.record(("person", "random"))
    assert record.actions[0] == 1 and record.actions[1] >= GAME.num_actions and len(record.actions) == 2
    check_records(GAME, [record])


def test_outcomes_are_drawn_by_their_probability():
    states, first = start_games(GAME, KEY, 20_000)
    assert (first == -1).all()
    waiting = jax.vmap(GAME.step)(states, jnp.ones(20_000, jnp.int32))
    drawn, outcomes = jax.jit(functools.partial(play_chance, GAME))(KEY, waiting)
    shares = np.bincount(outcomes, minlength=4) / 20_000
    np.testing.assert_allclose(shares, PROBS[0], atol=0.015)
    assert (drawn.rolls == 1).all()


def test_alpha_beta_is_refused():
    with pytest.raises(ValueError, match=r"alphabeta in a game with dice"):
        alphabeta_player(GAME, LoadedRun(CONFIG, {}, 0), "alphabeta:x")
