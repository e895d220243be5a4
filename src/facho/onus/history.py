"""Writes and reads the history of ONUs and OLTs. A sample is in exactly one row: a waiting poll or a block.

`append` belongs into the transaction that stores a poll. Reading takes one statement, so that a compaction at the same
moment neither hides a sample nor shows it twice. Days and hours are those of UTC.
"""

import functools
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from django.db import IntegrityError, connection, transaction
from django.db.models import BinaryField, DateTimeField, F, Model, PositiveSmallIntegerField, Q, QuerySet, Value
from django.db.models.functions import Substr

from facho.hosts.history_models import (
    OltHistoryBlock,
    OltHistoryDays,
    OltHistoryHours,
    OltHistoryPoll,
    OltHistorySamples,
)
from facho.hosts.models import Olt
from facho.infrastructure.bulk import insert_values
from facho.infrastructure.statements import Given, Row, Select
from facho.onus import history_codec as codec
from facho.onus.history_models import (
    Floats,
    HistoryBlock,
    HistoryDays,
    HistoryHours,
    HistoryPoll,
    HistorySamples,
    HistoryStay,
    Ints,
    from_steps,
    to_steps,
)
from facho.onus.models import Onu, PonPort

logger = logging.getLogger(__name__)

# Ports with neighbouring ids share the row of a poll: merging it touches no more than their blocks.
PORTS_PER_GROUP_BITS = 3
# No PON has as many. A device that claims more gets no history there, instead of blocks that no memory holds.
MAX_ONUS_PER_PORT = 1_024
_NONE = np.zeros(0, dtype=np.int64)
_NOTHING = codec.HistoryGrid(_NONE, _NONE, np.zeros((1, 0, 0), dtype=np.int64))
_GROUP = F("pon_port_id").bitrightshift(PORTS_PER_GROUP_BITS)
_NO_METRIC = Value(0, output_field=PositiveSmallIntegerField())
_NO_BLOCK = Value(None, output_field=BinaryField())
# A port or an OLT, and values of it.
_Placed: TypeAlias = tuple[int, codec.HistoryGrid]
# Waiting polls that become one row, and such rows that become a larger one: unpacking a day of polls one by one takes
# a reader seconds.
POLLS_PER_BUNDLE = 32
TOGETHER = {codec.POLL: POLLS_PER_BUNDLE, codec.BUNDLE: 8}
# No bundle is longer. It is found by the time of its last poll.
BUNDLE_SPAN = timedelta(hours=6)
# Rows of each kind that this process added to a group since it last put them together.
ADDED: dict[tuple[str, int, int], int] = {}


WaitingPoll: TypeAlias = HistoryPoll | OltHistoryPoll
Block: TypeAlias = HistoryBlock | OltHistoryBlock


@dataclass(frozen=True, slots=True)
class HistoryFamily:
    """The tables of one kind of history; `key` is the column of their owner."""

    key: str
    places: type[Model]
    polls: type[Any]
    samples: type[Any]
    hours: type[Any]
    days: type[Any]
    # Whether its values wander from one place to another.
    has_stays: bool

    def place_of(self, block: Block) -> int:
        place: int = getattr(block, self.key)
        return place


ONUS = HistoryFamily("pon_port_id", PonPort, HistoryPoll, HistorySamples, HistoryHours, HistoryDays, has_stays=True)
OLTS = HistoryFamily("olt_id", Olt, OltHistoryPoll, OltHistorySamples, OltHistoryHours, OltHistoryDays, has_stays=False)
FAMILIES = (ONUS, OLTS)


class Resolution(IntEnum):
    """Seconds between values; samples are returned as taken."""

    SAMPLES = 0
    HOURS = codec.HOUR_SECONDS
    DAYS = codec.DAY_SECONDS


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
    """Store the values of a poll; one statement for any number of ONUs, and a few more when a group is bundled."""
    rows = [(group, now, codec.encode_poll(poll)) for samples in tables for group, poll in _polls(now, samples)]
    insert_values(family.polls, ["port_group", "taken_at", "data"], rows)
    for group, _, _ in rows:
        _count(family, group, now, codec.POLL)


def _count(family: HistoryFamily, group: int, now: datetime, kind: int) -> None:
    """Count a row that was added to a group, and put its like together when there are enough.

    The first time a group has to have fewer, each another number: all of them count from the start of the process, and
    else they would be put together by the same polls.
    """
    key = family.key, group, kind
    ahead = group % POLLS_PER_BUNDLE if kind == codec.POLL else group // POLLS_PER_BUNDLE % TOGETHER[kind]
    ADDED[key] = ADDED.get(key, ahead) + 1
    if ADDED[key] < TOGETHER[kind]:
        return
    ADDED[key] = 0
    try:
        with transaction.atomic():
            _put_together(family, group, now, kind)
    except IntegrityError:
        # An OLT that shares the group was deleted at this moment; its polls go when they are merged.
        logger.info("history.not_bundled group=%s", group)
    if kind == codec.POLL:
        _count(family, group, now, codec.BUNDLE)


def _put_together(family: HistoryFamily, group: int, now: datetime, kind: int) -> None:
    """Make one row of a group's waiting polls, or of its bundles, in the transaction that added the last of them."""
    polls = family.polls._default_manager
    waiting = polls.filter(port_group=group, taken_at__gt=now - BUNDLE_SPAN, taken_at__lte=now).alias(
        kind=Substr("data", 1, 1, output_field=BinaryField())
    )
    # Rows that a compaction consumes at this moment are left to it.
    rows = waiting.filter(kind=bytes([kind])).order_by("taken_at", "id").select_for_update(skip_locked=True)
    ids, taken, grids = [], [], defaultdict(list)
    for pk, block in rows.values_list("id", "data"):
        try:
            if kind == codec.POLL:
                taken.append(codec.decode_poll(block))
            else:
                for port, metric, grid in list(codec.decode_bundle(block)):
                    grids[port, metric, grid.day].append(grid)
        except codec.UnreadableBlock:
            # Compaction drops it, with a line in the log.
            continue
        ids.append(pk)
    if len(ids) < 2:
        return
    polls.filter(id__in=ids).delete()
    if family.has_stays and kind == codec.POLL:
        save_stays(pair for each in taken for pair in each.pairs())
    joined = [(port, metric, codec.join(parts)) for (port, metric, _), parts in grids.items()]
    block = codec.encode_bundle(
        codec.by_port(taken) if kind == codec.POLL else joined,
        codec.BUNDLE if kind == codec.POLL else codec.LARGE_BUNDLE,
    )
    polls.create(port_group=group, taken_at=now, data=block)


def save_stays(pairs: Iterable[tuple[int, int]]) -> None:
    """Record at which ports these ONUs have history that is put together: by this it is found."""
    stays = new_stays(set(pairs))
    HistoryStay.objects.bulk_create(stays, ignore_conflicts=True)
    if stays and connection.vendor == "postgresql":
        # Checked now, their ports and ONUs stay until the end of the transaction; checked then, it could fail.
        connection.check_constraints()


def new_stays(pairs: set[tuple[int, int]]) -> list[HistoryStay]:
    """Return the stays of ONUs and ports that are not recorded yet; two queries."""
    onu_ids = {onu_id for onu_id, _ in pairs}
    known = HistoryStay.objects.filter(onu_id__in=onu_ids).values_list("onu_id", "pon_port_id")
    # An ONU that was deleted leaves its samples to the port.
    living = set(Onu.objects.filter(id__in=onu_ids).values_list("id", flat=True))
    new = sorted(pair for pair in pairs - set(known) if pair[0] in living)
    return [HistoryStay(onu_id=onu_id, pon_port_id=port) for onu_id, port in new]


def _polls(now: datetime, samples: Samples) -> Iterator[tuple[int, codec.Poll]]:
    ports = samples.pon_port_ids
    values = {metric: to_steps(metric, column) for metric, column in samples.values.items()}
    groups = ports >> PORTS_PER_GROUP_BITS
    known, counts = np.unique(ports, return_counts=True)
    is_kept = np.isin(ports, known[counts <= MAX_ONUS_PER_PORT])
    for group in np.unique(groups[is_kept]):
        its = is_kept & (groups == group)
        columns = {metric: column[its] for metric, column in values.items()}
        yield int(group), codec.Poll(int(now.timestamp()), samples.onu_ids[its], ports[its], columns)


def read_onu(onu_id: int, metric: int, start: datetime, end: datetime, resolution: Resolution) -> Series:
    return read_onu_metrics(onu_id, (metric,), start, end, resolution)[metric]


def read_onu_metrics(
    onu_id: int, metrics: Collection[int], start: datetime, end: datetime, resolution: Resolution
) -> dict[int, Series]:
    """Read one ONU on any port from `start` to before `end`: one statement for any number of metrics."""
    question = _Question.of(start, end, resolution)
    return {
        metric: question.series(metric, [grid for _, grid in _of_mover(found)])
        for metric, found in _load(ONUS, question, metrics, _Wanted(onu_id, None)).items()
    }


def _of_mover(found: Sequence[_Placed]) -> Sequence[_Placed]:
    """End the series of a port that an ONU left: it continues without it, which is not a gap."""
    if len({port for port, _ in found}) <= 1:
        return found
    return [(port, grid.trimmed()) for port, grid in found]


def read_port(pon_port_id: int, metric: int, start: datetime, end: datetime, resolution: Resolution) -> PortSeries:
    """Read all ONUs that were on a PON port from `start` to before `end`: one statement."""
    return _read_place(ONUS, pon_port_id, (metric,), _Question.of(start, end, resolution))[metric]


def read_port_metrics(
    pon_port_id: int, metrics: Collection[int], start: datetime, end: datetime, resolution: Resolution
) -> dict[int, PortSeries]:
    """Read several metrics of all ONUs that were on a PON port: one statement."""
    return _read_place(ONUS, pon_port_id, metrics, _Question.of(start, end, resolution))


def read_olt(
    olt_id: int, metrics: Collection[int], start: datetime, end: datetime, resolution: Resolution
) -> dict[int, PortSeries]:
    """Read all rows of an OLT's tables from `start` to before `end`: one statement. Rows take the place of ONUs."""
    return _read_place(OLTS, olt_id, metrics, _Question.of(start, end, resolution))


def read_olt_row(
    olt_id: int, row_id: int, metric: int, start: datetime, end: datetime, resolution: Resolution
) -> Series:
    question = _Question.of(start, end, resolution)
    found = _load(OLTS, question, [metric], _Wanted(row_id, olt_id))
    return question.series(metric, [grid for _, grid in found[metric]])


def _read_place(
    family: HistoryFamily, place: int, metrics: Collection[int], question: "_Question"
) -> dict[int, PortSeries]:
    read = {}
    for metric, found in _load(family, question, metrics, _Wanted(None, place)).items():
        grid = question.answer(metric, [grid for _, grid in found])
        read[metric] = PortSeries(grid.onu_ids, grid.at, *question.values(metric, grid))
    return read


@dataclass(frozen=True, slots=True)
class _Question:
    """The query in whole steps of its resolution; times in epoch seconds."""

    start: int
    end: int
    resolution: Resolution

    @classmethod
    def of(cls, start: datetime, end: datetime, resolution: Resolution) -> "_Question":
        step = max(resolution, 1)
        first, last = int(start.timestamp()) // step, -int(-end.timestamp() // step)
        return cls(first * step, last * step, resolution)

    @property
    def start_at(self) -> datetime:
        return datetime.fromtimestamp(self.start, UTC)

    @property
    def end_at(self) -> datetime:
        return datetime.fromtimestamp(self.end, UTC)

    def answer(self, metric: int, grids: Sequence[codec.HistoryGrid]) -> codec.HistoryGrid:
        step = self.resolution
        steps = [codec.summarise(grid, metric, step) if step else grid for grid in grids]
        if not steps:
            return _NOTHING
        joined = codec.join(steps).between(self.start, self.end)
        return codec.with_gaps(
            joined if step or len(joined.onu_ids) > 1 else codec.without_strangers(joined), step or None
        )

    def series(self, metric: int, grids: Sequence[codec.HistoryGrid]) -> Series:
        grid = self.answer(metric, grids)
        return Series(grid.at, *(values.reshape(-1) for values in self.values(metric, grid)))

    def values(self, metric: int, grid: codec.HistoryGrid) -> list[Floats]:
        layers = [
            grid.layers[number if grid.is_summary else 0] for number in (codec.AVERAGE, codec.LOWEST, codec.HIGHEST)
        ]
        return [from_steps(metric, layer, is_summary=grid.is_summary) for layer in layers]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """All of a place, one row there, or an ONU wherever it was: its places are not known beforehand."""

    onu_id: int | None
    place: int | None


def _load(
    family: HistoryFamily, question: _Question, metrics: Collection[int], wanted: _Wanted
) -> dict[int, list[_Placed]]:
    """Load grids by metric with their places in one statement; with an ONU, only those that contain it."""
    blocks: dict[int, list[_Placed]] = {metric: [] for metric in metrics}
    waiting: dict[int, list[_Placed]] = {metric: [] for metric in metrics}
    polls, onu_id = [], wanted.onu_id
    rows = _rows(family, question, metrics, wanted)
    places = {place for place, _, block in rows if block is None} if wanted.place is None else {wanted.place}
    for place, of_metric, block in rows:
        if block is None:
            continue
        try:
            match codec.kind_of(block):
                case codec.POLL:
                    polls.append(codec.decode_poll(block, metrics))
                case codec.BUNDLE | codec.LARGE_BUNDLE:
                    for port, metric, grid in codec.decode_bundle(block, places, metrics, onu_id):
                        waiting[metric].append((port, grid))
                case _:
                    blocks[of_metric].append((place, codec.decode_grid(block, onu_id)))
        except codec.UnreadableBlock:
            logger.exception("history.block_unreadable place=%s metric=%s", place, of_metric)
    # Where an ONU was before it moved here is not recorded before its polls are put together.
    ports = {*places, *(port for poll in polls for port in poll.ports_of(onu_id))}
    for port, metric, grid in codec.by_port([poll.at_ports(ports) for poll in polls]):
        waiting[metric].append((port, grid if onu_id is None else grid.of_onu(onu_id)))
    # What waits was read last, so it is laid over the rest.
    return {metric: [*_in_order(blocks[metric]), *_in_order(waiting[metric])] for metric in metrics}


def _in_order(grids: Iterable[_Placed]) -> list[_Placed]:
    """Sort by time, which makes joining much faster."""
    return sorted(((port, grid) for port, grid in grids if grid.onu_ids.size), key=lambda pair: pair[1].at[:1].tolist())


def _rows(family: HistoryFamily, question: _Question, metrics: Collection[int], wanted: _Wanted) -> list[Row]:
    """Return place, metric and block; of an ONU that is read wherever it was, each place once more without a block."""
    select = _select(family, question.resolution, tuple(metrics), is_mover=wanted.place is None)
    ends = {f"until_{each.name}": question.end_at + period for each, period in _PERIODS.items()}
    # A bundle bears the time of its last poll.
    times = {"start": question.start_at, "until": question.end_at + BUNDLE_SPAN, **ends}
    if wanted.place is None:
        return select.rows(**times, onu_id=wanted.onu_id)
    return select.rows(**times, place=wanted.place, group=wanted.place >> PORTS_PER_GROUP_BITS)


@functools.cache
def _select(family: HistoryFamily, resolution: Resolution, metrics: tuple[int, ...], *, is_mover: bool) -> Select:
    return Select(lambda: _union(family, resolution, metrics, is_mover=is_mover))


def _union(
    family: HistoryFamily, resolution: Resolution, metrics: tuple[int, ...], *, is_mover: bool
) -> QuerySet[Any, Any]:
    start, until = (Given(name, DateTimeField()) for name in ("start", "until"))
    its_place, its_group = Q((family.key, Given("place"))), Q(port_group=Given("group"))
    named: list[QuerySet[Any, Any]] = []
    if is_mover:
        # The ports where it has history, and its current one: its first samples may not be put together yet.
        stays = HistoryStay.objects.filter(onu_id=Given("onu_id")).order_by()
        here = Onu.objects.filter(id=Given("onu_id")).order_by()
        its_place = Q(pon_port_id__in=stays.values_list("pon_port_id").union(here.values_list("pon_port_id")))
        its_group = Q(port_group__in=stays.values_list(_GROUP).union(here.values_list(_GROUP)))
        named = [rows.values_list("pon_port_id", _NO_METRIC, _NO_BLOCK) for rows in (stays, here)]
    polls = family.polls._default_manager.filter(its_group, taken_at__gte=start, taken_at__lt=until)
    blocks = [
        model._default_manager.filter(
            its_place,
            metric__in=metrics,
            ends_at__gt=start,
            ends_at__lt=Given(f"until_{each.name}", DateTimeField()),
        )
        for each, model in zip(Resolution, (family.samples, family.hours, family.days), strict=True)
        if each <= resolution
    ]
    selected: QuerySet[Any, Any] = polls.values_list("port_group", _NO_METRIC, "data").union(
        *(rows.values_list(family.key, "metric", "data") for rows in blocks), *named, all=True
    )
    return selected
