"""Loads what is written down about the slots of an hour and the one before: executions, skipped slots, pauses."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import BooleanField, Case, Count, Exists, OuterRef, Q, QuerySet, Sum, When

from facho.executions.models import Execution
from facho.hosts.models import Pause
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.quota import HOUR, SkipReason, Span, hour_of
from facho.polling.domain.retry import SILENCE
from facho.polling.domain.task_type import QueryType, task_type
from facho.snmp_jobs.models import SkippedSlot

# (OLT, task type, start of the hour)
Key = tuple[int, str, datetime]

# Work that did not fit, as opposed to an OLT that did not answer.
STRUGGLES = frozenset({SkipReason.OLT_BUSY, SkipReason.NO_POLLER, SkipReason.OWN_RUN})


@dataclass(slots=True)
class Settled:
    """What became of the slots of one quota that are over."""

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
    """Everything written down about two hours."""

    hours: tuple[Span, Span]
    settled: dict[Key, Settled]
    under_way: dict[int, UnderWay]
    pauses: dict[int | None, list[Span]] = field(default_factory=dict)

    def is_under_way(self, master_node_id: int) -> bool:
        """Tell whether a master passes the slots that come now, because its run goes on."""
        return _passes_slots(self.under_way.get(master_node_id))

    def paused(self, olt_id: int) -> list[Span]:
        """Return when the OLT was or will be paused, itself or with everything."""
        return [*self.pauses.get(None, ()), *self.pauses.get(olt_id, ())]

    def is_paused(self, olt_id: int, moment: datetime) -> bool:
        """Tell whether a slot at this moment is not owed."""
        return any(span.contains(moment) for span in self.paused(olt_id))


def load_facts(now: datetime, olt_ids: Collection[int] | None) -> HourFacts:
    """Load the hour of `now` and the one before, of these OLTs or of all, in four queries."""
    hour = hour_of(now)
    both = Span(hour.start - HOUR, hour.end)
    hours = (Span(both.start, hour.start), hour)
    pauses = load_pauses(both)
    executions = _owed(_executions(both, olt_ids)) if pauses else _executions(both, olt_ids)
    facts = HourFacts(hours, defaultdict(Settled), _load_under_way(olt_ids), pauses)
    _add_runs(facts, executions)
    _add_skipped(facts, _skipped(both, olt_ids))
    return facts


def load_pauses(span: Span) -> dict[int | None, list[Span]]:
    """Load when OLTs are paused in a span, in one query; what pauses everything stands under None."""
    pauses: dict[int | None, list[Span]] = defaultdict(list)
    rows = Pause.objects.filter(starts_at__lt=span.end, ends_at__gt=span.start)
    for olt_id, starts_at, ends_at in rows.values_list("olt_id", "starts_at", "ends_at"):
        pauses[olt_id].append(Span(starts_at, ends_at))
    return pauses


def _executions(span: Span, olt_ids: Collection[int] | None) -> QuerySet[Execution]:
    rows = Execution.objects.filter(slot_at__gte=span.start, slot_at__lt=span.end).order_by()
    return rows if olt_ids is None else rows.filter(olt_id__in=olt_ids)


def _owed(executions: QuerySet[Execution]) -> QuerySet[Execution]:
    """Leave out what ran for a paused slot: right after a pause its last slot is served, but not owed."""
    pauses = Pause.objects.filter(starts_at__lte=OuterRef("slot_at"), ends_at__gt=OuterRef("slot_at"))
    return executions.filter(~Exists(pauses.filter(Q(olt__isnull=True) | Q(olt=OuterRef("olt_id")))))


def _add_runs(facts: HourFacts, executions: QuerySet[Execution]) -> None:
    before, present = facts.hours
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
            quota.skipped += count
        else:
            quota.running += count


def load_busy_masters(olt_id: int) -> set[int]:
    """Load the masters of an OLT that pass the slots that come now, because their runs go on."""
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


def _skipped(span: Span, olt_ids: Collection[int] | None) -> Iterable[tuple[int, str, datetime, SkipReason]]:
    rows = SkippedSlot.objects.filter(slot_at__gte=span.start, slot_at__lt=span.end).order_by()
    if olt_ids is not None:
        rows = rows.filter(node__workflow__olt_id__in=olt_ids)
    columns = rows.values_list(
        "node__workflow__olt_id", "node__job__query_type", "node__job__slug", "slot_at", "reason"
    )
    for olt_id, query_type, slug, slot_at, reason in columns.iterator():
        yield olt_id, task_type(QueryType(query_type), slug), slot_at, SkipReason(reason)


def _add_skipped(facts: HourFacts, rows: Iterable[tuple[int, str, datetime, SkipReason]]) -> None:
    for olt_id, kind, slot_at, reason in rows:
        if facts.is_paused(olt_id, slot_at):
            continue
        quota = facts.settled[olt_id, kind, hour_of(slot_at).start]
        quota.skipped += 1
        quota.struggles += reason in STRUGGLES
