"""The list of what happened to ONUs, the latest first."""

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from facho.accounts.scope import OltScope, scope_of
from facho.dashboard.onu.names import event_rows
from facho.dashboard.shared.page import ROWS_PER_PAGE, TimelineFilter, cursor_of, for_users, is_part
from facho.onus.events import all_events, load_page
from facho.onus.models import Onu, OnuEvent
from facho.onus.search import MIN_LETTERS, long_enough, of_text
from facho.onus.words import EventKinds


class EventFilter(TimelineFilter):
    q = forms.CharField(
        label=_("ONU"),
        required=False,
        min_length=MIN_LETTERS,
        max_length=100,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("serial, description or customer")}),
    )
    kind = forms.ChoiceField(
        label=_("What"), required=False, choices=[("", pgettext_lazy("events", "all")), *EventKinds.choices]
    )
    field_order = ("q", "olt", "kind", "after", "before")

    def clean_q(self) -> str:
        """Require the same minimum length as every other search."""
        text: str = self.cleaned_data["q"]
        try:
            return long_enough(text) if text else ""
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def narrow(self, events: QuerySet[OnuEvent], scope: OltScope) -> QuerySet[OnuEvent]:
        """Apply the form; a text search costs three queries."""
        values = self.chosen
        if text := values.get("q"):
            events = events.filter(onu__in=scope.narrow(Onu.objects.filter(of_text(text))).values("pk"))
        if olt := values.get("olt"):
            events = events.filter(olt_id=int(olt))
        given = {"kind": "kind", "after": "at__gte", "before": "at__lt"}
        return events.filter(**{lookup: values[name] for name, lookup in given.items() if name in values})


@require_safe
@vary_on_headers("HX-Request")
@for_users
def events_page(request: HttpRequest) -> HttpResponse:
    scope, cursor = scope_of(request.user), cursor_of(request)
    form = EventFilter(request.GET, scope)
    page = load_page(form.narrow(scope.narrow(all_events()), scope), cursor, ROWS_PER_PAGE)
    context = {
        "here": "events",
        "now": timezone.now(),
        "form": form,
        "is_first": cursor is None,
        "page": page,
        "rows": list(zip(page.events, event_rows(page.events), strict=True)),
    }
    return render(request, "events/list.html" if is_part(request) else "events/events.html", context)
