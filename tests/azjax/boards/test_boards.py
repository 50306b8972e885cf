"""Drawings: what a picture of a known position holds, and that every game's every move can be chosen on its board."""

import re
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from azjax.boards import Mark, animate, draw, draw_game, draw_marks, draw_move, event_names, zones_of
from azjax.boards.svg import FIRST, LIT, MARK, MUTED, SECOND
from azjax.boards.terminal import paint
from azjax.line import Line, read_line
from envs.record import GameRecord
from tests.pages import write_block

SVG = "{http://www.w3.org/2000/svg}"
GAMES = [
    *("tic_tac_toe", "connect_four", "crosshair", "black_hole", "othello", "hex", "ultimate_tic_tac_toe"),
    *("backgammon", "go,size=5", "chess", pytest.param("shogi", marks=pytest.mark.slow)),
]


def elements(svg: str, name: str, **attributes: str) -> list[ElementTree.Element]:
    found = ElementTree.fromstring(svg).iter(f"{SVG}{name}")
    return [one for one in found if all(one.get(key) == value for key, value in attributes.items())]


def at(word: str, moves: str) -> str:
    """The picture after moves, with what the last one did."""
    line = read_line(envs.make(word), moves)
    before = line.position(line.plies - 1) if line.plies else None
    return draw_move(line.game, line.state, before, line.action(line.plies)).svg()


@pytest.mark.parametrize("word", GAMES)
def test_every_move_of_a_random_game_can_be_chosen(word):
    game = envs.make(word)
    line, rng = Line(game), np.random.default_rng(0)
    for ply in range(60):
        if line.over:
            break
        drawing = draw(game, line.state)
        paths = zones_of(game, line.state, line.legal)
        ids = [zone.id for zone in drawing.zones]
        assert len(set(ids)) == len(ids)
        assert all(zone in ids for path in paths for zone in path)
        buttons = [game.action_name(action) for action, path in zip(line.legal, paths, strict=True) if not path]
        assert set(buttons) <= {"pass", "swap"}
        # Two dice can take one checker off, a pawn becomes one of four pieces, a piece promotes or not.
        if word not in ("backgammon", "chess", "shogi"):
            assert len(set(paths)) == len(paths)
        if ply % 10 == 0:
            root = ElementTree.fromstring(drawing.svg(choosable=True))
            assert len([one for one in root.iter() if one.get("class") == "zone"]) == len(ids)
            x_end, y_end = (float(size) for size in root.get("viewBox", "").split()[2:])
            assert all(0 < zone.x < x_end and 0 < zone.y < y_end for zone in drawing.zones)
        line.play(int(rng.choice(line.legal)))
    record = line.record(("a", "b"))
    assert draw(game, line.state)._repr_svg_().startswith("<svg")
    assert len(event_names(game, record)) == len(record.actions)


def test_a_won_line_is_lit():
    assert len(elements(at("tic_tac_toe", "a1 b1 a2 b2 a3"), "rect", fill=LIT)) == 3
    assert len(elements(at("tic_tac_toe", "a1 b1"), "rect", fill=LIT)) == 1


def test_the_chain_that_joins_two_sides_is_lit():
    game = envs.make("crosshair,size=3")
    line, rng = Line(game), np.random.default_rng(0)
    while not line.over:
        line.play(int(rng.choice(line.legal)))
    svg = draw(game, line.state).svg()
    lit = {(one.get("x"), one.get("y")) for one in elements(svg, "rect", fill=LIT)}
    colour = FIRST if line.returns[0] > 0 else SECOND
    stones = elements(svg, "circle", fill=colour)
    assert 3 <= len(lit) <= len(stones)
    won = at("hex,size=3,swap=false", "b1 a1 b2 a2 b3")
    assert len(elements(won, "polygon", fill=LIT)) == 3
    assert elements(at("hex,size=3,swap=false", "b1 a1 b2"), "polygon", fill=LIT) == []


def test_connect_four_rings_the_last_disc_or_the_four():
    assert len(elements(at("connect_four", "1 2"), "circle", r="14")) == 1
    assert len(elements(at("connect_four", "1 2 1 2 1 2 1"), "circle", r="14")) == 4


def test_crosshair_lights_row_and_column_and_rings_what_flipped():
    picture = at("crosshair", "d4 d5 d6")
    # Red pinched d5 between d4 and d6. The cross through d6 is 13 squares.
    assert len(elements(picture, "rect", fill=LIT)) == 13
    assert len(elements(picture, "circle", stroke=MARK)) == 1
    stones = elements(picture, "circle", fill=FIRST)
    assert len(stones) == 3 and len(elements(picture, "circle", fill=SECOND)) == 1  # the dot of what it was


def test_black_hole_shows_tiles_hole_and_the_deciding_ring():
    picture = at("black_hole,rows=2", "a1 a2")
    assert [one.text for one in elements(picture, "text") if one.text in ("1", "1")].count("1") >= 2
    assert "next to the hole" not in picture and "ring 1: red 1, blue 1" in picture
    five = envs.make("black_hole,rows=5")
    line = Line(five, events=[*range(1, 15)])  # the hole is the top; its ring holds red 1 and blue 1
    picture = draw(five, line.state).svg()
    assert "ring 1: red 1, blue 1" in picture and "ring 2: red 5, blue 2, the lower sum wins" in picture


def test_othello_counts_and_marks():
    picture = at("othello", "c4")
    assert "black 4, white 1" in picture and len(elements(picture, "circle", stroke=MARK)) == 1


def test_go_shows_whose_the_points_are_at_the_end():
    picture = at("go,size=3,komi=0", "b3 b2 a2 pass b1 pass c2 pass pass")
    assert re.search(r"black \d+, white \d+ \+ 0", picture)


def test_backgammon_is_seen_by_player_0_whoever_moves():
    game = envs.make("backgammon")
    line = Line(game, seed=1)
    start = draw(game, line.state)
    reds, blues = (len(elements(start.svg(), "circle", fill=colour)) for colour in (FIRST, SECOND))
    assert (reds, blues) == (30 - 15, 30 - 15)
    for source, _ in zones_of(game, line.state, line.legal):
        assert source in ("p24", "p13", "p8", "p6")
    while line.mover == 0:
        line.play(line.legal[0])
    for source, _ in zones_of(game, line.state, line.legal):
        assert source in ("p1", "p12", "p17", "p19", "bar1")


def test_chess_is_seen_from_whites_side_and_promotions_share_their_squares():
    game = envs.make("chess")
    line = read_line(game, "7k/P7/8/8/8/8/8/K7 w - - 0 1")
    paths = zones_of(game, line.state, line.legal)
    assert paths.count(("a7", "a8")) == 4 and ("a1", "b1") in paths
    line = read_line(game, "e2e4")
    assert ("e7", "e5") in zones_of(game, line.state, line.legal)
    picture = at("chess", "e2e4 e7e5")
    assert len(elements(picture, "g")) == 32
    lit = [one for one in elements(picture, "rect") if one.get("fill") in ("#f3dd85", "#e5c445")]
    assert [float(one.get("y", "")) for one in lit] == [26 + 56, 26 + 3 * 56]


@pytest.mark.slow
def test_shogi_shows_hands_and_drops_begin_there():
    game = envs.make("shogi")
    line = read_line(game, "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1")
    picture = draw(game, line.state).svg()
    names = [one.text for one in elements(picture, "text")]
    assert names.count("R") == 2 and names.count("+P") == 1 and "5" in names
    paths = zones_of(game, line.state, line.legal)
    assert ("P*1", "5e") in paths and all(path[0] != "P*0" for path in paths)


def test_a_game_without_a_drawing_is_drawn_from_its_text(double_turns):
    state = jax.jit(double_turns.init)(jax.random.key(0))
    drawing = draw(double_turns, state)
    assert "TurnsState" in drawing.svg() and zones_of(double_turns, state, [0, 1]) == [(), ()]


def test_a_board_of_squares_without_a_drawing_is_one_to_click_on(tmp_path):
    path = write_block(tmp_path / "gomoku.py", "docs/own_game.md", "class Gomoku(")
    game = envs.make(f"{path}:GAME,size=6")
    line = read_line(game, "c2 f6")
    picture = draw_move(game, line.state, line.position(1), line.action(2))
    assert [zone.id for zone in picture.zones][:7] == ["a1", "b1", "c1", "d1", "e1", "f1", "a2"]
    assert zones_of(game, line.state, line.legal) == [(game.action_name(action),) for action in line.legal]
    (black,), (white,) = (elements(picture.svg(), "text", fill=colour) for colour in (FIRST, SECOND))
    c2, f6 = picture.zone("c2"), picture.zone("f6")
    assert (black.text, black.get("x")) == ("X", f"{c2.x:g}") and (white.text, white.get("x")) == ("O", f"{f6.x:g}")
    (lit,) = elements(picture.svg(), "rect", fill=LIT)
    assert float(lit.get("x", "")) < f6.x < float(lit.get("x", "")) + float(lit.get("width", ""))
    labels = [one.text for one in elements(picture.svg(), "text", fill=MUTED) if one.text != "."]
    assert labels == [*"abcdef", *"123456"]


def test_a_board_whose_text_is_not_one_of_squares_is_drawn_from_its_text(tmp_path):
    path = write_block(tmp_path / "gomoku.py", "docs/own_game.md", "class Gomoku(")
    game = envs.make(f"{path}:GAME,size=5")
    state = game.init(jax.random.key(0))
    for text in (
        "no board",
        "\n".join(["1 . . . . ."] * 5),
        "\n".join([". . . . ."] * 4),
        "\n".join([". . . empty ."] * 5),
    ):
        object.__setattr__(game, "render", lambda state, text=text: text)
        assert draw(game, state).zones == ()
    object.__setattr__(game, "render", lambda state: "to move: X\n" + "\n".join([". . . . X"] * 5) + "\nA B C D E")
    picture = draw(game, state)
    assert len(picture.zones) == 25 and [one.text for one in elements(picture.svg(), "text")][-1] == "to move: X"


def test_marks_are_written_where_there_is_room_and_arrows_join_zones():
    game = envs.make("tic_tac_toe")
    drawing = draw(game, game.init(jax.random.key(0)))
    marks = [Mark(zones=("b2",), share=1.0, lines=("40", "50%", "+0.10")), Mark(zones=(), share=0.5)]
    over = drawing.svg(draw_marks(drawing, marks))
    assert {"40", "50%", "+0.10"} <= {one.text for one in elements(over, "text")}
    assert len(elements(drawing.svg(draw_marks(drawing, [Mark(zones=("a1", "c3"), share=1.0)])), "polygon")) == 1


def test_a_game_moves_by_itself():
    game = envs.make("tic_tac_toe")
    record = GameRecord(game="tic_tac_toe", actions=(4, 0, 3), returns=None, end="unfinished")
    drawings = draw_game(game, record)
    svg = animate(drawings, seconds=1, pause=1, names=event_names(game, record))
    clocks = elements(svg, "animate")
    assert [clock.get("dur") for clock in clocks] == ["5s"] * 4
    assert clocks[1].get("values") == "hidden;visible;hidden"
    assert clocks[1].get("keyTimes") == "0.00000;0.20000;0.40000"
    assert [group.get("visibility") for group in elements(svg, "g")] == ["hidden"] * 3 + ["visible"]
    assert "3. a2" in svg
    with pytest.raises(ValueError, match="got 0 drawings"):
        animate([])


def test_colour_keeps_every_character():
    for word in (word for word in GAMES if isinstance(word, str)):
        game = envs.make(word)
        board = game.render(Line(game).state)
        painted = paint(game, board)
        assert painted.plain == board
    go = envs.make("go_19x19")
    head = go.render(go.init(jax.random.key(0))).splitlines()[0]
    assert "O" in head and not any(span.start < len(head) for span in paint(go, head + "\n 1 X O").spans)
    board = "\n".join(["8 r n b"] * 8 + ["  a b c d e f g h", "8/8 w K b -"])
    assert max(span.end for span in paint(envs.make("chess"), board).spans) < board.index("  a b")
    state = jax.jit(envs.make("crosshair").step)(Line(envs.make("crosshair")).state, jnp.int32(0))
    styles = {str(span.style) for span in paint(envs.make("crosshair"), envs.make("crosshair").render(state)).spans}
    assert {"bold red", "green", "dim"} <= styles
