"""What follows a failed try: another one later, the end of the run, or the suspension of its node."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.polling.domain.failure import FailureKind

# Asking again in two minutes changes nothing about these: a person has to.
_HOPELESS = frozenset({FailureKind.AUTH, FailureKind.MISSING})

# The device, or the way to it, is silent: its other nodes would fail alike.
SILENCE = frozenset({FailureKind.TIMEOUT, FailureKind.REFUSED})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a job is tried in a row, and how long it waits in between."""

    max_attempts: int = 3
    delay_seconds: int = 120


@dataclass(frozen=True, slots=True)
class AfterFailure:
    """The decision. Without `resume_at` the run is over; `suspends` says that the node gets no further slot."""

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
    """Decide what follows a failed try of a node; `failures_before` counts its failed tries up to now.

    A retry that would come after the node's next slot is left to that slot, which carries the count on.
    """
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
