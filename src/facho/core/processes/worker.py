"""What stands behind the messages of a worker process: one event loop, on which all its slots have their work done."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from celery import Celery
from django.utils import timezone

from facho.core.wiring import build_scheduler, open_parts
from facho.executions.celery_executor import CeleryExecutor
from facho.executions.runner import NodeRunner
from facho.snmp_get.collector import OltCollector
from facho.zabbix_pollers.scheduler import ZabbixScheduler

WORKER = "worker"

T = TypeVar("T")


@dataclass(slots=True)
class _Work:
    """What lives on the loop."""

    runner: NodeRunner
    scheduler: ZabbixScheduler
    is_ticking: asyncio.Lock = field(default_factory=asyncio.Lock)
    has_pollers: bool = False
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    stop: asyncio.Event = field(default_factory=asyncio.Event)


class LoopWorker:
    """Carries out what messages ask for; opened by the first of them."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._opened: Future[_Work] = Future()
        # Celery's slots are threads that wait, so the loop they wait for needs one of its own.
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="loop", daemon=True)
        self._thread.start()

    def run(self, execution_id: int) -> None:
        """Carry an execution out on the loop, and wait for its end."""
        self._await(lambda work: work.runner.run(execution_id, None))

    def tick(self) -> int:
        """Do one tick; a second one that comes meanwhile is not needed."""
        return self._await(_tick)

    def as_leader(self, work: Callable[[datetime], object]) -> bool:
        """Do the work in this thread if this process leads."""
        leads = self._await(lambda on_loop: on_loop.scheduler.leads())
        if leads:
            work(timezone.now())
        return leads

    def close(self) -> None:
        """Close what the first message opened."""
        work = self._opened.result()
        work.loop.call_soon_threadsafe(work.stop.set)
        self._thread.join()

    def _await(self, ask: Callable[[_Work], Coroutine[Any, Any, T]]) -> T:
        work = self._opened.result()
        return asyncio.run_coroutine_threadsafe(ask(work), work.loop).result()

    async def _live(self) -> None:
        async with _open(self._app) as work:
            self._opened.set_result(work)
            await work.stop.wait()


@asynccontextmanager
async def _open(app: Celery) -> AsyncIterator[_Work]:
    async with open_parts(WORKER) as parts:
        executor = CeleryExecutor(app, parts.database)
        try:
            yield _Work(parts.runner(OltCollector(parts.devices)), build_scheduler(parts, executor))
        finally:
            await executor.close()


async def _tick(work: _Work) -> int:
    if work.is_ticking.locked():
        return 0
    async with work.is_ticking:
        if not work.has_pollers:
            await work.scheduler.pollers.prepare()
            work.has_pollers = True
        return await work.scheduler.tick()
