"""The web process: serves pages and API on the socket that the parent has bound."""

import socket
import sys

import uvicorn

from facho.core.cli.product import set_up_django
from facho.core.processes.parent import exit_with_parent


def main() -> None:
    """Run as a child of `facho run`; the argument is the number of the inherited socket."""
    exit_with_parent()
    set_up_django()
    serve(socket.socket(fileno=int(sys.argv[1])))


def serve(listening: socket.socket) -> None:
    """Answer on a bound socket until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        "facho.core.asgi:application",
        log_level="warning",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
