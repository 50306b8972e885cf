"""Our agent as a UCI and as a USI engine: whole conversations, a controller that is not ours, anything at all."""

import random
import sys
import time

import pytest

from tests.azjax.engines.gibberish import ends, gibberish, said_in

UCI = "hello options start repeated mates refused limits promotions infinite ponder queued".split()
USI = "hello start capture sfen repeated refused clock infinite queued mate".split()


@pytest.mark.parametrize("name", UCI)
def test_conversations_about_chess_come_out_the_same(uci_talk, name):
    uci_talk.check(f"uci-{name}")


@pytest.mark.slow  # the search of shogi compiles for half a minute
@pytest.mark.parametrize("name", USI)
def test_conversations_about_shogi_come_out_the_same(usi_talk, name):
    usi_talk.check(f"usi-{name}")


WORDS = """
    uci usi isready ucinewgame usinewgame setoption name value MultiPV Hash USI_Hash Simulations position startpos fen
    sfen moves go nodes movetime depth infinite ponder wtime btime winc binc movestogo byoyomi mate searchmoves stop
    ponderhit debug register gameover e2e4 e7e5 g1f3 a7a8q 7g7f 8h2b+ P*5e 0 1 2 50 -1 99999999999999999999 1e9 x
""".split()


def fuzz(talk, prefix: str, lines: int) -> None:
    rng = random.Random(lines)
    corpus = said_in(prefix)
    talk.tell("position startpos", "go nodes 2")  # compiles
    longest = 0.0
    for _ in range(lines):
        line = gibberish(rng, WORDS, corpus)
        if ends(line):
            continue
        began = time.perf_counter()
        talk.server.hear(line)
        talk.work(rng.choice([0, 1, 1, 20]) if talk.server.thinking else 0)
        longest = max(longest, time.perf_counter() - began)
        talk.heard()
        assert not talk.server.over
    talk.server.hear("stop")
    talk.work(100)
    talk.server.hear("stop")
    talk.heard()
    assert talk.tell("isready")[-1] == "readyok"
    assert longest < 20  # a second on a machine that does nothing else


@pytest.mark.parametrize(
    "lines", [300, pytest.param(4_000, marks=pytest.mark.slow), pytest.param(100_000, marks=pytest.mark.record)]
)
def test_no_line_ends_a_conversation_about_chess(uci_talk, lines):
    fuzz(uci_talk, "uci", lines)


@pytest.mark.parametrize(
    "lines", [pytest.param(2_000, marks=pytest.mark.slow), pytest.param(100_000, marks=pytest.mark.record)]
)
def test_no_line_ends_a_conversation_about_shogi(usi_talk, lines):
    fuzz(usi_talk, "usi", lines)


@pytest.mark.slow
def test_python_chess_plays_with_it(chess_run):
    chess = pytest.importorskip("chess")
    pytest.importorskip("chess.engine")

    command = [sys.executable, "-m", "azjax", "engine", "uci", "--run", chess_run]
    with chess.engine.SimpleEngine.popen_uci(command, timeout=300) as engine:
        board = chess.Board()
        for move in "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8".split():
            board.push_uci(move)
        assert engine.play(board, chess.engine.Limit(nodes=50)).move in board.legal_moves
        assert engine.analyse(chess.Board(), chess.engine.Limit(nodes=50))["pv"]
        assert len(engine.analyse(chess.Board(), chess.engine.Limit(nodes=50), multipv=3)) == 3
        # A game of ours against ourselves, judged by the other rules; then one with the clock.
        board = chess.Board()
        while not board.is_game_over(claim_draw=True) and board.ply() < 80:
            played = engine.play(board, chess.engine.Limit(nodes=8)).move
            assert played in board.legal_moves
            board.push(played)
        clock = chess.engine.Limit(white_clock=2.0, black_clock=2.0, white_inc=0.1, black_inc=0.1)
        assert engine.play(chess.Board(), clock).move is not None
        with engine.analysis(chess.Board()) as analysis:  # infinite
            time.sleep(0.5)
            began = time.perf_counter()
            analysis.stop()
            assert analysis.wait().move in chess.Board().legal_moves
        assert time.perf_counter() - began < 5  # half a second on a machine that does nothing else
