"""Writes and reads the history of ONUs and OLTs. A sample stands in exactly one row: a waiting poll or a block.

`append` belongs into the transaction that stores a poll. Reading takes one statement, so that a compaction at the same
moment neither hides a sample nor shows it twice. Days and hours are those of UTC.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from django.db.models import F, QuerySet
from django.db.models.expressions import CombinedExpression

from facho.onus.history_codec import Buffer, UnreadableBlock, decode_grid, decode_poll, encode_poll, is_poll
from facho.onus.history_family import OLTS, ONUS, Family
from facho.onus.history_grid import (
    AVERAGE,
    DAY_SECONDS,
    HIGHEST,
    HOUR_SECONDS,
    LOWEST,
    Grid,
    Poll,
    grids_of_polls,
    join,
    summarise,
    with_gaps,
    without_strangers,
)
from facho.onus.history_metrics import Floats, Ints, Metric, from_steps, to_steps
from facho.onus.history_models import HistoryStay
from facho.onus.models import Onu

logger = logging.getLogger(__name__)

# Ports with neighbouring ids share the row of a poll: merging it touches no more than their blocks.
PORTS_PER_GROUP_BITS = 3
# No PON has as many. A device that claims more gets no history there, instead of blocks that no memory holds.
MAX_ONUS_PER_PORT = 1_024


class Resolution(IntEnum):
    """How close together values are read, in seconds; samples come as they were taken."""

    SAMPLES = 0
    HOURS = HOUR_SECONDS
    DAYS = DAY_SECONDS


@dataclass(frozen=True, slots=True)
class Samples:
    """What a poll read, as columns: entry i of each is about the ONU `onu_ids[i]` at the port `pon_port_ids[i]`.

    An ONU without a value has None. So does one that was asked in vain: its absence from a poll of its port shows too.
    Of an OLT they are the rows of its tables, and the OLT.
    """

    onu_ids: Sequence[int]
    pon_port_ids: Sequence[int]
    values: Mapping[Metric, Sequence[float | None]] | Mapping[int, Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one ONU at times in seconds of the epoch; NaN is a gap. Of samples all three are the same."""

    at: Ints
    average: Floats
    lowest: Floats
    highest: Floats


@dataclass(frozen=True, slots=True)
class PortSeries:
    """Values of the ONUs of a PON port, one row an ONU, at times that they share; NaN is a gap."""

    onu_ids: Ints
    at: Ints
    average: Floats
    lowest: Floats
    highest: Floats


# No block reaches further back from its end.
_PERIODS = {
    Resolution.SAMPLES: timedelta(days=1),
    Resolution.HOURS: timedelta(days=1),
    Resolution.DAYS: timedelta(days=31),
}


def append(now: datetime, *tables: Samples, family: Family = ONUS) -> None:
    """Keep what a poll read; one statement, whatever the number of ONUs."""
    family.polls._default_manager.bulk_create(
        family.polls(port_group=group, taken_at=now, data=encode_poll(poll))
        for samples in tables
        for group, poll in _polls(now, samples)
    )


def _polls(now: datetime, samples: Samples) -> Iterator[tuple[int, Poll]]:
    onu_ids = np.asarray(samples.onu_ids, dtype=np.int64)
    ports = np.asarray(samples.pon_port_ids, dtype=np.int64)
    values = {metric: to_steps(metric, column) for metric, column in samples.values.items()}
    groups = ports >> PORTS_PER_GROUP_BITS
    known, counts = np.unique(ports, return_counts=True)
    is_kept = np.isin(ports, known[counts <= MAX_ONUS_PER_PORT])
    for group in np.unique(groups[is_kept]):
        its = is_kept & (groups == group)
        columns = {metric: column[its] for metric, column in values.items()}
        yield int(group), Poll(int(now.timestamp()), onu_ids[its], ports[its], columns)


def read_onu(onu_id: int, metric: int, start: datetime, end: datetime, resolution: Resolution) -> Series:
    """Read one ONU from `start` to before `end`, wherever it was plugged in."""
    question = _Question.of(metric, start, end, resolution)
    found = _load(ONUS, question, _ports_of(onu_id, F("pon_port_id")), _ports_of(onu_id, _GROUP), onu_id)
    has_moved = len({port for port, _ in found}) > 1
    # A port that it has left goes on without it: that is no gap.
    return question.series(grid.trimmed() if has_moved else grid for _, grid in found)


def read_olt_row(
    olt_id: int, row_id: int, metric: int, start: datetime, end: datetime, resolution: Resolution
) -> Series:
    """Read one row of an OLT's tables from `start` to before `end`."""
    question = _Question.of(metric, start, end, resolution)
    found = _load(OLTS, question, [olt_id], [olt_id >> PORTS_PER_GROUP_BITS], row_id)
    return question.series(grid for place, grid in found if place == olt_id)


def read_port(pon_port_id: int, metric: int, start: datetime, end: datetime, resolution: Resolution) -> PortSeries:
    """Read all ONUs that were at a PON port from `start` to before `end`."""
    question = _Question.of(metric, start, end, resolution)
    found = _load(ONUS, question, [pon_port_id], [pon_port_id >> PORTS_PER_GROUP_BITS])
    grid = question.answer(grid for port, grid in found if port == pon_port_id)
    return PortSeries(grid.onu_ids, grid.at, *question.values(grid))


@dataclass(frozen=True, slots=True)
class _Question:
    """What is wanted, in whole steps of its resolution; times are seconds of the epoch."""

    metric: int
    start: int
    end: int
    resolution: Resolution

    @classmethod
    def of(cls, metric: int, start: datetime, end: datetime, resolution: Resolution) -> "_Question":
        step = max(resolution, 1)
        first, last = int(start.timestamp()) // step, -int(-end.timestamp() // step)
        return cls(metric, first * step, last * step, resolution)

    @property
    def start_at(self) -> datetime:
        return datetime.fromtimestamp(self.start, UTC)

    @property
    def end_at(self) -> datetime:
        return datetime.fromtimestamp(self.end, UTC)

    def answer(self, grids: Iterable[Grid]) -> Grid:
        step = self.resolution
        steps = [summarise(grid, self.metric, step) if step else grid for grid in grids]
        if not steps:
            return _NOTHING
        joined = join(steps).between(self.start, self.end)
        return with_gaps(joined if step or len(joined.onu_ids) > 1 else without_strangers(joined), step or None)

    def series(self, grids: Iterable[Grid]) -> Series:
        grid = self.answer(grids)
        return Series(grid.at, *(values.reshape(-1) for values in self.values(grid)))

    def values(self, grid: Grid) -> list[Floats]:
        layers = [grid.layers[number if grid.is_summary else 0] for number in (AVERAGE, LOWEST, HIGHEST)]
        return [from_steps(self.metric, layer, is_summary=grid.is_summary) for layer in layers]


_NONE = np.zeros(0, dtype=np.int64)
_NOTHING = Grid(_NONE, _NONE, np.zeros((1, 0, 0), dtype=np.int64))
_GROUP = F("pon_port_id").bitrightshift(PORTS_PER_GROUP_BITS)
_Ids: TypeAlias = Sequence[int] | QuerySet[Any, Any]


def _ports_of(onu_id: int, expression: F | CombinedExpression) -> QuerySet[Any, Any]:
    """Select the ports at which an ONU has history, and the one where it is: its first samples may still wait."""
    stays = HistoryStay.objects.filter(onu_id=onu_id).values_list(expression)
    return stays.union(Onu.objects.filter(id=onu_id).order_by().values_list(expression))


def _load(
    family: Family, question: _Question, ports: _Ids, groups: _Ids, onu_id: int | None = None
) -> list[tuple[int, Grid]]:
    """Load grids with the port of each, in one statement; with an ONU only those that hold it."""
    found, polls = [], []
    for port, block in _rows(family, question, ports, groups):
        try:
            if is_poll(block):
                polls.append(decode_poll(block, (question.metric,)))
            else:
                found.append((port, decode_grid(block, onu_id)))
        except UnreadableBlock:
            logger.exception("history.block_unreadable port=%s metric=%s", port, question.metric)
    waiting = [(port, grid) for (port, _, _), grid in grids_of_polls(polls).items()]
    of_onu = [(port, grid if onu_id is None else grid.of_onu(onu_id)) for port, grid in waiting]
    # What waits was read last, so it is laid over the rest.
    return [*_in_order(found), *_in_order(of_onu)]


def _in_order(grids: Iterable[tuple[int, Grid]]) -> list[tuple[int, Grid]]:
    """Sort by time: so they are joined much faster."""
    return sorted(((port, grid) for port, grid in grids if grid.onu_ids.size), key=lambda pair: pair[1].at[:1].tolist())


def _rows(family: Family, question: _Question, ports: _Ids, groups: _Ids) -> Iterable[tuple[int, Buffer]]:
    polls: QuerySet[Any] = family.polls._default_manager.filter(
        port_group__in=groups, taken_at__gte=question.start_at, taken_at__lt=question.end_at
    )
    blocks = [
        model._default_manager.filter(
            **{f"{family.key}__in": ports},
            metric=question.metric,
            ends_at__gt=question.start_at,
            ends_at__lt=question.end_at + _PERIODS[resolution],
        )
        for resolution, model in zip(Resolution, (family.samples, family.hours, family.days), strict=True)
        if resolution <= question.resolution
    ]
    return polls.values_list("port_group", "data").union(
        *(rows.values_list(family.key, "data") for rows in blocks), all=True
    )
