"""When a problem becomes an alert, when it resolves, and which notifications are sent.

A course is one alert from start to end. Each observation returns the new course and at most one notification.
Recipients of the first notification get exactly one when it resolves.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import TypeVar
from zoneinfo import ZoneInfo

from facho.polling.domain.schedule import Window

# Firing more often than this within the window is flapping: one notification until it is stable for a while.
FLAP_OPENINGS = 3
FLAP_WINDOW = timedelta(hours=1)
CALM_AFTER = timedelta(minutes=30)
# More messages of one rule at one moment are a storm: they become fewer and larger.
MAX_MESSAGES = 5

Thing = TypeVar("Thing")
Path = tuple[str, ...]


class Sight(StrEnum):
    """What an observation shows; unknown if it cannot be known, as behind an OLT that does not answer."""

    WRONG = "wrong"
    FINE = "fine"
    UNKNOWN = "unknown"


class Stage(StrEnum):
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class AlertMessage(StrEnum):
    OPENED = "opened"
    RESOLVED = "resolved"
    ESCALATED = "escalated"


@dataclass(frozen=True, slots=True)
class Bound:
    """A threshold, and how far a value must come back to be fine again."""

    threshold: float
    margin: float = 0
    is_low_wrong: bool = False

    def is_wrong(self, value: float, *, was_wrong: bool) -> bool:
        """Whether a value is beyond the threshold; within the margin it stays as it was."""
        slack = self.margin if was_wrong else 0
        return value < self.threshold + slack if self.is_low_wrong else value > self.threshold - slack


@dataclass(frozen=True, slots=True)
class Policy:
    hold: timedelta = timedelta(0)
    clear: timedelta = timedelta(0)
    # How long a subject that flapped must be stable before it counts as resolved.
    calm: timedelta = CALM_AFTER
    quiet: Window | None = None
    escalate_after: timedelta | None = None
    # Whether a channel is there: without one nothing was sent.
    notifies_begin: bool = True
    notifies_end: bool = True


@dataclass(frozen=True, slots=True)
class Course:
    """An alert as stored; `calm_since` is set while it no longer looks wrong but has not been fine for long enough."""

    stage: Stage
    began_at: datetime
    fired_at: datetime | None = None
    told_at: datetime | None = None
    escalated_at: datetime | None = None
    calm_since: datetime | None = None
    resolved_at: datetime | None = None
    is_flapping: bool = False


@dataclass(frozen=True, slots=True)
class DueMessage:
    message: AlertMessage
    not_before: datetime


@dataclass(frozen=True, slots=True)
class AlertStep:
    """Result of an observation; without a course there is no alert (any more)."""

    course: Course | None = None
    due_message: DueMessage | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """One observation: what it shows, since when if known, and how often it fired within the window."""

    sight: Sight
    now: datetime
    since: datetime | None = None
    recent_openings: int = 0
    # Acknowledged: no need to escalate.
    is_acknowledged: bool = False


def follow(course: Course | None, look: Look, policy: Policy) -> AlertStep:
    """Return the alert after an observation, and the notifications to send; not for a resolved course."""
    if course is None or course.stage is Stage.PENDING:
        if look.sight is not Sight.WRONG:
            # No notification was sent, so there is nothing to keep.
            return AlertStep()
        course = course or Course(Stage.PENDING, began_at=min(look.since or look.now, look.now))
        # A clock that was set back must not keep anybody waiting for hours.
        if abs(look.now - course.began_at) >= policy.hold:
            is_flapping = look.recent_openings >= FLAP_OPENINGS
            course = replace(course, stage=Stage.FIRING, fired_at=look.now, is_flapping=is_flapping)
    elif look.sight is Sight.FINE:
        course = _calm_down(course, look.now, policy)
    elif look.sight is Sight.WRONG and course.calm_since:
        course = replace(course, calm_since=None)
    return _notify(course, policy, look)


def _calm_down(course: Course, now: datetime, policy: Policy) -> Course:
    since = course.calm_since or now
    patience = max(policy.clear, policy.calm) if course.is_flapping else policy.clear
    if abs(now - since) < patience:
        return course if course.calm_since else replace(course, calm_since=since)
    return replace(course, stage=Stage.RESOLVED, calm_since=since, resolved_at=now)


def _notify(course: Course, policy: Policy, look: Look) -> AlertStep:
    now = look.now
    quiet = policy.quiet if policy.quiet and policy.quiet.contains(now) else None
    if course.stage is Stage.RESOLVED:
        if not policy.notifies_end or (course.told_at is None and course.escalated_at is None):
            return AlertStep(course)
        # In quiet hours it is sent at their end.
        day = Window(quiet.closes, quiet.opens, quiet.zone) if quiet else None
        return AlertStep(course, DueMessage(AlertMessage.RESOLVED, day.next_opening(now) if day else now))
    # A delayed or escalated notification is sent only if the problem is still seen: unknown wakes no one.
    if course.stage is Stage.PENDING or look.sight is not Sight.WRONG or look.is_acknowledged or quiet:
        return AlertStep(course)
    if course.told_at is None and policy.notifies_begin:
        return AlertStep(replace(course, told_at=now), DueMessage(AlertMessage.OPENED, now))
    # A clock that was set back must not keep anybody waiting for hours.
    kept = replace(course, told_at=course.told_at and min(course.told_at, now))
    # Without a first notification, escalation counts from when it fired.
    since = kept.told_at or kept.fired_at
    if since is None or policy.escalate_after is None or kept.escalated_at or now - since < policy.escalate_after:
        return AlertStep(kept)
    return AlertStep(replace(kept, escalated_at=now), DueMessage(AlertMessage.ESCALATED, now))


class Digest(StrEnum):
    """How often a channel sends what was collected for it; empty: everything at once."""

    AT_ONCE = ""
    QUARTER = "quarter"
    HOUR = "hour"
    DAY = "day"


# When the digest of a day is sent, unless the channel's hours begin later.
DIGEST_AT = time(8)
_DIGEST_SECONDS = {Digest.QUARTER: 900, Digest.HOUR: 3_600}


@dataclass(frozen=True, slots=True)
class OnCall:
    """Hours of some weekdays, Monday being 0; hours that pass midnight belong to the day on which they begin."""

    window: Window
    days: frozenset[int]

    def contains(self, moment: datetime) -> bool:
        """Whether these are the hours; equal times mean all day."""
        local = moment.astimezone(self.window.zone)
        is_yesterdays = local.time() < self.window.opens
        day = (local.weekday() - is_yesterdays) % 7
        return day in self.days and self.window.contains(moment)

    def next_opening(self, moment: datetime) -> datetime:
        opening = self.window.next_opening(moment)
        while not self.contains(opening):
            opening = self.window.next_opening(opening)
        return opening


def send_at(moment: datetime, *, digest: Digest, on_call: OnCall | None, zone: ZoneInfo) -> datetime:
    """Return when a channel sends a message that is written now: at its next digest, within its hours."""
    at = moment
    if digest is Digest.DAY:
        at = Window(DIGEST_AT, DIGEST_AT, zone).next_opening(moment)
    elif digest:
        seconds = _DIGEST_SECONDS[digest]
        at = datetime.fromtimestamp((moment.timestamp() // seconds + 1) * seconds, UTC)
    return at if on_call is None or on_call.contains(at) else on_call.next_opening(at)


def group_by_place(things: Iterable[tuple[Path, Thing]]) -> list[list[Thing]]:
    """Group by the smallest places that make no more than MAX_MESSAGES groups; a path is OLT, then port."""
    known = list(things)
    depth = max((len(path) for path, _ in known), default=0)
    while depth and len({path[:depth] for path, _ in known}) > MAX_MESSAGES:
        depth -= 1
    groups: defaultdict[Path, list[Thing]] = defaultdict(list)
    for path, thing in known:
        groups[path[:depth]].append(thing)
    return list(groups.values())
