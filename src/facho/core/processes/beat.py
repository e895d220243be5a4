"""Celery's beat, with what its loop offers no turn for: its process reports itself and watches the version."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from celery.apps.beat import Beat

from facho.core.processes.celery_app import refuse_to_start
from facho.infrastructure.gateway import SystemClock, ThreadGateway, background

BEAT = "beat"


class ReportingBeat(Beat):
    """Is heard of while it runs, and forgotten when it ends."""

    def run(self) -> None:
        refuse_to_start()
        with _loop_aside():
            super().run()


@contextmanager
def _loop_aside() -> Iterator[None]:
    """Report and watch in a thread; the interpreter lets no such thread work once its main one has ended."""
    ended = Event()
    thread = Thread(target=lambda: asyncio.run(_report_until(ended)), name="report", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


async def _report_until(ended: Event) -> None:
    # Here the models are loaded, which these want; Celery asks for the class before.
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
