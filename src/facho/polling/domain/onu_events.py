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
# More changes than this within the window are one event: flapping, until it is stable for a while.
FLAP_CHANGES = 4
FLAP_WINDOW = timedelta(hours=1)
CALM_AFTER = timedelta(minutes=30)


class EventKind(StrEnum):
    """What can happen to an ONU, in the order of events within a poll."""

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
class ObservedEvent:
    """One event of an ONU; a new ONU has no row yet and is identified by its place.

    `other_place` is where a moved ONU came from, or where its duplicate is. `before` and `after` are descriptions, or
    powers in 0.01 dBm.
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
    """Remembered state of an ONU. A tuple, since every poll makes one per ONU."""

    onu_id: int
    place: OnuPlace
    state: RunState = RunState.UNKNOWN
    # None for an ONU that was already down at the first read.
    state_since: datetime | None = None
    cause: DownCause | None = None
    description: str = ""
    power_reference_cdbm: int | None = None
    power_reference_at: datetime | None = None
    flap_changes: int = 0
    flap_since: datetime | None = None

    @property
    def is_flapping(self) -> bool:
        return self.flap_changes > FLAP_CHANGES


class PolledOnu(NamedTuple):
    """Values of an ONU in one poll; None if not read or not plausible."""

    state: RunState | None = None
    cause: DownCause | None = None
    power_cdbm: int | None = None
    description: str | None = None


class LateCause(NamedTuple):
    """A cause reported after its event was stored: it completes the event of `down_at`."""

    onu_id: int
    down_at: datetime
    cause: DownCause


@dataclass(frozen=True, slots=True)
class PollChanges:
    statuses: tuple[OnuStatus, ...]
    events: tuple[ObservedEvent, ...]
    late_causes: tuple[LateCause, ...]


def compare_poll(pairs: Iterable[tuple[OnuStatus, PolledOnu]], *, now: datetime) -> PollChanges:
    statuses: list[OnuStatus] = []
    events: list[ObservedEvent] = []
    late: list[LateCause] = []
    for before, polled in pairs:
        after = compare_onu(before, polled, now=now, events=events)
        if after is not before:
            statuses.append(after)
            late.extend(_late_cause(before, after))
    return PollChanges(tuple(statuses), in_order(events), tuple(late))


def compare_onu(status: OnuStatus, polled: PolledOnu, *, now: datetime, events: list[ObservedEvent]) -> OnuStatus:
    """Return the new status, the same object if unchanged; events are appended to `events`."""
    status = _compare_state(status, polled, now, events)
    status = _compare_power(status, polled.power_cdbm, now, events)
    # Report a changed text; a first description is not a change.
    description = polled.description
    if description is None or description == status.description:
        return status
    if status.description:
        events.append(
            ObservedEvent(
                EventKind.DESCRIPTION_CHANGED,
                now,
                status.place,
                status.onu_id,
                before=status.description,
                after=description,
            )
        )
    return status._replace(description=description)


def in_order(events: Iterable[ObservedEvent]) -> tuple[ObservedEvent, ...]:
    """Sort a poll's events by place, then kind, so that the order is deterministic."""
    return tuple(sorted(events, key=lambda event: (event.place, _TELLING_ORDER[event.kind])))


_TELLING_ORDER = {kind: number for number, kind in enumerate(EventKind)}
_TELLS_NO_CAUSE = (None, DownCause.UNKNOWN)


def _compare_state(status: OnuStatus, polled: PolledOnu, now: datetime, events: list[ObservedEvent]) -> OnuStatus:
    state = polled.state
    if state is None or state is RunState.UNKNOWN:
        return status
    if status.is_flapping:
        status = _calm_down(status, now, events)
    if state is not status.state:
        is_down = state is RunState.OFFLINE
        # An older cause would be a lie about this time down.
        after = status._replace(
            state=state,
            state_since=now,
            cause=(polled.cause or DownCause.UNKNOWN) if is_down else polled.cause or status.cause,
        )
        if status.state is RunState.UNKNOWN:
            return after._replace(state_since=None) if is_down else after
        if status.is_flapping:
            return after
        # Changes are counted from the first of a window on.
        is_first = status.flap_since is None or abs(now - status.flap_since) > FLAP_WINDOW
        if is_first:
            after = after._replace(flap_changes=1, flap_since=now)
        else:
            after = after._replace(flap_changes=status.flap_changes + 1)
        kind = EventKind.FLAPPING if after.is_flapping else EventKind.DOWN if is_down else EventKind.UP
        events.append(ObservedEvent(kind, now, status.place, status.onu_id, cause=after.cause if is_down else None))
        return after
    if polled.cause in _TELLS_NO_CAUSE or polled.cause is status.cause:
        return status
    return status._replace(cause=polled.cause)


def _calm_down(status: OnuStatus, now: datetime, events: list[ObservedEvent]) -> OnuStatus:
    if status.state_since is not None and abs(now - status.state_since) < CALM_AFTER:
        return status
    cause = status.cause if status.state is RunState.OFFLINE else None
    events.append(ObservedEvent(EventKind.CALM, now, status.place, status.onu_id, cause=cause, after=str(status.state)))
    return status._replace(flap_changes=0, flap_since=None)


def _compare_power(status: OnuStatus, power_cdbm: int | None, now: datetime, events: list[ObservedEvent]) -> OnuStatus:
    """Report a step from the reference; values some OLTs repeat for an offline ONU are ignored."""
    if power_cdbm is None or status.state is RunState.OFFLINE:
        return status
    reference, since = status.power_reference_cdbm, status.power_reference_at
    if reference is not None and since is not None:
        if abs(power_cdbm - reference) >= POWER_STEP_CDBM:
            kind = EventKind.POWER_DROP if power_cdbm < reference else EventKind.POWER_RISE
            events.append(ObservedEvent(kind, now, status.place, status.onu_id, before=reference, after=power_cdbm))
        elif abs(now - since) < REFERENCE_HOLDS:
            return status
    return status._replace(power_reference_cdbm=power_cdbm, power_reference_at=now)


def _late_cause(before: OnuStatus, after: OnuStatus) -> tuple[LateCause, ...]:
    since, cause = after.state_since, after.cause
    if after.state is not RunState.OFFLINE or since is None or since != before.state_since:
        return ()
    if before.cause not in _TELLS_NO_CAUSE or cause is None or cause is DownCause.UNKNOWN:
        return ()
    return (LateCause(after.onu_id, since, cause),)
