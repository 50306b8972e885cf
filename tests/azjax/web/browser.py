"""What tests of the page in headless Chromium share: a server, a window, its elements, its keys.

Screenshots go to the folder that AZJAX_SCREENSHOTS names, for people to look at.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import Select

ROOT = Path(__file__).parents[3]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}

needs_chromium = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")), reason="needs Debian's chromium"
)

FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --force-prefers-reduced-motion
""".split()


@contextlib.contextmanager
def serving(folder: Path, *words: str) -> Generator[str]:
    """`azjax serve` in a folder; yields its address."""
    argv = [sys.executable, "-m", "azjax", "serve", "--port", "0", *words]
    server = subprocess.Popen(argv, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, line
        yield found[0]
    finally:
        server.terminate()
        server.wait(120)  # it finishes what it computes
        server.stdout.close()


@contextlib.contextmanager
def chromium(profile: Path) -> Generator[WebDriver]:
    """A browser without a screen."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(120)
    try:
        yield driver
    finally:
        driver.quit()


def complaints(driver: WebDriver) -> list[dict]:
    """What the console has complained of since it was asked last."""
    return [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


@contextlib.contextmanager
def phone(driver: WebDriver) -> Generator[None]:
    """A window as wide as a phone: Chromium's own is 500 wide at least."""
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def wait_for(true, seconds: float = 120, why=lambda: "") -> None:
    """Waits until `true()` is."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, why()
        time.sleep(0.05)


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
    """Begins a game against an opponent."""
    if options:
        # Choosing it by hand begins a game without options, whose programs take seconds to compile.
        driver.execute_script("document.getElementById('game').value = arguments[0]", game)
        driver.find_element(By.ID, "options").send_keys(options)
        driver.find_element(By.ID, "new").click()
    else:
        Select(driver.find_element(By.ID, "game")).select_by_value(game)
    settle(driver)
    choose(driver, "Second: who", opponent)
    settle(driver)


def set_up(driver: WebDriver, game: str, text: str) -> None:
    """Sets a position up between two people."""
    begin(driver, game)
    choose(driver, "Second: who", "person")
    driver.find_element(By.CSS_SELECTOR, "#texts summary").click()
    driver.find_element(By.ID, "text").send_keys(text)
    driver.find_element(By.ID, "set").click()
    settle(driver)


def shoot(driver: WebDriver, name: str) -> None:
    if folder := os.environ.get("AZJAX_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        driver.save_screenshot(str(Path(folder) / f"{name}.png"))


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
