"""Moves history to where it is small: waiting polls into days, old days into hours, old hours into months of days.

Each call does one bounded piece of work. It reads and computes without a transaction; then, in one, it deletes the
rows that it read and inserts their summary. If one of them is gone, another process was faster and nothing is changed.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from facho.onus import history_codec as codec
from facho.onus.history import FAMILIES, Block, HistoryFamily, WaitingPoll, new_stays
from facho.onus.history_models import HistoryStay

logger = logging.getLogger(__name__)

# Sooner, the blocks of the day are rewritten more often; later, a reader has more polls to unpack.
MERGE_AFTER = timedelta(hours=2)
_DAY = timedelta(days=1)

# Port, metric, and the end of the block's period.
Key = tuple[int, int, datetime]
Row = WaitingPoll | Block


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    """Most rows one call handles; hours are always folded a port and month at a time."""

    polls: int = 64
    blocks: int = 64


class _Overtaken(Exception):
    """Another process did this work, or deleted its rows, meanwhile."""


def compact(now: datetime, limits: CompactionLimits) -> int:
    """Do one piece of work and return how many rows it consumed; 0 if nothing is left for now."""
    try:
        for family in FAMILIES:
            if (
                done := _merge_polls(family, now, limits)
                or _fold_samples(family, now, limits)
                or _fold_hours(family, now)
            ):
                return done
    except _Overtaken:
        pass
    return 0


def _merge_polls(family: HistoryFamily, now: datetime, limits: CompactionLimits) -> int:
    """Merge the polls of the ports that waited longest into the daily blocks of these ports."""
    waiting = family.polls._default_manager.order_by("taken_at")
    oldest = waiting.filter(taken_at__lt=now - MERGE_AFTER).only("port_group").first()
    if oldest is None:
        return 0
    rows = list(waiting.filter(port_group=oldest.port_group)[: limits.polls])
    parts: dict[Key, list[codec.HistoryGrid]] = defaultdict(list)
    for place, metric, grid in _waiting_grids(rows):
        if grid.at.size:
            parts[place, metric, datetime.fromtimestamp((grid.day + 1) * codec.DAY_SECONDS, UTC)].append(grid)
    # Grids of a deleted port or OLT are dropped.
    places = {place for place, _, _ in parts}
    known = set(family.places._default_manager.filter(pk__in=places).values_list("pk", flat=True))
    merged = {key: codec.join(grids) for key, grids in parts.items() if key[0] in known}
    stored = _load(family, family.samples, merged)
    stays = new_stays(_pairs(merged) - _pairs(stored.grids)) if family.has_stays else []
    _replace(family, [*rows, *stored.rows], family.samples, stored.joined_with(merged), stays)
    return len(rows)


def _waiting_grids(rows: Sequence[WaitingPoll]) -> Iterator[tuple[int, int, codec.HistoryGrid]]:
    """Return bundles in their order, then what polls still stand alone: they are younger."""
    polls = []
    for row in rows:
        try:
            if codec.kind_of(row.data) in (codec.BUNDLE, codec.LARGE_BUNDLE):
                yield from list(codec.decode_bundle(row.data))
            else:
                polls.append(codec.decode_poll(row.data))
        except codec.UnreadableBlock:
            # It would block everything after it forever.
            logger.exception("history.block_dropped poll=%s", row)
    yield from codec.by_port(polls)


def _fold_samples(family: HistoryFamily, now: datetime, limits: CompactionLimits) -> int:
    horizon = now - timedelta(days=settings.FACHO_HISTORY_DAYS)
    rows = list(family.samples._default_manager.filter(ends_at__lte=horizon).order_by("ends_at")[: limits.blocks])
    return _fold(family, rows, family.hours, {row.ends_at: row.ends_at for row in rows}, codec.HOUR_SECONDS)


def _fold_hours(family: HistoryFamily, now: datetime) -> int:
    """Aggregate a whole month of one place's hours into days, so that no month is rewritten day by day."""
    horizon = _month_of(now - timedelta(days=settings.FACHO_HISTORY_HOURLY_DAYS))[0]
    hours = family.hours._default_manager
    oldest = hours.filter(ends_at__lte=horizon).order_by("ends_at").defer("data").first()
    if oldest is None:
        return 0
    start, end = _month_of(oldest.ends_at - _DAY)
    rows = list(hours.filter(ends_at__gt=start, ends_at__lte=end, **{family.key: family.place_of(oldest)}))
    return _fold(family, rows, family.days, {row.ends_at: end for row in rows}, codec.DAY_SECONDS)


def _fold(
    family: HistoryFamily, rows: Sequence[Block], model: type[Any], ends: Mapping[datetime, datetime], seconds: int
) -> int:
    parts: dict[Key, list[codec.HistoryGrid]] = defaultdict(list)
    for row in rows:
        for grid in _readable(row):
            key = family.place_of(row), row.metric, ends[row.ends_at]
            parts[key].append(codec.summarise(grid, row.metric, seconds))
    folded = {key: codec.join(grids) for key, grids in parts.items()}
    stored = _load(family, model, folded)
    _replace(family, [*rows, *stored.rows], model, stored.joined_with(folded))
    return len(rows)


def _readable(row: Block) -> Iterator[codec.HistoryGrid]:
    try:
        yield codec.decode_grid(row.data)
    except codec.UnreadableBlock:
        logger.exception("history.block_dropped block=%s", row)


@dataclass(frozen=True, slots=True)
class _Stored:
    rows: Sequence[Block]
    grids: Mapping[Key, codec.HistoryGrid]

    def joined_with(self, grids: Mapping[Key, codec.HistoryGrid]) -> dict[Key, codec.HistoryGrid]:
        return {key: codec.join([self.grids[key], grid]) if key in self.grids else grid for key, grid in grids.items()}


def _load(family: HistoryFamily, model: type[Any], wanted: Mapping[Key, codec.HistoryGrid]) -> _Stored:
    found = model._default_manager.filter(
        **{f"{family.key}__in": {place for place, _, _ in wanted}},
        metric__in={metric for _, metric, _ in wanted},
        ends_at__in={ends_at for _, _, ends_at in wanted},
    )
    rows = {key: row for row in found if (key := (family.place_of(row), row.metric, row.ends_at)) in wanted}
    return _Stored(list(rows.values()), {key: grid for key, row in rows.items() for grid in _readable(row)})


def _pairs(grids: Mapping[Key, codec.HistoryGrid]) -> set[tuple[int, int]]:
    return {(onu_id, port) for (port, _, _), grid in grids.items() for onu_id in grid.onu_ids.tolist()}


def _replace(
    family: HistoryFamily,
    consumed: Sequence[Row],
    model: type[Any],
    grids: Mapping[Key, codec.HistoryGrid],
    stays: Sequence[HistoryStay] = (),
) -> None:
    blocks = [
        model(**{family.key: place}, metric=metric, ends_at=ends_at, data=codec.encode_grid(grid))
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
    start = moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return start, (start + timedelta(days=31)).replace(day=1)
