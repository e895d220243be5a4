"""Beat's entries beside the scheduler process: who starts nodes, and what a message does while somebody leads."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
from django.utils import timezone
from pytest_django import Settings

from facho.core import celery
from facho.core.processes import scheduler as process
from facho.core.processes.celery_app import FachoCelery
from facho.execution_coordinator.models import OltState
from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.models import LeaderLease
from factories import make_node
from servers.modes import in_database

pytestmark = pytest.mark.django_db(transaction=True)

TICK = "zabbix-scheduler"
PATIENCE_SECONDS = 60


@pytest.fixture
def app() -> Iterator[FachoCelery]:
    """An app like the product's, whose messages stay in memory."""
    own = FachoCelery("in-memory")
    celery.app.set_current()
    own.config_from_object("django.conf:settings", namespace="CELERY")
    own.conf.update(broker_url="memory://", result_backend="cache+memory://")
    own.autodiscover_tasks()
    own.loader.import_default_modules()
    yield own
    own.close_worker()
    own.close()


def arrive(app: FachoCelery, name: str) -> object:
    """Do what the message of a beat entry asks for."""
    entry = app.conf.beat_schedule[name]
    return app.tasks[entry["task"]](**entry.get("kwargs", {}))


def make_due(number: int = 1) -> list[WorkflowNode]:
    """Make nodes that are due, each on an OLT that has said who it is: nobody probes it."""
    nodes = [make_node(next_run_at=timezone.now(), interval_seconds=3_600) for _ in range(number)]
    Olt.objects.update(sys_object_id="1.3.6.1.4.1.2011.2.248")
    return nodes


def starters() -> list[str]:
    """Return the role of the process that started each execution, the first one first."""
    return [owner.partition("/")[0] for owner in Execution.objects.order_by("id").values_list("owner", flat=True)]


def test_with_both_in_beat_only_the_scheduler_starts_nodes(app: FachoCelery) -> None:
    """S0-01: the coordinator looks before and after, and leaves what is due to the scheduler."""
    others = [name for name in app.conf.beat_schedule if name != TICK]
    started = dict.fromkeys(app.conf.beat_schedule, 0)

    for name in (*others, TICK, *others, TICK):
        make_due()
        before = Execution.objects.count()
        arrive(app, name)
        started[name] += Execution.objects.count() - before

    assert "coordinator-loop" in others
    assert OltState.objects.exists()
    assert started == {**dict.fromkeys(others, 0), TICK: len(others) * 2 + 2}


async def until(is_so: Callable[[], bool]) -> None:
    """Look again and again until it is so."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await in_database(is_so):
            pass


def test_beat_repeats_the_tick_of_the_scheduler_process_which_does_nothing_while_that_one_leads(
    app: FachoCelery, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D5: a tick is bounded; the process drives it, under a lease, and leaves the lead when it stops."""
    settings.FACHO_POLLERS = 4
    monkeypatch.setattr(process, "app", app)
    assert app.conf.beat_schedule[TICK]["task"] == "zabbix_pollers.tasks.zabbix_scheduler_loop_task"
    ticks: list[object] = []

    async def scene() -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(process.run_scheduler(stop))
        await until(LeaderLease.objects.exists)
        for number in (1, 2):
            await in_database(make_due)
            ticks.append(await asyncio.to_thread(arrive, app, TICK))
            await until(lambda enough=number: Execution.objects.count() == enough)
        stop.set()
        await running

    asyncio.run(scene())
    make_due(5)
    ticks += [arrive(app, TICK), arrive(app, TICK)]

    assert ticks == [0, 0, 2, 0]
    assert starters() == ["scheduler"] * 2 + ["worker"] * 2
    assert LeaderLease.objects.get().owner.startswith("worker/")
