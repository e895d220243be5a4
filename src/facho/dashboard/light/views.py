"""What light shows about the fibre: losses in common and decays, each with the plot and the numbers it rests on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django import forms
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from facho.accounts.scope import scope_of
from facho.dashboard.onu.names import code_of
from facho.dashboard.shared.page import ROWS_PER_PAGE, TimelineFilter, coordinate, cursor_of, for_users, is_part
from facho.dashboard.shared.plot_range import MAX_COMPARED
from facho.hosts.store import OLT_SECRETS
from facho.onus.models import Onu, PonPort
from facho.onus.timeline import load_rows
from facho.plant.models import FindingKinds, FindingOnu, LightFinding, OnuBox

# The plot of a finding begins this long before it.
BEFORE_STEP = timedelta(hours=6)
BEFORE_DECAY = timedelta(days=7)


class LightFilter(TimelineFilter):
    kind = forms.ChoiceField(
        label=gettext_lazy("What"),
        required=False,
        choices=[("", pgettext_lazy("findings", "all")), *FindingKinds.choices],
    )
    state = forms.ChoiceField(
        label=gettext_lazy("State"),
        required=False,
        choices=[
            ("", pgettext_lazy("findings", "all")),
            ("open", pgettext_lazy("findings", "open")),
            ("over", pgettext_lazy("findings", "over")),
        ],
    )
    field_order = ("olt", "kind", "state", "after", "before")

    def narrow(self, findings: QuerySet[LightFinding]) -> QuerySet[LightFinding]:
        values = self.chosen
        if state := values.get("state"):
            findings = findings.filter(ended_at__isnull=state == "open")
        given = {"olt": "pon_port__olt_id", "kind": "kind", "after": "since__gte", "before": "since__lt"}
        return findings.filter(**{lookup: values[name] for name, lookup in given.items() if name in values})


@dataclass(frozen=True, slots=True)
class LightLine:
    """One finding as a line; `members` are the ONUs that were hit, with what each lost."""

    finding: LightFinding
    sentence: str
    evidence: str
    plot: str
    members: list[tuple[Onu, str, str]]


@require_safe
@vary_on_headers("HX-Request")
@for_users
def light_page(request: HttpRequest) -> HttpResponse:
    scope, now = scope_of(request.user), timezone.now()
    form, cursor = LightFilter(request.GET, scope), cursor_of(request)
    page = load_rows(form.narrow(scope.narrow(all_findings(), "pon_port__olt")), "since", cursor, ROWS_PER_PAGE)
    context = {
        "here": "light",
        "now": now,
        "form": form,
        "is_first": cursor is None,
        "page": page,
        "rows": [light_line(finding, now) for finding in page.rows],
    }
    return render(request, "light/list.html" if is_part(request) else "light/light.html", context)


def all_findings() -> QuerySet[LightFinding]:
    """Select findings with their place, without OLT secrets, and with the ONUs that were hit as `hit`."""
    hit = FindingOnu.objects.filter(is_hit=True).select_related("onu__pon_port").order_by("onu__onu_id")
    findings = LightFinding.objects.select_related("pon_port__olt", "onu")
    findings = findings.defer(*(f"pon_port__{secret}" for secret in OLT_SECRETS))
    return findings.prefetch_related(Prefetch("members", hit, "hit"))


def light_line(finding: LightFinding, now: datetime) -> LightLine:
    """Write a finding for people; its ONUs are in `finding.hit`."""
    if finding.kind == FindingKinds.DECAY and finding.onu is not None:
        evidence = _(
            "A line through its daily medians, without what the port's other ONUs do too: %(dbm)s dBm at its end."
        ) % {"dbm": number_format(finding.level_dbm or 0, 2)}
        plot = _plot(finding.onu.id, finding.since - BEFORE_DECAY, finding.ended_at or now)
        return LightLine(finding, _decay_words(finding, now), evidence, plot, [])
    hit: list[FindingOnu] = finding.hit  # type: ignore[attr-defined]  # prefetched by the page
    members = [(row.onu, code_of(row.onu), number_format(-row.size_db, 1) if row.size_db else "") for row in hit]
    evidence = _("Two polls in a row show it; the other ONUs of the port kept their light.")
    if len(hit) == finding.onus_read:
        evidence = _("All ONUs that were read lost it: the fibre before the first splitter, or the port.")
    return LightLine(finding, _step_words(finding, len(hit)), evidence, _step_plot(finding, hit), members)


def _step_words(finding: LightFinding, hit: int) -> str:
    text = ngettext(
        "%(hit)s of %(read)s ONU lost %(db)s dB at once: a splitter, or the fibre to it",
        "%(hit)s of %(read)s ONUs lost %(db)s dB at once: a splitter, or the fibre to it",
        finding.onus_read,
    )
    return text % {"hit": hit, "read": finding.onus_read, "db": number_format(-finding.size_db, 1)}


def _step_plot(finding: LightFinding, hit: list[FindingOnu]) -> str:
    """The light of some of the ONUs around that time, in one plot."""
    if not hit:
        return ""
    first, *others = hit[:MAX_COMPARED]
    return _plot(
        first.onu_id,
        finding.since - BEFORE_STEP,
        (finding.ended_at or finding.since) + BEFORE_STEP,
        [row.onu_id for row in others],
    )


def _decay_words(finding: LightFinding, now: datetime) -> str:
    passed = (now - finding.judged_at) / timedelta(days=1)
    soonest, latest = (max(round((days or 0) - passed), 0) for days in (finding.days_soonest, finding.days_latest))
    text = _("loses %(rate)s dB a day and falls below -27 dBm in %(soonest)s to %(latest)s days")
    return text % {"rate": number_format(finding.size_db, 2), "soonest": soonest, "latest": latest}


def _plot(onu_id: int, start: datetime, end: datetime, compared: Sequence[int] = ()) -> str:
    values = {name: at.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ") for name, at in (("from", start), ("to", end))}
    if compared:
        values["with"] = ",".join(map(str, compared))
    return f"{reverse('onu', args=(onu_id,))}?{urlencode(values)}#light"


@dataclass(frozen=True, slots=True)
class TreeDot:
    """An ONU in the drawing of a port's tree; coordinates as SVG takes them."""

    onu_id: int
    x: str
    tip: str


@dataclass(frozen=True, slots=True)
class TreeBox:
    """ONUs that seem to share a splitter, as a row of the drawing; `y` is its middle."""

    name: str
    y: int
    branch: str
    confidence: str
    dots: list[TreeDot]


@dataclass(frozen=True, slots=True)
class PortTree:
    """The tree of a port as it was inferred, by metres from the OLT."""

    boxes: list[TreeBox]
    events: int
    height: int
    near: str
    far: str


TREE_LEFT, TREE_WIDTH, TREE_ROW = 40, 700, 30


def load_port_findings(port: PonPort, now: datetime, count: int) -> list[LightLine]:
    """Load the latest findings of a port; three queries."""
    return [light_line(each, now) for each in all_findings().filter(pon_port=port)[:count]]


def load_port_tree(port: PonPort) -> PortTree | None:
    """Load which ONUs seem to share a box; None while nothing happened to several of them. One query."""
    rows = OnuBox.objects.filter(pon_port=port, onu__is_present=True, onu__pon_port=port, events__gt=0)
    found = rows.select_related("onu__reading", "onu__pon_port").order_by("number", "onu__onu_id")
    by_box: dict[int, list[OnuBox]] = {}
    for each in found:
        by_box.setdefault(each.number, []).append(each)
    metres = [metre for its in by_box.values() for each in its if (metre := _metres(each)) is not None]
    if not metres:
        return None
    near, far = min(metres), max(metres)
    groups = sorted(by_box.values(), key=lambda its: min(_metres(each) or far for each in its))
    boxes = [_tree_box(number, its, near, far) for number, its in enumerate(groups)]
    events = max(each.events for its in groups for each in its)
    return PortTree(boxes, events, TREE_ROW * len(boxes) + 10, number_format(near), number_format(far))


def _metres(box: OnuBox) -> int | None:
    reading = getattr(box.onu, "reading", None)
    metres: int | None = getattr(reading, "distance_m", None)
    return metres


def _tree_box(number: int, its: list[OnuBox], near: int, far: int) -> TreeBox:
    y = TREE_ROW * number + 20
    dots, places = [], []
    for each in its:
        metres = _metres(each)
        x = TREE_LEFT + 60 + (TREE_WIDTH - 80) * ((metres if metres is not None else far) - near) / max(far - near, 1)
        words = (code_of(each.onu), each.onu.description, f"{metres} m" if metres is not None else "")
        places.append(x)
        dots.append(TreeDot(each.onu_id, coordinate(x), " · ".join(filter(None, words))))
    return TreeBox(
        name=str(number + 1),
        y=y,
        branch=f"M10 20V{y}H{coordinate(min(places))}",
        confidence=f"{round(100 * sum(each.confidence for each in its) / len(its))} %",
        dots=dots,
    )
