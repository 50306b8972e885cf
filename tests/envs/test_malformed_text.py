"""Mutated text: every reader gives what it understood, which can be written and read again, or one ValueError."""

import re
import struct

import hypothesis
import pytest
from hypothesis import strategies as st

import envs
from envs.game_files import games_text, read_games

SGF = [
    b"(;GM[1]FF[4]CA[UTF-8]SZ[9]KM[6.5]RU[koPOSITIONALscoreAREAtaxNONEsui0]PB[A\\]B]PW[C]DT[2026-11-30]RE[W+R]\n"
    b";B[aa];W[ii];B[ia];W[];B[ai])\n",
    b"(;GM[11]FF[4]CA[UTF-8]SZ[3]PB[?]PW[?]RE[W+]\n;B[c1];W[swap-pieces];B[a1](;W[b1];B[resign])(;W[b2]))\n",
    b"(;GM[2]FF[4]SZ[4]SO[by hand]AB[c2][b3]AW[b2][c3]PL[B]RE[Draw]\n;B[b1];W[a1];B[a2];W[PA])(;SZ[5];B[aa];W[tt])",
]
LINES = [
    b'{"format": 1, "game": "go,size=5", "players": ["a", "b"], "actions": [0, 3, 1], "returns": [1.0, -1.0], '
    b'"end": "time", "opening_plies": 1, "date": "2026-11-30", "source": "by hand"}\n',
    b'{"format": 1, "game": "hex", "players": ["\\u00e9", "?"], "actions": [7, 121], "returns": null, '
    b'"end": "unfinished"}\n\n{"format": 1, "game": "othello", "players": ["?", "?"], "actions": [], '
    b'"returns": [0, 0], "end": "plies"}',
]
PGN = [
    b'[White "A"]\n[Date "2026.11.30"]\n[Result "1-0"]\n\n1. e4 {x} e5 2. f4 (2. Nf3) exf4 $1 1-0\n\n1.d4 0-1\n',
    b'[Black "\\"B\\""]\n[Termination "time forfeit"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n[White "\xc3\xa9"]\n\n1/2-1/2',
]
NAMES = [b"A9", b"j1", b"pass", b"c3", b"ab12", b"swap", b"24/18", b"7"]
PIECES = [
    *b'( ) ; [ ] \\ : { } , " - . 0 1 9 e t B W AB GM[2] GM[11] SZ[4] SZ[52] KM[-0.0] PL[W] ;B[bb] ;W[]'.split(),
    *b'(;B[aa] swap-pieces resign PA tt null true NaN 1e999 -1 [] {} 2.5 plies rules "end": \\ud800 \\n'.split(),
    *(b"CA[utf-7]", b"CA[GBK]", b"\xef\xbb\xbf", "囲".encode(), "\u2028".encode(), b"9" * 4400),
    *(b"[" * 1500, b"(;" * 1500, b"\\" * 99),
    *(bytes([byte]) for byte in (*range(128), 0x80, 0x85, 0xA0, 0xC3, 0xE5, 0xFF)),
]
_NAMES = """
    go_9x9 hex othello crosshair connect_four black_hole tic_tac_toe ultimate_tic_tac_toe backgammon
"""
GAMES = [envs.make(name) for name in _NAMES.split()]
FAULT = re.compile(r"^file\.(sgf|jsonl|pgn): (line \d+(, column \d+)?: .|CA: got |game \d+: )", re.DOTALL)

TEXTS = 50  # an example: Hypothesis takes longer over one than all the readers together
# Not shrunk: the text that fails is told.
FAST = hypothesis.settings(max_examples=2_000 // TEXTS, database=None, phases=[hypothesis.Phase.generate])
FULL = hypothesis.settings(FAST, max_examples=100_000 // TEXTS)


def mutated(bases, words):
    """One of the texts after one to four edits, as five words of 32 bits say."""
    edits, base = divmod(words[0], len(bases))
    data = bases[base]
    for word in words[1 : 2 + edits % 4]:
        word, piece = divmod(word, len(PIECES))
        at, cut = divmod(word, 13)
        at %= len(data) + 1
        data = data[:at] + PIECES[piece] + data[at + cut :]
    return data


class File:
    """In the place of a path: its name and its bytes."""

    def __init__(self, suffix, data):
        self.suffix, self._data = suffix, data

    def __str__(self):
        return f"file{self.suffix}"

    def read_bytes(self):
        return self._data


def check_file(suffix, data):
    try:
        records = read_games(File(suffix, data))
    except ValueError as error:
        assert type(error) is ValueError and FAULT.match(str(error)), str(error)
        return
    text = ""
    for record in records:
        text += games_text(envs.make(record.game) if suffix == ".sgf" else None, [record], suffix)
    if records or suffix == ".jsonl":
        assert read_games(File(suffix, text.encode())) == records


def check_name(data):
    text = data.decode("utf-8", "surrogateescape")
    for game in GAMES:
        try:
            action = game.parse_action(text)
        except ValueError as error:
            assert str(error).startswith("move: got ")
        else:
            assert game.action_name(action).lower() == text.strip().lower()


def mutations(settings):
    """The tests by format."""

    def of(check, bases):
        @settings
        @hypothesis.given(st.binary(min_size=20 * TEXTS, max_size=20 * TEXTS))
        def run(drawn):
            for words in struct.iter_unpack("<5I", drawn):
                data = mutated(bases, words)
                try:
                    check(data)
                except Exception as error:
                    error.add_note(f"the text: {data!r}")
                    raise

        return run

    return {
        "sgf": of(lambda data: check_file(".sgf", data), SGF),
        "jsonl": of(lambda data: check_file(".jsonl", data), LINES),
        "pgn": of(lambda data: check_file(".pgn", data), PGN),
        "names": of(check_name, NAMES),
    }


@pytest.mark.parametrize("run", mutations(FAST).values(), ids=mutations(FAST))
def test_mutated_text(run):
    run()


@pytest.mark.slow
@pytest.mark.parametrize("run", mutations(FULL).values(), ids=mutations(FULL))
def test_a_hundred_thousand_mutated_texts(run):
    run()


def test_the_texts_that_are_mutated_are_good_ones():
    for suffix, bases in ((".sgf", SGF), (".jsonl", LINES), (".pgn", PGN)):
        for data in bases:
            assert read_games(File(suffix, data))
