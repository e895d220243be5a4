"""Maintenance: pausing an OLT or everything for a while, and knowing what is paused.

What only silences alerts is a pause that keeps polling: it counts for alerts, and for nothing else.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from facho.hosts.models import Olt, Pause
from facho.infrastructure.statements import Given

# A year: for longer, disable the OLT.
MAX_MINUTES = 366 * 24 * 60


def polling_pauses() -> QuerySet[Pause]:
    """Select the pauses in which nothing is polled, past and coming ones included."""
    return Pause.objects.filter(keeps_polling=False)


def active_pauses(now: datetime | Given) -> QuerySet[Pause]:
    return polling_pauses().filter(starts_at__lte=now, ends_at__gt=now)


def is_paused(olt_path: str, now: datetime | Given) -> Exists:
    """Build the condition that an OLT, by its path in the outer query, or everything is paused."""
    return Exists(active_pauses(now).filter(Q(olt__isnull=True) | Q(olt=OuterRef(olt_path))))


def active_windows(now: datetime) -> QuerySet[Pause]:
    """Select what holds now: pauses, and silences of alerts."""
    return Pause.objects.filter(starts_at__lte=now, ends_at__gt=now)


def is_silenced(olt_path: str, now: datetime) -> Exists:
    """Build the condition that an OLT gets no new alerts: it is paused, or only its alerts are silent."""
    return Exists(active_windows(now).filter(Q(olt__isnull=True) | Q(olt=OuterRef(olt_path))))


def load_pause(olt_id: int, now: datetime) -> Pause | None:
    """Load the active pause of an OLT, its own or a global one, that ends last."""
    return active_pauses(now).filter(Q(olt__isnull=True) | Q(olt_id=olt_id)).order_by("-ends_at").first()


def pause(olt: Olt | None, *, minutes: int, note: str, now: datetime) -> Pause:
    return Pause.objects.create(olt=olt, starts_at=now, ends_at=now + timedelta(minutes=minutes), note=note)


def end_pauses(olt: Olt | None, *, now: datetime) -> int:
    return end_all(active_pauses(now).filter(olt=olt), now)


def end_pause(pause_id: int, *, now: datetime) -> bool:
    """End a pause now; one that has not started is cancelled. False if it ended already."""
    return bool(end_all(Pause.objects.filter(id=pause_id, ends_at__gt=now), now))


def plan_pauses(
    olts: Iterable[Olt] | None, *, starts_at: datetime, ends_at: datetime, note: str, keeps_polling: bool
) -> list[Pause]:
    """Store a maintenance window for each of these OLTs, or one for everything."""
    window = {"starts_at": starts_at, "ends_at": ends_at, "note": note, "keeps_polling": keeps_polling}
    return Pause.objects.bulk_create([Pause(olt=olt, **window) for olt in ([None] if olts is None else olts)])


def end_all(pauses: QuerySet[Pause], now: datetime) -> int:
    """End these pauses now, in two statements; returns how many."""
    # A pause that has not started is deleted.
    dropped = pauses.filter(starts_at__gte=now).delete()[0]
    return dropped + pauses.filter(starts_at__lt=now).update(ends_at=now)
