"""An OLT's runs on a line of time: what happened lately under what was planned, and what is planned next."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.dashboard.svg import coordinate
from facho.dashboard.svg_timeline import Mark, Scale, Stretch, Tick, draw_marks, draw_ticks
from facho.dashboard.times import clock_span
from facho.execution_coordinator.models import ExecutionPlan, PlanStatus
from facho.execution_coordinator.report_words import read_time
from facho.executions.models import Execution, ExecutionStates
from facho.snmp_jobs.models import SkippedSlot, SkipReasons, WorkflowNode

BEHIND, AHEAD = timedelta(minutes=20), timedelta(minutes=60)
TICK = timedelta(minutes=10)
WIDTH = 960.0
# The plan above, what became of it below.
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

Stretches = Mapping[int, Sequence[Stretch]]


@dataclass(frozen=True, slots=True)
class DrawnMark:
    """A mark with the words that it shows when one points at it."""

    kind: str
    path: str
    tip: str


@dataclass(frozen=True, slots=True)
class Line:
    """The line of one OLT."""

    olt_id: int
    olt: str
    planned: list[DrawnMark]
    happened: list[DrawnMark]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The lines of some OLTs under one ruler."""

    lines: list[Line]
    ticks: list[Tick]
    now_x: str
    width: int = int(WIDTH)
    height: int = HEIGHT


def load_timeline(olts: Sequence[tuple[int, str]], now: datetime) -> Timeline:
    """Load and draw the runs of these OLTs, given as ids and names; four queries, however many there are."""
    scale = Scale(now - BEHIND, now + AHEAD, WIDTH)
    ids = [olt_id for olt_id, _name in olts]
    planned, happened = _load_planned(ids, scale), _load_happened(ids, scale, now)
    lines = [
        Line(olt_id, name, _draw_planned(planned.get(olt_id, ()), scale), _draw_happened(happened[olt_id], scale))
        for olt_id, name in olts
    ]
    return Timeline(lines, draw_ticks(scale, TICK), coordinate(scale.x(now)))


def _draw_planned(stretches: Iterable[Stretch], scale: Scale) -> list[DrawnMark]:
    marks = draw_marks(stretches, scale, top=PLAN_TOP, height=PLAN_HEIGHT, kinds=[PLANNED])
    return [DrawnMark(mark.kind, mark.path, _("planned: %(run)s") % {"run": _words(mark)}) for mark in marks]


def _draw_happened(stretches: Iterable[Stretch], scale: Scale) -> list[DrawnMark]:
    marks = draw_marks(stretches, scale, top=RUN_TOP, height=RUN_HEIGHT, kinds=_WORST_LAST)
    return [DrawnMark(mark.kind, mark.path, _words(mark)) for mark in marks]


def _words(mark: Mark) -> str:
    span = clock_span(mark.starts_at, mark.ends_at)
    if mark.runs == 1:
        return f"{mark.name} · {span}"
    others = mark.runs - 1
    more = ngettext("%(name)s and %(n)s more", "%(name)s and %(n)s more", others) % {"name": mark.name, "n": others}
    return f"{more} · {span}"


def _load_planned(ids: Sequence[int], scale: Scale) -> Stretches:
    """Load what plans say, by the names that the nodes have now."""
    plans = ExecutionPlan.objects.filter(
        olt_id__in=ids,
        status__in=[PlanStatus.ACTIVE, PlanStatus.COMPLETED],
        period_start__lt=scale.end,
        period_end__gt=scale.start,
    ).order_by("period_start", "id")
    names = dict(WorkflowNode.objects.filter(workflow__olt_id__in=ids).values_list("id", "job__name"))
    stretches: dict[int, list[Stretch]] = defaultdict(list)
    for olt_id, runs in plans.values_list("olt_id", "plan_data"):
        stretches[olt_id] += filter(None, (_planned(run, names) for run in runs))
    return stretches


def _planned(run: Mapping[str, object], names: Mapping[int, str]) -> Stretch | None:
    starts_at, node_id, seconds = read_time(run.get("starts_at")), run.get("node_id"), run.get("seconds")
    if starts_at is None or not isinstance(node_id, int):
        return None
    length = timedelta(seconds=seconds if isinstance(seconds, int | float) else UNKNOWN_SECONDS)
    return Stretch(starts_at, starts_at + length, PLANNED, names.get(node_id, str(run.get("task_type", ""))))


def _load_happened(ids: Sequence[int], scale: Scale, now: datetime) -> Stretches:
    stretches: dict[int, list[Stretch]] = defaultdict(list)
    # Nothing runs for longer than 15 minutes at a time: what was claimed before cannot be seen.
    runs = Execution.objects.filter(olt_id__in=ids, created_at__gt=scale.start - timedelta(minutes=15)).order_by()
    columns = ("olt_id", "status", "node__job__name", "task_type", "created_at", "started_at", "finished_at")
    for olt_id, status, name, task_type, created_at, started_at, finished_at in runs.values_list(*columns):
        # A run that waits holds nothing; how long its last slice was, nobody wrote down.
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
