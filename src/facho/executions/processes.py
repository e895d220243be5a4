"""What the processes of the distributed mode report of themselves, every few seconds, for `facho doctor`."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version

from django.db import Error
from django.db.models import Min
from django.db.models.functions import Now

from facho.executions.models import Execution, ProductProcess
from facho.infrastructure.gateway import ThreadGateway, background
from facho.infrastructure.statements import Select
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.ports import Clock, stands_still

SAYS_SECONDS = 10.0
# Three missed reports: the process is gone.
SILENCE = timedelta(seconds=3 * SAYS_SECONDS)


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """What a process is, and what it has completed since its start; only a worker has slots."""

    owner: str
    version: str
    started_at: datetime
    clock_at: datetime
    groups: Collection[str] = ()
    slots: int = 0
    completed: int = 0
    completed_at: datetime | None = None


def save_process(report: ProcessReport) -> None:
    """Store a process's report with the database's time, in one statement."""
    row = ProductProcess(
        owner=report.owner,
        version=report.version,
        groups=sorted(report.groups),
        slots=report.slots,
        started_at=report.started_at,
        clock_at=report.clock_at,
        seen_at=Now(),
        completed=report.completed,
        completed_at=report.completed_at,
    )
    ProductProcess.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["owner"],
        update_fields=["clock_at", "seen_at", "completed", "completed_at"],
    )


def forget_process(owner: str) -> None:
    ProductProcess.objects.filter(owner=owner).delete()


def load_live_processes() -> list[ProductProcess]:
    """Load the processes that were heard of lately, by the clock of the database: others may be wrong."""
    return list(ProductProcess.objects.filter(seen_at__gte=Now() - SILENCE))


def load_other_versions() -> list[str]:
    """Name the live processes of other versions; asks only for columns that every version has."""
    live = ProductProcess.objects.filter(seen_at__gte=Now() - SILENCE).exclude(version=VERSION).order_by("owner")
    return [f"{owner} {other}" for owner, other in live.values_list("owner", "version")]


def load_still_workers() -> list[ProductProcess]:
    """Load the workers that say that they live, and complete nothing of what others of their groups do."""
    workers = [process for process in load_live_processes() if process.groups]
    return [worker for worker in workers if _stands_still(worker, workers)]


def _stands_still(worker: ProductProcess, workers: list[ProductProcess]) -> bool:
    # By its own clock, which may differ from those of others.
    idle = worker.clock_at - (worker.completed_at or worker.started_at)
    colleagues = [other for other in workers if set(other.groups) & set(worker.groups)]
    done = Execution.objects.filter(
        poller_group__in=worker.groups, finished_at__gt=worker.seen_at - idle, master_execution=None
    )
    return stands_still(idle, workers=len(colleagues), completed_by_others=done.exclude(owner=worker.owner).count())


_OLDEST_CLAIMS = Select(
    lambda: (
        # What was taken before was claimed again since, at a time that is not stored.
        Execution.objects.filter(status=ExecutionState.PENDING, finished_at=None, started_at=None)
        .order_by("poller_group")
        .values_list("poller_group")
        .annotate(at=Min("created_at"))
    )
)


def load_longest_waits(now: datetime) -> dict[str, timedelta]:
    """Measure, per poller group, how long the oldest claim has been waiting; one query."""
    return {group: max(now - at, timedelta(0)) for group, at in _OLDEST_CLAIMS.rows()}


logger = logging.getLogger(__name__)

VERSION = version("facho")


def describing(owner: str, clock: Clock) -> Callable[[], ProcessReport]:
    """Describe a process that starts now and has no slots."""
    started_at = clock.now()
    return lambda: ProcessReport(owner, VERSION, started_at, clock.now())


@asynccontextmanager
async def reporting(database: ThreadGateway, describe: Callable[[], ProcessReport]) -> AsyncIterator[None]:
    """Say every few seconds what this process is while the block runs, and be forgotten after it."""
    try:
        async with background(_keep_saying(database, describe), "report"):
            yield
    finally:
        with suppress(Error):
            await database.run(forget_process, describe().owner)


async def _keep_saying(database: ThreadGateway, describe: Callable[[], ProcessReport]) -> None:
    def say() -> None:
        # Described here: a clock that is read before the wait for a thread would be late.
        save_process(describe())

    while True:
        try:
            await database.run(say)
        except Error:
            logger.warning("process.report_failed", exc_info=True)
        await asyncio.sleep(SAYS_SECONDS)
