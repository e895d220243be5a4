"""Runs a process's work until it is told to stop."""

import asyncio
import signal
from collections.abc import Awaitable, Callable


def run_until_signal(work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run on an event loop of its own; SIGINT and SIGTERM set the event that the work is given."""
    asyncio.run(_run(work))


async def _run(work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await work(stop)
