"""The web process: serves pages and API on the socket that the parent has bound."""

import asyncio
import socket
import sys

import uvicorn

from facho.core.cli.product import set_up_django
from facho.core.processes.parent import exit_with_parent

WEB = "web"


def main() -> None:
    """Run as a child of `facho run`; the argument is the number of the inherited socket."""
    exit_with_parent()
    set_up_django()
    _server().run(sockets=[socket.socket(fileno=int(sys.argv[1]))])


def serve(listening: socket.socket) -> None:
    """Answer on a bound socket until SIGINT or SIGTERM, as one of the processes of the distributed mode."""
    asyncio.run(_serve(listening))


async def _serve(listening: socket.socket) -> None:
    from facho.core.clock import SystemClock
    from facho.core.gateway import ThreadGateway
    from facho.core.processes.report import VERSION, reporting
    from facho.core.wiring import new_owner
    from facho.executions.processes import ProcessReport

    clock, database, owner = SystemClock(), ThreadGateway(threads=1), new_owner(WEB)
    started_at = clock.now()
    try:
        async with reporting(database, lambda: ProcessReport(owner, VERSION, started_at, clock.now())):
            await _server().serve(sockets=[listening])
    finally:
        await database.close()


def _server() -> uvicorn.Server:
    config = uvicorn.Config(
        "facho.core.asgi:application",
        log_level="warning",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    return uvicorn.Server(config)


if __name__ == "__main__":
    main()
