"""What is stored about an outage beyond its row: who went and came when, and how its neighbours were."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q

from facho.onus.models import Onu, OnuEvent, Outage, PonPort
from facho.onus.port_view import PortCounts, load_port_counts
from facho.onus.words import EventKinds, OutageScopes
from facho.polling.domain.onu_state import DownCause
from facho.polling.domain.outage_evidence import Departure

# More than the largest card has ONUs that went and came back; a drawing tells no more of more.
MAX_CHANGES = 10_000
# Those that come back are seen by the polls after the end.
AFTERWARDS = timedelta(minutes=10)


class Change(NamedTuple):
    """An ONU of the place that went down or came back."""

    onu_id: int
    at: datetime
    is_down: bool
    cause: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The other ports of the card: how many carry ONUs, and how many of them were out at the same time."""

    ports: int
    out: int


def load_changes(outage: Outage) -> list[Change]:
    """Load who went and who came back at the place of a port's or a card's outage, in order; one query."""
    until = Q(at__lte=outage.ended_at + AFTERWARDS) if outage.ended_at else Q()
    events = OnuEvent.objects.filter(
        until, _is_at(outage), at__gte=outage.started_at, kind__in=(EventKinds.DOWN, EventKinds.UP)
    )
    rows = events.order_by("at", "id").values_list("onu_id", "at", "kind", "cause")[:MAX_CHANGES]
    return [Change(onu_id, at, kind == EventKinds.DOWN, cause) for onu_id, at, kind, cause in rows]


def departures(changes: list[Change]) -> list[Departure]:
    """Keep who went, as the rules see them."""
    gone = (change for change in changes if change.is_down)
    return [Departure(change.onu_id, change.at, DownCause(change.cause or DownCause.UNKNOWN)) for change in gone]


def load_neighbours(outage: Outage) -> Neighbours:
    """Look at the other ports of the card of a port's outage; two queries."""
    card = _card(outage)
    carrying = PonPort.objects.filter(Exists(Onu.objects.filter(pon_port=OuterRef("pk"))), **card)
    others = set(carrying.exclude(port=outage.port).values_list("port", flat=True))
    at_once = Outage.objects.filter(
        Q(ended_at__isnull=True) | Q(ended_at__gt=outage.started_at), scope=OutageScopes.PON, port__in=others, **card
    )
    if outage.ended_at:
        at_once = at_once.filter(started_at__lt=outage.ended_at)
    return Neighbours(len(others), at_once.values("port").distinct().count())


def load_port_counts_of(outage: Outage) -> PortCounts | None:
    """Count the ONUs of the port of a port's outage as they are now; two queries."""
    port_id = PonPort.objects.filter(port=outage.port, **_card(outage)).values_list("id", flat=True).first()
    return load_port_counts([port_id])[port_id] if port_id else None


def _card(outage: Outage) -> dict[str, Any]:
    return {"olt_id": outage.olt_id, "frame": outage.frame, "slot": outage.slot}


def _is_at(outage: Outage) -> Q:
    names = ("frame", "slot", "port") if outage.scope == OutageScopes.PON else ("frame", "slot")
    return Q(olt_id=outage.olt_id, **{f"pon_port__{name}": getattr(outage, name) for name in names})
