"""Loads what is stored about the slots of an hour and the one before: executions, skipped slots, pauses."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import BooleanField, Case, Count, Exists, OuterRef, Q, Sum, When

from facho.executions.models import Execution
from facho.hosts.models import Pause
from facho.polling.domain.execution_state import ExecutionState, FailureKind, QueryType
from facho.polling.domain.quota import SkipReason
from facho.polling.domain.retry import SILENCE
from facho.polling.domain.schedule import HOUR, Span, hour_of, task_type
from facho.snmp_jobs.store import owed_slots

# (OLT, task type, start of the hour)
Key = tuple[int, str, datetime]

# Work that did not fit, as opposed to an OLT that did not answer.
STRUGGLES = frozenset({SkipReason.OLT_BUSY, SkipReason.NO_POLLER, SkipReason.OWN_RUN})


@dataclass(slots=True)
class Settled:
    """The outcomes of the slots of one quota that are over."""

    completed: int = 0
    failed: int = 0
    skipped: int = 0
    running: int = 0
    total_duration_ms: int = 0
    # Of the failed and skipped those that an answering OLT had no time or no good answer for.
    struggles: int = 0


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A composite that is not over: the member that runs or waits now, and the slot that it serves."""

    master_node_id: int
    node_id: int
    slot_at: datetime
    place: tuple[int, int]
    # A failed try waits for the next one: a slot that comes first takes its place.
    is_retry: bool


@dataclass(frozen=True, slots=True)
class HourFacts:
    """Everything stored about two hours."""

    hours: tuple[Span, Span]
    settled: dict[Key, Settled]
    under_way: dict[int, UnderWay]
    pauses: dict[int | None, list[Span]] = field(default_factory=dict)

    def is_under_way(self, master_node_id: int) -> bool:
        """Return whether a master skips the slots that come now, because its run has not ended."""
        return _passes_slots(self.under_way.get(master_node_id))

    def paused(self, olt_id: int) -> list[Span]:
        """Return when the OLT was or will be paused, itself or with everything."""
        return [*self.pauses.get(None, ()), *self.pauses.get(olt_id, ())]

    def is_paused(self, olt_id: int, moment: datetime) -> bool:
        """Return whether a slot at this moment is not owed."""
        return any(span.contains(moment) for span in self.paused(olt_id))


def load_facts(now: datetime, olt_ids: Collection[int] | None) -> HourFacts:
    """Load the hour of `now` and the one before, of these OLTs or of all, in four queries."""
    hour = hour_of(now)
    both = Span(hour.start - HOUR, hour.end)
    hours = (Span(both.start, hour.start), hour)
    facts = HourFacts(hours, defaultdict(Settled), _load_under_way(olt_ids), load_pauses(both))
    _add_runs(facts, both, olt_ids)
    rows = owed_slots(both)
    if olt_ids is not None:
        rows = rows.filter(node__workflow__olt_id__in=olt_ids)
    columns = rows.values_list(
        "node__workflow__olt_id", "node__job__query_type", "node__job__slug", "slot_at", "reason"
    )
    for olt_id, query_type, slug, slot_at, reason in columns.iterator():
        if facts.is_paused(olt_id, slot_at):
            continue
        quota = facts.settled[olt_id, task_type(QueryType(query_type), slug), hour_of(slot_at).start]
        quota.skipped += 1
        quota.struggles += SkipReason(reason) in STRUGGLES
    return facts


def load_pauses(span: Span) -> dict[int | None, list[Span]]:
    """Load when OLTs are paused in a span, in one query; what pauses everything stands under None."""
    pauses: dict[int | None, list[Span]] = defaultdict(list)
    rows = Pause.objects.filter(starts_at__lt=span.end, ends_at__gt=span.start)
    for olt_id, starts_at, ends_at in rows.values_list("olt_id", "starts_at", "ends_at"):
        pauses[olt_id].append(Span(starts_at, ends_at))
    return pauses


def _add_runs(facts: HourFacts, span: Span, olt_ids: Collection[int] | None) -> None:
    before, present = facts.hours
    executions = Execution.objects.filter(slot_at__gte=span.start, slot_at__lt=span.end).order_by()
    if olt_ids is not None:
        executions = executions.filter(olt_id__in=olt_ids)
    if facts.pauses:
        # Right after a pause its last slot is served, but it was not owed.
        pauses = Pause.objects.filter(starts_at__lte=OuterRef("slot_at"), ends_at__gt=OuterRef("slot_at"))
        executions = executions.filter(~Exists(pauses.filter(Q(olt__isnull=True) | Q(olt=OuterRef("olt_id")))))
    is_present = Case(When(slot_at__gte=present.start, then=True), default=False, output_field=BooleanField())
    groups = (
        executions.annotate(is_present=is_present)
        .values_list("is_present", "olt_id", "task_type", "status", "failure_kind")
        .annotate(Count("id"), Sum("duration_ms"))
    )
    for in_present, olt_id, kind, status, failure_kind, count, duration_ms in groups:
        quota = facts.settled[olt_id, kind, (present if in_present else before).start]
        if status == ExecutionState.SUCCESS:
            quota.completed += count
            quota.total_duration_ms += duration_ms
        elif status in (ExecutionState.FAILED, ExecutionState.INTERRUPTED):
            quota.failed += count
            quota.total_duration_ms += duration_ms
            quota.struggles += 0 if failure_kind in SILENCE else count
        elif status == ExecutionState.SKIPPED:
            # Where no ONU is known there was nothing to owe.
            quota.skipped += 0 if failure_kind == FailureKind.NO_ONUS else count
        else:
            quota.running += count


def load_busy_masters(olt_id: int) -> set[int]:
    """Load the masters of an OLT that skip the slots that come now, because their runs have not ended."""
    return {node_id for node_id, run in _load_under_way([olt_id]).items() if _passes_slots(run)}


def _passes_slots(run: UnderWay | None) -> bool:
    return run is not None and not run.is_retry


def _load_under_way(olt_ids: Collection[int] | None) -> dict[int, UnderWay]:
    """Find what is not over, by the node of its master."""
    rows = Execution.objects.filter(finished_at__isnull=True, node__isnull=False, slot_at__isnull=False).order_by()
    if olt_ids is not None:
        rows = rows.filter(olt_id__in=olt_ids)
    columns = rows.values_list(
        "node_id", "master_execution__node_id", "slot_at", "node__priority", "status", "failure_kind"
    )
    return {
        master or node: UnderWay(
            master or node,
            node,
            slot,
            (priority, node),
            is_retry=status == ExecutionState.WAITING and failure_kind != "",
        )
        for node, master, slot, priority, status, failure_kind in columns
        if slot is not None
    }
