"""The process that hears notifications of OLTs: a child of `facho run`, or `facho traps` of the distributed mode."""

import asyncio
import logging
import sys
from contextlib import nullcontext

from django.conf import settings

from facho.core.env import Mode, split_bind
from facho.core.processes import supervisor
from facho.core.processes.leader_watch import watch_version
from facho.core.wiring import new_owner
from facho.executions.processes import describing, reporting
from facho.infrastructure.gateway import SystemClock, ThreadGateway, background
from facho.traps.receiver import TrapReception, receiver_name

logger = logging.getLogger("facho.traps")

TRAPS = "traps"


async def receive(stop: asyncio.Event, *, ends_when_off: bool) -> None:
    bind = split_bind(settings.FACHO_TRAPS_BIND)
    clock, database = SystemClock(), ThreadGateway(1)
    try:
        is_distributed = settings.FACHO_MODE is Mode.DISTRIBUTED
        reception = TrapReception(database, clock, receiver_name(bind[1]), bind, shares_port=is_distributed)
        async with (
            reporting(database, describing(new_owner(TRAPS), clock)) if is_distributed else nullcontext(),
            background(watch_version(database), "version") if is_distributed else nullcontext(),
        ):
            if is_distributed:
                supervisor.notify_ready()
            await reception.run(stop, ends_when_off=ends_when_off)
    except OSError as error:
        # The socket; everything else of the network is our own answer to an inform.
        logger.error("traps.cannot_listen address=%s error=%s", settings.FACHO_TRAPS_BIND, error.strerror)  # noqa: TRY400
        sys.exit(1)
    finally:
        await database.close()


def main(*, ends_when_off: bool = False) -> None:
    supervisor.share_arenas()
    supervisor.raise_descriptor_limit()
    supervisor.run_until_signal(lambda stop: receive(stop, ends_when_off=ends_when_off))


if __name__ == "__main__":
    supervisor.exit_with_parent()
    main(ends_when_off=True)
