"""The one way from the event loop to the database: whole store calls in a small pool of threads."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import Error, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.adapt import Loader

from facho.infrastructure.storage import Storage
from facho.polling.domain.ports import ClockReading

if TYPE_CHECKING:
    from psycopg.abc import Buffer


logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# SQLite has one writer, so a second thread only waits with a lock; PostgreSQL gains from a few.
THREADS = {"sqlite": 1, "postgresql": 4}
# Pages of SQLite kept by the thread that stores polls, in kB: with 512, as in all other threads, it reads most of an
# OLT's rows from the file again, which costs a sixth of all CPU of a value.
STORING_CACHE_KB = 4096
# Statements of `infrastructure/statements.py` whose plan a session of PostgreSQL keeps were run as often before.
PREPARED_AFTER = 2
# What reads from a device waits for calls to the database at most this long.
CALM_SECONDS = 0.01
# Systems other than Linux have no clock that counts suspend; wall time has to do there.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def reading(self) -> ClockReading:
        """Read every clock at once; asked before each packet."""
        return ClockReading(time.monotonic(), time.clock_gettime(_BOOT_CLOCK), time.time())


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run the work while the block runs, and break it off in the end."""
    task = start_background(work, name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def start_background(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Start work whose end the caller looks after."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_log_failure)
    return task


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception():
        logger.error("task.failed name=%s", task.get_name(), exc_info=task.exception())


class ThreadGateway:
    """Runs store functions in threads that keep their connections; without a number, in those that store polls."""

    def __init__(self, threads: int | None = None, storage: Storage | None = None) -> None:
        self.storage = storage or Storage(reserve=None)
        self._keeps_pages = threads is None
        self._connections: list[BaseDatabaseWrapper] = []
        self._pool = ThreadPoolExecutor(
            threads or THREADS[connection.vendor],
            thread_name_prefix="database",
            initializer=self._remember_connection,
        )
        # A long call computes as much as it waits: two of them would keep short ones from thread and interpreter.
        self._one_long = asyncio.Lock()
        self._under_way = 0
        self._is_calm = asyncio.Event()

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns; a lost connection is worth one repeat, since stores are guarded by tokens."""
        loop = asyncio.get_running_loop()
        self._under_way += 1
        self._is_calm.clear()
        try:
            return await loop.run_in_executor(self._pool, partial(self._call, partial(call, *args, **kwargs)))
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._is_calm.set()

    async def run_long(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same, one call at a time: the end of a run waits for at most one other run's rows."""
        async with self._one_long:
            return await self.run(call, *args, **kwargs)

    async def calm(self) -> None:
        """Wait while a call is in progress, but not for long.

        Reads can wait: an answer may take seconds anyway. Otherwise the call would share the interpreter with all
        reads of the process, and an idle poller waits for the call.
        """
        if self._under_way:
            with suppress(TimeoutError):
                async with asyncio.timeout(CALM_SECONDS):
                    await self._is_calm.wait()

    def aside(self) -> "ThreadGateway":
        """Open one more thread on the same storage, for work that others must not wait for."""
        return ThreadGateway(1, self.storage)

    def _call(self, work: Callable[[], T]) -> T:
        try:
            return _call(work, keeps_pages=self._keeps_pages)
        except Error as error:
            if not self.storage.make_room(error):
                raise
        # The disk was full, and the reserve has been released for this.
        return _call(work, keeps_pages=self._keeps_pages)

    async def close(self) -> None:
        """Wait for running calls and close the threads' connections."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._pool.shutdown()
        for thread_connection in self._connections:
            thread_connection.close()

    def _remember_connection(self) -> None:
        """Let a thread's connection be closed by the thread that closes the gateway."""
        thread_connection = connections[connection.alias]
        thread_connection.inc_thread_sharing()
        self._connections.append(thread_connection)


def _call(work: Callable[[], T], *, keeps_pages: bool) -> T:
    # Asking first whether the session still works would cost each call a round trip; the repeat below answers it.
    session = _connect(keeps_pages=keeps_pages)
    try:
        return work()
    except Error:
        # A transaction that lost its connection has a new one when it is left, so `is_usable` proves nothing.
        if connection.connection is session and connection.is_usable():
            raise
        connection.close()
    _connect(keeps_pages=keeps_pages)
    return work()


def _connect(*, keeps_pages: bool) -> object:
    if connection.connection is None:
        connection.ensure_connection()
        if connection.vendor == "postgresql":
            _set_up_postgresql()
        elif keeps_pages:
            with connection.cursor() as cursor:
                cursor.execute(f"PRAGMA cache_size=-{STORING_CACHE_KB}")
    return connection.connection


def _set_up_postgresql() -> None:
    """Let no session outlive a lease in the middle of a transaction, with its rows locked; and read times quickly."""
    connection.connection.adapters.register_loader("timestamptz", _UtcLoader)
    # Sessions live long and repeat a few dozen statements, each of which is planned once.
    connection.connection.prepare_threshold = PREPARED_AFTER
    milliseconds = max(int(settings.FACHO_LEASE_SECONDS * 1000), 1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, false)", [f"{milliseconds}ms"])


class _UtcLoader(Loader):
    """Reads times as sessions of Django get them, in UTC; its own way takes a dozen times as long."""

    # By this Django knows that it need not bring its own.
    timezone = UTC

    def load(self, data: "Buffer") -> datetime:
        return datetime.fromisoformat(bytes(data).decode())
