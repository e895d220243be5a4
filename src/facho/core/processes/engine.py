"""The engine process: scheduler, pollers and housekeeping on one event loop; alone on its data folder."""

import asyncio
import fcntl
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import IO, TYPE_CHECKING

from facho.core.beside import beside
from facho.core.cli.product import set_up_django
from facho.core.processes.garbage import collect_seldom
from facho.core.processes.parent import exit_with_parent
from facho.core.processes.until_signal import run_until_signal

if TYPE_CHECKING:
    from facho.core.wiring import Engine, Parts

logger = logging.getLogger("facho.engine")

DRAIN_SECONDS = 8.0
# Who only looks whether an engine lives lets go within a moment.
LOCK_PAUSES_SECONDS = (0.0, 0.05, 0.1, 0.2)


class EngineRuns(Exception):
    """Another engine holds the data folder."""


@contextmanager
def engine_lock() -> Iterator[None]:
    """Hold the lock that proves that no other engine lives on this data folder."""
    from django.conf import settings

    with settings.DATA_FOLDER.engine_lock.open("w") as file:
        for pause_seconds in LOCK_PAUSES_SECONDS:
            time.sleep(pause_seconds)
            if _lock(file, fcntl.LOCK_EX):
                break
        else:
            raise EngineRuns
        yield


def is_engine_alive() -> bool:
    """Look, without writing and without keeping out another who looks; an engine that starts then tries again."""
    from django.conf import settings

    try:
        with settings.DATA_FOLDER.engine_lock.open() as file:
            return not _lock(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _lock(file: IO[str], kind: int) -> bool:
    """Tell whether the lock was free; it goes with the file."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def run_engine(stop: asyncio.Event) -> None:
    """Poll until told to stop; then let what runs finish, and leave no claim behind."""
    from facho.core.housekeeping import House, housekeeping_loop
    from facho.core.wiring import build_engine, open_parts

    role = _role()
    async with open_parts(role) as parts:
        engine = build_engine(parts)
        await _take_over(parts, engine, role)
        house = House(parts, stop, is_scheduling=lambda: engine.scheduler.is_scheduling)
        async with beside(housekeeping_loop(house), "housekeeping"):
            await engine.scheduler.scheduler_loop(stop)
            await engine.executor.drain(timeout_seconds=DRAIN_SECONDS)
        await _let_go(parts)


def _role() -> str:
    """Name the engines of this data folder on this machine: the lock proves nothing about any other."""
    from django.conf import settings

    from facho.core.wiring import ENGINE

    folder = settings.DATA_FOLDER.path.stat()
    mark = sha256(f"{socket.gethostname()}/{folder.st_dev}/{folder.st_ino}".encode()).hexdigest()
    return f"{ENGINE}-{mark[:8]}"


async def _take_over(parts: "Parts", engine: "Engine", role: str) -> None:
    """Carry on after a former engine: the lock proves that it is dead, so nobody has to wait for its leases."""
    from facho.executions.store import load_active_of_owner
    from facho.polling.domain.execution_state import ExecutionState
    from facho.zabbix_pollers.recovery import end_dead_tries
    from facho.zabbix_pollers.store import release_leadership

    left = await parts.database.run(load_active_of_owner, f"{role}/")
    begun = [run for run in left if run.status is ExecutionState.RUNNING]
    reason = "the engine was started again"
    await parts.database.run(end_dead_tries, begun, reason=reason, now=parts.clock.now())
    await parts.database.run(release_leadership, f"{role}/")
    for run in left:
        # Claimed, and no packet sent: it can still have its run.
        if run.status is ExecutionState.PENDING:
            engine.executor.start(run.execution_id, run.token)


async def _let_go(parts: "Parts") -> None:
    """End what is still in hand after the time to finish, and leave the lead to others."""
    from facho.core.wiring import hand_back_runs
    from facho.executions.store import load_active_of_owner
    from facho.zabbix_pollers.recovery import release_as_seen
    from facho.zabbix_pollers.store import release_leadership

    await hand_back_runs(parts)
    pending = await parts.database.run(load_active_of_owner, parts.owner)
    reason = "the engine was stopped"
    await parts.database.run(release_as_seen, pending, reason=reason, now=parts.clock.now())
    await parts.database.run(release_leadership, parts.owner)


def main() -> None:
    """Run as a child of `facho run`."""
    exit_with_parent()
    set_up_django()
    collect_seldom()
    with engine_lock():
        logger.info("engine.started")
        run_until_signal(run_engine)
        logger.info("engine.stopped")


if __name__ == "__main__":
    main()
