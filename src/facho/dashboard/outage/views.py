"""The pages of outages: the list, and each with what it means, the evidence, and a drawing of ONUs down over time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import F, OrderBy, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.defaultfilters import floatformat
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy
from django.views.decorators.http import require_POST, require_safe

from facho.accounts.acknowledge import who_acknowledged
from facho.accounts.scope import OltScope, scope_of
from facho.dashboard.onu.list import rows_of
from facho.dashboard.onu.names import cause_of
from facho.dashboard.shared.hour import Scale, draw_ticks
from facho.dashboard.shared.outages import whole_outages, with_names
from facho.dashboard.shared.page import (
    PagePart,
    TimelineFilter,
    acknowledgement_context,
    answer_acknowledgement,
    asked_span,
    choice_field,
    coordinate,
    cursor_of,
    for_users,
    load_parts,
    part_called,
    render_part_or_page,
)
from facho.dashboard.shared.table import (
    PAGE,
    ListTable,
    TableColumn,
    export_table,
    in_batches,
    is_export,
    load_table,
    time_value,
)
from facho.dashboard.templatetags.facho_words import length_of_time, when
from facho.onus import outages as outage_store
from facho.onus.models import Outage
from facho.onus.shown_state import PortCounts
from facho.onus.words import EventKinds, OutageCauses, OutageScopes
from facho.plant.map import describe_break, explain_break, load_break
from facho.polling.domain.outages import Evidence, weigh_departures
from facho.traps.store import load_gasps

# The words of moments stand in rows above the area.
WIDTH, TOP, BASE = 960.0, 50.0, 140.0
SHORTEST = timedelta(minutes=10)
MOST_TICKS = 8
# Marks nearer than this write their words below one another.
LABEL_WIDTH = 110.0
# Times nearer to an edge would be cut off.
EDGE = 36.0
LABEL_ROWS, LABEL_HEIGHT = 3, 14.0
_STEPS = tuple(
    timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 30, 60, 180, 360, 720, 1440, 2880, 10_080, 43_200)
)
_DAY = timedelta(days=1)

Step = tuple[datetime, int]
OutageMoment = tuple[datetime, str]

_MEANINGS: dict[str, Promise] = {
    OutageCauses.POWER: gettext_lazy(
        "The customers have no power: their ONUs reported it before going down. Fibre and OLT are fine; "
        "ask the power company about the area."
    ),
    OutageCauses.FIBRE: gettext_lazy(
        "The signal was lost and hardly any ONU reported a power failure: the fibre is cut or unplugged."
    ),
    OutageCauses.CARD: gettext_lazy(
        "All ports of the card lost their ONUs at once: check the card, its power and whether it is seated properly."
    ),
    OutageCauses.OLT: gettext_lazy(
        "The OLT does not answer SNMP. Its customers may still have service, which Facho cannot see. "
        "Check its power, its management network and its list of allowed addresses."
    ),
    OutageCauses.NETWORK: gettext_lazy(
        "Several OLTs stopped answering at once: check the network between Facho and them first."
    ),
    OutageCauses.UNKNOWN: gettext_lazy(
        "Many went down at once without a common cause. Check where they are and what they share."
    ),
}
_WHOLE_PORT = gettext_lazy("No ONU of the port is online: check between the OLT and the first splitter.")
_BRANCH = gettext_lazy("Other ONUs of the port are online: check the splitter branch that the affected ones share.")
_ANNOUNCED_POWER = gettext_lazy(
    "But most ONUs announced a power failure by trap: ask the power company about the area before sending a crew."
)
PART_LINES = 50
# ONUs are counted only while the OLT answers.
_COUNTED = (OutageScopes.PON, OutageScopes.CARD)
ONUS_PER_PAGE = 50
# Enough pages; the list of ONUs has filters for more.
LAST_PAGE = 400
OPEN, UNSEEN, ENDED, ACKNOWLEDGED = "open", "unseen", "ended", "acknowledged"
_SHOWN: dict[str, Q] = {
    OPEN: Q(ended_at__isnull=True),
    UNSEEN: Q(ended_at__isnull=True, acknowledged_at__isnull=True),
    ENDED: Q(ended_at__isnull=False),
    ACKNOWLEDGED: Q(acknowledged_at__isnull=False),
}
# More than this is one larger outage, and too long a list to read.
OPEN_LINES = 200


def draw_outage(
    steps: Sequence[Step], moments: Sequence[OutageMoment], *, starts_at: datetime, ends_at: datetime
) -> dict[str, Any]:
    """Draw the ONUs down over time, counted in steps; without steps it is a band, since all is down all the time."""
    length = max(ends_at - starts_at, SHORTEST)
    scale = Scale(starts_at - length / 12, starts_at + length + length / 12, WIDTH)
    highest = max((number for _at, number in steps), default=0)
    known = list(steps) if highest else [(starts_at, 1)]
    area = f"M{coordinate(scale.x(known[0][0]))} {coordinate(BASE)}"
    for at, number in known:
        area += f"H{coordinate(scale.x(at))}V{coordinate(BASE - number / (highest or 1) * (BASE - TOP))}"
    area += f"H{coordinate(scale.x(max(ends_at, known[-1][0])))}V{coordinate(BASE)}z"
    return {
        "area": area,
        "highest": highest,
        "ticks": _draw_ticks(scale),
        "moments": _draw_moments(moments, scale),
        "width": int(WIDTH),
        "top": coordinate(TOP),
        "base": coordinate(BASE),
    }


def _draw_ticks(scale: Scale) -> list[dict[str, str]]:
    length = scale.end - scale.start
    step = next((step for step in _STEPS if length / step <= MOST_TICKS), _STEPS[-1])
    form = "%H:%M" if length < _DAY else "%m-%d %H:%M" if step < _DAY else "%Y-%m-%d"
    ticks = [tick for tick in draw_ticks(scale, step) if EDGE < scale.x(tick.moment) < WIDTH - EDGE]
    return [{"x": tick.x, "words": f"{localtime(tick.moment):{form}}"} for tick in ticks]


def _draw_moments(moments: Sequence[OutageMoment], scale: Scale) -> list[dict[str, str]]:
    """Mark moments on the timeline; a text is right-aligned where it would leave the drawing."""
    drawn, row, before = [], 0, -LABEL_WIDTH
    for at, words in sorted(moments, key=lambda each: each[0]):
        x = scale.x(at)
        row, before = ((row + 1) % LABEL_ROWS if x - before < LABEL_WIDTH else 0), x
        place = {"x": coordinate(x), "y": coordinate((row + 1) * LABEL_HEIGHT)}
        tip = f"{words} · {localtime(at):%Y-%m-%d %H:%M:%S}"
        drawn.append(place | {"anchor": "end" if x > WIDTH - LABEL_WIDTH else "start", "words": words, "tip": tip})
    return drawn


@dataclass(frozen=True, slots=True)
class Findings:
    evidence: Evidence | None = None
    neighbours: outage_store.Neighbours | None = None
    port: PortCounts | None = None
    olts: int = 0


def meaning_of(cause: str, findings: Findings) -> str:
    meaning, port = str(_MEANINGS[cause]), findings.port
    if cause != OutageCauses.POWER and findings.evidence and findings.evidence.hints_at_power:
        # What was announced is no proof: the cause stays what was read.
        return f"{meaning} {_ANNOUNCED_POWER}"
    if cause != OutageCauses.FIBRE or not port or not port.is_known:
        return meaning
    return f"{meaning} {_BRANCH if port.online else _WHOLE_PORT}"


def evidence_lines(findings: Findings, outage: Outage) -> list[str]:
    lines: list[str] = []
    if findings.evidence and findings.evidence.total:
        lines += [*_said(findings.evidence), _when(findings.evidence)]
    if findings.neighbours:
        lines.append(_beside(findings.neighbours, outage))
    if findings.port and findings.port.is_known:
        values = {"online": findings.port.online, "total": findings.port.total}
        lines.append(_("%(online)s of %(total)s ONUs of the port are online now.") % values)
    if findings.olts:
        text = ngettext("%(n)s OLT stopped answering.", "%(n)s OLTs stopped answering.", findings.olts)
        lines.append(text % {"n": findings.olts})
    return lines


def _said(evidence: Evidence) -> Iterator[str]:
    texts = (
        (evidence.power, _("%(part)s of %(total)s ONUs reported a power failure (dying gasp).")),
        (evidence.signal, _("%(part)s of %(total)s ONUs lost the signal (LOS).")),
        (evidence.other, _("%(part)s of %(total)s ONUs reported another cause.")),
        (evidence.without_cause, _("%(part)s of %(total)s ONUs reported no cause.")),
    )
    for part, text in texts:
        if part:
            yield text % {"part": part, "total": evidence.total}
    if evidence.announced:
        text = _("%(part)s of %(total)s ONUs announced a dying gasp by trap; it was not read as their cause.")
        yield text % {"part": evidence.announced, "total": evidence.total}
    elif not evidence.power:
        yield _("None sent a dying gasp.")


def _when(evidence: Evidence) -> str:
    values = {"part": evidence.together, "total": evidence.total, "length": length_of_time(_seconds(evidence))}
    if evidence.together < evidence.total:
        return _("%(part)s of %(total)s went down within %(length)s.") % values
    if not _seconds(evidence):
        return _("A single poll found all of them down.")
    return _("All went down within %(length)s.") % values


def _seconds(evidence: Evidence) -> float:
    return evidence.spread.total_seconds()


def _span(outage: Outage) -> dict[str, str]:
    return asked_span(outage.started_at, outage.ended_at)


def _beside(neighbours: outage_store.Neighbours, outage: Outage) -> str:
    if not neighbours.ports:
        return _("No other port of the card has ONUs.")
    values = {"n": neighbours.ports, "out": neighbours.out}
    if not neighbours.out:
        text = ngettext(
            "The other port of the card is fine.", "The other %(n)s ports of the card are fine.", neighbours.ports
        )
        return text % values
    text = ngettext(
        "The other port of the card was out at the same time.",
        "%(out)s of the other %(n)s ports of the card were out at the same time.",
        neighbours.ports,
    )
    address = f"{reverse('outages')}?{urlencode({'olt': outage.olt_id or ''} | _span(outage))}"
    return format_html('<a id="why-beside" href="{}">{}</a>', address, text % values)


def load_sheet(outage: Outage, scope: OltScope, now: datetime) -> dict[str, Any]:
    """Load everything about an outage loaded with its names; at most ten queries."""
    changes = outage_store.load_changes(outage) if outage.scope in _COUNTED else []
    findings = _find_out(outage, changes)
    seen = with_names(scope.narrow(Outage.objects.all()))
    found = load_break(outage, changes)
    return {
        "row": outage,
        # When service was back in between; empty unless it recurred.
        "breaks": outage_store.describe_breaks(outage_store.breaks_of(outage), started_at=outage.started_at),
        "meaning": meaning_of(outage.cause, findings),
        "evidence": evidence_lines(findings, outage),
        # Where the fibre broke, and the numbers behind it; empty where that is no question.
        "where": describe_break(found) if found else [],
        "where_rests_on": explain_break(found) if found else "",
        # What went down meanwhile, in the list of events.
        "went": urlencode({"olt": outage.olt_id or "", "kind": EventKinds.DOWN.value} | _span(outage)),
        "drawing": _draw(outage, changes, now),
        "part_of": seen.filter(pk=outage.part_of_id).first() if outage.part_of_id else None,
        "parts": list(seen.filter(part_of=outage.pk).order_by("-affected", "id")[:PART_LINES]),
    }


def _find_out(outage: Outage, changes: list[outage_store.MemberChange]) -> Findings:
    if outage.scope not in _COUNTED:
        return Findings(olts=outage.affected_olts)
    evidence = weigh_departures(outage_store.departures(changes), load_gasps(outage))
    if outage.scope == OutageScopes.CARD:
        return Findings(evidence)
    # How the port is now says nothing of an outage that is over.
    port = None if outage.ended_at else outage_store.load_port_counts_of(outage)
    return Findings(evidence, outage_store.load_neighbours(outage), port)


def _draw(outage: Outage, changes: Sequence[outage_store.MemberChange], now: datetime) -> dict[str, Any]:
    moments = [(outage.started_at, _("began"))]
    for pause in outage_store.breaks_of(outage):
        moments += [(pause.ended_at, _("service back")), (pause.resumed_at, _("out again"))]
    if outage.acknowledged_at:
        words = _("acknowledged by %(who)s") % {"who": who_acknowledged(outage)}
        moments.append((outage.acknowledged_at, words))
    moments.append((outage.ended_at or now, _("ended") if outage.ended_at else _("now")))
    # Turn changes into the number of ONUs down, one step per distinct time.
    steps: dict[datetime, int] = {}
    down: set[int] = set()
    for change in changes:
        (down.add if change.is_down else down.discard)(change.onu_id)
        steps[change.at] = len(down)
    return draw_outage(list(steps.items()), moments, starts_at=outage.started_at, ends_at=outage.ended_at or now)


def load_outage_onus(outage: Outage, page: str) -> dict[str, Any]:
    """Load a page of ONUs, each with the reason it went down, by its number; anything invalid is page 1."""
    number = min(int(page), LAST_PAGE) if page.isascii() and page.isdigit() and int(page) else 1
    first = (number - 1) * ONUS_PER_PAGE
    # No total is counted: one more says whether there is another page.
    found = list(outage_store.onus_of(outage).select_related("customer")[first : first + ONUS_PER_PAGE + 1])
    shown = found[:ONUS_PER_PAGE]
    rows = list(zip(rows_of(shown), map(cause_of, shown), strict=True))
    return {"rows": rows, "number": number, "has_more": len(found) > ONUS_PER_PAGE}


class OutageFilter(TimelineFilter):
    """Times match outages that were open between them."""

    lookups = {"olt": "olt_id", "cause": "cause", "before": "started_at__lt"}
    show = choice_field(
        gettext_lazy("Show"),
        [
            (OPEN, gettext_lazy("ongoing")),
            (UNSEEN, gettext_lazy("ongoing, not acknowledged")),
            (ACKNOWLEDGED, gettext_lazy("acknowledged")),
            (ENDED, gettext_lazy("ended")),
        ],
        pgettext_lazy("outages", "all"),
    )
    cause = choice_field(gettext_lazy("Probable cause"), OutageCauses.choices)
    field_order = ("show", "olt", "cause", "after", "before")

    def narrow(self, outages: QuerySet[Outage]) -> QuerySet[Outage]:
        if shown := self.chosen.get("show"):
            outages = outages.filter(_SHOWN[shown])
        if after := self.chosen.get("after"):
            outages = outages.filter(Q(ended_at__isnull=True) | Q(ended_at__gt=after))
        return super().narrow(outages)


def _draw_cause(row: Outage, now: datetime) -> SafeString:
    look, address = "up" if row.ended_at else "down", reverse("outage", args=[row.id])
    cause = format_html(
        '<a id="over-outage-{}-why" class="mark {}" href="{}">{}</a>', row.id, look, address, row.get_cause_display()
    )
    if not row.acknowledged_at:
        return cause
    seen = _("acknowledged by %(who)s") % {"who": who_acknowledged(row)}
    return format_html('{} <span class="tag seen">{}</span>', cause, seen)


def _draw_where(row: Outage, now: datetime) -> SafeString:
    scope = format_html('{} <span class="mono">{}</span>' if row.place else "{}", row.get_scope_display(), row.place)
    if not row.olt_id:
        olts = ngettext("%s OLT", "%s OLTs", row.affected_olts) % row.affected_olts if row.affected_olts else ""
        return format_html("{} · {}", scope, olts) if olts else scope
    address = reverse("olt", args=[row.olt_id])
    return format_html('<a id="over-outage-{}" href="{}">{}</a> · {}', row.id, address, row.olt, scope)


OUTAGE_TABLE = ListTable(
    "outages",
    (
        TableColumn("cause", gettext_lazy("Probable cause"), "cause", _draw_cause),
        TableColumn(
            "where", gettext_lazy("Where"), lambda row: f"{row.olt or ''} {row.scope} {row.place}".strip(), _draw_where
        ),
        TableColumn(
            "since",
            gettext_lazy("Since"),
            lambda row: time_value(row.started_at),
            lambda row, now: when(row.started_at, now),
            look="short",
        ),
        TableColumn(
            "lasted",
            gettext_lazy("Lasted"),
            "lasted_seconds",
            lambda row, now: length_of_time(row.lasted_seconds) if row.ended_at else "",
            look="short",
        ),
        TableColumn(
            "ended",
            gettext_lazy("Ended at"),
            lambda row: time_value(row.ended_at),
            lambda row, now: when(row.ended_at, now) if row.ended_at else "",
            look="short",
            is_usual=False,
        ),
        TableColumn(
            "affected",
            gettext_lazy("ONUs affected"),
            "affected",
            lambda row, now: floatformat(row.affected, "0g"),
            look="right short",
        ),
    ),
    "-time",
    {
        "cause": ("cause",),
        "where": ("olt__name", "frame", "slot", "port"),
        "since": ("started_at",),
        "lasted": (OrderBy(F("ended_at") - F("started_at")),),
        "ended": ("ended_at",),
        "affected": ("affected",),
    },
    time_column="started_at",
)


@require_safe
@for_users
def outages_page(request: HttpRequest) -> HttpResponseBase:
    scope = scope_of(request.user)
    form = OutageFilter(request.GET, scope)
    outages = form.narrow(whole_outages(scope))
    if is_export(request):
        return export_table(request, OUTAGE_TABLE, in_batches(with_names(outages)))
    over = with_names(outages.filter(ended_at__isnull=False))
    loaded = load_table(request, OUTAGE_TABLE, over)
    going_on = outages.filter(ended_at__isnull=True).order_by("-affected", "started_at", "id")
    context = {
        "here": "outages",
        "form": form,
        **loaded,
        "going_on": [] if cursor_of(request) or PAGE in request.GET else with_names(going_on)[:OPEN_LINES],
    }
    return render_part_or_page(request, "outage/list.html", "outage/outages.html", context)


@require_safe
@for_users
def outage_page(request: HttpRequest, outage_id: int) -> HttpResponse:
    outage, now = _find(request, outage_id), timezone.now()
    context = acknowledgement_context(request, outage) | load_parts(PARTS, request, outage, now)
    return render(request, "outage/outage.html", {"here": "outages", "now": now, "outage": outage, **context})


@require_safe
@for_users
def outage_part(request: HttpRequest, outage_id: int, name: str) -> HttpResponse:
    part, outage, now = part_called(name, PARTS), _find(request, outage_id), timezone.now()
    return render(request, part.template, {"now": now, "outage": outage, **part.load(request, outage, now)})


@require_POST
@for_users
def outage_acknowledge(request: HttpRequest, outage_id: int) -> HttpResponse:
    return answer_acknowledgement(request, _find(request, outage_id), "outage")


def _find(request: HttpRequest, outage_id: int) -> Outage:
    return get_object_or_404(with_names(scope_of(request.user).narrow(Outage.objects.all())), pk=outage_id)


def _state(request: HttpRequest, outage: Outage, now: datetime) -> dict[str, Any]:
    return {"sheet": load_sheet(outage, scope_of(request.user), now)}


def _onus(request: HttpRequest, outage: Outage, now: datetime) -> dict[str, Any]:
    return {"onus": load_outage_onus(outage, request.GET.get("page", ""))}


PARTS = {
    "state": PagePart("outage/state.html", 5, _state),
    "onus": PagePart("outage/onus.html", 10, _onus),
}
