"""Reads the report of a month: sums by OLT, port and zone, the worst customers, repairs that helped; within a scope."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from statistics import median
from typing import Any

from django.db.models import Avg, Count, F, Q, QuerySet, Sum
from django.db.models.functions import Floor

from facho.accounts.scope import EVERYTHING, OltScope
from facho.hosts.models import Olt
from facho.onus.models import Onu, Outage, PonPort
from facho.onus.outages import breaks_of
from facho.onus.words import OutageScopes
from facho.plant.days import LIMIT_DBM
from facho.plant.models import MonthRun, OnuMonth, Zone
from facho.plant.months import first_day, load_planned, zone
from facho.polling.domain.availability import Month, Span, availability, clip, length, percent_shares
from facho.polling.domain.light import COMMON_ONUS

WORST = 50
_LIMIT_CDBM = round(LIMIT_DBM * 100)
# The days of a plot around a repair.
AROUND_REPAIR = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class ReportTimes:
    """Seconds of some ONUs together; the four add up to all of their time."""

    up: int = 0
    down: int = 0
    unknown: int = 0
    planned: int = 0

    @property
    def availability(self) -> float | None:
        """Percent of known time, cut to thousandths."""
        return availability(self.up, self.down)

    @property
    def shares(self) -> list[float]:
        """Percentages of up, down, unknown and planned, which add up to 100."""
        return percent_shares((self.up, self.down, self.unknown, self.planned))


@dataclass(frozen=True, slots=True)
class ReportGroup:
    """All ONUs of an OLT, a PON port or a zone in a month; the last row of zones is of ONUs without one."""

    id: int
    name: str
    olt_id: int | None
    olt: str
    place: tuple[int, int, int] | None
    onus: int
    times: ReportTimes
    interruptions: int
    light_dbm: float | None
    weak_onus: int
    # Outages that touched it, and how long they were without what was planned, overlaps counted once.
    outages: int = 0
    outage_seconds: int = 0


@dataclass(frozen=True, slots=True)
class ReportOnu:
    """The month of one customer."""

    id: int
    code: str
    customer: str
    description: str
    olt_id: int
    olt: str
    port: str
    times: ReportTimes
    interruptions: int
    longest_down_seconds: int
    light_dbm: float | None
    lowest_day_dbm: float | None
    weak_days: int


@dataclass(frozen=True, slots=True)
class ReportRepair:
    """Light that rose to stay: of one ONU, or of several of a port on the same day; then `id` is one of them."""

    id: int
    on: date
    onus: tuple[int, ...]
    code: str
    customer: str
    olt_id: int
    olt: str
    port: str
    before_dbm: float
    after_dbm: float

    @property
    def gain_db(self) -> float:
        return round(self.after_dbm - self.before_dbm, 2)


@dataclass(frozen=True, slots=True)
class ReportSummary:
    onus: int
    times: ReportTimes
    interruptions: int
    onus_without_interruption: int
    light_dbm: float | None
    weak_onus: int
    repairs: int


@dataclass(frozen=True, slots=True)
class ReportQuestion:
    """Whose month is wanted: a run that was computed, the OLTs in scope, and what narrows them."""

    run: MonthRun
    scope: OltScope = EVERYTHING
    olt_id: int | None = None
    zone_id: int | None = None

    @property
    def month(self) -> Month:
        return Month(self.run.month.year, self.run.month.month)

    @property
    def start(self) -> datetime:
        return self.month.bounds(zone())[0]

    def rows(self) -> QuerySet[OnuMonth]:
        rows = self.scope.narrow(OnuMonth.objects.filter(month=self.run.month))
        if self.olt_id is not None:
            rows = rows.filter(olt_id=self.olt_id)
        if self.zone_id is not None:
            rows = rows.filter(onu__attachment__box__zone_id=self.zone_id)
        return rows.order_by()


def load_runs() -> list[MonthRun]:
    """Load the months that were computed at least once, the latest first; one query."""
    return list(MonthRun.objects.filter(Q(finished_at__isnull=False) | Q(done_port__gt=0)).order_by("-month"))


def load_run(month: Month) -> MonthRun | None:
    return MonthRun.objects.filter(month=first_day(month)).first()


_SUMS = {
    "onus": Count("id"),
    "up": Sum("up_seconds"),
    "down": Sum("down_seconds"),
    "unknown": Sum("unknown_seconds"),
    "planned": Sum("planned_seconds"),
    "cuts": Sum("interruptions"),
    "light": Avg("light_cdbm"),
    "weak": Count("id", filter=Q(light_cdbm__lt=_LIMIT_CDBM)),
}


def load_summary(question: ReportQuestion) -> ReportSummary:
    """Add up everything in scope; one query."""
    found = question.rows().aggregate(
        **_SUMS,
        steady=Count("id", filter=Q(interruptions=0)),
        repairs=Count("id", filter=Q(rise_on__isnull=False)),
    )
    return ReportSummary(
        onus=found["onus"],
        times=_times(found),
        interruptions=found["cuts"] or 0,
        onus_without_interruption=found["steady"],
        light_dbm=_dbm(found["light"]),
        weak_onus=found["weak"],
        repairs=found["repairs"],
    )


def load_olts(question: ReportQuestion) -> list[ReportGroup]:
    """Load the OLTs by name; four queries."""
    found = _sums(question, "olt_id")
    names = dict(Olt.objects.filter(id__in=found).values_list("id", "name"))
    outages = load_outage_spans(question, names)
    groups = []
    for olt_id, name in names.items():
        row, (count, seconds) = _group(found[olt_id], olt_id, name), outage_figures(outages[olt_id])
        groups.append(replace(row, olt_id=olt_id, olt=name, outages=count, outage_seconds=seconds))
    return sorted(groups, key=lambda group: group.name)


def load_ports(question: ReportQuestion) -> list[ReportGroup]:
    """Load the PON ports by place; four queries."""
    found = _sums(question, "pon_port_id")
    ports = (
        PonPort.objects.filter(id__in=found)
        .select_related("olt")
        .only("olt__name", "frame", "slot", "port", "is_known")
    )
    known = sorted(ports, key=lambda port: (port.olt.name, port.frame, port.slot, port.port))
    outages = load_outage_spans(question, {port.olt_id: port.olt.name for port in known})
    groups = []
    for port in known:
        its = [each for each in outages[port.olt_id] if each.hits(port)]
        place = (port.frame, port.slot, port.port) if port.is_known else None
        row, (count, seconds) = _group(found[port.id], port.id, str(port)), outage_figures(its)
        row = replace(row, outages=count, outage_seconds=seconds)
        groups.append(replace(row, olt_id=port.olt_id, olt=port.olt.name, place=place))
    return groups


def load_zones(question: ReportQuestion) -> list[ReportGroup]:
    """Load the zones by name, ONUs without one at the end; two queries."""
    found = _sums(question, "onu__attachment__box__zone_id")
    names = dict(Zone.objects.filter(id__in=[key for key in found if key]).values_list("id", "name"))
    groups = [_group(found[key], key, name) for key, name in sorted(names.items(), key=lambda pair: pair[1])]
    return groups + [_group(found[key], 0, "") for key in found if key is None]


def load_longest_down(question: ReportQuestion, count: int = WORST) -> list[ReportOnu]:
    """Load the customers that were down longest; three queries."""
    return _onus(question.rows().filter(down_seconds__gt=0).order_by("-down_seconds", "onu_id")[:count])


def load_most_interrupted(question: ReportQuestion, count: int = WORST) -> list[ReportOnu]:
    worst = question.rows().filter(interruptions__gt=0)
    return _onus(worst.order_by("-interruptions", "-down_seconds", "onu_id")[:count])


def load_weakest(question: ReportQuestion, count: int = WORST) -> list[ReportOnu]:
    """Load the customers whose light was too weak on a day at least, by the median of the month."""
    weak = question.rows().filter(Q(weak_days__gt=0) | Q(light_cdbm__lt=_LIMIT_CDBM))
    return _onus(weak.order_by("light_cdbm", "onu_id")[:count])


def load_repairs(question: ReportQuestion, count: int = WORST) -> list[ReportRepair]:
    """Load light that rose to stay, what several ONUs of a port share as one; three queries."""
    rows = (
        question.rows().filter(rise_on__isnull=False).select_related("olt").order_by("pon_port_id", "rise_on", "onu_id")
    )
    shown = rows.only("rise_on", "rise_before_cdbm", "rise_after_cdbm", "onu_id", "pon_port_id", "olt_id", "olt__name")
    groups: defaultdict[tuple[int, date], list[OnuMonth]] = defaultdict(list)
    for row in shown:
        if row.rise_on is not None:
            groups[row.pon_port_id, row.rise_on].append(row)
    its = [[row] for group in groups.values() if len(group) < COMMON_ONUS for row in group]
    its += [group for group in groups.values() if len(group) >= COMMON_ONUS]
    its.sort(key=lambda group: (-len(group), -_gain(group), group[0].onu_id))
    shown_groups = its[:count]
    onus = _named([row.onu_id for group in shown_groups for row in group[:1]])
    return [_repair(group, onus[group[0].onu_id]) for group in shown_groups]


def load_histogram(question: ReportQuestion) -> list[tuple[int, int]]:
    """Count ONUs by the whole dB at or below their light, weakest first, without holes; one query."""
    found = question.rows().filter(light_cdbm__isnull=False).annotate(step=Floor(F("light_cdbm") / 100.0))
    counts = {int(step): number for step, number in found.values_list("step").annotate(Count("id"))}
    return [(step, counts.get(step, 0)) for step in range(min(counts), max(counts) + 1)] if counts else []


def load_onus(question: ReportQuestion) -> QuerySet[OnuMonth]:
    """Select every ONU of the month with its names, for lists and files."""
    names = ("onu__pon_port", "onu__customer", "olt", "pon_port")
    return question.rows().select_related(*names).order_by("onu_id")


def shape_onus(rows: Iterable[OnuMonth]) -> list[ReportOnu]:
    """Shape rows of `load_onus`; no query."""
    return [_onu(row, row.onu, row.olt.name, str(row.pon_port)) for row in rows]


@dataclass(frozen=True, slots=True)
class OutageSpans:
    """When an outage lasted within the month, without its breaks and what was planned."""

    scope: str
    place: tuple[int, int, int]
    spans: tuple[Span, ...]
    planned: tuple[Span, ...]

    def hits(self, port: PonPort) -> bool:
        if self.scope == OutageScopes.PON:
            return self.place == (port.frame, port.slot, port.port)
        return self.scope != OutageScopes.CARD or self.place[:2] == (port.frame, port.slot)


def load_outage_spans(question: ReportQuestion, olt_ids: Iterable[int]) -> dict[int, list[OutageSpans]]:
    """Load the outages of these OLTs that touched the month, those of the whole network too; two queries."""
    start, end, wanted = question.start, question.run.covers_until, list(olt_ids)
    planned = load_planned(wanted, start, end)
    spans: dict[int, list[OutageSpans]] = {olt_id: [] for olt_id in wanted}
    of_them = Q(olt__isnull=True) | Q(olt_id__in=wanted)
    found = Outage.objects.filter(Q(ended_at__isnull=True) | Q(ended_at__gt=start), of_them, started_at__lt=end)
    # What is part of a larger outage is counted with that one.
    for outage in found.filter(part_of__isnull=True).order_by("id"):
        edges = [outage.started_at, *(at for each in breaks_of(outage) for at in each), outage.ended_at or end]
        seconds = [edge.timestamp() for edge in edges]
        lasted = clip(zip(seconds[::2], seconds[1::2], strict=True), start.timestamp(), end.timestamp())
        place = (outage.frame, outage.slot, outage.port)
        for olt_id in wanted if outage.olt_id is None else (outage.olt_id,):
            spans[olt_id].append(OutageSpans(outage.scope, place, tuple(lasted), tuple(planned[olt_id])))
    return spans


def outage_figures(outages: Sequence[OutageSpans]) -> tuple[int, int]:
    """Count outages that lasted longer than what was planned, and their time, each moment once."""
    counted = [each for each in outages if length(each.spans, without=each.planned) > 0]
    spans = [span for each in counted for span in each.spans]
    seconds = length(spans, without=counted[0].planned) if counted else 0.0
    return len(counted), round(seconds)


def _sums(question: ReportQuestion, key: str) -> dict[Any, dict[str, Any]]:
    return {row[key]: row for row in question.rows().values(key).annotate(**_SUMS)}


def _times(found: Mapping[str, Any]) -> ReportTimes:
    return ReportTimes(*(found[name] or 0 for name in ("up", "down", "unknown", "planned")))


def times_of(row: OnuMonth) -> ReportTimes:
    return ReportTimes(row.up_seconds, row.down_seconds, row.unknown_seconds, row.planned_seconds)


def _dbm(cdbm: float | None) -> float | None:
    return None if cdbm is None else round(float(cdbm) / 100, 2)


def _group(found: Mapping[str, Any], group_id: int, name: str) -> ReportGroup:
    return ReportGroup(
        id=group_id,
        name=name,
        olt_id=None,
        olt="",
        place=None,
        onus=found["onus"],
        times=_times(found),
        interruptions=found["cuts"],
        light_dbm=_dbm(found["light"]),
        weak_onus=found["weak"],
    )


def _onus(rows: Iterable[OnuMonth]) -> list[ReportOnu]:
    found = list(rows)
    onus = _named([row.onu_id for row in found])
    olts = dict(Olt.objects.filter(id__in={row.olt_id for row in found}).values_list("id", "name"))
    return [_onu(row, onus[row.onu_id], olts[row.olt_id], str(onus[row.onu_id].pon_port)) for row in found]


def _named(onu_ids: Iterable[int]) -> dict[int, Onu]:
    onus = Onu.objects.filter(id__in=list(onu_ids)).select_related("pon_port", "customer").order_by()
    return {onu.id: onu for onu in onus}


def customer_of(onu: Onu) -> str:
    customer = getattr(onu, "customer", None)
    return customer.label if customer else ""


def _onu(row: OnuMonth, onu: Onu, olt: str, port: str) -> ReportOnu:
    return ReportOnu(
        id=row.onu_id,
        code=onu.serial or onu.mac or f"{port}/{onu.onu_id}",
        customer=customer_of(onu),
        description=onu.description,
        olt_id=row.olt_id,
        olt=olt,
        port=port,
        times=times_of(row),
        interruptions=row.interruptions,
        longest_down_seconds=row.longest_down_seconds,
        light_dbm=_dbm(row.light_cdbm),
        lowest_day_dbm=_dbm(row.lowest_day_cdbm),
        weak_days=row.weak_days,
    )


def _gain(group: Sequence[OnuMonth]) -> float:
    return median((row.rise_after_cdbm or 0) - (row.rise_before_cdbm or 0) for row in group)


def _repair(group: Sequence[OnuMonth], onu: Onu) -> ReportRepair:
    first = group[0]
    before, after = (median(getattr(row, name) for row in group) for name in ("rise_before_cdbm", "rise_after_cdbm"))
    return ReportRepair(
        id=onu.id,
        on=first.rise_on or first.month,
        onus=tuple(row.onu_id for row in group),
        code=onu.serial or onu.mac or f"{onu.pon_port}/{onu.onu_id}",
        customer=customer_of(onu) or onu.description,
        olt_id=first.olt_id,
        olt=first.olt.name,
        port=str(onu.pon_port),
        before_dbm=round(before / 100, 2),
        after_dbm=round(after / 100, 2),
    )
