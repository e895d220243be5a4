"""Reads what was found in the light, writes it for people, and folds the events of what ONUs lost in common."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.utils.formats import number_format, time_format
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from facho.hosts.store import OLT_SECRETS
from facho.infrastructure.statements import Select
from facho.onus.models import OnuEvent
from facho.onus.timeline import TimelineCursor
from facho.onus.words import EventKinds
from facho.plant.models import FindingKinds, FindingOnu, LightFinding


@dataclass(frozen=True, slots=True)
class OpenStep:
    """Light that ONUs of a port lost together and did not get back."""

    id: int
    olt_id: int
    olt: str
    place: str
    since: datetime
    lost_db: float
    hit: int
    read: int


@dataclass(frozen=True, slots=True)
class OpenBranchDecay:
    """A branch of a port whose ONUs lose light together, day by day; `lost_db` is what they lost so far."""

    id: int
    olt_id: int
    olt: str
    place: str
    since: datetime
    rate_db: float
    lost_db: float
    hit: int


@dataclass(frozen=True, slots=True)
class OpenDecay:
    """Light of an ONU that falls, and in how many days from now it is too weak."""

    id: int
    onu_id: int
    olt_id: int
    olt: str
    place: str
    serial: str
    description: str
    since: datetime
    rate_db: float
    days_soonest: float
    days_likely: float
    days_latest: float


# A decay that no day confirmed within this time is left out: its ONUs are not read.
CONFIRMED_WITHIN = timedelta(days=7)
# The event comes with the poll that lost the light, or with a later one where the first loss was not quite a step.
EVENT_BEFORE, EVENT_AFTER = timedelta(minutes=1), timedelta(minutes=15)
_ANY_OPEN = Select(lambda: LightFinding.objects.filter(ended_at__isnull=True).order_by().values_list("id")[:1])


def load_open_steps() -> list[OpenStep]:
    if not _ANY_OPEN.rows():
        return []
    found = _open(FindingKinds.COMMON_STEP).annotate(hit=Count("members", filter=Q(members__is_hit=True)))
    return [
        OpenStep(
            id=each.id,
            olt_id=each.pon_port.olt_id,
            olt=each.pon_port.olt.name,
            place=str(each.pon_port),
            since=each.since,
            lost_db=-each.size_db,
            hit=each.hit,
            read=each.onus_read,
        )
        for each in found.select_related("pon_port__olt")
    ]


def load_open_branch_decays(now: datetime) -> list[OpenBranchDecay]:
    """Load branches that decay; one query."""
    if not _ANY_OPEN.rows():
        return []
    recent = _open(FindingKinds.BRANCH_DECAY).filter(judged_at__gt=now - CONFIRMED_WITHIN)
    found = recent.annotate(hit=Count("members", filter=Q(members__is_hit=True)))
    return [
        OpenBranchDecay(
            id=each.id,
            olt_id=each.pon_port.olt_id,
            olt=each.pon_port.olt.name,
            place=str(each.pon_port),
            since=each.since,
            rate_db=each.size_db,
            lost_db=lost_so_far(each),
            hit=each.hit,
        )
        for each in found.select_related("pon_port__olt")
    ]


def load_open_decays(now: datetime) -> list[OpenDecay]:
    """Load decays that a day of the last week confirmed, those that are too weak soonest first."""
    if not _ANY_OPEN.rows():
        return []
    recent = _open(FindingKinds.DECAY).filter(judged_at__gt=now - CONFIRMED_WITHIN, onu__is_present=True)
    decays = []
    for each in recent.select_related("pon_port__olt", "onu"):
        if each.onu is None:
            continue
        passed = (now - each.judged_at) / timedelta(days=1)
        place = each.pon_port
        decays.append(
            OpenDecay(
                id=each.id,
                onu_id=each.onu.id,
                olt_id=place.olt_id,
                olt=place.olt.name,
                place=str(place),
                serial=each.onu.serial,
                description=each.onu.description,
                since=each.since,
                rate_db=each.size_db,
                days_soonest=max((each.days_soonest or 0) - passed, 0),
                days_likely=max((each.days_likely or 0) - passed, 0),
                days_latest=max((each.days_latest or 0) - passed, 0),
            )
        )
    return sorted(decays, key=lambda decay: decay.days_likely)


def _open(kind: FindingKinds) -> QuerySet[LightFinding]:
    return LightFinding.objects.filter(kind=kind, ended_at__isnull=True, pon_port__olt__enabled=True).order_by("id")


def lost_so_far(finding: LightFinding) -> float:
    """Return what a decay took up to the last day that was judged, in dB."""
    return finding.size_db * max((finding.judged_at - finding.since) / timedelta(days=1), 0)


def all_findings() -> QuerySet[LightFinding]:
    """Select findings with their place, without OLT secrets, and with the ONUs that were hit as `hit`."""
    hit = FindingOnu.objects.filter(is_hit=True).select_related("onu__pon_port").order_by("onu__onu_id")
    findings = LightFinding.objects.select_related("pon_port__olt", "onu__pon_port")
    secrets = (f"pon_port__{secret}" for secret in OLT_SECRETS)
    return findings.defer(*secrets).prefetch_related(Prefetch("members", hit, "hit"))


def hit_of(finding: LightFinding) -> list[FindingOnu]:
    hit: list[FindingOnu] = finding.hit  # type: ignore[attr-defined]  # prefetched
    return hit


def describe_finding(finding: LightFinding, now: datetime) -> str:
    """Write a finding of `all_findings` as one sentence, in the active language."""
    if finding.kind == FindingKinds.COMMON_STEP:
        return describe_common_step(finding, len(hit_of(finding)))
    hit, size, passed = len(hit_of(finding)), finding.size_db, (now - finding.judged_at) / timedelta(days=1)
    soonest, latest = (max(round((days or 0) - passed), 0) for days in (finding.days_soonest, finding.days_latest))
    numbers = {
        "hit": hit,
        "read": finding.onus_read,
        "db": number_format(abs(size), 1),
        "rate": number_format(size, 2),
        "noise": number_format(size, 2),
        "at": time_format(localtime(finding.since), "H:i"),
        "times": number_format(finding.times or 0, 1),
        "jumps": number_format(finding.times or 0, 0),
        "so_far": number_format(lost_so_far(finding), 1),
        "soonest": soonest,
        "latest": latest,
    }
    sentences = _SENTENCES
    if finding.kind in _FINISHED and finding.ended_at is not None:
        sentences = _FINISHED
    elif finding.kind in _CROSSED and not latest:
        sentences = _CROSSED
    return str(sentences[finding.kind]) % numbers


def describe_common_step(finding: LightFinding, hit: int) -> str:
    """Write what so many ONUs of a port lost in common as one sentence, in the active language."""
    text = ngettext(
        "%(hit)s of %(read)s ONU lost %(db)s dB at %(at)s: a splitter, or the fibre to it",
        "%(hit)s of %(read)s ONUs lost %(db)s dB at %(at)s: a splitter, or the fibre to it",
        finding.onus_read,
    )
    return text % {
        "hit": hit,
        "read": finding.onus_read,
        "db": number_format(abs(finding.size_db), 1),
        "at": time_format(localtime(finding.since), "H:i"),
    }


_SENTENCES: Mapping[str, Promise] = MappingProxyType(
    {
        FindingKinds.BRANCH_DECAY: gettext_lazy(
            "%(hit)s of %(read)s ONUs lose %(rate)s dB a day, %(so_far)s dB so far: water in a box, or its feed"
        ),
        FindingKinds.STEP: gettext_lazy("lost %(db)s dB at %(at)s, alone"),
        FindingKinds.DECAY: gettext_lazy(
            "loses %(rate)s dB a day and falls below -27 dBm in %(soonest)s to %(latest)s days"
        ),
        FindingKinds.SENDER: gettext_lazy(
            "sends %(rate)s dB less a day; the OLT receives less than -28 dBm in %(soonest)s to %(latest)s days"
        ),
        FindingKinds.NOISE: gettext_lazy(
            "its light is %(times)s times as unsteady as before: %(noise)s dB from one reading to the next"
        ),
        FindingKinds.FLAPPING: gettext_lazy("its light left its level and came back %(jumps)s times in a day"),
    }
)
# What has ended has no forecast, and neither has what is too weak already.
_FINISHED: Mapping[str, Promise] = MappingProxyType(
    {
        FindingKinds.DECAY: gettext_lazy("lost %(rate)s dB a day, %(so_far)s dB in all; this has ended"),
        FindingKinds.SENDER: gettext_lazy("sent %(rate)s dB less a day, %(so_far)s dB in all; this has ended"),
    }
)
_CROSSED: Mapping[str, Promise] = MappingProxyType(
    {
        FindingKinds.DECAY: gettext_lazy("loses %(rate)s dB a day and is below -27 dBm already"),
        FindingKinds.SENDER: gettext_lazy("sends %(rate)s dB less a day; the OLT receives less than -28 dBm already"),
    }
)
_A_LINE = gettext_lazy(
    "A line through its daily medians, without what the port's other ONUs do too: %(dbm)s dBm at its end."
)
_EXPLAINED: Mapping[str, Promise] = MappingProxyType(
    {
        FindingKinds.BRANCH_DECAY: gettext_lazy(
            "Lines through the daily medians of these ONUs begin together and fall alike."
        ),
        FindingKinds.STEP: gettext_lazy(
            "Two polls in a row differ from the hour before; at most one other ONU of the port lost light with it."
        ),
        FindingKinds.DECAY: _A_LINE,
        FindingKinds.SENDER: _A_LINE,
        FindingKinds.NOISE: gettext_lazy("The last three days, compared with the median of the days before."),
        FindingKinds.FLAPPING: gettext_lazy(
            "Two readings in a row were away from the day's median each time, on more than one day."
        ),
    }
)


def explain_finding(finding: LightFinding) -> str:
    if finding.kind == FindingKinds.COMMON_STEP:
        kept = finding.onus_read - len(hit_of(finding))
        if not kept:
            return _("No ONU that was read kept its light: the fibre before the first splitter, or the port.")
        text = ngettext(
            "Two polls in a row show it; %s other ONU was read and kept its light.",
            "Two polls in a row show it; %s other ONUs were read and kept their light.",
            kept,
        )
        return text % kept
    return str(_EXPLAINED[finding.kind]) % {"dbm": number_format(finding.level_dbm or 0, 2)}


def explain_hint(finding: LightFinding) -> str:
    """Write what the other direction shows of the cause; empty where no loss is compared."""
    if finding.kind in (FindingKinds.NOISE, FindingKinds.FLAPPING):
        return ""
    if finding.hint:
        return str(finding.get_hint_display())
    if finding.upstream_db is None:
        return _("unknown: the OLT did not report what it receives of these ONUs")
    return _("unknown: the loss in both directions is within normal variation")


def load_step_folds(
    findings: QuerySet[LightFinding], cursor: TimelineCursor | None, size: int, *, after: datetime | None = None
) -> list[LightFinding]:
    """Load what several ONUs lost in common, as far as a page of so many lines may meet it; one query.

    Each has the number of its ONUs as `hit_number` and its `first_event`; with `after`, the first one since then.
    """
    is_hit = Exists(FindingOnu.objects.filter(finding=OuterRef(OuterRef("pk")), onu=OuterRef("onu_id"), is_hit=True))
    events = OnuEvent.objects.filter(
        is_hit,
        kind=EventKinds.POWER_DROP,
        pon_port_id=OuterRef("pon_port_id"),
        at__gte=OuterRef("since") - EVENT_BEFORE,
        at__lte=OuterRef("since") + EVENT_AFTER,
    )
    events = events if after is None else events.filter(at__gte=after)
    first = Subquery(events.order_by("at", "id").values("pk")[:1])
    known = findings.filter(kind=FindingKinds.COMMON_STEP).annotate(first_event=first).filter(first_event__isnull=False)
    is_newer = cursor is not None and cursor.is_newer
    if cursor is not None:
        edge = {"since__gte": cursor.at - EVENT_AFTER} if is_newer else {"since__lte": cursor.at + EVENT_BEFORE}
        known = known.filter(**edge)
    hit = FindingOnu.objects.filter(finding=OuterRef("pk"), is_hit=True).order_by().values("finding")
    order = ("since", "id") if is_newer else ("-since", "-id")
    # Some have their first event on the page before.
    return list(known.annotate(hit_number=Subquery(hit.values(n=Count("*")))).order_by(*order)[: 2 * size])


def fold_steps(timeline: QuerySet[OnuEvent], folds: Iterable[LightFinding]) -> QuerySet[OnuEvent]:
    """Leave one event of each of these findings, its first."""
    firsts = {finding.pk: first_step_of(finding) for finding in folds}
    if not firsts:
        return timeline
    # Not by the keys themselves, as in `fold_outages`.
    of_it = FindingOnu.objects.alias(number=F("finding_id") + 0).filter(
        number__in=firsts,
        is_hit=True,
        onu_id=OuterRef("onu_id"),
        finding__pon_port_id=OuterRef("pon_port_id"),
        finding__since__gte=OuterRef("at") - EVENT_AFTER,
        finding__since__lte=OuterRef("at") + EVENT_BEFORE,
    )
    return timeline.filter(~Q(kind=EventKinds.POWER_DROP) | Q(pk__in=set(firsts.values())) | ~Exists(of_it))


def first_step_of(finding: LightFinding) -> int:
    """Return the event that is left of a finding that `load_step_folds` loaded."""
    first: int = finding.first_event  # type: ignore[attr-defined]  # annotated
    return first
