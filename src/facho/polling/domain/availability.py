"""Where the time of ONUs went in a month: up, down, unknown or planned; and light that rose and stayed.

Rows of every array are ONUs, columns are moments in epoch seconds. What was not read is unknown, never up. Planned
maintenance is neither up nor down nor unknown, whatever was read in it.
"""

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.light import row_medians

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Span = tuple[float, float]

# A state holds over one missed poll; with two missing nothing is known.
BRIDGED_POLLS: Final = 2.5
# Polls further apart than this are no rhythm.
_LONGEST_RHYTHM: Final = 86_400.0
_USUAL_RHYTHM: Final = 300.0
# Gaps before or after one that have to be as long, too, before it is taken for the rhythm of a while.
_NEIGHBOURS: Final = 3


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A month of the operator's calendar."""

    year: int
    number: int

    @classmethod
    def parse(cls, text: str) -> "Month":
        """Read a month such as 2026-10; ValueError if it is none."""
        year, dash, number = text.partition("-")
        if not (dash and len(year) == len("2026") and len(number) == len("10") and (year + number).isdecimal()):
            raise ValueError(text)
        if not (text.isascii() and 1 <= int(number) <= 12 and 2000 <= int(year) < 9000):
            raise ValueError(text)
        return cls(int(year), int(number))

    @classmethod
    def of(cls, moment: datetime, zone: ZoneInfo) -> "Month":
        local = moment.astimezone(zone)
        return cls(local.year, local.month)

    def __str__(self) -> str:
        return f"{self.year:04}-{self.number:02}"

    def shifted(self, months: int) -> "Month":
        count = self.year * 12 + self.number - 1 + months
        return Month(count // 12, count % 12 + 1)

    def bounds(self, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """From its first midnight to before the next month's; with a change of clocks it is not a number of days."""
        after = self.shifted(1)
        return datetime(self.year, self.number, 1, tzinfo=zone), datetime(after.year, after.number, 1, tzinfo=zone)


def merge(spans: Iterable[Span]) -> list[Span]:
    """Return the same time as spans that neither touch nor overlap, in order."""
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def clip(spans: Iterable[Span], start: float, end: float) -> list[Span]:
    return [(max(a, start), min(b, end)) for a, b in spans if max(a, start) < min(b, end)]


def length(spans: Iterable[Span], *, without: Sequence[Span] = ()) -> float:
    """Add up spans, each moment once, and leave out what others cover."""
    edges = np.array(merge(spans)).reshape(-1, 2)
    worked = edges - covered(without, edges)
    return float((worked[:, 1] - worked[:, 0]).sum())


def covered(spans: Iterable[Span], at: Floats) -> Floats:
    """For each moment, how many seconds before it these spans cover."""
    merged = np.array(merge(spans)).reshape(-1, 2)
    if not len(merged):
        return np.zeros_like(at, dtype=np.float64)
    lengths = merged[:, 1] - merged[:, 0]
    done = np.repeat(np.concatenate([[0.0], np.cumsum(lengths)]), 2)[1:-1]
    return np.asarray(np.interp(at, merged.ravel(), done))


@dataclass(frozen=True, slots=True, eq=False)
class MonthTimes:
    """Seconds of each ONU, which add up to its life in the month; interruptions and the longest of them.

    `first_down` and `last_down` are the lengths of the time down that it begins and ends with, 0 where it is up.
    """

    up: Floats
    down: Floats
    unknown: Floats
    planned: Floats
    interruptions: Ints
    longest_down: Floats
    first_down: Floats
    last_down: Floats


def account(at: Ints, share: Floats, lives: Floats, planned: Sequence[Span], *, hours: bool = False) -> MonthTimes:
    """Sum up where the time of each ONU went within its life, the pair of moments in its row of `lives`.

    `share` is the share of time online from 0 to 1: of one poll either of both, and with `hours` that of an hour.
    """
    # Seconds that are not planned, since 1970: on this clock maintenance takes no time.
    rhythm = np.full(len(at), 3600.0) if hours else _rhythm(at)
    moments = at.astype(np.float64)
    own, held = moments - covered(planned, moments), moments + rhythm - covered(planned, moments + rhythm)
    begin, end = (lives[:, edge] - covered(planned, lives[:, edge]) for edge in (0, 1))
    is_known = np.isfinite(share)
    following = next_known(is_known)
    has_next = following < len(at)
    following = np.minimum(following, max(len(at) - 1, 0))
    longest = rhythm * (1.0 if hours else BRIDGED_POLLS)
    is_bridged = has_next & (moments[following] - moments <= longest) if len(at) else has_next
    until = np.where(is_bridged, own[following], held) if len(at) else np.zeros_like(share)
    low, high = begin[:, np.newaxis], end[:, np.newaxis]
    seconds = np.where(is_known, np.clip(until, low, high) - np.clip(own, low, high), 0.0)
    up = (seconds * np.where(is_known, share, 0.0)).sum(axis=1)
    known = seconds.sum(axis=1)
    down_seconds = np.where(is_known, seconds * (1 - share), 0.0)
    downs = count_interruptions(seconds, share, down_seconds)
    alive = lives[:, 1] - lives[:, 0]
    worked = end - begin
    return MonthTimes(
        up=up,
        down=known - up,
        unknown=np.maximum(worked - known, 0.0),
        planned=alive - worked,
        interruptions=downs.counts,
        longest_down=downs.longest,
        first_down=downs.first,
        last_down=downs.last,
    )


def add_times(parts: Sequence[MonthTimes]) -> MonthTimes:
    """Join parts of one month that follow each other; a time down that spans two of them stays one."""
    return functools.reduce(_followed_by, parts)


def _followed_by(before: MonthTimes, after: MonthTimes) -> MonthTimes:
    goes_on = (before.last_down > 0) & (after.first_down > 0)
    first = np.where(_was_down(before) & goes_on, before.first_down + after.first_down, before.first_down)
    last = np.where(_was_down(after) & goes_on, before.last_down + after.last_down, after.last_down)
    joined = np.where(goes_on, before.last_down + after.first_down, 0.0)
    return MonthTimes(
        up=before.up + after.up,
        down=before.down + after.down,
        unknown=before.unknown + after.unknown,
        planned=before.planned + after.planned,
        interruptions=before.interruptions + after.interruptions - goes_on,
        longest_down=np.max([before.longest_down, after.longest_down, joined], axis=0),
        # What was not known in between does not cut one in two.
        first_down=np.where(before.up + before.down > 0, first, after.first_down),
        last_down=np.where(after.up + after.down > 0, last, before.last_down),
    )


def _was_down(part: MonthTimes) -> NDArray[np.bool_]:
    """Whether the time down that a part begins with is the one that it ends with."""
    return np.asarray((part.interruptions == 1) & (part.first_down > 0) & (part.last_down > 0))


def _rhythm(at: Ints) -> Floats:
    """Seconds between polls at each poll: those of most polls, or longer where a whole row of them is further apart."""
    gaps = np.diff(at).astype(np.float64)
    if not len(gaps):
        return np.full(len(at), _USUAL_RHYTHM)
    # The shortest of each gap and those after it, and of each gap and those before it.
    shortest = np.lib.stride_tricks.sliding_window_view(np.pad(gaps, _NEIGHBOURS), _NEIGHBOURS + 1).min(axis=1)
    around = np.maximum(shortest[_NEIGHBOURS:], shortest[:-_NEIGHBOURS])
    rhythm = np.minimum(np.maximum(np.median(gaps), around), _LONGEST_RHYTHM)
    return np.concatenate([rhythm, rhythm[-1:]])


def next_known(is_known: NDArray[np.bool_]) -> NDArray[np.intp]:
    """For each cell the column of the next known one of its row; the number of columns if there is none."""
    columns = is_known.shape[1]
    here = np.where(is_known, np.arange(columns), columns)
    reached = np.minimum.accumulate(here[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate([reached[:, 1:], np.full((len(is_known), min(columns, 1)), columns)], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Downs:
    """Times down of each ONU: how many, the longest, and those at the beginning and at the end."""

    counts: Ints
    longest: Floats
    first: Floats
    last: Floats


def count_interruptions(seconds: Floats, share: Floats, down: Floats) -> Downs:
    """Count times down that took time of the month; what was not known in between does not cut one in two."""
    onus = len(share)
    found = Downs(np.zeros(onus, dtype=np.int64), np.zeros(onus), np.zeros(onus), np.zeros(onus))
    for row in np.flatnonzero(down.sum(axis=1) > 0).tolist():
        its = np.isfinite(share[row])
        is_down = share[row, its] < 1
        number = np.cumsum(is_down & ~np.concatenate([[False], is_down[:-1]]))
        lengths = np.bincount(number[is_down], weights=down[row, its][is_down])
        found.counts[row], found.longest[row] = (lengths > 0).sum(), lengths.max()
        ends = np.flatnonzero(seconds[row, its] > 0)[[0, -1]]
        found.first[row], found.last[row] = np.where(is_down[ends], lengths[number[ends] * is_down[ends]], 0.0)
    return found


def percent_shares(seconds: Sequence[float]) -> list[float]:
    """Return percentages that add up to exactly 100 when shown with two decimals; zeros of nothing."""
    total = sum(seconds)
    if total <= 0:
        return [0.0] * len(seconds)
    units = 100 * 100
    exact = [each / total * units for each in seconds]
    whole = [floor(each) for each in exact]
    missing = units - sum(whole)
    by_rest = sorted(range(len(exact)), key=lambda number: whole[number] - exact[number])
    for number in by_rest[:missing]:
        whole[number] += 1
    return [each / 100 for each in whole]


def availability(up: float, down: float) -> float | None:
    """Return the percentage of known time that was up, cut to thousandths: not even a second down shows as 100."""
    known = up + down
    return floor(up / known * 100_000) / 1_000 if known > 0 else None


# Days on each side that a rise is judged by: a rise counts after that many days.
RISE_DAYS: Final = 3
_LEAST_OF_THEM = 2
# Less is what weather, meters and a moved cable do.
_LEAST_RISE_DB, _RISE_NOISES, _LEAST_NOISE_DB = 1.0, 4.5, 0.05


@dataclass(frozen=True, slots=True, eq=False)
class LightRises:
    """The largest lasting rise of each ONU: the first day of the new level, -1 without one, and both levels."""

    day: Ints
    before_dbm: Floats
    after_dbm: Floats


def find_rises(daily_dbm: Floats) -> LightRises:
    """Find light that rose against the ONU's own level of the days before and stayed, from daily medians."""
    onus, days = daily_dbm.shape
    day = np.full(onus, -1, dtype=np.int64)
    before, after, best = np.full(onus, np.nan), np.full(onus, np.nan), np.zeros(onus)
    moves = np.abs(np.diff(daily_dbm, axis=1))
    # Of a difference the noise is larger by the root of two.
    noise = np.maximum(row_medians(moves) * 1.05, _LEAST_NOISE_DB) if days > 1 else np.full(onus, _LEAST_NOISE_DB)
    # An ONU read on single days only has no moves.
    noise = np.where(np.isfinite(noise), noise, np.inf)
    if days < RISE_DAYS + _LEAST_OF_THEM:
        return LightRises(day, before, after)
    # For each first day of a new level: the days before it, and its own.
    padded = np.pad(daily_dbm, ((0, 0), (RISE_DAYS, 0)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, RISE_DAYS, axis=1)
    old, new = windows[:, : days - RISE_DAYS + 1], windows[:, RISE_DAYS:]
    low, high = (row_medians(each.reshape(-1, RISE_DAYS)).reshape(onus, -1) for each in (old, new))
    is_judged = (np.isfinite(old).sum(axis=2) >= _LEAST_OF_THEM) & (np.isfinite(new).sum(axis=2) >= _LEAST_OF_THEM)
    rise = np.where(is_judged, high - low, -np.inf)
    half = low + rise / 2
    # The day of the rise is partly old; every one after it has to be new.
    stays = np.where(np.isfinite(new[:, :, 1:]), new[:, :, 1:], np.inf).min(axis=2) > half
    # The first day above the middle is the first of the new level.
    is_rise = (rise >= np.maximum(_LEAST_RISE_DB, _RISE_NOISES * noise)[:, np.newaxis]) & stays & (new[:, :, 0] > half)
    is_rise[:, :_LEAST_OF_THEM] = False
    for row, number in np.argwhere(is_rise).tolist():
        later = daily_dbm[row, number:]
        if rise[row, number] > best[row] and np.median(later[np.isfinite(later)]) > half[row, number]:
            day[row], best[row] = number, rise[row, number]
            before[row], after[row] = low[row, number], high[row, number]
    return LightRises(day, before, after)


def local_days(start: datetime, end: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return the midnights of the operator's clock from the day of `start` to the one that ends at or after `end`."""
    first = start.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    midnights = [first]
    while midnights[-1] < end:
        date = midnights[-1].date() + timedelta(days=1)
        midnights.append(datetime(date.year, date.month, date.day, tzinfo=zone))
    return midnights


def daily_medians(at: Ints, values: Floats, edges: Sequence[datetime]) -> Floats:
    """Return the median of each ONU on each day, the time between two edges; NaN without a value."""
    columns = np.searchsorted(at, [int(edge.timestamp()) for edge in edges])
    medians = np.full((len(values), max(len(edges) - 1, 0)), np.nan)
    for number, (first, last) in enumerate(itertools.pairwise(columns)):
        if last > first:
            medians[:, number] = row_medians(values[:, first:last])
    return medians
