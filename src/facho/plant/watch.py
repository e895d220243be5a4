"""Watches light: with each poll for what ONUs lose in common, once a day for light that decays.

The polls of the last two hours wait in the history, so nothing is kept for the watch itself: a new process looks at
them again and finds the same, which the constraints drop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from facho.onus.history import Resolution, read_port
from facho.onus.history_codec import (
    BUNDLE,
    DAY_SECONDS,
    HistoryGrid,
    Poll,
    UnreadableBlock,
    decode_bundle,
    decode_grid,
    decode_poll,
    encode_grid,
    join,
    kind_of,
)
from facho.onus.history_models import HistoryPoll, Metric, from_steps, to_steps
from facho.onus.models import Onu, OnuReading, PonPort
from facho.plant.models import FindingKinds, FindingOnu, LightFinding, OnuBox, PortDays
from facho.polling.domain.light import (
    DECAY_DAYS,
    CommonStep,
    LightSteps,
    LightWatch,
    SharedEvent,
    common_steps,
    find_decays,
    infer_branches,
    watch_light,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# A poll that is being written now may be older than one that has been: wait for it.
SETTLED: Final = timedelta(seconds=20)
# A new process looks back this far; polls wait at least as long.
LOOK_BACK: Final = timedelta(hours=2)
POLLS_AT_ONCE: Final = 256
PORTS_AT_ONCE: Final = 64
LIMIT_DBM: Final = -27.0
# A decay is shown when it crosses the limit within this time.
FORECAST_DAYS: Final = 30.0
# A repair brings back this share of what was lost, for as large a share of the ONUs.
REPAIRED: Final = 0.5
# Events that a tree rests on at most: the latest ones.
TREE_EVENTS: Final = 30
_NEVER = datetime.min.replace(tzinfo=UTC)


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

    def look(self, now: datetime) -> int:
        """Look at some polls that were not looked at yet; return how many, 0 if none is left for now."""
        after = max(self._seen_to or now - LOOK_BACK, now - LOOK_BACK)
        waiting = HistoryPoll.objects.filter(taken_at__gt=after, taken_at__lte=now - SETTLED).order_by("taken_at")
        rows = list(waiting[:POLLS_AT_ONCE])
        if len(rows) == POLLS_AT_ONCE:
            # Polls of one moment belong together: the last moment may be cut in two.
            rows = [row for row in rows if row.taken_at < rows[-1].taken_at] or rows
        for row in rows:
            self._look_at(row, now)
        if rows:
            self._seen_to = rows[-1].taken_at
        return len(rows)

    def _look_at(self, row: HistoryPoll, now: datetime) -> None:
        group = self._groups.setdefault(row.port_group, GroupWatch.new())
        for poll in _polls_in(row):
            at = datetime.fromtimestamp(poll.at, UTC)
            # Polls that were looked at one by one come again when they are bundled.
            is_new = np.array([group.read_at.get(port, _NEVER) < at for port in poll.pon_port_ids.tolist()], dtype=bool)
            order = np.argsort(poll.onu_ids[is_new])
            onu_ids, ports = poll.onu_ids[is_new][order], poll.pon_port_ids[is_new][order]
            if not onu_ids.size:
                continue
            values = from_steps(Metric.RX_POWER, poll.values[Metric.RX_POWER][is_new][order], is_summary=False)
            steps = group.look(onu_ids, ports, values)
            for step in common_steps(steps, group.ports):
                since = group.read_at.get(step.port, at)
                if step.size_db < 0:
                    save_common_step(step, steps, group, since=since, now=now)
                else:
                    end_repaired(step.port, group.onu_ids[step.members], since)
            group.read_at |= dict.fromkeys(np.unique(ports).tolist(), at)


def _polls_in(row: HistoryPoll) -> list[Poll]:
    """Return the polls of a row with light, oldest first; none if it is damaged, which compaction reports."""
    try:
        if kind_of(row.data) != BUNDLE:
            poll = decode_poll(row.data, (Metric.RX_POWER,))
            return [poll] if Metric.RX_POWER in poll.values else []
        grids = [(port, grid) for port, _, grid in decode_bundle(row.data, metrics=(Metric.RX_POWER,))]
    except UnreadableBlock:
        return []
    moments = sorted({at for _, grid in grids for at in grid.at.tolist()})
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
    """Store what ONUs lost in common, who else was read, and the tree that follows; nothing if it is stored."""
    # Who lost half of it is neither hit nor well.
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
    with transaction.atomic():
        finding, is_new = LightFinding.objects.get_or_create(
            kind=FindingKinds.COMMON_STEP,
            pon_port_id=step.port,
            since=since,
            defaults={"found_at": now, "judged_at": now, "size_db": step.size_db, "onus_read": len(rows)},
        )
        if not is_new:
            return
        FindingOnu.objects.bulk_create(
            FindingOnu(finding=finding, onu_id=onu_id, is_hit=is_hit, size_db=lost) for onu_id, is_hit, lost in rows
        )
        save_tree(step.port)


def end_repaired(pon_port_id: int, onu_ids: Ints, at: datetime) -> None:
    """End the findings of a port whose ONUs got their light back."""
    back = set(onu_ids.tolist())
    for finding in LightFinding.objects.filter(
        kind=FindingKinds.COMMON_STEP, pon_port_id=pon_port_id, ended_at__isnull=True, since__lt=at
    ):
        hit = set(finding.members.filter(is_hit=True).values_list("onu_id", flat=True))
        if len(hit & back) >= REPAIRED * len(hit):
            LightFinding.objects.filter(id=finding.id, ended_at__isnull=True).update(ended_at=at)


def save_tree(pon_port_id: int) -> None:
    """Infer again which ONUs of a port share a box."""
    readings = OnuReading.objects.filter(onu__pon_port_id=pon_port_id, onu__is_present=True).order_by("onu_id")
    known = list(readings.values_list("onu_id", "distance_m"))
    onu_ids = np.array([onu_id for onu_id, _ in known], dtype=np.int64)
    distance = np.array([np.nan if metres is None else metres for _, metres in known])
    events = list(_shared_events(pon_port_id, onu_ids))
    branches = infer_branches(distance, events)
    boxes = [
        OnuBox(onu_id=onu_id, pon_port_id=pon_port_id, number=box, confidence=confidence, events=len(events))
        for onu_id, box, confidence in zip(
            onu_ids.tolist(), branches.box.tolist(), branches.confidence.tolist(), strict=True
        )
    ]
    OnuBox.objects.bulk_create(
        boxes,
        update_conflicts=True,
        unique_fields=["onu"],
        update_fields=["pon_port", "number", "confidence", "events"],
    )


def _shared_events(pon_port_id: int, onu_ids: Ints) -> Iterator[SharedEvent]:
    findings = LightFinding.objects.filter(kind=FindingKinds.COMMON_STEP, pon_port_id=pon_port_id).order_by("-since")
    members: dict[int, dict[int, bool]] = {}
    rows = FindingOnu.objects.filter(finding__in=list(findings.values_list("id", flat=True)[:TREE_EVENTS]))
    for finding_id, onu_id, is_hit in rows.values_list("finding_id", "onu_id", "is_hit"):
        members.setdefault(finding_id, {})[onu_id] = is_hit
    for its in members.values():
        hit = [onu_id for onu_id, is_hit in its.items() if is_hit]
        well = [onu_id for onu_id, is_hit in its.items() if not is_hit]
        yield SharedEvent(np.isin(onu_ids, hit), np.isin(onu_ids, well))


def judge_days(now: datetime) -> int:
    """Add the day that is over to some ports and judge their decays; return how many ports, 0 if none is left."""
    day_end = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    done = PortDays.objects.filter(ends_at__gte=day_end).values("pon_port_id")
    ports = PonPort.objects.exclude(id__in=done).order_by("id").values_list("id", flat=True)[:PORTS_AT_ONCE]
    for pon_port_id in ports:
        _judge_port(pon_port_id, day_end, now)
    return len(ports)


def _judge_port(pon_port_id: int, day_end: datetime, now: datetime) -> None:
    stored = PortDays.objects.filter(pon_port_id=pon_port_id).first()
    grids = [decode_grid(stored.data)] if stored else []
    first = stored.ends_at if stored else day_end - timedelta(days=1)
    grids += _days_of(pon_port_id, max(first, day_end - timedelta(days=DECAY_DAYS)), day_end)
    oldest = int(day_end.timestamp()) - DECAY_DAYS * DAY_SECONDS
    days = join(grids).between(oldest, int(day_end.timestamp())) if grids else None
    with transaction.atomic():
        PortDays.objects.update_or_create(
            pon_port_id=pon_port_id,
            defaults={"ends_at": day_end, "data": encode_grid(days or _NO_DAYS)},
        )
        if days is not None and days.onu_ids.size:
            _save_decays(pon_port_id, days, day_end, now)


_NO_DAYS = HistoryGrid(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((1, 0, 0), dtype=np.int64))


def _days_of(pon_port_id: int, start: datetime, end: datetime) -> Iterator[HistoryGrid]:
    """The medians of each whole day that the history has samples of."""
    for number in range((end - start).days):
        day = start + timedelta(days=number)
        series = read_port(pon_port_id, Metric.RX_POWER, day, day + timedelta(days=1), Resolution.SAMPLES)
        if series.onu_ids.size:
            there = np.isfinite(series.average)
            medians = np.array(
                [
                    np.median(row[is_there]) if is_there.any() else np.nan
                    for row, is_there in zip(series.average, there, strict=True)
                ]
            )
            steps = to_steps(Metric.RX_POWER, medians)
            at = np.array([int(day.timestamp())], dtype=np.int64)
            yield HistoryGrid(series.onu_ids, at, steps[np.newaxis, :, np.newaxis])


def _save_decays(pon_port_id: int, days: HistoryGrid, day_end: datetime, now: datetime) -> None:
    """Open, renew and end the decays of a port's ONUs."""
    daily = _by_whole_days(days, day_end)
    decays = find_decays(daily)
    soonest, likely, latest = decays.days_to(LIMIT_DBM)
    living = set(Onu.objects.filter(id__in=days.onu_ids.tolist()).values_list("id", flat=True))
    shown = decays.is_decay & (likely <= FORECAST_DAYS)
    open_now = LightFinding.objects.filter(
        kind=FindingKinds.DECAY, onu_id__in=days.onu_ids.tolist(), ended_at__isnull=True
    )
    # A decay that is too slow for the forecast stays open.
    ended = days.onu_ids[~decays.is_decay].tolist()
    open_now.filter(onu_id__in=ended).update(ended_at=now)
    for row in np.flatnonzero(shown).tolist():
        onu_id = int(days.onu_ids[row])
        if onu_id in living:
            since = day_end - timedelta(days=int(daily.shape[1] - decays.since_day[row]))
            values = {
                "pon_port_id": pon_port_id,
                "since": since,
                "judged_at": now,
                "size_db": float(decays.rate_db[row]),
                "level_dbm": float(decays.level_dbm[row]),
                "days_soonest": float(soonest[row]),
                "days_likely": float(likely[row]),
                "days_latest": float(min(latest[row], 10 * FORECAST_DAYS)),
            }
            LightFinding.objects.update_or_create(
                kind=FindingKinds.DECAY,
                onu_id=onu_id,
                ended_at=None,
                defaults=values,
                create_defaults=values | {"found_at": now},
            )


def _by_whole_days(days: HistoryGrid, day_end: datetime) -> Floats:
    """Line the days up, a column each up to the last one; a day without samples is NaN."""
    last = int(day_end.timestamp())
    count = (last - int(days.at[0])) // DAY_SECONDS
    daily = np.full((len(days.onu_ids), count), np.nan)
    columns = (days.at - int(days.at[0])) // DAY_SECONDS
    daily[:, columns] = from_steps(Metric.RX_POWER, days.layers[0], is_summary=False)
    return daily
