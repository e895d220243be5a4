"""Reads what was found in the light."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q, QuerySet

from facho.plant.models import FindingKinds, LightFinding


@dataclass(frozen=True, slots=True)
class OpenStep:
    """Light that ONUs of a port lost together and did not get back."""

    id: int
    olt_id: int
    olt: str
    place: str
    since: datetime
    lost_db: float
    hit: int
    read: int


@dataclass(frozen=True, slots=True)
class OpenDecay:
    """Light of an ONU that falls, and in how many days from now it is too weak."""

    onu_id: int
    olt_id: int
    olt: str
    place: str
    serial: str
    description: str
    since: datetime
    rate_db: float
    days_soonest: float
    days_likely: float
    days_latest: float


def load_open_steps() -> list[OpenStep]:
    found = _open(FindingKinds.COMMON_STEP).annotate(hit=Count("members", filter=Q(members__is_hit=True)))
    return [
        OpenStep(
            id=each.id,
            olt_id=each.pon_port.olt_id,
            olt=each.pon_port.olt.name,
            place=str(each.pon_port),
            since=each.since,
            lost_db=-each.size_db,
            hit=each.hit,
            read=each.onus_read,
        )
        for each in found.select_related("pon_port__olt")
    ]


def load_open_decays(now: datetime) -> list[OpenDecay]:
    """Load decays that a day of the last week confirmed, those that are too weak soonest first."""
    recent = _open(FindingKinds.DECAY).filter(judged_at__gt=now - timedelta(days=7), onu__is_present=True)
    decays = []
    for each in recent.select_related("pon_port__olt", "onu"):
        if each.onu is None:
            continue
        passed = (now - each.judged_at) / timedelta(days=1)
        place = each.pon_port
        decays.append(
            OpenDecay(
                onu_id=each.onu.id,
                olt_id=place.olt_id,
                olt=place.olt.name,
                place=str(place),
                serial=each.onu.serial,
                description=each.onu.description,
                since=each.since,
                rate_db=each.size_db,
                days_soonest=max((each.days_soonest or 0) - passed, 0),
                days_likely=max((each.days_likely or 0) - passed, 0),
                days_latest=max((each.days_latest or 0) - passed, 0),
            )
        )
    return sorted(decays, key=lambda decay: decay.days_likely)


def _open(kind: FindingKinds) -> QuerySet[LightFinding]:
    return LightFinding.objects.filter(kind=kind, ended_at__isnull=True, pon_port__olt__enabled=True).order_by("id")
