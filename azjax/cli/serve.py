"""azjax serve."""

import contextlib
import importlib.util
import sys
from pathlib import Path

import envs
from azjax.cli.options import Serve

RUNS = Path("runs")


def serve(options: Serve) -> int:
    """Serves the page until Ctrl-C."""
    if options.run is not None and not (options.run / "config.json").is_file():
        raise ValueError(f"--run: got {options.run}, which has no config.json; expected a run's directory")
    if importlib.util.find_spec("uvicorn") is None or importlib.util.find_spec("starlette") is None:
        raise ValueError("serve: needs starlette and uvicorn, which are not installed: pip install 'azjax[play]'")
    if options.game is not None:
        envs.make(options.game)
    from azjax.train import use_devices
    from azjax.web.roster import Roster
    from azjax.web.serve import serve

    use_devices(1)  # one position at a time: more devices would only wait
    runs = () if options.run is None else (options.run,)
    games = () if options.game is None else (options.game,)
    roster = Roster(RUNS, runs, games, options.player)
    for name, why in roster.closed().items():
        print(f"azjax: run {name!r}: {ascii(why)[1:-1]}", file=sys.stderr)
    with contextlib.closing(roster.guests):
        return serve(roster, options.port)
