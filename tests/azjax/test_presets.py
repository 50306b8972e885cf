"""Presets: that replay holds the games they are asked for, and that asking runs no code of one's own."""

import pytest

import envs
from azjax.cli.options import Train
from azjax.cli.runs import _checked, _run_of
from azjax.presets import OWN_PLIES, PRESETS, preset

WORDS = ("crosshair,size=17", "hex,size=32", "othello,size=32", "go,size=25", "backgammon,max_plies=32767")
OWN = """
import dataclasses
from envs.tic_tac_toe import TicTacToe

class Long(TicTacToe):
    def __post_init__(self):
        object.__setattr__(self, "max_plies", 700)

GAME = Long()
"""


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("word", WORDS)
def test_replay_holds_the_longest_game_of_every_size(name, word):
    assert preset(name, word).replay.plies > envs.make(word).max_plies


def test_replay_is_as_long_as_the_preset_says_where_that_suffices():
    sizes = {name: preset(name, "crosshair,size=5").replay.plies for name in PRESETS}
    assert sizes == {"smoke": 64, "quick": 384, "full": 256, "paper": 200}
    assert preset("smoke", "chess").game == "chess,max_plies=32" and preset("smoke", "chess").replay.plies == 64
    assert preset("smoke", "chess,max_plies=90").replay.plies == 91


def test_a_game_of_ones_own_is_asked_once_its_code_may_run(tmp_path):
    path = tmp_path / "long.py"
    path.write_text("raise SystemExit('run')", encoding="utf-8")
    word = f"{path}:GAME"
    assert preset("quick", word).replay.plies == OWN_PLIES + 1  # which has not run the file
    path.write_text(OWN, encoding="utf-8")
    options = Train(game=word, preset="smoke", out=tmp_path / "run")
    config, directory = _run_of(options, (), _checked(options, ()))
    assert (config.replay.plies, config.game, directory) == (701, word, tmp_path / "run")
