"""The trainings differ in the gate alone; the smoke budget trains, proves, plays and writes, once."""

import dataclasses
import json

import pytest

from azjax.config import differences
from experiments.black_hole_article import Options, by_seat, main, paper_scale
from experiments.black_hole_trainings import BUDGETS, GATES, configuration, lengths


def test_the_gates_are_the_articles_alpha_go_zeros_and_none():
    hour = BUDGETS["hour"]
    plain, loose, strict = (configuration(hour, 6, 0, gate) for gate in GATES.values())
    assert (strict.gate.every, strict.gate.score, strict.gate.streak) == (10, 0.6, 5)
    assert (loose.gate.every, loose.gate.score, loose.gate.streak) == (10, 0.55, 1)
    assert plain.gate.every == 0
    for gated in (loose, strict):
        changed = {name for name in differences(plain, gated) if not name.startswith("gate.")}
        assert changed == {"selfplay.actor"}


def test_history_changes_the_game_alone():
    gate = GATES["no gate"]
    plain, with_history = (configuration(BUDGETS["hour"], 9, 2, gate, history) for history in (1, 4))
    assert set(differences(plain, with_history)) == {"game"}
    assert (plain.game, with_history.game) == ("black_hole,rows=9", "black_hole,rows=9,history=4")
    assert plain.seed == 2 and plain.selfplay.temperature_plies >= 44


def test_both_lengths_are_kept():
    for budget in BUDGETS.values():
        short, long = lengths(budget.steps)
        config = configuration(budget, 6, 0, GATES["no gate"])
        assert long == config.steps and short % config.checkpoint.keep_every == 0 and short < long


def test_the_paper_scale_is_the_articles_recipe():
    six, nine = paper_scale()
    assert (six.game, nine.game) == ("black_hole,rows=6", "black_hole,rows=9")
    assert (six.steps, six.search.simulations, six.network.blocks, six.gate.streak) == (1_000_000, 100, 20, 5)


def test_results_are_told_apart_by_seat():
    pairs = [
        {"a": "x", "b": "y", "wins": 9, "draws": 0, "losses": 1},
        {"a": "y", "b": "x", "wins": 6, "draws": 2, "losses": 2},
    ]
    seats = by_seat({"pairs": pairs}, "x")
    assert (seats["first"]["wins"], seats["first"]["losses"], seats["first"]["score"]) == (9, 1, 0.9)
    assert (seats["second"]["wins"], seats["second"]["losses"], seats["second"]["score"]) == (2, 6, 0.3)
    assert seats["second"]["ci95"][0] < 0.3 < seats["second"]["ci95"][1]


@pytest.mark.slow
def test_the_smoke_budget_does_every_part_once(tmp_path, capsys):
    options = Options(runs=tmp_path / "runs", out=tmp_path / "out")
    published = tmp_path / "out" / "results.json"

    # A part today, the others tomorrow.
    assert main(dataclasses.replace(options, parts=("gates",))) == 0
    (gates,) = json.loads(published.read_text())["parts"].values()
    gated = {
        "no gate",
        "gate 55 %, newest network",
        "gate 55 %, its holder",
        "gate 60 % x 5, newest network",
        "gate 60 % x 5, its holder",
        "uct:8",
        "random",
    }
    assert {player["name"] for player in gates["ratings"]["players"]} == gated
    assert main(options) == 0
    parts = json.loads(published.read_text())["parts"]
    exact, trainings, players = (
        parts[f"smoke, seed 0: {n}"] for n in ("exact", "trainings, 5 rows", "players, 5 rows")
    )
    assert exact["proof"]["openings"] == [{"moves": ["a1", "a2", "b2"], "value": 0.0}]
    assert {name: shares[-1]["positions"] for name, shares in exact["kept"].items()} == {"policy": 24, "PUCT 8": 24}
    for match in exact["openings"]:
        assert [sum(match[seat][n] for n in ("wins", "draws", "losses")) for seat in ("first", "second")] == [15, 15]
    assert [one["gate_matches"] for one in trainings["trainings"]] == [0, 2, 2, 0]
    assert {player["name"] for player in trainings["ratings"]["players"]} == gated | {"history 4"}
    assert len(players["ratings"]["players"]) == 2 * (3 + 2 * 2) + 2
    assert "gate 60 % x 5, its holder" in capsys.readouterr().out
    assert (tmp_path / "out" / "results.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

    # Nothing is done twice.
    log = (tmp_path / "runs" / "black_hole_article-smoke-0" / "matches.jsonl").read_text()
    assert main(dataclasses.replace(options, parts=("exact", "gates", "players"))) == 0
    assert (tmp_path / "runs" / "black_hole_article-smoke-0" / "matches.jsonl").read_text() == log
    assert json.loads(published.read_text())["parts"] == parts
