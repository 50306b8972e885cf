"""The page in headless Chromium: whole games by clicks, the keyboard, a phone's width, a console without complaints.

Screenshots go to the folder that AZJAX_SCREENSHOTS names, for people to look at.
"""

import os
import re
import shutil
import subprocess
import sys
import time
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
    begin(page, "tic_tac_toe")
    choose(page, "Second: who", "person")
    page.find_element(By.CSS_SELECTOR, "#play details summary").click()
    page.find_element(By.ID, "text").send_keys("b2 a1 c3")
    page.find_element(By.ID, "set").click()
    settle(page)
    assert len(page.find_elements(By.CSS_SELECTOR, "#moves li")) == 3
    page.find_element(By.ID, "save").click()
    settle(page)
    links = page.find_elements(By.CSS_SELECTOR, "#saved a")
    assert [link.get_attribute("download") for link in links] == ["game.jsonl", "game.svg"]


def test_a_pawn_becomes_what_is_chosen(page):
    begin(page, "chess")
    choose(page, "Second: who", "person")
    page.find_element(By.CSS_SELECTOR, "#play details summary").click()
    page.find_element(By.ID, "text").send_keys("7k/P7/8/8/8/8/8/K7 w - - 0 1")
    page.find_element(By.ID, "set").click()
    settle(page)
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
