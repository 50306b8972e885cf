"""azjax engine. JAX is imported when the agent is needed: the first lines of a conversation are answered before."""

import dataclasses
import sys
from typing import TYPE_CHECKING

from azjax.cli.options import Engine
from azjax.servers.conversation import serve, write_line
from azjax.servers.gtp import GtpServer
from azjax.servers.server import LoadFn, Server
from azjax.servers.uci import UCI, USI, UciServer

if TYPE_CHECKING:
    from azjax.thinker import Thinker

_GAMES = {"gtp": "go", "uci": "chess", "usi": "shogi"}


def speak(options: Engine) -> int:
    """Holds a conversation on stdin and stdout; returns the exit status."""
    if not (options.run / "config.json").is_file():
        raise ValueError(f"--run: got {options.run}, which has no config.json; expected a run's directory")
    if reconfigure := getattr(sys.stdin, "reconfigure", None):
        reconfigure(errors="replace", newline="\n")
    serve(make_server(options.protocol, agent_of(options), options.simulations), sys.stdin)
    return 0


def make_server(protocol: str, load: LoadFn, simulations: int | None = None) -> Server:
    """Returns the server of "gtp", "uci" or "usi"; `simulations` is of a search without limits."""
    if protocol == "gtp":
        return GtpServer(load, write_line, simulations=simulations)
    return UciServer(UCI if protocol == "uci" else USI, load, write_line, simulations=simulations)


def agent_of(options: Engine) -> LoadFn:
    """Returns what loads the agent of a run, its checkpoint once."""
    loaded = []

    def load(*, megabytes: int, komi: float | None = None) -> "Thinker":
        import envs
        from azjax.rundir import load_run
        from azjax.thinker import Thinker
        from azjax.train import use_devices

        if not loaded:
            use_devices(1)
            loaded.append(load_run(str(options.run), options.step))
        (agent,) = loaded
        game = envs.make(agent.config.game)
        wanted = _GAMES[options.protocol]
        if type(game).__module__.split(".")[1] != wanted:
            raise ValueError(
                f"--run: got a run of {game.id}, expected one of {wanted}, which {options.protocol} is for"
            )
        if komi is not None:
            game = dataclasses.replace(game, komi=komi)  # ty: ignore[invalid-argument-type]
        return Thinker(game, agent, megabytes=megabytes, seed=options.seed)

    return load
