"""Go against OpenSpiel, sgfmill and GNU Go, at every ply of random games.

Differences between these rules and theirs, both looked for here:
- OpenSpiel calls a repetition of the board legal and ends the game as a draw; here it is illegal.
- GNU Go keeps the last 500 positions only, so longer games are compared up to there.
- GNU Go lets a suicide (where the option allows it) repeat an earlier board; here that is illegal like any repetition.
"""

import functools
import re
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest
from sgfmill.boards import Board as SgfmillBoard

from envs.go import Go
from tests.programs import find

_GNUGO = find("gnugo")
_GNUGO_REMEMBERS = 500


def _legal(play, ply, lane):
    return np.flatnonzero(play.masks[ply, lane]).tolist()


def compare_with_open_spiel(game, play):
    """Requires equal legal moves and results; returns the number of positions."""
    assert not game.suicide
    spiel = pyspiel.load_game("go", {"board_size": game.size, "komi": game.komi})
    positions = 0
    for lane in range(len(play.plies)):
        state = spiel.new_initial_state()
        moves = play.moves(lane)
        for ply, move in enumerate(moves):
            ours, theirs = _legal(play, ply, lane), state.legal_actions()
            assert set(ours) <= set(theirs)
            # Every move is tried on small boards, which repeat often; elsewhere what they allow and we do not, and now
            # and then every move.
            tried = theirs if game.size <= 5 or ply % 16 == 0 else sorted(set(theirs) - set(ours))
            for action in tried:
                child = state.child(action)
                repeats = child.is_terminal() and child.returns() == [0, 0]  # komi 7.5: no other game ends even
                assert repeats == (action not in ours)
            positions += 1
            state.apply_action(move)
        assert state.is_terminal()
        assert play.masks[len(moves), lane].sum() == 0
        assert play.returns[lane].tolist() == state.returns()
        positions += 1
    return positions


@functools.cache
def _areas(game):
    return jax.jit(jax.vmap(lambda chains: game.board.area(chains, jnp.bool_(True))))


def compare_with_sgfmill(game, play, every=4):
    """Requires equal boards at every ply, and equal areas at some and at the end; returns the number of boards."""
    positions = 0
    for lane in range(len(play.plies)):
        board = SgfmillBoard(game.size)
        moves = play.moves(lane)
        chains = play.states.chains[:, lane]
        stones = np.sign(chains[:, game.size : -game.size]).reshape(-1, game.size, game.size)
        areas = _areas(game)(chains)
        for ply in range(len(moves) + 1):
            theirs = np.zeros((game.size, game.size), np.int16)
            for colour, (row, column) in board.list_occupied_points():
                theirs[row, column] = 1 if colour == "b" else -1
            assert np.array_equal(stones[ply], theirs)
            if ply % every == 0 or ply == len(moves):
                assert areas[ply] == board.area_score()
            positions += 1
            if ply < len(moves) and moves[ply] < game.size**2:
                board.play(*divmod(moves[ply], game.size), "bw"[ply % 2])
        lead = np.sign(board.area_score() - game.komi)
        assert play.returns[lane].tolist() == [lead, -lead]
    return positions


def compare_with_gnugo(game, play):
    """Requires equal legal moves; returns the number of positions."""
    plies = [play.moves(lane)[:_GNUGO_REMEMBERS] for lane in range(len(play.plies))]
    commands = []
    for moves in plies:
        commands += [f"boardsize {game.size}", "clear_board"]
        for ply, move in enumerate(moves):
            colour = ("black", "white")[ply % 2]
            commands += [f"all_legal {colour}", f"play {colour} {game.action_name(move)}"]
    rules = ["--positional-superko", "--allow-suicide" if game.suicide else "--forbid-suicide"]
    words = [_GNUGO, "--mode", "gtp", "--quiet", *rules]
    text = "\n".join([*commands, "quit", ""])
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    # "= A1 B2": an answer; "? illegal move": a refusal. Each ends with an empty line.
    answers = re.findall(r"^([=?])([^\n]*(?:\n[^\n]+)*)\n\n", done.stdout, re.MULTILINE)
    assert len(answers) == len(commands) + 1
    assert all(sign == "=" for sign, _ in answers)
    vertices = {game.action_name(action): action for action in range(game.num_actions)}
    answer = iter(answers)
    positions = 0
    for lane, moves in enumerate(plies):
        next(answer), next(answer)
        board = SgfmillBoard(game.size)
        boards = [board.list_occupied_points()]
        for ply, move in enumerate(moves):
            theirs = {vertices[vertex] for vertex in next(answer)[1].split()} | {game.size**2}
            ours = {*_legal(play, ply, lane)}
            assert ours <= theirs
            for action in theirs - ours:
                suicide = board.copy()
                suicide.play(*divmod(action, game.size), "bw"[ply % 2])
                assert suicide.get(*divmod(action, game.size)) is None
                assert suicide.list_occupied_points() in boards
            next(answer)
            if game.suicide and move < game.size**2:
                board.play(*divmod(move, game.size), "bw"[ply % 2])
                boards.append(board.list_occupied_points())
            positions += 1
    return positions


COMPARE = {"open_spiel": compare_with_open_spiel, "sgfmill": compare_with_sgfmill, "gnugo": compare_with_gnugo}


@functools.lru_cache(maxsize=1)
def _played(random_play, game, games, seed):
    return random_play(game, games, seed)


def _compare(random_play, referee, game, games, seed):
    if referee == "gnugo" and _GNUGO is None:
        pytest.skip("gnugo is not installed (Debian's package of that name)")
    return COMPARE[referee](game, _played(random_play, game, games, seed))


def _cases(*played):
    """Returns (referee, game, games); OpenSpiel knows no suicide."""
    return [
        pytest.param(referee, game, games, id=f"{referee}-{game.id}")
        for game, games in played
        for referee in COMPARE
        if not (game.suicide and referee == "open_spiel")
    ]


@pytest.mark.parametrize(("referee", "game", "games"), _cases((Go(5, suicide=True), 20), (Go(9), 12)))
def test_random_games(referee, game, games, random_play):
    assert _compare(random_play, referee, game, games, seed=0) > 600


@pytest.mark.slow
@pytest.mark.parametrize(
    ("referee", "game", "games"),
    _cases((Go(3), 100), (Go(5), 100), (Go(7, suicide=True), 40), (Go(9), 120), (Go(13), 8), (Go(19), 4)),
)
def test_more_random_games(referee, game, games, random_play):
    _compare(random_play, referee, game, games, seed=1)


@pytest.mark.record
@pytest.mark.parametrize("referee", COMPARE)
@pytest.mark.parametrize(("size", "positions"), [(5, 300_000), (9, 600_000), (19, 100_000)])
def test_a_million_positions(referee, size, positions, random_play):
    """Prints how many positions were equal: run with -s."""
    game, compared, seed = Go(size), 0, 2
    while compared < positions:
        compared += _compare(random_play, referee, game, {5: 512, 9: 128, 19: 8}[size], seed)
        seed += 1
        print(f"{referee} {game.id}: {compared} positions equal", flush=True)
