"""Judges light once a day by what each day is summed up to: decays, of one ONU or of a branch, and unsteady light.

A block per port keeps the days: to judge them takes no more of the history than the day that is over.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from typing import Any, Final

import numpy as np
from django.db import transaction
from django.db.models import Q
from numpy.typing import NDArray

from facho.infrastructure.bulk import insert_values
from facho.onus.history import Resolution, read_port_metrics
from facho.onus.history_codec import (
    BUNDLE,
    DAY_SECONDS,
    Buffer,
    HistoryGrid,
    UnreadableBlock,
    decode_bundle,
    decode_grid,
    encode_bundle,
    join,
    kind_of,
)
from facho.onus.history_models import HistorySamples, Metric, from_steps, to_steps
from facho.onus.models import Onu, PonPort
from facho.plant.models import FindingKinds, FindingOnu, LightFinding, OnuBox, PortDays
from facho.plant.tree import find_trees, save_tree
from facho.polling.domain.light import (
    COMMON_ONUS,
    DECAY_DAYS,
    FLAPS_A_DAY,
    NORMAL_DAYS,
    CommonDecay,
    Decays,
    NormalLight,
    Unsteady,
    common_decays,
    find_decays,
    find_unsteady,
    hint_of,
    normal_of,
    rates_since,
    row_medians,
    since_last_jump,
    sum_up_day,
)

Floats = NDArray[np.float64]

PORTS_AT_ONCE: Final = 32
# A port that was never judged brings all its days: a batch ends after so many.
DAYS_AT_ONCE: Final = 64
LIMIT_DBM: Final = -27.0
# What the receivers of class B+ at OLTs are rated for.
OLT_LIMIT_DBM: Final = -28.0
# A decay is shown when it crosses the limit within this time.
FORECAST_DAYS: Final = 30.0
# Days in a row that light flaps before it is a finding: a visit makes it flap for a day.
FLAPPING_DAYS: Final = 2
# Noise is what the last days have, against those before.
NOISY_DAYS: Final = 3
# A branch that decays is the same as yesterday if it has this share of its ONUs.
SAME_BRANCH: Final = 0.5

# What polls find; days only end it where no poll showed how it ended.
STEPS: Final = (FindingKinds.COMMON_STEP, FindingKinds.STEP)
# A repair brings back this share of what was lost, for as large a share of the ONUs.
REPAIRED: Final = 0.5


class DaySeries(IntEnum):
    """What is kept of each day, in hundredths of a dB; the numbers are stored and must never be reused."""

    LIGHT = 1
    OLT_LIGHT = 2
    NOISE = 3
    JUMPS = 4


@dataclass(frozen=True, slots=True, eq=False)
class PortPast:
    """The days of a port's ONUs up to the last one, a column each; a day without samples is NaN."""

    onu_ids: NDArray[np.int64]
    series: Mapping[DaySeries, Floats]

    @property
    def days(self) -> int:
        return int(self.series[DaySeries.LIGHT].shape[1])


def judge_days(now: datetime) -> int:
    """Add the days that are over to some ports and judge their light; return how many ports, 0 if none is left."""
    day_end = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    done = PortDays.objects.filter(ends_at__gte=day_end).values("pon_port_id")
    ports = list(PonPort.objects.exclude(id__in=done).order_by("id").values_list("id", flat=True)[:PORTS_AT_ONCE])
    stored = {row.pon_port_id: row for row in PortDays.objects.filter(pon_port_id__in=ports)}
    days: list[_PortDay] = []
    for pon_port_id in ports:
        days.append(_PortDay.add(pon_port_id, stored.get(pon_port_id), day_end))
        if sum(day.added for day in days) >= DAYS_AT_ONCE:
            break
    # Asked for all at once: most ports are calm, and their day costs hardly more than its light.
    known = _Known.load({day.pon_port_id for day in days}, {day.pon_port_id for day in days if day.is_uneasy})
    for day in days:
        if day.pon_port_id in known.ports:
            with transaction.atomic():
                day.judge(known, now)
    calm = [(day.pon_port_id, day_end, day.data) for day in days if day.pon_port_id not in known.ports]
    insert_values(PortDays, ["pon_port", "ends_at", "data"], calm, unique=["pon_port"])
    return len(days)


@dataclass(frozen=True, slots=True)
class NormalDays:
    """What is normal for an ONU, and the medians of the days that it rests on, the oldest first."""

    light: NormalLight
    medians: list[tuple[date, float]]


def load_normal(onu_id: int, pon_port_id: int) -> NormalDays | None:
    """Load what is normal for an ONU at its port; None while too few days are known. One query."""
    found = _load_past(onu_id, pon_port_id)
    if found is None:
        return None
    past, ends_at = found
    days = past.series[DaySeries.LIGHT][0]
    light = normal_of(days, past.series[DaySeries.NOISE][0])
    if light is None:
        return None
    level = since_last_jump(days[np.newaxis, -NORMAL_DAYS:])[0]
    first = ends_at - timedelta(days=len(level))
    medians = [
        ((first + timedelta(days=row)).date(), float(level[row])) for row in np.flatnonzero(np.isfinite(level)).tolist()
    ]
    return NormalDays(light, medians)


@dataclass(frozen=True, slots=True)
class LightDay:
    """A day of an ONU, in UTC, as it is judged; None is unknown."""

    starts_at: datetime
    median_dbm: float | None
    # From one reading to the next.
    noise_db: float | None
    # How often the light left the day's median and came back.
    jumps: int | None


def load_light_days(onu_id: int, pon_port_id: int) -> list[LightDay]:
    """Load the days that unsteady light is judged by, the oldest first; one query."""
    found = _load_past(onu_id, pon_port_id)
    if found is None:
        return []
    past, ends_at = found
    series = (DaySeries.LIGHT, DaySeries.NOISE, DaySeries.JUMPS)
    days = []
    for row, values in enumerate(zip(*(past.series[each][0].tolist() for each in series), strict=True)):
        median, noise, jumps = (None if np.isnan(value) else value for value in values)
        starts_at = ends_at - timedelta(days=past.days - row)
        days.append(LightDay(starts_at, median, noise, None if jumps is None else round(jumps)))
    return days


def _load_past(onu_id: int, pon_port_id: int) -> tuple[PortPast, datetime] | None:
    """Load the days of one ONU and when the last of them ended; None if none is known."""
    stored = PortDays.objects.filter(pon_port_id=pon_port_id).first()
    if stored is None:
        return None
    grids = {series: grid.of_onu(onu_id) for series, grid in _decode(stored.data).items()}
    past = _by_whole_days(grids, stored.ends_at)
    return (past, stored.ends_at.astimezone(UTC)) if past is not None and past.onu_ids.size else None


def _decode(data: Buffer) -> dict[DaySeries, HistoryGrid]:
    """Decode a port's block; a damaged one starts over, and the first ones had the light alone."""
    try:
        if kind_of(data) != BUNDLE:
            return {DaySeries.LIGHT: decode_grid(data)}
        return {DaySeries(number): grid for _, number, grid in decode_bundle(data)}
    except UnreadableBlock:
        return {}


@dataclass(slots=True, eq=False)
class _PortDay:
    """The days of a port with those that were added to them, and what they show by themselves."""

    pon_port_id: int
    day_end: datetime
    added: int
    data: bytes
    past: PortPast | None
    decays: Decays = field(init=False)
    upstream: Decays = field(init=False)
    unsteady: Unsteady = field(init=False)

    def __post_init__(self) -> None:
        if self.past is not None:
            series = self.past.series
            self.decays, self.upstream = find_decays(series[DaySeries.LIGHT]), find_decays(series[DaySeries.OLT_LIGHT])
            self.unsteady = find_unsteady(series[DaySeries.NOISE], series[DaySeries.JUMPS])

    @classmethod
    def add(cls, pon_port_id: int, stored: PortDays | None, day_end: datetime) -> "_PortDay":
        grids = {series: [grid] for series, grid in _decode(stored.data).items()} if stored else {}
        first = max(
            stored.ends_at if stored else _first_day(pon_port_id, day_end), day_end - timedelta(days=DECAY_DAYS)
        )
        for series, grid in _days_of(pon_port_id, first, day_end):
            grids.setdefault(series, []).append(grid)
        oldest, last = int(day_end.timestamp()) - DECAY_DAYS * DAY_SECONDS, int(day_end.timestamp())
        days = {series: join(its).between(oldest, last) for series, its in grids.items()}
        block = encode_bundle((pon_port_id, int(series), grid) for series, grid in days.items())
        past = _by_whole_days(days, day_end)
        return cls(
            pon_port_id, day_end, max((day_end - first).days, 0), block, past if past and past.onu_ids.size else None
        )

    @property
    def is_uneasy(self) -> bool:
        """Whether there may be anything to find."""
        if self.past is None:
            return False
        is_falling = self.decays.is_decay | self.upstream.is_decay
        return bool((is_falling | (self.unsteady.flapping_days > 0) | np.isfinite(self.unsteady.noise_growth)).any())

    def judge(self, known: "_Known", now: datetime) -> None:
        """Save the days with what they show, and the tree that follows."""
        insert_values(
            PortDays,
            ["pon_port", "ends_at", "data"],
            [(self.pon_port_id, self.day_end, self.data)],
            unique=["pon_port"],
        )
        has_branch = False
        if self.past is not None:
            has_branch = _DayVerdict(self, self.past, known, now).save()
        # ONUs came and went, and people wrote down where they are.
        if has_branch or self.pon_port_id in known.with_tree:
            save_tree(self.pon_port_id)


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What is known of the ports that have something to judge: they are uneasy, or have open findings or a tree."""

    ports: Collection[int]
    with_tree: Collection[int]
    # The ONUs of each port.
    living: Mapping[int, Collection[int]]
    # Open findings of each port and of its present ONUs, and the ONUs hit by a common finding.
    findings: Mapping[int, Sequence[LightFinding]]
    hit: Mapping[int, Collection[int]]

    @classmethod
    def load(cls, ports: Collection[int], uneasy: Collection[int]) -> "_Known":
        """Load it all at once, by six queries for any number of ports."""
        here = Q(pon_port_id__in=ports) | Q(onu__pon_port_id__in=ports)
        found = list(LightFinding.objects.filter(here, ended_at__isnull=True).select_related("onu"))
        findings: dict[int, list[LightFinding]] = {}
        for finding in found:
            for port in {finding.pon_port_id, finding.onu.pon_port_id if finding.onu else finding.pon_port_id}:
                findings.setdefault(port, []).append(finding)
        with_tree = find_trees(ports)
        mine = {*uneasy, *with_tree, *findings} & set(ports)
        living: dict[int, set[int]] = {port: set() for port in mine}
        for port, onu_id in Onu.objects.filter(pon_port_id__in=mine).values_list("pon_port_id", "id"):
            living[port].add(onu_id)
        hit: dict[int, set[int]] = {each.id: {each.onu_id} if each.onu_id else set() for each in found}
        members = FindingOnu.objects.filter(finding_id__in=[each.id for each in found], is_hit=True)
        for finding_id, onu_id in members.values_list("finding_id", "onu_id"):
            hit[finding_id].add(onu_id)
        return cls(mine, with_tree, living, findings, hit)


def _first_day(pon_port_id: int, day_end: datetime) -> datetime:
    """From which day on the history has samples of a port that was never judged."""
    samples = HistorySamples.objects.filter(pon_port_id=pon_port_id, metric=Metric.RX_POWER)
    ends_at = samples.order_by("ends_at").values_list("ends_at", flat=True).first()
    return min(ends_at or day_end, day_end) - timedelta(days=1)


def _days_of(pon_port_id: int, start: datetime, end: datetime) -> Iterator[tuple[DaySeries, HistoryGrid]]:
    """Sum up each whole day that the history has samples of."""
    for number in range((end - start).days):
        day = start + timedelta(days=number)
        metrics = (Metric.RX_POWER, Metric.OLT_RX_POWER)
        read = read_port_metrics(pon_port_id, metrics, day, day + timedelta(days=1), Resolution.SAMPLES)
        at = np.array([int(day.timestamp())], dtype=np.int64)
        light, olt_light = (read[metric] for metric in metrics)
        if light.onu_ids.size:
            summed = sum_up_day(blank_zeros(light.average))
            for series, values in (
                (DaySeries.LIGHT, summed.median_dbm),
                (DaySeries.NOISE, summed.noise_db),
                (DaySeries.JUMPS, summed.jumps),
            ):
                yield series, _grid(light.onu_ids, at, values)
        if olt_light.onu_ids.size:
            yield (
                DaySeries.OLT_LIGHT,
                _grid(olt_light.onu_ids, at, sum_up_day(blank_zeros(olt_light.average)).median_dbm),
            )


def blank_zeros(dbm: Floats) -> Floats:
    """Make exactly 0.00 dBm unknown: agents report it for no light, and no receiver of a PON gets that much."""
    return np.where(dbm == 0.0, np.nan, dbm)


def _grid(onu_ids: NDArray[np.int64], at: NDArray[np.int64], values: Floats) -> HistoryGrid:
    return HistoryGrid(onu_ids, at, to_steps(Metric.RX_POWER, values)[np.newaxis, :, np.newaxis])


def _by_whole_days(grids: Mapping[DaySeries, HistoryGrid], day_end: datetime) -> PortPast | None:
    """Line all series up: the same ONUs, and a column for each day from the first one on."""
    light = grids.get(DaySeries.LIGHT)
    if light is None or not light.at.size:
        return None
    first, last = int(light.at[0]), int(day_end.timestamp())
    lined_up = {}
    for series in DaySeries:
        values = np.full((len(light.onu_ids), (last - first) // DAY_SECONDS), np.nan)
        grid = grids.get(series)
        if grid is not None:
            grid = grid.between(first, last)
            rows = np.isin(grid.onu_ids, light.onu_ids)
            places = np.searchsorted(light.onu_ids, grid.onu_ids[rows])
            columns = (grid.at - first) // DAY_SECONDS
            values[np.ix_(places, columns)] = from_steps(Metric.RX_POWER, grid.layers[0][rows], is_summary=False)
        lined_up[series] = values
    return PortPast(light.onu_ids, lined_up)


@dataclass(slots=True, eq=False)
class _DayVerdict:
    """Compares what the days of a port show with what was found before."""

    day: _PortDay
    past: PortPast
    known: _Known
    now: datetime
    living: NDArray[np.bool_] = field(init=False)
    # Findings that the days do not show any more.
    over: list[LightFinding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.living = np.isin(self.past.onu_ids, list(self.known.living[self.pon_port_id]))

    @property
    def pon_port_id(self) -> int:
        return self.day.pon_port_id

    def save(self) -> bool:
        """Open, renew and end the findings of a port's ONUs; return whether a branch of it decays."""
        decays, upstream, living = self.day.decays, self.day.upstream, self.living
        self._end_steps()
        in_branch = self._save_branches(decays)
        self._save_decays(FindingKinds.DECAY, decays, LIMIT_DBM, ~in_branch & living)
        # What both directions lose is the fibre, which the other kind names.
        down, error = rates_since(self.past.series[DaySeries.LIGHT], upstream.since_day)
        with np.errstate(invalid="ignore"):
            is_own = np.isfinite(down) & (down + 2 * error < 0.3 * upstream.rate_db)
        upstream.is_decay[~is_own] = False
        self._save_decays(FindingKinds.SENDER, upstream, OLT_LIMIT_DBM, living)
        self._save_unsteady(self.day.unsteady)
        if self.over:
            LightFinding.objects.filter(id__in=[each.id for each in self.over]).update(ended_at=self.now)
        return bool(in_branch.any())

    def _open(self, *kinds: FindingKinds) -> list[LightFinding]:
        """Return the open findings of these kinds, of the port or of the ONUs that are there now."""
        its = self.known.findings.get(self.pon_port_id, ())
        return [each for each in its if each.kind in kinds and each.ended_at is None]

    def _since(self, since_day: int) -> datetime:
        return self.day.day_end - timedelta(days=self.past.days - since_day)

    def _hint(self, decays: Decays, rows: NDArray[np.intp]) -> tuple[float | None, str]:
        """Compare by how much both directions fell since."""
        rate, error = rates_since(self.past.series[DaySeries.OLT_LIGHT][rows], decays.since_day[rows])
        is_known = np.isfinite(rate)
        if not is_known.any():
            return None, ""
        days = self.past.days - decays.since_day[rows][is_known]
        fallen = float(np.mean(decays.rate_db[rows][is_known] * days))
        upstream, doubt = float(np.mean(rate[is_known] * days)), float(np.mean(error[is_known] * days))
        hint = hint_of(fallen, upstream, doubt / np.sqrt(is_known.sum()))
        return round(float(np.mean(rate[is_known])), 3), hint.value

    def _end(self, kind: FindingKinds, is_found: NDArray[np.bool_]) -> None:
        """End what the days do not show any more; of ONUs that left, only what was found here."""
        calm = set(self.past.onu_ids[self.living & ~is_found].tolist())
        here = self.known.living[self.pon_port_id]
        for each in self._open(kind):
            if each.onu_id in calm or (each.pon_port_id == self.pon_port_id and each.onu_id not in here):
                each.ended_at = self.now
                self.over.append(each)

    def _end_steps(self) -> None:
        """End losses whose light is back without a poll having shown its return, and those whose ONUs have left."""
        light, first_day, day_end = self.past.series[DaySeries.LIGHT], self._since(0), self.day.day_end
        rows = dict(zip(self.past.onu_ids[self.living].tolist(), np.flatnonzero(self.living).tolist(), strict=True))
        over = []
        for finding in self._open(*STEPS):
            if finding.pon_port_id != self.pon_port_id or finding.since >= day_end:
                continue
            its = [rows[onu_id] for onu_id in self.known.hit[finding.id] if onu_id in rows]
            day = (finding.since - first_day).days
            # Days of both, that of the step apart.
            before, now = row_medians(light[its, max(day - 3, 0) : max(day, 0)]), light[its, -1]
            lost = before - now
            is_back = np.isfinite(lost) & (lost < (1 - REPAIRED) * abs(finding.size_db))
            has_passed = day < self.past.days - 1
            if not its or (has_passed and is_back.any() and is_back.sum() >= REPAIRED * len(its)):
                over.append(finding.id)
        if over:
            LightFinding.objects.filter(id__in=over).update(ended_at=day_end)

    def _save_decays(
        self,
        kind: FindingKinds,
        decays: Decays,
        limit_dbm: float,
        may_be: NDArray[np.bool_],
    ) -> None:
        onu_ids = self.past.onu_ids
        soonest, likely, latest = decays.days_to(limit_dbm)
        # A decay that is too slow for the forecast stays open.
        self._end(kind, decays.is_decay & may_be)
        for row in np.flatnonzero(decays.is_decay & may_be & (likely <= FORECAST_DAYS)).tolist():
            values: dict[str, Any] = {
                "since": self._since(int(decays.since_day[row])),
                "size_db": float(decays.rate_db[row]),
                "level_dbm": float(decays.level_dbm[row]),
                "days_soonest": float(soonest[row]),
                "days_likely": float(likely[row]),
                "days_latest": float(min(latest[row], 10 * FORECAST_DAYS)),
                "confidence": float(decays.confidence[row]),
            }
            if kind is FindingKinds.DECAY:
                values["upstream_db"], values["hint"] = self._hint(decays, np.array([row]))
            else:
                values["hint"] = "transmitter"
            self._renew(kind, int(onu_ids[row]), values)

    def _renew(self, kind: FindingKinds, onu_id: int, values: dict[str, Any]) -> None:
        values |= {"pon_port_id": self.pon_port_id, "judged_at": self.now}
        known = next((each for each in self._open(kind) if each.onu_id == onu_id), None)
        if known is None:
            LightFinding.objects.create(kind=kind, onu_id=onu_id, found_at=self.now, **values)
            return
        for name, value in values.items():
            setattr(known, name, value)
        known.save(update_fields=list(values))

    def _save_branches(self, decays: Decays) -> NDArray[np.bool_]:
        """Make one finding of decays that are one; return who is in one."""
        onu_ids, taken = self.past.onu_ids, np.zeros(len(self.living), dtype=bool)
        before = {each: self.known.hit[each.id] for each in self._open(FindingKinds.BRANCH_DECAY)}
        for each in self._common_decays(decays):
            each.members[~self.living] = False
            members = set(onu_ids[each.members].tolist())
            if len(members) < 2:
                continue
            alike = (
                finding
                for finding, its in before.items()
                if len(members.intersection(its)) >= SAME_BRANCH * min(len(its), len(members))
            )
            known = next(alike, None)
            if known is not None:
                before.pop(known)
            finding = known or LightFinding(kind=FindingKinds.BRANCH_DECAY, found_at=self.now)
            self._save_branch(finding, each, decays)
            taken |= each.members
        self.over += before
        return taken

    def _common_decays(self, decays: Decays) -> Iterator[CommonDecay]:
        if decays.is_decay.sum() < COMMON_ONUS:
            return iter(())
        boxes = dict(OnuBox.objects.filter(pon_port_id=self.pon_port_id).values_list("onu_id", "number"))
        box = np.array([boxes.get(onu_id, -1) for onu_id in self.past.onu_ids.tolist()], dtype=np.int64)
        return common_decays(decays, box)

    def _save_branch(self, finding: LightFinding, each: CommonDecay, decays: Decays) -> None:
        rows = np.flatnonzero(each.members)
        soonest, likely, latest = (column[rows] for column in decays.days_to(LIMIT_DBM))
        worst = int(np.argmin(likely))
        is_read = np.isfinite(self.past.series[DaySeries.LIGHT][:, -3:]).any(axis=1) & self.living
        upstream, hint = self._hint(decays, rows)
        values = {
            "pon_port_id": self.pon_port_id,
            "since": self._since(each.since_day),
            "judged_at": self.now,
            "size_db": each.rate_db,
            "onus_read": int((is_read | each.members).sum()),
            "confidence": each.confidence,
            "upstream_db": upstream,
            "hint": hint,
            "level_dbm": float(decays.level_dbm[rows][worst]),
            "days_soonest": float(soonest[worst]),
            "days_likely": float(min(likely[worst], 10 * FORECAST_DAYS)),
            "days_latest": float(min(latest[worst], 10 * FORECAST_DAYS)),
        }
        for name, value in values.items():
            setattr(finding, name, value)
        finding.save()
        # An ONU that also decays a little counts neither as hit nor as well.
        is_well = is_read & ~each.members & ~(decays.rate_db > each.rate_db / 3)
        rows = np.flatnonzero(each.members | is_well)
        onu_ids, is_hit = self.past.onu_ids[rows].tolist(), each.members[rows].tolist()
        rates = [rate if hit else None for rate, hit in zip(decays.rate_db[rows].tolist(), is_hit, strict=True)]
        finding.members.exclude(onu_id__in=onu_ids).delete()
        members = [(finding.id, *row) for row in zip(onu_ids, is_hit, rates, strict=True)]
        insert_values(FindingOnu, ["finding", "onu", "is_hit", "size_db"], members, unique=["finding", "onu"])

    def _save_unsteady(self, unsteady: Unsteady) -> None:
        level = self.past.series[DaySeries.LIGHT][:, -1]
        flapping, noisy = unsteady.flapping_days >= FLAPPING_DAYS, np.isfinite(unsteady.noise_growth)
        for kind, is_found in ((FindingKinds.FLAPPING, flapping), (FindingKinds.NOISE, noisy & ~flapping)):
            self._end(kind, is_found)
            known = {each.onu_id for each in self._open(kind)}
            for row in np.flatnonzero(is_found & self.living).tolist():
                is_flapping = kind is FindingKinds.FLAPPING
                days = int(unsteady.flapping_days[row]) if is_flapping else NOISY_DAYS
                times = float(unsteady.jumps[row] if is_flapping else unsteady.noise_growth[row])
                over = times / FLAPS_A_DAY * days if is_flapping else 2 * (times - 1)
                values = {
                    "size_db": float(np.nan_to_num(unsteady.noise_db[row])),
                    "times": round(times, 1),
                    "level_dbm": None if np.isnan(level[row]) else float(level[row]),
                    "confidence": float(1 - np.exp(-over)),
                }
                onu_id = int(self.past.onu_ids[row])
                if onu_id not in known:
                    values["since"] = self._since(self.past.days - days)  # type: ignore[assignment]
                self._renew(kind, onu_id, values)
