"""Lets a process of the distributed mode be known to the others, for `facho doctor`."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version

from django.db import Error

from facho.executions.processes import SAYS_SECONDS, ProcessReport, forget_process, save_process
from facho.infrastructure.gateway import ThreadGateway, background

logger = logging.getLogger(__name__)

VERSION = version("facho")


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
