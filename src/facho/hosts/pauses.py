"""Maintenance: pausing an OLT or everything for a while, and knowing what is paused."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from facho.hosts.models import Olt, Pause


def active_pauses(now: datetime) -> QuerySet[Pause]:
    """Select the pauses that hold right now."""
    return Pause.objects.filter(starts_at__lte=now, ends_at__gt=now)


def is_paused(olt_path: str, now: datetime) -> Exists:
    """Build the condition that an OLT, named by its path from the outer query, or everything is paused."""
    return Exists(active_pauses(now).filter(Q(olt__isnull=True) | Q(olt=OuterRef(olt_path))))


def pause(olt: Olt | None, *, minutes: int, note: str, now: datetime) -> Pause:
    """Start a pause now; without an OLT it holds for everything. What runs already is finished."""
    return Pause.objects.create(olt=olt, starts_at=now, ends_at=now + timedelta(minutes=minutes), note=note)


def end_pauses(olt: Olt | None, *, now: datetime) -> int:
    """End the pauses of an OLT, or those of everything, now."""
    pauses = active_pauses(now).filter(olt=olt)
    # One that began in this very moment never was.
    ended = pauses.filter(starts_at=now).delete()[0]
    return ended + pauses.filter(starts_at__lt=now).update(ends_at=now)
