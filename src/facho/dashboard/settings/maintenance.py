"""Maintenance windows: silence the alerts of OLTs or pause their polling, now or later, for one OLT or many."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import BooleanField, Count, ExpressionWrapper, Min, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST
from django.views.decorators.vary import vary_on_headers

from facho.accounts.audit import Action, record_each
from facho.accounts.scope import OltScope, scope_of
from facho.dashboard.settings.olts import groups_in
from facho.dashboard.shared.page import for_operators, is_part, may_operate, moment_field, read_id
from facho.hosts.models import Olt, OltGroup, Pause
from facho.hosts.store import MAX_PAUSE_MINUTES, end_all, plan_pauses

SILENCE, PAUSE = "silence", "pause"
TONIGHT, HOUR, FOUR_HOURS, OTHER = "tonight", "1h", "4h", "other"
NIGHT_BEGINS, NIGHT_ENDS = time(22), time(6)
# More choices than this are not read; the search finds the others.
SHOWN_OLTS = 20
SHOWN_NAMES = 5
SHOWN_WINDOWS = 200
# What pauses that were planned together share.
_TOGETHER = ("starts_at", "ends_at", "note", "keeps_polling")
_IS_EVERYTHING = ExpressionWrapper(Q(olt__isnull=True), output_field=BooleanField())
_LENGTHS = {HOUR: timedelta(hours=1), FOUR_HOURS: timedelta(hours=4)}


def tonight(now: datetime) -> tuple[datetime, datetime]:
    """Return the night on the user's clock that comes, or what is left of the one that is."""
    local = timezone.localtime(now)
    morning = local.date() + timedelta(days=local.time() >= NIGHT_ENDS)
    ends_at = timezone.make_aware(datetime.combine(morning, NIGHT_ENDS))
    if local.time() < NIGHT_ENDS or local.time() >= NIGHT_BEGINS:
        return now, ends_at
    return timezone.make_aware(datetime.combine(local.date(), NIGHT_BEGINS)), ends_at


class WindowForm(forms.Form):
    """Where, what and when; the OLTs are those in the user's scope."""

    everything = forms.BooleanField(label=gettext_lazy("All OLTs, also those added later"), required=False)
    groups = forms.ModelMultipleChoiceField(
        OltGroup.objects.none(),
        label=gettext_lazy("Groups of OLTs"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    kind = forms.ChoiceField(
        label=gettext_lazy("What"),
        choices=[
            (SILENCE, gettext_lazy("Silence alerts: polling continues")),
            (PAUSE, gettext_lazy("Pause polling: nothing is read, and no alert begins")),
        ],
        initial=SILENCE,
        widget=forms.RadioSelect,
    )
    when = forms.ChoiceField(
        label=gettext_lazy("When"),
        choices=[
            (TONIGHT, gettext_lazy("Tonight, 22:00 to 06:00")),
            (HOUR, gettext_lazy("Now, for 1 hour")),
            (FOUR_HOURS, gettext_lazy("Now, for 4 hours")),
            (OTHER, gettext_lazy("At these times:")),
        ],
        initial=TONIGHT,
        widget=forms.RadioSelect,
    )
    starts_at = moment_field(gettext_lazy("From"), required=False)
    ends_at = moment_field(gettext_lazy("To"), required=False)
    note = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=200,
        widget=forms.TextInput({"placeholder": gettext_lazy("for example: fibre works in the north")}),
    )

    def __init__(self, data: Any, scope: OltScope, chosen: Sequence[int], now: datetime) -> None:
        super().__init__(data, auto_id="window-%s", label_suffix="")
        self.scope, self.chosen, self.now = scope, chosen, now
        groups = self.fields["groups"]
        if isinstance(groups, forms.ModelMultipleChoiceField):
            groups.queryset = groups_in(scope)
        if not groups_in(scope).exists():
            del self.fields["groups"]
        if not scope.is_everything:
            del self.fields["everything"]

    def clean(self) -> dict[str, Any]:
        """Find the OLTs and the times, and say which of them is missing."""
        values = super().clean() or {}
        values["olts"] = self._find_olts(values)
        if values["olts"] is not None and not values["olts"]:
            self.add_error(None, _("Choose at least one OLT, or a group."))
        span = self._span(values)
        if span is None:
            return values
        starts_at, ends_at = span
        if ends_at <= max(starts_at, self.now):
            self.add_error("ends_at", _("The end must be after the start and in the future."))
        elif ends_at - starts_at > timedelta(minutes=MAX_PAUSE_MINUTES):
            self.add_error("ends_at", _("A window lasts at most a year; for longer, disable the OLT."))
        return {**values, "span": span}

    def _find_olts(self, values: dict[str, Any]) -> list[Olt] | None:
        """None stands for all OLTs."""
        if values.get("everything"):
            return None
        chosen = Q(id__in=self.chosen) | Q(group__in=values.get("groups") or [])
        return list(self.scope.narrow(Olt.objects.only("name").order_by("name"), "").filter(chosen))

    def _span(self, values: dict[str, Any]) -> tuple[datetime, datetime] | None:
        when = values.get("when")
        if when == TONIGHT:
            return tonight(self.now)
        if when in _LENGTHS:
            return self.now, self.now + _LENGTHS[when]
        for name in ("starts_at", "ends_at"):
            if when == OTHER and not values.get(name) and name not in self.errors:
                self.add_error(name, _("Give this time, or choose one of the others."))
        if self.errors.keys() & {"starts_at", "ends_at", "when"}:
            return None
        return values["starts_at"], values["ends_at"]


def load_choices(scope: OltScope, chosen: Sequence[int], text: str) -> dict[str, Any]:
    """Load the OLTs that are ticked, some that match a search, and how many more there are; three queries."""
    olts = scope.narrow(Olt.objects.only("name").order_by("name"), "")
    others = olts.exclude(id__in=chosen)
    for word in text.split():
        others = others.filter(Q(name__icontains=word) | Q(host__icontains=word))
    found = list(others[:SHOWN_OLTS])
    more = others.count() - len(found) if len(found) == SHOWN_OLTS else 0
    return {"ticked": list(olts.filter(id__in=chosen)) if chosen else [], "found": found, "more": more}


def load_windows(scope: OltScope, now: datetime) -> list[dict[str, Any]]:
    """Load what holds or is to come, the next to end first: pauses that were planned together; two queries."""
    rows = seen_pauses(scope).filter(ends_at__gt=now).order_by()
    together = rows.annotate(is_everything=_IS_EVERYTHING).values(*_TOGETHER, "is_everything")
    windows = list(together.annotate(n=Count("id"), first=Min("id")).order_by("ends_at", "first")[:SHOWN_WINDOWS])
    numbered = rows.exclude(olt=None).annotate(
        number=Window(RowNumber(), partition_by=list(_TOGETHER), order_by=["olt__name"])
    )
    names: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for *key, name in numbered.filter(number__lte=SHOWN_NAMES).values_list(*_TOGETHER, "olt__name"):
        names[tuple(key)].append(name)
    lines = []
    for row in windows:
        named = sorted(names[tuple(row[name] for name in _TOGETHER)])
        is_everything = row["is_everything"]
        lines.append(
            {
                **row,
                "names": named,
                # How many OLTs are not named.
                "more": 0 if is_everything else row["n"] - len(named),
                "has_begun": row["starts_at"] <= now,
                "may_end": scope.is_everything or not is_everything,
            }
        )
    return lines


def seen_pauses(scope: OltScope) -> QuerySet[Pause]:
    """Select the pauses of the OLTs in scope, and those of everything."""
    rows = Pause.objects.all()
    return rows if scope.is_everything else rows.filter(scope.condition() | Q(olt__isnull=True))


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
@for_operators
def maintenance(request: HttpRequest) -> HttpResponse:
    scope, now = scope_of(request.user), timezone.now()
    given = request.POST if request.method == "POST" else request.GET
    chosen = [found for text in given.getlist("olts") or given.getlist("olt") if (found := read_id(text))]
    choices = load_choices(scope, chosen, given.get("find", "")[:100])
    if is_part(request):
        return render(request, "settings/_olt_choices.html", {"choices": choices, "find": given.get("find", "")})
    form = WindowForm(request.POST if request.method == "POST" else None, scope, chosen, now)
    if form.is_bound and form.is_valid():
        _plan(request, form)
        return redirect("settings-maintenance")
    context = {
        "place": "maintenance",
        "here": "settings",
        "now": now,
        "form": form,
        "choices": choices,
        "find": given.get("find", ""),
        "windows": load_windows(scope, now),
        "may_operate": may_operate(request),
    }
    return render(request, "settings/maintenance.html", context)


def _plan(request: HttpRequest, form: WindowForm) -> None:
    values = form.cleaned_data
    starts_at, ends_at = values["span"]
    keeps_polling = values["kind"] == SILENCE
    with transaction.atomic():
        made = plan_pauses(
            values["olts"], starts_at=starts_at, ends_at=ends_at, note=values["note"], keeps_polling=keeps_polling
        )
        record_each(request.user, [(each, Action.ADDED, values["note"]) for each in made])
    if values["olts"] is None:
        message = (
            _("Alerts of all OLTs will be silenced during that time.")
            if keeps_polling
            else _("No OLT will be polled during that time.")
        )
    elif keeps_polling:
        message = ngettext(
            "Alerts of %(n)s OLT will be silenced during that time.",
            "Alerts of %(n)s OLTs will be silenced during that time.",
            len(made),
        ) % {"n": len(made)}
    else:
        message = ngettext(
            "%(n)s OLT will not be polled during that time.",
            "%(n)s OLTs will not be polled during that time.",
            len(made),
        ) % {"n": len(made)}
    messages.success(request, message)


@require_POST
@for_operators
def maintenance_end(request: HttpRequest, pause_id: int) -> HttpResponse:
    scope, now = scope_of(request.user), timezone.now()
    one = get_object_or_404(seen_pauses(scope), id=pause_id)
    if one.olt_id is None and not scope.is_everything:
        raise Http404
    together = {name: getattr(one, name) for name in _TOGETHER}
    rows = scope.narrow(Pause.objects.filter(**together, olt__isnull=one.olt_id is None))
    with transaction.atomic():
        held = list(rows.filter(ends_at__gt=now).select_related("olt").defer("olt__community"))
        record_each(request.user, [(each, Action.CHANGED, _("ended")) for each in held])
        ended = end_all(rows.filter(ends_at__gt=now), now)
    message = _("The window has ended.") if ended else _("This window had ended already.")
    messages.success(request, message)
    return redirect("settings-maintenance")
