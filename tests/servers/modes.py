"""The product as a test's parameter: the engine on this event loop, or a scheduler and a worker as processes."""

import asyncio
import select
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar

from django.db import connections

from facho.core.processes.engine import run_engine
from servers.cluster import Cluster

T = TypeVar("T")

LOOK_SECONDS = 0.05


class Polling(Protocol):
    """Polls while it is entered, and leaves nothing behind."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def look(self) -> None:
        """Let a moment pass, in which nothing may end by itself."""


class EmbeddedPolling:
    """The engine on this event loop."""

    async def __aenter__(self) -> Self:
        self._stop = asyncio.Event()
        self._engine = asyncio.create_task(run_engine(self._stop))
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._stop.set()
        await self._engine

    async def look(self) -> None:
        done, _ = await asyncio.wait([self._engine], timeout=LOOK_SECONDS)
        assert not done, "the engine ended by itself"


class DistributedPolling:
    """A scheduler and a worker, with Redis between them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def __aenter__(self) -> Self:
        self._cluster.start_worker()
        self._cluster.start_scheduler()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.to_thread(self._cluster.stop_all)
        ended = {name: process.returncode for name, process in self._cluster.processes.items()}
        assert not any(ended.values()), f"{ended}\n{self._cluster.logs()}"

    async def look(self) -> None:
        await asyncio.to_thread(select.select, [], [], [], LOOK_SECONDS)
        ended = [name for name, process in self._cluster.processes.items() if process.poll() is not None]
        assert not ended, self._cluster.logs()


async def in_database(call: Callable[[], T]) -> T:
    """Ask the database from a scene: in a thread, whose connection is closed again."""

    def work() -> T:
        try:
            return call()
        finally:
            connections.close_all()

    return await asyncio.to_thread(work)
