"""Moves history to where it is small: waiting polls into days, old days into hours, old hours into months of days.

Each call does one bounded piece of work. It reads and computes without a transaction; then, in one, it deletes the very
rows that it read and inserts what becomes of them. Who finds one of them gone was overtaken and leaves all as it is.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from facho.onus.history_codec import UnreadableBlock, decode_grid, decode_poll, encode_grid
from facho.onus.history_family import FAMILIES, Block, Family
from facho.onus.history_family import Poll as WaitingPoll
from facho.onus.history_grid import (
    DAY_SECONDS,
    HOUR_SECONDS,
    Grid,
    Poll,
    PortMetricDay,
    grids_of_polls,
    join,
    summarise,
)
from facho.onus.history_models import HistoryStay
from facho.onus.models import Onu

logger = logging.getLogger(__name__)

# Sooner, the blocks of the day are rewritten more often; later, a reader has more polls to unpack.
MERGE_AFTER = timedelta(hours=2)
_DAY = timedelta(days=1)

# Port, metric, and the end of the block's period.
Key = tuple[int, int, datetime]
Row = WaitingPoll | Block


@dataclass(frozen=True, slots=True)
class Limits:
    """How many rows one call takes on at most; hours are always folded by one port's month."""

    polls: int = 64
    blocks: int = 64


class _Overtaken(Exception):
    """Another process did this piece of work meanwhile, or deleted what it was about."""


def compact(now: datetime, limits: Limits) -> int:
    """Do one piece of work and return how many rows it consumed; 0 means that none is left for now."""
    try:
        return next(filter(None, (_compact_family(family, now, limits) for family in FAMILIES)), 0)
    except _Overtaken:
        return 0


def _compact_family(family: Family, now: datetime, limits: Limits) -> int:
    return _merge_polls(family, now, limits) or _fold_samples(family, now, limits) or _fold_hours(family, now)


def _merge_polls(family: Family, now: datetime, limits: Limits) -> int:
    """Merge the polls of the ports that have waited longest into the days of these ports."""
    waiting = family.polls._default_manager.order_by("taken_at")
    oldest = waiting.filter(taken_at__lt=now - MERGE_AFTER).only("port_group").first()
    if oldest is None:
        return 0
    rows = list(waiting.filter(port_group=oldest.port_group)[: limits.polls])
    merged = _of_known_places(family, grids_of_polls(list(_polls(rows))))
    stored = _load(family, family.samples, merged)
    stays = _new_stays(merged, stored) if family.has_stays else []
    _replace(family, [*rows, *stored.rows], family.samples, stored.joined_with(merged), stays)
    return len(rows)


def _fold_samples(family: Family, now: datetime, limits: Limits) -> int:
    """Sum the oldest days up to their hours."""
    horizon = now - timedelta(days=settings.FACHO_HISTORY_DAYS)
    rows = list(family.samples._default_manager.filter(ends_at__lte=horizon).order_by("ends_at")[: limits.blocks])
    return _fold(family, rows, family.hours, {row.ends_at: row.ends_at for row in rows}, HOUR_SECONDS)


def _fold_hours(family: Family, now: datetime) -> int:
    """Sum a whole month of one place's hours up to its days, so that no month is rewritten day by day."""
    horizon = _month_of(now - timedelta(days=settings.FACHO_HISTORY_HOURLY_DAYS))[0]
    hours = family.hours._default_manager
    oldest = hours.filter(ends_at__lte=horizon).order_by("ends_at").defer("data").first()
    if oldest is None:
        return 0
    start, end = _month_of(oldest.ends_at - _DAY)
    rows = list(hours.filter(ends_at__gt=start, ends_at__lte=end, **{family.key: family.place_of(oldest)}))
    return _fold(family, rows, family.days, {row.ends_at: end for row in rows}, DAY_SECONDS)


def _fold(
    family: Family, rows: Sequence[Block], model: type[Any], ends: Mapping[datetime, datetime], seconds: int
) -> int:
    """Sum rows up and add them to the blocks of `model` that end at `ends`."""
    parts: dict[Key, list[Grid]] = defaultdict(list)
    for row in rows:
        for grid in _readable(row):
            key = family.place_of(row), row.metric, ends[row.ends_at]
            parts[key].append(summarise(grid, row.metric, seconds))
    folded = {key: join(grids) for key, grids in parts.items()}
    stored = _load(family, model, folded)
    _replace(family, [*rows, *stored.rows], model, stored.joined_with(folded))
    return len(rows)


def _polls(rows: Sequence[WaitingPoll]) -> Iterator[Poll]:
    for row in rows:
        try:
            yield decode_poll(row.data)
        except UnreadableBlock:
            # It would stop all that follow, for ever.
            logger.exception("history.block_dropped poll=%s", row)


def _readable(row: Block) -> Iterator[Grid]:
    try:
        yield decode_grid(row.data)
    except UnreadableBlock:
        logger.exception("history.block_dropped block=%s", row)


def _of_known_places(family: Family, grids: Mapping[PortMetricDay, Grid]) -> dict[Key, Grid]:
    """Give grids the end of their day; those of a port or OLT that was deleted have nowhere to go."""
    places = {place for place, _, _ in grids}
    known = set(family.places._default_manager.filter(pk__in=places).values_list("pk", flat=True))
    return {
        (place, metric, datetime.fromtimestamp((day + 1) * DAY_SECONDS, UTC)): grid
        for (place, metric, day), grid in grids.items()
        if place in known
    }


@dataclass(frozen=True, slots=True)
class _Stored:
    """Blocks that exist already, and what they hold where it can be read."""

    rows: Sequence[Block]
    grids: Mapping[Key, Grid]

    def joined_with(self, grids: Mapping[Key, Grid]) -> dict[Key, Grid]:
        return {key: join([self.grids[key], grid]) if key in self.grids else grid for key, grid in grids.items()}


def _load(family: Family, model: type[Any], wanted: Mapping[Key, Grid]) -> _Stored:
    """Load those of the wanted blocks that exist."""
    found = model._default_manager.filter(
        **{f"{family.key}__in": {place for place, _, _ in wanted}},
        metric__in={metric for _, metric, _ in wanted},
        ends_at__in={ends_at for _, _, ends_at in wanted},
    )
    rows = {key: row for row in found if (key := (family.place_of(row), row.metric, row.ends_at)) in wanted}
    return _Stored(list(rows.values()), {key: grid for key, row in rows.items() for grid in _readable(row)})


def _new_stays(grids: Mapping[Key, Grid], stored: _Stored) -> list[HistoryStay]:
    """Return the stays that no earlier block of the same day has brought."""
    pairs = _pairs(grids) - _pairs(stored.grids)
    onu_ids = {onu_id for onu_id, _ in pairs}
    known = HistoryStay.objects.filter(onu_id__in=onu_ids).values_list("onu_id", "pon_port_id")
    # An ONU that was deleted leaves its samples to the port.
    living = set(Onu.objects.filter(id__in=onu_ids).values_list("id", flat=True))
    new = sorted(pair for pair in pairs - set(known) if pair[0] in living)
    return [HistoryStay(onu_id=onu_id, pon_port_id=port) for onu_id, port in new]


def _pairs(grids: Mapping[Key, Grid]) -> set[tuple[int, int]]:
    return {(onu_id, port) for (port, _, _), grid in grids.items() for onu_id in grid.onu_ids.tolist()}


def _replace(
    family: Family,
    consumed: Sequence[Row],
    model: type[Any],
    grids: Mapping[Key, Grid],
    stays: Sequence[HistoryStay] = (),
) -> None:
    """Put blocks in the place of the rows that they were made of: all of it or nothing."""
    blocks = [
        model(**{family.key: place}, metric=metric, ends_at=ends_at, data=encode_grid(grid))
        for (place, metric, ends_at), grid in grids.items()
        if grid.has_values
    ]
    ids: dict[type[Row], list[int]] = defaultdict(list)
    for row in consumed:
        ids[type(row)].append(row.pk)
    try:
        with transaction.atomic():
            for kind, its in ids.items():
                deleted, _ = kind._default_manager.filter(pk__in=its).delete()
                if deleted != len(its):
                    raise _Overtaken
            model._default_manager.bulk_create(blocks)
            HistoryStay.objects.bulk_create(stays, ignore_conflicts=True)
    except IntegrityError as error:
        raise _Overtaken from error


def _month_of(moment: datetime) -> tuple[datetime, datetime]:
    """Return the first moment of the month and that of the next one."""
    start = moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return start, (start + timedelta(days=31)).replace(day=1)
