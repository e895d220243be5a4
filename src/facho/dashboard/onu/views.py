"""The list of ONUs, and the page of one: its state, what to do, its values with their limits, in refreshing parts."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from facho.accounts.audit import Action, changed_words, record
from facho.accounts.scope import scope_of
from facho.dashboard.light.views import describe_normal, load_onu_findings
from facho.dashboard.onu.list import ONU_TABLE, OnuFilterForm, rows_of
from facho.dashboard.onu.names import EventLine, code_of, event_rows, since_of
from facho.dashboard.onu.plot import csv_of, load_curves, load_plot, question_of
from facho.dashboard.reports.views import load_onu_months
from facho.dashboard.shared.import_page import ImportPage
from facho.dashboard.shared.light import STRONGEST_CDBM, WEAKEST_CDBM
from facho.dashboard.shared.outages import with_names
from facho.dashboard.shared.page import (
    PagePart,
    for_operators,
    for_users,
    is_part,
    load_parts,
    may_operate,
    must_operate,
    part_called,
    render_part_or_page,
)
from facho.dashboard.shared.plot_range import MAX_COMPARED, PlotRange, compared_of, lead_on, range_of
from facho.dashboard.shared.table import MAX_QUERY_LETTERS, posted_ids, table_context
from facho.dashboard.traps.views import load_said
from facho.executions.onu_reads import NotThere, TooManyReads, request_read_for
from facho.infrastructure.spreadsheet import FILE_TYPES
from facho.onus import customers, raw_values
from facho.onus.events import all_events, load_page
from facho.onus.models import Onu, OnuCustomer, OnuData, OnuReading, Outage, PonPort
from facho.onus.search import MANY, shown_onus
from facho.onus.shown_state import PortCounts, last_known_state, load_port_counts, shown_state
from facho.onus.words import DownCauses, OutageScopes, ShownState
from facho.plant.boxes import put_back, put_on_box, visible_boxes
from facho.plant.days import load_normal
from facho.snmp_jobs.store import load_named_reads, name_read
from facho.zabbix_pollers.run_now import describe_read, describe_refusal, load_progress

_LOST_POWER = gettext_lazy("It reported a power failure: ask the customer before sending a crew.")
_LOST_LIGHT = gettext_lazy("It lost its signal: check fibre, connectors and bends.")
_NOT_ALLOWED = gettext_lazy("The OLT rejects it: check its registration.")
HINTS: Mapping[str, Promise] = MappingProxyType(
    {
        DownCauses.DYING_GASP: _LOST_POWER,
        DownCauses.POWER_OFF: _LOST_POWER,
        DownCauses.LOS: _LOST_LIGHT,
        DownCauses.LOF: _LOST_LIGHT,
        DownCauses.SIGNAL_FAIL: _LOST_LIGHT,
        DownCauses.LOSS_OF_ACK: _LOST_LIGHT,
        DownCauses.LOSS_OF_PLOAM: _LOST_LIGHT,
        DownCauses.LOSS_OF_KEY: _NOT_ALLOWED,
        DownCauses.AUTH_FAILED: _NOT_ALLOWED,
        DownCauses.DEACTIVATED: gettext_lazy("It was deactivated on the OLT."),
        DownCauses.RESET: gettext_lazy("It restarted."),
        DownCauses.ROGUE: gettext_lazy("It transmits outside its time slot and disturbs the whole port."),
    }
)
# From this share of the others on, the port is the fault and not the customer.
MANY_OUT = 0.3
# The receiver of class B+ optics at the OLT; the ONU's own is judged as in every list.
OLT_WEAKEST_DBM, OLT_STRONGEST_DBM = -28.0, -8.0
# Name of the value, what it is called, its unit and its decimals; the first two show a fault of the fibre.
_FIGURES = (
    ("rx_power_dbm", gettext_lazy("The ONU receives"), "dBm", 2),
    ("olt_rx_power_dbm", gettext_lazy("The OLT receives"), "dBm", 2),
    ("tx_power_dbm", gettext_lazy("The ONU sends"), "dBm", 2),
    ("distance_m", gettext_lazy("Distance"), "m", 0),
    ("temperature_celsius", gettext_lazy("Temperature"), "°C", 1),
    ("voltage_v", gettext_lazy("Voltage"), "V", 2),
    ("bias_ma", gettext_lazy("Laser bias"), "mA", 1),
)


def tell_neighbours(state: ShownState, port: PortCounts | None) -> str:
    """Distinguish a single fault from a fibre cut by the port's other ONUs; empty unless this ONU is down."""
    if port is None:
        return _("This OLT does not report ports, so it is unknown which ONUs share its fibre.")
    if state is not ShownState.OFFLINE:
        return ""
    others, others_out = port.total - 1, port.offline - 1
    if others <= 0:
        return _("It is the only ONU on its port, so there is nothing to compare with.")
    if others_out <= 0:
        return _("All other ONUs of the port are online: the fault is between the splitter and this customer.")
    if others_out / others >= MANY_OUT:
        return _("Many ONUs of the port are down: check the port and its fibre first.")
    return _("Most other ONUs of the port are online: probably single customer faults.")


# The good range in the displayed unit.
LIMITS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "rx_power_dbm": (WEAKEST_CDBM / 100, STRONGEST_CDBM / 100),
        "olt_rx_power_dbm": (OLT_WEAKEST_DBM, OLT_STRONGEST_DBM),
        # Modules for homes are rated from 0 to 70 °C, and for 3.3 V.
        "temperature_celsius": (0, 70),
        "voltage_v": (3.0, 3.6),
    }
)
_LIGHT_WORDS = {
    "good": pgettext_lazy("light", "good"),
    "low": gettext_lazy("weak"),
    "high": gettext_lazy("too strong"),
}
_VALUE_WORDS = {
    "good": pgettext_lazy("value", "normal"),
    "low": pgettext_lazy("value", "too low"),
    "high": pgettext_lazy("value", "too high"),
}


def figures_of(reading: OnuReading | None, *, are_old: bool) -> list[dict[str, Any]]:
    """Format all values ever read; old ones are not judged."""
    figures = []
    for key, name, unit, decimals in _FIGURES if reading else ():
        value = getattr(reading, key)
        if value is None:
            continue
        shown = number_format(value, decimal_pos=decimals, force_grouping=True)
        figure = {"key": key, "name": name, "value": shown, "unit": unit}
        if key in LIMITS and not are_old:
            lowest, highest = LIMITS[key]
            verdict = "low" if value < lowest else "high" if value > highest else "good"
            words = _LIGHT_WORDS if unit == "dBm" else _VALUE_WORDS
            numbers = {"lowest": _short(lowest), "highest": _short(highest), "unit": unit}
            limits = _("good from %(lowest)s to %(highest)s %(unit)s") % numbers
            figure |= {"verdict": verdict, "verdict_words": words[verdict], "limits": limits}
        figures.append(figure)
    return figures


def _short(value: float) -> str:
    return number_format(value, decimal_pos=0 if value == int(value) else 1)


def load_sheet(onu: Onu) -> dict[str, Any]:
    """Judge a loaded ONU; two queries. Any text may come from the device."""
    reading: OnuReading | None = getattr(onu, "reading", None)
    state = shown_state(onu)
    cause = reading.last_down_cause if reading else ""
    # None if the OLT does not report the port: its neighbours are unknown.
    port = load_port_counts([onu.pon_port_id])[onu.pon_port_id] if onu.pon_port.is_known else None
    # The open outage of its port, card or OLT, the largest first.
    now_out = Outage.objects.filter(outages_of_place(onu.pon_port), ended_at__isnull=True).order_by("-affected", "id")
    # The stored values were read before it went down.
    is_old = state is not ShownState.ONLINE
    return {
        "state": state,
        "since": since_of(onu, state),
        "last_known": str(last_known_state(onu).label),
        "cause": str(DownCauses(cause).label) if cause else "",
        "hint": str(HINTS.get(cause, "")) if state is ShownState.OFFLINE else "",
        "is_flapping": bool(reading and reading.is_flapping),
        "figures": figures_of(reading, are_old=is_old),
        "is_old_light": is_old,
        "port": port,
        "neighbours": tell_neighbours(state, port),
        "outage": with_names(now_out).first(),
    }


def load_onu_events(onu_id: int, count: int) -> list[EventLine]:
    """Load the latest events of an ONU; one query."""
    return event_rows(load_page(all_events().filter(onu_id=onu_id), None, count).rows)


def load_onu_outages(onu: Onu, count: int) -> list[Outage]:
    """Load the latest outages of its port, card and OLT since the ONU was first seen."""
    since = Q(started_at__gte=onu.first_seen_at) | Q(ended_at__isnull=True)
    past = with_names(Outage.objects.filter(outages_of_place(onu.pon_port), since))
    return list(past.order_by("-started_at", "-id")[:count])


def load_raw_values(onu: Onu) -> list[dict[str, Any]]:
    """Load the raw values of the last read with the names of their columns; two queries."""
    reads = load_named_reads(onu.olt.vendor)
    values = raw_values.load_raw_values(onu.id, OnuData.objects.filter(olt_id=onu.olt_id))
    return [{"value": each, "name": name_read(each.oid, reads).name} for each in values]


def outages_of_place(port: PonPort) -> Q:
    """Match the outages of a port, of its card and of its OLT."""
    of_card = Q(scope=OutageScopes.CARD, frame=port.frame, slot=port.slot)
    of_port = Q(scope=OutageScopes.PON, frame=port.frame, slot=port.slot, port=port.port)
    return Q(olt_id=port.olt_id) & (of_port | of_card | Q(scope=OutageScopes.OLT))


ONUS_PER_PAGE = 50
UNDO = "tags_undo"
BOXES_UNDO = "boxes_undo"
MAX_TAG_LETTERS = 60
# A page of them; each is an operation on its OLT.
MOST_READS = 50
EVENT_LINES = 20
OUTAGE_LINES = 6
FINDING_LINES = 6
# What a database holds as an id.
MAX_ID_DIGITS = 19
# Marked in a plot; more in one period could not be told apart.
MARKED_EVENTS = 300
# What was read then is not new any more.
FORGOTTEN_AFTER = timedelta(minutes=10)
TEMPLATE = "onu/reading.html"


@require_safe
@for_users
def onus(request: HttpRequest) -> HttpResponse:
    now, choice = timezone.now(), ONU_TABLE.choose(request.GET)
    form = OnuFilterForm(request.GET, scope_of(request.user))
    # It is counted and sliced, which is all that a paginator does.
    found: Any = form.find(choice.sort)
    page: Page[Onu] = Paginator(found, ONUS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "here": "onus",
        "now": now,
        "form": form,
        "page": page,
        "table": ONU_TABLE.draw(choice, rows_of(page), now, is_small=found.is_small),
        "is_small": found.is_small,
        "many": MANY,
        "choice": choice,
        "page_query": choice.with_page(),
        "refresh_query": f"{choice.with_page()}page={page.number}",
        "export_query": form.export_query(),
        **table_context(ONU_TABLE, choice),
    }
    tools = {"may_operate": may_operate(request), "most_reads": MOST_READS, "undo": _undo_words(request)}
    return render_part_or_page(request, "onu/list.html", "onu/onus.html", context | tools)


@require_POST
@for_users
def onus_act(request: HttpRequest) -> HttpResponse:
    """Tag, read or save the selected ONUs, or all that a list finds; bounded, and only in scope."""
    act, query = request.POST.get("act", ""), QueryDict(request.POST.get("query", "")[:MAX_QUERY_LETTERS])
    back = f"{reverse('onus')}?{query.urlencode()}"
    if act in FILE_TYPES:
        return _save_selected(request, act, query, back)
    must_operate(request)
    now = timezone.now()
    if act == "undo":
        undo_last(request, now)
        return redirect(back)
    onu_ids = _selected(request, query)
    if len(onu_ids) > (MOST_READS if act == "read" else MANY):
        most = MOST_READS if act == "read" else MANY
        messages.error(request, _("Nothing was done: select at most %s ONUs.") % most)
    elif not onu_ids:
        messages.error(request, _("Nothing was done: no ONU is selected."))
    elif act == "read":
        _read_selected(request, onu_ids, now)
    elif act in ("tag", "untag"):
        _tag_selected(request, onu_ids, act, now)
    elif act in ("box", "unbox"):
        put_selected_on_box(request, onu_ids, act)
    return redirect(back)


def _selected(request: HttpRequest, query: QueryDict) -> list[int]:
    """Return the ids of the selected ONUs in scope; up to MANY + 1 when it is all that the list finds."""
    scope = scope_of(request.user)
    if request.POST.get("all"):
        return OnuFilterForm(query, scope).find().load_ids()
    return list(
        scope.narrow(Onu.objects.filter(pk__in=posted_ids(request))).order_by("pk").values_list("pk", flat=True)
    )


def _save_selected(request: HttpRequest, kind: str, query: QueryDict, back: str) -> HttpResponse:
    exported = OnuFilterForm(query, scope_of(request.user)).export_query()
    if not request.POST.get("all"):
        ids = ",".join(map(str, posted_ids(request)))
        exported = urlencode({"ids": ids}) if ids else ""
    if not exported:
        messages.error(request, _("Nothing was done: no ONU is selected."))
        return redirect(back)
    return redirect(f"{reverse('onu-export')}?format={kind}&{exported}")


def _tag_selected(request: HttpRequest, onu_ids: list[int], act: str, now: datetime) -> None:
    tag = customers.tidy_tags(request.POST.get("tag", "").replace(",", " "))[:MAX_TAG_LETTERS]
    if not tag:
        messages.error(request, _("Nothing was done: enter the tag."))
        return
    changed = customers.change_tags(onu_ids, who=request.user, now=now, **{"add" if act == "tag" else "remove": tag})
    if changed.full:
        messages.error(request, _("%s ONUs have no room for another tag.") % changed.full)
    request.session.pop(BOXES_UNDO, None)
    request.session[UNDO] = {"tag": tag, "was": act, "ids": changed.onu_ids}


def put_selected_on_box(request: HttpRequest, onu_ids: list[int], act: str) -> None:
    """Put ONUs on the box that is named, or take them off theirs."""
    name = " ".join(request.POST.get("box", "").split())
    box = visible_boxes(scope_of(request.user)).filter(name=name).first() if act == "box" and name else None
    if act == "box" and box is None:
        sentence = _("Nothing was done: there is no box “%s”.") % name if name else _("Nothing was done: name the box.")
        messages.error(request, sentence)
        return
    moved = put_on_box(onu_ids, box, who=request.user)
    if moved.elsewhere:
        text = ngettext("%s ONU is on another PON port.", "%s ONUs are on another PON port.", moved.elsewhere)
        messages.error(request, text % moved.elsewhere)
    request.session.pop(UNDO, None)
    request.session[BOXES_UNDO] = {"box": box.name if box else "", "before": moved.before}


def undo_last(request: HttpRequest, now: datetime) -> None:
    """Take back the last change of tags or boxes, on those ONUs of it that are still in scope."""
    if boxes := request.session.pop(BOXES_UNDO, None):
        before = {onu_id: (onu_id, box_id, source) for onu_id, box_id, source in boxes["before"]}
        shown = scope_of(request.user).narrow(Onu.objects.filter(pk__in=before)).values_list("pk", flat=True)
        count = put_back([before[onu_id] for onu_id in shown], who=request.user)
        messages.success(request, _("Undone on %s ONUs.") % count)
        return
    last = request.session.pop(UNDO, None)
    if last:
        ids = scope_of(request.user).narrow(Onu.objects.filter(pk__in=last["ids"])).values_list("pk", flat=True)
        back = {"remove" if last["was"] == "tag" else "add": last["tag"]}
        changed = customers.change_tags(list(ids), who=request.user, now=now, **back)
        messages.success(request, _("Undone on %s ONUs.") % len(changed.onu_ids))


def _undo_words(request: HttpRequest) -> str:
    if boxes := request.session.get(BOXES_UNDO):
        numbers = {"n": len(boxes["before"]), "box": boxes["box"]}
        if not boxes["box"]:
            return (
                ngettext("%(n)s ONU removed from its box.", "%(n)s ONUs removed from their boxes.", numbers["n"])
                % numbers
            )
        return ngettext("%(n)s ONU assigned to %(box)s.", "%(n)s ONUs assigned to %(box)s.", numbers["n"]) % numbers
    last = request.session.get(UNDO)
    if not last:
        return ""
    numbers = {"tag": last["tag"], "number": len(last["ids"])}
    if last["was"] == "tag":
        return _("Tag “%(tag)s” added to %(number)s ONUs.") % numbers
    return _("Tag “%(tag)s” removed from %(number)s ONUs.") % numbers


def _read_selected(request: HttpRequest, onu_ids: list[int], now: datetime) -> None:
    asked, refused = 0, 0
    for onu in Onu.objects.filter(pk__in=onu_ids).select_related("pon_port"):
        try:
            request_read_for(request.user, onu, now=now)
            asked += 1
        except (NotThere, TooManyReads):
            refused += 1
    numbers = {"asked": asked, "refused": refused}
    messages.success(
        request, _("%(asked)s ONUs are read as soon as their OLTs are free, %(refused)s refused.") % numbers
    )


@require_safe
@for_users
def onu_page(request: HttpRequest, onu_id: int) -> HttpResponse:
    onu, now = find_onu(request, onu_id), timezone.now()
    shown, _compared = find_compared(request, range_of(request.GET, now), onu.id)
    if (shared := lead_on(request, shown)) is not None:
        return shared
    context = load_parts(PARTS, request, onu, now) | reading_context(request, onu)
    return render(request, "onu/onu.html", {"here": "onus", "now": now, **context})


@require_safe
@for_users
def onu_part(request: HttpRequest, onu_id: int, name: str) -> HttpResponse:
    part, onu, now = part_called(name, PARTS), find_onu(request, onu_id), timezone.now()
    context = {"now": now, "onu": onu, "parts": PARTS, **part.load(request, onu, now)}
    return render(request, part.template, context)


@require_safe
@for_users
def onu_csv(request: HttpRequest, onu_id: int) -> HttpResponse:
    """Answer with the values of the plot that the same query shows."""
    onu = find_onu(request, onu_id)
    shown, compared = find_compared(request, range_of(request.GET, timezone.now()), onu.id)
    curves, state = load_curves(onu, compared, question_of(shown))
    return csv_of(f"onu-{onu.id}", [*curves, state])


def find_compared(request: HttpRequest, shown: PlotRange, onu_id: int | None) -> tuple[PlotRange, list[Onu]]:
    """Find the ONUs in the user's scope that the address compares with; one query if there are any."""
    words = compared_of(request.GET.getlist("with"))
    if not words:
        return shown, []
    ids = [int(word) for word in words if word.isdecimal() and len(word) < MAX_ID_DIGITS]
    named = Q(id__in=ids) | Q(serial__in=[word.upper() for word in words])
    found = scope_of(request.user).narrow(shown_onus()).filter(named).order_by("id")
    compared = [onu for onu in found[: MAX_COMPARED + 1] if onu.id != onu_id][:MAX_COMPARED]
    known = {word for onu in compared for word in (str(onu.id), onu.serial.upper())} | {str(onu_id)}
    missing = [word for word in words if word.upper() not in known]
    problem = _("No such ONU: %(text)s") % {"text": ", ".join(missing)} if missing else ""
    return shown.with_compared((onu.id for onu in compared), problem), compared


def marked_events(which: Q, shown: PlotRange) -> list[EventLine]:
    """Load the latest events of a period, to be marked in its plot; one query."""
    inside = all_events().filter(which, at__gte=shown.start, at__lte=shown.end)
    return event_rows(inside.order_by("-at", "-id")[:MARKED_EVENTS])


def _light(request: HttpRequest, onu: Onu, now: datetime) -> dict[str, Any]:
    shown, compared = find_compared(request, range_of(request.GET, now), onu.id)
    normal = load_normal(onu.id, onu.pon_port_id)
    usual = (normal.light.dbm - normal.light.range_db, normal.light.dbm + normal.light.range_db) if normal else None
    plot = load_plot(onu, shown, compared, marked_events(Q(onu_id=onu.id), shown), usual)
    return {
        "plot": plot,
        "normal": describe_normal(onu, normal),
        "normal_days": normal.medians if normal else [],
        "compared_words": request.GET.get("with", "") if shown.problem else " ".join(map(code_of, compared)),
        "part_url": reverse("onu-part", args=(onu.id, "light")),
        "csv_url": reverse("onu-csv", args=(onu.id,)),
    }


def _past(request: HttpRequest, onu: Onu, now: datetime) -> dict[str, Any]:
    return {
        "events": load_onu_events(onu.id, EVENT_LINES),
        "outages": load_onu_outages(onu, OUTAGE_LINES),
        "traps": load_said({"onu_id": onu.id}, EVENT_LINES),
        "findings": load_onu_findings(onu, now, FINDING_LINES),
        "months": load_onu_months(onu.id, now),
    }


PARTS = {
    "state": PagePart("onu/state.html", 2, lambda request, onu, now: {"sheet": load_sheet(onu)}),
    "light": PagePart("onu/light.html", 30, _light),
    "past": PagePart("onu/past.html", 10, _past),
    "raw": PagePart("onu/raw.html", 30, lambda request, onu, now: {"raw_values": load_raw_values(onu)}),
}


@require_POST
@for_operators
def onu_read(request: HttpRequest, onu_id: int) -> HttpResponse:
    onu, refused = find_onu(request, onu_id), ""
    try:
        request_read_for(request.user, onu, now=timezone.now())
    except (NotThere, TooManyReads) as error:
        refused = describe_refusal(error)
    if is_part(request):
        return render(request, TEMPLATE, {**reading_context(request, onu), "refused": refused})
    return redirect("onu", onu_id=onu.id)


@require_safe
@for_users
def onu_reading(request: HttpRequest, onu_id: int) -> HttpResponse:
    return render(request, TEMPLATE, reading_context(request, find_onu(request, onu_id)))


@require_http_methods(["GET", "HEAD", "POST"])
@for_operators
def onu_customer(request: HttpRequest, onu_id: int) -> HttpResponse:
    onu = find_onu(request, onu_id)
    stored: OnuCustomer | None = getattr(onu, "customer", None)
    before = {name: getattr(stored, name, "") for name in customers.FIELDS}
    form = customers.CustomerForm(request.POST or None, instance=stored or OnuCustomer(onu=onu))
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            saved = form.save()
            words = changed_words(before, {name: form.cleaned_data[name] for name in customers.FIELDS})
            record(request.user, saved, Action.CHANGED if stored else Action.ADDED, words)
        messages.success(request, _("Customer saved."))
        return redirect("onu", onu_id=onu.id)
    return render(request, "onu/customer.html", {"here": "onus", "onu": onu, "form": form})


def import_customers(content: bytes, **wishes: Any) -> customers.Imported:
    return customers.save_customers(customers.read_file(content), **wishes)


IMPORT = ImportPage(
    pending="customer_import",
    template="settings/customers.html",
    address="settings-customers",
    address_after="settings-customers",
    file_label=gettext_lazy("CSV file or Excel workbook"),
    accepts=".csv,.txt,.tsv,.xlsx",
    example="serial,label,phone\nHWTC12345678,Ana Ríos,555 1234",
    too_large=gettext_lazy("The file is too large: import it in parts, or with `facho onu import`."),
    changed_meanwhile=gettext_lazy(
        "Nothing was imported: some customers changed meanwhile. Check the changes below again."
    ),
    saved=gettext_lazy("%(written)s customers written, %(unchanged)s unchanged, %(left_out)s left out"),
    plan=customers.plan_file,
    save=import_customers,
    context={
        "here": "settings",
        "place": "customers",
        "columns": [name for name in customers.FIELDS if name not in customers.COORDINATES],
    },
)


@require_http_methods(["GET", "HEAD", "POST"])
@for_operators
def customers_page(request: HttpRequest) -> HttpResponse:
    """Import customers from a file; for operators, within their OLTs."""
    return IMPORT.answer(request)


def find_onu(request: HttpRequest, onu_id: int) -> Onu:
    """Return an ONU in the user's scope with everything shown of it, else raise 404; one query."""
    return get_object_or_404(scope_of(request.user).narrow(shown_onus().select_related("attachment__box")), id=onu_id)


def reading_context(request: HttpRequest, onu: Onu) -> dict[str, Any]:
    now = timezone.now()
    progress = load_progress(onu.id, olt_id=onu.olt_id, now=now)
    if progress and not progress.is_open and now - (progress.finished_at or progress.requested_at) > FORGOTTEN_AFTER:
        progress = None
    return {
        "onu": onu,
        "may_read": may_operate(request),
        "progress": progress,
        "progress_words": describe_read(progress) if progress else "",
    }
