"""check_game: every game keeps the contract, and each broken rule is found."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.check import check_game
from envs.core import RULES_BOUND, Symmetry, absorb, register_state
from envs.tic_tac_toe import TicTacToe, TicTacToeState

# id: bytes a state may take
_STATE_BYTES = {
    "tic_tac_toe": 16,
    "connect_four": 24,
    "crosshair": 80,
    "black_hole": 24,
    "othello": 24,
    "hex": 128,
    "ultimate_tic_tac_toe": 40,
    "backgammon": 32,
    "chess": 1700,
    "shogi": 6000,
    "go_9x9": 2300,
    "go_13x13": 5000,
    "go_19x19": 10000,
}
# id: the symmetries that keep the starting position, where not all do; of games with chance none is replayed
_REPLAYED = {"othello": 4, "backgammon": 0, "shogi": 1}
_LONG = {"chess", "shogi", "go_13x13", "go_19x19"}  # hundreds of plies a game


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in _LONG)) for name in envs.available()]
)
def test_game_keeps_the_contract(name):
    _check_summary(name, check_game(envs.make(name), games=16, thorough=name == "tic_tac_toe"))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.record if name in _LONG else pytest.mark.slow) for name in envs.available()],
)
def test_game_keeps_the_contract_thoroughly(name):
    _check_summary(name, check_game(envs.make(name)))


def _check_summary(name, summary):
    assert summary.id == name
    assert summary.symmetries_replayed == _REPLAYED.get(name, summary.symmetries)
    assert summary.truncated == 0
    if name in _STATE_BYTES:
        assert summary.state_bytes <= _STATE_BYTES[name]


@pytest.mark.parametrize(
    ("name", "symmetries"),
    [
        ("tic_tac_toe,max_plies=4", 8),
        pytest.param("connect_four,max_plies=20", 2, marks=pytest.mark.slow),
        ("crosshair,size=2", 4),
        pytest.param("crosshair,size=3", 4, marks=pytest.mark.slow),
        pytest.param("crosshair,size=4", 4, marks=pytest.mark.slow),
        pytest.param("crosshair,size=5,diagonal_pinch=true", 4, marks=pytest.mark.slow),
        pytest.param("crosshair,size=9", 4, marks=pytest.mark.slow),
        ("black_hole,rows=2", 6),
        pytest.param("black_hole,rows=5,tie_break=none", 6, marks=pytest.mark.slow),
        pytest.param("black_hole,rows=9", 6, marks=pytest.mark.slow),
        pytest.param("black_hole,rows=5,max_plies=9", 6, marks=pytest.mark.slow),
        pytest.param("black_hole,rows=10", 6, marks=pytest.mark.slow),
        pytest.param("othello,size=4,max_plies=8", 4, marks=pytest.mark.slow),
        pytest.param("othello,size=6", 4, marks=pytest.mark.slow),
        ("hex,size=4,max_plies=5", 2),
        pytest.param("hex,size=5,swap=false", 2, marks=pytest.mark.slow),
        pytest.param("hex,size=12", 2, marks=pytest.mark.slow),
        pytest.param("ultimate_tic_tac_toe,max_plies=20", 8, marks=pytest.mark.slow),
        ("go,size=2,suicide=true", 8),
        pytest.param("go,size=5,komi=0", 8, marks=pytest.mark.slow),
        pytest.param("go,size=4,max_plies=12", 8, marks=pytest.mark.slow),
        pytest.param("backgammon,max_plies=150", 0, marks=pytest.mark.slow),
        pytest.param("shogi,max_plies=40", 1, marks=pytest.mark.slow),
    ],
)
def test_options_keep_the_contract(name, symmetries):
    summary = check_game(envs.make(name), games=16, thorough=False)
    assert summary.id == name
    assert summary.symmetries_replayed == symmetries
    assert (summary.truncated > 0) == ("max_plies" in name)


class Own(TicTacToe):
    id = "own"


class Unequal(Own):
    def returns(self, state):
        return super().returns(state) * np.array([1.0, 0.5], np.float32)


class Unscaled(Own):
    def returns(self, state):
        return super().returns(state) * 2


class Early(Own):
    def returns(self, state):
        return jnp.where(state.ply == 3, jnp.array([1.0, -1.0]), super().returns(state))


class LegalAfterTheEnd(Own):
    def legal_action_mask(self, state):
        return ~super().legal_action_mask(state)


class Stuck(Own):
    def legal_action_mask(self, state):
        return super().legal_action_mask(state) & (state.ply < 3)


class ManyMoves(Own):
    max_legal_actions = 6


class Unsorted(Own):
    def legal_actions(self, state):
        return super().legal_actions(state)[::-1]


class NotAbsorbing(Own):
    def step(self, state, action):
        after = super().step(state, action)
        return dataclasses.replace(after, ply=state.ply + jnp.int8(1))


class Endless(Own):
    def terminated(self, state):
        return state.won


class WideMask(Own):
    def legal_action_mask(self, state):
        return super().legal_action_mask(state).astype(jnp.int32)


class GrowingType(Own):
    def step(self, state, action):
        after = super().step(state, action)
        return dataclasses.replace(after, ply=after.ply.astype(jnp.int32))


class WrongPolicyIndex(Own):
    def policy_index(self, state):
        return super().policy_index(state) // 2


class WrongSymmetry(Own):
    @property
    def symmetries(self):
        identity, quarter = super().symmetries[:2]
        return (identity, Symmetry(quarter.observation, identity.permutation))


class WideSymmetry(Own):
    @property
    def symmetries(self):
        identity, quarter = super().symmetries[:2]
        return (identity, Symmetry(quarter.observation, quarter.permutation.astype(np.int32)))


class NoIdentity(Own):
    @property
    def symmetries(self):
        return super().symmetries[1:]


class LimitIsADraw(Own):
    def truncated(self, state):
        return jnp.bool_(False) & state.won


class LimitBeatsTheRules(Own):
    def truncated(self, state):
        return state.ply >= self.max_plies


class NoNames(Own):
    def action_name(self, action):
        return str(action // 2)


@register_state
class StoringState:
    game: TicTacToeState
    observation: jax.Array


@dataclasses.dataclass(frozen=True)
class Storing(Own):
    max_plies: int = RULES_BOUND

    def init(self, rng_key):
        return self._with_observation(TicTacToe.init(self, rng_key))

    def step(self, state, action):
        return absorb(self.terminated(state), state, self._with_observation(TicTacToe.step(self, state.game, action)))

    def _with_observation(self, state):
        return StoringState(state, TicTacToe.observe(self, state))

    def observe(self, state):
        return state.observation

    def legal_action_mask(self, state):
        return TicTacToe.legal_action_mask(self, state.game)

    def to_move(self, state):
        return TicTacToe.to_move(self, getattr(state, "game", state))

    def terminated(self, state):
        return TicTacToe.terminated(self, getattr(state, "game", state))

    def truncated(self, state):
        return TicTacToe.truncated(self, state.game)

    def returns(self, state):
        return TicTacToe.returns(self, state.game)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Unequal, "returns: game .* expected a sum of 0"),
        (Unscaled, r"returns: game .* expected values in \[-1, 1\]"),
        (Early, "returns: game 0 after 3 events: got .* before the end"),
        (LegalAfterTheEnd, "legal_action_mask"),
        (Stuck, "legal_action_mask: game 0 after 3 events: no legal move"),
        (ManyMoves, "max_legal_actions: game 0 after 0 events: 9 legal moves, expected 6 at most"),
        (Unsorted, "legal_actions: game 0 after 0 events"),
        (NotAbsorbing, r"absorbing: game .* changes the state.ply"),
        (Endless, "legal_action_mask: game .* no legal move, and not terminated"),
        (WideMask, r"legal_action_mask: type: got int32\[9\], expected bool\[9\]"),
        (GrowingType, r"step: state.ply: the type changes from int8\[\] to int32\[\]"),
        (WrongPolicyIndex, "policy_index: game 0 after 0 events: .* expected a permutation"),
        (WrongSymmetry, "symmetries: symmetry 1 after . events"),
        (WideSymmetry, r"symmetries: symmetry 1: its permutation is int32\[9\], expected int16\[9\]"),
        (NoIdentity, "symmetries: symmetry 0: expected the identity first"),
        (LimitIsADraw, "truncated: max_plies=.: not truncated and terminated from the limit on"),
        (LimitBeatsTheRules, "truncated: "),
        (NoNames, "parse_action: '0'"),
        (Storing, "state: .observation: it holds the observation"),
    ],
)
def test_broken_game_is_found(broken, message):
    with pytest.raises(AssertionError, match=f"own: {message}"):
        check_game(broken(), games=8, thorough=False)


def test_game_equal_to_none_of_its_name_is_found():
    @dataclasses.dataclass(frozen=True)
    class Renamed(TicTacToe):
        id = "connect_four"

    with pytest.raises(AssertionError, match=r"id: declaration: envs\.make"):
        check_game(Renamed())


def test_moves_and_results_are_counted():
    summary = check_game(envs.make("black_hole", rows=2), games=8, thorough=False)
    assert (summary.games, summary.positions, summary.longest, summary.draws) == (8, 16, 2, 8)
    assert summary.mean_plies == 2.0
    assert summary.mean_legal_actions == 2.5
    assert summary.first_player_share == 0.5


def test_chance_keeps_the_contract(dice_game):
    summary = check_game(dice_game, games=64)
    assert (summary.positions, summary.longest, summary.mean_plies) == (256, 4, 4.0)


def test_chances_that_are_no_probabilities_are_found(dice_game):
    class Loaded(type(dice_game)):
        def chance_probs(self, state):
            return jnp.array([0.5, 0.75], jnp.float32)

    with pytest.raises(AssertionError, match=r"dice: chance_probs: game 0 after 1 events: got \[0.5"):
        check_game(Loaded())


def _moves_while_rolling(dice):
    class Broken(dice):
        def step(self, state, action):
            return dataclasses.replace(super().step(state, action), ply=state.ply + state.rolling.astype(jnp.int8))

    return Broken()


def _rolls_before_the_move(dice):
    class Broken(dice):
        def step_chance(self, state, outcome):
            return super().step_chance(dataclasses.replace(state, rolling=~self.terminated(state)), outcome)

    return Broken()


def _rolls_twice(dice):
    class Broken(dice):
        def step_chance(self, state, outcome):
            after = super().step_chance(state, outcome)
            again = state.rolling & (outcome == 1)
            return dataclasses.replace(after, rolling=again, ply=jnp.where(again, state.ply, after.ply))

    return Broken()


def _legal_while_rolling(dice):
    class Broken(dice):
        def legal_action_mask(self, state):
            return jnp.broadcast_to(~self.terminated(state), (2,))

    return Broken()


def _undeclared(dice):
    class Broken(dice):
        has_chance = False

    return Broken()


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (_moves_while_rolling, r"is_chance: game 0 after 1 events: step in a chance state changes the state\.ply"),
        (_rolls_before_the_move, r"is_chance: game 0 after 0 events: step_chance where none is due changes the state"),
        (_rolls_twice, "is_chance: game . after 2 events: an outcome is followed by another"),
        (_legal_while_rolling, "legal_action_mask: game 0 after 1 events: 2 legal moves in a chance state"),
        (_undeclared, "is_chance: game 0 after 1 events: a chance state, and has_chance says"),
    ],
)
def test_chance_at_the_wrong_time_is_found(broken, message, dice_game):
    with pytest.raises(AssertionError, match=f"dice: {message}"):
        check_game(broken(type(dice_game)), games=8, thorough=False)
