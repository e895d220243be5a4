"""The list of what happened to ONUs, the latest first."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import NamedTuple

from django import forms
from django.db.models import Q, QuerySet
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy
from django.views.decorators.http import require_safe

from facho.accounts.scope import scope_of
from facho.dashboard.onu.names import EventLine, event_lines, event_rows
from facho.dashboard.shared.outages import with_names
from facho.dashboard.shared.page import (
    ROWS_PER_PAGE,
    TimelineFilter,
    choice_field,
    cursor_of,
    for_users,
    render_part_or_page,
    search_field,
)
from facho.dashboard.shared.table import (
    SORT,
    ListTable,
    TableColumn,
    export_table,
    in_batches,
    is_export,
    load_table,
    time_value,
)
from facho.dashboard.templatetags.facho_words import length_of_time, when
from facho.onus.events import all_events, first_event_of, fold_outages, load_events_of, load_folds
from facho.onus.models import Onu, OnuEvent, Outage
from facho.onus.search import MIN_LETTERS, long_enough, of_text
from facho.onus.words import EventKinds
from facho.plant.models import LightFinding
from facho.plant.store import fold_steps, load_step_folds

OPEN = "open"
# Of an outage that was opened; its page has all.
OPENED_LINES = 100


class EventFilter(TimelineFilter):
    lookups = {"olt": "olt_id", "kind": "kind", "after": "at__gte", "before": "at__lt"}
    q = search_field(gettext_lazy("ONU"), gettext_lazy("serial, description or customer"), min_length=MIN_LETTERS)
    kind = choice_field(gettext_lazy("What"), EventKinds.choices, pgettext_lazy("events", "all"))
    field_order = ("q", "olt", "kind", "after", "before")

    def clean_q(self) -> str:
        """Require the same minimum length as every other search."""
        text: str = self.cleaned_data["q"]
        try:
            return long_enough(text) if text else ""
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def narrow(self, events: QuerySet[OnuEvent]) -> QuerySet[OnuEvent]:
        """Apply the form; a text search costs three queries."""
        if text := self.chosen.get("q"):
            events = events.filter(onu__in=self.scope.narrow(Onu.objects.filter(of_text(text))).values("pk"))
        return super().narrow(events)

    def narrow_findings(self, findings: QuerySet[LightFinding]) -> QuerySet[LightFinding]:
        given = {"olt": "pon_port__olt_id", "before": "since__lt"}
        return findings.filter(**{given[name]: self.chosen[name] for name in given.keys() & self.chosen.keys()})

    def narrow_outages(self, outages: QuerySet[Outage]) -> QuerySet[Outage]:
        """Apply the form; times match outages with events between them."""
        values = self.chosen
        given = {"olt": "olt_id", "before": "started_at__lt"}
        lasts = Q(ended_at__isnull=True) | Q(ended_at__gte=values["after"]) if "after" in values else Q()
        return outages.filter(lasts, **{lookup: values[name] for name, lookup in given.items() if name in values})


@dataclass(frozen=True, slots=True)
class FoldedOutage(EventLine):
    """An outage as one line instead of the events of its ONUs; `address` opens or closes it."""

    outage: Outage
    is_open: bool
    address: str


def _draw_when(event: EventLine, now: datetime) -> SafeString | str:
    return when(event.outage.started_at if isinstance(event, FoldedOutage) else event.at, now)


def _draw_what(event: EventLine, now: datetime) -> SafeString:
    what = format_html('<span class="mark {}"><bdi>{}</bdi></span>', event.look, event.what)
    if not isinstance(event, FoldedOutage):
        return what
    outage, more = event.outage, ""
    if outage.ended_at:
        more = _("lasted %(length)s") % {"length": length_of_time(outage.lasted_seconds)}
    elif outage.down != outage.affected:
        more = ngettext("%(number)s still down", "%(number)s still down", outage.down) % {"number": outage.down}
    return format_html('{} <span class="muted">{}</span>', what, more) if more else what


def _draw_onu(event: EventLine, now: datetime) -> SafeString:
    if isinstance(event, FoldedOutage):
        return format_html(
            '<a id="fold-{}" aria-expanded="{}" href="{}">{}</a> · <a id="event-outage-{}" href="{}">{}</a>',
            event.outage.id,
            "true" if event.is_open else "false",
            event.address,
            _("close") if event.is_open else pgettext("verb", "open"),
            event.outage.id,
            reverse("outage", args=[event.outage.id]),
            _("Outage"),
        )
    return format_html('<a id="event-{}" href="{}">{}</a>', event.id, event.url, event.code)


def _draw_olt(event: EventLine, now: datetime) -> SafeString:
    address = reverse("olt", args=[event.olt_id])
    return format_html('<a id="event-{}-olt" href="{}">{}</a>', event.id, address, event.olt)


EVENT_TABLE = ListTable(
    "events",
    (
        TableColumn("when", gettext_lazy("When"), lambda event: time_value(event.at), _draw_when, look="short"),
        TableColumn("what", gettext_lazy("What"), "what", _draw_what, look="words"),
        TableColumn("onu", gettext_lazy("ONU"), "code", _draw_onu, look="mono"),
        TableColumn("olt", gettext_lazy("OLT"), "olt", _draw_olt),
        TableColumn("place", gettext_lazy("Place"), "place", look="mono"),
        TableColumn("description", gettext_lazy("Description"), "description", look="words"),
    ),
    "-time",
    {
        "when": ("at",),
        "what": ("kind", "cause"),
        "onu": ("onu__serial", "onu__mac"),
        "olt": ("olt__name",),
        "place": ("olt__name", "pon_port__frame", "pon_port__slot", "pon_port__port", "onu_number"),
        "description": ("onu__description",),
    },
    time_column="at",
)


@require_safe
@for_users
def events_page(request: HttpRequest) -> HttpResponseBase:
    scope = scope_of(request.user)
    form = EventFilter(request.GET, scope)
    events = form.narrow(scope.narrow(all_events()))
    if is_export(request):
        return export_table(request, EVENT_TABLE, in_batches(events, event_rows))
    # Searched by name, narrowed to a kind or sorted otherwise, each event is listed.
    is_folded = not form.chosen.keys() & {"q", "kind"} and SORT not in request.GET
    folds = _load_folds(request, form) if is_folded else EventFolds([], [])
    folded = fold_steps(fold_outages(events, folds.outages), folds.steps)
    context = {
        "here": "events",
        "form": form,
        **load_table(request, EVENT_TABLE, folded, lambda found: _lines_of(found, folds, request.GET)),
    }
    return render_part_or_page(request, "events/list.html", "events/events.html", context)


class EventFolds(NamedTuple):
    """What is one line each on a page of events."""

    outages: list[Outage]
    steps: list[LightFinding]


def _load_folds(request: HttpRequest, form: EventFilter) -> EventFolds:
    """Load what a page of events may fold; three queries."""
    scope, cursor, after = form.scope, cursor_of(request), form.chosen.get("after")
    outages = with_names(form.narrow_outages(scope.narrow(Outage.objects.all())))
    findings = form.narrow_findings(scope.narrow(LightFinding.objects.all(), "pon_port__olt"))
    return EventFolds(
        load_folds(outages, cursor, ROWS_PER_PAGE, after=after),
        load_step_folds(findings, cursor, ROWS_PER_PAGE, after=after),
    )


def _lines_of(events: Sequence[OnuEvent], folds: EventFolds, asked: QueryDict) -> list[EventLine]:
    """Shape the lines of a page; two queries if an outage of it is open."""
    outages = {first_event_of(outage): outage for outage in folds.outages}
    lines: list[EventLine] = []
    for line in event_lines(events, folds.steps):
        outage = outages.get(line.id)
        if outage is None:
            lines.append(line)
            continue
        is_open = asked.get(OPEN) == str(outage.id)
        lines.append(_fold(line, outage, asked, is_open=is_open))
        if is_open:
            lines += event_rows(load_events_of(outage.id, OPENED_LINES))
    return lines


def _fold(line: EventLine, outage: Outage, asked: QueryDict, *, is_open: bool) -> FoldedOutage:
    query = asked.copy()
    query.pop(OPEN, None)
    if not is_open:
        query[OPEN] = str(outage.id)
    words = ngettext("Outage of %(number)s ONU: %(cause)s", "Outage of %(number)s ONUs: %(cause)s", outage.affected)
    values = {each.name: getattr(line, each.name) for each in fields(line)}
    values |= {
        "look": "up" if outage.ended_at else "down",
        "what": words % {"number": outage.affected, "cause": outage.get_cause_display()},
        "place": outage.place,
        "description": "",
    }
    address = f"{reverse('events')}?{query.urlencode()}#fold-{outage.id}"
    return FoldedOutage(**values, outage=outage, is_open=is_open, address=address)
