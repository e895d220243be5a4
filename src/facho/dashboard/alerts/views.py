"""Alert pages: firing ones first, by severity, then ended ones; each with its notifications."""

from dataclasses import dataclass
from http import HTTPStatus

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from facho.accounts.scope import scope_of
from facho.alerts.channels import stored_channels
from facho.alerts.conditions import CHOICES, sentence_of
from facho.alerts.links import acknowledge_by_link, alerts_of, open_link
from facho.alerts.models import Alert, AlertState, Notice, NoticeState, Severity
from facho.alerts.store import shown_alerts, why_unsent
from facho.dashboard.shared.page import (
    ROWS_PER_PAGE,
    TimelineFilter,
    acknowledgement_context,
    answer_acknowledgement,
    choice_field,
    cursor_of,
    for_users,
    render_part_or_page,
)
from facho.onus.timeline import load_rows

FIRING, UNSEEN, OVER = "firing", "unseen", "over"
_SHOWN = {
    FIRING: Q(state=AlertState.FIRING),
    UNSEEN: Q(state=AlertState.FIRING, acknowledged_at__isnull=True),
    OVER: Q(state=AlertState.RESOLVED),
}
# More than this is one common problem and too long a list to read.
FIRING_LINES = 200
# Of what a link acknowledges; a message lists fewer.
LINK_LINES = 50
_LOOKS = {Severity.CRITICAL: "critical", Severity.WARNING: "medium", Severity.INFO: "low"}
_GRAVEST_FIRST = Case(
    When(severity=Severity.CRITICAL, then=Value(0)),
    When(severity=Severity.WARNING, then=Value(1)),
    default=Value(2),
    output_field=IntegerField(),
)
_STATE_LOOKS = {NoticeState.SENT: "success", NoticeState.FAILED: "failed", NoticeState.WAITING: "waiting"}


class AlertFilter(TimelineFilter):
    lookups = {"olt": "olt_id", "kind": "rule__kind", "severity": "severity", "before": "fired_at__lt"}
    show = choice_field(_("Show"), [(FIRING, _("firing")), (UNSEEN, _("firing, not acknowledged")), (OVER, _("over"))])
    kind = choice_field(_("Kind of alert"), CHOICES)
    severity = choice_field(_("Severity"), Severity.choices)
    field_order = ("show", "olt", "kind", "severity", "after", "before")

    def narrow(self, alerts: QuerySet[Alert]) -> QuerySet[Alert]:
        if shown := self.chosen.get("show"):
            alerts = alerts.filter(_SHOWN[shown])
        if after := self.chosen.get("after"):
            alerts = alerts.filter(Q(resolved_at__isnull=True) | Q(resolved_at__gt=after))
        return super().narrow(alerts)


@dataclass(frozen=True, slots=True)
class AlertRow:
    alert: Alert
    sentence: str
    look: str

    @property
    def lasted_seconds(self) -> float:
        """0 while it still fires; until it was seen fine, as messages have it."""
        alert = self.alert
        ended_at = alert.resolved_at and (alert.calm_since or alert.resolved_at)
        return (ended_at - alert.began_at).total_seconds() if ended_at else 0.0

    @property
    def is_waiting(self) -> bool:
        return self.alert.state == AlertState.FIRING and self.alert.acknowledged_at is None


@require_safe
@for_users
def alerts_page(request: HttpRequest) -> HttpResponse:
    form, cursor = AlertFilter(request.GET, scope_of(request.user)), cursor_of(request)
    alerts = form.narrow(_seen_by(request))
    over = load_rows(alerts.filter(state=AlertState.RESOLVED), "began_at", cursor, ROWS_PER_PAGE)
    firing = alerts.filter(state=AlertState.FIRING).order_by(_GRAVEST_FIRST, "-began_at", "-id")
    rows = [] if cursor else [_row(alert) for alert in firing[:FIRING_LINES]]
    context = {
        "here": "alerts",
        "now": timezone.now(),
        "form": form,
        "is_first": cursor is None,
        "firing": rows,
        "critical": sum(row.alert.severity == Severity.CRITICAL for row in rows),
        "over": [_row(alert) for alert in over.rows],
        "page": over,
    }
    return render_part_or_page(request, "alerts/list.html", "alerts/alerts.html", context)


@require_safe
@for_users
def alert_page(request: HttpRequest, alert_id: int) -> HttpResponse:
    alert, now = _find(request, alert_id), timezone.now()
    notices = _load_notices(alert)
    context = {
        "here": "alerts",
        "now": now,
        "row": _row(alert),
        "notices": notices,
        "unsent": None if notices else why_unsent(alert, now),
        **acknowledgement_context(request, alert),
    }
    return render(request, "alerts/alert.html", context)


@require_POST
@for_users
def alert_acknowledge(request: HttpRequest, alert_id: int) -> HttpResponse:
    return answer_acknowledgement(request, _find(request, alert_id), "alert")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def acknowledge_link(request: HttpRequest, token: str) -> HttpResponse:
    """Show what a signed link of a message acknowledges, and do so when its button is pressed; no login is needed.

    Opening it changes nothing: chat programs open links to preview them.
    """
    now = timezone.now()
    notice = open_link(token, now=now)
    if notice is None:
        return render(request, "alerts/acknowledge.html", {"is_closed": True}, status=HTTPStatus.GONE)
    if request.method == "POST":
        acknowledge_by_link(notice, now=now)
        return redirect("acknowledge-link", token)
    rows = [_row(alert) for alert in alerts_of(notice)]
    context = {
        "now": now,
        "channel": notice.channel,
        "rows": rows[:LINK_LINES],
        "left_out": max(len(rows) - LINK_LINES, 0),
        "is_used": notice.link_used_at is not None,
        "open": sum(row.is_waiting for row in rows),
    }
    return render(request, "alerts/acknowledge.html", context)


def _seen_by(request: HttpRequest) -> QuerySet[Alert]:
    return scope_of(request.user).narrow(shown_alerts())


def _find(request: HttpRequest, alert_id: int) -> Alert:
    return get_object_or_404(_seen_by(request), pk=alert_id)


def _row(alert: Alert) -> AlertRow:
    return AlertRow(alert, sentence_of(alert.rule.kind, alert.facts), _LOOKS[Severity(alert.severity)])


def _load_notices(alert: Alert) -> list[tuple[Notice, str]]:
    """Load the notifications of an alert with their looks, without their text: it may name OLTs out of scope."""
    columns = ("kind", "state", "created_at", "sent_at", "next_try_at", "tries", "last_error", "channel_id")
    notices = list(Notice.objects.filter(alerts=alert).only(*columns).order_by("created_at", "id"))
    channels = stored_channels().in_bulk([notice.channel_id for notice in notices])
    for notice in notices:
        notice.channel = channels[notice.channel_id]
    return [(notice, _STATE_LOOKS[NoticeState(notice.state)]) for notice in notices]
