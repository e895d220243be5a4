"""Sums of the runs that ended since a moment: how many, how long they held their OLT, and what they sent."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, IntegerField, Max, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from facho.executions.models import Execution


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs that have ended: how many, how long they held their OLT, and what they sent."""

    count: int = 0
    total_ms: int = 0
    longest_ms: int = 0
    packets: int = 0
    retransmissions: int = 0

    def __add__(self, other: "Runs") -> "Runs":
        return Runs(
            self.count + other.count,
            self.total_ms + other.total_ms,
            max(self.longest_ms, other.longest_ms),
            self.packets + other.packets,
            self.retransmissions + other.retransmissions,
        )


@dataclass(frozen=True, slots=True)
class RunSum:
    """What the runs of one task type on one OLT that ended in one state come to."""

    olt_id: int
    task_type: str
    status: str
    runs: Runs


def load_run_sums(since: datetime, olt_id: int | None = None) -> list[RunSum]:
    """Add up what ended since then, on all OLTs or on one; one query."""
    ended = Execution.objects.filter(finished_at__gt=since).order_by()
    if olt_id is not None:
        ended = ended.filter(olt_id=olt_id)
    rows = ended.values_list("olt_id", "task_type", "status").annotate(
        Count("id"),
        Sum("duration_ms"),
        Max("duration_ms"),
        packets=Sum(_number_in_result("packets")),
        retransmissions=Sum(_number_in_result("retransmissions")),
    )
    return [
        RunSum(olt, kind, status, Runs(count, total_ms, longest_ms, packets or 0, retransmissions or 0))
        for olt, kind, status, count, total_ms, longest_ms, packets, retransmissions in rows
    ]


def _number_in_result(key: str) -> Cast:
    return Cast(KeyTextTransform(key, "result"), IntegerField())
