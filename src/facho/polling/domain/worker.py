"""What a message asks of the process that receives it; `core` hangs such a worker on the Celery app."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol, cast

# More than the longest run takes.
LONG_IDLE = timedelta(minutes=20)
# The broker serves who has waited longest: so many rounds without a turn are no chance.
ROUNDS = 20


class Worker(Protocol):
    """Does what messages ask for; each call returns when the work is done."""

    def run(self, execution_id: int) -> None:
        """Carry an execution out, with its chain; one that is not waiting for a runner is left alone."""

    def probe(self, execution_id: int) -> None:
        """Carry out an execution that is a probe, and what follows from it."""

    def tick(self) -> int:
        """Do one round of scheduling if this process leads, and return how many nodes started."""

    def as_leader(self, work: Callable[[datetime], object]) -> bool:
        """Do the work, with the present time, if this process leads; False when another one does it."""


class HasWorker(Protocol):
    """A Celery app of ours."""

    worker: Worker


def worker_of(app: object) -> Worker:
    """Return the worker of this process."""
    return cast(HasWorker, app).worker


def stands_still(idle: timedelta, *, workers: int, completed_by_others: int) -> bool:
    """Tell whether a worker that has completed nothing for so long no longer takes its share of its groups' work."""
    return idle > LONG_IDLE and workers > 1 and completed_by_others >= ROUNDS * workers
