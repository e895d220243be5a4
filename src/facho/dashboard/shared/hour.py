"""The current hour of the overview: clock formats, quotas, and the timeline of runs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, Sum, Value, When
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.accounts.scope import OltScope
from facho.dashboard.shared.page import Bar, coordinate, rectangle, stack
from facho.execution_coordinator.models import ExecutionPlan, PlanStatus, QuotaStatus, QuotaTracker
from facho.execution_coordinator.violations import read_time
from facho.executions.models import Execution, ExecutionStates
from facho.polling.domain.quota import Tally
from facho.polling.domain.schedule import hour_of
from facho.snmp_jobs.application import ready_name
from facho.snmp_jobs.models import SkippedSlot, SkipReasons, WorkflowNode

# Of the drawing's own units: a narrower mark cannot be hit, and a narrower gap cannot be seen.
MIN_WIDTH = 3.0
MIN_GAP = 3.0
SHORT_LINES = 8
_FALLS_SHORT = Q(will_miss_at__isnull=False) | Q(
    status__in=[QuotaStatus.AT_RISK, QuotaStatus.QUOTA_NOT_MET, QuotaStatus.FAILED]
)
BEHIND, AHEAD = timedelta(minutes=20), timedelta(minutes=60)
TICK = timedelta(minutes=10)
WIDTH = 960.0
# The plan above, actual runs below.
PLAN_TOP, PLAN_HEIGHT = 3.0, 9.0
RUN_TOP, RUN_HEIGHT = 15.0, 9.0
HEIGHT = 27
PLANNED, RUNNING, ENDED_WELL, SKIPPED, ENDED_BADLY = "planned", "running", "good", "skipped", "failed"
_WORST_LAST = (ENDED_WELL, RUNNING, SKIPPED, ENDED_BADLY)
_KINDS: Mapping[str, str] = {
    ExecutionStates.PENDING: RUNNING,
    ExecutionStates.RUNNING: RUNNING,
    ExecutionStates.WAITING: RUNNING,
    ExecutionStates.SUCCESS: ENDED_WELL,
    ExecutionStates.FAILED: ENDED_BADLY,
    ExecutionStates.INTERRUPTED: ENDED_BADLY,
    ExecutionStates.SKIPPED: SKIPPED,
}
# A run of unknown length is drawn as if it took this long.
UNKNOWN_SECONDS = 10.0


def clock(moment: datetime) -> str:
    return f"{localtime(moment):%H:%M:%S}"


def zone_in_short(moment: datetime) -> str:
    """Format the local UTC offset: UTC-5, UTC+5:30, with a real minus sign."""
    offset = localtime(moment).utcoffset() or timedelta(0)
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    sign = "−" if offset < timedelta(0) else "+"  # noqa: RUF001 a minus, as wide as the plus
    return f"UTC{sign}{hours}{f':{minutes:02}' if minutes else ''}" if offset else "UTC"


def clock_span(starts_at: datetime, ends_at: datetime) -> str:
    begin, end = clock(starts_at), clock(ends_at)
    return begin if begin == end else f"{begin}-{end}"


@dataclass(frozen=True, slots=True)
class Scale:
    start: datetime
    end: datetime
    width: float

    def x(self, moment: datetime) -> float:
        share = (moment - self.start) / (self.end - self.start)
        return min(max(share, 0.0), 1.0) * self.width

    def shows(self, starts_at: datetime, ends_at: datetime) -> bool:
        return starts_at < self.end and ends_at >= self.start


@dataclass(frozen=True, slots=True)
class Stretch:
    starts_at: datetime
    ends_at: datetime
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Mark:
    """One drawn mark, possibly of several runs: named for the first, from its start to the last end."""

    kind: str
    path: str
    starts_at: datetime
    ends_at: datetime
    name: str
    runs: int


@dataclass(frozen=True, slots=True)
class Tick:
    x: str
    moment: datetime


def draw_marks(
    stretches: Iterable[Stretch], scale: Scale, *, top: float, height: float, kinds: Sequence[str]
) -> list[Mark]:
    """Draw the visible marks, one kind after the other: later kinds lie on top."""
    seen = sorted((each for each in stretches if scale.shows(each.starts_at, each.ends_at)), key=lambda s: s.starts_at)
    return [
        _mark(group, scale, top, height)
        for kind in kinds
        for group in _join([stretch for stretch in seen if stretch.kind == kind], scale)
    ]


def draw_ticks(scale: Scale, step: timedelta) -> list[Tick]:
    midnight = scale.start.replace(hour=0, minute=0, second=0, microsecond=0)
    steps = (scale.start - midnight) // step + 1
    moments = (midnight + number * step for number in range(steps, steps + (scale.end - scale.start) // step + 1))
    return [Tick(coordinate(scale.x(moment)), moment) for moment in moments if moment < scale.end]


def _join(ordered: Sequence[Stretch], scale: Scale) -> Iterator[list[Stretch]]:
    group: list[Stretch] = []
    right = 0.0
    for stretch in ordered:
        left = scale.x(stretch.starts_at)
        if group and left - right >= MIN_GAP:
            yield group
            group = []
        right = max(scale.x(stretch.ends_at), left + MIN_WIDTH, right if group else 0.0)
        group.append(stretch)
    if group:
        yield group


def _mark(group: Sequence[Stretch], scale: Scale, top: float, height: float) -> Mark:
    first, ends_at = group[0], max(stretch.ends_at for stretch in group)
    left = min(scale.x(first.starts_at), scale.width - MIN_WIDTH)
    path = rectangle(left, top, max(scale.x(ends_at) - left, MIN_WIDTH), height)
    return Mark(first.kind, path, first.starts_at, ends_at, first.name, len(group))


@dataclass(frozen=True, slots=True)
class QuotaBar:
    """Quota of this hour and its progress; `will_miss_at` is when the forecast turned bad."""

    task_type: str
    tally: Tally
    olts: int = 0
    olt_id: int | None = None
    olt: str = ""
    status: str = ""
    status_words: str = ""
    will_miss_at: datetime | None = None
    # Of a whole task type: on how many OLTs it will be missed.
    will_miss: int = 0

    @property
    def bars(self) -> list[Bar]:
        """Segments on a width of 100; pending runs stay empty."""
        tally = self.tally
        parts = (("completed", tally.completed), ("failed", tally.failed), ("skipped", tally.skipped))
        return stack(parts, total=tally.required)


def load_hour_quotas(now: datetime, scope: OltScope) -> dict[str, Any]:
    """Load this hour's quotas in scope; three queries."""
    hour = hour_of(now)
    owed = QuotaTracker.objects.filter(period_start=hour.start, olt__enabled=True, quota_required__gt=0)
    trackers = scope.narrow(owed)
    short = trackers.filter(_FALLS_SHORT)
    is_foreseen = Case(When(will_miss_at__isnull=False, then=Value(0)), default=Value(1))
    lost = F("quota_failed") + F("quota_skipped")
    counts = short.aggregate(all=Count("id"), will_miss=Count("id", filter=Q(will_miss_at__isnull=False)))
    # Those that will be missed first, then by what is lost.
    shown = list(_bars(short.order_by(is_foreseen, -lost, "olt__name", "task_type")[:SHORT_LINES]))
    return {
        "hour": hour,
        "types": list(_types(trackers)),
        "short": shown,
        "more": counts["all"] - len(shown),
        "will_miss_count": counts["will_miss"],
        "elapsed_x": coordinate((now - hour.start) / (hour.end - hour.start) * 100),
    }


def load_olt_quotas(olt_id: int, now: datetime) -> list[QuotaBar]:
    return list(
        _bars(QuotaTracker.objects.filter(period_start=hour_of(now).start, olt_id=olt_id).order_by("task_type"))
    )


def _types(trackers: QuerySet[QuotaTracker]) -> Iterable[QuotaBar]:
    rows = (
        trackers.order_by("task_type")
        .values_list("task_type")
        .annotate(
            Sum("quota_completed"),
            Sum("quota_failed"),
            Sum("quota_skipped"),
            Sum("quota_pending"),
            Count("olt"),
            will_miss=Count("id", filter=Q(will_miss_at__isnull=False)),
        )
    )
    for task_type, completed, failed, skipped, pending, olts, will_miss in rows:
        yield QuotaBar(task_type, Tally(completed, failed, skipped, pending), olts, will_miss=will_miss)


def _bars(trackers: QuerySet[QuotaTracker]) -> Iterable[QuotaBar]:
    columns = ("quota_completed", "quota_failed", "quota_skipped", "quota_pending")
    rows = trackers.values_list("task_type", "olt_id", "olt__name", "status", "will_miss_at", *columns)
    for task_type, olt_id, olt, status, will_miss_at, *counts in rows:
        words = str(QuotaStatus(status).label)
        yield QuotaBar(task_type, Tally(*counts), 1, olt_id, olt, status, words, will_miss_at)


Stretches = Mapping[int, Sequence[Stretch]]


def load_timeline(olts: Sequence[tuple[int, str]], now: datetime) -> dict[str, Any]:
    scale = Scale(now - BEHIND, now + AHEAD, WIDTH)
    ids = [olt_id for olt_id, _name in olts]
    planned, happened = _load_planned(ids, scale), _load_happened(ids, scale, now)
    lines = []
    for olt_id, name in olts:
        plan = draw_marks(planned.get(olt_id, ()), scale, top=PLAN_TOP, height=PLAN_HEIGHT, kinds=[PLANNED])
        runs = draw_marks(happened.get(olt_id, ()), scale, top=RUN_TOP, height=RUN_HEIGHT, kinds=_WORST_LAST)
        above = [(mark, _("planned: %(run)s") % {"run": _words(mark)}) for mark in plan]
        below = [(mark, _words(mark)) for mark in runs]
        lines.append({"olt_id": olt_id, "olt": name, "planned": above, "happened": below})
    return {
        "lines": lines,
        "ticks": draw_ticks(scale, TICK),
        "now_x": coordinate(scale.x(now)),
        "width": int(WIDTH),
        "height": HEIGHT,
    }


def _words(mark: Mark) -> str:
    span = clock_span(mark.starts_at, mark.ends_at)
    if mark.runs == 1:
        return f"{ready_name(mark.name)} · {span}"
    others = mark.runs - 1
    more = ngettext("%(name)s and %(n)s more", "%(name)s and %(n)s more", others) % {
        "name": ready_name(mark.name),
        "n": others,
    }
    return f"{more} · {span}"


def _load_planned(ids: Sequence[int], scale: Scale) -> Stretches:
    plans = ExecutionPlan.objects.filter(
        olt_id__in=ids,
        status__in=[PlanStatus.ACTIVE, PlanStatus.COMPLETED],
        period_start__lt=scale.end,
        period_end__gt=scale.start,
    ).order_by("period_start", "id")
    names = dict(WorkflowNode.objects.filter(workflow__olt_id__in=ids).values_list("id", "job__name"))
    stretches: dict[int, list[Stretch]] = defaultdict(list)
    for olt_id, runs in plans.values_list("olt_id", "plan_data"):
        for run in runs:
            starts_at, node_id, seconds = read_time(run.get("starts_at")), run.get("node_id"), run.get("seconds")
            if starts_at is None or not isinstance(node_id, int):
                continue
            ends_at = starts_at + timedelta(seconds=seconds if isinstance(seconds, int | float) else UNKNOWN_SECONDS)
            name = names.get(node_id, str(run.get("task_type", "")))
            stretches[olt_id].append(Stretch(starts_at, ends_at, PLANNED, name))
    return stretches


def _load_happened(ids: Sequence[int], scale: Scale, now: datetime) -> Stretches:
    stretches: dict[int, list[Stretch]] = defaultdict(list)
    # Nothing runs for longer than 15 minutes at a time: what was claimed before cannot be seen.
    runs = Execution.objects.filter(olt_id__in=ids, created_at__gt=scale.start - timedelta(minutes=15)).order_by()
    columns = ("olt_id", "status", "node__job__name", "task_type", "created_at", "started_at", "finished_at")
    for olt_id, status, name, task_type, created_at, started_at, finished_at in runs.values_list(*columns):
        # A run that waits holds nothing; how long its last slice was is not stored.
        begin = started_at or created_at
        end = finished_at or (begin if status == ExecutionStates.WAITING else now)
        stretches[olt_id].append(Stretch(begin, end, _KINDS[status], name or task_type))
    skipped = SkippedSlot.objects.filter(
        node__workflow__olt_id__in=ids, node__is_chain_node=False, slot_at__gte=scale.start, slot_at__lt=now
    ).order_by()
    for olt_id, name, slot_at, reason in skipped.values_list(
        "node__workflow__olt_id", "node__job__name", "slot_at", "reason"
    ):
        words = f"{name}: {SkipReasons(reason).label}"
        stretches[olt_id].append(Stretch(slot_at, slot_at, SKIPPED, words))
    return stretches
