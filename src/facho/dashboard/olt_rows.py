"""The table of OLTs: those with trouble first, a page at a time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.core.paginator import Page, Paginator
from django.db.models import Case, Count, Max, Min, OuterRef, Q, QuerySet, Subquery, Value, When
from django.utils.translation import gettext as _

from facho.accounts.scope import OltScope
from facho.dashboard.late_olts import load_late_olts
from facho.dashboard.onu_counts import OnuCounts, load_onu_counts
from facho.dashboard.paused import Paused, load_paused
from facho.executions.failure_words import FAILURES
from facho.executions.models import Execution
from facho.hosts.models import Olt, Reachability
from facho.hosts.olt_entry import SECRET_COLUMNS
from facho.hosts.refusals import refusal_of
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import WorkflowNode

OLTS_PER_PAGE = 50

RunTimes = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True)
class OltCounts:
    """Enabled OLTs by what their last operation learned, and those that are switched off.

    One that answers and has a node waiting for longer than its interval is late.
    """

    up: int
    late: int
    down: int
    unknown: int
    disabled: int

    @property
    def total(self) -> int:
        """All that are enabled."""
        return self.up + self.late + self.down + self.unknown


@dataclass(frozen=True, slots=True)
class OltRow:
    """One line of the table."""

    id: int
    name: str
    address: str
    kind: str
    state: str
    state_words: str
    onus: OnuCounts
    last_run_at: datetime | None
    next_run_at: datetime | None
    last_answer_at: datetime | None
    paused_until: datetime | None
    error: str
    error_detail: str
    is_late: bool = False
    has_own_pause: bool = False


def load_olt_counts(late: Collection[int], scope: OltScope) -> OltCounts:
    """Count the OLTs in scope; one query."""
    enabled, answers, is_late = Q(enabled=True), Q(reachability=Reachability.UP), Q(id__in=late)
    return OltCounts(
        **scope.narrow(Olt.objects.all(), "").aggregate(
            up=Count("id", filter=enabled & answers & ~is_late),
            late=Count("id", filter=enabled & answers & is_late),
            down=Count("id", filter=enabled & Q(reachability=Reachability.DOWN)),
            unknown=Count("id", filter=enabled & Q(reachability=Reachability.UNKNOWN)),
            disabled=Count("id", filter=~enabled),
        )
    )


def load_olt_page(number: str, scope: OltScope) -> Page[Olt]:
    """Load one page of OLTs, down before unknown before up before disabled; a number that is none is the first."""
    return Paginator(scope.narrow(_ranked_olts(), ""), OLTS_PER_PAGE).get_page(number)


def load_olt_rows(
    page: Page[Olt], onu_counts: Mapping[int, OnuCounts], paused: Paused, late: Collection[int]
) -> list[OltRow]:
    """Add to the OLTs of a page when they ran and run; one query."""
    return _rows(list(page), onu_counts, paused, late)


def load_olt_row(olt_id: int, now: datetime) -> OltRow | None:
    """Load one OLT as the table would show it; five queries."""
    olt = _ranked_olts().filter(id=olt_id).first()
    if olt is None:
        return None
    return _rows([olt], load_onu_counts(olt_id=olt_id), load_paused(now), load_late_olts(now))[0]


def _rows(
    olts: Sequence[Olt], onu_counts: Mapping[int, OnuCounts], paused: Paused, late: Collection[int]
) -> list[OltRow]:
    times = _load_run_times([olt.id for olt in olts])
    return [
        replace(
            _row(olt, onu_counts.get(olt.id, OnuCounts()), times.get(olt.id, (None, None)), paused.until(olt.id)),
            is_late=olt.enabled and olt.id in late,
            has_own_pause=olt.enabled and olt.id in paused.by_olt,
        )
        for olt in olts
    ]


def _ranked_olts() -> QuerySet[Olt]:
    trouble = Case(
        When(enabled=False, then=Value(3)),
        When(reachability=Reachability.DOWN, then=Value(0)),
        When(reachability=Reachability.UNKNOWN, then=Value(1)),
        default=Value(2),
    )
    ended = Execution.objects.filter(olt=OuterRef("pk"), finished_at__isnull=False).order_by("-created_at")
    return (
        Olt.objects.annotate(trouble=trouble, last_failure=Subquery(ended.values("failure_kind")[:1]))
        .select_related("model__brand")
        .defer(*SECRET_COLUMNS)
        .order_by("trouble", "name")
    )


def _load_run_times(olt_ids: list[int]) -> dict[int, RunTimes]:
    """Return, by OLT, the end of the latest run and the start of the next."""
    runs_again = Q(enabled=True, suspended_at__isnull=True)
    rows = (
        WorkflowNode.objects.filter(workflow__olt_id__in=olt_ids)
        .order_by()
        .values_list("workflow__olt_id")
        .annotate(last=Max("last_run_at"), next=Min("next_run_at", filter=runs_again))
    )
    return {olt_id: (last, following) for olt_id, last, following in rows}


def _row(olt: Olt, onus: OnuCounts, times: RunTimes, paused_until: datetime | None) -> OltRow:
    last_run_at, next_run_at = times
    return OltRow(
        id=olt.id,
        name=olt.name,
        address=olt.address,
        kind=str(olt.model) if olt.model else _family(olt.vendor),
        state=olt.reachability if olt.enabled else "disabled",
        state_words=olt.get_reachability_display(),
        onus=onus,
        last_run_at=last_run_at,
        next_run_at=next_run_at if olt.enabled else None,
        last_answer_at=olt.last_answer_at,
        paused_until=paused_until if olt.enabled else None,
        error=_error_words(olt),
        error_detail=olt.last_error,
    )


def _family(vendor: str) -> str:
    """Name the devices that a definition is for; its key says it worse, but outlives a definition that was removed."""
    definition = load_definitions().get(vendor)
    return _(definition.title) if definition else vendor


def _error_words(olt: Olt) -> str:
    """Say what the last error means, or why it is not polled; the exact message of the engine remains a detail."""
    if not olt.last_error:
        return refusal_of(olt)
    return str(FAILURES.get(getattr(olt, "last_failure", None) or "", olt.last_error))
