"""Maintenance: pausing an OLT or everything for a while, and knowing what is paused."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from facho.hosts.models import Olt, Pause

# A year: whoever wants no polling for longer disables the OLT.
MAX_MINUTES = 366 * 24 * 60


def active_pauses(now: datetime) -> QuerySet[Pause]:
    """Select the pauses that hold right now."""
    return Pause.objects.filter(starts_at__lte=now, ends_at__gt=now)


def is_paused(olt_path: str, now: datetime) -> Exists:
    """Build the condition that an OLT, named by its path from the outer query, or everything is paused."""
    return Exists(active_pauses(now).filter(Q(olt__isnull=True) | Q(olt=OuterRef(olt_path))))


def load_pause(olt_id: int, now: datetime) -> Pause | None:
    """Load what pauses an OLT right now, itself or with everything: the pause that ends last."""
    return active_pauses(now).filter(Q(olt__isnull=True) | Q(olt_id=olt_id)).order_by("-ends_at").first()


def pause(olt: Olt | None, *, minutes: int, note: str, now: datetime) -> Pause:
    """Start a pause now; without an OLT it holds for everything. What runs already is finished."""
    return Pause.objects.create(olt=olt, starts_at=now, ends_at=now + timedelta(minutes=minutes), note=note)


def end_pauses(olt: Olt | None, *, now: datetime) -> int:
    """End the pauses of an OLT, or those of everything, now."""
    return _end(active_pauses(now).filter(olt=olt), now)


def end_pause(pause_id: int, *, now: datetime) -> bool:
    """End one pause now; one that has not begun will not. False when it was over already."""
    return bool(_end(Pause.objects.filter(id=pause_id, ends_at__gt=now), now))


def _end(pauses: QuerySet[Pause], now: datetime) -> int:
    # One that has not begun before this moment never was.
    dropped = pauses.filter(starts_at__gte=now).delete()[0]
    return dropped + pauses.filter(starts_at__lt=now).update(ends_at=now)
