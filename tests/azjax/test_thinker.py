"""An agent that follows a game: positions come and go, and what it knows of them stays where it can."""

import jax
import pytest

import envs
from azjax import network
from azjax.arena import play_match
from azjax.config import NetworkConfig, RunConfig
from azjax.opponents import ClockPlayer, any_player
from azjax.outside import Question
from azjax.players import LoadedRun, make_player
from azjax.step import make_mesh
from azjax.thinker import Thinker, node_bytes
from envs.backgammon import Backgammon
from envs.playback import check_records
from envs.tic_tac_toe import GAME

CONFIG = RunConfig(game="tic_tac_toe", network=NetworkConfig(width=8, blocks=1, value_width=4))


@pytest.fixture(scope="module")
def agent() -> LoadedRun:
    return LoadedRun(CONFIG, network.init(CONFIG.network, GAME, jax.random.key(0)), 0)


@pytest.fixture(scope="module")
def one_thinker(agent) -> Thinker:
    return Thinker(GAME, agent, megabytes=1)


@pytest.fixture
def thinker(one_thinker) -> Thinker:
    one_thinker.forget()
    one_thinker.use_megabytes(1)
    return one_thinker


def grown(thinker: Thinker, simulations: int) -> Thinker:
    while simulations:
        simulations -= thinker.think(simulations)
    return thinker


def test_a_win_in_one_is_found_and_named(thinker):
    thinker.place(None, ["a1", "a2", "b1", "b2"])  # c1 wins
    thought = grown(thinker, 60).thought(3)
    assert thought.lines[0].moves == ("c1",) and thought.lines[0].q == 1.0 and thought.value > 0.5
    assert thought.simulations == 60 and len(thought.lines) == 3
    thinker.place(None, ["a1", "a2", "b1", "b2", "c1"])
    assert thinker.over and thinker.room == 0 and thinker.any_move() is None


def test_what_is_known_of_a_line_stays_known(thinker):
    thinker.place(None, ["b2"])
    best = grown(thinker, 80).thought().lines[0]
    thinker.place(None, ["b2", *best.moves[:2]])
    kept = thinker.thought().simulations
    assert 0 < kept < best.visits
    grown(thinker, 10)
    assert thinker.thought().simulations == kept + 10
    thinker.place(None, ["b2"])  # back: nothing is known any more
    assert thinker.thought().simulations == 0 and len(thinker.thought().lines) == 1


def test_before_any_simulation_the_prior_says_a_move(thinker):
    (line,) = thinker.thought(5).lines
    assert line.visits == 0 and 0 < line.prior < 1 and len(line.moves) == 1


@pytest.mark.parametrize(("words", "message"), [(["b2", "b2"], "move 2: got 'b2'"), (["b2", "x9"], "got 'x9'")])
def test_a_move_that_is_none_leaves_the_position(thinker, words, message):
    thinker.place(None, ["a1"])
    with pytest.raises(ValueError, match=message):
        thinker.place(None, words)
    assert thinker.words == ("a1",) and thinker.to_move == 1


def test_it_thinks_about_some_moves_alone(thinker):
    thinker.place(None, ["b2"])
    thinker.think_about(["a1", "c3"])
    assert {line.moves[0] for line in grown(thinker, 30).thought(9).lines} == {"a1", "c3"}
    with pytest.raises(ValueError, match="not legal"):
        thinker.think_about(["b2"])
    thinker.think_about(None)
    assert len(grown(thinker, 30).thought(9).lines) > 2


def test_a_full_tree_adds_nothing(thinker, one_thinker):
    assert one_thinker.capacity == 2**20 // node_bytes(GAME, None)
    thinker.use_megabytes(0)  # the fewest nodes there are
    assert thinker.capacity == 64
    grown(thinker, 64)
    assert thinker.think(5) == 0 and thinker.room == 0
    thinker.drop()
    assert thinker.room == 64


class Slow:
    """A search whose simulations take time by a clock of its own: each the same, and each call something besides."""

    room = 10**9

    def __init__(self, seconds: float, besides: float = 0.002):
        self.seconds, self.besides, self.now = seconds, besides, 0.0

    def grow(self, simulations: int) -> int:
        self.now += self.besides + simulations * self.seconds
        return simulations


@pytest.mark.parametrize("seconds", [1e-5, 0.001, 0.03, 0.4])
def test_slices_keep_to_their_time(agent, monkeypatch, seconds):
    search = Slow(seconds)
    thinker = Thinker(GAME, agent, megabytes=1, clock=lambda: search.now)
    monkeypatch.setattr(thinker, "_search", search)
    monkeypatch.setattr(thinker, "_is_warm", True)
    monkeypatch.setattr(Thinker, "room", 10**9)
    took = []
    for _ in range(20):
        before = search.now
        thinker.think()
        took.append(search.now - before)
    # A simulation that takes longer than a slice is one; a slice is used where there is something to use.
    assert max(took[5:]) <= max(0.1, seconds + 0.01) and took[-1] >= min(0.03, 1024 * seconds)
    for left in (0.05, 0.02, 0.001):
        before = search.now
        thinker.think(seconds=left)
        assert search.now - before <= max(left, 0.02, seconds) + 0.01
    search.seconds /= 8  # now it may do more at a time
    for _ in range(12):
        thinker.think()
    assert thinker.think() >= min(1024, 4 * 0.03 / seconds)


def test_waves_count_as_simulations_do(thinker, one_thinker):
    try:
        one_thinker.use_wave(4)
        thinker.place(None, ["a1", "a2", "b1", "b2"])
        assert thinker.think(5) == 5  # a wave, and one more
        thought = grown(thinker, 55).thought(3)
        assert thought.lines[0].moves == ("c1",) and thought.simulations == 60
        assert thinker.think() % 4 == 0
    finally:
        one_thinker.use_wave(1)


def test_dice_are_refused(agent):
    with pytest.raises(ValueError, match="expected one without dice"):
        Thinker(Backgammon(), agent)


def question(thinker, *moves):
    thinker.place(None, moves)
    return Question(0, 0, moves, thinker.state, None)


@pytest.fixture(scope="module")
def by_the_clock(agent) -> ClockPlayer:
    return ClockPlayer(GAME, agent, "agent", seconds=0.01, resign=-0.9, megabytes=1)


def test_an_agent_by_the_clock_plays_and_gives_up(by_the_clock, thinker, monkeypatch):
    player = by_the_clock
    monkeypatch.setattr(player._thinker, "think_for", lambda seconds: grown(player._thinker, 300))
    wins = player.ask([question(thinker, "a1", "a2", "b1", "b2")])[0]
    assert wins.action == GAME.parse_action("c1")
    # X has three lines open: whatever O does, it loses.
    lost = player.ask([question(thinker, "a1", "b1", "c3", "c2", "a3")])[0]
    assert lost.action is None and lost.end == "resignation" and lost.reason.startswith("gave up at")


def test_the_word_of_an_agent_by_the_clock(agent):
    player = any_player(GAME, "run:a@5,seconds=0.01", lambda directory, step: agent if step == 5 else None)
    assert isinstance(player, ClockPlayer) and player.name == "run:a@5,seconds=0.01"


def test_a_match_by_the_clock(by_the_clock):
    match = play_match(GAME, by_the_clock, make_player(GAME, "random", None), games=4, mesh=make_mesh(1))
    assert match.games == 4 and match.wins >= match.losses
    check_records(GAME, match.records)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("run:a,seconds=0", "got seconds '0'"),
        ("run:a,seconds=1,simulations=4", "got simulations with seconds, expected only resign beside it"),
        ("run:,seconds=1", "expected run:DIRECTORY"),
    ],
)
def test_wrong_words_are_refused(agent, word, message):
    with pytest.raises(ValueError, match=message):
        any_player(envs.make("tic_tac_toe"), word, lambda directory, step: agent)
