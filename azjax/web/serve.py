"""`azjax serve`: the server's process."""

import socket

import uvicorn

from azjax.web.app import make_app
from azjax.web.roster import Roster

HOST = "127.0.0.1"


def serve(roster: Roster, port: int) -> int:
    """Serves until Ctrl-C; returns the exit status.

    Args:
      roster: who plays.
      port: on 127.0.0.1; 0 for any that is free.

    Raises:
      ValueError: the port is taken.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(128)  # before the address is told: who comes at once waits and is not refused
    except OSError as error:
        listening.close()
        raise ValueError(f"--port: got {port}, which cannot be used ({error.strerror}); expected a free one") from None
    with listening:
        print(f"azjax: http://{HOST}:{listening.getsockname()[1]}/  (Ctrl-C ends it)", flush=True)
        config = uvicorn.Config(make_app(roster), log_level="warning", lifespan="off", ws="none", proxy_headers=False)
        uvicorn.Server(config).run(sockets=[listening])
    return 0
