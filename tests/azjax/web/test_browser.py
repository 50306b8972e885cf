"""The page in headless Chromium: whole games by clicks, the keyboard, a phone's width, a console without complaints."""

import random
import re
import urllib.parse
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import Select

from tests.azjax.web.browser import (
    begin,
    choose,
    chromium,
    complaints,
    focused,
    needs_chromium,
    phone,
    press,
    serving,
    set_up,
    settle,
    shoot,
    status,
    wait_for,
    walk,
)
from tests.pages import write_block
from tests.programs import installed

pytestmark = [pytest.mark.slow, needs_chromium]

# Makes one random legal move by clicks: zone after zone, a choice among several, or a button.
CLICK = """
const any = (list) => list[Math.floor(Math.random() * list.length)];
const click = (of) => of.dispatchEvent(new MouseEvent("click", {bubbles: true}));
const shown = (selector) => [...document.querySelectorAll(selector)];
const zones = shown("#board .zone.can"), buttons = shown("#buttons button");
if (!zones.length && !buttons.length) return "none";
if (buttons.length && Math.random() * (zones.length + 1) < 1) { click(any(buttons)); return "button"; }
click(any(zones));
const targets = shown("#board .zone.to");
if (targets.length) click(any(targets));
const choices = shown("#choices:not([hidden]) button");
if (choices.length) click(any(choices));
return "zone";
"""


OWN = "gomoku.py:GAME,size=5"
ENGINE = "usi:fairy-stockfish,skill=-10,nodes=100"


@pytest.fixture(scope="module")
def address(runs_folder) -> Iterator[str]:
    folder = runs_folder.parent
    write_block(folder / "gomoku.py", "docs/own_game.md", "class Gomoku(")
    players = ["--player", ENGINE] if installed("fairy-stockfish") else []
    with serving(folder, "--game", OWN, *players) as address:
        yield address


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Iterator[WebDriver]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture
def page(driver, address) -> Iterator[WebDriver]:
    driver.set_window_size(1280, 950)
    driver.get(address)
    settle(driver)
    yield driver
    assert complaints(driver) == []


BOARDS = [
    ("tic_tac_toe", ""),
    ("connect_four", ""),
    ("crosshair", ""),
    ("black_hole", ""),
    ("othello", "size=6"),
    ("hex", "size=5"),
    ("ultimate_tic_tac_toe", ""),
    ("go_9x9", "max_plies=60"),
    ("backgammon", "max_plies=80"),
    ("chess", "max_plies=40"),
    ("shogi", "max_plies=60"),
    (OWN, ""),
]


@pytest.mark.parametrize(("game", "options"), BOARDS, ids=[game for game, _ in BOARDS])
def test_a_whole_game_by_clicks(page, game, options):
    begin(page, game, options)
    shoot(page, f"{game}-begin")
    for turn in range(200):
        said = settle(page)
        if said.startswith("Game over"):
            break
        assert said.startswith("First player to move"), said
        assert page.execute_script(CLICK) != "none"
        if turn == 4:
            settle(page)
            shoot(page, f"{game}-middle")
    assert re.match(r"Game over: (a draw|first player won|second player won|cut off after \d+ moves: no result)", said)
    shoot(page, f"{game}-end")
    assert page.find_elements(By.CSS_SELECTOR, "#board .zone.can") == []


def test_the_keyboard_alone(page):
    begin(page, "tic_tac_toe")
    first = page.find_element(By.CSS_SELECTOR, '#board .zone[tabindex="0"]')
    page.execute_script("arguments[0].focus()", first)
    press(page, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert page.switch_to.active_element.get_attribute("data-zone") == "b2"
    press(page, Keys.ENTER)
    settle(page)
    assert len(page.find_elements(By.CSS_SELECTOR, "#moves li")) == 2
    assert page.switch_to.active_element.get_attribute("data-zone") == "b2"  # where it was
    press(page, "u")
    settle(page)
    assert len(page.find_elements(By.CSS_SELECTOR, "#moves li")) == 0
    move = page.find_element(By.ID, "move")
    move.send_keys("zz", Keys.ENTER)
    settle(page)
    assert status(page).startswith("move: got 'zz'")
    (complaint,) = page.get_log("browser")  # Chromium tells of every answer that refuses
    assert "/api/word" in complaint["message"] and "400" in complaint["message"]
    move.send_keys("c3", Keys.ENTER)
    settle(page)
    assert page.find_element(By.CSS_SELECTOR, "#moves li").text == "1. c3"


def test_a_whole_game_by_tab_arrows_and_enter(page):
    begin(page, "crosshair", "size=5")
    for _ in range(60):
        press(page, Keys.TAB)
        if focused(page):
            break
    arrows, chooser = [Keys.ARROW_LEFT, Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ARROW_DOWN], random.Random(0)
    for _ in range(2000):
        assert focused(page), status(page)  # the board keeps the focus from move to move
        label = page.switch_to.active_element.get_attribute("aria-label")
        press(page, Keys.ENTER if not label.endswith("not to be chosen") else chooser.choice(arrows))
        if settle(page).startswith("Game over"):
            break
    assert re.match(r"Game over: (first|second) player won", status(page))


def test_the_search_step_by_step(page):
    begin(page, "tic_tac_toe")
    choose(page, "Look with: who", "puct")
    for _ in range(3):
        page.find_element(By.ID, "step-1").click()
        settle(page)
    assert page.find_element(By.ID, "verdict").text.startswith("3 simulations")
    assert page.find_element(By.ID, "told").text.startswith("Last simulation: ")
    assert len(page.find_elements(By.CSS_SELECTOR, "#tree circle")) >= 4 * 2
    page.find_element(By.ID, "step-100").click()
    settle(page)
    assert page.find_element(By.ID, "verdict").text.startswith("103 simulations")
    assert len(page.find_elements(By.CSS_SELECTOR, "#candidates tr")) == 10
    shoot(page, "search")
    page.set_window_size(500, 900)
    shoot(page, "search-narrow")


def test_two_agents_are_watched_and_stopped(page):
    begin(page, "tic_tac_toe", opponent="uct")
    choose(page, "Second: simulations", "16")
    choose(page, "First: who", "random")
    wait_for(lambda: status(page).startswith("Game over"), 60)
    settle(page)
    page.find_element(By.ID, "first").click()
    settle(page)
    assert page.find_elements(By.CSS_SELECTOR, "#moves [aria-current=true]") == []


def test_a_position_is_set_up_and_saved(page):
    set_up(page, "tic_tac_toe", "b2 a1 c3")
    assert len(page.find_elements(By.CSS_SELECTOR, "#moves li")) == 3
    page.find_element(By.ID, "save").click()
    settle(page)
    links = page.find_elements(By.CSS_SELECTOR, "#saved a")
    assert [link.get_attribute("download") for link in links] == ["game.jsonl", "game.svg"]


@pytest.mark.parametrize(
    ("game", "moves", "names", "words"),
    [
        ("chess", "e2e4 e7e5 g1f3", ["game.jsonl", "game.pgn", "game.svg"], "1. e4 e5 2. Nf3"),
        ("shogi", "7g7f 3c3d", ["game.jsonl", "game.kif", "game.usi", "game.svg"], "７六歩"),
        ("go_9x9", "d4 e5", ["game.jsonl", "game.sgf", "game.svg"], ";B[df];W[ee]"),
    ],
)
def test_a_game_is_saved_in_its_own_format(page, game, moves, names, words):
    set_up(page, game, moves)
    page.find_element(By.ID, "save").click()
    settle(page)
    links = page.find_elements(By.CSS_SELECTOR, "#saved a")
    assert [link.get_attribute("download") for link in links] == names
    assert words in urllib.parse.unquote(links[1].get_attribute("href"))
    shoot(page, f"{game}-saved")


def test_chess_by_the_keyboard(page):
    begin(page, "chess")
    choose(page, "Second: who", "person")
    settle(page)
    walk(page, "e2")
    press(page, Keys.ENTER)
    assert status(page).startswith("e2 to e3, e4?") or status(page).startswith("e2 to e4, e3?")
    assert page.switch_to.active_element.get_attribute("aria-label") == "e2, chosen"
    press(page, Keys.ESCAPE)
    assert status(page) == "First player to move"
    press(page, Keys.ENTER, Keys.ARROW_UP, Keys.ARROW_UP)
    assert page.switch_to.active_element.get_attribute("aria-label") == "e4, possible"
    press(page, Keys.ENTER)
    settle(page)
    assert focused(page) == "e4"  # where it was
    press(page, Keys.PAGE_DOWN)
    assert focused(page) in {f"{file}{rank}" for file in "abcdefgh" for rank in "78"}  # a piece of the second player's
    walk(page, "g8")
    press(page, Keys.ENTER, Keys.PAGE_DOWN)
    assert focused(page) in ("f6", "h6")
    press(page, Keys.ENTER)
    settle(page)
    first, _ = page.find_elements(By.CSS_SELECTOR, "#moves li")
    assert first.text == "1. e2e4"
    shoot(page, "chess-keyboard")


def test_a_promotion_by_the_keyboard(page):
    set_up(page, "chess", "7k/P7/8/8/8/8/8/K7 w - - 0 1")
    walk(page, "a7")
    press(page, Keys.ENTER, Keys.ARROW_UP, Keys.ENTER)
    assert page.switch_to.active_element.text.startswith("a7a8")
    press(page, Keys.ESCAPE)
    assert focused(page) == "a8"
    press(page, Keys.ARROW_DOWN, Keys.ENTER, Keys.ARROW_UP, Keys.ENTER, Keys.ENTER)
    settle(page)
    assert page.find_element(By.CSS_SELECTOR, "#moves li").text.startswith("1. a7a8")
    assert focused(page) == "a8"


def test_a_drop_by_the_keyboard(page):
    set_up(page, "shogi", "7g7f 3c3d 8h2b+ 3a2b")
    walk(page, "B*0")
    press(page, Keys.ENTER)
    walk(page, "5e")
    press(page, Keys.ENTER)
    settle(page)
    moves = page.find_elements(By.CSS_SELECTOR, "#moves li")
    assert moves[-1].text == "5. B*5e"
    shoot(page, "shogi-keyboard")


def test_backgammon_by_the_keyboard(page):
    begin(page, "backgammon")
    choose(page, "Second: who", "person")
    settle(page)
    for zone in ("off", "bar0", "bar1", "p1", "p24", "p13"):
        walk(page, zone)
    entry = page.find_element(By.CSS_SELECTOR, "#board .zone.can")
    page.execute_script("arguments[0].focus()", entry)
    press(page, Keys.ENTER, Keys.PAGE_DOWN)
    assert page.switch_to.active_element.get_attribute("aria-label").endswith(", possible")
    press(page, Keys.ENTER)
    settle(page)
    assert len(page.find_elements(By.CSS_SELECTOR, "#moves li")) == 1
    shoot(page, "backgammon-keyboard")


def test_an_agent_that_comes_with_azjax_is_played(page):
    begin(page, "crosshair", opponent="puct")
    choose(page, "Second: simulations", "16")
    run = page.find_element(By.CSS_SELECTOR, 'select[aria-label="Second: run"]')
    assert run.is_displayed() and Select(run).first_selected_option.text == "agent:crosshair"
    assert page.execute_script(CLICK) == "zone"
    settle(page)
    assert len(page.find_elements(By.CSS_SELECTOR, "#moves li")) == 2
    page.find_element(By.ID, "step-10").click()
    settle(page)
    assert page.find_element(By.ID, "verdict").text.startswith("10 simulations")
    shoot(page, "shipped-agent")


def test_a_pawn_becomes_what_is_chosen(page):
    set_up(page, "chess", "7k/P7/8/8/8/8/8/K7 w - - 0 1")
    for square in ("a7", "a8"):
        page.find_element(By.CSS_SELECTOR, f'#board .zone[data-zone="{square}"]').click()
    choices = page.find_elements(By.CSS_SELECTOR, "#choices button")
    assert sorted(choice.text for choice in choices) == ["a7a8b", "a7a8n", "a7a8q", "a7a8r"]
    shoot(page, "promotion")
    choices[[choice.text for choice in choices].index("a7a8r")].click()
    settle(page)
    assert page.find_element(By.CSS_SELECTOR, "#moves li").text == "1. a7a8r"


def test_runs_are_shown_and_a_game_is_replayed(page):
    page.find_element(By.ID, "tab-runs").click()
    wait_for(lambda: len(page.find_elements(By.CSS_SELECTOR, "#charts svg")) == 5 and status(page) == "1 run")
    shoot(page, "runs")
    page.find_element(By.CSS_SELECTOR, "#games-list button").click()
    wait_for(lambda: "steps through it" in status(page))
    page.find_element(By.ID, "later").click()
    settle(page)
    current = page.find_element(By.CSS_SELECTOR, "#moves [aria-current=true]")
    assert current.text == "1. a1"


def test_an_engine_of_the_command_line_is_played(page):
    if not installed("fairy-stockfish"):
        pytest.skip("Fairy-Stockfish is not installed")
    begin(page, "shogi", opponent=f"player:{ENGINE}")
    for zone in ("7g", "7f"):
        page.find_element(By.CSS_SELECTOR, f'#board .zone[data-zone="{zone}"]').click()
    settle(page)
    first, second = page.find_elements(By.CSS_SELECTOR, "#moves li")
    assert first.text == "1. 7g7f" and re.fullmatch(r"2\. \d[a-i]\d[a-i]\+?", second.text)
    assert status(page) == "First player to move"


def widths(driver: WebDriver) -> list[int]:
    return driver.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")


def test_nothing_is_wider_than_a_phone(page):
    begin(page, "connect_four")
    with phone(page):
        page.find_element(By.ID, "step-10").click()
        settle(page)
        shoot(page, "connect_four-phone")
        assert widths(page) == [360, 360]


@pytest.mark.parametrize("game", ["backgammon", "go_9x9", "hex", OWN])
def test_boards_are_not_wider_than_a_phone(page, game):
    begin(page, game)
    with phone(page):
        shoot(page, f"{game}-phone")
        assert widths(page) == [360, 360]


def test_shogi_on_a_phone(page):
    """Hands full of pieces, a move with two endings, a drop: all of it within a finger's reach."""
    with phone(page):
        set_up(page, "shogi", "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1")
        zones = page.find_elements(By.CSS_SELECTOR, "#board .zone")
        assert len(zones) == 81 + 2 * 7
        assert min(min(zone.size["width"], zone.size["height"]) for zone in zones) >= 34

        page.execute_script("window.scrollTo(0, 0)")
        for zone in ("6f", "5g"):
            page.find_element(By.CSS_SELECTOR, f'#board .zone[data-zone="{zone}"]').click()
        choices = page.find_elements(By.CSS_SELECTOR, "#choices button")
        assert sorted(choice.text for choice in choices) == ["6f5g", "6f5g+"]
        shoot(page, "shogi-phone-promotion")
        for choice in choices:  # seen without scrolling
            box = choice.rect
            assert box["x"] >= 0 and box["x"] + box["width"] <= 360
            assert box["height"] >= 34 and box["y"] + box["height"] <= 740
        choices[[choice.text for choice in choices].index("6f5g+")].click()
        settle(page)
        before = page.find_element(By.ID, "board").rect
        page.find_element(By.CSS_SELECTOR, '#board .zone[data-zone="R*0"]').click()
        assert status(page) == "R*0 to one of 51? Escape chooses anew"
        assert page.find_element(By.ID, "board").rect == before  # it stays where the finger is
        page.find_element(By.CSS_SELECTOR, '#board .zone[data-zone="5e"]').click()
        settle(page)
        moves = page.find_elements(By.CSS_SELECTOR, "#moves li")
        assert [move.text for move in moves] == ["1. 6f5g+", "2. R*5e"]
        assert widths(page) == [360, 360]
        shoot(page, "shogi-phone")
