"""The page's second tab while runs train: curves and games appear and change; what is killed or damaged is told of."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver

from tests.azjax.web.browser import ENVIRONMENT, chromium, complaints, needs_chromium, phone, serving, shoot, status
from tests.azjax.web.browser import wait_for as until

pytestmark = [pytest.mark.slow, needs_chromium]

SMALL = """
    --steps 20000 --network.kind mlp --network.width 16 --network.blocks 1 --search.simulations 4
    --search.considered-actions 4 --selfplay.lanes 8 --selfplay.plies 4 --replay.plies 32 --learner.batch 16
    --learner.updates 1 --evaluation.every 10 --evaluation.games 2 --evaluation.simulations 2
    --evaluation.anchors random --checkpoint.every 100 --devices 2
""".split()


@contextlib.contextmanager
def training(folder: Path, name: str, *more: str) -> Generator[subprocess.Popen]:
    argv = [sys.executable, "-m", "azjax", "train", "tic_tac_toe", "--preset", "smoke", "--out", f"runs/{name}", *SMALL]
    run = subprocess.Popen([*argv, *more], cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    try:
        yield run
    finally:
        run.kill()
        run.wait()


@pytest.fixture
def driver(tmp_path) -> Iterator[WebDriver]:
    with chromium(tmp_path / "chromium") as driver:
        yield driver


def row_of(driver: WebDriver, run: str) -> list[str]:
    """What the list says of a run, cell by cell; [] when it is not there."""
    script = """
    const box = document.querySelector(`[data-run="${arguments[0]}"]`);
    return box ? [...box.closest("tr").cells].map((cell) => cell.innerText) : [];
    """
    return driver.execute_script(script, run)


def step_of(driver: WebDriver, run: str) -> int:
    return int((row_of(driver, run) + [""] * 3)[2].split(" ")[0] or 0)


def show_only(driver: WebDriver, *runs: str) -> None:
    script = """
    for (const box of [...document.querySelectorAll("[data-run]")])
      if (box.checked !== arguments[0].includes(box.dataset.run)) box.click();
    """
    driver.execute_script(script, runs)


def pick(driver: WebDriver, name: str, value: str) -> None:
    """Chooses in one go: the page fills its lists anew while runs train."""
    script = """
    const list = document.getElementById(arguments[0]);
    list.value = arguments[1];
    list.dispatchEvent(new Event("change"));
    """
    driver.execute_script(script, name, value)


def widths(driver: WebDriver) -> list[int]:
    return driver.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")


def charts(driver: WebDriver) -> list[str]:
    return driver.execute_script('return [...document.querySelectorAll("#charts svg")].map((svg) => svg.outerHTML)')


def kept(driver: WebDriver) -> list[str]:
    return driver.execute_script(
        'return [...document.querySelectorAll("#games-file option")].map((file) => file.value)'
    )


def test_runs_are_seen_to_train_and_to_be_killed(driver, tmp_path):
    (tmp_path / "runs").mkdir()
    with (
        serving(tmp_path) as address,
        training(tmp_path, "one") as one,
        training(tmp_path, "two", "--learner.learning-rate", "0.02"),
    ):
        driver.set_window_size(1280, 950)
        driver.get(address)
        until(lambda: driver.execute_script("return Boolean(window.azjaxReady)"))
        driver.find_element(By.ID, "tab-runs").click()
        until(lambda: step_of(driver, "one") > 20 and step_of(driver, "two") > 20, 400, lambda: status(driver))
        assert row_of(driver, "one")[7] == row_of(driver, "two")[7] == "training"

        # All five curves of one, and its games, change.
        show_only(driver, "one")
        pick(driver, "games-run", "one")
        until(lambda: charts(driver) and all("<polyline" in chart for chart in charts(driver)), 300)
        assert len(charts(driver)) == 5 and "Elo above random" in charts(driver)[0]
        step, drawn, files = step_of(driver, "one"), charts(driver), kept(driver)
        until(lambda: step_of(driver, "one") > step + 20 and len(kept(driver)) > len(files))
        assert all(now != before for now, before in zip(charts(driver), drawn, strict=True))
        shoot(driver, "live-one")

        # Both side by side.
        show_only(driver, "one", "two")
        until(lambda: all(">one<" in chart and ">two<" in chart for chart in charts(driver)))
        shoot(driver, "live-two")
        with phone(driver):
            until(lambda: widths(driver) == [360, 360], 20, lambda: widths(driver))
            shoot(driver, "live-phone")
        for axis in ("minutes", "step", "games"):
            pick(driver, "axis", axis)
            until(lambda axis=axis: all(f">{axis}<" in chart for chart in charts(driver)))

        # One is killed, its log torn; a third is damaged: the other goes on.
        one.kill()
        one.wait()
        with (tmp_path / "runs/one/metrics.jsonl").open("ab") as log:
            log.write(b'\xff{"step": 3\n{"step": 4, "ga')
        shutil.copytree(tmp_path / "runs/one", tmp_path / "runs/three")
        (tmp_path / "runs/three/config.json").write_text("{", encoding="utf-8")
        until(lambda: "stopped" in row_of(driver, "one")[-1] and "damaged" in row_of(driver, "one")[-1])
        until(lambda: "config.json" in " ".join(row_of(driver, "three")))
        show_only(driver, "one", "two", "three")
        step = step_of(driver, "two")
        until(lambda: step_of(driver, "two") > step + 20)
        assert len(charts(driver)) == 5
        table = (
            "const box = document.getElementById('run-list').parentElement; return box.scrollWidth - box.clientWidth"
        )
        assert driver.execute_script(table) == 0  # what is wrong with a run does not push the others out of sight
        shoot(driver, "live-damaged")

        # A game that was kept is put on the board while the other run trains.
        pick(driver, "games-run", "two")
        click = "const game = document.querySelector('#games-list button'); game?.click(); return Boolean(game)"
        until(lambda: driver.execute_script(click))
        until(lambda: "steps through it" in status(driver), why=lambda: status(driver))
        assert complaints(driver) == []
