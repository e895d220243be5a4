"""What stands behind the messages of a worker process: one event loop, on which all its slots have their work done."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from celery import Celery
from django.conf import settings
from django.db import Error
from django.utils import timezone

from facho.core.processes.leader_watch import watch_version
from facho.core.wiring import Parts, build_scheduler, hand_back_runs, open_parts
from facho.executions.celery_executor import CeleryExecutor
from facho.executions.models import Execution
from facho.executions.processes import VERSION, ProcessReport, reporting
from facho.executions.runner import NodeRunner, drain
from facho.executions.store import load_pending
from facho.infrastructure.gateway import background, start_background
from facho.snmp_get.collector import OltCollector
from facho.snmp_get.identity import IdentityCollector
from facho.zabbix_pollers.scheduler import ZabbixScheduler
from facho.zabbix_pollers.store import follow_probe, release_leadership

logger = logging.getLogger(__name__)

WORKER = "worker"
DRAIN_SECONDS = 8.0
# How often a worker looks for executions that no message brought; one seen twice is taken.
LOOK_SECONDS = 5.0
LOOKS_PER_LEASE = 6

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Duty:
    """How much a worker does at once, and for which groups; none for a worker that only has beat's messages."""

    slots: int
    groups: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Work:
    parts: Parts
    duty: Duty
    runner: NodeRunner
    scheduler: ZabbixScheduler
    slots: asyncio.Semaphore
    started_at: datetime
    runs: dict[asyncio.Task[None], int] = field(default_factory=dict)
    completed: int = 0
    completed_at: datetime | None = None
    is_ticking: asyncio.Lock = field(default_factory=asyncio.Lock)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    # Set when no message can come any more; until then the loop lives, and does nothing new.
    close: asyncio.Event = field(default_factory=asyncio.Event)
    on_duty: asyncio.Task[None] | None = None

    def describe(self) -> ProcessReport:
        return ProcessReport(
            self.parts.owner,
            VERSION,
            self.started_at,
            self.parts.clock.now(),
            self.duty.groups,
            self.duty.slots,
            self.completed,
            self.completed_at,
        )


class LoopWorker:
    """Carries out what messages ask for, and what should have come by one; opened by the first."""

    def __init__(self, app: Celery, duty: Duty) -> None:
        self._app = app
        self._duty = duty
        self._opened: Future[_Work] = Future()
        # Celery's slots are threads that wait, so the loop they wait for needs one of its own.
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="loop", daemon=True)
        self._thread.start()

    def run(self, execution_id: int) -> None:
        """Carry an execution out on the loop, and wait for its end; at a stop it is handed back."""
        self._carry_out(execution_id, is_probe=False)

    def probe(self, execution_id: int) -> None:
        """Carry a probe out on the loop, with what follows from it, and wait for its end."""
        self._carry_out(execution_id, is_probe=True)

    def tick(self) -> int:
        """Do one tick; a second one that comes meanwhile is not needed."""
        return self._await(_tick)

    def as_leader(self, work: Callable[[datetime], object]) -> bool:
        """Do the work in this thread if this process leads."""
        leads = self._await(_leads)
        if leads:
            work(timezone.now())
        return leads

    def begin_duty(self) -> None:
        """Look from now on for executions whose message is gone, and say that this worker is there."""
        self._await(_begin_duty)

    def begin_stop(self) -> None:
        """Take nothing new, and let what is in hand finish or hand it back; returns at once."""
        work = self._opened.result()
        work.loop.call_soon_threadsafe(work.stop.set)

    def close(self) -> None:
        """Stop, and wait until everything is let go."""
        work = self._opened.result()
        self.begin_stop()
        work.loop.call_soon_threadsafe(work.close.set)
        self._thread.join()

    def _carry_out(self, execution_id: int, *, is_probe: bool) -> None:
        with suppress(CancelledError):
            self._await(lambda work: _carry_out(work, execution_id, is_probe=is_probe))

    def _await(self, ask: Callable[[_Work], Coroutine[Any, Any, T]]) -> T:
        work = self._opened.result()
        return asyncio.run_coroutine_threadsafe(ask(work), work.loop).result()

    async def _live(self) -> None:
        async with _open(self._app, self._duty) as work:
            self._opened.set_result(work)
            await work.stop.wait()
            # Let runs finish for a while, then break them off and give their OLTs back.
            asking = await drain(work.runs, timeout_seconds=DRAIN_SECONDS)
            await hand_back_runs(work.parts, asking=asking)
            if work.on_duty is not None:
                await asyncio.wait([work.on_duty])
            await work.close.wait()


@asynccontextmanager
async def _open(app: Celery, duty: Duty) -> AsyncIterator[_Work]:
    async with open_parts(WORKER) as parts:
        executor = CeleryExecutor(app, parts.database, parts.hints)
        runner, scheduler = parts.runner(OltCollector(parts.devices)), build_scheduler(parts, executor)
        listening = parts.hints.listen(on_ended=scheduler.on_task_completed, on_cancelled=runner.look)
        try:
            async with background(listening, "listening for hints"):
                yield _Work(parts, duty, runner, scheduler, asyncio.Semaphore(duty.slots), parts.clock.now())
        finally:
            await executor.close()
            await parts.database.run(release_leadership, parts.owner)


async def _carry_out(work: _Work, execution_id: int, *, is_probe: bool) -> None:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 a coroutine runs in a task
    work.runs[task] = execution_id
    try:
        async with work.slots:
            if work.stop.is_set():
                return
            if await (_probe(work, execution_id) if is_probe else work.runner.run(execution_id, None)):
                work.completed, work.completed_at = work.completed + 1, work.parts.clock.now()
    finally:
        work.runs.pop(task, None)


async def _probe(work: _Work, execution_id: int) -> bool:
    parts = work.parts
    collector = IdentityCollector(parts.network, parts.database)
    if not await parts.runner(collector).run(execution_id, None):
        return False
    answered, now = collector.report.answered, parts.clock.now()
    olt_ids = Execution.objects.values_list("olt_id", flat=True)
    olt_id = await parts.database.run(olt_ids.get, id=execution_id)
    await parts.database.run(follow_probe, olt_id, answered=answered, now=now)
    return True


async def _begin_duty(work: _Work) -> None:
    work.on_duty = start_background(_be_on_duty(work), "duty")


async def _be_on_duty(work: _Work) -> None:
    database = work.parts.database
    async with reporting(database, work.describe), background(watch_version(database), "version"):
        await (_take_unsent(work) if work.duty.groups else work.stop.wait())


async def _take_unsent(work: _Work) -> None:
    """Take what was seen waiting in two looks in a row: its message was lost, or the broker is away."""
    pause = min(LOOK_SECONDS, settings.FACHO_LEASE_SECONDS / LOOKS_PER_LEASE)
    seen: dict[int, bool] = {}
    while not work.stop.is_set():
        try:
            waiting = await work.parts.database.run(load_pending, work.duty.groups)
        except Error:
            logger.warning("worker.look_failed", exc_info=True)
            waiting = {}
        for execution_id in seen.keys() & waiting.keys():
            if work.slots.locked():
                break
            logger.warning("execution.unsent execution=%s", execution_id)
            carrying_out = _carry_out(work, execution_id, is_probe=waiting[execution_id])
            work.runs[start_background(carrying_out, f"execution-{execution_id}")] = execution_id
            # Let it take its slot before the next one asks for one.
            await asyncio.sleep(0)
        seen = waiting
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await work.stop.wait()


async def _leads(work: _Work) -> bool:
    return not work.stop.is_set() and await work.scheduler.leads()


async def _tick(work: _Work) -> int:
    if work.is_ticking.locked() or work.stop.is_set():
        return 0
    async with work.is_ticking:
        await work.scheduler.prepare()
        return await work.scheduler.tick()
