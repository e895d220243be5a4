"""The one way from the event loop to the database: whole store calls in a small pool of threads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import Error, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from facho.core import postgresql_session

P = ParamSpec("P")
T = TypeVar("T")

# SQLite has one writer, so a second thread only waits with a lock; PostgreSQL gains from a few.
THREADS = {"sqlite": 1, "postgresql": 4}


class ThreadGateway:
    """Runs store functions in threads that keep their connections."""

    def __init__(self, threads: int | None = None) -> None:
        self._connections: list[BaseDatabaseWrapper] = []
        self._pool = ThreadPoolExecutor(
            threads or THREADS[connection.vendor],
            thread_name_prefix="database",
            initializer=self._remember_connection,
        )

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns; a lost connection is worth one repeat, since stores are guarded by tokens."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(_call, partial(call, *args, **kwargs)))

    async def close(self) -> None:
        """Wait for calls under way and close the threads' connections."""
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


def _call(work: Callable[[], T]) -> T:
    # Asking first whether the session still works would cost each call a round trip; the repeat below answers it.
    session = _connect()
    try:
        return work()
    except Error:
        # A transaction that lost its connection has a new one when it is left, so whether it is usable tells nothing.
        if connection.connection is session and connection.is_usable():
            raise
        connection.close()
    _connect()
    return work()


def _connect() -> object:
    """Return this thread's session."""
    if connection.connection is None:
        connection.ensure_connection()
        if connection.vendor == "postgresql":
            postgresql_session.set_up(connection)
    return connection.connection
