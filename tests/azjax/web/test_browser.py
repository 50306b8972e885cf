"""The page in headless Chromium: whole games by clicks, the keyboard, a phone's width, a console without complaints.

Screenshots go to the folder that AZJAX_SCREENSHOTS names, for people to look at.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import Select

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")), reason="needs Debian's chromium"
    ),
]

FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --force-prefers-reduced-motion
""".split()

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


@pytest.fixture(scope="module")
def address(runs_folder) -> Iterator[str]:
    argv = [sys.executable, "-m", "azjax", "serve", "--port", "0"]
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": str(root)}
    server = subprocess.Popen(argv, cwd=runs_folder.parent, env=environment, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, line
        yield found[0]
    finally:
        server.terminate()
        server.wait(20)
        server.stdout.close()


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Iterator[WebDriver]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


@pytest.fixture
def page(driver, address) -> Iterator[WebDriver]:
    driver.set_window_size(1280, 950)
    driver.get(address)
    settle(driver)
    yield driver
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def settle(driver: WebDriver, seconds: float = 120) -> str:
    """Waits until nothing is computed; returns what the status says."""
    end = time.monotonic() + seconds
    quiet = 0
    while quiet < 3:
        assert time.monotonic() < end, status(driver)
        busy = driver.execute_script("return document.body.classList.contains('thinking') || !window.azjaxReady")
        quiet = 0 if busy else quiet + 1
        time.sleep(0.01)
    return status(driver)


def status(driver: WebDriver) -> str:
    return driver.find_element(By.ID, "status").text


def choose(driver: WebDriver, name: str, value: str) -> None:
    Select(driver.find_element(By.CSS_SELECTOR, f'select[aria-label="{name}"]')).select_by_value(value)


def begin(driver: WebDriver, game: str, options: str = "", opponent: str = "random") -> None:
    Select(driver.find_element(By.ID, "game")).select_by_value(game)
    settle(driver)
    box = driver.find_element(By.ID, "options")
    box.clear()
    box.send_keys(options)
    choose(driver, "Second: who", opponent)
    driver.find_element(By.ID, "new").click()
    settle(driver)
    choose(driver, "Second: who", opponent)
    settle(driver)


def set_up(driver: WebDriver, game: str, text: str) -> None:
    """Sets a position up between two people."""
    begin(driver, game)
    choose(driver, "Second: who", "person")
    driver.find_element(By.CSS_SELECTOR, "#play details summary").click()
    driver.find_element(By.ID, "text").send_keys(text)
    driver.find_element(By.ID, "set").click()
    settle(driver)


def shoot(driver: WebDriver, name: str) -> None:
    if folder := os.environ.get("AZJAX_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        driver.save_screenshot(str(Path(folder) / f"{name}.png"))


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
    keys = webdriver.ActionChains(page)
    keys.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN).perform()
    assert page.switch_to.active_element.get_attribute("data-zone") == "b2"
    keys.reset_actions()
    webdriver.ActionChains(page).send_keys(Keys.ENTER).perform()
    settle(page)
    assert len(page.find_elements(By.CSS_SELECTOR, "#moves li")) == 2
    assert page.switch_to.active_element.get_attribute("data-zone") == "b2"  # where it was
    webdriver.ActionChains(page).send_keys("u").perform()
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
    deadline = time.monotonic() + 60
    while not status(page).startswith("Game over"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
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


def press(driver: WebDriver, *keys: str) -> None:
    webdriver.ActionChains(driver).send_keys(*keys).perform()


def focused(driver: WebDriver) -> str | None:
    return driver.switch_to.active_element.get_attribute("data-zone")


def walk(driver: WebDriver, zone: str) -> None:
    """Presses arrows until the zone has the focus: breadth first over what each arrow reaches."""
    entry = driver.find_element(By.CSS_SELECTOR, "#board .zone[tabindex='0']")
    driver.execute_script("arguments[0].focus()", entry)
    arrows = [Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.ARROW_DOWN]
    waiting, seen = [(focused(driver), [])], {focused(driver)}
    while waiting:
        here, path = waiting.pop(0)
        if here == zone:
            driver.execute_script("arguments[0].focus()", entry)
            press(driver, *path)
            assert focused(driver) == zone
            return
        for arrow in arrows:
            start = driver.find_element(By.CSS_SELECTOR, f'#board .zone[data-zone="{here}"]')
            driver.execute_script("arguments[0].focus()", start)
            press(driver, arrow)
            if (there := focused(driver)) not in seen:
                seen.add(there)
                waiting.append((there, [*path, arrow]))
    raise AssertionError(f"no arrows lead to {zone}, only to {sorted(filter(None, seen))}")


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
    deadline = time.monotonic() + 60
    while len(page.find_elements(By.CSS_SELECTOR, "#charts svg")) < 5 or not status(page).startswith("1 run"):
        assert time.monotonic() < deadline, status(page)
        time.sleep(0.05)
    shoot(page, "runs")
    page.find_element(By.CSS_SELECTOR, "#games-list button").click()
    while "steps through it" not in status(page):
        assert time.monotonic() < deadline, status(page)
        time.sleep(0.05)
    page.find_element(By.ID, "later").click()
    settle(page)
    current = page.find_element(By.CSS_SELECTOR, "#moves [aria-current=true]")
    assert current.text == "1. a1"


@pytest.mark.parametrize("game", ["connect_four", "backgammon", "go_9x9"])
def test_nothing_is_wider_than_a_phone(page, game):
    begin(page, game)
    # Chromium's window is 500 wide at least: a phone's width is emulated.
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        page.find_element(By.ID, "step-10").click()
        settle(page)
        shoot(page, f"{game}-phone")
        wide = page.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert wide[0] <= wide[1] == 360
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
