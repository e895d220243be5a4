"""Sums of the runs that ended since a moment: how many, what they took and sent, and how fast it was answered."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, IntegerField, Max, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from facho.executions.models import Execution


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs that have ended: how many, how long they held their OLT, what they sent, and how fast it was answered."""

    count: int = 0
    total_ms: int = 0
    longest_ms: int = 0
    packets: int = 0
    retransmissions: int = 0
    # Of questions that were sent once: what they took together, and the one that took longest.
    round_trips: int = 0
    round_trips_ms: int = 0
    longest_round_trip_ms: int = 0
    # Rejected datagrams: answers to no request of this process, with another community, or invalid SNMP.
    forged_answers: int = 0
    malformed_answers: int = 0

    @property
    def wrong_answers(self) -> int:
        """Datagrams from the OLT's address that were rejected."""
        return self.forged_answers + self.malformed_answers

    @property
    def mean_round_trip_ms(self) -> float | None:
        """How long the OLT takes to answer a packet; None when it was not measured."""
        return self.round_trips_ms / self.round_trips if self.round_trips else None

    def __add__(self, other: "Runs") -> "Runs":
        return Runs(
            self.count + other.count,
            self.total_ms + other.total_ms,
            max(self.longest_ms, other.longest_ms),
            self.packets + other.packets,
            self.retransmissions + other.retransmissions,
            self.round_trips + other.round_trips,
            self.round_trips_ms + other.round_trips_ms,
            max(self.longest_round_trip_ms, other.longest_round_trip_ms),
            self.forged_answers + other.forged_answers,
            self.malformed_answers + other.malformed_answers,
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
        round_trips=Sum(_number_in_result("round_trips")),
        round_trips_ms=Sum(_number_in_result("round_trips_ms")),
        longest_round_trip_ms=Max(_number_in_result("longest_round_trip_ms")),
        forged_answers=Sum(_number_in_result("forged_answers")),
        malformed_answers=Sum(_number_in_result("malformed_answers")),
    )
    # A run that sent nothing left no figures.
    return [RunSum(olt, kind, status, Runs(*(each or 0 for each in figures))) for olt, kind, status, *figures in rows]


def _number_in_result(key: str) -> Cast:
    return Cast(KeyTextTransform(key, "result"), IntegerField())
