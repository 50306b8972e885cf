"""azjax engine. JAX is imported when the agent is needed: the first lines of a conversation are answered before."""

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from azjax.agents.shipped import find_agent, shipped
from azjax.cli.options import Engine
from azjax.config import RunConfig
from azjax.servers.conversation import serve, write_line
from azjax.servers.gtp import GtpServer
from azjax.servers.server import LoadFn, NoAgent, Server
from azjax.servers.uci import UCI, USI, UciServer

if TYPE_CHECKING:
    from azjax.thinker import Thinker

_GAMES = {"gtp": "go", "uci": "chess", "usi": "shogi"}


def speak(options: Engine) -> NoReturn:
    """Holds a conversation on stdin and stdout, and ends the process.

    Raises:
      ValueError: there is no such agent, it does not play the protocol's game, or there is nowhere to speak.
    """
    if options.run is not None and not (options.run / "config.json").is_file():
        raise ValueError(f"--run: got {options.run}, which has no config.json; expected a run's directory")
    name = None if options.run is not None else options.agent or _shipped(options.protocol)
    if name is not None:
        _check_game(find_agent(name).config, options.protocol, f"agent {name}")
    if sys.stdin is None or sys.stdout is None:  # a program started this one with one of them closed
        raise ValueError(
            "stdin and stdout: got one that is closed, expected both open: the conversation is held on them"
        )
    if reconfigure := getattr(sys.stdin, "reconfigure", None):
        reconfigure(errors="replace", newline="\n")
    load, simulations = _agent_of(options, name), options.simulations
    resign = None if options.resign is None else 2 * options.resign - 1  # a value from points of a game
    if options.protocol == "gtp":
        server: Server = GtpServer(load, write_line, simulations=simulations, resign=resign)
    else:
        server = UciServer(
            UCI if options.protocol == "uci" else USI,
            load,
            write_line,
            simulations=simulations,
            resign=resign,
            megabytes=options.megabytes,
            wave=options.wave,
        )
    try:
        serve(server, sys.stdin)
    except NoAgent as error:
        raise ValueError(str(error)) from None
    sys.stdout.flush()
    os._exit(0)  # to clear up what nobody needs any more takes Python and JAX half a second


def _shipped(protocol: str) -> str:
    """Returns the name of the agent that comes with azjax for a protocol's game."""
    for name, header in shipped().items():
        if _is_of(header.config, protocol):
            return name
    raise ValueError(
        f"--run: got none, and no agent for {_GAMES[protocol]} comes with azjax; expected a run's directory, "
        "or --agent FILE"
    )


def _is_of(config: RunConfig, protocol: str) -> bool:
    """Is this a protocol's game? By its name alone: that of somebody's own game would run code."""
    return config.game.partition(",")[0].partition("_")[0] == _GAMES[protocol]


def _check_game(config: RunConfig, protocol: str, where: str) -> None:
    if not _is_of(config, protocol):
        raise ValueError(f"{where}: got {config.game}, expected {_GAMES[protocol]}, which {protocol} is for")


def _agent_of(options: Engine, name: str | None) -> LoadFn:
    """Returns what loads the agent of the run, or the one of this name or in this file."""

    def load() -> "Thinker":
        import envs
        from azjax.players import load_agent
        from azjax.rundir import RunDirectory, load_run
        from azjax.thinker import Thinker
        from azjax.train import use_devices

        use_devices(1)
        if name is not None:
            game = envs.make(find_agent(name).config.game)
            agent = load_agent(game, name)
        else:
            config = RunDirectory(str(options.run)).read_config()
            _check_game(config, options.protocol, f"--run {options.run}")
            game, agent = envs.make(config.game), load_run(str(options.run), options.step)
        return Thinker(game, agent, megabytes=options.megabytes, seed=options.seed, wave=options.wave)

    return load
