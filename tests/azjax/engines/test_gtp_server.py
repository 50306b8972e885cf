"""Our agent as a GTP engine: whole conversations, which come out the same to the byte; then anything at all."""

import random
import subprocess
import sys
import time

import pytest

from azjax.servers.go_words import fixed_handicap

CONVERSATIONS = "basics play ko genmove turns handicap score clock leela kata interrupted".split()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversations_come_out_the_same(go_talk, name):
    go_talk.check(f"gtp-{name}")
