"""Judges light once a day by what each day is summed up to: decays, of one ONU or of a branch, and unsteady light.

A block per port keeps the days: to judge them takes no more of the history than the day that is over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from typing import Any, Final

import numpy as np
from django.db import transaction
from django.db.models import Q
from numpy.typing import NDArray

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
from facho.plant.tree import find_trees, is_worth_a_tree, save_tree
from facho.polling.domain.light import (
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

PORTS_AT_ONCE: Final = 64
# A port that was never judged brings all its days: a batch ends after so many.
DAYS_AT_ONCE: Final = 64
LIMIT_DBM: Final = -27.0
# What the receivers of class B+ at OLTs are rated for.
OLT_LIMIT_DBM: Final = -28.0
# A decay is shown when it crosses the limit within this time.
FORECAST_DAYS: Final = 30.0
# Days in a row that light flaps before it is a finding: a visit makes it flap for a day.
FLAPPING_DAYS: Final = 2
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
    # Asked for all at once: most ports are calm, and their day costs hardly more than its light.
    stored = {row.pon_port_id: row for row in PortDays.objects.filter(pon_port_id__in=ports)}
    is_open = LightFinding.objects.filter(pon_port_id__in=ports, ended_at__isnull=True).values_list("pon_port_id")
    restless = {pon_port_id for (pon_port_id,) in is_open.order_by().distinct()} | find_trees(ports)
    judged, days = 0, 0
    for pon_port_id in ports:
        days += _judge_port(pon_port_id, stored.get(pon_port_id), pon_port_id in restless, day_end, now)
        judged += 1
        if days >= DAYS_AT_ONCE:
            break
    return judged


@dataclass(frozen=True, slots=True)
class NormalDays:
    """What is normal for an ONU, and the medians of the days that it rests on, the oldest first."""

    light: NormalLight
    medians: list[tuple[date, float]]


def load_normal(onu_id: int, pon_port_id: int) -> NormalDays | None:
    """Load what is normal for an ONU at its port; None while too few days are known. One query."""
    stored = PortDays.objects.filter(pon_port_id=pon_port_id).first()
    if stored is None:
        return None
    grids = {series: grid.of_onu(onu_id) for series, grid in _decode(stored.data).items()}
    past = _by_whole_days(grids, stored.ends_at)
    if past is None or not past.onu_ids.size:
        return None
    days = past.series[DaySeries.LIGHT][0]
    light = normal_of(days, past.series[DaySeries.NOISE][0])
    if light is None:
        return None
    level = since_last_jump(days[np.newaxis, -NORMAL_DAYS:])[0]
    first = stored.ends_at.astimezone(UTC) - timedelta(days=len(level))
    medians = [
        ((first + timedelta(days=row)).date(), float(level[row])) for row in np.flatnonzero(np.isfinite(level)).tolist()
    ]
    return NormalDays(light, medians)


def _decode(data: Buffer) -> dict[DaySeries, HistoryGrid]:
    """Decode a port's block; a damaged one starts over, and the first ones had the light alone."""
    try:
        if kind_of(data) != BUNDLE:
            return {DaySeries.LIGHT: decode_grid(data)}
        return {DaySeries(number): grid for _, number, grid in decode_bundle(data)}
    except UnreadableBlock:
        return {}


def _judge_port(pon_port_id: int, stored: PortDays | None, is_restless: bool, day_end: datetime, now: datetime) -> int:
    """Judge one port; return how many days were added. A restless one has open findings, or a tree."""
    grids = {series: [grid] for series, grid in _decode(stored.data).items()} if stored else {}
    first = max(stored.ends_at if stored else _first_day(pon_port_id, day_end), day_end - timedelta(days=DECAY_DAYS))
    for series, grid in _days_of(pon_port_id, first, day_end):
        grids.setdefault(series, []).append(grid)
    oldest, last = int(day_end.timestamp()) - DECAY_DAYS * DAY_SECONDS, int(day_end.timestamp())
    days = {series: join(its).between(oldest, last) for series, its in grids.items()}
    block = encode_bundle((pon_port_id, int(series), grid) for series, grid in days.items())
    with transaction.atomic():
        row = PortDays(id=stored.id if stored else None, pon_port_id=pon_port_id, ends_at=day_end, data=block)
        row.save(force_update=stored is not None, force_insert=stored is None)
        past = _by_whole_days(days, day_end)
        if past is not None and past.onu_ids.size:
            is_restless |= _DayVerdict(pon_port_id, past, day_end, now).save(is_restless=is_restless)
        # ONUs came and went, and people wrote down where they are.
        if is_restless and is_worth_a_tree(pon_port_id):
            save_tree(pon_port_id)
    return max((day_end - first).days, 0)


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
            summed = sum_up_day(light.average)
            for series, values in (
                (DaySeries.LIGHT, summed.median_dbm),
                (DaySeries.NOISE, summed.noise_db),
                (DaySeries.JUMPS, summed.jumps),
            ):
                yield series, _grid(light.onu_ids, at, values)
        if olt_light.onu_ids.size:
            yield DaySeries.OLT_LIGHT, _grid(olt_light.onu_ids, at, sum_up_day(olt_light.average).median_dbm)


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
    """What the days of a port say, ready to be compared with what was found before."""

    pon_port_id: int
    past: PortPast
    day_end: datetime
    now: datetime

    def save(self, *, is_restless: bool) -> bool:
        """Open, renew and end the findings of a port's ONUs; return whether there was anything to find or to end."""
        light, olt_light = self.past.series[DaySeries.LIGHT], self.past.series[DaySeries.OLT_LIGHT]
        decays = find_decays(light)
        upstream = find_decays(olt_light)
        unsteady = find_unsteady(self.past.series[DaySeries.NOISE], self.past.series[DaySeries.JUMPS])
        is_any = decays.is_decay | upstream.is_decay | (unsteady.flapping_days > 0) | np.isfinite(unsteady.noise_growth)
        if not is_any.any() and not is_restless:
            return False
        here = Onu.objects.filter(id__in=self.past.onu_ids.tolist(), pon_port_id=self.pon_port_id)
        living = np.isin(self.past.onu_ids, list(here.values_list("id", flat=True)))
        self._end_steps(living)
        in_branch = self._save_branches(decays, living)
        self._save_decays(FindingKinds.DECAY, decays, LIMIT_DBM, ~in_branch & living, living)
        # What both directions lose is the fibre, which the other kind names.
        down, error = rates_since(light, upstream.since_day)
        with np.errstate(invalid="ignore"):
            is_own = np.isfinite(down) & (down + 2 * error < 0.3 * upstream.rate_db)
        upstream.is_decay[~is_own] = False
        self._save_decays(FindingKinds.SENDER, upstream, OLT_LIMIT_DBM, living, living)
        self._save_unsteady(unsteady, living)
        return True

    def _since(self, since_day: int) -> datetime:
        return self.day_end - timedelta(days=self.past.days - since_day)

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

    def _end(self, kind: FindingKinds, is_found: NDArray[np.bool_], living: NDArray[np.bool_]) -> None:
        """End what the days do not show any more; of ONUs that left, only what was found here."""
        calm, gone = (self.past.onu_ids[rows].tolist() for rows in (living & ~is_found, ~living))
        its = Q(onu_id__in=calm) | Q(onu_id__in=gone, pon_port_id=self.pon_port_id)
        LightFinding.objects.filter(its, kind=kind, ended_at__isnull=True).update(ended_at=self.now)

    def _end_steps(self, living: NDArray[np.bool_]) -> None:
        """End losses whose light is back without a poll having shown its return, and those whose ONUs have left."""
        light, first_day = self.past.series[DaySeries.LIGHT], self._since(0)
        rows = dict(zip(self.past.onu_ids[living].tolist(), np.flatnonzero(living).tolist(), strict=True))
        steps = LightFinding.objects.filter(
            kind__in=STEPS, pon_port_id=self.pon_port_id, ended_at__isnull=True, since__lt=self.day_end
        )
        for finding in steps.prefetch_related("members"):
            hit = [each.onu_id for each in finding.members.all() if each.is_hit] or [finding.onu_id or 0]
            its = [rows[onu_id] for onu_id in hit if onu_id in rows]
            day = (finding.since - first_day).days
            # Days of both, that of the step apart.
            before, now = row_medians(light[its, max(day - 3, 0) : max(day, 0)]), light[its, -1]
            lost = before - now
            is_back = np.isfinite(lost) & (lost < (1 - REPAIRED) * abs(finding.size_db))
            has_passed = day < self.past.days - 1
            if not its or (has_passed and is_back.any() and is_back.sum() >= REPAIRED * len(its)):
                LightFinding.objects.filter(id=finding.id).update(ended_at=self.day_end)

    def _save_decays(
        self,
        kind: FindingKinds,
        decays: Decays,
        limit_dbm: float,
        may_be: NDArray[np.bool_],
        living: NDArray[np.bool_],
    ) -> None:
        onu_ids = self.past.onu_ids
        soonest, likely, latest = decays.days_to(limit_dbm)
        # A decay that is too slow for the forecast stays open.
        self._end(kind, decays.is_decay & may_be, living)
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
        LightFinding.objects.update_or_create(
            kind=kind, onu_id=onu_id, ended_at=None, defaults=values, create_defaults=values | {"found_at": self.now}
        )

    def _save_branches(self, decays: Decays, living: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Make one finding of decays that are one; return who is in one."""
        onu_ids, taken = self.past.onu_ids, np.zeros(len(living), dtype=bool)
        boxes = dict(OnuBox.objects.filter(pon_port_id=self.pon_port_id).values_list("onu_id", "number"))
        box = np.array([boxes.get(onu_id, -1) for onu_id in onu_ids.tolist()], dtype=np.int64)
        open_now = LightFinding.objects.filter(
            kind=FindingKinds.BRANCH_DECAY, pon_port_id=self.pon_port_id, ended_at__isnull=True
        )
        before: dict[int, set[int]] = {each: set() for each in open_now.values_list("id", flat=True)}
        rows = FindingOnu.objects.filter(finding_id__in=before, is_hit=True)
        for finding_id, onu_id in rows.values_list("finding_id", "onu_id"):
            before[finding_id].add(onu_id)
        for each in common_decays(decays, box):
            each.members[~living] = False
            members = set(onu_ids[each.members].tolist())
            if len(members) < 2:
                continue
            same = (pk for pk, its in before.items() if len(its & members) >= SAME_BRANCH * min(len(its), len(members)))
            known = next(same, 0)
            before.pop(known, None)
            self._save_branch(known, each, decays, living)
            taken |= each.members
        LightFinding.objects.filter(id__in=list(before)).update(ended_at=self.now)
        return taken

    def _save_branch(self, known: int, each: CommonDecay, decays: Decays, living: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(each.members)
        soonest, likely, latest = (column[rows] for column in decays.days_to(LIMIT_DBM))
        worst = int(np.argmin(likely))
        is_read = np.isfinite(self.past.series[DaySeries.LIGHT][:, -3:]).any(axis=1) & living
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
        finding = LightFinding.objects.get(id=known) if known else LightFinding(found_at=self.now)
        for name, value in ({"kind": FindingKinds.BRANCH_DECAY} | values).items():
            setattr(finding, name, value)
        finding.save()
        # Who falls a little, too, is neither hit nor well.
        is_well = is_read & ~each.members & ~(decays.rate_db > each.rate_db / 3)
        finding.members.all().delete()
        FindingOnu.objects.bulk_create(
            FindingOnu(
                finding=finding,
                onu_id=int(self.past.onu_ids[row]),
                is_hit=bool(each.members[row]),
                size_db=float(decays.rate_db[row]) if each.members[row] else None,
            )
            for row in np.flatnonzero(each.members | is_well).tolist()
        )

    def _save_unsteady(self, unsteady: Unsteady, living: NDArray[np.bool_]) -> None:
        level = self.past.series[DaySeries.LIGHT][:, -1]
        flapping, noisy = unsteady.flapping_days >= FLAPPING_DAYS, np.isfinite(unsteady.noise_growth)
        for kind, is_found in ((FindingKinds.FLAPPING, flapping), (FindingKinds.NOISE, noisy & ~flapping)):
            self._end(kind, is_found, living)
            for row in np.flatnonzero(is_found & living).tolist():
                is_flapping = kind is FindingKinds.FLAPPING
                days = int(unsteady.flapping_days[row]) if is_flapping else 3
                times = float(unsteady.jumps[row] if is_flapping else unsteady.noise_growth[row])
                over = times / FLAPS_A_DAY * days if is_flapping else 2 * (times - 1)
                values = {
                    "size_db": float(np.nan_to_num(unsteady.noise_db[row])),
                    "times": round(times, 1),
                    "level_dbm": None if np.isnan(level[row]) else float(level[row]),
                    "confidence": float(1 - np.exp(-over)),
                }
                onu_id = int(self.past.onu_ids[row])
                if not LightFinding.objects.filter(kind=kind, onu_id=onu_id, ended_at__isnull=True).exists():
                    values["since"] = self._since(self.past.days - days)  # type: ignore[assignment]
                self._renew(kind, onu_id, values)
