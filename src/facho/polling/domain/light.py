"""What light says against its own past: steps, slow decays with a forecast, unsteady light, and ONUs that share a box.

Rows of every array are ONUs; NaN is a missing reading. Steps are looked for with each poll, by a state that the caller
keeps; all else once a day, from what each day is summed up to.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Readings that make the present level. With five minutes between them this is an hour: days and weather are slower.
LEVEL_READINGS: Final = 12
# A level needs some readings before anything is said against it.
_LEAST_READINGS = 5
# Weight of the newest difference in the noise of an ONU.
_NOISE_WEIGHT = 0.02
# No meter is better than this in dB.
_LEAST_NOISE_DB = 0.04
# A step is this many times the noise, and never less than this in dB.
_STEP_NOISES, _LEAST_STEP_DB = 4.5, 0.5
# ONUs of one port that step together by about the same are one cause.
COMMON_ONUS: Final = 3
_ALIKE_DB, _ALIKE_SHARE = 0.4, 0.25


@dataclass(frozen=True, slots=True, eq=False)
class LightWatch:
    """What is remembered of some ONUs between two polls.

    `first` is by how much the last poll differed from the level, NaN if it did not.
    """

    recent: Floats
    noise_db: Floats
    last: Floats
    first: Floats

    @classmethod
    def new(cls, onus: int) -> "LightWatch":
        return cls(
            np.full((onus, LEVEL_READINGS), np.nan), np.full(onus, 0.15), np.full(onus, np.nan), np.full(onus, np.nan)
        )


@dataclass(frozen=True, slots=True, eq=False)
class LightSteps:
    """Steps that two polls agree on; `size_db` is below zero where light was lost, NaN for all others."""

    size_db: Floats
    # Both polls' difference to the level, also of ONUs without a step.
    difference_db: Floats
    # Away from the level for the first time, which the next poll has to confirm.
    is_new: Mask


@dataclass(frozen=True, slots=True, eq=False)
class CommonStep:
    """ONUs of one port whose light moved together by `size_db`."""

    port: int
    members: Mask
    size_db: float


def watch_light(state: LightWatch, values: Floats) -> tuple[LightWatch, LightSteps]:
    """Compare a poll with the level before it; a step counts when the second poll confirms it."""
    level = row_medians(state.recent)
    has_level = np.isfinite(state.recent).sum(axis=1) >= _LEAST_READINGS
    difference = np.where(has_level, values - level, np.nan)
    bound = np.maximum(_LEAST_STEP_DB, _STEP_NOISES * state.noise_db)
    is_away = np.abs(difference) > bound
    was_away = np.isfinite(state.first)
    both = (difference + state.first) / 2
    is_step = is_away & was_away & (np.sign(difference) == np.sign(state.first))
    difference_db = np.where(was_away, both, difference)
    return _next_watch(state, values, is_away, is_step, difference), LightSteps(
        np.where(is_step, both, np.nan), difference_db, is_away & ~was_away
    )


def settle(state: LightWatch, step: "CommonStep", steps: LightSteps) -> LightWatch:
    """Begin a new level for all ONUs of a step in common, also where their own step is not confirmed."""
    shared = step.members & ~np.isfinite(steps.size_db)
    recent, first = state.recent.copy(), state.first.copy()
    _begin_level(recent, shared, state.last[shared])
    first[shared] = np.nan
    return LightWatch(recent, state.noise_db, state.last, first)


def _begin_level(recent: Floats, members: Mask, dbm: Floats) -> None:
    """Forget what was before a step; the new level is known at once, for what comes back after some polls."""
    recent[members, :-_LEAST_READINGS] = np.nan
    recent[members, -_LEAST_READINGS:] = dbm[:, np.newaxis]


def row_medians(recent: Floats) -> Floats:
    """The median of each row, as NaN-aware as numpy's own and ten times as fast."""
    if not recent.shape[1]:
        return np.full(len(recent), np.nan)
    ordered = np.sort(recent, axis=1)
    count = np.isfinite(recent).sum(axis=1)
    rows = np.arange(len(recent))
    low, high = np.maximum((count - 1) // 2, 0), np.minimum(count // 2, recent.shape[1] - 1)
    return np.asarray((ordered[rows, low] + ordered[rows, high]) / 2)


def _next_watch(state: LightWatch, values: Floats, is_away: Mask, is_step: Mask, difference: Floats) -> LightWatch:
    is_read = np.isfinite(values)
    move = np.abs(values - state.last) / 1.128
    # One jump must not widen what counts as noise.
    move = np.minimum(move, 3 * state.noise_db)
    noise = np.where(np.isfinite(move), state.noise_db + _NOISE_WEIGHT * (move - state.noise_db), state.noise_db)
    # The first poll away from the level may be a slip of the meter: it does not belong to the level.
    is_kept = is_read & ~is_away
    recent = state.recent
    if is_kept.any() or is_step.any():
        recent = recent.copy()
        recent[is_kept, :-1] = state.recent[is_kept, 1:]
        recent[is_kept, -1] = values[is_kept]
        _begin_level(recent, is_step, (values[is_step] + state.last[is_step]) / 2)
    first = np.where(is_read, np.where(is_away & ~is_step, difference, np.nan), state.first)
    return LightWatch(recent, np.maximum(noise, _LEAST_NOISE_DB), np.where(is_read, values, state.last), first)


def common_steps(steps: LightSteps, ports: NDArray[np.int64]) -> Iterator[CommonStep]:
    """Find the ONUs of each port that stepped together; `ports` has the port of each row.

    What comes while a port is read shows in one poll for some of its ONUs, and in the next for the others: these
    count, too, where a confirmed step says that it is one.
    """
    stepped = np.isfinite(steps.size_db)
    for port in np.unique(ports[stepped]).tolist():
        here = ports == port
        its = stepped & here
        size = float(np.median(steps.size_db[its]))
        is_near = np.abs(steps.difference_db - size) <= np.maximum(_ALIKE_DB, abs(size) * _ALIKE_SHARE)
        members = here & (stepped | steps.is_new) & is_near
        if members.sum() >= COMMON_ONUS:
            # Noisy ONUs join where their light is nearer to the step than to no step.
            is_beyond_half = steps.difference_db * np.sign(size) > abs(size) / 2
            yield CommonStep(port, members | (here & is_near & is_beyond_half), size)


def confidence_of_step(size_db: float, onus: int) -> float:
    """How sure a step is, from 0 to 1: by its size against the least one, and by how many ONUs took it."""
    return float(1 - np.exp(-onus * min(abs(size_db) / _LEAST_STEP_DB, 3.0) / 3))


class LightHint(StrEnum):
    """What a loss is probably due to, by how much of it the other direction lost."""

    UNKNOWN = ""
    # Both directions alike: a connector, a splice, dirt.
    CONNECTOR = "connector"
    # A bend takes more of 1490 nm, which the ONU receives, than of 1310 nm.
    BEND = "bend"
    # Only what the ONU receives: its receiver, or what the OLT sends.
    RECEIVER = "receiver"
    # More or only what the ONU sends.
    TRANSMITTER = "transmitter"


# Upstream per downstream loss below which nothing is lost upstream, a bend, and both alike.
_NO_SHARE, _BEND_SHARE, _ALIKE_SHARES = 0.2, 0.72, 1.4
# Smaller losses say nothing about their ratio.
_LEAST_HINT_DB = 0.5


def hint_of(down_db: float, up_db: float, error_db: float) -> LightHint:
    """Compare what both directions lost; unknown while twice the error of their difference could mean another hint."""
    if not (np.isfinite(down_db) and np.isfinite(up_db)) or max(down_db, up_db) < max(_LEAST_HINT_DB, 4 * error_db):
        return LightHint.UNKNOWN
    lowest, highest = (_hint_by(down_db, up_db + sign * 2 * error_db) for sign in (-1, 1))
    return lowest if lowest is highest else LightHint.UNKNOWN


def _hint_by(down_db: float, up_db: float) -> LightHint:
    if up_db < _NO_SHARE * down_db:
        return LightHint.RECEIVER
    if up_db < _BEND_SHARE * down_db:
        return LightHint.BEND
    return LightHint.CONNECTOR if up_db < _ALIKE_SHARES * down_db else LightHint.TRANSMITTER


@dataclass(frozen=True, slots=True, eq=False)
class DayLight:
    """A day of each ONU: its median, how much a reading differs from the next, and how often it left its level."""

    median_dbm: Floats
    noise_db: Floats
    jumps: Floats


# A meter that knows no finer steps has the noise of its steps, which says nothing.
_COARSE_DB = 0.2
# Larger moves are jumps, not noise.
_MOST_MOVE_DB = 0.6
# Of this many readings a day something can be said.
_LEAST_OF_DAY = 24


def sum_up_day(values: Floats) -> DayLight:
    """Sum up a day of readings, oldest first."""
    count = np.isfinite(values).sum(axis=1)
    median = row_medians(values)
    moves = np.abs(np.diff(values, axis=1))
    is_move = np.isfinite(moves)
    total = np.where(is_move, np.minimum(moves, _MOST_MOVE_DB), 0.0).sum(axis=1)
    enough = (count >= _LEAST_OF_DAY) & (is_move.sum(axis=1) >= _LEAST_OF_DAY / 2)
    noise = np.where(enough, total / np.maximum(is_move.sum(axis=1), 1) / 1.128, np.nan)
    bound = np.maximum(_LEAST_STEP_DB, _STEP_NOISES * np.where(enough, noise, 0.0))
    is_away = np.abs(values - median[:, np.newaxis]) > bound[:, np.newaxis]
    # A single reading may be a slip of the meter.
    twice = is_away[:, 1:] & is_away[:, :-1]
    jumps = twice[:, :1].sum(axis=1) + (twice[:, 1:] & ~twice[:, :-1]).sum(axis=1)
    smallest = np.where(is_move & (moves > 0), moves, np.inf).min(axis=1, initial=np.inf)
    is_coarse = np.isfinite(smallest) & (smallest > _COARSE_DB)
    return DayLight(median, np.where(is_coarse, np.nan, noise), np.where(enough, jumps, np.nan))


# Light that left its level so often in a day flaps.
FLAPS_A_DAY: Final = 4
# Noise counts as grown against so many days at least, from this factor and this many dB on.
_NOISE_DAYS, _NOISE_GROWTH, _LEAST_GROWTH_DB = 7, 1.6, 0.06
_NOW_DAYS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Unsteady:
    """How many days in a row each ONU flaps, and by what factor its noise grew; 0 and NaN where it did not."""

    flapping_days: NDArray[np.int64]
    jumps: Floats
    noise_growth: Floats
    noise_db: Floats


def find_unsteady(noise_db: Floats, jumps: Floats) -> Unsteady:
    """Judge one port's days, oldest first; the last of them is a whole day."""
    flaps = np.where(np.isfinite(jumps), jumps, 0.0) >= FLAPS_A_DAY
    calm = np.argmax(~flaps[:, ::-1], axis=1) if flaps.shape[1] else np.zeros(len(flaps), dtype=np.int64)
    in_a_row = np.where(flaps.all(axis=1), flaps.shape[1], calm)
    now, before = row_medians(noise_db[:, -_NOW_DAYS:]), row_medians(noise_db[:, :-_NOW_DAYS])
    is_known = np.isfinite(noise_db[:, :-_NOW_DAYS]).sum(axis=1) >= _NOISE_DAYS
    is_known &= np.isfinite(noise_db[:, -_NOW_DAYS:]).sum(axis=1) == _NOW_DAYS
    growth = now / np.maximum(before, _LEAST_NOISE_DB / 2)
    has_grown = is_known & (growth >= _NOISE_GROWTH) & (now - before >= _LEAST_GROWTH_DB)
    last = jumps[:, -1] if jumps.shape[1] else np.zeros(len(jumps))
    return Unsteady(in_a_row.astype(np.int64), last, np.where(has_grown, growth, np.nan), now)


# The last days that what is normal rests on, and how few are too few.
NORMAL_DAYS: Final = 30
_LEAST_NORMAL_DAYS = 7
# The day's own swing, of which a median of the day knows nothing.
_SWING_DB = 0.3


@dataclass(frozen=True, slots=True)
class NormalLight:
    """What one ONU usually receives, and how far from it is still usual."""

    dbm: float
    range_db: float
    days: int


def normal_of(daily_dbm: Floats, noise_db: Floats) -> NormalLight | None:
    """Return what is normal for one ONU by its last days since the last jump; None while they are too few."""
    days = since_last_jump(daily_dbm[np.newaxis, -NORMAL_DAYS:])[0]
    known = days[np.isfinite(days)]
    if known.size < _LEAST_NORMAL_DAYS:
        return None
    middle = float(np.median(known))
    spread = 1.4826 * float(np.median(np.abs(known - middle)))
    noises = noise_db[np.isfinite(noise_db)]
    noise = float(np.median(noises)) if noises.size else 0.15
    return NormalLight(middle, max(_SWING_DB, 3 * float(np.hypot(spread, noise))), int(known.size))


# A decay is judged by this many days at most, and from this many on.
DECAY_DAYS: Final = 60
_LEAST_DAYS = 8
# Days between the beginnings that are tried.
_SINCE_STEP_DAYS = 2
# Less is what seasons and meters do.
_LEAST_FALL_DB = 0.6
_LEAST_T = 7.0
_JUMP_NOISES, _LEAST_JUMP_DB = 6.0, 0.45
# A fit knows its line better than the plant keeps to it: added to the errors of a forecast.
_RATE_DOUBT, _LEVEL_DOUBT_DB = 0.1, 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Decays:
    """A line for each ONU's light, bent once: level up to `since_day`, then falling by `rate_db` a day."""

    level_dbm: Floats
    rate_db: Floats
    rate_error_db: Floats
    since_day: NDArray[np.int64]
    is_decay: Mask

    def days_to(self, limit_dbm: float) -> tuple[Floats, Floats, Floats]:
        """Days from the last one until the light crosses `limit_dbm`: soonest, likely, latest; 0 if it has."""
        left = self.level_dbm - limit_dbm
        error = np.hypot(2 * self.rate_error_db, _RATE_DOUBT * self.rate_db)
        with np.errstate(divide="ignore", invalid="ignore"):
            soonest = np.maximum(left - _LEVEL_DOUBT_DB, 0) / (self.rate_db + error)
            likely = np.maximum(left, 0) / self.rate_db
            slowest = np.where(self.rate_db > error, self.rate_db - error, 0)
            return soonest, likely, np.maximum(left + _LEVEL_DOUBT_DB, 0) / slowest

    @property
    def confidence(self) -> Floats:
        """How sure each line is, from 0 to 1: by its fall against the errors of the fit."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(1 - np.exp(-np.maximum(self.rate_db / self.rate_error_db, 0) / 5))


def find_decays(daily_dbm: Floats) -> Decays:
    """Judge one port's daily medians, oldest day first."""
    onus, days = daily_dbm.shape
    best = _fit_none(onus)
    if days >= _LEAST_DAYS:
        whole = since_last_jump(daily_dbm)
        is_long = np.isfinite(whole).sum(axis=1) >= _LEAST_DAYS
        suspects = np.flatnonzero(is_long & (_fall_of(whole) >= _LEAST_FALL_DB / 2))
        if suspects.size:
            best.put(suspects, _best_fit(whole[suspects], _weather_of(whole)))
    fall = best.rate * (days - 1 - best.since)
    with np.errstate(divide="ignore", invalid="ignore"):
        is_decay = (fall >= _LEAST_FALL_DB) & (best.rate / best.rate_error >= _LEAST_T)
    return Decays(best.level, best.rate, best.rate_error, best.since.astype(np.int64), is_decay)


@dataclass(frozen=True, slots=True, eq=False)
class CommonDecay:
    """ONUs of one port whose light falls since about the same day by about the same rate."""

    members: Mask
    since_day: int
    rate_db: float
    confidence: float


# Decays that begin within this many days, with rates that differ by at most this factor, share one cause.
_TOGETHER_DAYS, _ALIKE_RATES = 6, 1.8
# Weaker evidence is enough for an ONU in the same box.
_WEAK_T, _WEAK_FALL_DB = 4.0, 0.3


def common_decays(decays: Decays, box: NDArray[np.int64] | None = None) -> Iterator[CommonDecay]:
    """Find decays of several ONUs that are one; `box` has the box of each ONU where it is known, -1 elsewhere."""
    days = int(decays.since_day.max(initial=0)) + 1
    sure = decays.is_decay.copy()
    for since in range(days):
        near = (decays.since_day >= since) & (decays.since_day < since + _TOGETHER_DAYS)
        its = sure & near
        if its.sum() < COMMON_ONUS or not (decays.since_day[its] == since).any():
            continue
        rate = float(np.median(decays.rate_db[its]))
        ratio = decays.rate_db / max(rate, 1e-9)
        is_alike = (ratio <= _ALIKE_RATES) & (ratio >= 1 / _ALIKE_RATES)
        members = its & is_alike
        if members.sum() < COMMON_ONUS:
            continue
        if box is not None and (box[members] >= 0).any():
            members |= _boxmates(decays, box, members, near & is_alike)
        sure &= ~members
        confidence = 1 - float(np.prod(1 - np.clip(decays.confidence[members], 0, 0.6)))
        yield CommonDecay(members, int(np.median(decays.since_day[members])), rate, confidence)


def _boxmates(decays: Decays, box: NDArray[np.int64], members: Mask, is_near: Mask) -> Mask:
    numbers, counts = np.unique(box[members], return_counts=True)
    fall = decays.rate_db * (decays.since_day.max(initial=0) + 1 - decays.since_day)
    with np.errstate(divide="ignore", invalid="ignore"):
        is_weak = (decays.rate_db / decays.rate_error_db >= _WEAK_T) & (fall >= _WEAK_FALL_DB)
    return np.asarray((box == numbers[np.argmax(counts)]) & (box >= 0) & is_near & is_weak)


def rates_since(daily_dbm: Floats, since_day: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return by how many dB a day each ONU's other direction fell since its day, and the error of that."""
    rate, error = np.full(len(daily_dbm), np.nan), np.full(len(daily_dbm), np.nan)
    weather = np.zeros(daily_dbm.shape[1])
    for since in np.unique(since_day).tolist():
        rows = np.flatnonzero((since_day == since) & (np.isfinite(daily_dbm).sum(axis=1) >= _LEAST_DAYS))
        if rows.size:
            fit = _fit(since_last_jump(daily_dbm[rows]), weather, since)
            rate[rows], error[rows] = fit.rate, fit.rate_error
    return rate, error


def _fall_of(daily: Floats) -> Floats:
    """How far the last three days are below the highest of the days before; 0 where one of them is missing."""
    last = row_medians(daily[:, -3:])
    before = np.where(np.isfinite(daily[:, :-3]), daily[:, :-3], -np.inf).max(axis=1, initial=-np.inf)
    fall = before - last
    return np.where(np.isfinite(fall), fall, 0.0)


def _best_fit(daily: Floats, weather: Floats) -> "_Fit":
    best = _fit_none(len(daily))
    for since in range(0, max(daily.shape[1] - 4, 1), _SINCE_STEP_DAYS):
        fit = _fit(daily, weather, since)
        best.put(np.flatnonzero(fit.error < best.error * (0.98 if since else 1.0)), fit, of_all=True)
    return best


def since_last_jump(daily_dbm: Floats) -> Floats:
    """Blank the days before the last jump of each ONU: a step is not a decay, and a repair ends one."""
    moves = np.abs(np.diff(daily_dbm, axis=1))
    noise = np.fmax(1.4826 * row_medians(moves), 0.02)[:, np.newaxis]
    is_jump = moves > np.maximum(_LEAST_JUMP_DB, _JUMP_NOISES * noise)
    days = np.arange(1, daily_dbm.shape[1])
    # The day of the jump itself is half of each level.
    first = np.where(is_jump, days + 1, 0).max(axis=1, initial=0)
    return np.where(np.arange(daily_dbm.shape[1]) >= first[:, np.newaxis], daily_dbm, np.nan)


def _weather_of(daily: Floats) -> Floats:
    """What moved all ONUs of the port with different strength: the strongest common pattern after their own lines."""
    flat = np.where(np.isfinite(daily), daily, np.nan)
    is_whole = np.isfinite(flat).sum(axis=1) > 0.8 * flat.shape[1]
    if is_whole.sum() < 5:
        return np.zeros(daily.shape[1])
    rows = flat[is_whole]
    rows = np.where(np.isfinite(rows), rows, np.nanmedian(rows, axis=1, keepdims=True))
    days = np.arange(rows.shape[1]) - (rows.shape[1] - 1) / 2
    slope = rows @ days / (days @ days)
    rest = rows - rows.mean(axis=1, keepdims=True) - slope[:, np.newaxis] * days
    # An ONU with a fault of its own must not be taken for weather.
    spread = 1.4826 * np.median(np.abs(rest))
    rest = np.clip(rest, -4 * spread, 4 * spread)
    return np.asarray(np.linalg.svd(rest, full_matrices=False)[2][0])


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    level: Floats
    rate: Floats
    rate_error: Floats
    since: Floats
    error: Floats

    def put(self, rows: NDArray[np.intp], other: "_Fit", *, of_all: bool = False) -> None:
        """Take these rows from another fit, which has only them or all."""
        for name in ("level", "rate", "rate_error", "since", "error"):
            getattr(self, name)[rows] = getattr(other, name)[rows] if of_all else getattr(other, name)


def _fit_none(onus: int) -> _Fit:
    nan, inf = np.full(onus, np.nan), np.full(onus, np.inf)
    return _Fit(nan, np.zeros(onus), inf, np.zeros(onus), inf.copy())


def _fit(daily: Floats, weather: Floats, since: int) -> _Fit:
    """Fit level, fall since a day, and weather to every ONU by least squares of the days that it has."""
    days = daily.shape[1]
    fallen = np.maximum(np.arange(days) - since, 0.0)
    model = np.stack([np.ones(days), -fallen, weather])
    is_there = np.isfinite(daily)
    filled = np.where(is_there, daily, 0.0)
    weights = is_there.astype(np.float64)
    squares = (weights @ (model[:, np.newaxis] * model).reshape(9, days).T).reshape(-1, 3, 3)
    squares[:, range(3), range(3)] += (1e-9, 1e-9, 1e-3)
    inverse = np.linalg.inv(squares)
    factors = (inverse @ (filled @ model.T)[:, :, np.newaxis])[:, :, 0]
    rest = np.where(is_there, daily - factors @ model, 0.0)
    free = np.maximum(weights.sum(axis=1) - 4, 1)
    error = (rest**2).sum(axis=1)
    # Neighbouring days share their weather, so they count for less than their number.
    rate_error = np.sqrt(2 * np.maximum(error / free, 0.01**2) * inverse[:, 1, 1])
    level = factors[:, 0] - factors[:, 1] * fallen[-1]
    return _Fit(level, factors[:, 1], rate_error, np.full(len(daily), float(since)), error)


# How long drops are in metres, as a scale and not a limit: two of one box differ by half as much again.
DROP_SCALE_M: Final = 30.0
# Boxes of a port are spread over at least this many metres.
_LEAST_SPREAD_M = 300.0
# ONUs that a box has usually, and how many boxes a port has at least and at most; only the beginning of an estimate.
_USUAL_ONUS, _FEWEST_BOXES, _MOST_BOXES = 9, 2, 8
# How sure one event makes that two ONUs differ (one was hit, the other was seen to be well).
_APART = 5.0
_MOST_TOGETHER = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class SharedEvent:
    """ONUs that lost light or the signal together; who was not readable at that time is in neither mask."""

    hit: Mask
    well: Mask


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """A number for the box of each ONU, and how sure that is, from 0 to 1."""

    box: NDArray[np.int64]
    confidence: Floats


@dataclass(frozen=True, slots=True, eq=False)
class BoxRule:
    """What a person says of boxes: `together` share one, and none of `apart` is in it."""

    together: Mask
    apart: Mask


# More than all events of years together; keeping apart weighs more than joining.
_TOLD_TOGETHER, _TOLD_APART = 1e4, -1e8


def infer_branches(distance_m: Floats, events: Sequence[SharedEvent], rules: Sequence[BoxRule] = ()) -> Branches:
    """Group the ONUs of a port; NaN is an unknown distance. Rules win over all else, later ones over earlier ones."""
    score = _distance_score(distance_m)
    for event in events:
        score += _event_score(event)
    for rule in rules:
        score[np.outer(rule.together, rule.together)] = _TOLD_TOGETHER
        between = np.outer(rule.together, rule.apart)
        score[between | between.T] = _TOLD_APART
    np.fill_diagonal(score, 0.0)
    box = _join(score)
    return Branches(box, _confidence(score, box))


def _distance_score(distance_m: Floats) -> Floats:
    apart = np.abs(distance_m[:, np.newaxis] - distance_m)
    known = distance_m[np.isfinite(distance_m)]
    spread = max(float(np.ptp(known)) if known.size else 0.0, _LEAST_SPREAD_M)
    # Same box: each has a drop of its own; another box: anything within the spread is as likely. Pairs of one box are
    # not independent, and taken as if they were they split too many: half of the odds that they are apart.
    same = (1 + apart / DROP_SCALE_M) * np.exp(-apart / DROP_SCALE_M) / (2 * DROP_SCALE_M)
    other = np.maximum(1 - apart / spread, 0.05) / spread
    prior = -np.log(_boxes(len(distance_m)) - 1)
    score = np.log(same + 1e-12) - np.log(other) + prior
    return np.asarray(np.where(np.isfinite(apart), np.maximum(score, -6.0), prior))


def _boxes(onus: int) -> float:
    return float(np.clip(onus / _USUAL_ONUS, _FEWEST_BOXES, _MOST_BOXES))


def _event_score(event: SharedEvent) -> Floats:
    hit, well = event.hit, event.well
    seen = hit.sum() + well.sum()
    box = max(seen / _boxes(len(hit)), 1.0)
    # Of two ONUs in different boxes that one is hit: how likely is the other hit, too?
    by_chance = np.clip((hit.sum() - box) / max(seen - box, 1.0), 0.05, 1.0)
    together = min(-np.log(by_chance), _MOST_TOGETHER)
    return np.asarray(together * np.outer(hit, hit) - _APART * (np.outer(hit, well) | np.outer(well, hit)))


def _join(score: Floats) -> NDArray[np.int64]:
    """Join the two groups whose pairs score best on average, again and again, while that is above zero."""
    count = len(score)
    box = np.arange(count)
    between, sizes = score.copy(), np.ones(count)
    np.fill_diagonal(between, -np.inf)
    for _ in range(count - 1):
        average = between / np.outer(sizes, sizes)
        first, second = np.unravel_index(int(np.argmax(average)), average.shape)
        if average[first, second] <= 0:
            break
        between[first] += between[second]
        between[:, first] = between[first]
        between[first, first] = -np.inf
        between[second], between[:, second] = -np.inf, -np.inf
        sizes[first] += sizes[second]
        box[box == second] = first
    return np.asarray(np.unique(box, return_inverse=True)[1], dtype=np.int64)


def _confidence(score: Floats, box: NDArray[np.int64]) -> Floats:
    """How much better each ONU fits its own group than the next best one, as a probability."""
    groups = np.eye(int(box.max(initial=0)) + 1)[box] if len(box) else np.zeros((0, 1))
    own = groups[np.arange(len(box)), box] if len(box) else np.zeros(0)
    totals, sizes = score @ groups, groups.sum(axis=0) - groups
    average = np.divide(totals, np.maximum(sizes, 1))
    mine = average[np.arange(len(box)), box] * own
    average[np.arange(len(box)), box] = -np.inf
    other = np.maximum(average.max(axis=1, initial=0.0), 0.0)
    return np.asarray(1 / (1 + np.exp(-np.clip(mine - other, -20, 20))))
