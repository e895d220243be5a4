"""Webhooks, events and outages for tests of delivery, and a sender with a clock of the test's."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from alerts.outbox_rows import KEY, LOOPBACK, StillClock
from alerts.sinks import HttpSink
from api.rows import make_olt, make_onu
from facho.alerts.channels import ChannelSecrets
from facho.hosts.models import Olt, OltGroup
from facho.infrastructure.gateway import ThreadGateway
from facho.infrastructure.secrets import Secret
from facho.neighbours.models import Webhook
from facho.neighbours.webhook_delivery import WebhookSender
from facho.neighbours.webhooks import ALL_KINDS, save_webhook
from facho.onus.models import Onu, OnuEvent
from factories import NOW

__all__ = ["KEY", "NOW"]


def make_webhook(
    url: str, *, name: str = "crm", kinds: tuple[str, ...] = ALL_KINDS, group: OltGroup | None = None, **fields: Any
) -> Webhook:
    webhook = Webhook(name=name, kinds=list(kinds), olt_group=group, **fields)
    save_webhook(webhook, ChannelSecrets(Secret(url), Secret(KEY)), now=NOW)
    return webhook


@dataclass
class Network:
    """One ONU to which things happen."""

    olt: Olt = field(default_factory=lambda: make_olt("North"))
    onu: Onu = field(init=False)

    def __post_init__(self) -> None:
        self.onu = make_onu(self.olt, (0, 1, 3, 7), serial="HWTC00000007", description="ñandú")

    def event(self, kind: str = "down", *, at: datetime = NOW, **fields: Any) -> OnuEvent:
        return OnuEvent.objects.create(
            olt=self.olt, pon_port=self.onu.pon_port, onu=self.onu, onu_number=7, at=at, kind=kind, **fields
        )

    def events(self, count: int, kind: str = "down") -> list[OnuEvent]:
        same = {"olt": self.olt, "pon_port": self.onu.pon_port, "onu": self.onu, "onu_number": 7, "kind": kind}
        return OnuEvent.objects.bulk_create(
            OnuEvent(at=NOW + timedelta(seconds=number), **same) for number in range(count)
        )


@dataclass
class Office:
    """Sends with one clock, as the process that leads does."""

    clock: StillClock = field(default_factory=StillClock)
    looks: int = 1

    def send(self, *, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Look, and wait for what that began; as often as said."""
        asyncio.run(self._send(is_wanted))

    async def _send(self, is_wanted: Callable[[], bool]) -> None:
        database = ThreadGateway()
        sender = WebhookSender(database, self.clock, LOOPBACK, is_wanted)
        try:
            for _number in range(self.looks):
                await sender.look()
                await sender.settle()
        finally:
            await database.close()

    def wait(self, **length: float) -> None:
        self.clock.at += timedelta(**length)


def bodies(sink: HttpSink) -> list[dict[str, Any]]:
    return [json.loads(each.body) for each in sink.received]


def reported(sink: HttpSink) -> list[dict[str, Any]]:
    """Every event that came, in its order."""
    return [event for body in bodies(sink) for event in body["events"]]


def numbers(sink: HttpSink) -> list[int]:
    return [event["event_id"] for event in reported(sink) if "event_id" in event]
