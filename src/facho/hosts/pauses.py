"""Maintenance: pausing an OLT or everything for a while, and knowing what is paused."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from facho.hosts.models import Olt, Pause
from facho.infrastructure.statements import Given

# A year: for longer, disable the OLT.
MAX_MINUTES = 366 * 24 * 60


def active_pauses(now: datetime | Given) -> QuerySet[Pause]:
    return Pause.objects.filter(starts_at__lte=now, ends_at__gt=now)


def is_paused(olt_path: str, now: datetime | Given) -> Exists:
    """Build the condition that an OLT, by its path in the outer query, or everything is paused."""
    return Exists(active_pauses(now).filter(Q(olt__isnull=True) | Q(olt=OuterRef(olt_path))))


def load_pause(olt_id: int, now: datetime) -> Pause | None:
    """Load the active pause of an OLT, its own or a global one, that ends last."""
    return active_pauses(now).filter(Q(olt__isnull=True) | Q(olt_id=olt_id)).order_by("-ends_at").first()


def pause(olt: Olt | None, *, minutes: int, note: str, now: datetime) -> Pause:
    return Pause.objects.create(olt=olt, starts_at=now, ends_at=now + timedelta(minutes=minutes), note=note)


def end_pauses(olt: Olt | None, *, now: datetime) -> int:
    return _end(active_pauses(now).filter(olt=olt), now)


def end_pause(pause_id: int, *, now: datetime) -> bool:
    """End a pause now; one that has not started is cancelled. False if it ended already."""
    return bool(_end(Pause.objects.filter(id=pause_id, ends_at__gt=now), now))


def _end(pauses: QuerySet[Pause], now: datetime) -> int:
    # A pause that has not started is deleted.
    dropped = pauses.filter(starts_at__gte=now).delete()[0]
    return dropped + pauses.filter(starts_at__lt=now).update(ends_at=now)
