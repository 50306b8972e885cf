"""SGF: the grammar, and games of Go, Hex and Othello written and read, beside sgfmill, GNU Go and OpenSpiel."""

import re
import subprocess

import pyspiel
import pytest
from sgfmill import sgf as sgfmill

import envs
from envs import sgf
from envs.go import Go
from envs.hex import Hex
from envs.othello import Othello
from envs.playback import check_records
from envs.record import GameRecord
from envs.sgf_games import has_sgf, read_sgf, write_sgf
from tests.programs import find

GNUGO = find("gnugo")


def record(game, actions, returns=None, **fields):
    end = "unfinished" if returns is None else "rules"
    return GameRecord(**{"game": game.id, "actions": tuple(actions), "returns": returns, "end": end} | fields)


def moves(nodes):
    """The colours and values of a game's moves."""
    return [(name, node.properties[name].values[0]) for node in nodes for name in "BW" if name in node.properties]


# The grammar


def test_the_first_variation_is_the_game():
    text = " (;B[aa](;W[bb](;B[cc];W[dd])(;B[ee]))(;W[ff]))\n\n( ; ;B[gg] \n)"
    first, second = sgf.parse(text)
    assert moves(first) == [("B", "aa"), ("W", "bb"), ("B", "cc"), ("W", "dd")]
    assert moves(second) == [("B", "gg")] and len(second) == 2


def test_values_are_kept_as_they_stand():
    ((root,),) = sgf.parse("(;C[a(;)b\\]c\\\\]AB[aa] [bb]\n[cc]AddWhite[dd])")
    assert root.properties["C"].values == ("a(;)b\\]c\\\\",)
    assert root.properties["AB"].values == ("aa", "bb", "cc")
    assert root.properties["AW"].values == ("dd",)


@pytest.mark.parametrize("text", ["plain", "a]b", "\\", "\\]\\", "[x]:;()", "é 囲碁 \U0001f600", ""])
def test_text_is_escaped_and_read_back(text):
    written = sgf.write([{"C": [sgf.escaped(text)]}, {"N": [sgf.escaped(text)]}])
    ((root, node),) = sgf.parse(written)
    assert sgf.one_line(root.properties["C"].values[0]) == sgf.one_line(node.properties["N"].values[0]) == text
    assert sgfmill.Sgf_game.from_string(written.replace("(;", "(;CA[UTF-8]FF[4]GM[1]", 1)).get_root().get("C") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [("a\nb", "a b"), ("a\r\nb\tc", "a b c"), ("a\\\nb", "ab"), ("a\\\r\nb", "ab"), ("\\n", "n"), ("a\\:b", "a:b")],
)
def test_line_ends_in_a_line_of_text(value, text):
    assert sgf.one_line(value) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: got the end, expected '('"),
        ("junk (;B[aa])", "line 1, column 1: got the property junk, expected ';' before it"),
        ("(;B[aa]", "line 1, column 8: got the end, expected ')'"),
        ("(;B[aa])\n )", "line 2, column 2: got ')', expected '('"),
        ("(;B[aa];W[bb]\n;B[cc", "line 2, column 3: got a value without its ], expected a node"),
        ("(;B[aa\\])", "line 1, column 4: got a value without its ]"),
        ("(;B;W[aa])", "line 1, column 3: property B without a value"),
        ("(;[aa])", "line 1, column 3: got a value, expected a property's name before it"),
        ("(B[aa])", "line 1, column 2: got the property B, expected ';' before it"),
        ("(;b[aa])", "line 1, column 3: got the property b, expected capital letters"),
        ("(;B[aa]C[x]B[bb])", "line 1, column 12: got the property B, expected it once in a node"),
        ("()", "line 1, column 2: got ')', expected a node, ';'"),
        ("(;B[aa](;W[bb]);W[cc])", "line 1, column 16: got a node after a variation, expected ')'"),
        ("(;B[aa]((;W[bb])))", "line 1, column 9: got '(', expected a node, ';'"),
        ("(;B[aa])x", "line 1, column 9: got the property x, expected ';' before it"),
        ("(;B[aa] 5)", "line 1, column 9: got '5', expected a node, a property or a parenthesis"),
        ("(;B[aa](;W[bb])[cc])", "line 1, column 16: got a value, expected a property's name before it"),
    ],
)
def test_what_is_not_sgf_is_refused_with_its_place(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        sgf.parse(text)


def test_ten_thousand_parentheses_are_no_recursion():
    assert len(sgf.parse("(;B[aa]" * 10_000 + ")" * 10_000)[0]) == 10_000


# Games as text


def test_a_game_of_go_as_text():
    game = Go(9, komi=6.5)
    go = record(game, [0, 80, 8, 81, 72], (-1.0, 1.0), end="resignation", players=("A]B", "C"), date="2026-11-30")
    text = write_sgf(game, [go])
    assert text == (
        "(;GM[1]FF[4]CA[UTF-8]SZ[9]KM[6.5]RU[koPOSITIONALscoreAREAtaxNONEsui0]PB[A\\]B]PW[C]DT[2026-11-30]RE[W+R]\n"
        ";B[aa];W[ii];B[ia];W[];B[ai])\n"
    )
    assert read_sgf(text) == [go]


def test_a_game_of_hex_as_text():
    game = Hex(3)
    hexes = record(game, [2, 9, 0, 1], players=("?", "?"))
    text = write_sgf(game, [hexes])
    assert text == "(;GM[11]FF[4]CA[UTF-8]SZ[3]PB[?]PW[?]RE[Void]\n;B[c1];W[swap-pieces];B[a1];W[b1])\n"
    assert read_sgf(text) == [hexes]


def test_a_game_of_othello_as_text():
    game = Othello(4)
    othello = record(game, [1, 0, 4, 2], (0.0, 0.0), source="by hand")
    text = write_sgf(game, [othello])
    assert text == (
        "(;GM[2]FF[4]CA[UTF-8]SZ[4]PB[?]PW[?]SO[by hand]AB[c2][b3]AW[b2][c3]PL[B]RE[Draw]\n;B[b1];W[a1];B[a2];W[c1])\n"
    )
    assert read_sgf(text) == [othello]
    assert "AB[e4][d5]AW[d4][e5]PL[B]" in write_sgf(Othello(), [record(Othello(), [])])


@pytest.mark.parametrize(
    "game",
    [
        Go(2),
        Go(19, komi=0),
        Go(25, komi=-3.25, suicide=True),
        Go(5, komi=-0.0),
        Go(5, komi=1e-7),
        Go(5, komi=1e300),
        Hex(1, swap=False),
        Hex(32),
        Othello(32),
    ],
    ids=lambda game: game.id,
)
def test_the_game_is_read_back_with_its_options(game):
    actions = [*range(game.num_actions)][-60:]
    (back,) = read_sgf(write_sgf(game, [record(game, actions)]))
    assert back.game == game.id and back.actions == tuple(actions)
    assert envs.make(back.game) == game


def test_a_collection_keeps_its_order_and_two_can_be_joined():
    game = Go(5)
    games = [record(game, range(plies)) for plies in (0, 1, 25)]
    assert read_sgf(write_sgf(game, games) + write_sgf(game, games[:1])) == [*games, games[0]]


@pytest.mark.parametrize(
    ("returns", "end", "word"),
    [
        ((1.0, -1.0), "rules", "B+"),
        ((-1.0, 1.0), "rules", "W+"),
        ((0.0, 0.0), "rules", "Draw"),
        ((1.0, -1.0), "resignation", "B+R"),
        ((-1.0, 1.0), "time", "W+T"),
        ((-1.0, 1.0), "forfeit", "W+F"),
        (None, "unfinished", "Void"),
    ],
)
def test_results(returns, end, word):
    game = Go(9)
    text = write_sgf(game, [record(game, [3], returns, end=end)])
    assert f"RE[{word}]" in text
    (back,) = read_sgf(text)
    assert (back.returns, back.end) == (returns, end)


@pytest.mark.parametrize(
    ("word", "returns", "end"),
    [
        ("B+12.5", (1.0, -1.0), "rules"),
        ("w+64", (-1.0, 1.0), "rules"),
        ("W+Resign", (-1.0, 1.0), "resignation"),
        ("B+Time", (1.0, -1.0), "time"),
        ("b+forfeit", (1.0, -1.0), "forfeit"),
        ("0", (0.0, 0.0), "rules"),
        ("?", None, "unfinished"),
        ("", None, "unfinished"),
    ],
)
def test_results_as_others_write_them(word, returns, end):
    (back,) = read_sgf(f"(;RE[{word}];B[aa])")
    assert (back.returns, back.end) == (returns, end)


def test_a_game_cut_off_has_no_result_in_sgf():
    game = Go(5, max_plies=3)
    (back,) = read_sgf(write_sgf(game, [record(game, [0, 1, 2], (0.0, 0.0), end="plies")]))
    assert (back.game, back.returns, back.end) == ("go,size=5", None, "unfinished")


def test_what_others_leave_out_or_write_otherwise():
    (go,) = read_sgf("(;SZ[9:9];;B[tt];W[ ]C[two passes])")
    assert go == record(Go(9, komi=0), [81, 81])
    (go,) = read_sgf("(;SZ[25]PL[B];B[tt])")
    assert go.actions == (19 * 25 + 19,)
    (hexes,) = read_sgf("(;GM[11];B[A1];W[Swap-Pieces];B[k11];W[resign])")
    assert (hexes.game, hexes.actions, hexes.returns, hexes.end) == ("hex", (0, 121, 120), (1.0, -1.0), "resignation")
    (hexes,) = read_sgf("(;GM[11]RE[W+F];B[forfeit])")
    assert (hexes.actions, hexes.returns, hexes.end) == ((), (-1.0, 1.0), "forfeit")
    (othello,) = read_sgf("(;GM[2]AB[E4][D5]AW[d4][e5];B[D3];B[e3];W[];B[PA];W[pass])")
    assert othello == record(Othello(), [19, 64, 20, 64, 64, 64])  # White's first pass was left out
    for rules in ("NZ", "Tromp-Taylor", "koSIMPLEscoreAREAtaxNONEsui1whbN"):
        assert read_sgf(f"(;SZ[9]KM[7.5]RU[{rules}])")[0].game == "go_9x9,suicide=true"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(;GM[3];B[aa])", "line 1, column 3: GM: got '3', expected 1 (Go), 2 (Othello) or 11 (Hex)"),
        ("(;GM[1][2])", "line 1, column 3: GM: got 2 values, expected one"),
        ("(;SZ[9:13])", "line 1, column 3: SZ: got '9:13', expected the size of a square board"),
        ("(;SZ[nine])", "line 1, column 3: SZ: got 'nine'"),
        ("(;SZ[26])", "line 1, column 2: go: size: got 26"),
        ("(;GM[2]SZ[7])", "line 1, column 2: othello: size: got 7"),
        ("(;GM[11]SZ[0])", "line 1, column 2: hex: size: got 0"),
        ("(;KM[6,5])", "line 1, column 3: KM: got '6,5', expected a number"),
        (f"(;KM[{'9' * 400}])", "line 1, column 2: go: komi: got inf"),
        ("(;RE[black])", "line 1, column 3: RE: got 'black', expected such as B+3.5"),
        ("(;RE[B+much])", "line 1, column 3: RE: got 'B+much'"),
        ("(;AB[aa][bb];W[cc])", "line 1, column 3: AB: got a position that is set up"),
        ("(;PL[W];W[cc])", "line 1, column 3: PL: got a position that is set up"),
        ("(;B[aa]\n;AE[aa])", "line 2, column 2: AE: got a position that is set up"),
        ("(;GM[2]AB[d4][e5]AW[e4][d5])", "line 1, column 8: AB: got a position that is set up"),
        ("(;W[aa])", "line 1, column 3: ply 1: got W, whose turn it is not"),
        ("(;B[aa];B[bb])", "line 1, column 9: ply 2: got B, whose turn it is not"),
        ("(;B[aa]W[bb])", "line 1, column 3: ply 1: got two moves in one node"),
        ("(;B[aa][bb])", "line 1, column 3: ply 1: got two moves in one node"),
        ("(;SZ[9]\n;B[aa];W[ja])", "line 2, column 8: ply 2: got 'ja', expected two letters from a to i"),
        ("(;SZ[9];B[tt];W[AA])", "line 1, column 15: ply 2: got 'AA', expected two letters"),
        ("(;GM[11];B[l1])", "line 1, column 10: ply 1: move: got 'l1', expected one of this game's moves"),
        ("(;GM[11];B[a1];W[swap-sides])", "line 1, column 16: ply 2: move: got 'swap-sides'"),
        ("(;GM[11]RU[no swap];B[a1];W[swap-pieces])", "line 1, column 27: ply 2: move: got 'swap-pieces'"),
        ("(;GM[11];B[resign];W[a1])", "line 1, column 20: ply 1: got a move after the end"),
        ("(;GM[11]RE[B+];B[resign])", "line 1, column 9: RE: got 'B+', expected W+, for B gave up"),
        ("(;GM[2];B[i1])", "line 1, column 9: ply 1: move: got 'i1'"),
        ("(;PB[a\x00b])", "line 1, column 2: players: got 'a\\x00b', expected one line of text"),
    ],
)
def test_what_is_no_game_is_refused_with_its_place(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        read_sgf(text)


def test_nothing_is_written_of_other_games():
    assert not has_sgf(envs.make("crosshair")) and has_sgf(Hex(4))
    with pytest.raises(ValueError, match="sgf: got crosshair, expected Go, Hex or Othello"):
        write_sgf(envs.make("crosshair"), [])
    with pytest.raises(ValueError, match=r"game 2: got a record of hex, expected one of hex,size=4"):
        write_sgf(Hex(4), [record(Hex(4), []), record(Hex(), [])])
    with pytest.raises(ValueError, match="game 1: ply 2: got 17, expected an action below 17"):
        write_sgf(Hex(4), [record(Hex(4), [3, 17])])


# Random games, and other programs


def random_records(random_play, game, games, seed=0):
    play = random_play(game, games, seed)
    returns = [tuple(map(float, values)) for values in play.returns.tolist()]
    return [record(game, play.moves(lane), returns[lane]) for lane in range(games)], play


@pytest.mark.parametrize(
    ("game", "games"), [(Go(9), 12), (Hex(5), 40), (Othello(6), 40)], ids=lambda value: getattr(value, "id", value)
)
def test_random_games_come_back_and_are_played_again(game, games, random_play):
    records, _ = random_records(random_play, game, games)
    back = read_sgf(write_sgf(game, records))
    assert back == records
    check_records(game, back)
    # A pass or a swap was among them.
    assert any(game.num_actions - 1 in record.actions for record in records)


def test_sgfmill_reads_what_we_write_and_we_what_it_writes(random_play):
    game = Go(9)
    records, play = random_records(random_play, game, 12)
    for lane, ours in enumerate(records):
        read = sgfmill.Sgf_game.from_string(write_sgf(game, [ours]))
        assert (read.get_size(), read.get_komi(), read.get_winner()) == (9, 7.5, "bw"[ours.returns[0] < 0])
        played = [node.get_move() for node in read.get_main_sequence()[1:]]
        # sgfmill counts rows from below.
        expected = [None if a == 81 else (8 - a // 9, a % 9) for a in play.moves(lane)]
        assert played == [("bw"[ply % 2], point) for ply, point in enumerate(expected)]

        theirs = sgfmill.Sgf_game(size=9)
        theirs.root.set("KM", 7.5)
        for colour, point in played:
            theirs.extend_main_sequence().set_move(colour, point)
        theirs.extend_main_sequence().set("C", "a comment ] \\ ;B[aa]")
        (back,) = read_sgf(theirs.serialise(wrap=30).decode())
        assert back == record(game, ours.actions)


def test_gnugo_loads_our_games(random_play, tmp_path):
    game = Go(9)
    records, play = random_records(random_play, game, 12)
    commands = []
    for lane, ours in enumerate(records):
        (tmp_path / f"{lane}.sgf").write_text(write_sgf(game, [ours]), encoding="utf-8")
        commands += [
            f"loadsgf {tmp_path}/{lane}.sgf",
            "query_boardsize",
            "get_komi",
            "list_stones black",
            "list_stones white",
        ]
    words = [GNUGO, "--mode", "gtp", "--quiet"]
    done = subprocess.run(words, input="\n".join([*commands, "quit", ""]), capture_output=True, text=True, check=True)
    answers = re.findall(r"^= ?([^\n]*)\n\n", done.stdout, re.MULTILINE)
    assert len(answers) == len(commands) + 1
    for lane in range(len(records)):
        to_move, size, komi, *stones = answers[5 * lane : 5 * lane + 5]
        moved = int(play.plies[lane])
        assert (to_move, size.strip(), komi.strip()) == (("black", "white")[moved % 2], "9", "7.5")
        chains = game.board.on_board(play.states.chains[moved, lane])
        ours = [{game.action_name(int(a)) for a in (sign * chains > 0).nonzero()[0]} for sign in (1, -1)]
        assert [{*vertices.split()} for vertices in stones] == ours


@pytest.mark.parametrize("game", [Hex(5), Othello(6)], ids=lambda game: game.id)
def test_open_spiel_plays_the_moves_of_our_text(game, random_play):
    records, _ = random_records(random_play, game, 40)
    options = {"hex": {"board_size": 5, "swap": True}, "othello": {}}[type(game).__name__.lower()]
    if isinstance(game, Othello):  # OpenSpiel's has 8 x 8 alone
        game = Othello()
        state = pyspiel.load_game("othello").new_initial_state()
        while not state.is_terminal():
            state.apply_action(state.legal_actions()[-1])
        records = [record(game, [min(a, 64) for a in state.history()], tuple(state.returns()))]
    for ours in records:
        state = pyspiel.load_game(type(game).__name__.lower(), options).new_initial_state()
        for colour, value in moves(sgf.parse(write_sgf(game, [ours]))[0]):
            assert "BW"[state.current_player()] == colour
            names = {state.action_to_string(action).lower(): action for action in state.legal_actions()}
            assert len(names) == len(state.legal_actions())
            state.apply_action(names[{"swap-pieces": "swap", "PA": "pass"}.get(value, value)])
        assert state.is_terminal() and tuple(state.returns()) == ours.returns
