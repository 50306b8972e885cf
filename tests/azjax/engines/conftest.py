"""One tiny agent a game for all tests of the servers, and conversations with them."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import envs
from azjax import network
from azjax.checkpoint import Checkpoints
from azjax.config import NetworkConfig, RunConfig, SearchConfig
from azjax.players import LoadedRun
from azjax.rundir import RunDirectory
from azjax.servers.gtp import GtpServer
from azjax.servers.server import Server
from azjax.servers.uci import UCI, USI, UciServer
from azjax.thinker import Thinker
from envs.go import Go
from tests.azjax.engines.gibberish import TRANSCRIPTS

NETWORK = NetworkConfig(width=16, blocks=1, value_width=8)


def make_agent(word: str) -> LoadedRun:
    config = RunConfig(game=word, network=NETWORK, search=SearchConfig(simulations=24))
    return LoadedRun(config, network.init(NETWORK, envs.make(word), jax.random.key(7)), 0)


def write_run(agent: LoadedRun, directory: Path) -> str:
    """Makes the directory of a run that the agent might have come from."""
    run = RunDirectory(directory)
    run.write_config(agent.config)
    with Checkpoints(run.checkpoints_path, write=True) as checkpoints:
        state = {"learner": {"variables": agent.variables}, "step": jnp.int32(0)}
        checkpoints.save(0, state, {}, wait=True)
    return str(run.path)


class Clock:
    """Every look at it takes a hundredth of a second."""

    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


class Loader:
    """Gives servers an agent that is compiled once and knows nothing of earlier conversations."""

    def __init__(self, agent: LoadedRun):
        self._thinker = Thinker(envs.make(agent.config.game), agent, megabytes=1, clock=Clock())

    def __call__(self) -> Thinker:
        thinker = self._thinker
        thinker.forget()
        thinker.use_megabytes(1)
        thinker.use_wave(1)
        if isinstance(thinker.game, Go):
            thinker.use_komi(thinker.game.komi)
        thinker._slice = 8  # what it has learned of its speed
        return thinker


class Talk:
    """A conversation."""

    def __init__(self, server: Server, said: list[str], prefix: str):
        self.server, self.said, self.prefix = server, said, prefix

    def tell(self, *lines: str) -> list[str]:
        """Returns the lines of the answers to lines, each of which is sent when nothing is thought about any more."""
        answers = []
        for line in lines:
            self.server.hear(line)
            self.work()
            answers += self.heard()
        return answers

    def heard(self) -> list[str]:
        """Returns what was said since this was last asked."""
        lines, self.said[:] = list(self.said), []
        return lines

    def work(self, slices: int = 10_000) -> None:
        """Lets the server think, to the end unless it takes more slices."""
        while self.server.thinking and not self.server.waiting and not self.server.over and slices:
            self.server.work()
            slices -= 1

    def check(self, name: str) -> None:
        """Holds the conversation of a file again: "> LINE", "< ANSWER", and "~ N" for N slices of thought before the
        next line, where it would otherwise come after the last. AZJAX_WRITE_TRANSCRIPTS=1 writes what is answered now.
        """
        path = TRANSCRIPTS / f"{name}.txt"
        text = path.read_text(encoding="utf-8")
        now, script = [], [line for line in text.splitlines() if line[:1] in ">~#"]
        for line, following in zip(script, [*script[1:], ""], strict=True):
            now.append(line)
            if line.startswith("> "):
                self.server.hear(line[2:])
            elif line.startswith("~ "):
                self.work(int(line[2:]))
            if not following.startswith("~"):
                self.work() if line.startswith("> ") else None
            now += [f"< {answer}".rstrip() for answer in self.heard()]
        if os.environ.get("AZJAX_WRITE_TRANSCRIPTS"):
            path.write_text("\n".join(now) + "\n", encoding="utf-8")
        assert "\n".join(now) + "\n" == path.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def go_loader() -> Loader:
    return Loader(make_agent("go,size=5"))


@pytest.fixture
def go_talk(go_loader) -> Talk:
    said: list[str] = []
    return Talk(GtpServer(go_loader, said.append, Clock()), said, "gtp")


@pytest.fixture(scope="session")
def go_run(tmp_path_factory) -> str:
    return write_run(make_agent("go,size=5"), tmp_path_factory.mktemp("runs") / "go")


def uci_talker(dialect, word: str):
    loader = Loader(make_agent(word))

    def talk(resign: float | None = None) -> Talk:
        said: list[str] = []
        server = UciServer(dialect, loader, said.append, Clock(), resign=resign, megabytes=1)
        return Talk(server, said, dialect.name)

    return talk


@pytest.fixture(scope="session")
def chess_talker():
    return uci_talker(UCI, "chess")


@pytest.fixture(scope="session")
def shogi_talker():
    return uci_talker(USI, "shogi")


@pytest.fixture
def uci_talk(chess_talker) -> Talk:
    return chess_talker()


@pytest.fixture
def usi_talk(shogi_talker) -> Talk:
    return shogi_talker()


@pytest.fixture(scope="session")
def chess_run(tmp_path_factory) -> str:
    return write_run(make_agent("chess"), tmp_path_factory.mktemp("runs") / "chess")


@pytest.fixture(scope="session")
def shogi_run(tmp_path_factory) -> str:
    return write_run(make_agent("shogi"), tmp_path_factory.mktemp("runs") / "shogi")
