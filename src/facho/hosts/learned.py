"""Remembers how much each OLT could answer at a time, so that a restart does not have to find out again."""

from datetime import datetime

from facho.hosts.models import LearnedSize


def load_learned_sizes(olt_id: int) -> dict[str, int]:
    """Return the page size that worked last, by what was read."""
    return dict(LearnedSize.objects.filter(olt_id=olt_id).values_list("subject", "rows"))


def save_learned_size(olt_id: int, subject: str, rows: int, *, now: datetime) -> None:
    """Remember the size that worked for a set of columns."""
    LearnedSize.objects.update_or_create(olt_id=olt_id, subject=subject, defaults={"rows": rows, "updated_at": now})
