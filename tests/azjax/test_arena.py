import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.arena import play_match
from azjax.players import RESIGNS, Player, make_player
from azjax.step import make_mesh
from azjax.tournament import match_json, pair_results
from envs.playback import check_records
from envs.tic_tac_toe import GAME as TIC_TAC_TOE
from envs.tic_tac_toe import TicTacToe

KEY = jax.random.key(0)
LANES = 12
"""Games side by side; the same in most tests, for the players' programs are compiled for it."""


def no_run(directory, step):
    raise AssertionError("no run is needed")


def lowest(params, rng_key, states):
    """Plays the legal square with the lowest number."""
    return jnp.argmax(jax.vmap(TIC_TAC_TOE.legal_action_mask)(states), axis=-1).astype(jnp.int32)


def highest(params, rng_key, states):
    legal = jax.vmap(TIC_TAC_TOE.legal_action_mask)(states)
    return (8 - jnp.argmax(legal[:, ::-1], axis=-1)).astype(jnp.int32)


LOW, HIGH = Player("low", lowest, ()), Player("high", highest, ())
RANDOM = make_player(TIC_TAC_TOE, "random", no_run)


@pytest.fixture(scope="module")
def mesh():
    return make_mesh(1)


def replayed(game, record):
    """The returns of a record's moves, each checked to be legal."""
    state = game.init(KEY)
    for number, move in enumerate(record.actions):
        assert not bool(game.terminated(state)), number
        assert bool(game.legal_action_mask(state)[move]), (number, move)
        state = game.step(state, jnp.int32(move))
    assert bool(game.terminated(state))
    return tuple(np.asarray(game.returns(state)).tolist())


def test_scripted_players_from_the_empty_board(mesh):
    match = play_match(TIC_TAC_TOE, LOW, HIGH, games=2, mesh=mesh, opening_plies=0)
    first, second = match.records
    # low takes 0, 1, 2 before high has 8, 7, 6; with seats exchanged it is high who is first.
    assert first.actions == (0, 8, 1, 7, 2) and first.players == ("low", "high")
    assert second.actions == (8, 0, 7, 1, 6) and second.players == ("high", "low")
    assert first.returns == second.returns == (1.0, -1.0)
    assert (match.wins, match.draws, match.losses, match.games, match.distinct) == (1, 0, 1, 2, 2)
    assert (match.game, match.a, match.b) == ("tic_tac_toe", "low", "high")
    assert not first.truncated and first.opening_plies == 0


def test_results_are_from_the_first_named_players_side(mesh):
    """Against low, who never blocks, a player who takes the first win it sees wins from both seats."""
    one = play_match(TIC_TAC_TOE, make_player(TIC_TAC_TOE, "uct:40", no_run), LOW, games=24, mesh=mesh, lanes=LANES)
    assert one.wins > 18 and one.losses < 3
    other = play_match(TIC_TAC_TOE, LOW, make_player(TIC_TAC_TOE, "uct:40", no_run), games=24, mesh=mesh, lanes=LANES)
    assert other.losses > 18 and other.wins < 3
    for match in (one, other):
        assert match.wins + match.draws + match.losses == match.games == 24


@pytest.fixture(scope="module")
def many(mesh):
    """More games than lanes."""
    return play_match(TIC_TAC_TOE, RANDOM, LOW, games=60, mesh=mesh, seed=3, opening_plies=2, lanes=LANES)


def test_every_game_is_played_by_the_rules_and_scored_by_its_moves(many):
    assert len(many.records) == many.games == 60
    score = {1.0: 0, 0.0: 0, -1.0: 0}
    check_records(TIC_TAC_TOE, many.records)
    for number, record in enumerate(many.records):
        returns = replayed(TIC_TAC_TOE, record)
        assert record.returns == returns
        seat_of_a = number % 2
        assert record.players == (("random", "low") if seat_of_a == 0 else ("low", "random"))
        score[returns[seat_of_a]] += 1
        # The scripted player did what it does.
        for ply in range(record.opening_plies, len(record.actions)):
            if ply % 2 != seat_of_a:
                taken = set(record.actions[:ply])
                assert record.actions[ply] == min(set(range(9)) - taken)
    assert (many.wins, many.draws, many.losses) == (score[1.0], score[0.0], score[-1.0])
    assert min(many.wins, many.losses) > 5


def test_each_opening_is_played_from_both_seats(many):
    openings = []
    for one, other in zip(many.records[::2], many.records[1::2], strict=True):
        assert one.opening_plies == other.opening_plies == 2
        assert one.actions[:2] == other.actions[:2]
        assert one.players == other.players[::-1]
        openings.append(one.actions[:2])
    assert len(set(openings)) > 15


def test_distinct_games_are_counted_by_their_moves(many, mesh):
    assert many.distinct == len({record.actions for record in many.records}) > 40
    # Two players without chance and the same opening: ten games of two kinds, and of one where both play alike.
    match = play_match(TIC_TAC_TOE, LOW, HIGH, games=10, mesh=mesh, opening_plies=0)
    assert (match.wins, match.losses, match.distinct) == (5, 5, 2)
    match = play_match(TIC_TAC_TOE, LOW, Player("also low", lowest, ()), games=10, mesh=mesh, opening_plies=0)
    assert (match.wins, match.losses, match.distinct) == (5, 5, 1)


def test_the_same_seed_gives_the_same_games(many, mesh):
    again = play_match(TIC_TAC_TOE, RANDOM, LOW, games=60, mesh=mesh, seed=3, opening_plies=2, lanes=LANES)
    assert again.records == many.records
    other = play_match(TIC_TAC_TOE, RANDOM, LOW, games=60, mesh=mesh, seed=4, opening_plies=2, lanes=LANES)
    assert other.records != many.records


def test_openings_never_end_a_game(mesh):
    match = play_match(TIC_TAC_TOE, RANDOM, RANDOM, games=64, mesh=mesh, opening_plies=9, lanes=LANES)
    assert {record.opening_plies for record in match.records} <= {4, 5, 6, 7, 8}
    assert len({record.opening_plies for record in match.records}) > 2
    for record in match.records:
        assert len(record.actions) > record.opening_plies
        replayed(TIC_TAC_TOE, record)


def test_several_devices_play_too():
    match = play_match(TIC_TAC_TOE, RANDOM, LOW, games=30, mesh=make_mesh(8), opening_plies=1, lanes=10)
    assert match.games == len(match.records) == 30
    for record in match.records:
        assert record.returns == replayed(TIC_TAC_TOE, record)
    # Each device draws for itself: equal positions on two of them do not get equal moves.
    assert match.distinct > 20


def test_each_device_is_given_its_share_of_the_games():
    seen = []

    def choose(params, rng_key, states):
        seen.append(states.ply.shape)
        return LOW.choose(params, rng_key, states)

    player = LOW._replace(choose=choose)
    match = play_match(TIC_TAC_TOE, player, RANDOM, games=32, mesh=make_mesh(8))
    assert match.games == 32
    # Of 32 lanes half are to be moved by each player, two on each of eight devices.
    assert set(seen) == {(2,)}


def test_players_who_move_twice_running(double_turns, mesh):
    def always(action):
        return lambda params, rng_key, states: jnp.full(states.ply.shape, action, jnp.int32)

    striker, waiter = Player("striker", always(1), ()), Player("waiter", always(0), ())
    match = play_match(double_turns, striker, waiter, games=2, mesh=mesh, opening_plies=0)
    assert [record.actions for record in match.records] == [(1, 1), (0, 0, 1, 1)]
    assert [record.returns for record in match.records] == [(1.0, -1.0), (-1.0, 1.0)]
    assert (match.wins, match.draws, match.losses) == (2, 0, 0)
    match = play_match(double_turns, waiter, striker, games=4, mesh=mesh, opening_plies=0)
    assert (match.wins, match.draws, match.losses) == (0, 0, 4)
    # A wait is behind the players: whoever is first cannot win its turn any more, and the second does if it strikes.
    match = play_match(double_turns, striker, waiter, games=8, mesh=mesh, opening_plies=1)
    for number, record in enumerate(match.records):
        striker_wins = record.actions[0] == 1 or number % 2 == 1
        assert record.returns[number % 2] == (1.0 if striker_wins else 0.0)


def test_a_game_that_is_cut_off_is_a_draw_and_says_so(mesh):
    game = TicTacToe(max_plies=5)
    match = play_match(game, HIGH, RANDOM, games=40, mesh=mesh)
    check_records(game, match.records)
    cut = [record for record in match.records if record.truncated]
    assert cut and match.draws == len(cut) < 40
    for record in match.records:
        assert record.truncated == (record.returns == (0.0, 0.0)) and len(record.actions) <= 5


def quits(params, rng_key, states):
    """Plays the lowest square twice, then gives up."""
    return jnp.where(states.ply >= 4, RESIGNS, lowest(params, rng_key, states))


def test_who_gives_up_loses_in_place_of_a_move(mesh):
    match = play_match(TIC_TAC_TOE, Player("quits", quits, ()), RANDOM, games=40, mesh=mesh, lanes=LANES)
    given_up = [(number, record) for number, record in enumerate(match.records) if record.end == "resignation"]
    assert len(given_up) > 30 and match.losses >= len(given_up)
    for number, record in given_up:
        seat = number % 2
        assert record.return_of(seat) == -1.0 and len(record.actions) == 4 + seat
    check_records(TIC_TAC_TOE, match.records)
    assert sum(row["games"] for row in match_json(match)["given_up"]) == len(given_up)
    # Ratings count it as what it is.
    assert sum(result.losses + result.wins for result in pair_results(match.records)) >= len(given_up)


@pytest.mark.parametrize("games", [0, 1, 7, -2])
def test_an_odd_number_of_games_is_refused(mesh, games):
    with pytest.raises(ValueError, match=re.escape(f"games: got {games}, expected an even number of at least 2")):
        play_match(TIC_TAC_TOE, LOW, HIGH, games=games, mesh=mesh)


def test_progress_is_told(mesh):
    told = []
    play_match(TIC_TAC_TOE, LOW, HIGH, games=6, mesh=mesh, lanes=2, on_progress=lambda *both: told.append(both))
    assert told[-1] in ((6, 6), (5, 6), (4, 6)) and told == sorted(told)


def test_uct_beats_random(mesh):
    match = play_match(
        TIC_TAC_TOE, make_player(TIC_TAC_TOE, "uct:40", no_run), RANDOM, games=100, mesh=mesh, lanes=LANES
    )
    assert (match.wins + match.draws / 2) / 100 > 0.8
    assert match.distinct > 50


@pytest.mark.slow
def test_intervals_of_a_match_repeated_with_other_seeds_cover_its_score(mesh):
    """Of 60 matches with seeds of their own, the intervals hold the score of all of them together."""
    uct = make_player(TIC_TAC_TOE, "uct:8", no_run)
    scores = []
    for seed in range(60):
        match = match_json(play_match(TIC_TAC_TOE, uct, RANDOM, games=50, mesh=mesh, seed=seed, lanes=50))
        scores.append((match["score"], *match["ci95"]))
    pooled = np.mean([score for score, _, _ in scores])
    covered = np.mean([lo <= pooled <= hi for _, lo, hi in scores])
    print(f"{covered:.3f} of 60 intervals hold {pooled:.3f}")
    assert covered >= 0.88  # 95 % of 60: below 53 by chance once in a hundred times
