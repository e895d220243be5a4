"""Looks, in processes that do not lead, whether anybody does: a scheduler that is gone cannot tell of itself."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.conf import settings

from facho.alerts.delivery import Delivery
from facho.alerts.engine import run_pass
from facho.alerts.models import Kind
from facho.alerts.ssrf import Reach
from facho.core.beside import beside
from facho.core.clock import SystemClock
from facho.core.gateway import ThreadGateway
from facho.zabbix_pollers.activity import load_is_polling

logger = logging.getLogger(__name__)

WATCH_SECONDS = 15.0
# Everything else is looked at by who leads: without one, what stands in the rows is old.
WATCHED = frozenset({Kind.NO_LEADER})


class LeaderWatch:
    """Tells that nobody leads, and delivers that, until somebody does."""

    def __init__(self, database: ThreadGateway, clock: SystemClock) -> None:
        self._database = database
        self._clock = clock
        self._is_led = True
        self._delivery = Delivery(database, clock, Reach(settings.FACHO_WEBHOOK_ALLOW), lambda: not self._is_led)

    async def look(self) -> None:
        """Look once."""
        now = self._clock.now()
        self._is_led = await self._database.run(load_is_polling, now)
        if not self._is_led:
            await self._database.run(run_pass, now, WATCHED)
            await self._delivery.look()

    async def close(self) -> None:
        """Let messages under way arrive."""
        await self._delivery.close()


@asynccontextmanager
async def watching(database: ThreadGateway, clock: SystemClock) -> AsyncIterator[None]:
    """Look every few seconds while the block runs."""
    watch = LeaderWatch(database, clock)
    try:
        async with beside(_keep_looking(watch), "leader watch"):
            yield
    finally:
        await watch.close()


async def _keep_looking(watch: LeaderWatch) -> None:
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        try:
            await watch.look()
        except Exception:  # a loop guard: nobody else tells that nobody polls
            logger.exception("leader_watch.failed")
