"""The Celery app of the distributed mode: `celery -A facho.core worker`, `celery -A facho.core beat`."""

import os
from threading import Lock
from typing import TYPE_CHECKING

from celery import Celery

if TYPE_CHECKING:
    from facho.core.processes.worker import LoopWorker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "facho.core.settings")


class FachoCelery(Celery):
    """Knows the worker that stands behind its messages."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._making = Lock()
        self._worker: LoopWorker | None = None

    @property
    def worker(self) -> "LoopWorker":
        """The worker of this process; made when the first message needs it, since it wants the models loaded."""
        from facho.core.processes.worker import LoopWorker

        with self._making:
            if self._worker is None:
                self._worker = LoopWorker(self)
            return self._worker

    def close_worker(self) -> None:
        """Close what the messages of this process opened."""
        with self._making:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


app = FachoCelery("facho")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
