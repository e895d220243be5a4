"""The engine process: scheduler, pollers and housekeeping on one event loop; alone with its OLTs on its data folder."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import sha256

from django.conf import settings
from django.db import Error

from facho.core.data_folder import engine_lock
from facho.core.processes import supervisor
from facho.core.processes.housekeeping import Housekeeping, housekeeping_loop, probing
from facho.core.wiring import ENGINE, Engine, Parts, build_engine, hand_back_runs, open_parts
from facho.executions.store import load_active_of_owner
from facho.infrastructure.gateway import background, start_background
from facho.infrastructure.standstill import standstill_of
from facho.infrastructure.storage import sqlite_file, watch_storage
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.lease import WHOLE, Shard, all_shards
from facho.zabbix_pollers.store import forget_other_counts, release_as_seen, release_leadership

logger = logging.getLogger("facho.engine")

DRAIN_SECONDS = 8.0
MEMORY_SECONDS = 60.0
# The first polls do not wait longer for the check of a large database; it continues in the background.
CHECK_WAIT_SECONDS = 2.0
TAKE_OVER_PAUSE_SECONDS = 2.0


async def run_engine(stop: asyncio.Event, shard: Shard = WHOLE) -> None:
    """Poll the OLTs of the shard until stopped; then let what runs finish, and leave no claim behind."""
    # The engines of this data folder on this machine: the lock proves nothing about any other.
    folder = settings.DATA_FOLDER.path.stat()
    mark = sha256(f"{socket.gethostname()}/{folder.st_dev}/{folder.st_ino}".encode()).hexdigest()
    role = f"{ENGINE}-{mark[:8]}"
    async with open_parts(role, shard) as parts, _keeping_storage(parts):
        # The lock proves that no former engine of this data folder lives, so its leases need not run out first. Its
        # present neighbours hold no OLT of this shard, so any other owner of this folder that holds one is dead.
        engine = build_engine(parts, dead_owners=f"{role}/")
        if not await _take_over(parts, engine, role, stop):
            return
        chores = Housekeeping(parts, stop, is_scheduling=lambda: engine.scheduler.is_scheduling)
        # Of several engines the first runs the housekeeping; each identifies and probes its own OLTs.
        keep_house = housekeeping_loop if shard.number == 1 else probing
        async with background(keep_house(chores), "housekeeping"), background(_give_memory_back(), "memory"):
            await engine.scheduler.scheduler_loop(stop)
            asking = await engine.executor.drain(timeout_seconds=DRAIN_SECONDS)
        try:
            # End what is still in hand after the time to finish, and leave the lead to others.
            await hand_back_runs(parts, asking=asking)
            left = await parts.database.run(load_active_of_owner, parts.owner)
            pending = [run for run in left if run.execution_id not in asking]
            reason = "the engine was stopped"
            await parts.database.run(release_as_seen, pending, reason=reason, now=parts.clock.now())
            await parts.database.run(release_leadership, parts.owner, shard)
        except Error as error:
            # What is left is ended by the next engine, as after a kill.
            if standstill_of(error) is None:
                raise
            logger.warning("engine.let_go_failed", exc_info=True)


async def _give_memory_back() -> None:
    """Return peak memory, such as of many long answers, to the system; off the loop, since it visits all pages."""
    while True:
        await asyncio.sleep(MEMORY_SECONDS)
        await asyncio.to_thread(supervisor.release_free_memory)


@asynccontextmanager
async def _keeping_storage(parts: Parts) -> AsyncIterator[None]:
    """Watch the disk and keep its reserve; a small database is checked for damage before anything is written."""
    storage = parts.storage
    checking = start_background(asyncio.to_thread(storage.check, sqlite_file()), "check of the database")
    try:
        await asyncio.wait([checking], timeout=CHECK_WAIT_SECONDS)
        await asyncio.to_thread(storage.look)
        async with background(watch_storage(storage), "storage"):
            yield
    finally:
        storage.stop_checking()
        await asyncio.wait([checking])


async def _take_over(parts: Parts, engine: Engine, role: str, stop: asyncio.Event) -> bool:
    """Carry out what a former engine had only claimed; False when told to stop while the storage takes no writes."""
    while True:
        try:
            await parts.database.run(release_leadership, f"{role}/", parts.shard)
            await parts.database.run(forget_other_counts, f"{role}/", all_shards(parts.shard.count))
            for run in await parts.database.run(load_active_of_owner, f"{role}/"):
                # Claimed, and no packet sent: it can still have its run.
                if run.status is ExecutionState.PENDING and parts.shard.holds(run.olt_id):
                    engine.executor.start(run.execution_id, run.token)
        except Error as error:
            if standstill_of(error) is None:
                raise
            logger.exception("engine.take_over_failed")
        else:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(TAKE_OVER_PAUSE_SECONDS):
                await stop.wait()
        if stop.is_set():
            return False


def main(number: str = "1", count: str = "1", lock: str = "") -> None:
    """Run as a child of `facho run`, engine `number` of `count`; `lock` is the descriptor of the parent's lock."""
    shard = Shard(int(number), int(count))
    supervisor.raise_descriptor_limit()
    supervisor.keep_few_statements(supervisor.ENGINE_STATEMENTS)
    supervisor.collect_seldom()
    supervisor.switch_often()
    with engine_lock(settings.DATA_FOLDER, inherited=int(lock) if lock else None):
        logger.info("engine.started number=%s", shard)
        supervisor.run_until_signal(partial(run_engine, shard=shard))
        logger.info("engine.stopped number=%s", shard)
