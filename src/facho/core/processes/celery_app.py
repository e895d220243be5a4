"""The Celery app of the distributed mode, and what a worker or a beat does at its start and its end."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from celery import Celery, signals
from celery.apps.beat import Beat
from kombu.transport import TRANSPORT_ALIASES, redis

from facho.core.processes import supervisor
from facho.core.product import OperatorError, open_distributed, say
from facho.infrastructure.gateway import SystemClock, ThreadGateway, background
from facho.polling.domain.planning import group_of


class Channel(redis.Channel):
    """Puts nothing back when it closes: kombu asks a Redis that is away for it, and the worker ends over the answer."""

    do_restore = False


class Transport(redis.Transport):
    """Redis, with channels that always close."""

    Channel = Channel


if TYPE_CHECKING:
    from facho.core.processes.worker import LoopWorker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "facho.core.settings")


logger = logging.getLogger("facho.worker")

BEAT = "beat"

TRANSPORT_ALIASES["redis"] = "facho.core.processes.celery_app:Transport"


class FachoCelery(Celery):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.slots: int | None = None
        self.groups: frozenset[str] = frozenset()
        self._making = Lock()
        self._worker: LoopWorker | None = None

    @property
    def worker(self) -> "LoopWorker":
        """The worker of this process; made when the first message needs it, since it wants the models loaded."""
        from facho.core.processes.worker import Duty, LoopWorker

        with self._making:
            if self._worker is None:
                self._worker = LoopWorker(self, Duty(self.slots or self.conf.worker_concurrency, self.groups))
            return self._worker

    @cached_property
    def Beat(self) -> type[Beat]:
        beat: type[Beat] = self.subclass_with_self(ReportingBeat)
        return beat

    def close_worker(self) -> None:
        with self._making:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


class ReportingBeat(Beat):
    """Is heard of while it runs, and forgotten when it ends."""

    def run(self) -> None:
        refuse_to_start()
        with _loop_aside():
            super().run()


@contextmanager
def _loop_aside() -> Iterator[None]:
    """Report in a thread, for which Celery's loop offers no turn; no pool works once the main thread has ended."""
    ended = Event()
    thread = Thread(target=lambda: asyncio.run(_report_until(ended)), name="report", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


async def _report_until(ended: Event) -> None:
    from facho.core.processes.leader_watch import watch_version
    from facho.core.wiring import new_owner
    from facho.executions.processes import describing, reporting

    database = ThreadGateway(1)
    try:
        async with (
            reporting(database, describing(new_owner(BEAT), SystemClock())),
            background(watch_version(database), "version"),
        ):
            await asyncio.to_thread(ended.wait)
    finally:
        await database.close()


@signals.celeryd_init.connect
def refuse_to_start(**_about: object) -> None:
    """End a worker or a beat that cannot work, with a sentence for each reason."""
    try:
        open_distributed()
    except OperatorError as error:
        for line in error.lines:
            say(f"facho: {line}")
        sys.exit(error.status)


@signals.celeryd_init.connect
def spare_memory(**_about: object) -> None:
    """Do it while there are no slots: they are threads."""
    supervisor.share_arenas()
    supervisor.raise_descriptor_limit()


@signals.celeryd_after_setup.connect
def learn_duty(instance: Any, **_about: object) -> None:
    """Learn how many slots the command line gave this worker, and whose executions it reads."""
    app.slots = instance.concurrency
    queues = app.amqp.queues.consume_from
    app.groups = frozenset(group_of(name) for name in queues if name.startswith(app.conf.task_default_queue))


@signals.worker_ready.connect
def begin(sender: Any, **_about: object) -> None:
    """Look for lost messages where executions are carried out."""
    # It loads the whole worker, which a scheduler has no use for.
    from celery.apps.worker import install_worker_term_handler  # type: ignore[attr-defined]  # celery-types lacks it

    # The handler that is there prints a line of text into a log that may be JSON.
    install_worker_term_handler(sender.controller, verbose=False)
    logger.info("worker.started slots=%s queues=%s", app.slots, ",".join(app.amqp.queues.consume_from))
    supervisor.collect_seldom()
    supervisor.switch_often()
    app.worker.begin_duty()
    supervisor.notify_ready()


@signals.beat_init.connect
def begin_beat(**_about: object) -> None:
    supervisor.notify_ready()


@signals.worker_shutting_down.connect
def begin_stop(**_about: object) -> None:
    """Hand back what does not finish soon: Celery itself would wait for the longest run."""
    app.worker.begin_stop()


@signals.worker_shutdown.connect
def stop(**_about: object) -> None:
    app.close_worker()


app = FachoCelery("facho")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
