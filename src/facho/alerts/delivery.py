"""Delivers the outbox: each channel in its own order and at its own pace, so that none that is down holds up others."""

import asyncio
import json
import logging
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from facho.alerts import outbox
from facho.alerts.http_request import post_webhook
from facho.alerts.models import ChannelKind
from facho.alerts.outbox import Address, Parcel
from facho.alerts.outcome import Message, Outcome, Trouble
from facho.alerts.sender import SEND_SECONDS
from facho.alerts.ssrf import Reach
from facho.polling.domain.ports import Clock, DatabaseGateway

logger = logging.getLogger(__name__)

# The sender ends itself; this is for one that cannot.
PATIENCE_SECONDS = SEND_SECONDS + 5.0
# No proxy, no .netrc, and no folder of the product ahead of the installed packages.
COMMAND = (sys.executable, "-I", "-m", "facho.alerts.sender")
ENVIRONMENT = {"HOME": "/nonexistent"}
CHANNELS_AT_ONCE = 8
# How long a stopping process waits for current tries: one that is cut off may have arrived, and is sent again.
GRACE_SECONDS = 4.0


async def send(parcel: Parcel, reach: Reach, *, now: datetime) -> Outcome:
    """Try once, in bounded time; every failure is an outcome."""
    address = parcel.address
    if address is None:
        return Outcome(Trouble.KEY_LOST)
    if address.kind is ChannelKind.WEBHOOK:
        return await post_webhook(
            address.url.reveal(),
            key=address.signing_key.reveal(),
            message_id=parcel.message.id,
            content=webhook_content(parcel),
            timestamp=int(now.timestamp()),
            reach=reach,
        )
    return await _hand_to_process(address, parcel.message, reach)


def webhook_content(parcel: Parcel) -> dict[str, Any]:
    """Build what a webhook receives."""
    message = parcel.message
    return {
        "id": message.id,
        "kind": message.kind,
        "severity": message.severity,
        "title": message.title,
        "text": message.body,
        "written_at": parcel.written_at.isoformat(),
        "details": parcel.payload,
    }


async def _hand_to_process(address: Address, message: Message, reach: Reach) -> Outcome:
    job = {"url": address.url.reveal(), "listed": [str(each) for each in reach.listed], "message": asdict(message)}
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    # In a session of its own: Ctrl-C at a terminal must not end a message half-way.
    process = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=pipe, stdout=pipe, stderr=nowhere, env=ENVIRONMENT, start_new_session=True
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer, _nothing = await process.communicate(json.dumps(job).encode())
    except TimeoutError:
        return Outcome(Trouble.TIMED_OUT)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if code := process.returncode:
        # Ended by its own alarm, or by something unforeseen.
        return Outcome(Trouble.TIMED_OUT if code < 0 else Trouble.CRASHED)
    given = json.loads(answer)
    return Outcome(Trouble(given["trouble"]) if given["trouble"] else None, given["answer"], given["is_final"])


class Delivery:
    """Sends what waits while it is wanted; keeps no state but the current tries."""

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
        """Start serving the channels that have something due and are not being served."""
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
        """Wait for current tries, but not for long."""
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
        """Log what kept a channel from being served; the next look tries it again."""
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
        # A message that was given up does not hold up the others.
        return again_at is None


def _named(parcel: Parcel) -> str:
    return f"notice={parcel.notice_id} channel={parcel.channel_id} try={parcel.try_number}"
