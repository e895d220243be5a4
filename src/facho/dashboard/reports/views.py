"""The report of a month: its numbers, one table at a time, the same as a file, and as PDF."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from typing import Any
from urllib.parse import urlencode, urlsplit

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_POST, require_safe

from facho.accounts.scope import OltScope, scope_of
from facho.alerts.links import load_public_address
from facho.dashboard.shared.page import (
    ROWS_PER_PAGE,
    ListFilter,
    asked_span,
    choice_field,
    coordinate,
    for_operators,
    for_users,
    may_operate,
    named_zones,
    offer,
    render_part_or_page,
)
from facho.dashboard.shared.plot_range import MAX_COMPARED
from facho.dashboard.shared.table import (
    PAGE,
    SORT,
    ListTable,
    TableChoice,
    TableColumn,
    export_table,
    in_batches,
    is_export,
    table_context,
    text_cell,
)
from facho.hosts.models import Olt
from facho.plant import report
from facho.plant import report_pdf as pdf
from facho.plant.models import OnuMonth, Zone
from facho.plant.months import ask_for_month, is_kept, zone
from facho.polling.domain.availability import Month

Row = report.ReportGroup | report.ReportOnu | report.ReportRepair
# Twenty steps of light fit a phone with their labels at full size.
_STEP_WIDTH = 17.0


@dataclass(frozen=True, slots=True)
class ReportTable:
    """One table of a report: what it is called, its rows in their usual order, and what no rows mean."""

    title: str | Promise
    load: Callable[[report.ReportQuestion], Sequence[Row]]
    empty: str | Promise


_NO_ONU = gettext_lazy("No ONU of this month is in your scope.")
REPORT_TABLES: Mapping[str, ReportTable] = {
    "olts": ReportTable(gettext_lazy("OLTs"), report.load_olts, _NO_ONU),
    "ports": ReportTable(gettext_lazy("PON ports"), report.load_ports, _NO_ONU),
    "zones": ReportTable(gettext_lazy("Zones"), report.load_zones, _NO_ONU),
    "downtime": ReportTable(
        gettext_lazy("Customers longest down"), report.load_longest_down, gettext_lazy("No customer was down.")
    ),
    "interruptions": ReportTable(
        gettext_lazy("Customers with most interruptions"),
        report.load_most_interrupted,
        gettext_lazy("No customer was interrupted."),
    ),
    "light": ReportTable(
        gettext_lazy("Customers with the weakest light"), report.load_weakest, gettext_lazy("No light was too weak.")
    ),
    "repairs": ReportTable(
        gettext_lazy("Repairs that helped"), report.load_repairs, gettext_lazy("No lasting improvement.")
    ),
}
# Every customer, a page at a time: never all of them in memory.
CUSTOMERS = "customers"
_CUSTOMERS_TITLE = gettext_lazy("All customers")
# By what all customers can be sorted, and the column of the database.
_ORDERS: Mapping[str, str] = {
    "down_seconds": "down_seconds",
    "unknown_seconds": "unknown_seconds",
    "planned_seconds": "planned_seconds",
    "interruptions": "interruptions",
    "longest_down_seconds": "longest_down_seconds",
    "light_dbm": "light_cdbm",
    "lowest_day_dbm": "lowest_day_cdbm",
    "weak_days": "weak_days",
}
# The table that each of the figures above is counted from, and its order.
_FIGURE_ROWS = (
    (CUSTOMERS, "-down_seconds"),
    (CUSTOMERS, ""),
    (CUSTOMERS, "-interruptions"),
    (CUSTOMERS, "interruptions"),
    (CUSTOMERS, "light_dbm"),
    ("repairs", ""),
)
# What each share of the time opens to: all customers in this order.
_SHARE_ORDERS = {
    "up": "down_seconds",
    "down": "-down_seconds",
    "unknown": "-unknown_seconds",
    "planned": "-planned_seconds",
}
# Months on the page of an ONU: this one and a year.
MONTHS_OF_ONU = 13


class ReportForm(ListFilter):
    """Month, table and OLT; what is not known is ignored."""

    month = forms.ChoiceField(label=gettext_lazy("Month"), required=False)
    by = forms.ChoiceField(label=gettext_lazy("Table"), required=False)
    olt = choice_field(gettext_lazy("OLT"))
    zone = choice_field(gettext_lazy("Zone"))

    def __init__(self, data: Any, scope: OltScope, months: Sequence[Month]) -> None:
        super().__init__(data, scope)
        firsts = [datetime(month.year, month.number, 1, tzinfo=UTC) for month in months]
        names = [date_format(first, "YEAR_MONTH_FORMAT") for first in firsts]
        tables = [(key, capfirst(str(each.title))) for key, each in REPORT_TABLES.items()]
        offer(self, "month", zip(map(str, months), names, strict=True))
        offer(self, "by", [*tables, (CUSTOMERS, _CUSTOMERS_TITLE)])
        offer(self, "zone", [("", _("all")), *named_zones(scope)])


def _figure(name: str, title: str | Promise, words: Callable[[Any], str], path: str = "") -> TableColumn:
    """A number at the right, by which the list can be sorted; one that is unknown has no words."""
    column = TableColumn(name, title, path or name, look="right short")

    def draw(row: Row, now: datetime) -> str:
        value = column.read(row)
        return "" if value is None else words(value)

    return replace(column, draw=draw)


def _count(number: int) -> str:
    return number_format(number, force_grouping=True) if number else ""


def _length(seconds: int) -> str:
    return pdf.duration(seconds) if seconds else ""


_TIMES = (
    _figure("availability", gettext_lazy("Availability"), pdf.percent, "times.availability"),
    _figure("down_seconds", pgettext_lazy("length", "Down"), _length, "times.down"),
    _figure("unknown_seconds", pgettext_lazy("length", "Unknown"), _length, "times.unknown"),
    _figure("planned_seconds", pgettext_lazy("length", "Planned"), _length, "times.planned"),
)
_LIGHT = _figure("light_dbm", gettext_lazy("Light, dBm"), pdf.dbm)
_INTERRUPTIONS = _figure("interruptions", gettext_lazy("Interruptions"), _count)
_ONUS = _figure("onus", gettext_lazy("ONUs"), _count)
_WEAK = _figure("weak_onus", gettext_lazy("Weak light"), _count)
_OUTAGES = (
    _figure("outages", gettext_lazy("Outages"), _count),
    _figure("outage_seconds", gettext_lazy("Outage time"), _length),
)
_LONGEST = _figure("longest_down_seconds", gettext_lazy("Longest"), _length)
_LOWEST = _figure("lowest_day_dbm", gettext_lazy("Lowest day"), pdf.dbm)
_WEAK_DAYS = _figure("weak_days", gettext_lazy("Weak days"), _count)
_OLT = TableColumn("olt", gettext_lazy("OLT"), "olt")
_CUSTOMER = TableColumn(
    "customer",
    gettext_lazy("Customer"),
    lambda row: row.customer or getattr(row, "description", ""),
    look="words",
)
_PORT = TableColumn("port", gettext_lazy("Port"), "port", sort="", look="mono")


def _times_query(start: datetime, end: datetime) -> str:
    return urlencode(
        {name: at.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ") for name, at in (("from", start), ("to", end))}
    )


@dataclass(frozen=True, slots=True)
class ReportEvidence:
    """The month that links of a table open to; rows have only their own values."""

    question: report.ReportQuestion

    @property
    def span(self) -> str:
        return _times_query(self.question.start, self.question.run.covers_until)

    def narrowed(self, **to: object) -> str:
        return f"{reverse('reports')}?{urlencode({'month': str(self.question.month), **to})}"

    def of_olt(self, row: report.ReportGroup, now: datetime) -> SafeString:
        """Link to the ports behind the figures."""
        return format_html(
            '<a id="row-olt-{}" href="{}"><bdi>{}</bdi></a>', row.id, self.narrowed(by="ports", olt=row.id), row.name
        )

    def of_port(self, row: report.ReportGroup, now: datetime) -> SafeString | str:
        """Link to the port's plots of this month."""
        if row.place is None:
            return text_cell(row.name)
        address = f"{reverse('port', args=(row.olt_id, *row.place))}?{self.span}#light"
        return format_html('<a id="row-port-{}" href="{}">{}</a>', row.id, address, row.name)

    def of_zone(self, row: report.ReportGroup, now: datetime) -> SafeString | str:
        if not row.id:
            return _("without a zone")
        address = self.narrowed(by="downtime", zone=row.id)
        return format_html('<a id="row-zone-{}" href="{}"><bdi>{}</bdi></a>', row.id, address, row.name)

    def of_onu(self, row: report.ReportOnu, now: datetime) -> SafeString:
        """Link to this month's plots of light and state."""
        address = f"{reverse('onu', args=(row.id,))}?{self.span}#light"
        return format_html('<a id="row-onu-{}" href="{}" class="mono">{}</a>', row.id, address, row.code)

    def of_repair(self, row: report.ReportRepair, now: datetime) -> SafeString:
        """Link to the light before and after, of all ONUs that share it."""
        day = datetime.combine(row.on, time(0), zone())
        query = _times_query(day - report.AROUND_REPAIR, min(day + report.AROUND_REPAIR, now))
        if len(row.onus) > 1:
            query += "&" + urlencode({"with": ",".join(map(str, row.onus[1:MAX_COMPARED]))})
        address = f"{reverse('onu', args=(row.id,))}?{query}#light"
        return format_html('<a id="row-repair-{}" href="{}">{}</a>', row.id, address, pdf.repair_words(row))

    def with_outages(self, figure: TableColumn) -> TableColumn:
        """Link a figure to the outages of its OLT in this month."""
        span = asked_span(self.question.start, self.question.run.covers_until)

        def draw(row: report.ReportGroup, now: datetime) -> SafeString | str:
            words = figure.draw(row, now) if figure.draw else ""
            address = f"{reverse('outages')}?{urlencode({'olt': row.olt_id} | span)}"
            return words and format_html('<a id="row-{}-{}" href="{}">{}</a>', figure.name, row.id, address, words)

        return replace(figure, draw=draw)


def _tables(evidence: ReportEvidence) -> dict[str, ListTable]:
    onu = TableColumn("onu", gettext_lazy("ONU"), "code", evidence.of_onu, look="short")
    who = (onu, _CUSTOMER, _OLT, _PORT)
    every = (*who, *_TIMES, _INTERRUPTIONS, _LONGEST, _LIGHT, _LOWEST, _WEAK_DAYS)
    outages = tuple(map(evidence.with_outages, _OUTAGES))
    first = TableColumn("name", gettext_lazy("OLT"), "name", evidence.of_olt, look="short")
    port = replace(first, title=gettext_lazy("Port"), draw=evidence.of_port)
    zone_name = replace(first, title=gettext_lazy("Zone"), draw=evidence.of_zone)
    tables = {
        "olts": (first, _ONUS, *_TIMES, *outages, _INTERRUPTIONS, _LIGHT, _WEAK),
        "ports": (port, _OLT, _ONUS, *_TIMES, *outages, _INTERRUPTIONS, _LIGHT, _WEAK),
        "zones": (zone_name, _ONUS, *_TIMES, _INTERRUPTIONS, _LIGHT, _WEAK),
        "downtime": (*who, *_TIMES, _LONGEST),
        "interruptions": (*who, _INTERRUPTIONS, *_TIMES[:2], _LONGEST),
        "light": (*who, _LIGHT, _LOWEST, _WEAK_DAYS),
        "repairs": (
            TableColumn("what", gettext_lazy("What"), pdf.repair_words, evidence.of_repair, sort="", look="words"),
            TableColumn("on", gettext_lazy("Day"), lambda row: f"{row.on:%Y-%m-%d}", look="short"),
            _CUSTOMER,
            _OLT,
            _PORT,
            _figure("gain_db", gettext_lazy("dB"), lambda value: number_format(value, 1)),
            _figure("before_dbm", gettext_lazy("Before, dBm"), pdf.dbm),
            _figure("after_dbm", gettext_lazy("After, dBm"), pdf.dbm),
        ),
        CUSTOMERS: tuple(each if each.order in _ORDERS else replace(each, sort="") for each in every),
    }
    return {key: ListTable("reports", columns, "") for key, columns in tables.items()}


@require_safe
@for_users
def reports_page(request: HttpRequest) -> HttpResponseBase:
    scope, now, runs = scope_of(request.user), timezone.now(), report.load_runs()
    this = Month.of(now, zone())
    months = sorted({this, *(Month(run.month.year, run.month.month) for run in runs)}, reverse=True)
    asked = request.GET.copy()
    if str(asked.get("month")) not in map(str, months):
        # The form shows the month that the page does.
        asked["month"] = _usual_month(months, now)
    form = ReportForm(asked, scope, months)
    chosen = form.chosen
    month = Month.parse(chosen["month"])
    run = report.load_run(month)
    context = {
        "here": "reports",
        "now": now,
        "form": form,
        "month": str(month),
        "may_operate": may_operate(request),
        "is_kept": is_kept(month, now),
        "run": run,
    }
    if run is not None:
        question = _question(run, scope, chosen)
        narrowed = {name: chosen[name] for name in ("olt", "zone") if name in chosen}
        by = chosen.get("by", "olts")
        table = _tables(ReportEvidence(question))[by]
        choice = table.choose(request.GET)
        is_of_all = by == CUSTOMERS
        if is_of_all and is_export(request):
            return export_table(request, table, in_batches(report.load_onus(question), report.shape_onus))
        ordered: Any = (
            _all_customers(choice, question) if is_of_all else _ordered(choice, REPORT_TABLES[by].load(question))
        )
        if is_export(request):
            return export_table(request, table, [ordered])
        page = Paginator(ordered, ROWS_PER_PAGE).get_page(request.GET.get(PAGE))
        context |= {
            "page": page,
            "choice": choice,
            "query": choice.with_page(),
            "table": table.draw(choice, report.shape_onus(page) if is_of_all else page, now),
            "empty": _NO_ONU if is_of_all else REPORT_TABLES[by].empty,
            "table_title": _CUSTOMERS_TITLE if is_of_all else capfirst(str(REPORT_TABLES[by].title)),
            "all_query": urlencode({"month": str(month), "by": CUSTOMERS} | narrowed),
            "is_of_all": is_of_all,
            "pdf_query": urlencode({"month": str(month)} | narrowed),
            **_front(question, {"month": str(month)} | narrowed),
            **table_context(table, choice),
        }
    return render_part_or_page(request, "reports/table.html", "reports/reports.html", context)


def _all_customers(choice: TableChoice, question: report.ReportQuestion) -> QuerySet[OnuMonth]:
    column = F(_ORDERS.get(choice.sort.removeprefix("-"), "onu_id"))
    is_down = choice.sort.startswith("-")
    order = column.desc(nulls_last=True) if is_down else column.asc(nulls_last=True)
    return report.load_onus(question).order_by(order, "onu_id")


def load_onu_months(onu_id: int, now: datetime) -> list[dict[str, Any]]:
    """Load the computed months of an ONU, the latest first, each with the query of its plots; one query."""
    lines = []
    for row in OnuMonth.objects.filter(onu_id=onu_id).order_by("-month")[:MONTHS_OF_ONU]:
        start, end = Month(row.month.year, row.month.month).bounds(zone())
        times = report.times_of(row)
        lines.append(
            {
                "month": f"{row.month:%Y-%m}",
                "words": date_format(row.month, "YEAR_MONTH_FORMAT"),
                "query": _times_query(start, min(end, now)),
                "availability": pdf.percent(times.availability),
                "lengths": [_length(seconds) for seconds in (times.down, times.unknown, times.planned)],
                "interruptions": row.interruptions,
                "light_dbm": None if row.light_cdbm is None else row.light_cdbm / 100,
                "lowest_day_dbm": None if row.lowest_day_cdbm is None else row.lowest_day_cdbm / 100,
                "weak_days": row.weak_days,
            }
        )
    return lines


def _usual_month(months: Sequence[Month], now: datetime) -> str:
    """The last month that is over, if it was computed, else the running one."""
    last = Month.of(now, zone()).shifted(-1)
    return str(last if last in months else months[0])


def _question(run: Any, scope: OltScope, chosen: Mapping[str, str]) -> report.ReportQuestion:
    olt, its_zone = chosen.get("olt"), chosen.get("zone")
    return report.ReportQuestion(run, scope, int(olt) if olt else None, int(its_zone) if its_zone else None)


def _ordered(choice: TableChoice, rows: Sequence[Row]) -> list[Row]:
    """Sort by the chosen column; rows without a value are last either way."""
    column = next((each for each in choice.columns if each.order == choice.sort.removeprefix("-")), None)
    if column is None or not column.order:
        return list(rows)
    read = column.read
    known = [row for row in rows if read(row) is not None]
    known.sort(key=lambda row: _sort_key(read(row)), reverse=choice.sort.startswith("-"))
    return [*known, *(row for row in rows if read(row) is None)]


def _sort_key(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


def _front(question: report.ReportQuestion, narrowed: Mapping[str, str]) -> dict[str, Any]:
    """Load what is above the table; two queries."""
    summary, steps = report.load_summary(question), report.load_histogram(question)
    most = max((number for _step, number in steps), default=1)
    words = (
        pgettext_lazy("state", "up"),
        pgettext_lazy("state", "down"),
        gettext_lazy("unknown"),
        gettext_lazy("planned"),
    )
    looks = ("up", "down", "unknown", "planned")
    bars, x = [], 0.0
    for word, look, share in zip(words, looks, summary.times.shares, strict=True):
        query = _query_of_all(narrowed, _SHARE_ORDERS[look])
        bars.append((word, look, share, coordinate(6 * x), coordinate(6 * share), query))
        x += share
    drawn, weaker = [], 0
    for number_at, (step, number) in enumerate(steps):
        drawn.append(
            (
                step,
                number,
                coordinate(number_at * _STEP_WIDTH),
                coordinate(80 - 70 * number / most),
                coordinate(70 * number / most),
                step < -27,
                # The page of all customers that begins with these.
                _query_of_all(narrowed, "light_dbm", page=weaker // ROWS_PER_PAGE + 1),
            )
        )
        weaker += number
    return {
        "title": pdf.month_words(question),
        "coverage": pdf.coverage_words(question),
        "figures": [
            (words, figure, urlencode({**narrowed, "by": by} | ({SORT: sort} if sort else {})))
            for (words, figure), (by, sort) in zip(pdf.summary_figures(summary), _FIGURE_ROWS, strict=True)
        ],
        "bars": bars,
        "steps": drawn,
        "steps_width": coordinate(_STEP_WIDTH * len(drawn)),
    }


def _query_of_all(narrowed: Mapping[str, str], sort: str, *, page: int = 1) -> str:
    return urlencode({**narrowed, "by": CUSTOMERS, SORT: sort} | ({PAGE: page} if page > 1 else {}))


@require_safe
@for_users
def report_pdf(request: HttpRequest) -> HttpResponse:
    """Send the report as a file; the same query as the page's."""
    scope, runs = scope_of(request.user), report.load_runs()
    form = ReportForm(request.GET, scope, [Month(run.month.year, run.month.month) for run in runs])
    run = report.load_run(Month.parse(form.chosen["month"])) if "month" in form.chosen else None
    if run is None:
        raise Http404
    question = _question(run, scope, form.chosen)
    narrowed = ((Olt, question.olt_id), (Zone, question.zone_id))
    names = [str(model._default_manager.only("name").get(pk=pk)) for model, pk in narrowed if pk is not None]
    address = urlsplit(load_public_address()).hostname or request.get_host()
    content = pdf.write_pdf(pdf.load_report(question), installation=address, about=" · ".join(names))
    named = f'attachment; filename="facho-{question.month}.pdf"'
    return HttpResponse(content, content_type="application/pdf", headers={"Content-Disposition": named})


@require_POST
@for_operators
def report_renew(request: HttpRequest) -> HttpResponse:
    """Let a month be computed again; the engine does it within seconds."""
    try:
        month = Month.parse(request.POST.get("month", ""))
    except ValueError:
        raise Http404 from None
    now = timezone.now()
    if not is_kept(month, now):
        raise Http404
    ask_for_month(month, now)
    messages.success(request, _("The month is being computed again; its figures change port by port."))
    return redirect(f"{reverse('reports')}?{urlencode({'month': str(month)})}")
