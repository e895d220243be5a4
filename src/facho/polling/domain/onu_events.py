"""What happened to ONUs between two polls: one event per fact, and none for what could not be read.

A status is what has to be remembered of an ONU from poll to poll; it fits into a few columns of its row.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from facho.polling.domain.onu_state import DownCause, OnuPlace, RunState

# A drop of 3 dB is half of the light: a bent fibre or a dirty connector, not weather.
POWER_STEP_CDBM = 300
# Light that fades by less than a step in this time drifts, and takes its reference along.
REFERENCE_HOLDS = timedelta(hours=6)
# More changes than this within the window are told as one: flapping, until nothing changed for a while.
FLAP_CHANGES = 4
FLAP_WINDOW = timedelta(hours=1)
CALM_AFTER = timedelta(minutes=30)


class EventKind(StrEnum):
    """What can happen to an ONU, in the order in which events of one poll are told."""

    NEW = "new"
    MOVED = "moved"
    GONE = "gone"
    RETURNED = "returned"
    DUPLICATE_SERIAL = "duplicate_serial"
    DUPLICATE_MAC = "duplicate_mac"
    CALM = "calm"
    UP = "up"
    DOWN = "down"
    FLAPPING = "flapping"
    POWER_DROP = "power_drop"
    POWER_RISE = "power_rise"
    DESCRIPTION_CHANGED = "description_changed"


@dataclass(frozen=True, slots=True)
class OnuEvent:
    """One fact about one ONU; a new ONU has no row yet and is known by its place.

    `other_place` is where a moved ONU came from, or who else has the serial or the hardware address. `before` and
    `after` are descriptions, or powers in hundredths of a dBm.
    """

    kind: EventKind
    at: datetime
    place: OnuPlace
    onu_id: int | None = None
    cause: DownCause | None = None
    other_place: OnuPlace | None = None
    before: str | int | None = None
    after: str | int | None = None


class OnuStatus(NamedTuple):
    """What is remembered of an ONU. A tuple, because every poll makes one per ONU."""

    onu_id: int
    place: OnuPlace
    state: RunState = RunState.UNKNOWN
    # None for an ONU that was down when it was first looked at: nobody saw it go.
    state_since: datetime | None = None
    cause: DownCause | None = None
    description: str = ""
    power_reference_cdbm: int | None = None
    power_reference_at: datetime | None = None
    flap_changes: int = 0
    flap_since: datetime | None = None

    @property
    def is_flapping(self) -> bool:
        """Tell whether its changes are too many to be told one by one."""
        return self.flap_changes > FLAP_CHANGES


class Told(NamedTuple):
    """What one poll told of an ONU; None for what it did not ask, or got no believable answer to."""

    state: RunState | None = None
    cause: DownCause | None = None
    power_cdbm: int | None = None
    description: str | None = None


class LateCause(NamedTuple):
    """The cause of a time down that was told already, without it: it completes the event of `down_at`."""

    onu_id: int
    down_at: datetime
    cause: DownCause


@dataclass(frozen=True, slots=True)
class PollChanges:
    """What a poll changed: the statuses that are different now, and what is to be told."""

    statuses: tuple[OnuStatus, ...]
    events: tuple[OnuEvent, ...]
    late_causes: tuple[LateCause, ...]


def compare_poll(pairs: Iterable[tuple[OnuStatus, Told]], *, now: datetime) -> PollChanges:
    """Compare what is remembered of each ONU with what a poll told of it."""
    statuses: list[OnuStatus] = []
    events: list[OnuEvent] = []
    late: list[LateCause] = []
    for before, told in pairs:
        after = compare_onu(before, told, now=now, events=events)
        if after is not before:
            statuses.append(after)
            late.extend(_late_cause(before, after))
    return PollChanges(tuple(statuses), in_order(events), tuple(late))


def compare_onu(status: OnuStatus, told: Told, *, now: datetime, events: list[OnuEvent]) -> OnuStatus:
    """Return what is to be remembered now, the same object if nothing changed; facts are added to `events`."""
    status = _compare_state(status, told, now, events)
    status = _compare_power(status, told.power_cdbm, now, events)
    return _compare_description(status, told.description, now, events)


def in_order(events: Iterable[OnuEvent]) -> tuple[OnuEvent, ...]:
    """Sort the events of one poll by place, then by kind: the same poll is always told the same way."""
    return tuple(sorted(events, key=lambda event: (event.place, _TELLING_ORDER[event.kind])))


_TELLING_ORDER = {kind: number for number, kind in enumerate(EventKind)}
_TELLS_NO_CAUSE = (None, DownCause.UNKNOWN)


def _compare_state(status: OnuStatus, told: Told, now: datetime, events: list[OnuEvent]) -> OnuStatus:
    state = told.state
    if state is None or state is RunState.UNKNOWN:
        return status
    if status.is_flapping:
        status = _calm_down(status, now, events)
    if state is not status.state:
        return _change_state(status, state, told.cause, now, events)
    if told.cause in _TELLS_NO_CAUSE or told.cause is status.cause:
        return status
    return status._replace(cause=told.cause)


def _change_state(
    status: OnuStatus, state: RunState, cause: DownCause | None, now: datetime, events: list[OnuEvent]
) -> OnuStatus:
    is_down = state is RunState.OFFLINE
    # An older cause would be a lie about this time down.
    after = status._replace(
        state=state, state_since=now, cause=(cause or DownCause.UNKNOWN) if is_down else cause or status.cause
    )
    if status.state is RunState.UNKNOWN:
        return after._replace(state_since=None) if is_down else after
    after = _count_change(after, now)
    if status.is_flapping:
        return after
    kind = EventKind.FLAPPING if after.is_flapping else EventKind.DOWN if is_down else EventKind.UP
    events.append(OnuEvent(kind, now, status.place, status.onu_id, cause=after.cause if is_down else None))
    return after


def _count_change(status: OnuStatus, now: datetime) -> OnuStatus:
    """Count from the first change of a window on; a flapping ONU is not counted any further."""
    if status.is_flapping:
        return status
    if status.flap_since is None or abs(now - status.flap_since) > FLAP_WINDOW:
        return status._replace(flap_changes=1, flap_since=now)
    return status._replace(flap_changes=status.flap_changes + 1)


def _calm_down(status: OnuStatus, now: datetime, events: list[OnuEvent]) -> OnuStatus:
    if status.state_since is not None and abs(now - status.state_since) < CALM_AFTER:
        return status
    cause = status.cause if status.state is RunState.OFFLINE else None
    events.append(OnuEvent(EventKind.CALM, now, status.place, status.onu_id, cause=cause, after=str(status.state)))
    return status._replace(flap_changes=0, flap_since=None)


def _compare_power(status: OnuStatus, power_cdbm: int | None, now: datetime, events: list[OnuEvent]) -> OnuStatus:
    """Tell a step against the reference; what some OLTs repeat of an ONU that is away is no reading."""
    if power_cdbm is None or status.state is RunState.OFFLINE:
        return status
    reference, since = status.power_reference_cdbm, status.power_reference_at
    if reference is not None and since is not None:
        if abs(power_cdbm - reference) >= POWER_STEP_CDBM:
            kind = EventKind.POWER_DROP if power_cdbm < reference else EventKind.POWER_RISE
            events.append(OnuEvent(kind, now, status.place, status.onu_id, before=reference, after=power_cdbm))
        elif abs(now - since) < REFERENCE_HOLDS:
            return status
    return status._replace(power_reference_cdbm=power_cdbm, power_reference_at=now)


def _compare_description(
    status: OnuStatus, description: str | None, now: datetime, events: list[OnuEvent]
) -> OnuStatus:
    """Tell another text; the first one of an ONU that had none is no change."""
    if description is None or description == status.description:
        return status
    if status.description:
        events.append(
            OnuEvent(
                EventKind.DESCRIPTION_CHANGED,
                now,
                status.place,
                status.onu_id,
                before=status.description,
                after=description,
            )
        )
    return status._replace(description=description)


def _late_cause(before: OnuStatus, after: OnuStatus) -> tuple[LateCause, ...]:
    since, cause = after.state_since, after.cause
    if after.state is not RunState.OFFLINE or since is None or since != before.state_since:
        return ()
    if before.cause not in _TELLS_NO_CAUSE or cause is None or cause is DownCause.UNKNOWN:
        return ()
    return (LateCause(after.onu_id, since, cause),)
