"""Computes the figures of a month once and keeps them: some ports at a time, so that no poll waits for it.

A month is computed when it is over; the running one once a day, and when somebody asks. Every piece can be done again:
it writes the same rows.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Protocol
from zoneinfo import ZoneInfo

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q

from facho.hosts.models import Pause
from facho.infrastructure.statements import Select
from facho.onus.history import Resolution, read_onu, read_port
from facho.onus.history_models import STATE_CODES, HistoryStay, Metric
from facho.onus.models import Onu, PonPort
from facho.plant.days import LIMIT_DBM
from facho.plant.models import MonthRun, OnuMonth
from facho.polling.domain.availability import (
    RISE_DAYS,
    Floats,
    Ints,
    Month,
    MonthTimes,
    Span,
    account,
    add_times,
    daily_medians,
    find_rises,
    local_days,
)
from facho.polling.domain.onu_state import RunState

# Polls that ran at midnight are stored by then.
SETTLED = timedelta(minutes=15)
# A running month is computed again after this time.
RENEWED_AFTER = timedelta(days=1)
PORTS_AT_ONCE = 4
# Of a port with more ONUs than a splitter feeds, so many; and so many seconds of its polls: what bounds the memory.
ONUS_AT_ONCE = 128
_SECONDS_AT_ONCE = 7 * 86_400
# States before and after a month tell what held at its borders.
_BORDER = timedelta(hours=6)
ROWS_AT_ONCE = 500
_FIELDS = (
    "pon_port", "olt", "up_seconds", "down_seconds", "unknown_seconds", "planned_seconds", "interruptions",
    "longest_down_seconds", "light_cdbm", "lowest_day_cdbm", "weak_days", "rise_on", "rise_before_cdbm",
    "rise_after_cdbm",
)  # fmt: skip


def zone() -> ZoneInfo:
    return ZoneInfo(settings.TIME_ZONE)


def first_day(month: Month) -> date:
    return date(month.year, month.number, 1)


def is_kept(month: Month, now: datetime) -> bool:
    """Whether a month has begun, and is not so old that its history has only averages by day."""
    start, _end = month.bounds(zone())
    return now - timedelta(days=settings.FACHO_HISTORY_HOURLY_DAYS) <= start < now


def ask_for_month(month: Month, now: datetime) -> None:
    """Let a month that is kept be computed again by the process that does the chores."""
    _start, end = month.bounds(zone())
    MonthRun.objects.update_or_create(
        month=first_day(month),
        defaults={"wanted_at": now},
        create_defaults={"wanted_at": now, "covers_until": min(end, now)},
    )


_IS_BEGUN = Q(wanted_at__isnull=False) | Q(finished_at__isnull=True)
_BEGUN = Select(lambda: MonthRun.objects.filter(_IS_BEGUN).order_by().values_list("month")[:1])


def is_any_begun() -> bool:
    """Whether a month was asked for or is being computed; asked every few seconds."""
    return _BEGUN.first() is not None


def compute_some(now: datetime) -> int:
    """Compute some ports of the month that needs it; return 0 if there is nothing to do."""
    run = next_run(now)
    if run is None:
        return 0
    compute_ports(run, now)
    return 1


def compute_month(month: Month, now: datetime) -> MonthRun:
    """Compute a whole month at once, in the process that asks."""
    run = _begin(month, now)
    while compute_ports(run, now):
        run.refresh_from_db()
    run.refresh_from_db()
    return run


def next_run(now: datetime) -> MonthRun | None:
    """Return the run to continue; begin one that is due."""
    wanted = MonthRun.objects.filter(wanted_at__isnull=False).order_by("-month").first()
    if wanted is not None:
        return _begin(Month(wanted.month.year, wanted.month.month), now)
    going = MonthRun.objects.filter(finished_at__isnull=True).order_by("-month").first()
    if going is not None:
        return going
    this = Month.of(now - SETTLED, zone())
    for month in (this.shifted(-1), this):
        if is_due(month, now) and Onu.objects.filter(first_seen_at__lt=month.bounds(zone())[1]).exists():
            return _begin(month, now)
    return None


def is_due(month: Month, now: datetime) -> bool:
    run = MonthRun.objects.filter(month=first_day(month)).first()
    if run is None or run.is_final or run.finished_at is None:
        return run is None
    _start, end = month.bounds(zone())
    # A clock that was set back must not keep a month from being computed.
    return now >= end + SETTLED or abs(now - run.finished_at) >= RENEWED_AFTER


def _begin(month: Month, now: datetime) -> MonthRun:
    start, end = month.bounds(zone())
    # A day of samples becomes hours when it is old, perhaps while this runs.
    kept = (now - timedelta(days=settings.FACHO_HISTORY_DAYS - 1)).astimezone(UTC)
    folded = kept.replace(hour=0, minute=0, second=0, microsecond=0)
    run, _is_new = MonthRun.objects.update_or_create(
        month=first_day(month),
        defaults={
            "covers_until": min(end, now),
            "hourly_until": min(folded, end) if folded > start else None,
            "done_port": 0,
            "finished_at": None,
            "is_final": now >= end + SETTLED,
            "wanted_at": None,
        },
    )
    return run


def compute_ports(run: MonthRun, now: datetime) -> int:
    """Compute the next ports of a run; 0 when all are done, which ends it."""
    ports = list(PonPort.objects.filter(id__gt=run.done_port).order_by("id")[:PORTS_AT_ONCE])
    # Of two processes one continues from here; the other has written the same rows.
    mine = MonthRun.objects.filter(pk=run.pk, done_port=run.done_port, covers_until=run.covers_until)
    if not ports:
        mine.filter(finished_at__isnull=True).update(finished_at=now)
        return 0
    span = MonthSpan.of(run)
    rows = [row for port in ports for row in figures_of(port, span)]
    with transaction.atomic():
        living = set(Onu.objects.filter(id__in=[row.onu_id for row in rows]).values_list("id", flat=True))
        OnuMonth.objects.bulk_create(
            [row for row in rows if row.onu_id in living],
            batch_size=ROWS_AT_ONCE,
            update_conflicts=True,
            unique_fields=["month", "onu"],
            update_fields=_FIELDS,
        )
        mine.update(done_port=ports[-1].id)
    return len(ports)


@dataclass(frozen=True, slots=True)
class MonthSpan:
    """The computed part of a month; what was before `cut` is known by the hour."""

    month: date
    start: datetime
    end: datetime
    cut: datetime
    # Midnights of the days whose light counts: some before the month, for what rose at its beginning.
    days: Sequence[datetime]

    @classmethod
    def of(cls, run: MonthRun) -> "MonthSpan":
        start, _end = Month(run.month.year, run.month.month).bounds(zone())
        cut = min(max(run.hourly_until or start, start), run.covers_until)
        days = local_days(start - timedelta(days=2 * RISE_DAYS), run.covers_until, zone())
        return cls(run.month, start, run.covers_until, cut, days)


def load_planned(olt_ids: Collection[int], start: datetime, end: datetime) -> dict[int, list[Span]]:
    """Load what was planned on these OLTs: pauses and silences, of the OLT or of everything; one query."""
    of_them = Q(olt__isnull=True) | Q(olt_id__in=olt_ids)
    planned: dict[int, list[Span]] = {olt_id: [] for olt_id in olt_ids}
    found = Pause.objects.filter(of_them, starts_at__lt=end, ends_at__gt=start).order_by("id")
    for olt_id, begins, ends in found.values_list("olt_id", "starts_at", "ends_at"):
        for each in (olt_id,) if olt_id else olt_ids:
            planned[each].append((begins.timestamp(), ends.timestamp()))
    return planned


def figures_of(port: PonPort, span: MonthSpan) -> Iterator[OnuMonth]:
    """Compute the ONUs that are at a port now or were there last."""
    onus = Onu.objects.filter(pon_port=port, first_seen_at__lt=span.end)
    was_there = onus.filter(Q(is_present=True) | Q(absent_since__gt=span.start)).order_by("id")
    lives = {
        onu_id: (max(since, span.start).timestamp(), min(gone or span.end, span.end).timestamp())
        for onu_id, since, gone in was_there.values_list("id", "first_seen_at", "absent_since")
    }
    lives = {onu_id: life for onu_id, life in lives.items() if life[0] < life[1]}
    if not lives:
        return
    planned = load_planned((port.olt_id,), span.start, span.end)[port.olt_id]
    stays = HistoryStay.objects.filter(onu_id__in=lives).values("onu_id").annotate(ports=Count("id"))
    movers = set(stays.filter(ports__gt=1).values_list("onu_id", flat=True))
    stayed = sorted(lives.keys() - movers)
    for first in range(0, len(stayed), ONUS_AT_ONCE):
        its = _PortHistory(port.id, stayed[first : first + ONUS_AT_ONCE])
        yield from _figures(port, span, lives, planned, its)
    for onu_id in sorted(movers):
        yield from _figures(port, span, lives, planned, _OnuHistory(onu_id))


class _History(Protocol):
    """Reads one metric of some ONUs, a row each; averages by the hour, or as it was read."""

    @property
    def onu_ids(self) -> Sequence[int]: ...

    def read(self, metric: Metric, start: datetime, end: datetime, resolution: Resolution) -> tuple[Ints, Floats]: ...


@dataclass(frozen=True, slots=True)
class _PortHistory:
    pon_port_id: int
    onu_ids: Sequence[int]

    def read(self, metric: Metric, start: datetime, end: datetime, resolution: Resolution) -> tuple[Ints, Floats]:
        wanted = np.array(self.onu_ids, dtype=np.int64)
        times, parts = [], []
        for since, until in _pieces(start, end):
            series = read_port(self.pon_port_id, metric, since, until, resolution)
            values = np.full((len(wanted), len(series.at)), np.nan)
            is_here = np.isin(series.onu_ids, wanted)
            values[np.searchsorted(wanted, series.onu_ids[is_here])] = series.average[is_here]
            times.append(series.at)
            parts.append(values)
        return np.concatenate(times), np.concatenate(parts, axis=1)


def _pieces(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Cut a time where days of the history end, so that no poll and no hour is in two pieces."""
    first, last = (int(edge.timestamp()) // _SECONDS_AT_ONCE for edge in (start, end))
    inner = [datetime.fromtimestamp(number * _SECONDS_AT_ONCE, UTC) for number in range(first + 1, last + 1)]
    yield from pairwise([start, *(edge for edge in inner if edge < end), end])


@dataclass(frozen=True, slots=True)
class _OnuHistory:
    """The history of an ONU that was at several ports."""

    onu_id: int

    @property
    def onu_ids(self) -> Sequence[int]:
        return (self.onu_id,)

    def read(self, metric: Metric, start: datetime, end: datetime, resolution: Resolution) -> tuple[Ints, Floats]:
        series = read_onu(self.onu_id, metric, start, end, resolution)
        return series.at, series.average[np.newaxis, :]


def _figures(
    port: PonPort, span: MonthSpan, lives: Mapping[int, Span], planned: Sequence[Span], history: _History
) -> Iterator[OnuMonth]:
    if not history.onu_ids:
        return
    its = np.array([lives[onu_id] for onu_id in history.onu_ids])
    times = _times(history, span, its, planned)
    daily = _daily_light(history, span)
    in_month = daily[:, _days_before(span) :]
    rises = find_rises(daily)
    # A rise belongs to the month in which it has lasted long enough.
    is_told = rises.day + RISE_DAYS > _days_before(span)
    for row, onu_id in enumerate(history.onu_ids):
        light = in_month[row][np.isfinite(in_month[row])]
        values = time_values(times, row) | light_values(light)
        if rises.day[row] >= 0 and is_told[row]:
            values |= {
                "rise_on": span.days[rises.day[row]].date(),
                "rise_before_cdbm": round(float(rises.before_dbm[row]) * 100),
                "rise_after_cdbm": round(float(rises.after_dbm[row]) * 100),
            }
        yield OnuMonth(month=span.month, onu_id=onu_id, pon_port_id=port.id, olt_id=port.olt_id, **values)


def _times(history: _History, span: MonthSpan, lives: Floats, planned: Sequence[Span]) -> MonthTimes:
    """Account the part that is known by the hour and the part of single polls."""
    cut = span.cut.timestamp()
    parts = []
    if span.cut > span.start:
        at, share = history.read(Metric.STATE, span.start, span.cut, Resolution.HOURS)
        parts.append(account(at, share / 100, np.minimum(lives, cut), planned, hours=True))
    if span.cut < span.end:
        at, codes = history.read(Metric.STATE, span.cut - _BORDER, span.end + _BORDER, Resolution.SAMPLES)
        parts.append(account(at, share_online(codes), np.maximum(lives, cut), planned))
    return add_times(parts)


def share_online(codes: Floats) -> Floats:
    """Return 1 for online, 0 for offline, NaN for what was not read or is unknown."""
    share = np.full_like(codes, np.nan)
    share[codes == STATE_CODES[RunState.ONLINE]] = 1.0
    share[codes == STATE_CODES[RunState.OFFLINE]] = 0.0
    return share


def _daily_light(history: _History, span: MonthSpan) -> Floats:
    """Daily medians, some days before the month included: of hours where nothing else is kept."""
    start, end = span.days[0], span.days[-1]
    at, values = history.read(
        Metric.RX_POWER, max(start, span.cut) if span.cut > span.start else start, end, Resolution.SAMPLES
    )
    daily = daily_medians(at, values, span.days)
    if span.cut > span.start:
        hours = history.read(Metric.RX_POWER, start, span.cut, Resolution.HOURS)
        by_hour = daily_medians(*hours, span.days)
        daily = np.where(np.isfinite(daily), daily, by_hour)
    # The day that is not over has no median yet.
    is_over = np.array([edge <= span.end for edge in span.days[1:]], dtype=bool)
    return np.asarray(np.where(is_over, daily, np.nan))


def _days_before(span: MonthSpan) -> int:
    return sum(day < span.start for day in span.days)


def time_values(times: MonthTimes, row: int) -> dict[str, int]:
    """Round so that the parts still add up to the whole."""
    up, down, unknown, planned = (float(each[row]) for each in (times.up, times.down, times.unknown, times.planned))
    edges = [round(edge) for edge in (0.0, up, up + down, up + down + unknown, up + down + unknown + planned)]
    names = ("up_seconds", "down_seconds", "unknown_seconds", "planned_seconds")
    seconds = {name: after - before for name, (before, after) in zip(names, pairwise(edges), strict=True)}
    longest = min(round(float(times.longest_down[row])), seconds["down_seconds"])
    return seconds | {"interruptions": int(times.interruptions[row]), "longest_down_seconds": longest}


def light_values(light: Floats) -> dict[str, int | None]:
    if not light.size:
        return {"light_cdbm": None, "lowest_day_cdbm": None, "weak_days": 0}
    return {
        "light_cdbm": round(float(np.median(light)) * 100),
        "lowest_day_cdbm": round(float(light.min()) * 100),
        "weak_days": int((light < LIMIT_DBM).sum()),
    }
