"""The engine process: scheduler, pollers and housekeeping on one event loop; alone on its data folder."""

import asyncio
import fcntl
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from facho.core.cli.product import set_up_django
from facho.core.processes.parent import exit_with_parent

if TYPE_CHECKING:
    from facho.core.wiring import Parts

logger = logging.getLogger("facho.engine")

DRAIN_SECONDS = 8.0


class EngineRuns(Exception):
    """Another engine holds the data folder."""


@contextmanager
def engine_lock() -> Iterator[None]:
    """Hold the lock that proves that no other engine lives on this data folder."""
    from django.conf import settings

    with settings.DATA_FOLDER.engine_lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise EngineRuns from error
        yield


async def run_engine(stop: asyncio.Event) -> None:
    """Poll until told to stop; then let what runs finish, and leave no claim behind."""
    from facho.core.housekeeping import housekeeping_loop
    from facho.core.wiring import ENGINE, build_engine, open_parts

    async with open_parts(ENGINE) as parts:
        engine = build_engine(parts)
        await _release_all(parts, "the engine was started again")
        keeping = asyncio.create_task(housekeeping_loop(parts, stop))
        await engine.scheduler.scheduler_loop(stop)
        await engine.executor.drain(timeout_seconds=DRAIN_SECONDS)
        await keeping
        await _release_all(parts, "the engine was stopped")


async def _release_all(parts: "Parts", reason: str) -> None:
    """End what an engine left: the lock proves that none of them lives any more."""
    from facho.core.wiring import ENGINE
    from facho.executions.store import load_active_of_owner
    from facho.zabbix_pollers.store import release_leadership, release_orphans

    left = await parts.database.run(load_active_of_owner, f"{ENGINE}/")
    await parts.database.run(release_orphans, left, reason=reason, now=parts.clock.now())
    await parts.database.run(release_leadership, f"{ENGINE}/")


async def _until_signal() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await run_engine(stop)


def main() -> None:
    """Run as a child of `facho run`."""
    exit_with_parent()
    set_up_django()
    with engine_lock():
        logger.info("engine.started")
        asyncio.run(_until_signal())
        logger.info("engine.stopped")


if __name__ == "__main__":
    main()
