"""Quota violations: the list, and each with the result of every slot that was due."""

from dataclasses import dataclass

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from facho.accounts.acknowledge import who_acknowledged, with_acknowledger
from facho.accounts.scope import scope_of
from facho.dashboard.overview.hour import clock_span
from facho.dashboard.shared.drawing import Bar, stack
from facho.dashboard.shared.page import (
    ROWS_PER_PAGE,
    TimelineFilter,
    acknowledgement_context,
    answer_acknowledgement,
    cursor_of,
    for_users,
    is_part,
)
from facho.execution_coordinator.models import QuotaViolation, ViolationSeverity
from facho.execution_coordinator.violations import Slot, TaskReport, read_report
from facho.hosts.store import OLT_SECRETS
from facho.onus.timeline import load_rows

UNSEEN, ACKNOWLEDGED = "unseen", "acknowledged"
_LOOKS = {"completed": "success", "failed": "failed", "skipped": "skipped", "pending": "waiting"}


class ViolationFilter(TimelineFilter):
    show = forms.ChoiceField(
        label=_("Show"),
        required=False,
        choices=[("", _("all")), (UNSEEN, _("not acknowledged")), (ACKNOWLEDGED, _("acknowledged"))],
    )
    severity = forms.ChoiceField(
        label=_("Severity"), required=False, choices=[("", _("all")), *ViolationSeverity.choices]
    )
    field_order = ("show", "olt", "severity", "after", "before")

    def narrow(self, violations: QuerySet[QuotaViolation]) -> QuerySet[QuotaViolation]:
        """Apply the form; times match the violated hours."""
        values = self.chosen
        if "show" in values:
            violations = violations.filter(acknowledged_at__isnull=values["show"] == UNSEEN)
        if olt := values.get("olt"):
            violations = violations.filter(olt_id=int(olt))
        given = {"severity": "severity", "after": "period_end__gt", "before": "period_start__lt"}
        return violations.filter(**{lookup: values[name] for name, lookup in given.items() if name in values})


@dataclass(frozen=True, slots=True)
class ViolationRow:
    violation: QuotaViolation
    in_short: str
    acknowledged_by: str


@dataclass(frozen=True, slots=True)
class TaskSheet:
    """A task type that fell short: its bar, and each slot with its result and run time."""

    task: TaskReport
    bars: list[Bar]
    slots: list[tuple[str, str, Slot]]


@require_safe
@vary_on_headers("HX-Request")
@for_users
def violations_page(request: HttpRequest) -> HttpResponse:
    form = ViolationFilter(request.GET, scope_of(request.user))
    page = load_rows(form.narrow(_seen_by(request)), "created_at", cursor_of(request), ROWS_PER_PAGE)
    context = {
        "here": "violations",
        "now": timezone.now(),
        "form": form,
        "page": page,
        "rows": [
            ViolationRow(
                violation,
                read_report(violation.report).in_short,
                who_acknowledged(violation) if violation.acknowledged_at else "",
            )
            for violation in page.rows
        ],
    }
    return render(request, "violations/list.html" if is_part(request) else "violations/violations.html", context)


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


def _sheet(task: TaskReport) -> TaskSheet:
    tally = task.tally
    parts = (("completed", tally.completed), ("failed", tally.failed), ("skipped", tally.skipped))
    slots = []
    for slot in task.slots:
        ran = clock_span(slot.started_at, slot.finished_at or slot.started_at) if slot.started_at else ""
        slots.append((_LOOKS.get(slot.outcome, "waiting"), ran, slot))
    return TaskSheet(task, stack(parts, total=task.required), slots)
