"""Writes and reads the history of ONUs and OLTs. A sample is in exactly one row: a waiting poll or a block.

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

from facho.infrastructure.bulk import insert_values
from facho.onus.history_codec import (
    AVERAGE,
    DAY_SECONDS,
    HIGHEST,
    HOUR_SECONDS,
    LOWEST,
    Buffer,
    HistoryGrid,
    Poll,
    UnreadableBlock,
    decode_grid,
    decode_poll,
    encode_poll,
    grids_of_polls,
    is_poll,
    join,
    summarise,
    with_gaps,
    without_strangers,
)
from facho.onus.history_family import OLTS, ONUS, HistoryFamily
from facho.onus.history_metrics import Floats, Ints, from_steps, to_steps
from facho.onus.history_models import HistoryStay
from facho.onus.models import Onu

logger = logging.getLogger(__name__)

# Ports with neighbouring ids share the row of a poll: merging it touches no more than their blocks.
PORTS_PER_GROUP_BITS = 3
# No PON has as many. A device that claims more gets no history there, instead of blocks that no memory holds.
MAX_ONUS_PER_PORT = 1_024
_NONE = np.zeros(0, dtype=np.int64)
_NOTHING = HistoryGrid(_NONE, _NONE, np.zeros((1, 0, 0), dtype=np.int64))
_GROUP = F("pon_port_id").bitrightshift(PORTS_PER_GROUP_BITS)
_Ids: TypeAlias = Sequence[int] | QuerySet[Any, Any]


class Resolution(IntEnum):
    """Seconds between values; samples are returned as taken."""

    SAMPLES = 0
    HOURS = HOUR_SECONDS
    DAYS = DAY_SECONDS


@dataclass(frozen=True, slots=True)
class Samples:
    """Values of a poll as columns: entry i is of ONU `onu_ids[i]` at port `pon_port_ids[i]`.

    NaN is a missing value. An ONU that did not answer is listed too, so that its gap shows. For an OLT, these are
    table rows and the OLT id.
    """

    onu_ids: Ints
    pon_port_ids: Ints
    values: Mapping[int, Floats]

    @classmethod
    def of(
        cls, onu_ids: Sequence[int], pon_port_ids: Sequence[int], values: Mapping[int, Sequence[float | None]]
    ) -> "Samples":
        """Make arrays of few values; None is a missing one."""
        ids, ports = np.array(onu_ids, dtype=np.int64), np.array(pon_port_ids, dtype=np.int64)
        return cls(ids, ports, {metric: np.array(column, dtype=np.float64) for metric, column in values.items()})


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one ONU at epoch seconds; NaN is a gap. For samples all three arrays are equal."""

    at: Ints
    average: Floats
    lowest: Floats
    highest: Floats


@dataclass(frozen=True, slots=True)
class PortSeries:
    """Values of a PON port's ONUs, one row per ONU, at shared times; NaN is a gap."""

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


def append(now: datetime, *tables: Samples, family: HistoryFamily = ONUS) -> None:
    """Store the values of a poll; one statement for any number of ONUs."""
    rows = [(group, now, encode_poll(poll)) for samples in tables for group, poll in _polls(now, samples)]
    insert_values(family.polls, ["port_group", "taken_at", "data"], rows)


def _polls(now: datetime, samples: Samples) -> Iterator[tuple[int, Poll]]:
    ports = samples.pon_port_ids
    values = {metric: to_steps(metric, column) for metric, column in samples.values.items()}
    groups = ports >> PORTS_PER_GROUP_BITS
    known, counts = np.unique(ports, return_counts=True)
    is_kept = np.isin(ports, known[counts <= MAX_ONUS_PER_PORT])
    for group in np.unique(groups[is_kept]):
        its = is_kept & (groups == group)
        columns = {metric: column[its] for metric, column in values.items()}
        yield int(group), Poll(int(now.timestamp()), samples.onu_ids[its], ports[its], columns)


def read_onu(onu_id: int, metric: int, start: datetime, end: datetime, resolution: Resolution) -> Series:
    question = _Question.of(metric, start, end, resolution)
    found = _load(ONUS, question, _ports_of(onu_id, F("pon_port_id")), _ports_of(onu_id, _GROUP), onu_id)
    has_moved = len({port for port, _ in found}) > 1
    # The series of a port it left continues without it; this is not a gap.
    return question.series(grid.trimmed() if has_moved else grid for _, grid in found)


def read_olt_row(
    olt_id: int, row_id: int, metric: int, start: datetime, end: datetime, resolution: Resolution
) -> Series:
    """Read one row of an OLT's tables from `start` to before `end`."""
    question = _Question.of(metric, start, end, resolution)
    found = _load(OLTS, question, [olt_id], [olt_id >> PORTS_PER_GROUP_BITS], row_id)
    return question.series(grid for place, grid in found if place == olt_id)


def read_port(pon_port_id: int, metric: int, start: datetime, end: datetime, resolution: Resolution) -> PortSeries:
    """Read all ONUs that were on a PON port from `start` to before `end`."""
    question = _Question.of(metric, start, end, resolution)
    found = _load(ONUS, question, [pon_port_id], [pon_port_id >> PORTS_PER_GROUP_BITS])
    grid = question.answer(grid for port, grid in found if port == pon_port_id)
    return PortSeries(grid.onu_ids, grid.at, *question.values(grid))


@dataclass(frozen=True, slots=True)
class _Question:
    """The query in whole steps of its resolution; times in epoch seconds."""

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

    def answer(self, grids: Iterable[HistoryGrid]) -> HistoryGrid:
        step = self.resolution
        steps = [summarise(grid, self.metric, step) if step else grid for grid in grids]
        if not steps:
            return _NOTHING
        joined = join(steps).between(self.start, self.end)
        return with_gaps(joined if step or len(joined.onu_ids) > 1 else without_strangers(joined), step or None)

    def series(self, grids: Iterable[HistoryGrid]) -> Series:
        grid = self.answer(grids)
        return Series(grid.at, *(values.reshape(-1) for values in self.values(grid)))

    def values(self, grid: HistoryGrid) -> list[Floats]:
        layers = [grid.layers[number if grid.is_summary else 0] for number in (AVERAGE, LOWEST, HIGHEST)]
        return [from_steps(self.metric, layer, is_summary=grid.is_summary) for layer in layers]


def _ports_of(onu_id: int, expression: F | CombinedExpression) -> QuerySet[Any, Any]:
    """Select the ports where an ONU has history, and its current one: its first samples may not be merged yet."""
    stays = HistoryStay.objects.filter(onu_id=onu_id).values_list(expression)
    return stays.union(Onu.objects.filter(id=onu_id).order_by().values_list(expression))


def _load(
    family: HistoryFamily, question: _Question, ports: _Ids, groups: _Ids, onu_id: int | None = None
) -> list[tuple[int, HistoryGrid]]:
    """Load grids with their ports in one statement; with an ONU, only those that contain it."""
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


def _in_order(grids: Iterable[tuple[int, HistoryGrid]]) -> list[tuple[int, HistoryGrid]]:
    """Sort by time, which makes joining much faster."""
    return sorted(((port, grid) for port, grid in grids if grid.onu_ids.size), key=lambda pair: pair[1].at[:1].tolist())


def _rows(family: HistoryFamily, question: _Question, ports: _Ids, groups: _Ids) -> Iterable[tuple[int, Buffer]]:
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
