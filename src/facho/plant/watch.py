"""Watches light with each poll: what ONUs lose in common, and what one loses alone.

The polls of the last two hours wait in the history, so nothing is kept for the watch itself: a new process looks at
them again and finds the same, which the constraints drop.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final

import numpy as np
from django.db import transaction
from django.db.models import DateTimeField
from numpy.typing import NDArray

from facho.infrastructure.statements import Given, Select
from facho.onus.history import Resolution, read_port
from facho.onus.history_codec import (
    BUNDLE,
    Buffer,
    HistoryGrid,
    Poll,
    UnreadableBlock,
    decode_bundle,
    decode_poll,
    kind_of,
)
from facho.onus.history_models import HistoryPoll, Metric, from_steps
from facho.onus.models import Onu, Outage, PonPort
from facho.onus.words import OutageScopes
from facho.plant.days import REPAIRED, blank_zeros
from facho.plant.models import FindingKinds, FindingOnu, LightFinding
from facho.plant.tree import save_tree
from facho.polling.domain.light import (
    CommonStep,
    LightHint,
    LightSteps,
    LightWatch,
    common_steps,
    confidence_of_step,
    hint_of,
    settle,
    watch_light,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# A poll that is being written now may be older than one that has been: wait for it.
SETTLED: Final = timedelta(seconds=20)
# A new process looks back this far; polls wait at least as long.
LOOK_BACK: Final = timedelta(hours=2)
POLLS_AT_ONCE: Final = 256
# Neighbouring groups of ports are looked at together, as many as a chassis has.
GROUPS_BITS: Final = 3
# What one ONU loses alone is kept from here on; less is too common to look for a cause.
LEAST_ALONE_DB: Final = 1.0
# Light that is lost again so soon is the same finding.
SAME_WITHIN: Final = timedelta(days=1)
# What both directions had before a step: as long as the level that it is measured against.
HINT_SPAN: Final = timedelta(hours=1)
# An outage has all its ONUs after this time.
OUTAGE_SETTLED: Final = timedelta(minutes=15)
# No OLT measures bursts better.
_LEAST_ERROR_DB: Final = 0.05
_NEVER = datetime.fromtimestamp(0, UTC)
_AFTER, _UNTIL = (Given(name, DateTimeField()) for name in ("after", "until"))
_WAITING = Select(
    lambda: (
        HistoryPoll.objects.filter(taken_at__gt=_AFTER, taken_at__lte=_UNTIL)
        .order_by("taken_at")
        .values_list("taken_at", "port_group", "data")[:POLLS_AT_ONCE]
    )
)
_OUTAGES = Select(
    lambda: (
        Outage.objects.filter(scope=OutageScopes.PON, started_at__gt=_AFTER, started_at__lte=_UNTIL)
        .order_by()
        .values_list("olt_id", "frame", "slot", "port")
        .distinct()
    )
)


@dataclass(slots=True, eq=False)
class GroupWatch:
    """What is remembered of the ONUs of a few neighbouring ports."""

    onu_ids: Ints
    ports: Ints
    state: LightWatch
    # When each port was read before: a step is shown by the poll after the one that it came with.
    read_at: dict[int, datetime] = field(default_factory=dict)

    @classmethod
    def new(cls) -> "GroupWatch":
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing, nothing, LightWatch.new(0))

    def look(self, onu_ids: Ints, ports: Ints, values: Floats) -> LightSteps:
        """Compare a poll with what was before it."""
        self._meet(onu_ids, ports)
        lined_up = np.full(len(self.onu_ids), np.nan)
        lined_up[np.searchsorted(self.onu_ids, onu_ids)] = values
        self.state, steps = watch_light(self.state, lined_up)
        return steps

    def _meet(self, onu_ids: Ints, ports: Ints) -> None:
        """Make room for new ONUs; one that moved to another port starts over."""
        places = np.searchsorted(self.onu_ids, onu_ids)
        known = places < len(self.onu_ids)
        known[known] = self.onu_ids[places[known]] == onu_ids[known]
        if known.all() and (self.ports[places] == ports).all():
            return
        moved = onu_ids[known][self.ports[places[known]] != ports[known]]
        is_kept = ~np.isin(self.onu_ids, moved)
        new = np.setdiff1d(onu_ids, self.onu_ids[is_kept])
        every = np.concatenate([self.onu_ids[is_kept], new])
        order = np.argsort(every)
        port_of = dict(zip(onu_ids.tolist(), ports.tolist(), strict=True))
        all_ports = np.concatenate([self.ports[is_kept], [port_of[onu] for onu in new.tolist()]]).astype(np.int64)
        fresh = LightWatch.new(len(new))
        pairs = [
            (getattr(self.state, name)[is_kept], getattr(fresh, name))
            for name in ("recent", "noise_db", "last", "first")
        ]
        self.state = LightWatch(*(np.concatenate(pair)[order] for pair in pairs))
        self.onu_ids, self.ports = every[order], all_ports[order]


class LightWatcher:
    """Follows the polls that wait in the history; one process does it at a time."""

    def __init__(self) -> None:
        self._groups: dict[int, GroupWatch] = {}
        self._seen_to: datetime | None = None
        self._outages_to: datetime | None = None

    def look(self, now: datetime) -> int:
        """Look at some polls that were not looked at yet; return how many, 0 if none is left for now."""
        after = max(self._seen_to or now - LOOK_BACK, now - LOOK_BACK)
        rows = _WAITING.rows(after=after, until=now - SETTLED)
        if len(rows) == POLLS_AT_ONCE:
            # Polls of one moment belong together: the last moment may be cut in two.
            rows = [row for row in rows if row[0] < rows[-1][0]] or rows
        rows.sort(key=lambda row: row[:2])
        for (_, key), together in groupby(rows, key=lambda row: (row[0], row[1] >> GROUPS_BITS)):
            self._look_at(key, [data for _, _, data in together], now)
        if rows:
            self._seen_to = rows[-1][0]
        else:
            self.learn_from_outages(now)
        return len(rows)

    def learn_from_outages(self, now: datetime) -> None:
        """Infer the trees of ports again that had an outage."""
        after, until = self._outages_to or now - LOOK_BACK, now - OUTAGE_SETTLED
        for olt_id, frame, slot, port in _OUTAGES.rows(after=after, until=until):
            place = PonPort.objects.filter(olt_id=olt_id, frame=frame, slot=slot, port=port)
            for pon_port_id in place.values_list("id", flat=True):
                save_tree(pon_port_id)
        self._outages_to = until

    def _look_at(self, key: int, blocks: Sequence[Buffer], now: datetime) -> None:
        group = self._groups.setdefault(key, GroupWatch.new())
        for poll in _at_once([poll for block in blocks for poll in _polls_in(block, group.read_at)]):
            at = datetime.fromtimestamp(poll.at, UTC)
            known = [port for port in np.unique(poll.pon_port_ids).tolist() if group.read_at.get(port, _NEVER) >= at]
            is_new = ~np.isin(poll.pon_port_ids, known)
            order = np.argsort(poll.onu_ids[is_new])
            onu_ids, ports = poll.onu_ids[is_new][order], poll.pon_port_ids[is_new][order]
            if not onu_ids.size:
                continue
            values = from_steps(Metric.RX_POWER, poll.values[Metric.RX_POWER][is_new][order], is_summary=False)
            self._judge(group, group.look(onu_ids, ports, blank_zeros(values)), at, now)
            group.read_at |= dict.fromkeys(np.unique(ports).tolist(), at)

    def _judge(self, group: GroupWatch, steps: LightSteps, at: datetime, now: datetime) -> None:
        alone = np.abs(steps.size_db) >= LEAST_ALONE_DB
        for step in common_steps(steps, group.ports):
            alone &= ~step.members
            group.state = settle(group.state, step, steps)
            since = group.read_at.get(step.port, at)
            if step.size_db < 0:
                save_common_step(step, steps, group, since=since, now=now)
            else:
                end_repaired(step.port, group.onu_ids[step.members], since)
        for row in np.flatnonzero(alone).tolist():
            port = int(group.ports[row])
            since = group.read_at.get(port, at)
            save_step(port, int(group.onu_ids[row]), float(steps.size_db[row]), since=since, now=now)


def _at_once(polls: Sequence[Poll]) -> list[Poll]:
    """Put polls of one moment together, oldest first: few large arrays cost less than many small ones."""
    by_moment: dict[int, list[Poll]] = {}
    for poll in polls:
        by_moment.setdefault(poll.at, []).append(poll)
    return [
        Poll(
            at,
            np.concatenate([each.onu_ids for each in its]),
            np.concatenate([each.pon_port_ids for each in its]),
            {Metric.RX_POWER: np.concatenate([each.values[Metric.RX_POWER] for each in its])},
        )
        for at, its in sorted(by_moment.items())
    ]


def _polls_in(block: Buffer, read_at: Mapping[int, datetime]) -> list[Poll]:
    """Return the polls of a row with light, oldest first; none if it is damaged, which compaction reports.

    Polls that were looked at one by one come again when they are bundled: `read_at` says up to when.
    """
    try:
        if kind_of(block) != BUNDLE:
            poll = decode_poll(block, (Metric.RX_POWER,))
            return [poll] if Metric.RX_POWER in poll.values else []
        grids = [(port, grid) for port, _, grid in decode_bundle(block, metrics=(Metric.RX_POWER,))]
    except UnreadableBlock:
        return []
    seen_to = {port: read_at.get(port, _NEVER).timestamp() for port, _ in grids}
    moments = sorted({at for port, grid in grids for at in grid.at.tolist() if at > seen_to[port]})
    return [_poll_at(at, grids) for at in moments]


def _poll_at(at: int, grids: Sequence[tuple[int, HistoryGrid]]) -> Poll:
    there = [(port, grid, np.searchsorted(grid.at, at)) for port, grid in grids if at in grid.at]
    return Poll(
        at,
        np.concatenate([grid.onu_ids for _, grid, _ in there]),
        np.concatenate([np.full(len(grid.onu_ids), port) for port, grid, _ in there]),
        {Metric.RX_POWER: np.concatenate([grid.layers[0][:, column] for _, grid, column in there])},
    )


def save_common_step(step: CommonStep, steps: LightSteps, group: GroupWatch, *, since: datetime, now: datetime) -> None:
    """Store a common loss, the other ONUs read, and the tree that follows; does nothing if already stored."""
    # An ONU that lost part of it counts neither as hit nor as well.
    is_well = np.abs(steps.difference_db) < abs(step.size_db) / 3
    its = (group.ports == step.port) & (is_well | step.members)
    living = set(Onu.objects.filter(id__in=group.onu_ids[its].tolist()).values_list("id", flat=True))
    rows = [
        (onu_id, is_hit, None if np.isnan(lost) else float(lost))
        for onu_id, is_hit, lost in zip(
            group.onu_ids[its].tolist(), step.members[its].tolist(), steps.difference_db[its].tolist(), strict=True
        )
        if onu_id in living
    ]
    hit = [onu_id for onu_id, is_hit, _ in rows if is_hit]
    known = LightFinding.objects.filter(kind=FindingKinds.COMMON_STEP, pon_port_id=step.port, since=since)
    if not hit or known.exists():
        return
    upstream, hint = load_hint(step.port, hit, step.size_db, since=since, now=now)
    with transaction.atomic():
        finding, is_new = LightFinding.objects.get_or_create(
            kind=FindingKinds.COMMON_STEP,
            pon_port_id=step.port,
            since=since,
            defaults={
                "found_at": now,
                "judged_at": now,
                "size_db": step.size_db,
                "onus_read": len(rows),
                "confidence": confidence_of_step(step.size_db, len(hit)),
                "upstream_db": upstream,
                "hint": hint,
            },
        )
        if not is_new:
            return
        FindingOnu.objects.bulk_create(
            FindingOnu(finding=finding, onu_id=onu_id, is_hit=is_hit, size_db=lost) for onu_id, is_hit, lost in rows
        )
        save_tree(step.port)


def end_repaired(pon_port_id: int, onu_ids: Ints, at: datetime) -> None:
    back = set(onu_ids.tolist())
    for finding in LightFinding.objects.filter(
        kind=FindingKinds.COMMON_STEP, pon_port_id=pon_port_id, ended_at__isnull=True, since__lt=at
    ):
        hit = set(finding.members.filter(is_hit=True).values_list("onu_id", flat=True))
        if len(hit & back) >= REPAIRED * len(hit):
            LightFinding.objects.filter(id=finding.id, ended_at__isnull=True).update(ended_at=at)


def save_step(pon_port_id: int, onu_id: int, size_db: float, *, since: datetime, now: datetime) -> None:
    """Open what one ONU lost alone, or end it when most of it is back."""
    mine = LightFinding.objects.filter(kind=FindingKinds.STEP, onu_id=onu_id)
    known = mine.order_by("-since").first()
    is_open = known is not None and known.ended_at is None
    if size_db > 0:
        if known is not None and is_open and size_db >= -REPAIRED * known.size_db:
            LightFinding.objects.filter(id=known.id).update(ended_at=since)
        return
    # A new process looks at the same polls once more.
    if is_open or not Onu.objects.filter(id=onu_id).exists() or (known is not None and since <= known.judged_at):
        return
    if known is not None and known.ended_at is not None and since - known.ended_at < SAME_WITHIN:
        LightFinding.objects.filter(id=known.id).update(ended_at=None, judged_at=since)
        return
    upstream, hint = load_hint(pon_port_id, [onu_id], size_db, since=since, now=now)
    LightFinding.objects.create(
        kind=FindingKinds.STEP,
        pon_port_id=pon_port_id,
        onu_id=onu_id,
        since=since,
        found_at=now,
        judged_at=since,
        size_db=size_db,
        onus_read=1,
        confidence=confidence_of_step(size_db, 1),
        upstream_db=upstream,
        hint=hint,
    )


def load_hint(
    pon_port_id: int, onu_ids: Sequence[int], size_db: float, *, since: datetime, now: datetime
) -> tuple[float | None, LightHint]:
    """Compare a step with what the OLT receives of the same ONUs, before and after; one query."""
    span = (since - HINT_SPAN, min(now, since + HINT_SPAN))
    series = read_port(pon_port_id, Metric.OLT_RX_POWER, *span, Resolution.SAMPLES)
    rows = np.isin(series.onu_ids, onu_ids)
    is_after = series.at >= since.timestamp()
    readings = blank_zeros(series.average[rows])
    before, after = readings[:, ~is_after], readings[:, is_after]
    counts = np.isfinite(before).sum(axis=1), np.isfinite(after).sum(axis=1)
    is_known = (counts[0] >= 3) & (counts[1] >= 1)
    if not is_known.any():
        return None, LightHint.UNKNOWN
    before, after = before[is_known], after[is_known]
    moved = np.nanmean(after, axis=1) - np.nanmean(before, axis=1)
    noise = np.nanstd(before, axis=1)
    errors = noise * np.sqrt(1 / counts[0][is_known] + 1 / counts[1][is_known])
    upstream = float(np.mean(moved))
    error = float(np.sqrt((errors**2).sum()) / len(errors))
    return round(upstream, 2), hint_of(-size_db, -upstream, max(error, _LEAST_ERROR_DB))
