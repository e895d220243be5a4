"""The scheduler process of the distributed mode: decides, sends messages, and keeps house while it leads."""

import asyncio
import logging

from facho.core.beside import beside
from facho.core.celery import app
from facho.core.housekeeping import House, housekeeping_loop
from facho.core.leader_watch import watching
from facho.core.processes.report import VERSION, reporting
from facho.core.processes.until_signal import run_until_signal
from facho.core.wiring import build_scheduler, open_parts
from facho.executions.celery_executor import CeleryExecutor
from facho.executions.processes import ProcessReport
from facho.zabbix_pollers.store import release_leadership

logger = logging.getLogger("facho.scheduler")

SCHEDULER = "scheduler"


async def run_scheduler(stop: asyncio.Event) -> None:
    """Schedule until told to stop, then leave the lead to others; what was sent goes on without us."""
    async with open_parts(SCHEDULER) as parts:
        executor = CeleryExecutor(app, parts.database, parts.hints)
        scheduler = build_scheduler(parts, executor)
        house = House(parts, stop, lambda: scheduler.is_leading, executor, lambda: scheduler.is_scheduling)
        listening = parts.hints.listen(on_ended=scheduler.on_task_completed, on_cancelled=lambda _execution_id: None)
        started_at = parts.clock.now()
        async with (
            beside(housekeeping_loop(house), "housekeeping"),
            beside(listening, "listening for hints"),
            reporting(parts.database, lambda: ProcessReport(parts.owner, VERSION, started_at, parts.clock.now())),
            watching(parts.database, parts.clock),
        ):
            await scheduler.scheduler_loop(stop)
        await executor.close()
        await parts.database.run(release_leadership, parts.owner)


def main() -> None:
    """Run `facho scheduler`."""
    logger.info("scheduler.started")
    run_until_signal(run_scheduler)
    logger.info("scheduler.stopped")
