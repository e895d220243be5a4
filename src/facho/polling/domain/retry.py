"""What follows a failed try: another one later, the end of the run, its node suspended, or its OLT probed."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.polling.domain.execution_state import FailureKind

# Asking again in two minutes changes nothing about these: a person has to.
_HOPELESS = frozenset({FailureKind.AUTH, FailureKind.MISSING, FailureKind.HIDDEN_ONUS})

# The device, or the way to it, is silent: its other nodes would fail alike.
SILENCE = frozenset({FailureKind.TIMEOUT, FailureKind.REFUSED})

# Seconds after the suspension and between probes; the last one repeats forever (decision D8).
PROBE_PAUSES_SECONDS = (60, 120, 240, 300)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How many attempts a job gets in a row, and the delay between them."""

    max_attempts: int
    delay_seconds: int


@dataclass(frozen=True, slots=True)
class AfterFailure:
    """The decision. Without `resume_at` the run is over; `suspends` stops further slots of the node."""

    failures_in_a_row: int
    resume_at: datetime | None = None
    suspends: bool = False


def decide_after_failure(
    kind: FailureKind,
    *,
    failures_before: int,
    policy: RetryPolicy,
    next_slot_at: datetime | None,
    now: datetime,
) -> AfterFailure:
    """Decide what follows; a retry after the node's next slot is left to that slot, which keeps counting."""
    if kind is FailureKind.CANCELLED:
        return AfterFailure(failures_before)
    failures = failures_before + 1
    if failures >= policy.max_attempts:
        return AfterFailure(failures, suspends=True)
    resume_at = now + timedelta(seconds=policy.delay_seconds)
    is_left_to_the_slot = next_slot_at is not None and next_slot_at <= resume_at
    if kind in _HOPELESS or is_left_to_the_slot:
        return AfterFailure(failures)
    return AfterFailure(failures, resume_at=resume_at)


FIRST_PAUSE = timedelta(seconds=30)
# A channel that works again is found within this time.
LONGEST_PAUSE = timedelta(minutes=15)
GIVE_UP_AFTER = timedelta(days=1)
# Channels of one broken server are not all tried at one moment.
SPREAD = 0.2


def next_try_at(tries: int, *, written_at: datetime, now: datetime, chance: float) -> datetime | None:
    """Return when to try again after that many attempts, None to give up; `chance` is random in [0, 1]."""
    if now - written_at >= GIVE_UP_AFTER:
        return None
    return now + _pause(tries, LONGEST_PAUSE, chance)


# A program that was away for a weekend is asked a few times, not thousands of times.
LONGEST_BATCH_PAUSE = timedelta(days=1)


def next_batch_try_at(tries: int, *, now: datetime, chance: float) -> datetime:
    """Return when to try a batch of events again: nothing of it is given up, but the pauses grow to a day."""
    return now + _pause(tries, LONGEST_BATCH_PAUSE, chance)


def _pause(tries: int, longest: timedelta, chance: float) -> timedelta:
    # Beyond some doublings the pause is the longest anyway, and numbers stay small.
    doublings = min(tries - 1, 12)
    return min(FIRST_PAUSE * (1 << doublings), longest) * (1 + SPREAD * (2 * chance - 1))


# Long enough that resuming costs little, short enough that a five-minute poll keeps its slot.
YIELD_AFTER_SECONDS = 60.0


def should_yield(
    *, running_seconds: float, another_is_due: bool, yield_after_seconds: float = YIELD_AFTER_SECONDS
) -> bool:
    """Whether a run at a port boundary lets others go first."""
    return another_is_due and running_seconds >= yield_after_seconds


def next_probe_at(probes_done: int, *, now: datetime) -> datetime:
    pause = PROBE_PAUSES_SECONDS[min(probes_done, len(PROBE_PAUSES_SECONDS) - 1)]
    return now + timedelta(seconds=pause)
