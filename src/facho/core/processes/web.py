"""The web process: serves pages and API on the socket that the parent has bound."""

import asyncio
import gc
import socket
import sys
from contextlib import nullcontext
from functools import partial

import uvicorn
from django.core.asgi import get_asgi_application

from facho.core.health import seen
from facho.core.processes.connections import BoundedProtocol, Connections, most_connections
from facho.core.processes.gate import Gate
from facho.core.processes.leader_watch import watching
from facho.core.processes.limits import WEB_STATEMENTS, keep_few_statements, share_arenas
from facho.core.processes.report import VERSION, reporting
from facho.core.processes.supervisor import BACKLOG
from facho.core.wiring import new_owner
from facho.executions.processes import ProcessReport
from facho.infrastructure.gateway import SystemClock, ThreadGateway, background
from facho.infrastructure.storage import open_storage

WEB = "web"
# A fifth of Python's own: the event loop waits so long for each thread that computes before it answers `/livez`.
SWITCH_SECONDS = 0.001


def main(descriptor: str) -> None:
    """Run as a child of `facho run`; the argument is the number of the inherited socket."""
    keep_few_statements(WEB_STATEMENTS)
    asyncio.run(_serve(socket.socket(fileno=int(descriptor)), is_alone=True))


def serve(listening: socket.socket) -> None:
    """Answer on a bound socket until SIGINT or SIGTERM, as one of the processes of the distributed mode."""
    share_arenas()
    keep_few_statements(WEB_STATEMENTS)
    asyncio.run(_serve(listening, is_alone=False))


def build_application() -> Gate:
    """Return what the HTTP server calls; every address is loaded now, not by the first request."""
    return Gate(get_asgi_application())


async def _serve(listening: socket.socket, *, is_alone: bool) -> None:
    """Answer, and watch whether anybody polls; beside others, say what this process is."""
    sys.setswitchinterval(SWITCH_SECONDS)
    # What was loaded so far stays loaded: the garbage collector need not scan it while requests wait.
    gc.freeze()
    application = build_application()
    connections = Connections(most_connections(), application.refusals)
    clock, database = SystemClock(), ThreadGateway(threads=1, storage=open_storage())
    owner, started_at = new_owner(WEB), clock.now()

    def describe() -> ProcessReport:
        return ProcessReport(owner, VERSION, started_at, clock.now())

    try:
        async with (
            nullcontext() if is_alone else reporting(database, describe),
            watching(database, clock, seen),
            background(connections.watch(), "connections"),
        ):
            config = uvicorn.Config(
                application,
                http=partial(BoundedProtocol, connections),  # type: ignore[arg-type]  # called like the class
                ws="none",
                lifespan="off",
                backlog=BACKLOG,
                # By Django's settings, as in every other process.
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=3,
            )
            await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        await database.close()
