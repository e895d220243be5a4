"""Looks, in processes that do not lead, whether anybody does: a scheduler that is gone cannot tell of itself.

The leader is judged by its counter and the clock of this process, as those do who would take the lead: the wall clocks
of two machines need not agree.
"""

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
from facho.core.gateway import ThreadGateway
from facho.polling.domain.clock import Clock
from facho.polling.domain.lease import LeaseWatch
from facho.zabbix_pollers.activity import LEADER_SILENCE
from facho.zabbix_pollers.store import load_leader_counter

logger = logging.getLogger(__name__)

WATCH_SECONDS = 15.0
# Everything else is looked at by who leads: without one, what stands in the rows is old.
WATCHED = frozenset({Kind.NO_LEADER})


class LeaderWatch:
    """Tells that nobody leads, and delivers that, until somebody does."""

    def __init__(self, database: ThreadGateway, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lease: LeaseWatch[str] = LeaseWatch()
        self._is_led = True
        self._delivery = Delivery(database, clock, Reach(settings.FACHO_WEBHOOK_ALLOW), lambda: not self._is_led)

    async def look(self) -> None:
        """Look once."""
        self._is_led = await self._has_leader()
        if not self._is_led:
            now = self._clock.now()
            await self._database.run(run_pass, now, WATCHED, leaderless_since=now - LEADER_SILENCE)
            await self._delivery.look()

    async def _has_leader(self) -> bool:
        leader, counter = await self._database.run(load_leader_counter)
        monotonic, silence = self._clock.monotonic(), LEADER_SILENCE.total_seconds()
        self._lease.observe({leader: counter}, monotonic=monotonic)
        return not self._lease.dead([leader], after_seconds=silence, monotonic=monotonic)

    async def close(self) -> None:
        """Let messages under way arrive."""
        await self._delivery.close()


@asynccontextmanager
async def watching(database: ThreadGateway, clock: Clock) -> AsyncIterator[None]:
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
