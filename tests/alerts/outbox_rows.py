"""Channels and messages for tests of delivery, and a delivery of their own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from alerts.sinks import HttpSink
from facho.alerts.channels import ChannelSecrets, save_channel
from facho.alerts.delivery import Delivery
from facho.alerts.models import AlertChannel, ChannelKind, Notice, NoticeKind, Severity
from facho.alerts.sender import Reach, read_networks
from facho.infrastructure.gateway import ThreadGateway
from facho.infrastructure.secrets import Secret
from facho.polling.domain.ports import ClockReading
from factories import NOW

LOOPBACK = Reach(read_networks(["127.0.0.0/8"]))
KEY = "a key of sixteen and more"
_numbers = count(1)


@dataclass
class StillClock:
    """A clock that a test moves."""

    at: datetime = NOW

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def reading(self) -> ClockReading:
        return ClockReading(*[self.monotonic()] * 3)


@dataclass
class Post:
    """Delivers with a clock of the test's."""

    clock: StillClock = field(default_factory=StillClock)
    reach: Reach = LOOPBACK

    async def deliver(self) -> None:
        """Look once, and wait for what that began."""
        async with open_delivery(self.clock, self.reach) as (delivery, _database):
            await delivery.look()
            await delivery.settle()


@asynccontextmanager
async def open_delivery(
    clock: StillClock | None = None, reach: Reach = LOOPBACK, is_wanted: Callable[[], bool] = lambda: True
) -> AsyncIterator[tuple[Delivery, ThreadGateway]]:
    """Build a delivery with a gateway of its own, and end both."""
    database = ThreadGateway()
    delivery = Delivery(database, clock or StillClock(), reach, is_wanted)
    try:
        yield delivery, database
        await delivery.settle()
    finally:
        await database.close()


def make_channel(url: str, *, kind: ChannelKind = ChannelKind.APPRISE, enabled: bool = True) -> AlertChannel:
    channel = AlertChannel(name=f"Channel {next(_numbers)}", kind=kind, enabled=enabled)
    save_channel(channel, ChannelSecrets(Secret(url), Secret(KEY if kind is ChannelKind.WEBHOOK else "")))
    return channel


def make_webhook(url: str) -> AlertChannel:
    return make_channel(url, kind=ChannelKind.WEBHOOK)


def write_notice(
    channel: AlertChannel, title: str = "PON 0/1/3 is down", *, kind: NoticeKind = NoticeKind.OPENED, at: datetime = NOW
) -> Notice:
    return Notice.objects.create(
        key=f"opened {next(_numbers)} {channel.pk}",
        channel=channel,
        kind=kind,
        severity=Severity.CRITICAL,
        title=title,
        body="64 ONUs of North lost their light.",
        payload={"onus": 64},
        created_at=at,
        next_try_at=at,
    )


def deliver(post: Post) -> None:
    asyncio.run(post.deliver())


def titles(sink: HttpSink) -> list[str]:
    return [each.body.decode().partition('"title":"')[2].partition('"')[0] for each in sink.received]


def states() -> list[tuple[str, int]]:
    return list(Notice.objects.order_by("id").values_list("state", "tries"))
