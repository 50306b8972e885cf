"""Our agent as a GTP engine: whole conversations, which come out the same to the byte; then anything at all."""

import functools
import re
import statistics
import subprocess
import sys
import time

import pytest

import envs
from azjax.export import export
from azjax.rundir import load_run
from azjax.servers.go_words import alternating, fixed_handicap
from azjax.servers.gtp import GtpServer
from azjax.servers.turn import centipawns, seconds_for_move
from tests.azjax.engines.conftest import Clock, Talk
from tests.azjax.engines.gibberish import fuzz
from tests.programs import needs_gnugo

CONVERSATIONS = "basics play ko genmove turns handicap score clock leela kata interrupted".split()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversations_come_out_the_same(go_talk, name):
    go_talk.check(f"gtp-{name}")


def test_who_plays_twice_lets_the_other_pass():
    assert alternating([(0, "A1"), (0, "B1")]) == ["A1", "pass", "B1"]
    assert alternating([(1, "A1")], 1) == ["pass", "A1", "pass"]
    assert alternating([(0, "A1"), (1, "pass"), (0, "pass"), (1, "C1")]) == ["A1", "C1"]
    assert alternating([(0, "A1"), (1, "pass"), (1, "B1")]) == ["A1", "B1"]
    assert alternating([(0, "A1"), (1, "pass")], 1) == ["A1"]
    assert alternating([], 1) == ["pass"] and alternating([], 0) == []
    assert alternating([(0, "pass"), (1, "pass")], 1) == ["pass", "pass"]  # over, whoever's move it is


def test_a_pass_that_was_put_in_does_not_let_one_end_the_game(go_talk):
    # White leads by the komi, so a second pass would win.
    go_talk.tell("lz-analyze w 10")
    for _ in range(20):
        go_talk.server.work()
    assert not any("move pass" in line for line in go_talk.heard())
    (line, _) = go_talk.tell("genmove w")[-2:]
    assert line.startswith("= ") and line != "= pass"


def test_a_game_may_last_longer_than_ours_do(go_talk):
    """2 N^2 plies end a game by our rules; who plays on may, and the board is the same."""
    points = [f"{column}{row}" for row in range(1, 6) for column in "ABCDE"]
    lines = [line for point in points[:-1] for line in (f"play b {point}", "play w pass")]
    lines[-1:] = ["play w E5", *lines[:8]]  # takes all 24; then as before
    assert go_talk.tell(*lines) == ["=", ""] * 56
    assert go_talk.tell("final_score") == ["= W+4.5", ""]  # 4 stones, 1, and empty points that are nobody's
    (answer, _) = go_talk.tell("genmove b")
    assert answer.startswith("= ") and "pass" not in answer
    assert go_talk.tell("undo", "play b A1", "play b C3") == ["=", "", "? illegal move", "", "=", ""]


@pytest.mark.parametrize(("komi", "score", "passes"), [(24.5, "B+0.5", True), (25.5, "W+0.5", False)])
def test_the_komi_decides_what_the_search_takes_for_won(go_talk, komi, score, passes):
    # Black's one stone has the whole board, 25 points; White passed, so Black ends the game by a pass.
    go_talk.tell(f"komi {komi}", "play b C3", "play w pass")
    assert go_talk.tell("final_score") == [f"= {score}", ""]
    assert (go_talk.tell("reg_genmove b") == ["= pass", ""]) == passes


def test_it_gives_up_where_too_little_is_expected(go_loader):
    def talk(resign: float) -> Talk:
        said: list[str] = []
        return Talk(GtpServer(go_loader, said.append, Clock(), resign=resign), said, "gtp")

    board = talk(-0.999).tell("showboard")
    hopeless = talk(0.999)
    assert hopeless.tell("genmove b", "reg_genmove w") == ["= resign", ""] * 2
    *_, line, end = hopeless.tell("lz-genmove_analyze b 10")
    assert (line, end) == ("play resign", "")
    assert hopeless.tell("showboard") == board  # nothing was played
    first, *_, last = hopeless.tell("kata-analyze b 10", "")
    assert (first, last) == ("=", "")  # an analysis goes on all the same
    (answer, _) = talk(-0.999).tell("genmove b")
    assert answer.startswith("= ") and answer != "= resign"


@pytest.mark.parametrize(
    ("size", "stones", "points"),
    [
        (9, 2, "C3 G7"),
        (7, 4, "C3 E5 C5 E3"),
        (8, 4, "C3 F6 C6 F3"),
        (12, 3, "D4 J9 D9"),
        (13, 5, "D4 K10 D10 K4 G7"),
        (19, 6, "D4 Q16 D16 Q4 D10 Q10"),
        (19, 7, "D4 Q16 D16 Q4 D10 Q10 K10"),
        (19, 8, "D4 Q16 D16 Q4 D10 Q10 K4 K16"),
        (19, 9, "D4 Q16 D16 Q4 D10 Q10 K4 K16 K10"),
    ],
)
def test_fixed_handicaps_are_gnugos(size, stones, points):
    assert fixed_handicap(size, stones) == points.split()


def test_time_is_shared_out():
    share = functools.partial(seconds_for_move, overhead=0.05)
    assert share(60.05) == pytest.approx(1.95)
    assert share(60.05, 1.0) == pytest.approx(2.75)
    assert share(10.05, moves_to_go=5) == pytest.approx(1.95)
    assert share(1.05, moves_to_go=1) == pytest.approx(0.8)  # never all of it
    assert share(0.0, per_move=1.0) == pytest.approx(0.95)
    assert share(-3.0) == 0.01 and share(0.1, 10.0) == pytest.approx(0.04)


@pytest.mark.parametrize("increment", [0.03, 0.1, 1.0])
def test_an_increment_keeps_the_clock_from_running_down(increment):
    left = 2.0
    for _ in range(300):
        left += increment - seconds_for_move(left, increment) - 0.018  # what a move costs besides
    assert left > 0.5


def test_values_as_centipawns():
    assert centipawns(0.0) == 0 and centipawns(1.0) == 10_000 and centipawns(-1.0) == -10_000
    assert centipawns(9 / 11) == 400  # ten wins to one loss
    assert centipawns(-0.5) == -191 and centipawns(1 - 1e-12) == 4920 and centipawns(2.0) == 10_000


class Process:
    """`azjax engine` as programs start it."""

    def __init__(self, *argv: str):
        command = [sys.executable, "-m", "azjax", "engine", *argv]
        self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def send(self, line: str) -> None:
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()

    def until(self, pattern: str) -> float:
        """Reads up to a line that matches; returns the seconds that took."""
        began = time.perf_counter()
        for line in self.popen.stdout:
            if re.fullmatch(pattern, line.rstrip("\n")):
                return time.perf_counter() - began
        raise AssertionError(f"it ended without {pattern}")

    def end(self) -> float:
        began = time.perf_counter()
        self.popen.communicate(timeout=60)
        return time.perf_counter() - began


def test_stop_and_quit_are_answered_at_once(go_run):
    engine = Process("gtp", "--run", go_run)
    engine.send("1 name")
    engine.until("=1 azjax")
    engine.send("2 genmove b")  # loads and compiles
    engine.until("=2 .*")
    engine.send("time_settings 3600 0 0")
    engine.until("=")
    seconds = []
    for _ in range(5):
        engine.send("3 reg_genmove w")
        time.sleep(0.3)
        engine.send("4 stop")
        seconds.append(engine.until("=3 .*"))
        engine.until("=4")
        engine.send("5 lz-analyze b 10")
        engine.until("info move .*")
        engine.send("6 protocol_version")
        seconds.append(engine.until("=6 2"))
    # All of them on a machine that does nothing else (experiments/engine_latency.py); here it may do.
    assert statistics.median(seconds) < 0.5 and max(seconds) < 5
    engine.send("7 genmove b")
    time.sleep(0.3)
    engine.send("8 quit")
    assert engine.until("=8") < 5
    assert engine.end() < 5 and engine.popen.returncode == 0


@pytest.mark.parametrize("first", [[], ["isready"], ["go infinite", "isready"], ["go movetime 60000", "ucinewgame"]])
def test_quit_ends_a_process_that_loads(chess_run, first):
    engine = Process("uci", "--run", chess_run)
    engine.send("uci")
    engine.until("uciok")
    for line in first:
        engine.send(line)
    time.sleep(0.5)
    engine.send("quit")
    # 0.35 s, and what a machine that does other things takes for it; loading and compiling take many times this.
    assert engine.end() < 5 and engine.popen.returncode == 0


def test_a_script_that_is_piped_in_gets_its_whole_answer(go_run):
    script = "1 boardsize 5\n2 genmove b\n3 play w A1\n4 reg_genmove b\n5 bogus\n\n6 quit\n7 name\n"
    argv = [sys.executable, "-m", "azjax", "engine", "gtp", "--run", go_run, "--simulations", "5"]
    done = subprocess.run(argv, input=script, capture_output=True, text=True, timeout=300)
    answers = done.stdout.split("\n\n")
    assert [answer[:2] for answer in answers] == ["=1", "=2", "=3", "=4", "?5", "=6", ""] and done.stderr == ""
    # The end of the input is a quit.
    done = subprocess.run(argv, input="genmove b", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and re.fullmatch(r"= \w\d\n\n", done.stdout)


def test_an_exported_agent_is_the_run_it_came_from(go_run, tmp_path):
    agent, path = load_run(go_run, None), tmp_path / "agent.safetensors"
    export(envs.make(agent.config.game), agent, path, "safetensors", {})
    script = "boardsize 5\ngenmove b\ngenmove w\ngenmove b\nquit\n"
    answers = []
    for who in (["--run", go_run], ["--agent", str(path)]):
        argv = [sys.executable, "-m", "azjax", "engine", "gtp", *who, "--simulations", "30", "--wave", "5"]
        done = subprocess.run(argv, input=script, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and done.stderr == ""
        answers.append(done.stdout)
    assert answers[0] == answers[1] and re.fullmatch(r"=\n\n(= \w+\n\n){3}=\n\n", answers[0])


@pytest.mark.parametrize(("closed", "status"), [("<&-", 2), (">&-", 2), ("</dev/null", 0), (">/dev/full", 1)])
def test_without_somewhere_to_speak_it_ends(go_run, closed, status):
    command = f"echo name | {sys.executable} -m azjax engine gtp --run {go_run} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=300)
    assert done.returncode == status and done.stderr.count("\n") == min(status, 1)


@pytest.mark.parametrize(
    ("argv", "status", "message"),
    [
        (["gtp", "--run", "nowhere"], 2, "--run: got nowhere, which has no config.json"),
        (["usi"], 2, "--run: got none, and no agent for shogi comes with azjax"),
        (["gtp", "--step", "5"], 2, "--step: got 5 without --run"),
        (["chess"], 2, "expected one of uci, usi, gtp"),
        (["uci", "--run", "RUN"], 2, "got go,size=5, expected chess, which uci is for"),
        (["gtp", "--agent", "crosshair"], 2, "agent crosshair: got crosshair, expected go, which gtp is for"),
        (["gtp", "--agent", "nobody"], 2, "agent: got 'nobody', expected one of black_hole"),
        (["gtp", "--agent", "nowhere.safetensors"], 2, "got nowhere.safetensors, which is no file"),
        (["gtp", "--agent", "a", "--run", "RUN"], 2, "--run and --agent: got both"),
        (["gtp", "--agent", "a", "--step", "3"], 2, "--step: got 3 without --run"),
        (["gtp", "--run", "RUN", "--resign", "0.5"], 2, "--resign: got 0.5, expected points of a game below 0.5"),
        (["uci", "--run", "RUN", "--resign", "0.05"], 2, "--resign: got it for uci, which has no word for that"),
        (["gtp", "--run", "RUN", "--wave", "0"], 2, "--wave: got 0, expected at least 1"),
        (["gtp", "--run", "RUN", "--step", "5"], 2, "has no checkpoint of step 5"),
        (["gtp", "--run", "RUN", "--simulations", "0"], 2, "--simulations: got 0, expected at least 1"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(go_run, argv, status, message):
    argv = [go_run if word == "RUN" else word for word in argv]
    command = [sys.executable, "-m", "azjax", "engine", *argv]
    done = subprocess.run(command, input="isready\ngenmove b\n", capture_output=True, text=True, timeout=300)
    assert done.returncode == status and message in done.stderr and done.stderr.count("\n") == 1


WORDS = """
    genmove reg_genmove play undo clear_board boardsize komi showboard final_score final_status_list time_settings
    time_left fixed_handicap place_free_handicap set_free_handicap lz-analyze kata-analyze lz-genmove_analyze stop
    kata-genmove_analyze known_command list_commands name b w black white B W pass resign A1 C3 E5 Z9 I3 c2 5 9 0 1 -1 2
    0.5 nan inf 1e400 99999999999999999999 alive dead seki interval ##
""".split()


@pytest.mark.parametrize(
    "lines", [400, pytest.param(4_000, marks=pytest.mark.slow), pytest.param(100_000, marks=pytest.mark.record)]
)
def test_no_line_ends_the_conversation(go_talk, lines):
    go_talk.tell("genmove b", "lz-analyze 1", "", "showboard", "final_score")  # compiles
    fuzz(go_talk, WORDS, lines, [0, 0, 1, 1000])
    go_talk.tell("stop", "")
    assert go_talk.tell("77 protocol_version") == ["=77 2", ""]


@needs_gnugo
def test_our_moves_are_legal_to_gnugo(go_talk):
    """A game of ours against itself, each move played on GNU Go's board, which judges the same superko."""
    from azjax.engines.gtp import GtpEngine
    from azjax.engines.words import parse_engine

    game = envs.make("go,size=5")
    referee = GtpEngine(game, parse_engine("gtp:gnugo", "gnugo", ()))
    referee.new_game(0)
    moves = []
    while moves[-2:] != ["pass", "pass"] and len(moves) < 50:
        answer, _ = go_talk.tell(f"genmove {'bw'[len(moves) % 2]}")
        moves.append(answer.removeprefix("= "))
        referee._show(moves)  # raises where it refuses one
    assert len(moves) > 10
    referee.close()
