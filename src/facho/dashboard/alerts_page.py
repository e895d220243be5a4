"""Alerts on pages: those that fire, the gravest first, then those that are over; and each with whom it was told to."""

from dataclasses import dataclass

from django import forms
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from facho.accounts.acknowledge import who_acknowledged
from facho.accounts.scope import scope_of
from facho.alerts.alerts_read_model import shown_alerts
from facho.alerts.channels import stored_channels
from facho.alerts.models import Alert, AlertState, Kind, Notice, NoticeKind, NoticeState, Severity
from facho.alerts.untold import why_untold
from facho.alerts.words import sentence_of
from facho.dashboard.acknowledging import acknowledgement_context, answer_acknowledgement
from facho.dashboard.parts import for_users, is_part
from facho.dashboard.timeline_lists import ROWS_PER_PAGE, TimelineFilter, cursor_of
from facho.onus.timeline import load_rows

FIRING, UNSEEN, OVER = "firing", "unseen", "over"
_SHOWN = {
    FIRING: Q(state=AlertState.FIRING),
    UNSEEN: Q(state=AlertState.FIRING, acknowledged_at__isnull=True),
    OVER: Q(state=AlertState.RESOLVED),
}
# More at once are few troubles, or nobody reads them all.
FIRING_LINES = 200
_LOOKS = {Severity.CRITICAL: "critical", Severity.WARNING: "medium", Severity.INFO: "low"}
_GRAVEST_FIRST = Case(
    When(severity=Severity.CRITICAL, then=Value(0)),
    When(severity=Severity.WARNING, then=Value(1)),
    default=Value(2),
    output_field=IntegerField(),
)
_STATE_LOOKS = {NoticeState.SENT: "success", NoticeState.FAILED: "failed", NoticeState.WAITING: "waiting"}


class AlertFilter(TimelineFilter):
    """Which alerts, of which OLT, of which kind and severity, firing between which times."""

    show = forms.ChoiceField(
        label=_("Show"),
        required=False,
        choices=[("", _("all")), (FIRING, _("firing")), (UNSEEN, _("firing, not acknowledged")), (OVER, _("over"))],
    )
    kind = forms.ChoiceField(label=_("Kind of alert"), required=False, choices=[("", _("all")), *Kind.choices])
    severity = forms.ChoiceField(label=_("Severity"), required=False, choices=[("", _("all")), *Severity.choices])
    field_order = ("show", "olt", "kind", "severity", "after", "before")

    def narrow(self, alerts: QuerySet[Alert]) -> QuerySet[Alert]:
        """Apply what was filled in; times find what was firing between them."""
        values = self.chosen
        conditions = [_SHOWN[values["show"]]] if "show" in values else []
        if "after" in values:
            conditions.append(Q(resolved_at__isnull=True) | Q(resolved_at__gt=values["after"]))
        given = {"olt": "olt_id", "kind": "rule__kind", "severity": "severity", "before": "fired_at__lt"}
        return alerts.filter(*conditions, **{lookup: values[name] for name, lookup in given.items() if name in values})


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One line of the list."""

    alert: Alert
    sentence: str
    look: str
    acknowledged_by: str

    @property
    def lasted_seconds(self) -> float:
        """How long it fired; 0 while it does."""
        alert = self.alert
        return (alert.resolved_at - alert.began_at).total_seconds() if alert.resolved_at else 0.0


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """One message about an alert, without its words: they may name what not everybody may see."""

    notice: Notice
    kind: str
    state: str
    look: str


@require_safe
@vary_on_headers("HX-Request")
@for_users
def alerts_page(request: HttpRequest) -> HttpResponse:
    """List alerts, narrowed by the form; htmx gets the list alone."""
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
    return render(request, f"dashboard/{'alert_list' if is_part(request) else 'alerts'}.html", context)


@require_safe
@for_users
def alert_page(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Show one alert, its times, and whom it was told to."""
    alert, now = _find(request, alert_id), timezone.now()
    notices = _load_notices(alert)
    context = {
        "here": "alerts",
        "now": now,
        "row": _row(alert),
        "notices": notices,
        "untold": None if notices else why_untold(alert, now),
        **acknowledgement_context(request, alert),
    }
    return render(request, "dashboard/alert.html", context)


@require_POST
@for_users
def alert_acknowledge(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Take note of an alert, or take that back."""
    return answer_acknowledgement(request, _find(request, alert_id), "alert")


def _seen_by(request: HttpRequest) -> QuerySet[Alert]:
    return scope_of(request.user).narrow(shown_alerts())


def _find(request: HttpRequest, alert_id: int) -> Alert:
    alert = _seen_by(request).filter(pk=alert_id).first()
    if alert is None:
        raise Http404
    return alert


def _row(alert: Alert) -> AlertRow:
    who = who_acknowledged(alert) if alert.acknowledged_at else ""
    return AlertRow(alert, sentence_of(alert.rule.kind, alert.facts), _LOOKS[Severity(alert.severity)], who)


def _load_notices(alert: Alert) -> list[NoticeRow]:
    columns = ("kind", "state", "created_at", "sent_at", "next_try_at", "tries", "last_error", "channel_id")
    notices = list(Notice.objects.filter(alerts=alert).only(*columns).order_by("created_at", "id"))
    channels = stored_channels().in_bulk([notice.channel_id for notice in notices])
    for notice in notices:
        notice.channel = channels[notice.channel_id]
    return [_notice_row(notice) for notice in notices]


def _notice_row(notice: Notice) -> NoticeRow:
    state = NoticeState(notice.state)
    return NoticeRow(notice, str(NoticeKind(notice.kind).label), str(state.label), _STATE_LOOKS[state])
