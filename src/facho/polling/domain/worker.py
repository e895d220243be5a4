"""What a message asks of the process that receives it; `core` hangs such a worker on the Celery app."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, cast


class Worker(Protocol):
    """Does what messages ask for; each call returns when the work is done."""

    def run(self, execution_id: int) -> None:
        """Carry an execution out, with its chain; one that is not waiting for a runner is left alone."""

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
