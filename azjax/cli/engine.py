"""azjax engine. JAX is imported when the agent is needed: the first lines of a conversation are answered before."""

import sys
from typing import TYPE_CHECKING

from azjax.cli.options import Engine
from azjax.servers.conversation import serve, write_line
from azjax.servers.gtp import GtpServer
from azjax.servers.server import LoadFn, NoAgent, Server
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
    load, simulations = _agent_of(options), options.simulations
    if options.protocol == "gtp":
        server: Server = GtpServer(load, write_line, simulations=simulations)
    else:
        dialect = UCI if options.protocol == "uci" else USI
        server = UciServer(dialect, load, write_line, simulations=simulations, megabytes=options.megabytes)
    try:
        serve(server, sys.stdin)
    except NoAgent as error:
        raise ValueError(str(error)) from None
    return 0


def _agent_of(options: Engine) -> LoadFn:
    """Returns what loads the agent of a run."""

    def load() -> "Thinker":
        import envs
        from azjax.rundir import load_run
        from azjax.thinker import Thinker
        from azjax.train import use_devices

        use_devices(1)
        agent = load_run(str(options.run), options.step)
        game = envs.make(agent.config.game)
        wanted = _GAMES[options.protocol]
        if type(game).__module__.split(".")[1] != wanted:
            raise ValueError(
                f"--run: got a run of {game.id}, expected one of {wanted}, which {options.protocol} is for"
            )
        return Thinker(game, agent, megabytes=options.megabytes, seed=options.seed)

    return load
