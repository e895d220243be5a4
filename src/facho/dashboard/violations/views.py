"""Quota violations: the list, and each with the result of every slot that was due."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from facho.accounts.acknowledge import who_acknowledged, with_acknowledger
from facho.accounts.scope import scope_of
from facho.dashboard.shared.hour import clock_span
from facho.dashboard.shared.page import (
    TimelineFilter,
    acknowledgement_context,
    answer_acknowledgement,
    choice_field,
    for_users,
    stack,
)
from facho.dashboard.shared.table import (
    ListTable,
    TableColumn,
    answer_list,
    time_value,
)
from facho.dashboard.templatetags.facho_words import ago, hour
from facho.execution_coordinator.models import QuotaViolation, ViolationSeverity
from facho.execution_coordinator.violations import TaskReport, read_report
from facho.hosts.store import OLT_SECRETS

UNSEEN, ACKNOWLEDGED = "unseen", "acknowledged"
_LOOKS = {"completed": "success", "failed": "failed", "skipped": "skipped", "pending": "waiting"}


class ViolationFilter(TimelineFilter):
    """Times match the violated hours."""

    lookups = {"olt": "olt_id", "severity": "severity", "after": "period_end__gt", "before": "period_start__lt"}
    show = choice_field(_("Show"), [(UNSEEN, _("not acknowledged")), (ACKNOWLEDGED, _("acknowledged"))])
    severity = choice_field(_("Severity"), ViolationSeverity.choices)
    field_order = ("show", "olt", "severity", "after", "before")

    def narrow(self, violations: QuerySet[QuotaViolation]) -> QuerySet[QuotaViolation]:
        if shown := self.chosen.get("show"):
            violations = violations.filter(acknowledged_at__isnull=shown == UNSEEN)
        return super().narrow(violations)


def _draw_hour(violation: QuotaViolation, now: datetime) -> SafeString:
    hours = hour(violation.period_start, violation.period_end)
    return format_html(
        '<a id="violation-{}" href="{}">{}</a>', violation.id, reverse("violation", args=[violation.id]), hours
    )


def _draw_olt(violation: QuotaViolation, now: datetime) -> SafeString:
    address = reverse("olt", args=[violation.olt_id])
    return format_html('<a id="violation-{}-olt" href="{}">{}</a>', violation.id, address, violation.olt.name)


def _draw_severity(violation: QuotaViolation, now: datetime) -> SafeString:
    words = violation.get_severity_display()
    severity = format_html('<span class="severity {}">{}</span>', violation.severity.lower(), words)
    if not violation.acknowledged_at:
        return severity
    seen = gettext("acknowledged by %(who)s") % {"who": who_acknowledged(violation)}
    return format_html('{} <span class="tag seen">{}</span>', severity, seen)


def _draw_notified(violation: QuotaViolation, now: datetime) -> SafeString | str:
    if not violation.notified:
        return gettext("no")
    return ago(violation.notified_at, now) if violation.notified_at else gettext("yes")


def _in_short(violation: QuotaViolation) -> str:
    return read_report(violation.report).in_short


VIOLATION_TABLE = ListTable(
    "violations",
    (
        TableColumn("hour", _("Hour"), lambda violation: time_value(violation.period_start), _draw_hour, look="short"),
        TableColumn("olt", _("OLT"), "olt.name", _draw_olt),
        TableColumn("severity", _("Severity"), "severity", _draw_severity),
        TableColumn(
            "completed",
            _("Completed of required"),
            _in_short,
            sort="",
            look="words mono",
        ),
        TableColumn(
            "notified",
            _("Notified"),
            lambda violation: time_value(violation.notified_at),
            _draw_notified,
            look="short",
        ),
    ),
    "-time",
    {"hour": ("period_start",), "olt": ("olt__name",), "severity": ("severity",), "notified": ("notified_at",)},
    time_column="created_at",
    templates=("violations/list.html", "violations/violations.html"),
)


@require_safe
@for_users
def violations_page(request: HttpRequest) -> HttpResponseBase:
    form = ViolationFilter(request.GET, scope_of(request.user))
    return answer_list(request, VIOLATION_TABLE, form, form.narrow(_seen_by(request)))


@require_safe
@for_users
def violation_page(request: HttpRequest, violation_id: int) -> HttpResponse:
    violation = _find(request, violation_id)
    report = read_report(violation.report)
    context = {
        "here": "violations",
        "now": timezone.now(),
        "violation": violation,
        "tasks": [_sheet(task) for task in report.tasks],
        "pauses": report.pauses,
        **acknowledgement_context(request, violation),
    }
    return render(request, "violations/violation.html", context)


@require_POST
@for_users
def violation_acknowledge(request: HttpRequest, violation_id: int) -> HttpResponse:
    return answer_acknowledgement(request, _find(request, violation_id), "violation")


def _seen_by(request: HttpRequest) -> QuerySet[QuotaViolation]:
    violations = QuotaViolation.objects.select_related("olt").defer(*OLT_SECRETS)
    return with_acknowledger(scope_of(request.user).narrow(violations))


def _find(request: HttpRequest, violation_id: int) -> QuotaViolation:
    return get_object_or_404(_seen_by(request), pk=violation_id)


def _sheet(task: TaskReport) -> dict[str, Any]:
    """Describe a task type that fell short: its bar, and each slot with its result and run time."""
    tally = task.tally
    parts = (("completed", tally.completed), ("failed", tally.failed), ("skipped", tally.skipped))
    slots = []
    for slot in task.slots:
        ran = clock_span(slot.started_at, slot.finished_at or slot.started_at) if slot.started_at else ""
        slots.append((_LOOKS.get(slot.outcome, "waiting"), ran, slot))
    return {"task": task, "bars": stack(parts, total=task.required), "slots": slots}
