"""Rules as HTML: paragraphs, lists, drawings; nothing of a stranger's text becomes an element."""

import pytest

import envs
from azjax.boards import legend_of
from azjax.web.prose import as_html


def test_paragraphs_and_lists():
    text = "First\nline, `a1`.\n\n1. One\n   more.\n2. Two.\n\nLast."
    assert as_html(text) == ("<p>First line, <code>a1</code>.</p><ol><li>One more.</li><li>Two.</li></ol><p>Last.</p>")


def test_what_is_drawn_keeps_its_lines():
    assert as_html("Top.\n\n0 1 2   Action\n3 4 5") == "<p>Top.</p><pre>0 1 2   Action\n3 4 5</pre>"


def test_text_stays_text():
    assert as_html("<b onclick='x()'>&") == "<p>&lt;b onclick=&#x27;x()&#x27;&gt;&amp;</p>"
    assert as_html("  <i>\n") == "<pre>  &lt;i&gt;</pre>"
    assert as_html("") == ""


@pytest.mark.parametrize("word", envs.available())
def test_the_rules_of_every_game_are_paragraphs_and_its_board_is_explained(word):
    game = envs.make(word)
    rules = as_html(game.rules_text)
    assert rules.startswith("<p>") and "Moves: <code>" in rules and "<pre>" not in rules
    assert legend_of(game).endswith(".")
