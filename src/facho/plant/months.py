"""Computes the figures of a month once and keeps them: some ports at a time, so that no poll waits for it.

A month is computed when it is over; the running one once a day, and when somebody asks. Every piece can be done again:
it writes the same rows.
"""

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q

from facho.hosts.models import Pause
from facho.infrastructure.bulk import insert_values
from facho.infrastructure.statements import GivenMany, Row, Select
from facho.onus.history import Resolution, read_onu_metrics, read_port_metrics
from facho.onus.history_codec import (
    DAY_SECONDS,
    HistoryGrid,
    UnreadableBlock,
    decode_bundle,
    encode_bundle,
)
from facho.onus.history_models import STATE_CODES, HistoryStay, Metric, from_steps, to_steps
from facho.onus.models import Onu, PonPort
from facho.plant.days import LIMIT_DBM
from facho.plant.models import MonthRun, OnuMonth, PortMonth
from facho.polling.domain.availability import (
    RISE_DAYS,
    Floats,
    Ints,
    Month,
    MonthTimes,
    Span,
    account,
    add_times,
    clip,
    daily_medians,
    find_rises,
    local_days,
    merge,
)
from facho.polling.domain.light import row_medians
from facho.polling.domain.onu_state import RunState

# Polls that ran at midnight are stored by then.
SETTLED = timedelta(minutes=15)
# A running month is computed again after this time.
RENEWED_AFTER = timedelta(days=1)
PORTS_AT_ONCE = 8
# Of a port with more ONUs than a splitter feeds, so many; and so many days of all of them: what bounds the memory.
ONUS_AT_ONCE = 128
_ONU_DAYS_AT_ONCE = 1_024
_MILLISECONDS = 1_000
_METRICS = (Metric.STATE, Metric.RX_POWER)
# States before and after a month tell what held at its borders.
_BORDER = timedelta(hours=6)
_FIELDS = (
    "month", "onu", "pon_port", "olt", "up_seconds", "down_seconds", "unknown_seconds", "planned_seconds",
    "interruptions", "longest_down_seconds", "light_cdbm", "lowest_day_cdbm", "weak_days", "rise_on",
    "rise_before_cdbm", "rise_after_cdbm",
)  # fmt: skip
_ONU = _FIELDS.index("onu")
_LIVING = Select(lambda: Onu.objects.filter(GivenMany("onus", "id")).order_by().values_list("id"))
_MOVERS = Select(
    lambda: (
        HistoryStay.objects.filter(GivenMany("onus", "onu_id"))
        .order_by()
        .values("onu_id")
        .annotate(ports=Count("id"))
        .filter(ports__gt=1)
        .values_list("onu_id")
    )
)


def zone() -> ZoneInfo:
    return ZoneInfo(settings.TIME_ZONE)


def first_day(month: Month) -> date:
    return date(month.year, month.number, 1)


def is_kept(month: Month, now: datetime) -> bool:
    """Whether a month has begun, and is not so old that its history has only averages by day."""
    start, _end = month.bounds(zone())
    return now - timedelta(days=settings.FACHO_HISTORY_HOURLY_DAYS) <= start < now


def ask_for_month(month: Month, now: datetime) -> None:
    """Request that a stored month is recomputed in full, by the process that runs the background tasks."""
    _start, end = month.bounds(zone())
    PortMonth.objects.filter(month=first_day(month)).delete()
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
    PortMonth.objects.filter(month=first_day(month)).delete()
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
    """Whether a month has to be computed: not on its first day, which has the last month to compute."""
    run = MonthRun.objects.filter(month=first_day(month)).first()
    start, end = month.bounds(zone())
    if run is None:
        return now >= start + RENEWED_AFTER
    if run.is_final or run.finished_at is None:
        return False
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
    known = {row.pon_port_id: row for row in PortMonth.objects.filter(pon_port__in=ports)}
    lives, rows, kept = _Lives.load(ports, span), [], []
    planned = load_planned({port.olt_id for port in ports}, span.start, span.end)
    for port in ports:
        found = _figures_of(port, span, lives, planned[port.olt_id], known.get(port.id))
        rows += found.rows
        # Computing an old month again keeps what is known of the running one.
        kept += [found.kept] if found.kept and (port.id not in known or known[port.id].month <= span.month) else []
    with transaction.atomic():
        living = {onu_id for (onu_id,) in _LIVING.rows(onus=[row[_ONU] for row in rows])}
        insert_values(OnuMonth, _FIELDS, [row for row in rows if row[_ONU] in living], unique=["month", "onu"])
        PortMonth.objects.bulk_create(
            kept,
            update_conflicts=True,
            unique_fields=["pon_port"],
            update_fields=["month", "until", "planned_crc", "data"],
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

    @property
    def settled(self) -> int:
        """How many of the days ended long enough ago that no poll changes them."""
        return max(sum(day <= self.end - _BORDER for day in self.days) - 1, 0)


def load_planned(olt_ids: Collection[int], start: datetime, end: datetime) -> dict[int, list[Span]]:
    """Load what was planned on these OLTs: pauses and silences, of the OLT or of everything; one query."""
    of_them = Q(olt__isnull=True) | Q(olt_id__in=olt_ids)
    planned: dict[int, list[Span]] = {olt_id: [] for olt_id in olt_ids}
    found = Pause.objects.filter(of_them, starts_at__lt=end, ends_at__gt=start).order_by("id")
    for olt_id, begins, ends in found.values_list("olt_id", "starts_at", "ends_at"):
        for each in (olt_id,) if olt_id else olt_ids:
            planned[each].append((begins.timestamp(), ends.timestamp()))
    return planned


@dataclass(frozen=True, slots=True)
class PortFigures:
    """The rows of a port's ONUs, and what the next ones begin with; None if no more days are over."""

    rows: list[Row]
    kept: PortMonth | None


@dataclass(frozen=True, slots=True)
class _Lives:
    """When each ONU of some ports lived in the computed time, by port; and who of them was at several ports."""

    of_port: Mapping[int, Mapping[int, Span]]
    movers: Collection[int]

    @classmethod
    def load(cls, ports: Collection[PonPort], span: MonthSpan) -> "_Lives":
        """Load the ONUs that are at these ports now or were there last; two queries."""
        onus = Onu.objects.filter(pon_port__in=ports, first_seen_at__lt=span.end)
        was_there = onus.filter(Q(is_present=True) | Q(absent_since__gt=span.start)).order_by("id")
        found: dict[int, dict[int, Span]] = {port.id: {} for port in ports}
        for port_id, onu_id, since, gone in was_there.values_list("pon_port_id", "id", "first_seen_at", "absent_since"):
            start, end = max(since, span.start).timestamp(), min(gone or span.end, span.end).timestamp()
            if start < end:
                found[port_id][onu_id] = start, end
        several = _MOVERS.rows(onus=[onu_id for lives in found.values() for onu_id in lives])
        return cls(found, {onu_id for (onu_id,) in several})


def _figures_of(
    port: PonPort, span: MonthSpan, all_lives: _Lives, planned: Sequence[Span], known: PortMonth | None
) -> PortFigures:
    """Compute the ONUs of a port; days that are `known` are not read again."""
    lives, movers = all_lives.of_port[port.id], all_lives.of_port[port.id].keys() & all_lives.movers
    stayed = sorted(lives.keys() - movers)
    before = _DaysBefore.of(known, span, planned) if known else None
    rows: list[Row] = []
    parts = []
    for first in range(0, len(stayed), ONUS_AT_ONCE):
        its = _PortHistory(port.id, stayed[first : first + ONUS_AT_ONCE], len(stayed))
        account = _MonthAccount(span, planned, its, np.array([lives[onu_id] for onu_id in its.onu_ids]))
        parts.append(account.compute(before))
        rows += account.rows_of(port)
    for onu_id in sorted(movers):
        account = _MonthAccount(span, planned, _OnuHistory(onu_id), np.array([lives[onu_id]]))
        account.compute(None)
        rows += account.rows_of(port)
    ends_at = span.days[span.settled]
    is_new = parts and span.settled > _days_before(span) and (before is None or before.until < ends_at)
    return PortFigures(rows, _DaysBefore.join(parts, ends_at).packed(port, span, planned) if is_new else None)


def _crc(planned: Sequence[Span], start: datetime, until: datetime) -> int:
    return zlib.crc32(repr(merge(clip(planned, start.timestamp(), until.timestamp()))).encode())


_NAMES = tuple(each.name for each in fields(MonthTimes))


@dataclass(frozen=True, slots=True, eq=False)
class _DaysBefore:
    """What the days of a month that are over add up to, a row for each ONU of a port, and the light of each."""

    until: datetime
    onu_ids: Ints
    times: MonthTimes
    daily: Floats

    @classmethod
    def of(cls, known: PortMonth, span: MonthSpan, planned: Sequence[Span]) -> "_DaysBefore | None":
        """Unpack what is known; None if it is of another month, or of another maintenance or clock than now."""
        if known.month != span.month or not max(span.start, span.cut) <= known.until <= span.end:
            return None
        try:
            sums, light = (grid for _, _, grid in decode_bundle(known.data))
        except UnreadableBlock:
            return None
        midnights = [int(day.timestamp()) for day in span.days if day <= known.until]
        if known.planned_crc != _crc(planned, span.start, known.until) or [*light.at.tolist()] != midnights[:-1]:
            return None
        columns = dict(zip(_NAMES, sums.layers[0].T / _MILLISECONDS, strict=True))
        times = MonthTimes(**columns | {"interruptions": sums.layers[0][:, _NAMES.index("interruptions")]})
        return cls(known.until, sums.onu_ids, times, from_steps(Metric.RX_POWER, light.layers[0], is_summary=False))

    @classmethod
    def join(cls, parts: "Sequence[_DaysBefore]", until: datetime) -> "_DaysBefore":
        """Put the ONUs of parts together, which are in order."""
        times = {name: np.concatenate([getattr(part.times, name) for part in parts]) for name in _NAMES}
        onu_ids, daily = (np.concatenate([getattr(part, name) for part in parts]) for name in ("onu_ids", "daily"))
        return cls(until, onu_ids, MonthTimes(**times), daily)

    def packed(self, port: PonPort, span: MonthSpan, planned: Sequence[Span]) -> PortMonth:
        columns = [getattr(self.times, name) * (1 if name == "interruptions" else _MILLISECONDS) for name in _NAMES]
        sums = np.rint(np.stack(columns, axis=1)).astype(np.int64)
        at = np.array([int(day.timestamp()) for day in span.days[: span.settled]], dtype=np.int64)
        light = to_steps(Metric.RX_POWER, self.daily.ravel()).reshape(self.daily.shape)
        grids = (
            HistoryGrid(self.onu_ids, np.arange(len(_NAMES)), sums[np.newaxis]),
            HistoryGrid(self.onu_ids, at, light[np.newaxis]),
        )
        block = encode_bundle((port.id, number, grid) for number, grid in enumerate(grids, start=1))
        crc = _crc(planned, span.start, self.until)
        return PortMonth(pon_port=port, month=span.month, until=self.until, planned_crc=crc, data=block)

    def of_onus(self, onu_ids: Ints, lives: Floats) -> "_DaysBefore | None":
        """Line some ONUs up; None if one lived longer or shorter than it seemed then."""
        places = np.minimum(np.searchsorted(self.onu_ids, onu_ids), len(self.onu_ids) - 1)
        is_there = self.onu_ids[places] == onu_ids
        times = MonthTimes(**{name: np.where(is_there, getattr(self.times, name)[places], 0) for name in _NAMES})
        alive = np.minimum(lives, self.until.timestamp())
        accounted = times.up + times.down + times.unknown + times.planned
        if (np.abs(alive[:, 1] - alive[:, 0] - accounted) > 1).any():
            return None
        daily = np.where(is_there[:, np.newaxis], self.daily[places], np.nan)
        return _DaysBefore(self.until, onu_ids, times, daily)


class _History(Protocol):
    """Reads state and light of some ONUs, a row each; averages by the hour, or as they were read."""

    @property
    def onu_ids(self) -> Sequence[int]: ...

    def read(self, start: datetime, end: datetime, resolution: Resolution) -> "_Read": ...


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """Values of one metric at some moments: a row for each ONU."""

    at: Ints
    values: Floats

    def between(self, start: datetime, end: datetime) -> "_Values":
        first, last = np.searchsorted(self.at, [start.timestamp(), end.timestamp()])
        return _Values(self.at[first:last], self.values[:, first:last])


_Read = Mapping[Metric, _Values]


@dataclass(frozen=True, slots=True)
class _PortHistory:
    pon_port_id: int
    onu_ids: Sequence[int]
    # With those that are not wanted.
    onus: int

    def read(self, start: datetime, end: datetime, resolution: Resolution) -> _Read:
        wanted = np.array(self.onu_ids, dtype=np.int64)
        parts: dict[Metric, list[_Values]] = {metric: [] for metric in _METRICS}
        for since, until in _pieces(start, end, _ONU_DAYS_AT_ONCE // self.onus):
            read = read_port_metrics(self.pon_port_id, _METRICS, since, until, resolution)
            for metric, its in parts.items():
                series = read[metric]
                values = np.full((len(wanted), len(series.at)), np.nan)
                is_here = np.isin(series.onu_ids, wanted)
                values[np.searchsorted(wanted, series.onu_ids[is_here])] = series.average[is_here]
                its.append(_Values(series.at, values))
        return {
            metric: _Values(
                np.concatenate([each.at for each in its]), np.concatenate([each.values for each in its], axis=1)
            )
            for metric, its in parts.items()
        }


def _pieces(start: datetime, end: datetime, days: int) -> Iterator[tuple[datetime, datetime]]:
    """Cut a time where days of the history end, so that no poll and no hour is in two pieces."""
    length = max(days, 1) * DAY_SECONDS
    first, last = (int(edge.timestamp()) // length for edge in (start, end))
    inner = [datetime.fromtimestamp(number * length, UTC) for number in range(first + 1, last + 1)]
    yield from pairwise([start, *(edge for edge in inner if edge < end), end])


@dataclass(frozen=True, slots=True)
class _OnuHistory:
    """The history of an ONU that was at several ports."""

    onu_id: int

    @property
    def onu_ids(self) -> Sequence[int]:
        return (self.onu_id,)

    def read(self, start: datetime, end: datetime, resolution: Resolution) -> _Read:
        read = read_onu_metrics(self.onu_id, _METRICS, start, end, resolution)
        return {
            metric: _Values(series.at, series.average[np.newaxis, :])
            for metric, series in ((each, read[each]) for each in _METRICS)
        }


@dataclass(slots=True)
class _MonthAccount:
    """The month of some ONUs, whose lives are a row each, from their history."""

    span: MonthSpan
    planned: Sequence[Span]
    history: _History
    lives: Floats
    times: MonthTimes = field(init=False)
    daily: Floats = field(init=False)

    def compute(self, known: _DaysBefore | None) -> _DaysBefore:
        """Compute times and daily light; return what the days that are over add up to."""
        span, onu_ids = self.span, np.array(self.history.onu_ids, dtype=np.int64)
        before = known.of_onus(onu_ids, self.lives) if known else None
        parts, begins_at = [], before.until if before else span.cut
        days = sum(day < begins_at for day in span.days) if before else 0
        hours = None
        if before:
            parts.append(before.times)
        elif span.cut > span.start:
            hours = self.history.read(span.days[0], span.cut, Resolution.HOURS)
            share, lives = (
                hours[Metric.STATE].between(span.start, span.cut),
                np.minimum(self.lives, span.cut.timestamp()),
            )
            parts.append(account(share.at, share.values / 100, lives, self.planned, hours=True))
        reads_at = begins_at - _BORDER if parts else span.days[0]
        polls = self.history.read(reads_at, span.end + _BORDER, Resolution.SAMPLES)
        ends_at = max(span.days[span.settled], begins_at)
        until_then = add_times([*parts, self._account(polls, begins_at, ends_at)])
        self.times = add_times([until_then, self._account(polls, ends_at, span.end)])
        light = polls[Metric.RX_POWER].between(begins_at if parts else reads_at, span.days[-1])
        daily = daily_medians(light.at, light.values, span.days[days:])
        if hours:
            by_hour = hours[Metric.RX_POWER]
            daily = np.where(np.isfinite(daily), daily, daily_medians(by_hour.at, by_hour.values, span.days))
        daily = np.concatenate([before.daily, daily], axis=1) if before else daily
        # The day that is not over has no median yet.
        self.daily = np.where(np.array([edge <= span.end for edge in span.days[1:]], dtype=bool), daily, np.nan)
        return _DaysBefore(ends_at, onu_ids, until_then, self.daily[:, : span.settled])

    def _account(self, polls: _Read, start: datetime, end: datetime) -> MonthTimes:
        codes = polls[Metric.STATE].between(start - _BORDER, end + _BORDER)
        lives = np.clip(self.lives, start.timestamp(), end.timestamp())
        return account(codes.at, share_online(codes.values), lives, self.planned)

    def rows_of(self, port: PonPort) -> Iterator[Row]:
        """Make the rows of `_FIELDS`, after they were computed."""
        span, days_before, onus = self.span, _days_before(self.span), self.history.onu_ids
        rises = find_rises(self.daily)
        # A rise belongs to the month in which it has lasted long enough.
        is_told = (rises.day >= 0) & (rises.day + RISE_DAYS > days_before)
        columns: list[list[Any]] = [
            *whole_seconds(self.times),
            *light_columns(self.daily[:, days_before:]),
            [
                span.days[day].date() if is_shown else None
                for day, is_shown in zip(rises.day.tolist(), is_told, strict=True)
            ],
            *(_hundredths(np.where(is_told, dbm, np.nan)) for dbm in (rises.before_dbm, rises.after_dbm)),
        ]
        return ((span.month, onu_id, port.id, port.olt_id, *row) for onu_id, *row in zip(onus, *columns, strict=True))


def share_online(codes: Floats) -> Floats:
    """Return 1 for online, 0 for offline, NaN for what was not read or is unknown."""
    share = np.full_like(codes, np.nan)
    share[codes == STATE_CODES[RunState.ONLINE]] = 1.0
    share[codes == STATE_CODES[RunState.OFFLINE]] = 0.0
    return share


def _days_before(span: MonthSpan) -> int:
    return sum(day < span.start for day in span.days)


def whole_seconds(times: MonthTimes) -> list[list[int]]:
    """Round so that the parts still add up to the whole; interruptions and the longest of them follow."""
    edges = np.rint(np.cumsum([times.up, times.down, times.unknown, times.planned], axis=0))
    parts = np.diff(edges, axis=0, prepend=0.0)
    longest = np.minimum(np.rint(times.longest_down), parts[1])
    return [column.astype(np.int64).tolist() for column in (*parts, times.interruptions, longest)]


def light_columns(daily_dbm: Floats) -> list[list[int | None]]:
    """Return each ONU's median and lowest day in hundredths, and how many of its days were too weak."""
    lowest = np.where(np.isfinite(daily_dbm), daily_dbm, np.inf).min(axis=1, initial=np.inf)
    weak = (daily_dbm < LIMIT_DBM).sum(axis=1)
    return [_hundredths(row_medians(daily_dbm)), _hundredths(lowest), weak.tolist()]


def _hundredths(dbm: Floats) -> list[int | None]:
    is_known = np.isfinite(dbm)
    steps = np.rint(np.where(is_known, dbm, 0.0) * 100).astype(np.int64)
    return [step if known else None for step, known in zip(steps.tolist(), is_known.tolist(), strict=True)]
