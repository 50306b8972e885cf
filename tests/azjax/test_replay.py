"""Replay against a plain list of games."""

import collections
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.replay import draw, start_replay, write
from azjax.selfplay import PlyResult
from azjax.types import Position

LANES, MAX_PLIES = 5, 6


def ply(ids, movers, over, truncated, returns) -> PlyResult:
    return PlyResult(
        position=Position(
            state=jnp.asarray(ids, jnp.int32),
            search_weights=jnp.asarray(ids, jnp.float16)[:, None] % 7,
            root_value=jnp.asarray(ids, jnp.float32) / 1000,
            mover=jnp.asarray(movers, jnp.int8),
        ),
        over=jnp.asarray(over, bool),
        truncated=jnp.asarray(truncated, bool),
        returns=jnp.asarray(returns, jnp.float32),
        finite=jnp.ones(len(over), bool),
    )


def empty(plies=MAX_PLIES + 1, lanes=LANES):
    position = ply(*np.zeros((4, lanes)), np.zeros((lanes, 2))).position
    return start_replay(position, plies, max_plies=MAX_PLIES)


class Twin:
    """Each lane a list of its last L plies: [id, mover, z or None while unfinished, has an outcome]."""

    def __init__(self, plies):
        self.lanes = [collections.deque(maxlen=plies) for _ in range(LANES)]
        self.games = [[] for _ in range(LANES)]

    def write(self, ids, movers, over, truncated, returns):
        for lane in range(LANES):
            row = [int(ids[lane]), int(movers[lane]), None, False]
            self.lanes[lane].append(row)
            self.games[lane].append(row)
            if over[lane]:
                for played in self.games[lane]:
                    played[2] = float(returns[lane][played[1]])
                    played[3] = not truncated[lane]
                self.games[lane] = []

    def finished(self):
        """{id: (z, has an outcome)} of all that may be drawn."""
        return {row[0]: (row[2], row[3]) for lane in self.lanes for row in lane if row[2] is not None}


def random_plies(seed, number):
    """Games of 1 to 6 plies with random movers, each lane its own; one lane of long games, one of short."""
    rng = np.random.default_rng(seed)
    left = np.ones(LANES, int)
    for index in range(number):
        new = left == 0
        left = np.where(new, rng.integers(1, MAX_PLIES + 1, LANES), left)
        left[0] = MAX_PLIES if new[0] else left[0]
        left[1] = 1
        over = left == 1
        truncated = over & (rng.random(LANES) < 0.2)
        value = np.where(over & ~truncated, rng.choice([-1.0, 0.0, 1.0, 0.5], LANES), 0)
        yield index * LANES + np.arange(LANES), rng.integers(0, 2, LANES), over, truncated, np.stack([value, -value], 1)
        left = left - 1


WRITE = jax.jit(write)
DRAW = jax.jit(draw, static_argnums=2)


@pytest.mark.parametrize("plies", [MAX_PLIES + 1, 16])
def test_what_is_drawn_is_what_a_list_of_finished_games_holds(plies):
    replay, twin = empty(plies), Twin(plies)
    seen = set()
    for number, one in enumerate(random_plies(plies, 60)):
        replay = WRITE(replay, ply(*one))
        twin.write(*one)
        drawn = jax.device_get(DRAW(replay, jax.random.key(number), 512))
        finished = twin.finished()
        assert drawn.ready == bool(finished)
        if not finished:
            continue
        drawn_ids = drawn.position.state
        assert set(drawn_ids.tolist()) <= set(finished)
        seen |= {(number, position) for position in drawn_ids.tolist()}
        z, has_outcome = np.array([finished[position] for position in drawn_ids.tolist()]).T
        np.testing.assert_array_equal(drawn.outcome, z.astype(np.float32))
        np.testing.assert_array_equal(drawn.has_outcome, has_outcome.astype(bool))
        np.testing.assert_array_equal(drawn.position.search_weights[:, 0], drawn_ids % 7)
        np.testing.assert_allclose(drawn.position.root_value, drawn_ids / 1000, rtol=1e-6)
        assert len(set(drawn_ids.tolist())) >= 0.9 * len(finished)  # at most 80, so 512 draws miss few if any
    assert number == 59 and len(seen) > 1000


def test_positions_are_drawn_uniformly():
    replay, twin = empty(16), Twin(16)
    for one in random_plies(3, 40):
        replay = WRITE(replay, ply(*one))
        twin.write(*one)
    finished = sorted(twin.finished())
    ids = np.asarray(DRAW(replay, jax.random.key(0), 40_000).position.state)
    counts = np.array([(ids == position).sum() for position in finished])
    assert counts.sum() == 40_000
    expected = 40_000 / len(finished)
    degrees = len(finished) - 1
    assert degrees > 50
    # Within 4 standard deviations of a chi-square variable with so many degrees of freedom.
    assert abs(np.sum((counts - expected) ** 2 / expected) - degrees) < 4 * np.sqrt(2 * degrees)


def test_nothing_is_ready_until_a_game_is_finished():
    replay = empty()
    assert not DRAW(replay, jax.random.key(0), 512).ready
    unfinished = np.zeros(LANES, bool)
    replay = WRITE(replay, ply(np.arange(LANES), np.zeros(LANES), unfinished, unfinished, np.zeros((LANES, 2))))
    assert not DRAW(replay, jax.random.key(0), 512).ready
    over = unfinished.copy()
    over[3] = True
    returns = np.zeros((LANES, 2))
    returns[3] = [1, -1]
    replay = WRITE(replay, ply(100 + np.arange(LANES), np.ones(LANES), over, unfinished, returns))
    drawn = DRAW(replay, jax.random.key(0), 512)
    assert drawn.ready
    assert set(drawn.position.state.tolist()) == {3, 103}
    z = np.asarray(drawn.outcome)[np.asarray(drawn.position.state) == 3]
    assert (z == 1).all()
    z = np.asarray(drawn.outcome)[np.asarray(drawn.position.state) == 103]
    assert (z == -1).all()


def test_a_ring_that_cannot_hold_a_whole_game_is_refused_with_the_number():
    message = "replay.plies: got 6, expected at least 7 (a game has up to 6 plies)"
    with pytest.raises(ValueError, match=re.escape(message)):
        empty(plies=6)
    assert empty(plies=7).outcome.shape == (7, LANES)


def test_a_game_of_the_longest_length_fits_the_smallest_ring():
    """Seven rows, games of six plies: a finished game is whole, with the ply that came after it beside it."""
    replay = empty()
    nobody = np.zeros(LANES, bool)
    for number in range(6):
        over = np.full(LANES, number == 5)
        one = ply(np.full(LANES, number), np.full(LANES, number % 2), over, nobody, np.full((LANES, 2), [1.0, -1.0]))
        replay = WRITE(replay, one)
    replay = WRITE(replay, ply(np.full(LANES, 6), np.zeros(LANES), nobody, nobody, np.zeros((LANES, 2))))
    drawn = DRAW(replay, jax.random.key(0), 512)
    assert set(drawn.position.state.tolist()) == {0, 1, 2, 3, 4, 5}
    np.testing.assert_array_equal(drawn.outcome, np.where(np.asarray(drawn.position.state) % 2 == 0, 1, -1))
