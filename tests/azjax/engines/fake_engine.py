"""An engine that answers by a script, and does wrong where it is told to. No import of azjax: it starts in 20 ms.

python fake_engine.py gtp|uci|usi [FAULT@N] [REPLY ...]: at its N-th move it does FAULT (0: in the handshake); else it
plays REPLY by turns ("pass" if there is none).
"""

import os
import subprocess
import sys
import time

protocol, *words = sys.argv[1:]
fault, at = None, -1
if words and "@" in words[0]:
    fault, _, number = words.pop(0).partition("@")
    at = int(number)
replies = words or ["pass"]
moves = 0


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def answer(prefix: str, text: str) -> None:
    say(f"{prefix} {text}\n\n" if protocol == "gtp" else f"{text}\n")


def misbehave(prefix: str) -> None:
    match fault:
        case "crash":
            print("assertion failed: depth > 0", file=sys.stderr, flush=True)
            os._exit(3)
        case "segfault":
            os.kill(os.getpid(), 11)
        case "hang":
            time.sleep(1000)
        case "deaf":  # closes its output and lives on
            os.close(1)
            time.sleep(1000)
        case "offspring":  # hangs, and so does a child in its group
            child = subprocess.Popen(["sleep", "1000"])
            print(child.pid, file=sys.stderr, flush=True)
            time.sleep(1000)
        case "flood":
            while True:
                say("info string " + "x" * 1000 + "\n" if protocol != "gtp" else "x" * 1000 + "\n")
        case "long":
            while True:
                say("x" * 65536)
        case "drip":
            while True:
                say("info depth 1\n" if protocol != "gtp" else f"{prefix}\n")
                time.sleep(0.01)
        case "none":
            answer(prefix, "bestmove (none)" if protocol != "gtp" else "(none)")
        case "illegal":
            answer(prefix, "bestmove a1a8" if protocol != "gtp" else "A1")
        case "garbage":
            say("\x00\xff bestmove\n\n!?\n\n")
        case "empty":
            answer(prefix, "bestmove" if protocol != "gtp" else "")
        case "refuse":
            say("?" + prefix[1:] + " illegal move\n\n")
        case "resign":
            answer(prefix, "bestmove resign" if protocol != "gtp" else "resign")
        case "twice":  # an answer too many
            answer(prefix, f"bestmove {replies[0]}" if protocol != "gtp" else replies[0])
            answer(prefix, f"bestmove {replies[0]}" if protocol != "gtp" else replies[0])
        case _:
            raise SystemExit(f"no fault {fault}")


def gtp(line: str) -> None:
    global moves
    number, name, *_ = line.split()
    prefix = f"={number}"
    if name == "genmove":
        moves += 1
    if (name == "genmove" and moves == at) or (at == 0 and name == "list_commands"):
        return misbehave(prefix)
    if name == "list_commands":
        return answer(prefix, "boardsize\nclear_board\nkomi\nplay\ngenmove\nlist_commands\nlevel\nquit")
    if name == "genmove":
        return answer(prefix, replies[(moves - 1) % len(replies)])
    answer(prefix, "")
    if name == "quit":
        raise SystemExit
    return None


def uci(line: str) -> None:
    global moves
    name, *_ = line.split() or [""]
    if name == protocol and at != 0:
        say("id name Fake\noption name Skill Level type spin default 20 min 0 max 20\n")
        say("option name Use NNUE type check default true\noption name UCI_LimitStrength type check default false\n")
        say("option name UCI_Elo type spin default 1350 min 1350 max 2850\noption name Clear Hash type button\n")
        say(f"option name Style type combo default Normal var Solid var Normal\n{protocol}ok\n")
    elif name == protocol:
        misbehave("")
    elif name == "isready":
        say("readyok\n")
    elif name == "go":
        moves += 1
        if moves == at:
            return misbehave("")
        say("info depth 3 seldepth 4 score cp -950 nodes 77 nps 1000 pv e2e4\ninfo string no score here\n")
        answer("", f"bestmove {replies[(moves - 1) % len(replies)]} ponder e7e5")
    elif name == "quit":
        raise SystemExit
    return None


for line in sys.stdin:
    if line.strip():
        (gtp if protocol == "gtp" else uci)(line)
