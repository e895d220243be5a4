"""The OLTs of the overview: a row for each, how many of their ONUs are online, and which are late or paused."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.core.paginator import Page, Paginator
from django.db.models import Case, Count, Max, Min, OuterRef, Q, QuerySet, Subquery, Value, When
from django.utils.translation import gettext as _

from facho.accounts.scope import EVERYTHING, OltScope
from facho.dashboard.shared.page import Bar, stack
from facho.executions.models import Execution
from facho.executions.run import FAILURES
from facho.hosts.models import Olt, Reachability
from facho.hosts.olt_entry import SECRET_COLUMNS
from facho.hosts.store import active_windows, refusal_of
from facho.onus.models import RunStateChoice
from facho.onus.shown_state import count_present
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.due import startable_nodes
from facho.snmp_jobs.models import WorkflowNode

OLTS_PER_PAGE = 50
RunTimes = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True)
class OnuCounts:
    online: int = 0
    offline: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        return self.online + self.offline + self.unknown

    def __add__(self, other: "OnuCounts") -> "OnuCounts":
        return OnuCounts(self.online + other.online, self.offline + other.offline, self.unknown + other.unknown)


def load_onu_counts(scope: OltScope = EVERYTHING, *, olt_id: int | None = None) -> dict[int, OnuCounts]:
    """Count present ONUs by OLT in scope, or of one OLT; one query, one more for a scope."""
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    for (counted, state), number in count_present(olt_id).items():
        counts[counted][state] = number
    seen = scope.visible(counts)
    return {olt_id: OnuCounts(**states) for olt_id, states in counts.items() if olt_id in seen}


def add_up(counts: Iterable[OnuCounts]) -> OnuCounts:
    return sum(counts, OnuCounts())


def draw_shares(counts: OnuCounts) -> list[Bar]:
    """Split a bar by state; empty without ONUs."""
    states = (RunStateChoice.ONLINE, RunStateChoice.OFFLINE, RunStateChoice.UNKNOWN)
    return stack(((state.value, getattr(counts, state.value)) for state in states), total=counts.total)


def load_late_olts(now: datetime) -> frozenset[int]:
    """Load the OLTs with a delayed node; one query over the due nodes."""
    due = startable_nodes(now).filter(next_run_at__lt=now).order_by()
    rows = due.values_list("workflow__olt_id", "next_run_at", "interval_seconds")
    return frozenset(olt_id for olt_id, due_at, seconds in rows if due_at and now - due_at > timedelta(seconds=seconds))


@dataclass(frozen=True, slots=True)
class PauseView:
    until: datetime
    note: str


@dataclass(frozen=True, slots=True)
class Paused:
    everything: PauseView | None
    by_olt: dict[int, PauseView]
    # Windows in which only alerts are silent; that of all OLTs is under None.
    silences: Mapping[int | None, PauseView] = field(default_factory=dict)

    @property
    def silence_of_everything(self) -> PauseView | None:
        return self.silences.get(None)

    def silent_until(self, olt_id: int) -> datetime | None:
        """Return when the silence of the OLT's alerts ends; None if they are not silent."""
        ends = [self.silences[key].until for key in (None, olt_id) if key in self.silences]
        return max(ends, default=None)

    def until(self, olt_id: int) -> datetime | None:
        """Return the end of the OLT's pause; None if it is not paused."""
        ends = [pause.until for pause in (self.everything, self.by_olt.get(olt_id)) if pause]
        return max(ends, default=None)


def load_paused(now: datetime) -> Paused:
    """Load active pauses; of several, the one that ends last. One query."""
    views: dict[int | None, PauseView] = {}
    silences: dict[int | None, PauseView] = {}
    rows = active_windows(now).order_by("ends_at").values_list("olt_id", "ends_at", "note", "keeps_polling")
    for olt_id, ends_at, note, keeps_polling in rows:
        (silences if keeps_polling else views)[olt_id] = PauseView(ends_at, note)
    by_olt = {olt_id: view for olt_id, view in views.items() if olt_id is not None}
    return Paused(views.get(None), by_olt, silences)


@dataclass(frozen=True, slots=True)
class OltLine:
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
    is_late: bool
    has_own_pause: bool
    silent_until: datetime | None
    group: str

    @property
    def look(self) -> str:
        return self.state


def load_olt_counts(late: Collection[int], scope: OltScope) -> dict[str, int]:
    """Count the OLTs in scope by reachability; one query. One that answers but waits too long for a run is late."""
    enabled, answers, is_late = Q(enabled=True), Q(reachability=Reachability.UP), Q(id__in=late)
    return scope.narrow(Olt.objects.all(), "").aggregate(
        total=Count("id", filter=enabled),
        up=Count("id", filter=enabled & answers & ~is_late),
        late=Count("id", filter=enabled & answers & is_late),
        down=Count("id", filter=enabled & Q(reachability=Reachability.DOWN)),
        unknown=Count("id", filter=enabled & Q(reachability=Reachability.UNKNOWN)),
        disabled=Count("id", filter=~enabled),
    )


def load_olt_page(number: str, scope: OltScope) -> Page[Olt]:
    """Load a page of OLTs: down, unknown, up, disabled; an invalid number is page 1."""
    return Paginator(scope.narrow(ranked_olts(), ""), OLTS_PER_PAGE).get_page(number)


def load_olt_rows(
    page: Iterable[Olt], onu_counts: Mapping[int, OnuCounts], paused: Paused, late: Collection[int]
) -> list[OltLine]:
    """Add the end of the last run and the start of the next to the OLTs of a page; one query."""
    olts = list(page)
    runs_again = Q(enabled=True, suspended_at__isnull=True)
    rows = (
        WorkflowNode.objects.filter(workflow__olt_id__in=[olt.id for olt in olts])
        .order_by()
        .values_list("workflow__olt_id")
        .annotate(last=Max("last_run_at"), next=Min("next_run_at", filter=runs_again))
    )
    times = {olt_id: (last, following) for olt_id, last, following in rows}
    return [
        _row(olt, onu_counts.get(olt.id, OnuCounts()), times.get(olt.id, (None, None)), paused, is_late=olt.id in late)
        for olt in olts
    ]


def load_olt_row(olt_id: int, now: datetime) -> OltLine | None:
    """Load one OLT as the table shows it; five queries."""
    olt = ranked_olts().filter(id=olt_id).first()
    if olt is None:
        return None
    return load_olt_rows([olt], load_onu_counts(olt_id=olt_id), load_paused(now), load_late_olts(now))[0]


def ranked_olts() -> QuerySet[Olt]:
    trouble = Case(
        When(enabled=False, then=Value(3)),
        When(reachability=Reachability.DOWN, then=Value(0)),
        When(reachability=Reachability.UNKNOWN, then=Value(1)),
        default=Value(2),
    )
    ended = Execution.objects.filter(olt=OuterRef("pk"), finished_at__isnull=False).order_by("-created_at")
    return (
        Olt.objects.annotate(trouble=trouble, last_failure=Subquery(ended.values("failure_kind")[:1]))
        .select_related("model__brand", "group")
        .defer(*SECRET_COLUMNS)
        .order_by("trouble", "name")
    )


def _row(olt: Olt, onus: OnuCounts, times: RunTimes, paused: Paused, *, is_late: bool) -> OltLine:
    last_run_at, next_run_at = times
    definition = load_definitions().get(olt.vendor)
    # The key if the definition was removed.
    family = _(definition.title) if definition else olt.vendor
    # The raw message stays in the details; an OLT without an error may still not be polled.
    failure = FAILURES.get(getattr(olt, "last_failure", None) or "", olt.last_error)
    return OltLine(
        id=olt.id,
        name=olt.name,
        address=olt.address,
        kind=str(olt.model) if olt.model else family,
        state=olt.reachability if olt.enabled else "disabled",
        state_words=olt.get_reachability_display(),
        onus=onus,
        last_run_at=last_run_at,
        next_run_at=next_run_at if olt.enabled else None,
        last_answer_at=olt.last_answer_at,
        paused_until=paused.until(olt.id) if olt.enabled else None,
        has_own_pause=olt.enabled and olt.id in paused.by_olt,
        silent_until=paused.silent_until(olt.id) if olt.enabled else None,
        is_late=olt.enabled and is_late,
        error=str(failure) if olt.last_error else refusal_of(olt),
        error_detail=olt.last_error,
        group=olt.group.name if olt.group else "",
    )
