"""Sends events to webhooks: each in its own order and at its own pace, so that one that is down delays no other.

The bounds of a batch are written before it is sent, and the cursors move in the transaction that writes that it
arrived. A process that is killed anywhere in between has lost nothing: the same batch is sent again, with the same id.
"""

import hashlib
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from django.db import transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce

from facho.alerts.delivery import CLAIM, Serving, describe
from facho.alerts.http_request import post_webhook
from facho.alerts.sender import Outcome, Reach, Trouble
from facho.infrastructure.secrets import Secret, UndecryptableSecret
from facho.infrastructure.statements import Select
from facho.neighbours.models import DeliveryState, Webhook, WebhookDelivery
from facho.neighbours.webhook_feed import Batch, Feed, FeedEnd, find_batch, load_batch
from facho.neighbours.webhooks import stored_webhooks
from facho.polling.domain.ports import Clock, DatabaseGateway
from facho.polling.domain.retry import LONGEST_BATCH_PAUSE, next_batch_try_at

logger = logging.getLogger(__name__)

# Where there is no webhook, one small statement asks this often whether there is one.
NONE_SECONDS = 10.0
# A try later than this was set by a wrong clock.
HORIZON = LONGEST_BATCH_PAUSE * 2
# Pieces of the way without a wanted event that one transaction looks through.
PIECES = 20
# A cursor is moved past so many unwanted ids only.
STEP = 1_000
_NAME_CHARACTERS = 20
Trace = tuple[int, int, datetime]


@dataclass(frozen=True, slots=True)
class EventParcel:
    """A batch or a test claimed for one try; without an address when it cannot be decrypted."""

    delivery_id: int
    webhook_id: int
    try_number: int
    is_test: bool
    to: FeedEnd
    content: dict[str, Any]
    address: tuple[Secret, Secret] | None

    @property
    def name(self) -> str:
        """What its receiver knows it by, the same at every try."""
        return str(self.content["id"])


_ENABLED = Select(
    lambda: (
        Webhook.objects.filter(enabled=True)
        .order_by("id")
        .values_list("id", "event_cursor", "outage_cursor", "updated_at")
    )
)
_WAITING = Select(
    lambda: (
        WebhookDelivery.objects.filter(state=DeliveryState.WAITING.value)
        .order_by()
        .values_list("webhook_id", "is_test", "next_try_at")
    )
)


def load_due(feed: Feed, empty: dict[int, tuple[Trace, FeedEnd]], now: datetime) -> tuple[FeedEnd, list[int]] | None:
    """Return up to where events are there, and the webhooks that have something to send; None without a webhook.

    `empty` are those for which nothing was found, with the way that was looked through.
    """
    webhooks = _ENABLED.rows()
    if not webhooks:
        return None
    waiting = _WAITING.rows()
    end = feed.look()
    held = {webhook_id for webhook_id, is_test, _at in waiting if not is_test}
    ready = {webhook_id for webhook_id, _is_test, at in waiting if at is None or at <= now or at > now + HORIZON}
    due = []
    for webhook_id, event, outage_event, updated_at in webhooks:
        has_more = event < end.event or outage_event < end.outage_event
        is_new = has_more and empty.get(webhook_id) != ((event, outage_event, updated_at), end)
        if webhook_id in ready or (is_new and webhook_id not in held):
            due.append(webhook_id)
    return end, due


@transaction.atomic
def claim_next(webhook_id: int, end: FeedEnd, now: datetime) -> EventParcel | Trace | None:
    """Claim the next try of a webhook; how far it is, when there is nothing to send; None when it is not due."""
    webhook = stored_webhooks().select_for_update().filter(pk=webhook_id, enabled=True).first()
    if webhook is None:
        return None
    waiting = WebhookDelivery.objects.filter(webhook=webhook, state=DeliveryState.WAITING)
    is_due = Q(next_try_at__isnull=True) | Q(next_try_at__lte=now) | Q(next_try_at__gt=now + HORIZON)
    if test := waiting.filter(is_due, is_test=True).order_by("id").first():
        return _claim(webhook, test, Batch(FeedEnd(0, 0), FeedEnd(0, 0), ()), now)
    written = waiting.filter(is_test=False).first()
    if written is not None:
        if not waiting.filter(is_due, pk=written.pk).exists():
            return None
        after = FeedEnd(written.after_event, written.after_outage_event)
        batch = load_batch(webhook, after, FeedEnd(written.to_event, written.to_outage_event))
        if batch.events:
            return _claim(webhook, written, batch, now)
        # The events were deleted, or are not wanted any more.
        waiting.filter(pk=written.pk).update(state=DeliveryState.REPLACED, next_try_at=None)
        _move(webhook, FeedEnd(written.to_event, written.to_outage_event))
    batch = _look_ahead(webhook, end)
    if not batch.events:
        return webhook.event_cursor, webhook.outage_cursor, webhook.updated_at
    bounds = {
        "after_event": batch.after.event,
        "to_event": batch.to.event,
        "after_outage_event": batch.after.outage_event,
        "to_outage_event": batch.to.outage_event,
    }
    new = WebhookDelivery.objects.create(
        webhook=webhook, count=len(batch.events), is_replay=batch.is_replay, created_at=now, next_try_at=now, **bounds
    )
    return _claim(webhook, new, batch, now)


def _look_ahead(webhook: Webhook, end: FeedEnd) -> Batch:
    """Find the next batch, and move the cursors past what is not wanted."""
    for _piece in range(PIECES):
        batch = find_batch(webhook, end)
        if batch.events or batch.to == batch.after:
            break
        is_end = batch.to == end
        if (
            not is_end
            or batch.to.event - batch.after.event >= STEP
            or batch.to.outage_event - batch.after.outage_event >= STEP
        ):
            _move(webhook, batch.to)
        if is_end:
            break
    return batch


def _move(webhook: Webhook, to: FeedEnd) -> None:
    webhook.event_cursor, webhook.outage_cursor = to.event, to.outage_event
    webhook.save(update_fields=["event_cursor", "outage_cursor"])


def _claim(webhook: Webhook, delivery: WebhookDelivery, batch: Batch, now: datetime) -> EventParcel | None:
    """Count the try and set the next one: if this process is killed while sending, it is repeated at that time."""
    claimed = WebhookDelivery.objects.filter(pk=delivery.pk, tries=delivery.tries, state=DeliveryState.WAITING)
    if not claimed.update(tries=delivery.tries + 1, next_try_at=now + CLAIM):
        return None
    moments = " ".join(at.astimezone(UTC).isoformat() for at in (webhook.created_at, delivery.created_at))
    name = f"webhook-{delivery.pk}-{hashlib.sha256(moments.encode()).hexdigest()[:_NAME_CHARACTERS]}"
    kind: Literal["test", "events"] = "test" if delivery.is_test else "events"
    return EventParcel(
        delivery_id=delivery.pk,
        webhook_id=webhook.pk,
        try_number=delivery.tries + 1,
        is_test=delivery.is_test,
        # Less than was written, should names have become longer meanwhile.
        to=batch.to,
        content={
            "id": name,
            "kind": kind,
            "webhook": webhook.name,
            "written_at": delivery.created_at.astimezone(UTC).isoformat(),
            "replayed": batch.is_replay,
            "events": list(batch.events),
        },
        address=_load_address(webhook.pk),
    )


def _load_address(webhook_id: int) -> tuple[Secret, Secret] | None:
    try:
        webhook = Webhook.objects.only("url", "signing_key").get(pk=webhook_id)
    except UndecryptableSecret:
        return None
    return webhook.url, webhook.signing_key


@transaction.atomic
def save_arrived(parcel: EventParcel, *, now: datetime) -> bool:
    """Write that a batch arrived and move the cursors past it; False when a replay or another try was faster."""
    webhook = Webhook.objects.filter(pk=parcel.webhook_id).select_for_update().only("pk").first()
    waiting = WebhookDelivery.objects.filter(pk=parcel.delivery_id, state=DeliveryState.WAITING)
    sent = {"state": DeliveryState.SENT, "sent_at": now, "next_try_at": None, "last_error": ""}
    if webhook is None or not waiting.update(**sent):
        return False
    if parcel.is_test:
        # Its receiver is there: what waits need not wait for the end of a long pause.
        batches = WebhookDelivery.objects.filter(webhook=webhook, state=DeliveryState.WAITING, is_test=False)
        batches.filter(next_try_at__gt=now, tries__gt=0, last_error__gt="").update(next_try_at=now)
        return True
    success = {"failing_since": None, "last_error": "", "last_sent_at": now}
    moved = {"event_cursor": parcel.to.event, "outage_cursor": parcel.to.outage_event}
    Webhook.objects.filter(pk=webhook.pk).update(**success, **moved)
    return True


@transaction.atomic
def save_trouble(parcel: EventParcel, outcome: Outcome, *, now: datetime, chance: float) -> datetime | None:
    """Write why a try failed and return when the next one is; None: of a test there is no other."""
    again_at = None if parcel.is_test else next_batch_try_at(parcel.try_number, now=now, chance=chance)
    why = describe(outcome)
    # If it was claimed again since, that try stores its own outcome.
    waiting = WebhookDelivery.objects.filter(
        pk=parcel.delivery_id, state=DeliveryState.WAITING, tries=parcel.try_number
    )
    state = DeliveryState.WAITING if again_at else DeliveryState.FAILED
    if waiting.update(state=state, next_try_at=again_at, last_error=why) and again_at:
        since = Coalesce(F("failing_since"), Value(now))
        Webhook.objects.filter(pk=parcel.webhook_id).update(failing_since=since, last_error=why)
    return again_at


class WebhookSender(Serving):
    """Looks for what webhooks have to get while it is wanted; keeps the current tries, and how far it has looked."""

    not_served = "webhook.not_served"

    def __init__(
        self, database: DatabaseGateway, clock: Clock, reach: Reach, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        super().__init__(database, clock, reach, is_wanted)
        self._feed = Feed()
        self._end = FeedEnd(0, 0)
        self._empty: dict[int, tuple[Trace, FeedEnd]] = {}
        self._rests_until = float("-inf")

    async def look(self) -> None:
        """Start serving the webhooks that have something to get and are not being served."""
        if self._clock.monotonic() < self._rests_until:
            return
        found = await self._database.run(load_due, self._feed, self._empty, self._clock.now())
        if found is None:
            self._rests_until = self._clock.monotonic() + NONE_SECONDS
            return
        self._end, due = found
        self.start(due)

    async def send_next(self, receiver: int) -> bool:
        end = self._end
        parcel = await self._database.run(claim_next, receiver, end, self._clock.now())
        if not isinstance(parcel, EventParcel):
            if parcel is not None:
                self._empty[receiver] = (parcel, end)
            return False
        outcome = await self._post(parcel)
        named = f"webhook={receiver} delivery={parcel.delivery_id} try={parcel.try_number}"
        if outcome.is_sent:
            await self._database.run(save_arrived, parcel, now=self._clock.now())
            logger.debug("webhook.sent %s events=%s", named, len(parcel.content["events"]))
            return True
        again_at = await self._database.run(
            save_trouble,
            parcel,
            outcome,
            now=self._clock.now(),
            chance=random.random(),  # noqa: S311 no secret
        )
        logger.warning("webhook.failed %s trouble=%s again_at=%s", named, outcome.trouble, again_at)
        return parcel.is_test

    async def _post(self, parcel: EventParcel) -> Outcome:
        if parcel.address is None:
            return Outcome(Trouble.KEY_LOST)
        url, key = parcel.address
        return await post_webhook(
            url.reveal(),
            key=key.reveal(),
            message_id=parcel.name,
            content=parcel.content,
            timestamp=int(self._clock.now().timestamp()),
            reach=self._reach,
        )
