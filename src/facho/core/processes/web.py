"""The web process: serves pages and API on the socket that the parent has bound."""

import asyncio
import socket
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

import uvicorn

from facho.core.cli.product import set_up_django
from facho.core.processes.parent import exit_with_parent

if TYPE_CHECKING:
    from facho.core.clock import SystemClock
    from facho.core.gateway import ThreadGateway

WEB = "web"


def main() -> None:
    """Run as a child of `facho run`; the argument is the number of the inherited socket."""
    exit_with_parent()
    set_up_django()
    asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1])), is_alone=True))


def serve(listening: socket.socket) -> None:
    """Answer on a bound socket until SIGINT or SIGTERM, as one of the processes of the distributed mode."""
    asyncio.run(_serve(listening, is_alone=False))


async def _serve(listening: socket.socket, *, is_alone: bool) -> None:
    """Answer, and watch whether anybody polls; beside others, say what this process is."""
    from facho.core.clock import SystemClock
    from facho.core.gateway import ThreadGateway
    from facho.core.leader_watch import watching

    clock, database = SystemClock(), ThreadGateway(threads=1)
    try:
        async with nullcontext() if is_alone else _reporting(database, clock), watching(database, clock):
            await _server().serve(sockets=[listening])
    finally:
        await database.close()


def _reporting(database: "ThreadGateway", clock: "SystemClock") -> AbstractAsyncContextManager[None]:
    from facho.core.processes.report import VERSION, reporting
    from facho.core.wiring import new_owner
    from facho.executions.processes import ProcessReport

    owner, started_at = new_owner(WEB), clock.now()
    return reporting(database, lambda: ProcessReport(owner, VERSION, started_at, clock.now()))


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
