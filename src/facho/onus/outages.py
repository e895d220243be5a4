"""Keeps the outages: loads those that still matter, and writes what the rules make of them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db.models import Q, QuerySet

from facho.onus.bulk import update_values
from facho.onus.models import OnuReading, Outage
from facho.polling.domain import outage as rules
from facho.polling.domain.outage import LIMITS, OutageCause, OutageChange, OutagePlace, OutageScope

_CHANGING = ("started_at", "resumed_at", "ended_at", "cause", "affected", "down", "affected_olts", "part_of")


def load_port_outages(olt_id: int, *, now: datetime) -> list[rules.Outage]:
    """Load the outages of an OLT's ports and cards that go on, or may still come back as the same."""
    return _outages(Outage.objects.filter(olt_id=olt_id, scope__in=(OutageScope.PON, OutageScope.CARD)), now)


def load_silences(*, now: datetime) -> list[rules.Outage]:
    """Load the outages of OLTs and of the poller's network that go on, or may still come back as the same."""
    return _outages(Outage.objects.filter(scope__in=(OutageScope.OLT, OutageScope.NETWORK)), now)


def save_outages(known: Iterable[rules.Outage], changes: Sequence[OutageChange]) -> None:
    """Write changes to what was loaded as `known`, and which ONUs and smaller outages they are about."""
    opened = Outage.objects.bulk_create(_row(change.outage) for change in changes if change.outage.outage_id is None)
    update_values(Outage, _CHANGING, [_values(change.outage) for change in changes if change.outage.outage_id])
    ids = {outage.place: outage.outage_id for outage in sorted(known, key=lambda outage: outage.outage_id or 0)}
    ids |= {_place(row): row.id for row in opened}
    joined = [(onu_id, ids[change.outage.place]) for change in changes for onu_id in change.joined]
    update_values(OnuReading, ["outage"], joined)
    update_values(Outage, ["part_of"], [*_parts(changes, ids)])


def _outages(rows: QuerySet[Outage], now: datetime) -> list[rules.Outage]:
    recent = Q(ended_at=None) | Q(ended_at__gt=now - LIMITS.reopens_within)
    return [_outage(row) for row in rows.filter(recent).order_by("id")]


def _parts(changes: Iterable[OutageChange], ids: Mapping[OutagePlace, int | None]) -> Iterable[tuple[object, object]]:
    for change in changes:
        yield from ((ids[place], ids[change.outage.place]) for place in change.absorbed)
        yield from ((ids[place], None) for place in change.released)


def _outage(row: Outage) -> rules.Outage:
    return rules.Outage(
        place=_place(row),
        started_at=row.started_at,
        resumed_at=row.resumed_at,
        cause=OutageCause(row.cause),
        affected=row.affected,
        down=row.down,
        affected_olts=row.affected_olts,
        ended_at=row.ended_at,
        outage_id=row.id,
        part_of=row.part_of_id,
    )


def _place(row: Outage) -> OutagePlace:
    return OutagePlace(OutageScope(row.scope), row.olt_id or 0, row.frame, row.slot, row.port)


def _row(outage: rules.Outage) -> Outage:
    place = outage.place
    return Outage(
        scope=place.scope.value,
        olt_id=place.olt_id or None,
        frame=place.frame,
        slot=place.slot,
        port=place.port,
        started_at=outage.started_at,
        resumed_at=outage.resumed_at,
        ended_at=outage.ended_at,
        cause=outage.cause.value,
        affected=outage.affected,
        down=outage.down,
        affected_olts=outage.affected_olts,
    )


def _values(outage: rules.Outage) -> tuple[object, ...]:
    times = (outage.started_at, outage.resumed_at, outage.ended_at)
    counts = (outage.affected, outage.down, outage.affected_olts)
    return (outage.outage_id, *times, outage.cause.value, *counts, outage.part_of)
