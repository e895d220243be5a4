"""The product's loops in virtual time: how often each looks, and what does not wait for any of them."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar

import pytest
from bench.polled_hours import START
from bench.virtual_engine import DirectGateway, LoopClock
from bench.virtual_loop import VirtualTimeLoop
from django.db import connection
from pytest_django import Settings

from facho.core.processes.housekeeping import Housekeeping, housekeeping_loop
from facho.core.wiring import Parts, build_scheduler
from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, OltState, QuotaTracker
from facho.executions import store
from facho.executions.models import Execution, Origin
from facho.executions.runner import Hints, InProcessExecutor
from facho.executions.store import ClaimRequest
from facho.hosts.models import Olt
from facho.polling.domain.collection import Collected, CollectRequest, RunControl
from facho.polling.domain.execution_state import ACTIVE, ExecutionState
from facho.snmp_jobs.models import WorkflowNode
from factories import make_node, make_olt

pytestmark = pytest.mark.django_db(transaction=True)

P = ParamSpec("P")
T = TypeVar("T")

RUN_SECONDS = 7.3
LEASE_SECONDS, PACKET_SECONDS = 20, 2
# Finer than any loop.
LOOK_SECONDS = 0.1


class NotingGateway(DirectGateway):
    """Notes when each store function was called, by its name."""

    def __init__(self, called_at: dict[str, list[float]]) -> None:
        self._called_at = called_at

    def aside(self) -> "NotingGateway":
        """Serve the chores that have a thread of their own: on this clock no time passes in them either."""
        return self

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Note it, and return what `call` returns."""
        self._called_at[getattr(call, "__qualname__", "")].append(asyncio.get_running_loop().time())
        return await super().run(call, *args, **kwargs)

    async def close(self) -> None:
        """Have nothing to close."""


class SteadyOlts:
    """A collector whose OLTs need the same time for everything."""

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        await asyncio.sleep(RUN_SECONDS)
        return Collected(was_heard=True)


class Loops:
    """Scheduler and housekeeping as in an engine, on the running loop's clock."""

    def __init__(self) -> None:
        # Opened here, it is that of all tasks; else each would open one, and nobody would close it.
        connection.ensure_connection()
        self.called_at: dict[str, list[float]] = defaultdict(list)
        database: Any = NotingGateway(self.called_at)
        self.clock: Any = LoopClock(START)
        network: Any = None
        self._stop = asyncio.Event()
        parts = Parts(network, database, self.clock, "engine/living", Hints())
        executor = InProcessExecutor(parts.runner(SteadyOlts()), lambda: scheduler.on_task_completed())
        scheduler = build_scheduler(parts, executor)
        self._work = asyncio.gather(
            scheduler.scheduler_loop(self._stop),
            housekeeping_loop(Housekeeping(parts, self._stop)),
            return_exceptions=True,
        )

    async def seconds_until(self, is_so: Callable[[], bool]) -> float:
        """Wait until it is so, and tell how long that was."""
        began_at = self.clock.monotonic()
        while not is_so():
            await asyncio.sleep(LOOK_SECONDS)
            assert self.clock.monotonic() - began_at < 600
        return float(self.clock.monotonic() - began_at)

    def pauses(self, name: str) -> set[float]:
        """Return the different lengths of time between two calls of a function."""
        return {round(later - earlier, 6) for earlier, later in pairwise(self.called_at[name])}

    async def stop(self) -> None:
        """End everything, with the connection of this loop."""
        self._stop.set()
        await self._work
        connection.close()


def leave_a_dead_run(olt: Olt) -> None:
    wish = ClaimRequest(olt.id, "walk_x", Origin.SCHEDULE)
    [claimed] = store.claim([wish], owner="engine/dead", now=START)
    store.take(claimed.execution_id, claimed.token, owner="engine/dead", now=START)


@pytest.fixture(autouse=True)
def _leases(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.FACHO_LEASE_SECONDS, settings.FACHO_PACKET_TIMEOUT_SECONDS = LEASE_SECONDS, PACKET_SECONDS
    # The loop waits for the database: on its clock no time passes meanwhile.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "yes")


def test_each_loop_has_its_pace_and_the_next_node_of_an_olt_waits_for_none(caplog: pytest.LogCaptureFixture) -> None:
    """D4, S1-06, S3-03, S4-09: what is due is seen within 1 s, changes and quotas within 5 s, what died within 30 s."""
    olt, other = make_olt(), make_olt()
    due_at = START + timedelta(seconds=6.5)
    nodes = [make_node(olt, next_run_at=due_at, interval_seconds=3_600) for _ in range(2)]
    leave_a_dead_run(other)
    Olt.objects.update(sys_object_id="1.3.6.1.4.1.2011.2.248")
    runs = Execution.objects.filter(olt=olt).order_by("id")
    dead = Execution.objects.filter(olt=other, status__in=ACTIVE)
    noticed: dict[str, float] = {}

    async def scene() -> Loops:
        loops = Loops()
        await loops.seconds_until(lambda: runs.filter(finished_at__isnull=False).count() == 2)
        noticed["quota"] = await loops.seconds_until(QuotaTracker.objects.filter(quota_completed=1).exists)
        WorkflowNode.objects.filter(id=nodes[1].id).update(enabled=False)
        hashes = set(OltState.objects.values_list("state_hash"))
        noticed["change"] = await loops.seconds_until(lambda: set(OltState.objects.values_list("state_hash")) != hashes)
        await loops.seconds_until(lambda: not dead.exists())
        noticed["death"] = (loops.clock.now() - START).total_seconds()
        await loops.stop()
        return loops

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loops = runner.run(scene())

    first, second = runs
    assert first.started_at is not None
    assert timedelta(0) <= first.started_at - due_at <= timedelta(seconds=1)
    assert (second.started_at, second.status) == (first.finished_at, ExecutionState.SUCCESS)
    assert max(loops.pauses("PollerManager.look_and_start.<locals>.look")) == 1
    assert loops.pauses("ExecutionCoordinator.run_pass") == {5}
    assert max(noticed["quota"], noticed["change"]) <= 5 + LOOK_SECONDS
    assert LEASE_SECONDS + PACKET_SECONDS <= noticed["death"] <= LEASE_SECONDS + PACKET_SECONDS + 30
    assert "failed" not in caplog.text


@pytest.mark.parametrize("period", [2.0, 45.0])
def test_the_coordinator_looks_as_often_as_the_setting_says(settings: Settings, period: float) -> None:
    """S1-22: a change is noticed, and a plan counted, at the pace of its passes."""
    settings.FACHO_COORDINATOR_SECONDS = period
    node, other = (make_node(next_run_at=START + timedelta(seconds=60), interval_seconds=3_600) for _ in range(2))
    Olt.objects.update(sys_object_id="1.3.6.1.4.1.2011.2.248")

    async def scene() -> tuple[Loops, float]:
        loops = Loops()
        await loops.seconds_until(OltState.objects.exists)
        WorkflowNode.objects.filter(id=node.id).update(interval_seconds=1_800)
        noticed = await loops.seconds_until(CoordinatorLog.objects.filter(event_type="TASK_MODIFIED").exists)
        counted = ExecutionPlan.objects.filter(olt=other.workflow.olt, completed_tasks=1)
        await loops.seconds_until(counted.exists)
        await loops.stop()
        return loops, noticed

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loops, noticed = runner.run(scene())

    assert loops.pauses("ExecutionCoordinator.run_pass") == {period}
    assert period - 2 * LOOK_SECONDS <= noticed <= period + LOOK_SECONDS
