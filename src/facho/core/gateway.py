"""The one way from the event loop to the database: whole store calls in a small pool of threads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connection, connections

P = ParamSpec("P")
T = TypeVar("T")

# SQLite has one writer, so a second thread only waits with a lock; PostgreSQL gains from a few.
THREADS = {"sqlite": 1, "postgresql": 4}


class ThreadGateway:
    """Runs store functions in threads that keep their connections."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS[connection.vendor], thread_name_prefix="database")

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns; a lost connection is worth one repeat, since stores are guarded by tokens."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(_call, partial(call, *args, **kwargs)))

    def close(self) -> None:
        """Wait for calls under way and close the threads' connections."""
        for _ in range(THREADS[connection.vendor]):
            self._pool.submit(connections.close_all)
        self._pool.shutdown()


def _call(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    except (OperationalError, InterfaceError):
        if connection.is_usable():
            raise
        connection.close()
        return work()
