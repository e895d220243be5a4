"""Webhooks by form, address and command: checks, saves and tests them, and lets one send again what it sent before."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from facho.alerts.channels import MAX_SHOWN, SECRETS, ChannelSecrets, check_webhook, find_webhook_faults
from facho.neighbours.models import WEBHOOK_KINDS, DeliveryState, OutageEvent, Webhook, WebhookDelivery
from facho.neighbours.webhook_feed import FeedEnd, find_start, wanted_events, wanted_outage_events
from facho.onus.events import Count
from facho.onus.models import OnuEvent, Outage
from facho.onus.search import MANY

ALL_KINDS = tuple(code for code, _label in WEBHOOK_KINDS)
# What people enter.
WEBHOOK_COLUMNS = ("name", "kinds", "olt_group", "enabled")


@dataclass(frozen=True, slots=True)
class Replay:
    """How many events of ONUs, and of outages, are sent again."""

    events: Count
    outages: int


def stored_webhooks() -> QuerySet[Webhook]:
    """Select webhooks without their secrets."""
    return Webhook.objects.defer(*SECRETS)


def find_faults(kinds: Iterable[str], given: ChannelSecrets, *, stored: Webhook | None) -> dict[str, str]:
    """Return by input what keeps a webhook from being saved."""
    faults = find_webhook_faults(given, stored_as=stored.shown_as if stored else None)
    if not set(kinds):
        faults["kinds"] = _("Choose at least one kind of event.")
    return faults


@transaction.atomic
def save_webhook(webhook: Webhook, given: ChannelSecrets, *, now: datetime) -> None:
    """Write a webhook that has no faults; a secret that was not given is not read, a new one begins with what is new.

    A batch that waits is tried at once, for perhaps that is why somebody changed it.
    """
    columns = [*WEBHOOK_COLUMNS, "updated_at"]
    webhook.kinds = [code for code in ALL_KINDS if code in set(webhook.kinds)]
    if given.url:
        webhook.url, webhook.shown_as = given.url, check_webhook(given.url.reveal())[:MAX_SHOWN]
        columns += ["url", "shown_as"]
    if given.signing_key:
        webhook.signing_key = given.signing_key
        columns.append("signing_key")
    if webhook.pk:
        webhook.save(update_fields=columns)
        WebhookDelivery.objects.filter(webhook=webhook, state=DeliveryState.WAITING).update(next_try_at=now)
        return
    webhook.event_cursor = OnuEvent.objects.order_by("-id").values_list("id", flat=True).first() or 0
    webhook.outage_cursor = OutageEvent.objects.order_by("-id").values_list("id", flat=True).first() or 0
    webhook.last_old_outage = Outage.objects.order_by("-id").values_list("id", flat=True).first() or 0
    webhook.begins_at = now
    webhook.save()


def write_test(webhook: Webhook, *, now: datetime) -> WebhookDelivery:
    """Queue a test: it is sent first and tried once."""
    return WebhookDelivery.objects.create(webhook=webhook, is_test=True, created_at=now, next_try_at=now)


@transaction.atomic
def replay(webhook_id: int, since: datetime) -> Replay:
    """Move the cursors back to a time, never forward; what is kept of events and outages since then is sent again."""
    webhook = stored_webhooks().select_for_update().get(pk=webhook_id)
    waiting = WebhookDelivery.objects.filter(webhook=webhook, state=DeliveryState.WAITING, is_test=False)
    waiting.update(state=DeliveryState.REPLACED, next_try_at=None)
    start, before = find_start(since), FeedEnd(webhook.event_cursor, webhook.outage_cursor)
    webhook.replays_events_to = max(webhook.replays_events_to, before.event)
    webhook.replays_outages_to = max(webhook.replays_outages_to, before.outage_event)
    webhook.event_cursor = min(start.event, before.event)
    webhook.outage_cursor = min(start.outage_event, before.outage_event)
    webhook.begins_at = min(webhook.begins_at, since)
    cursors = ("event_cursor", "outage_cursor", "replays_events_to", "replays_outages_to")
    webhook.save(update_fields=[*cursors, "begins_at", "updated_at"])
    return Replay(
        _count(wanted_events(webhook).filter(id__gt=webhook.event_cursor, id__lte=before.event)),
        wanted_outage_events(webhook).filter(id__gt=webhook.outage_cursor, id__lte=before.outage_event).count(),
    )


def count_waiting(webhook: Webhook) -> Count:
    """Count the events that it has not taken yet, up to MANY; one query. Outages are few."""
    return _count(wanted_events(webhook).filter(id__gt=webhook.event_cursor))


def _count(events: QuerySet[OnuEvent]) -> Count:
    number = events.order_by()[: MANY + 1].count()
    return Count(min(number, MANY), number <= MANY)
