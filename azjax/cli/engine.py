"""azjax engine. JAX is imported when the agent is needed: the first lines of a conversation are answered before."""

import sys
from typing import TYPE_CHECKING

from azjax.agents.shipped import shipped
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
    if options.run is not None and not (options.run / "config.json").is_file():
        raise ValueError(f"--run: got {options.run}, which has no config.json; expected a run's directory")
    agent_name = None if options.run is not None else _shipped(options.protocol)
    if reconfigure := getattr(sys.stdin, "reconfigure", None):
        reconfigure(errors="replace", newline="\n")
    load, simulations = _agent_of(options, agent_name), options.simulations
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


def _shipped(protocol: str) -> str:
    """Returns the name of the agent that comes with azjax for a protocol's game."""
    for name, header in shipped().items():
        if header.config.game.partition(",")[0].partition("_")[0] == _GAMES[protocol]:
            return name
    raise ValueError(
        f"--run: got none, and no agent for {_GAMES[protocol]} comes with azjax; expected a run's directory"
    )


def _agent_of(options: Engine, agent_name: str | None) -> LoadFn:
    """Returns what loads the agent of a run, or the one of this name that comes with azjax."""

    def load() -> "Thinker":
        import envs
        from azjax.players import run_of_player
        from azjax.rundir import load_run
        from azjax.thinker import Thinker
        from azjax.train import use_devices

        use_devices(1)
        if agent_name is not None:
            game = envs.make(shipped()[agent_name].config.game)
            agent = run_of_player(game, f"agent:{agent_name}", load_run)
        else:
            agent = load_run(str(options.run), options.step)
            game = envs.make(agent.config.game)
        wanted = _GAMES[options.protocol]
        if type(game).__module__.split(".")[1] != wanted:
            raise ValueError(
                f"--run: got a run of {game.id}, expected one of {wanted}, which {options.protocol} is for"
            )
        return Thinker(game, agent, megabytes=options.megabytes, seed=options.seed)

    return load
