"""`azjax serve`: its words, its port, its address."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from azjax.cli.options import Serve
from azjax.cli.parse import parse
from azjax.cli.serve import serve as command
from azjax.web.roster import Roster
from azjax.web.serve import serve


def test_its_words():
    words = ["--port", "0", "--run", "runs/a", "--game", "mine.py:GAME", "--player", "gtp:gnugo,level=1", "solver"]
    line = parse(["serve", *words])
    assert line is not None and isinstance(line.command, Serve)
    assert (line.command.port, str(line.command.run), line.command.game) == (0, "runs/a", "mine.py:GAME")
    assert line.command.player == ("gtp:gnugo,level=1", "solver")


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_ports_that_are_none(port):
    with pytest.raises(ValueError, match="port"):
        parse(["serve", "--port", port])


def test_a_directory_that_is_no_run(tmp_path):
    with pytest.raises(ValueError, match=r"--run: got .*, which has no config\.json"):
        command(Serve(run=tmp_path))


def test_a_port_that_is_taken(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=f"--port: got {port}, which cannot be used"):
            serve(Roster(tmp_path), port)


def test_it_serves_until_it_is_told_to_end(tmp_path):
    argv = [sys.executable, "-m", "azjax", "serve", "--port", "0"]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.match(r"azjax: (http://127\.0\.0\.1:\d+/)", server.stdout.readline())
            assert found
            with urllib.request.urlopen(found[1], timeout=60) as page:
                assert b"<title>azjax</title>" in page.read()
            server.send_signal(signal.SIGINT)
            assert server.wait(60) in (0, 130)
        finally:
            server.kill()
