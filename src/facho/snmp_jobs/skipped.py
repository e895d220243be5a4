"""Writes down the slots that a node passes without a run, with the reason, for the quotas of the hour."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.polling.domain.quota import HOUR, SkipReason, hour_of
from facho.polling.domain.schedule import Grid
from facho.snmp_jobs.models import SkippedSlot, WorkflowNode

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Passage:
    """A node's slots from `due_at` to `until`, the latter excluded, went by for this reason."""

    node_id: int
    grid: Grid
    due_at: datetime
    until: datetime
    reason: SkipReason


def passed_until_now(
    node_id: int, grid: Grid, due_at: datetime | None, now: datetime, reason: SkipReason
) -> list[Passage]:
    """Describe that a node goes on after now, whatever was due up to now."""
    return [] if due_at is None or due_at > now else [Passage(node_id, grid, due_at, now + _INSTANT, reason)]


def save_skipped(passages: Iterable[Passage], now: datetime) -> int:
    """Write down what went by in this hour and the one before, for masters and their chains; returns how many.

    Older hours are judged: after a week without polling nobody wants a row for each slot of it.
    """
    since = hour_of(now).start - HOUR
    slots: dict[int, dict[datetime, SkipReason]] = defaultdict(dict)
    for passage in passages:
        for slot in passage.grid.slots(passage.due_at, since, passage.until):
            slots[passage.node_id][slot] = passage.reason
    if not slots:
        return 0
    _add_chains(slots)
    rows = [
        SkippedSlot(node_id=node_id, slot_at=slot, reason=reason)
        for node_id, skipped in slots.items()
        for slot, reason in skipped.items()
    ]
    SkippedSlot.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
    return len(rows)


def _add_chains(slots: dict[int, dict[datetime, SkipReason]]) -> None:
    """Let chain members share what their masters missed: they owe the same slots."""
    members = WorkflowNode.objects.filter(master_node_id__in=list(slots), enabled=True)
    found: Mapping[int, int] = dict(members.order_by().values_list("id", "master_node_id"))
    for member_id, master_id in found.items():
        slots[member_id] = slots[master_id]
