"""How busy the pollers were: their load, when it was too much, and the queue; and the list of what they ran."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil, nan
from types import MappingProxyType
from typing import Any

from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_safe

from facho.accounts.scope import scope_of
from facho.dashboard.onu import plot
from facho.dashboard.shared.page import (
    TimelineFilter,
    choice_field,
    coordinate,
    for_users,
    render_part_or_page,
    search_field,
)
from facho.dashboard.shared.plot_range import SPANS as LONG_SPANS
from facho.dashboard.shared.plot_range import PlotSpan
from facho.dashboard.shared.table import (
    ListTable,
    TableColumn,
    answer_list,
    time_value,
)
from facho.dashboard.templatetags.facho_words import when
from facho.executions.models import Execution, ExecutionStates, Origin
from facho.executions.run import FAILURES_IN_SHORT
from facho.polling.domain.execution_state import TERMINAL
from facho.polling.domain.planning import SATURATED_ABOVE
from facho.snmp_jobs.application import ready_name
from facho.zabbix_pollers.read_model import LoadHistory, LoadPoint, load_history

FIRST_SPAN = "hours"
# The figures are of each minute.
REFRESH_SECONDS = 60
SPANS: Mapping[str, PlotSpan] = MappingProxyType(
    {FIRST_SPAN: PlotSpan(FIRST_SPAN, gettext_lazy("6 hours"), timedelta(hours=6), 1, "H:i"), **LONG_SPANS}
)
_BAND = {
    "load-high": gettext_lazy("saturated"),
    "load-normal": gettext_lazy("not saturated"),
    "load-gap": gettext_lazy("no data"),
}


@require_safe
@for_users
def pollers_page(request: HttpRequest) -> HttpResponse:
    asked = request.GET.get("span", FIRST_SPAN)
    span, now = SPANS.get(asked, SPANS[FIRST_SPAN]), timezone.now()
    context = {
        "here": "overview",
        "now": now,
        "span": span.key,
        "spans": list(SPANS.values()),
        "sheet": draw_sheet(load_history(now - span.length, now), span),
        "refresh_seconds": REFRESH_SECONDS,
    }
    return render_part_or_page(request, "pollers/load.html", "pollers/pollers.html", context)


def draw_sheet(history: LoadHistory, span: PlotSpan) -> dict[str, Any] | None:
    """Draw both plots over the same period with their summary; None when nothing was stored in it."""
    known = [point for point in history.points if point.busy_percentage is not None]
    if not known:
        return None
    times = history.start.timestamp(), history.end.timestamp()
    # Room above the longest queue; an empty queue is drawn at the bottom.
    top = float(max(ceil(max(point.queue_size_max or 0 for point in known) * 1.1), 5))
    busy, queue = plot.Frame(*times, 0, 100), plot.Frame(*times, 0, top)
    shares = [nan if point.saturated_share is None else point.saturated_share for point in history.points]
    steps = [(point.at.timestamp(), share, share, share) for point, share in zip(history.points, shares, strict=True)]
    band = plot.draw_band(steps, _kind, busy, history.step_seconds)
    saturated = sum(point.saturated_share or 0 for point in known) / len(known) * 100
    limit = plot.label_at(
        busy, SATURATED_ABOVE, _("saturated above %(percent)s %%") % {"percent": _number(SATURATED_ABOVE)}
    )
    plots = [
        {
            "name": _("Pollers busy"),
            "unit": "%",
            "words": _busy_words(known),
            "curve": plot.draw_curve(_points(history, "busy_percentage", "busy_percentage_min"), busy),
            "values": [plot.label_at(busy, value, _number(value)) for value in (0, 25, 50, 100)],
            "limits": [limit],
            "times": list(plot.draw_times(busy, span)),
        },
        {
            "name": _("Queue"),
            "words": _queue_words(known),
            "curve": plot.draw_curve(_points(history, "queue_size", "queue_size"), queue),
            "values": [plot.label_at(queue, value, _number(value)) for value in plot.choose_lines(0, queue.highest)],
            "times": list(plot.draw_times(queue, span)),
        },
    ]
    return {
        "plots": plots,
        "band": [plot.State(each, f"{_BAND[each.kind]}\n{plot.from_to(each.start, each.end)}") for each in band],
        "columns": list(_columns(history, busy)),
        "column_width": coordinate(_column_size(history) * history.step_seconds / (times[1] - times[0]) * plot.WIDTH),
        "saturated": _("saturated in %(percent)s %% of the time") % {"percent": number_format(saturated, 1)},
    }


def _points(history: LoadHistory, name: str, lowest: str) -> list[plot.Point]:
    """Place the values of a figure in the middle of their steps; one that is unknown is a gap."""
    points = []
    for point in history.points:
        values = [getattr(point, column) for column in (name, lowest, f"{name}_max")]
        average, low, high = (nan if values[0] is None else value or 0 for value in values)
        points.append((point.at.timestamp() + history.step_seconds / 2, average, low, high))
    return points


def _kind(saturated_share: float) -> str:
    if saturated_share > 0:
        return "load-high"
    return "load-normal" if saturated_share == 0 else "load-gap"


def _columns(history: LoadHistory, frame: plot.Frame) -> Iterator[plot.PlotColumn]:
    """Group steps into slices with their values; empty slices are left out."""
    size = _column_size(history)
    for number in range(0, len(history.points), size):
        part = history.points[number : number + size]
        known = [point for point in part if point.busy_percentage is not None]
        if known:
            start, end = part[0].at.timestamp(), part[-1].at.timestamp() + history.step_seconds
            yield plot.PlotColumn(
                coordinate(frame.x(start)),
                "\n".join([plot.from_to(start, end), _busy_words(known), _queue_words(known)]),
            )


def _column_size(history: LoadHistory) -> int:
    return ceil(len(history.points) / plot.COLUMNS)


def _busy_words(known: Sequence[LoadPoint]) -> str:
    average = sum(point.busy_percentage or 0 for point in known) / len(known)
    highest = max(point.busy_percentage_max or 0 for point in known)
    return _("busy %(average)s %%, highest %(highest)s %%") % {"average": _number(average), "highest": _number(highest)}


def _queue_words(known: Sequence[LoadPoint]) -> str:
    longest = max(point.queue_size_max or 0 for point in known)
    return _("longest queue %(longest)s") % {"longest": _number(longest)}


def _number(value: float | None) -> str:
    return str(number_format(round(value or 0)))


class ExecutionFilter(TimelineFilter):
    """An OLT, how a run stands, from where it came, and a part of its job's name."""

    lookups = {
        "olt": "olt_id",
        "status": "status",
        "origin": "origin",
        "after": "created_at__gte",
        "before": "created_at__lt",
    }
    q = search_field(gettext_lazy("Job"), max_length=60)
    status = choice_field(gettext_lazy("Status"), ExecutionStates.choices, pgettext_lazy("runs", "all"))
    origin = choice_field(gettext_lazy("Origin"), Origin.choices, pgettext_lazy("runs", "all"))
    field_order = ("q", "olt", "status", "origin", "after", "before")

    def narrow(self, runs: QuerySet[Execution]) -> QuerySet[Execution]:
        """Apply the form; runs that are not over are found by the index of the end."""
        values = self.chosen
        if text := values.get("q"):
            runs = runs.filter(Q(node__job__name__has=text) | Q(task_type__has=text))
        if values.get("status") and values["status"] not in TERMINAL:
            runs = runs.filter(finished_at__isnull=True)
        return super().narrow(runs)


def _job_of(run: Execution) -> str:
    return ready_name(run.node.job.name) if run.node else run.task_type


def _why_of(run: Execution) -> str:
    return str(FAILURES_IN_SHORT.get(run.failure_kind, run.failure_kind))


def _draw_run_olt(run: Execution, now: datetime) -> SafeString:
    return format_html('<a id="run-{}" href="{}">{}</a>', run.id, reverse("olt", args=[run.olt_id]), run.olt.name)


def _draw_status(run: Execution, now: datetime) -> SafeString:
    step = format_html('<span class="step {}">{}</span>', run.status.lower(), run.get_status_display())
    return format_html('{} <span class="muted">{}</span>', step, _why_of(run)) if run.failure_kind else step


def _draw_length(run: Execution, now: datetime) -> str:
    if run.finished_at is None and run.started_at:
        return _("%(n)s s so far") % {"n": int((now - run.started_at).total_seconds())}
    return f"{number_format(run.duration_ms / 1000, decimal_pos=1)} s" if run.duration_ms else ""


EXECUTION_TABLE = ListTable(
    "executions",
    (
        TableColumn(
            "when",
            gettext_lazy("When"),
            lambda run: time_value(run.created_at),
            lambda run, now: when(run.created_at, now),
            look="short",
        ),
        TableColumn("olt", gettext_lazy("OLT"), "olt.name", _draw_run_olt),
        TableColumn("job", gettext_lazy("Job"), _job_of, look="words"),
        TableColumn("status", gettext_lazy("Status"), "status", _draw_status),
        TableColumn("length", gettext_lazy("Duration"), "duration_ms", _draw_length, look="right short"),
        TableColumn("origin", gettext_lazy("Origin"), "origin", lambda run, now: run.get_origin_display()),
        TableColumn("attempt", gettext_lazy("Attempt"), "attempt", look="right short", is_usual=False),
        TableColumn("poller", gettext_lazy("Poller"), "poller_id", look="right short"),
        TableColumn("error", gettext_lazy("Error"), "error", sort="", look="words", is_usual=False),
        TableColumn("number", gettext_lazy("Number"), "id", sort="", look="right short", is_usual=False),
    ),
    "-time",
    {
        "when": ("created_at",),
        "olt": ("olt__name",),
        "job": ("task_type",),
        "status": ("status",),
        "length": ("duration_ms",),
        "origin": ("origin",),
        "attempt": ("attempt",),
        "poller": (F("poller_id").asc(nulls_last=True),),
    },
    time_column="created_at",
    templates=("pollers/runs.html", "pollers/executions.html"),
)


@require_safe
@for_users
def executions_page(request: HttpRequest) -> HttpResponseBase:
    scope = scope_of(request.user)
    form = ExecutionFilter(request.GET, scope)
    columns = ("olt__name", "node__job__name", "task_type", "status", "origin", "attempt", "poller_id", "error")
    times = ("created_at", "started_at", "finished_at", "duration_ms", "failure_kind")
    runs = form.narrow(scope.narrow(Execution.objects.select_related("olt", "node__job").only(*columns, *times)))
    return answer_list(request, EXECUTION_TABLE, form, runs)
