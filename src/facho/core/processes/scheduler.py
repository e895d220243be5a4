"""The scheduler process of the distributed mode: decides, sends messages, and runs background tasks while it leads."""

import asyncio
import logging
from contextlib import suppress

from django.db import Error

from facho.core.processes.celery_app import app
from facho.core.processes.housekeeping import Housekeeping, housekeeping_loop
from facho.core.processes.leader_watch import watch_version, watching
from facho.core.processes.supervisor import notify_ready, run_until_signal, share_arenas
from facho.core.wiring import build_scheduler, open_parts
from facho.executions.celery_executor import CeleryExecutor
from facho.executions.processes import describing, reporting
from facho.infrastructure.gateway import background
from facho.zabbix_pollers.store import release_leadership

logger = logging.getLogger("facho.scheduler")

SCHEDULER = "scheduler"


async def run_scheduler(stop: asyncio.Event) -> None:
    """Schedule until stopped, then release the lead; sent executions continue without this process."""
    async with open_parts(SCHEDULER) as parts:
        executor = CeleryExecutor(app, parts.database, parts.hints)
        scheduler = build_scheduler(parts, executor)
        chores = Housekeeping(parts, stop, lambda: scheduler.is_leading, executor, lambda: scheduler.is_scheduling)
        listening = parts.hints.listen(on_ended=scheduler.on_task_completed, on_cancelled=lambda _execution_id: None)
        async with (
            background(housekeeping_loop(chores), "housekeeping"),
            background(listening, "listening for hints"),
            reporting(parts.database, describing(parts.owner, parts.clock)),
            watching(parts.database, parts.clock),
            background(watch_version(parts.database), "version"),
        ):
            notify_ready()
            await scheduler.scheduler_loop(stop)
        await executor.close()
        with suppress(Error):  # the next leader then waits for the lease
            await parts.database.run(release_leadership, parts.owner)


def main() -> None:
    share_arenas()
    logger.info("scheduler.started")
    run_until_signal(run_scheduler)
    logger.info("scheduler.stopped")
