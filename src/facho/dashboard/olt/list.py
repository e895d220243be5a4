"""The list of OLTs: narrowed, sorted, as a file, and paused several at a time."""

from collections import Counter
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_POST, require_safe

from facho.accounts.audit import Action, record
from facho.accounts.scope import OltScope, scope_of
from facho.dashboard.settings.olts import groups_in
from facho.dashboard.shared import olt_rows
from facho.dashboard.shared.page import (
    ListFilter,
    choice_field,
    for_operators,
    for_users,
    may_operate,
    offer,
    render_part_or_page,
    search_field,
)
from facho.dashboard.shared.table import (
    MAX_QUERY_LETTERS,
    PAGE,
    ListTable,
    TableColumn,
    export_table,
    is_export,
    posted_ids,
    table_context,
    time_value,
)
from facho.dashboard.templatetags.facho_words import ago, due
from facho.hosts.models import Olt, Reachability
from facho.hosts.store import MAX_PAUSE_MINUTES, active_pauses, end_pause, pause

OLTS_PER_PAGE = 50
UNDO = "pauses_undo"
DISABLED, PAUSED = "disabled", "paused"


class OltFilterForm(ListFilter):
    q = search_field(gettext_lazy("Search"), gettext_lazy("name or address"))
    state = choice_field(
        gettext_lazy("State"),
        [*Reachability.choices, (PAUSED, gettext_lazy("paused")), (DISABLED, gettext_lazy("disabled"))],
        pgettext_lazy("OLTs", "all"),
    )
    group = choice_field(gettext_lazy("Group"))

    def __init__(self, data: Any, scope: OltScope) -> None:
        super().__init__(data, scope)
        offer(self, "group", [("", _("all")), *((str(group.pk), group.name) for group in groups_in(scope))])

    def narrow(self, olts: QuerySet[Olt], now: datetime) -> QuerySet[Olt]:
        values = self.chosen
        if text := values.get("q"):
            olts = olts.filter(Q(name__has=text) | Q(host__has=text) | Q(address__startswith=text))
        if group := values.get("group"):
            olts = olts.filter(group_id=int(group))
        match values.get("state"):
            case None:
                return olts
            case "disabled":
                return olts.filter(enabled=False)
            case "paused":
                held = active_pauses(now).values("olt_id")
                return olts.filter(enabled=True, pk__in=held.filter(olt__isnull=False))
            case state:
                return olts.filter(enabled=True, reachability=state)


def _draw_name(line: olt_rows.OltLine, now: datetime) -> SafeString:
    address = reverse("olt", args=[line.id])
    return format_html(
        '<a id="olt-{}" href="{}">{}</a> <span class="muted mono">{}</span>', line.id, address, line.name, line.address
    )


def _draw_state(line: olt_rows.OltLine, now: datetime) -> SafeString:
    words = _("disabled") if line.state == DISABLED else line.state_words
    state = format_html('<span class="mark {}">{}</span>', line.state, words)
    if line.paused_until:
        state = format_html('{} <span class="tag">{}</span>', state, _("paused"))
    return state


def _draw_onus(line: olt_rows.OltLine, now: datetime) -> SafeString | str:
    if not line.onus.total:
        return ""
    return format_html('{}<span class="muted">/{}</span>', line.onus.online, line.onus.total)


def _draw_next(line: olt_rows.OltLine, now: datetime) -> SafeString | str:
    if line.paused_until:
        return format_html("{} {}", _("pause ends"), due(line.paused_until, now))
    return due(line.next_run_at, now) if line.next_run_at else ""


OLT_TABLE = ListTable(
    "olts",
    (
        TableColumn("name", gettext_lazy("Name"), "name", _draw_name, look="short"),
        TableColumn("state", gettext_lazy("State"), "state", _draw_state),
        TableColumn("model", gettext_lazy("Model"), "kind", sort="vendor"),
        TableColumn("group", gettext_lazy("Group"), "group"),
        TableColumn("onus", gettext_lazy("ONUs online"), "onus.online", _draw_onus, sort="", look="right short"),
        TableColumn("offline", gettext_lazy("ONUs offline"), "onus.offline", sort="", look="right short"),
        TableColumn(
            "answered",
            gettext_lazy("Last answer"),
            lambda line: time_value(line.last_answer_at),
            lambda line, now: ago(line.last_answer_at, now) if line.last_answer_at else "",
            look="short",
        ),
        TableColumn(
            "next",
            gettext_lazy("Next run"),
            lambda line: time_value(line.next_run_at),
            _draw_next,
            sort="",
            look="short",
        ),
        TableColumn("error", gettext_lazy("Last error"), "error", sort="", look="words"),
        TableColumn("address", gettext_lazy("Address"), "address", look="mono", is_usual=False),
    ),
    "trouble",
    {
        "name": ("name",),
        "state": ("enabled", "reachability", "name"),
        "vendor": ("model__brand__name", "model__name", "vendor", "name"),
        "group": ("group__name", "name"),
        "answered": (F("last_answer_at").asc(nulls_first=True), "name"),
        "address": ("address", "port"),
    },
)


@require_safe
@for_users
def olts_page(request: HttpRequest) -> HttpResponseBase:
    """List the OLTs in scope; those in trouble first, unless another order is chosen."""
    scope, now, choice = scope_of(request.user), timezone.now(), OLT_TABLE.choose(request.GET)
    form = OltFilterForm(request.GET, scope)
    olts = form.narrow(scope.narrow(olt_rows.ranked_olts(), ""), now)
    ordered = olts if choice.sort in ("trouble", "-trouble") else OLT_TABLE.sort(olts, choice)
    counts, paused, late = olt_rows.load_onu_counts(scope), olt_rows.load_paused(now), olt_rows.load_late_olts(now)
    if is_export(request):
        return export_table(request, OLT_TABLE, [olt_rows.load_olt_rows(list(ordered), counts, paused, late)])
    page = Paginator(ordered, OLTS_PER_PAGE).get_page(request.GET.get(PAGE))
    context = {
        "here": "olts",
        "now": now,
        "form": form,
        "page": page,
        "table": OLT_TABLE.draw(choice, olt_rows.load_olt_rows(page, counts, paused, late), now),
        "query": choice.with_page(),
        "choice": choice,
        "may_operate": may_operate(request),
        **table_context(OLT_TABLE, choice),
    }
    return render_part_or_page(request, "olt/olt_list.html", "olt/olts.html", {**context, "undo": _undo_words(request)})


@require_POST
@for_operators
def olts_act(request: HttpRequest) -> HttpResponse:
    """Pause the selected OLTs for a while, or undo that; only one's own, and those without a pause."""
    now, back = timezone.now(), QueryDict(request.POST.get("query", "")[:MAX_QUERY_LETTERS]).urlencode()
    act = request.POST.get("act", "")
    if act == "undo":
        _end_pauses(request, now)
    elif act == "pause":
        _pause_selected(request, now)
    return redirect(f"{reverse('olts')}?{back}")


def _pause_selected(request: HttpRequest, now: datetime) -> None:
    text = request.POST.get("minutes", "")
    minutes = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PAUSE_MINUTES)) else 0
    if not 1 <= minutes <= MAX_PAUSE_MINUTES:
        messages.error(request, _("Nothing was done: enter a number of minutes from 1 to %s.") % MAX_PAUSE_MINUTES)
        return
    olts = scope_of(request.user).narrow(Olt.objects.filter(pk__in=posted_ids(request)), "").only("name")
    held = set(active_pauses(now).filter(olt__in=olts).values_list("olt_id", flat=True))
    made = []
    with transaction.atomic():
        for olt in olts:
            if olt.pk not in held:
                made.append(pause(olt, minutes=minutes, note="", now=now))
                record(request.user, made[-1], Action.ADDED)
    if not made:
        messages.error(request, _("Nothing was done: no OLT without a pause is selected."))
    request.session[UNDO] = {"ids": [each.pk for each in made], "minutes": minutes}


def _end_pauses(request: HttpRequest, now: datetime) -> None:
    last = request.session.pop(UNDO, None) or {"ids": []}
    ended: Counter[bool] = Counter()
    held = scope_of(request.user).narrow(active_pauses(now).filter(pk__in=last["ids"])).select_related("olt")
    with transaction.atomic():
        for each in held.only("starts_at", "ends_at", "olt__name"):
            record(request.user, each, Action.CHANGED, gettext_lazy("ended"))
            ended[end_pause(each.pk, now=now)] += 1
    messages.success(request, _("Undone on %s OLTs.") % ended[True])


def _undo_words(request: HttpRequest) -> str:
    last = request.session.get(UNDO)
    if not last or not last["ids"]:
        return ""
    return _("%(number)s OLTs paused for %(minutes)s minutes.") % {
        "number": len(last["ids"]),
        "minutes": last["minutes"],
    }
