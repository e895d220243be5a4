"""When something wrong becomes an alert, when that is over, and what is told of it.

A course is one alert from its first sight to its end. It is followed by looks: each gives the course as it is to be
kept now, and at most one message. Who was told that something is wrong is told once that it is over.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from facho.polling.domain.window import Window

# Whoever fires more often than this within the window flaps: it is told as one, until it was calm for a while.
FLAP_OPENINGS = 3
FLAP_WINDOW = timedelta(hours=1)
CALM_AFTER = timedelta(minutes=30)
# More messages of one rule at one moment are a storm: they become fewer and larger.
MAX_MESSAGES = 5

Thing = TypeVar("Thing")
Path = tuple[str, ...]


class Sight(StrEnum):
    """What a look shows; unknown where nobody can say, as behind an OLT that is silent."""

    WRONG = "wrong"
    FINE = "fine"
    UNKNOWN = "unknown"


class Stage(StrEnum):
    """Where an alert stands."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class Message(StrEnum):
    """What people are told of an alert."""

    OPENED = "opened"
    RESOLVED = "resolved"
    ESCALATED = "escalated"


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a value becomes wrong, and how far it must come back to be fine again."""

    threshold: float
    margin: float = 0
    is_low_wrong: bool = False

    def is_wrong(self, value: float, *, was_wrong: bool) -> bool:
        """Compare a value: beyond the threshold it is wrong, within the margin it stays what it was."""
        slack = self.margin if was_wrong else 0
        return value < self.threshold + slack if self.is_low_wrong else value > self.threshold - slack


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient a rule is, when it is quiet, and whom it troubles twice."""

    hold: timedelta = timedelta(0)
    clear: timedelta = timedelta(0)
    # How long who flapped must be calm.
    calm: timedelta = CALM_AFTER
    quiet: Window | None = None
    escalate_after: timedelta | None = None
    # Whether there is anybody to tell: what nobody heard of was not told.
    tells_begin: bool = True
    tells_end: bool = True


@dataclass(frozen=True, slots=True)
class Course:
    """An alert as a row keeps it.

    `told_at` is when its message was written, which quiet hours put off, and a rule that has nobody to tell.
    `calm_since` is set while it does not look wrong any more and that has not lasted long enough.
    """

    stage: Stage
    began_at: datetime
    fired_at: datetime | None = None
    told_at: datetime | None = None
    escalated_at: datetime | None = None
    calm_since: datetime | None = None
    resolved_at: datetime | None = None
    is_flapping: bool = False


@dataclass(frozen=True, slots=True)
class Telling:
    """A message, and the moment before which it must not be sent."""

    message: Message
    not_before: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """What a look leads to; no course: there is no alert, or no longer."""

    course: Course | None = None
    telling: Telling | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """One look at one thing: what it shows, since when if that is known, and how often it fired within the window."""

    sight: Sight
    now: datetime
    since: datetime | None = None
    recent_openings: int = 0
    # Somebody took note, so nobody else needs to be told.
    is_acknowledged: bool = False


def follow(course: Course | None, look: Look, policy: Policy) -> Step:
    """Return what becomes of an alert by a look, and what is to be told; a resolved course is not followed."""
    seen = _begin(look, policy) if course is None else _go_on(course, look, policy)
    return Step() if seen is None else _tell(seen, policy, look)


def _begin(look: Look, policy: Policy) -> Course | None:
    if look.sight is not Sight.WRONG:
        return None
    since = min(look.since or look.now, look.now)
    return _fire_in_time(Course(Stage.PENDING, began_at=since), look, policy)


def _go_on(course: Course, look: Look, policy: Policy) -> Course | None:
    if course.stage is Stage.PENDING:
        # Nobody was told, so there is nothing to keep.
        return _fire_in_time(course, look, policy) if look.sight is Sight.WRONG else None
    if look.sight is Sight.WRONG:
        return replace(course, calm_since=None) if course.calm_since else course
    return _calm_down(course, look.now, policy) if look.sight is Sight.FINE else course


def _fire_in_time(course: Course, look: Look, policy: Policy) -> Course:
    # A clock that was set back must not keep anybody waiting for hours.
    if abs(look.now - course.began_at) < policy.hold:
        return course
    is_flapping = look.recent_openings >= FLAP_OPENINGS
    return replace(course, stage=Stage.FIRING, fired_at=look.now, is_flapping=is_flapping)


def _calm_down(course: Course, now: datetime, policy: Policy) -> Course:
    since = course.calm_since or now
    patience = max(policy.clear, policy.calm) if course.is_flapping else policy.clear
    if abs(now - since) < patience:
        return course if course.calm_since else replace(course, calm_since=since)
    return replace(course, stage=Stage.RESOLVED, calm_since=since, resolved_at=now)


def _tell(course: Course, policy: Policy, look: Look) -> Step:
    now = look.now
    if course.stage is Stage.RESOLVED:
        is_told = policy.tells_end and not (course.told_at is None and course.escalated_at is None)
        return Step(course, Telling(Message.RESOLVED, _quiet_end(policy.quiet, now)) if is_told else None)
    # What quiet hours put off may be over by now, and so may what nobody acknowledged: where nobody can say, nobody is
    # woken for it.
    is_silent = look.sight is not Sight.WRONG or look.is_acknowledged or _is_quiet(policy.quiet, now)
    if course.stage is Stage.PENDING or is_silent:
        return Step(course)
    if course.told_at is None and policy.tells_begin:
        return Step(replace(course, told_at=now), Telling(Message.OPENED, now))
    # A clock that was set back must not keep anybody waiting for hours.
    kept = replace(course, told_at=course.told_at and min(course.told_at, now))
    if _is_unanswered(kept, policy, now):
        return Step(replace(kept, escalated_at=now), Telling(Message.ESCALATED, now))
    return Step(kept)


def _is_unanswered(course: Course, policy: Policy, now: datetime) -> bool:
    # Where nobody is told first, the others wait from when it fired.
    since = course.told_at or course.fired_at
    if since is None or policy.escalate_after is None or course.escalated_at is not None:
        return False
    return now - since >= policy.escalate_after


def _is_quiet(quiet: Window | None, now: datetime) -> bool:
    return quiet is not None and quiet.contains(now)


def _quiet_end(quiet: Window | None, now: datetime) -> datetime:
    """Return when a message may be sent: now, or when the quiet hours end."""
    if quiet is None or not quiet.contains(now):
        return now
    return Window(quiet.closes, quiet.opens, quiet.zone).next_opening(now)


def group_by_place(things: Iterable[tuple[Path, Thing]], *, limit: int = MAX_MESSAGES) -> list[list[Thing]]:
    """Put together what is told together: by the smallest places that make no more groups than the limit.

    A path leads from the large to the small: OLT, then port. Paths may be of different lengths.
    """
    known = list(things)
    depth = max((len(path) for path, _ in known), default=0)
    while depth and len({path[:depth] for path, _ in known}) > limit:
        depth -= 1
    groups: defaultdict[Path, list[Thing]] = defaultdict(list)
    for path, thing in known:
        groups[path[:depth]].append(thing)
    return list(groups.values())
