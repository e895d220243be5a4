"""The page of one OLT: its hardware and interfaces, nodes, runs, SNMP figures, and the actions on it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from facho.accounts.audit import Action, record
from facho.accounts.scope import scope_of
from facho.dashboard.olt.light import load_heat_map
from facho.dashboard.onu.names import load_latest
from facho.dashboard.shared.hour import load_olt_quotas, load_timeline
from facho.dashboard.shared.olt_rows import load_olt_row
from facho.dashboard.shared.outages import load_outages_of
from facho.dashboard.shared.page import (
    PagePart,
    for_operators,
    for_users,
    is_part,
    load_parts,
    may_operate,
    part_called,
)
from facho.dashboard.traps.views import load_said
from facho.execution_coordinator.feasibility import load_feasibility, words_of
from facho.executions.models import Execution
from facho.executions.run import FAILURES_IN_SHORT, explain_failure, warn_of_places
from facho.hosts.models import Olt, OltData
from facho.hosts.olt_data import shown_growth, shown_value, title_of
from facho.hosts.store import active_pauses, end_pause, load_learned_sizes, pause
from facho.plant.models import LightFinding
from facho.polling.domain.execution_state import ExecutionState, FailureKind, QueryType
from facho.polling.vendors.loader import GENERIC_KEY
from facho.snmp_jobs.application import ready_name
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import IsChainNode, load_job_names, resume
from facho.zabbix_pollers.explain import Explanation, Situation, load_explanations, sentences
from facho.zabbix_pollers.read_model import Runs, load_run_sums
from facho.zabbix_pollers.run_now import describe_asked, leave_wish

INTERFACE_LINES = 24

_CARD = (
    "board.type",
    "board.status",
    "board.cpu",
    "board.control_cpu",
    "board.memory",
    "board.control_memory",
    "board.temperature",
)
_HARDWARE = ("chassis.temperature", "fan.status", "power.status")
_INTERFACE = ("if.oper", "if.speed", "if.in_octets", "if.out_octets", "if.descr")
_FINE = frozenset({"normal", "up", "empty"})
_STATES = frozenset({"board.status", "fan.status", "power.status", "if.oper"})
_LOOKS = {
    Situation.RUNNING: "up",
    Situation.RETRY: "late",
    Situation.SUSPENDED: "down",
    Situation.DISABLED: "disabled",
    Situation.OLT_DISABLED: "disabled",
    Situation.NOT_SCHEDULED: "disabled",
}
_OFF = frozenset({Situation.DISABLED, Situation.OLT_DISABLED, Situation.SUSPENDED})
# The column of the next run says it all.
_SPEAK_FOR_THEMSELVES = frozenset({Situation.CHAINED, Situation.NOT_DUE})
_COLUMNS = (
    "status",
    "task_type",
    "origin",
    "attempt",
    "poller_id",
    "master_execution_id",
    "created_at",
    "started_at",
    "duration_ms",
    "failure_kind",
    "error",
    "progress",
    "node__job__name",
)
LAST = timedelta(hours=1)
OUTAGE_LINES = 8
RUN_LINES = 12
EVENT_LINES = 12
# As the button says.
PAUSE_MINUTES = 30


def load_health(olt_id: int) -> dict[str, Any]:
    """Load the latest values of the OLT itself; one query."""
    rows = list(
        OltData.objects.filter(olt_id=olt_id, name__in=[*_CARD, *_HARDWARE, *_INTERFACE]).order_by("index", "id")
    )
    # Recognise PON ports by name among interfaces: they are shown in the light map instead.
    uplinks = _pivot(_INTERFACE, (row for row in rows if row.name in _INTERFACE and "pon" not in row.place.lower()))
    return {
        "cards": _pivot(_CARD, (row for row in rows if row.name in _CARD)),
        "hardware": [(row.place, _figure(row)) for row in rows if row.name in _HARDWARE],
        "uplinks": uplinks | {"lines": uplinks["lines"][:INTERFACE_LINES]},
        "more_uplinks": max(len(uplinks["lines"]) - INTERFACE_LINES, 0),
        "read_at": max((row.updated_at for row in rows), default=None),
    }


def _pivot(names: Sequence[str], rows: Iterable[OltData]) -> dict[str, list[Any]]:
    """Make a row per place, with a column for each value that any of them has."""
    by_place: Mapping[str, dict[str, OltData]] = defaultdict(dict)
    for row in rows:
        by_place[row.place or row.index][row.name] = row
    used = [name for name in names if any(name in found for found in by_place.values())]
    lines = [
        (place, [_figure(found[name]) if name in found else {"title": title_of(name)} for name in used])
        for place, found in by_place.items()
    ]
    return {"titles": [title_of(name) for name in used], "lines": lines}


def _figure(row: OltData) -> dict[str, Any]:
    is_counter = row.name.endswith("_octets")
    return {
        "title": title_of(row.name),
        "text": shown_growth(row.per_second, row.unit) if is_counter else shown_value(row.name, row.value, row.unit),
        # Where a meter is drawn.
        "percent": _percent(row.value) if row.unit == "percent" else None,
        "is_bad": row.name in _STATES and row.value not in _FINE,
    }


def _percent(value: str) -> float | None:
    try:
        return min(max(float(value), 0.0), 100.0)
    except ValueError:
        return None


def load_onu_notice(olt_id: int) -> dict[str, Any] | None:
    """Say what is wrong with the list of ONUs of an OLT that answers, by its last discovery; one query."""
    runs = Execution.objects.filter(olt_id=olt_id, task_type=QueryType.DISCOVERY, finished_at__isnull=False)
    is_meaningful = Q(status=ExecutionState.SUCCESS) | Q(failure_kind=FailureKind.HIDDEN_ONUS)
    last = runs.filter(is_meaningful).order_by("-created_at").values_list("failure_kind", "result").first()
    if last is None:
        return None
    kind, summary = last[0], last[1] or {}
    text = explain_failure(kind, summary) if kind else warn_of_places(summary)
    return {"text": text, "is_bad": bool(kind)} if text else None


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A master, or a chain member below it, which has no due time of its own."""

    node: WorkflowNode
    situation: Situation
    runs_at: datetime | None
    said: list[str]

    @property
    def look(self) -> str:
        """CSS class for how urgent the situation is."""
        return _LOOKS.get(self.situation, "unknown")

    @property
    def can_be_asked(self) -> bool:
        """Whether it can be run by hand: not a chain member, and not disabled."""
        return not self.node.is_chain_node and self.situation not in _OFF

    @property
    def is_suspended(self) -> bool:
        return self.situation is Situation.SUSPENDED


def load_nodes(olt_id: int, now: datetime) -> list[NodeLine]:
    """Load all nodes with their explanations, each master before its chain; ten queries."""
    explained = load_explanations(olt_id, now)
    nodes = WorkflowNode.objects.filter(workflow__olt_id=olt_id).select_related("job")
    rows = [node for node in nodes if node.id in explained]
    pace = {node.id: (node.interval_seconds, node.id) for node in rows}
    rows.sort(
        key=lambda node: (
            pace.get(node.master_node_id or node.id, (0, 0)),
            node.is_chain_node,
            node.priority,
            node.id,
        )
    )
    return [_line(node, explained[node.id]) for node in rows]


def _line(node: WorkflowNode, explanation: Explanation) -> NodeLine:
    situation = explanation.situation
    lines = [] if situation in _SPEAK_FOR_THEMSELVES else sentences(explanation)
    return NodeLine(node, situation, None if node.is_chain_node else explanation.runs_at, lines)


def load_run_groups(olt_id: int, count: int) -> list[list[dict[str, Any]]]:
    """Load the last `count` master runs with their chains, latest first; two queries."""
    runs = Execution.objects.select_related("node__job").only(*_COLUMNS)
    masters = list(runs.filter(olt_id=olt_id, master_execution__isnull=True).order_by("-created_at", "-id")[:count])
    members: dict[int | None, list[Execution]] = defaultdict(list)
    ids = [master.id for master in masters]
    for member in runs.filter(master_execution_id__in=ids).order_by("chain_position", "id"):
        members[member.master_execution_id].append(member)
    return [[_step(run) for run in (master, *members[master.id])] for master in masters]


def _step(run: Execution) -> dict[str, Any]:
    return {
        "run": run,
        "name": run.node.job.name if run.node else run.task_type,
        "seconds": run.duration_ms / 1000,
        "why": str(FAILURES_IN_SHORT.get(run.failure_kind, run.failure_kind)),
        "is_running": run.status == ExecutionState.RUNNING,
        "progress": _progress_words(run.shown_progress or {}),
    }


def _progress_words(progress: Mapping[str, int]) -> str:
    """Say how far a running read has come, by PON ports and ONUs if it knows them."""
    if progress.get("ports_in_all"):
        return _("%(ports)s of %(ports_in_all)s PON ports, %(rows)s of %(rows_in_all)s ONUs") % progress
    rows = progress.get("rows", 0)
    return ngettext("%(rows)s row so far", "%(rows)s rows so far", rows) % {"rows": rows} if rows else ""


def load_snmp_figures(olt_id: int, now: datetime) -> dict[str, Any]:
    """Load the SNMP figures of runs that ended in the last hour, by task type and in total; two queries."""
    runs: dict[str, Runs] = defaultdict(Runs)
    failed: dict[str, int] = defaultdict(int)
    for summed in load_run_sums(now - LAST, olt_id):
        runs[summed.task_type] += summed.runs
        failed[summed.task_type] += summed.runs.count if summed.status == ExecutionState.FAILED else 0
    traffic = [_traffic(kind, runs[kind], failed[kind]) for kind in sorted(runs)]
    total = _traffic("", sum(runs.values(), Runs()), sum(failed.values()))
    return {"traffic": traffic, "total": total, "learned": sorted(load_learned_sizes(olt_id).items())}


def _traffic(task_type: str, runs: Runs, failed: int) -> dict[str, Any]:
    return {
        "task_type": task_type,
        "runs": runs,
        "failed": failed,
        "average_seconds": runs.total_ms / runs.count / 1000 if runs.count else 0.0,
        # Packets that were sent again after a time-out.
        "repeated_percent": 100 * runs.retransmissions / runs.packets if runs.packets else 0.0,
    }


@require_safe
@for_users
def olt_page(request: HttpRequest, olt_id: int) -> HttpResponse:
    olt, now = find_olt(request, olt_id), timezone.now()
    context = _context(request, olt, now) | load_parts(PARTS, request, olt, now)
    return render(request, "olt/olt.html", context)


@require_safe
@for_users
def olt_part(request: HttpRequest, olt_id: int, name: str) -> HttpResponse:
    part, olt = part_called(name, PARTS | LATE_PARTS), find_olt(request, olt_id)
    return render(request, part.template, load_part(request, olt, part))


def load_part(request: HttpRequest, olt: Olt, part: PagePart[Olt]) -> dict[str, Any]:
    now = timezone.now()
    return _context(request, olt, now) | part.load(request, olt, now)


def find_olt(request: HttpRequest, olt_id: int) -> Olt:
    """Return an OLT in the user's scope, else raise 404."""
    olts = Olt.objects.only("name", "vendor", "sys_object_id")
    return get_object_or_404(scope_of(request.user).narrow(olts, ""), id=olt_id)


def _context(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    return {"now": now, "olt": olt, "may_operate": SimpleLazyObject(lambda: may_operate(request))}


def _state(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    is_stranger = olt.sys_object_id != "" and olt.vendor in ("", GENERIC_KEY)
    outages = load_outages_of(olt.id, OUTAGE_LINES)
    row, notice = load_olt_row(olt.id, now), load_onu_notice(olt.id)
    return {"row": row, "outages": outages, "is_stranger": is_stranger, "notice": notice}


def _feasibility(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    found = load_feasibility([olt.id]).get(olt.id)
    return {"feasibility": list(words_of(found)) if found and not found.judged.fits else []}


def _light(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    return {"heat": load_heat_map(olt.id), "health": load_health(olt.id)}


def _events(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    findings = LightFinding.objects.filter(pon_port__olt=olt)
    return {
        "events": load_latest(Q(olt=olt), findings, EVENT_LINES),
        "traps": load_said({"olt_id": olt.id}, EVENT_LINES),
    }


def _work(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    return {"nodes": load_nodes(olt.id, now), "groups": load_run_groups(olt.id, RUN_LINES)}


def _past(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    return {
        "timeline": load_timeline([(olt.id, olt.name)], now),
        "quotas": load_olt_quotas(olt.id, now),
        "snmp": load_snmp_figures(olt.id, now),
        "job_names": load_job_names(olt.id),
    }


PARTS = {
    "state": PagePart("olt/state.html", 2, _state),
    "light": PagePart("olt/light.html", 10, _light),
    "events": PagePart("olt/events.html", 10, _events),
    "work": PagePart("olt/work.html", 2, _work),
    "past": PagePart("olt/past.html", 10, _past),
}


# Judged right after the page is there: it takes more queries than the rest of the page.
LATE_PARTS = {"feasibility": PagePart("olt/feasibility.html", 60, _feasibility)}


@require_POST
@for_operators
def olt_run(request: HttpRequest, olt_id: int, node_id: int) -> HttpResponse:
    olt = find_olt(request, olt_id)
    node = _node(olt, node_id)
    try:
        message = describe_asked(leave_wish(request.user, node.id, now=timezone.now()))
    except IsChainNode:
        message = _("Nodes of a chain run with their master.")
    return _answer(request, olt, "work", f"{ready_name(node.job.name)}: {message}")


@require_POST
@for_operators
def olt_resume(request: HttpRequest, olt_id: int, node_id: int) -> HttpResponse:
    olt = find_olt(request, olt_id)
    node = _node(olt, node_id)
    is_resumed = resume(request.user, node, now=timezone.now())
    message = _("It runs at its next slot.") if is_resumed else _("This node is not suspended.")
    return _answer(request, olt, "work", f"{ready_name(node.job.name)}: {message}", is_button_gone=True)


@require_POST
@for_operators
def olt_pause(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Pause the OLT unless it already has a pause of its own: a double click makes only one."""
    olt, now = find_olt(request, olt_id), timezone.now()
    if active_pauses(now).filter(olt=olt).exists():
        message = _("This OLT is already paused.")
    else:
        with transaction.atomic():
            made = pause(olt, minutes=PAUSE_MINUTES, note="", now=now)
            record(request.user, made, Action.ADDED)
        message = _("Paused: nothing new starts; running executions finish.")
    return _answer(request, olt, "state", message, is_button_gone=True)


@require_POST
@for_operators
def olt_pause_end(request: HttpRequest, olt_id: int) -> HttpResponse:
    """End the OLT's own pauses; a global pause stays."""
    olt, now = find_olt(request, olt_id), timezone.now()
    held = active_pauses(now).filter(olt=olt).select_related("olt").only("starts_at", "ends_at", "olt__name")
    with transaction.atomic():
        for each in held:
            record(request.user, each, Action.CHANGED, gettext_lazy("ended"))
            end_pause(each.id, now=now)
    message = _("The pause has ended.") if held else _("This pause has ended.")
    return _answer(request, olt, "state", message, is_button_gone=True)


def _node(olt: Olt, node_id: int) -> WorkflowNode:
    nodes = WorkflowNode.objects.select_related("job", "workflow__olt").only("job__name", "workflow__olt__name")
    return get_object_or_404(nodes, id=node_id, workflow__olt=olt)


def _answer(request: HttpRequest, olt: Olt, name: str, said: str, **context: Any) -> HttpResponse:
    if not is_part(request):
        messages.info(request, said)
        return redirect("olt", olt.id)
    part = PARTS[name]
    shown = {**load_part(request, olt, part), "part": part, "said": said, **context}
    return render(request, "olt/done.html", shown)
