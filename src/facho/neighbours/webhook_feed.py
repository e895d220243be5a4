"""What webhooks send: events of ONUs by their ids, and the events of outages that the leader writes down.

An outage is a row that changes, so its beginnings and ends get an order of their own here. What is sent is codes and
numbers, the same in every language, and no name of a customer but what the OLT itself calls an ONU.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import merge
from operator import itemgetter
from typing import Any

from django.db import transaction
from django.db.models import F, Min, Q, QuerySet

from facho.infrastructure.statements import Select, SettledRows
from facho.neighbours.models import OutageEvent, OutageEventKind, Webhook
from facho.onus.models import OnuEvent, Outage, name_port
from facho.onus.outages import breaks_of

# Of ONUs, and of outages, in one batch.
MOST_OF_EACH = 100
MOST_BYTES = 128 * 1024
# Events that are looked through at once for those that are wanted.
WINDOW = 20_000
# Outages whose events one look writes, after a time without webhooks.
OUTAGES_AT_ONCE = 500
# Events of one time are written within this of each other.
DISORDER = timedelta(hours=1)
_ID_CHARACTERS = 24
_EVENT_COLUMNS = (
    "id", "at", "kind", "cause", "before", "after", "onu_number", "onu_id", "olt_id", "olt__name", "pon_port_id",
    "pon_port__frame", "pon_port__slot", "pon_port__port", "pon_port__is_known", "onu__serial", "onu__mac",
    "onu__description", "other_port_id", "other_port__frame", "other_port__slot", "other_port__port",
    "other_port__is_known", "other_number",
)  # fmt: skip
_OUTAGE_COLUMNS = (
    "scope", "olt_id", "olt__name", "frame", "slot", "port", "cause", "started_at", "resumed_at", "ended_at",
    "affected", "down", "affected_olts", "part_of_id",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeedEnd:
    """The last event of an ONU and of an outage up to which everything may be sent."""

    event: int
    outage_event: int


@dataclass(frozen=True, slots=True)
class Batch:
    after: FeedEnd
    to: FeedEnd
    events: tuple[dict[str, Any], ...]

    @property
    def is_replay(self) -> bool:
        return any(event["replayed"] for event in self.events)


class Feed:
    """Says how far webhooks may be served, and writes the events of outages; kept by the process that leads."""

    def __init__(self) -> None:
        self._events = SettledRows(OnuEvent)
        self._outages = SettledRows(Outage)

    def look(self) -> FeedEnd:
        """Look once; outside a transaction."""
        settled = self._outages.look()
        last = _LAST_OUTAGE.first()
        is_behind = settled > (last[0] if last else 0)
        if is_behind or _ANY_ENDED.rows() or _ANY_CAME_BACK.rows():
            write_outage_events(settled)
        last_event = _LAST_EVENT.first()
        return FeedEnd(self._events.look(), last_event[0] if last_event else 0)


_LAST_EVENT = Select(lambda: OutageEvent.objects.order_by("-id").values_list("id")[:1])
_LAST_OUTAGE = Select(lambda: OutageEvent.objects.order_by("-outage_id").values_list("outage_id")[:1])


def _ended() -> QuerySet[OutageEvent]:
    """Select the beginnings of outages that have ended since."""
    return OutageEvent.objects.filter(kind=OutageEventKind.BEGAN, is_latest=True, outage__ended_at__isnull=False)


def _came_back() -> QuerySet[OutageEvent]:
    return OutageEvent.objects.filter(kind=OutageEventKind.ENDED, is_latest=True, outage__ended_at__isnull=True)


_ANY_ENDED = Select(lambda: _ended().order_by().values_list("id")[:1])
_ANY_CAME_BACK = Select(lambda: _came_back().order_by().values_list("id")[:1])


@transaction.atomic
def write_outage_events(settled: int) -> None:
    """Write what outages up to this one have become since the last look."""
    last = OutageEvent.objects.order_by("-outage_id").values_list("outage_id", flat=True).first() or 0
    events = []
    for changed in (_ended(), _came_back()):
        for change in changed.select_related("outage").order_by("id")[:OUTAGES_AT_ONCE]:
            outage = change.outage
            kind = OutageEventKind.ENDED if outage.ended_at else OutageEventKind.BEGAN
            events.append(OutageEvent(outage=outage, kind=kind, at=outage.ended_at or outage.resumed_at))
    OutageEvent.objects.filter(outage__in=[each.outage_id for each in events], is_latest=True).update(is_latest=False)
    for outage in Outage.objects.filter(id__gt=last, id__lte=settled).order_by("id")[:OUTAGES_AT_ONCE]:
        events += _all_events(outage)
    OutageEvent.objects.bulk_create(sorted(events, key=lambda each: each.at))


def _all_events(outage: Outage) -> list[OutageEvent]:
    times = [(OutageEventKind.BEGAN, outage.started_at)]
    for gap in breaks_of(outage):
        times += [(OutageEventKind.ENDED, gap.ended_at), (OutageEventKind.BEGAN, gap.resumed_at)]
    if outage.ended_at:
        times.append((OutageEventKind.ENDED, outage.ended_at))
    events = [OutageEvent(outage=outage, kind=kind, at=at, is_latest=False) for kind, at in times]
    events[-1].is_latest = True
    return events


def wanted_events(webhook: Webhook) -> QuerySet[OnuEvent]:
    events = OnuEvent.objects.filter(kind__in=webhook.kinds)
    return events.filter(olt__group_id=webhook.olt_group_id) if webhook.olt_group_id else events


def wanted_outage_events(webhook: Webhook) -> QuerySet[OutageEvent]:
    """Select events of the outages in scope; that the poller lost its own network concerns no group."""
    is_new = Q(at__gte=webhook.begins_at) | Q(outage_id__gt=webhook.last_old_outage)
    events = OutageEvent.objects.filter(is_new, kind__in=webhook.kinds)
    return events.filter(outage__olt__group_id=webhook.olt_group_id) if webhook.olt_group_id else events


def find_batch(webhook: Webhook, end: FeedEnd) -> Batch:
    """Find what comes next, which may be no event and later cursors; three queries."""
    after = FeedEnd(webhook.event_cursor, webhook.outage_cursor)
    first = OnuEvent.objects.filter(id__gt=after.event).order_by("id").values_list("id", flat=True).first()
    # Skip ids that were deleted.
    seen = max(min(end.event, (first or end.event) + WINDOW), after.event)
    return load_batch(webhook, after, FeedEnd(seen, max(end.outage_event, after.outage_event)))


def load_batch(webhook: Webhook, after: FeedEnd, to: FeedEnd) -> Batch:
    """Load what lies between, cut to the size of a batch; two queries, or one when nothing can be there."""
    events = wanted_events(webhook).filter(id__gt=after.event, id__lte=to.event).order_by("id").values(*_EVENT_COLUMNS)
    columns = {name: F(f"outage__{name}") for name in _OUTAGE_COLUMNS}
    of_outages = (
        wanted_outage_events(webhook)
        .filter(id__gt=after.outage_event, id__lte=to.outage_event)
        .order_by("id")
        .values("id", "kind", "at", "outage_id", **columns)
    )
    found = list(events[: MOST_OF_EACH + 1]) if to.event > after.event else []
    found_outage_events = list(of_outages[: MOST_OF_EACH + 1]) if to.outage_event > after.outage_event else []
    lines = merge(
        [(row["at"], False, row) for row in found[:MOST_OF_EACH]],
        [(row["at"], True, row) for row in found_outage_events[:MOST_OF_EACH]],
        key=itemgetter(0),
    )
    contents: list[dict[str, Any]] = []
    taken, size = {False: after.event, True: after.outage_event}, 0
    left = {False: len(found), True: len(found_outage_events)}
    for _at, is_outage, row in lines:
        content = _outage_content(row, webhook) if is_outage else _event_content(row, webhook)
        size += len(json.dumps(content, ensure_ascii=False).encode())
        if contents and size > MOST_BYTES:
            break
        contents.append(content)
        taken[is_outage] = row["id"]
        left[is_outage] -= 1
    reached = FeedEnd(taken[False] if left[False] else to.event, taken[True] if left[True] else to.outage_event)
    return Batch(after, reached, tuple(contents))


def find_start(since: datetime) -> FeedEnd:
    """Return the ids after which all events since a time are; three queries."""
    events = OnuEvent.objects.filter(at__gte=since)
    first = events.order_by("at").values_list("at", flat=True).first()
    lowest = events.filter(at__lt=first + DISORDER).aggregate(id=Min("id"))["id"] if first else None
    first_outage_event = OutageEvent.objects.filter(at__gte=since).aggregate(id=Min("id"))["id"]
    last = OnuEvent.objects.order_by("-id").values_list("id", flat=True).first() or 0
    last_outage_event = OutageEvent.objects.order_by("-id").values_list("id", flat=True).first() or 0
    return FeedEnd(lowest - 1 if lowest else last, first_outage_event - 1 if first_outage_event else last_outage_event)


def _event_content(row: Mapping[str, Any], webhook: Webhook) -> dict[str, Any]:
    return {
        "id": _name("event", row["id"], row["at"], row["olt_id"], row["onu_id"], row["kind"]),
        "kind": row["kind"],
        "at": _time(row["at"]),
        "replayed": row["id"] <= webhook.replays_events_to,
        "event_id": row["id"],
        "olt": {"id": row["olt_id"], "name": row["olt__name"]},
        "port": _port(row, "pon_port"),
        "onu": {
            "id": row["onu_id"],
            "number": row["onu_number"],
            "serial": row["onu__serial"],
            "mac": row["onu__mac"],
            "description": row["onu__description"],
        },
        "cause": row["cause"] or None,
        "before": row["before"] or None,
        "after": row["after"] or None,
        "other": {"port": _port(row, "other_port"), "number": row["other_number"]} if row["other_port_id"] else None,
    }


def _outage_content(row: Mapping[str, Any], webhook: Webhook) -> dict[str, Any]:
    places = {"pon": 3, "card": 2}.get(row["scope"], 0)
    return {
        "id": _name("outage", row["outage_id"], row["at"], row["olt_id"], row["kind"]),
        "kind": row["kind"],
        "at": _time(row["at"]),
        "replayed": row["id"] <= webhook.replays_outages_to,
        "outage_id": row["outage_id"],
        "olt": {"id": row["olt_id"], "name": row["olt__name"]} if row["olt_id"] else None,
        "scope": row["scope"],
        "place": "/".join(str(row[name]) for name in ("frame", "slot", "port")[:places]) or None,
        "cause": row["cause"],
        "started_at": _time(row["started_at"]),
        "resumed_at": _time(row["resumed_at"]),
        "ended_at": _time(row["ended_at"]),
        "affected_onus": row["affected"],
        "down_onus": row["down"],
        "affected_olts": row["affected_olts"],
        "part_of": row["part_of_id"],
    }


def _port(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    place = (row[f"{name}__frame"], row[f"{name}__slot"], row[f"{name}__port"])
    is_known = bool(row[f"{name}__is_known"])
    return {"id": row[f"{name}_id"], "place": name_port(*place, is_known=True) if is_known else None}


def _time(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat() if at else None


def _name(*parts: object) -> str:
    """Name an event alike at every try, and unlike those of other installations and restored backups."""
    text = " ".join(_time(part) or "" if isinstance(part, datetime) else str(part) for part in parts)
    return f"{parts[0]}-{hashlib.sha256(text.encode()).hexdigest()[:_ID_CHARACTERS]}"
