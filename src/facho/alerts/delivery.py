"""Delivers the outbox: each channel in its own order and at its own pace, so that none that is down holds up others."""

import asyncio
import logging
import random
from collections.abc import Callable
from functools import partial

from facho.alerts import outbox
from facho.alerts.outbox import Parcel
from facho.alerts.sending import send
from facho.alerts.ssrf import Reach
from facho.polling.domain.clock import Clock
from facho.polling.domain.gateway import DatabaseGateway

logger = logging.getLogger(__name__)

CHANNELS_AT_ONCE = 8
# How long a stopping process lets tries under way end: what is broken off may have arrived, and is sent again.
GRACE_SECONDS = 4.0


class Delivery:
    """Sends what waits while it is wanted; knows nothing that is not in the database, but for tries under way."""

    def __init__(
        self, database: DatabaseGateway, clock: Clock, reach: Reach, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        self._database = database
        self._clock = clock
        self._reach = reach
        self._is_wanted = is_wanted
        self._places = asyncio.Semaphore(CHANNELS_AT_ONCE)
        self._under_way: dict[int, asyncio.Task[None]] = {}

    async def look(self) -> None:
        """Begin to serve the channels that have something due and are not being served."""
        now = self._clock.now()
        if forgotten := await self._database.run(outbox.give_up_forgotten, now):
            logger.warning("notices.given_up count=%s reason=channel_disabled", forgotten)
        for channel_id in await self._database.run(outbox.load_due_channels, now):
            if channel_id not in self._under_way:
                task = self._under_way[channel_id] = asyncio.create_task(self._serve(channel_id))
                task.add_done_callback(partial(self._ended, channel_id))

    async def settle(self) -> None:
        """Wait until every channel that is being served has been."""
        await asyncio.gather(*self._under_way.values())

    async def close(self) -> None:
        """Let tries under way end, but not for long."""
        if tasks := list(self._under_way.values()):
            _done, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _serve(self, channel_id: int) -> None:
        async with self._places:
            while self._is_wanted() and await self._send_next(channel_id):
                pass

    def _ended(self, channel_id: int, task: asyncio.Task[None]) -> None:
        """Tell at once what kept a channel from being served: the next look, if there is one, tries it again."""
        del self._under_way[channel_id]
        if not task.cancelled() and task.exception():
            logger.error("channel.not_served channel=%s", channel_id, exc_info=task.exception())

    async def _send_next(self, channel_id: int) -> bool:
        """Try the next message; False when there is none, or it did not arrive."""
        parcel = await self._database.run(outbox.claim_next, channel_id, self._clock.now())
        if parcel is None:
            return False
        outcome = await send(parcel, self._reach, now=self._clock.now())
        if outcome.is_sent:
            await self._database.run(outbox.save_sent, parcel, now=self._clock.now())
            logger.info("notice.sent %s", _named(parcel))
            return True
        again_at = await self._database.run(
            outbox.save_failed,
            parcel,
            outcome,
            now=self._clock.now(),
            chance=random.random(),  # noqa: S311 no secret
        )
        logger.warning("notice.failed %s trouble=%s again_at=%s", _named(parcel), outcome.trouble, again_at)
        # What was given up holds up nobody any more.
        return again_at is None


def _named(parcel: Parcel) -> str:
    return f"notice={parcel.notice_id} channel={parcel.channel_id} try={parcel.try_number}"
