"""Runs what nobody waits for: its failure is told when it happens, or nobody would hear of it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

logger = logging.getLogger(__name__)


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run the work while the block runs, and break it off in the end."""
    task = start_beside(work, name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def start_beside(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Start work whose end the caller looks after."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_tell_failure)
    return task


def _tell_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception():
        logger.error("task.failed name=%s", task.get_name(), exc_info=task.exception())
