"""Our agent as a UCI and as a USI engine: whole conversations, a controller that is not ours, anything at all."""

import os
import statistics
import subprocess
import sys
import time

import pytest

from tests.azjax.engines.gibberish import fuzz

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


def bear(talk, lines: int) -> None:
    talk.tell("position startpos", "go nodes 2")  # compiles
    fuzz(talk, WORDS, lines, [0, 0, 0, 0, 1, 5])
    talk.server.hear("stop")
    talk.work(100)
    talk.server.hear("stop")
    talk.heard()
    assert talk.tell("isready")[-1] == "readyok"


@pytest.mark.parametrize(
    "lines", [300, pytest.param(4_000, marks=pytest.mark.slow), pytest.param(100_000, marks=pytest.mark.record)]
)
def test_no_line_ends_a_conversation_about_chess(uci_talk, lines):
    bear(uci_talk, lines)


@pytest.mark.parametrize(
    "lines", [pytest.param(2_000, marks=pytest.mark.slow), pytest.param(100_000, marks=pytest.mark.record)]
)
def test_no_line_ends_a_conversation_about_shogi(usi_talk, lines):
    bear(usi_talk, lines)


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
        seconds = []
        for _ in range(5):
            with engine.analysis(chess.Board()) as analysis:  # infinite
                time.sleep(0.3)
                began = time.perf_counter()
                analysis.stop()
                assert analysis.wait().move in chess.Board().legal_moves
                seconds.append(time.perf_counter() - began)
        assert statistics.median(seconds) < 0.5 and max(seconds) < 5


@pytest.mark.slow
def test_python_chess_asks_in_every_way(chess_run):
    """Ponder off, several lines, moves to choose from, positions from a FEN, and those that are none."""
    chess = pytest.importorskip("chess")
    pytest.importorskip("chess.engine")

    command = [sys.executable, "-m", "azjax", "engine", "uci", "--run", chess_run, "--wave", "4"]
    with chess.engine.SimpleEngine.popen_uci(command, timeout=300) as engine:
        assert engine.options["MultiPV"].max == 500 and engine.options["Wave"].default == 4
        engine.configure({"Hash": 1, "Move Overhead": 10})
        limit = chess.engine.Limit(nodes=40)
        castles = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 3 20")
        promotes = chess.Board("8/P6k/8/8/8/8/7K/8 w - - 0 1")
        en_passant = chess.Board("4k3/8/8/8/4Pp2/8/8/4K3 b - e3 0 1")
        for board in (castles, promotes, en_passant):
            assert engine.play(board, limit, ponder=False).move in board.legal_moves
            lines = engine.analyse(board, limit, multipv=500)
            assert 3 < len(lines) <= board.legal_moves.count()
            assert [line["multipv"] for line in lines] == list(range(1, len(lines) + 1))
            for line in lines:
                follow = board.copy()
                for move in line["pv"]:
                    assert move in follow.legal_moves
                    follow.push(move)
        only = [chess.Move.from_uci("a8a1"), chess.Move.from_uci("h8h1")]
        assert engine.play(castles, limit, root_moves=only).move in only
        mate_in_one = chess.Board("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1")
        assert engine.play(mate_in_one, chess.engine.Limit(nodes=400)).move == chess.Move.from_uci("a1a8")
        assert engine.play(chess.Board("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"), limit).move is None  # mated
        for seconds in (0.05, 0.3):
            began = time.perf_counter()
            engine.play(chess.Board(), chess.engine.Limit(time=seconds))
            assert time.perf_counter() - began < seconds + 5


REPEATED = {"uci": "g1f3 g8f6 f3g1 f6g8 " * 2, "usi": "2h3h 8b7b 3h2h 7b8b " * 3}
START = {
    "uci": "fen rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 4 3",
    "usi": "sfen lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1",
}


MATE = {
    "uci": "startpos moves f2f3 e7e5 g2g4 d8h4",
    "usi": "sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G 1 moves G*5b",
}
FIRST = {"uci": "e2e4 d2d4", "usi": "7g7f 2g2f"}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["uci", "usi"])
def test_nothing_is_left_to_compile_when_it_is_ready(protocol, request):
    """It would be on the clock: also where the rules have ended the game, or mate has, at a position that comes as
    text, for some of the moves."""
    run = request.getfixturevalue({"uci": "chess_run", "usi": "shogi_run"}[protocol])
    go, lines = "go nodes 3", ["isready", f"position startpos moves {REPEATED[protocol]}"]
    lines += [go, f"position {START[protocol]}", go, f"position startpos moves {REPEATED[protocol]}", go]
    lines += [f"position {MATE[protocol]}", go, "position startpos", f"{go} searchmoves {FIRST[protocol]}"]
    lines += ["setoption name MultiPV value 3", go, "quit"]
    done = subprocess.run(
        [sys.executable, "-m", "azjax", "engine", protocol, "--run", run],
        input="\n".join(lines),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # where JAX says what it compiles
        text=True,
        timeout=300,
        env=os.environ | {"JAX_LOG_COMPILES": "1"},
    )
    before, _, after = done.stdout.partition("readyok\n")
    assert "Compiling" in before and after.count("bestmove") == 6
    assert [line for line in after.splitlines() if "Compiling" in line] == []


def test_every_go_gets_one_move(uci_talk):
    """Whatever its words are: who says `go` waits."""
    uci_talk.tell("position startpos")
    for line in (
        "go",
        "go sideways nodes 4",
        "go nodes many",
        "go nodes searchmoves e2e5",
        "go searchmoves e2e5 e2e4 nodes 4",
        "go movetime",
        "go wtime x btime y",
        "go depth 0 nodes -5",
        f"go {'x ' * 9000}",
    ):
        answers = uci_talk.tell(line)
        assert [answer.split()[0] for answer in answers].count("bestmove") == 1 and len(answers) <= 5, line
    assert uci_talk.tell("go searchmoves e2e5 e2e4 nodes 4")[-1].startswith("bestmove e2e4")


@pytest.mark.slow
def test_it_gives_up_where_too_little_is_expected(shogi_talker):
    hopeless, hopeful = shogi_talker(0.999), shogi_talker(-0.999)
    hopeless.tell("position startpos")
    info, answer = hopeless.tell("go nodes 4")
    assert info.startswith("info depth") and answer == "bestmove resign"
    for line in ("go infinite", "go ponder btime 1000 wtime 1000"):  # about no move of a game
        hopeless.server.hear(line)
        hopeless.work(3)
        assert hopeless.tell("stop")[-1] not in ("", answer)
    assert hopeful.tell("position startpos", "go nodes 4")[-1] != answer


def test_a_search_for_mate_alone_is_declined(usi_talk):
    assert usi_talk.tell("go mate infinite", "go mate 1000") == ["checkmate notimplemented"] * 2


def test_where_there_is_no_move_an_endless_search_still_waits(uci_talk):
    mated = "position fen 7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"
    assert uci_talk.tell(mated, "go movetime 1000") == ["bestmove (none)"]
    for line in ("go infinite", "go ponder wtime 1000 btime 1000"):
        assert uci_talk.tell(mated, line, "isready") == ["readyok"]
        assert uci_talk.tell("stop") == ["bestmove (none)"] and uci_talk.tell("stop") == []
    assert uci_talk.tell("go ponder wtime 1000 btime 1000", "ponderhit") == ["bestmove (none)"]
    assert uci_talk.tell("go infinite", "position startpos")[:1] == ["bestmove (none)"]  # who forgot `stop`
