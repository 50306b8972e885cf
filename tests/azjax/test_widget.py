"""A game in a notebook: what its buttons and its text field do."""

import jax
import jax.numpy as jnp

import envs
from azjax.players import Player
from azjax.widget import MOST_BUTTONS, PlayWidget

GAME = envs.make("tic_tac_toe")


def choose_first(params, rng_key, states):
    return jnp.argmax(jax.vmap(GAME.legal_action_mask)(states), axis=1).astype(jnp.int32)


FIRST_SQUARE = Player("first square", choose_first, ())


def press(widget: PlayWidget, name: str) -> None:
    for box in (widget._moves, widget.children[-1]):
        for button in box.children:
            if getattr(button, "description", "") == name:
                button.click()
                return
    raise AssertionError(f"no button {name}")


def test_a_game_by_buttons():
    widget = PlayWidget(GAME, FIRST_SQUARE)
    assert [button.description for button in widget._moves.children][:2] == ["a1", "b1"]
    press(widget, "c1")
    assert "first square played a1. Your move." in widget._said.value
    press(widget, "b2")
    press(widget, "a3")
    assert "You won." in widget._said.value and widget._moves.children == ()
    press(widget, "New game")
    assert len(widget._moves.children) == 9 and widget._board.value.startswith("<svg")


def test_typing_undo_and_hint():
    widget = PlayWidget(GAME, FIRST_SQUARE, seat=1)
    assert "first square played a1" in widget._said.value
    widget._typed.value = "zz"
    assert "move: got 'zz'" in widget._said.value and widget.session.plies == 1
    widget._typed.value = "c3"
    assert widget.session.plies == 3 and widget._typed.value == ""
    press(widget, "Hint")
    assert "would play c1" in widget._said.value
    press(widget, "Undo")
    assert widget.session.plies == 1
    press(widget, "Undo")
    assert "no move of yours" in widget._said.value


def test_many_moves_are_typed():
    game = envs.make("go,size=12")
    assert game.num_actions > MOST_BUTTONS
    widget = PlayWidget(game, FIRST_SQUARE)
    assert widget._moves.children == ()
