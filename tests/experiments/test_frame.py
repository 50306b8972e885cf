"""What experiments share: matches kept as they are played, plans at the size of the source."""

import json

import pytest

from azjax.accelerators import Accelerators
from azjax.config import NetworkConfig, RunConfig, SearchConfig
from azjax.players import make_player
from azjax.rundir import load_run
from azjax.step import make_mesh
from envs.tic_tac_toe import GAME
from experiments import provenance as module
from experiments.ledger import Ledger, results
from experiments.paper_scale import PaperScale, device_hours, measured_rate, plan_row, plan_table, show_plan
from experiments.provenance import merged, publish, where

TINY = RunConfig(game="tic_tac_toe", network=NetworkConfig(width=8, blocks=1), search=SearchConfig(simulations=2))


def test_a_match_is_played_once(tmp_path):
    made = []

    def make(name):
        made.append(name)
        return make_player(GAME, name, load_run)

    path, mesh = tmp_path / "runs" / "matches.jsonl", make_mesh(1)
    row = Ledger(path).play(GAME, "random", "uct:2", make, games=4, mesh=mesh)
    assert made == ["random", "uct:2"]
    again = Ledger(path).play(GAME, "random", "uct:2", make, games=4, mesh=mesh)
    assert again == row and made == ["random", "uct:2"]
    assert sum(one.wins + one.draws + one.losses for one in results([row])) == row["match"]["games"] == 4
    other = Ledger(path).play(GAME, "random", "uct:2", make, games=4, mesh=mesh, seed=1)
    assert other["key"] != row["key"] and len(path.read_text().splitlines()) == 2


def test_parts_are_added_to_what_was_published(tmp_path, monkeypatch):
    def found_on(date, parts):
        monkeypatch.setattr(module, "provenance", lambda: {"date": date})
        parts = merged(tmp_path, "games", parts)
        publish(tmp_path, {"games": parts}, [{"game": name} for name in parts], "text", lambda path: None)
        return {name: part["date"] for name, part in parts.items()}

    assert found_on("Monday", {"hex": {"elo": 1, "ends": (0, 2)}}) == {"hex": "Monday"}
    assert found_on("Tuesday", {"go": {"elo": 5}}) == {"hex": "Monday", "go": "Tuesday"}
    # What is as it was keeps its date; what differs, or says its own, does not.
    assert found_on("Friday", {"hex": {"elo": 1, "ends": (0, 2)}}) == {"hex": "Monday", "go": "Tuesday"}
    assert found_on("Friday", {"hex": {"elo": 2}, "go": {"elo": 5, "date": "Sunday"}}) == {
        "hex": "Friday",
        "go": "Sunday",
    }
    assert json.loads((tmp_path / "results.json").read_text())["games"]["hex"] == {"date": "Friday", "elo": 2}
    assert (tmp_path / "results.csv").read_text() == "game\nhex\ngo\n"


def test_where_is_told_once():
    part = {"device": "2 x cpu", "cores": 2, "date": "2026-01-02", "commit": "abc"}
    other = part | {"commit": "def"}
    assert where([part, part]) == "2 x cpu, 2 cores, 2026-01-02, commit abc"
    assert where([part, other, part]) == f"{where([part])}; 2 x cpu, 2 cores, 2026-01-02, commit def"


def test_device_hours_count_searches_positions_and_updates():
    plan = {"steps": 100, "step": {"positions": 10, "simulations": 80, "samples": 30}}
    # 100 x (10 + 80 + 3 x 30) = 18,000 evaluations, at two a second.
    assert device_hours(plan, 2.0) == 2.5


def test_a_plan_has_memory_and_without_a_rate_no_hours():
    row = plan_row(TINY, Accelerators(4, "toy", 10**9), None)
    assert row["fits"] and row["devices"] == 4 and row["device_hours"] is None
    assert row["bytes"]["total"] > 10_000
    (line,) = plan_table([row]).splitlines()[2:]
    assert line.startswith("| tic_tac_toe | ") and line.endswith(" |  |  |")
    assert not plan_row(TINY, Accelerators(1, "toy", 1000), None)["fits"]


def test_a_measured_rate_is_kept_with_where_it_was_measured(tmp_path, capsys):
    assert measured_rate(TINY, batch=4) > 0
    assert show_plan(PaperScale(plan=True, on="2x16GB", measure=True), [TINY], tmp_path / "out") == 0
    kept = json.loads((tmp_path / "out" / "plan.json").read_text())
    (plan,) = kept["plans"]
    assert plan["device_hours"] == pytest.approx(device_hours(plan, plan["rate"]), rel=0.01)
    assert kept["cores"] >= 1 and "2 x 16 GB device" in capsys.readouterr().out


def test_a_given_rate_is_not_written_as_measured(tmp_path, capsys):
    assert show_plan(PaperScale(plan=True, rate=1e6, measure=True), [TINY], tmp_path / "out") == 0
    assert not (tmp_path / "out").exists() and "1e+06" in capsys.readouterr().out
