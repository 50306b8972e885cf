"""Shares of moves that keep the exact value: by our solver for tic-tac-toe, by bitbully's for Connect Four."""

import contextlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import oracle as oracle_file
from azjax.arena import play_match
from azjax.expansion import facts, random_positions, rows, size
from azjax.opponents import any_player
from azjax.oracle import oracle
from azjax.perfect import PlyShare, _spread, kept_table, kept_values
from azjax.players import Player, make_player
from azjax.step import make_mesh
from azjax.tactics import find_wins, wins_in_one
from envs.backgammon import Backgammon
from envs.connect_four import ConnectFour
from envs.tic_tac_toe import GAME


def lowest(params, rng_key, states):
    return jnp.argmax(jax.vmap(GAME.legal_action_mask)(states), axis=-1).astype(jnp.int32)


def test_who_knows_everything_keeps_everything():
    solver = make_player(GAME, "solver", lambda directory, step: None)
    with oracle(GAME) as values:
        *plies, everything = kept_values(GAME, solver, values, make_mesh(1), positions=400)
    assert [share.ply for share in plies] == list(range(9)) and everything.ply is None
    assert everything.kept == everything.positions == sum(share.positions for share in plies) == 400
    assert everything.critical_kept == everything.critical > 100
    assert plies[0] == PlyShare(ply=0, positions=1, kept=1, critical=0, critical_kept=0)  # every first move draws
    assert plies[1].positions == 9 and plies[1].critical == 9  # every first move can be answered wrongly


def test_who_plays_the_first_free_square_keeps_what_it_happens_to_keep():
    with oracle(GAME) as values:
        *plies, everything = kept_values(GAME, Player("lowest", lowest, ()), values, make_mesh(1), positions=4000)
        found = random_positions(GAME, 1000, 0)
        worth = values(found.states)
    best = worth.max(1)
    moves = facts(GAME, found.states).legal.argmax(1)
    kept = worth[np.arange(len(best)), moves] == best
    assert everything.positions == len(best) and everything.kept == kept.sum() < everything.positions
    assert [share.kept for share in plies] == [int(kept[found.ply == ply].sum()) for ply in range(9)]
    said = everything.to_json()
    assert said["share"] == everything.kept / everything.positions
    assert said["ci95"][0] < said["share"] < said["ci95"][1]
    assert plies[0].to_json()["critical_share"] is None
    assert kept_table(plies, "lowest").row_count == 9


def test_positions_are_spread_over_the_plies():
    plies = np.repeat([0, 1, 2], [1, 50, 500])
    chosen = _spread(plies, 41, np.random.default_rng(0))
    assert np.bincount(plies[chosen]).tolist() == [1, 20, 20] and len(set(chosen.tolist())) == 41


def test_dice_have_no_oracle():
    with pytest.raises(ValueError, match="which has dice"), oracle(Backgammon()):
        pass


# ---- Connect Four, by bitbully in a process of its own

FOUR = ConnectFour()


def after(columns: str):
    state = FOUR.init(jax.random.key(0))
    for column in columns:
        state = FOUR.step(state, jnp.int32(int(column) - 1))
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)


def test_connect_fours_known_values():
    pytest.importorskip("bitbully")
    with oracle(FOUR) as values:
        # Allis 1988: the middle wins, its neighbours draw, the rest lose.
        assert values(after(""))[0].tolist() == [-1, -1, 0, 1, 0, -1, -1]
        # After the middle every answer loses, as does the middle's own after the edge for the first player.
        assert values(after("4"))[0].tolist() == [-1] * 7
        full = values(after("444444"))[0]
        assert np.isneginf(full[3]) and np.isfinite(full[[0, 1, 2, 4, 5, 6]]).all()
        one, _ = find_wins(FOUR, 30, games=64, rounds=2)
        assert (values(one.states)[one.winning] == 1).all()
        # Whose turn it is and where up is: wins in one by our rules are wins, the others' moves are none.
        states = random_positions(FOUR, 40, 1).states
        states = rows(states, np.arange(0, size(states), 20))
        legal = facts(FOUR, states).legal
        worth = values(states)
        np.testing.assert_array_equal(np.isneginf(worth), ~legal)
        assert (worth[wins_in_one(FOUR, states, legal)] == 1).all()


WITHOUT = "import sys; sys.modules['bitbully'] = None; from azjax.connect_four_program import main; sys.exit(main())"


def test_without_bitbully_one_line_says_so(monkeypatch):
    monkeypatch.setattr(oracle_file, "_COMMAND", (sys.executable, "-c", WITHOUT))
    wanted = r"^solver: connect_four needs the package bitbully, which is not installed here; pip install bitbully$"
    with pytest.raises(ValueError, match=wanted), oracle(FOUR):
        pass


def test_a_program_that_fails_is_no_missing_package(monkeypatch):
    monkeypatch.setattr(oracle_file, "_COMMAND", (sys.executable, "-c", "raise SystemExit(5)"))
    with pytest.raises(RuntimeError, match="ended with 5"), oracle(FOUR):
        pass


def test_a_board_of_other_rules_is_refused():
    wanted = r"solver: got connect_four,max_plies=9, expected connect_four without options"
    with pytest.raises(ValueError, match=wanted), oracle(ConnectFour(max_plies=9)):
        pass


def test_the_solver_of_connect_four_plays_and_wins_what_is_won():
    pytest.importorskip("bitbully")
    player = any_player(FOUR, "solver", lambda directory, step: None)
    random = make_player(FOUR, "random", lambda directory, step: None)
    with contextlib.closing(player):
        match = play_match(FOUR, player, random, games=8, mesh=make_mesh(1), opening_plies=0, lanes=8)
    # From the empty board the first player wins with perfect play.
    assert all(record.return_of(0) == 1.0 for record in match.records[::2]) and match.distinct == 8
    assert all(record.actions[0] == 3 for record in match.records[::2])  # the one first move that wins
    player.close()  # may be called twice
    with pytest.raises(ValueError, match="player: got 'solver:2', expected solver without an argument"):
        any_player(FOUR, "solver:2", lambda directory, step: None)


@pytest.mark.slow
def test_uct_keeps_most_values_in_connect_four():
    pytest.importorskip("bitbully")
    with oracle(FOUR) as values:
        uct, random = (
            kept_values(FOUR, make_player(FOUR, word, lambda d, s: None), values, make_mesh(1), positions=600)[-1]
            for word in ("uct:200", "random")
        )
    assert random.critical > 200
    assert uct.critical_kept / uct.critical > 0.8 > 0.65 > random.critical_kept / random.critical
