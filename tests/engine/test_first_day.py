"""The first minutes of twenty OLTs enabled at once with their ready-made jobs: discovery goes before reads of ONUs.

Simulator, UDP, scheduler, pollers, collectors, coordinator and stores are the product's; only the clock is ours, and
the database is asked on the loop itself, since on that clock no time passes meanwhile.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar

import pytest
from bench.virtual_engine import DirectGateway, LoopClock, add_simulated_olt
from django.db import connection
from django.test import Client

from api.rows import make_user
from facho.accounts.roles import Role
from facho.core.wiring import ENGINE, build_engine, open_parts
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.feasibility import load_lengths
from facho.execution_coordinator.models import CoordinatorLog, EventType, QuotaTracker, QuotaViolation
from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.onus.models import OnuReading, RunStateChoice
from facho.polling.domain.execution_state import ExecutionState
from facho.simulator.server import Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers import scheduler

P = ParamSpec("P")
T = TypeVar("T")

# Five minutes after the hour: nobody is hurried by its end.
BEGIN = datetime(2030, 1, 1, 12, 5, tzinfo=UTC)
OLTS, ONUS = 20, 12
PLAYED = timedelta(minutes=15)
PASS_SECONDS = 15.0
# Two looks of the scheduler; ten pollers are enough for twenty OLTs whose discoveries are spread.
AT_ONCE = timedelta(seconds=10)
OF_ONUS = ("descripcion", "estado", "potencia", "inventario")


async def play() -> None:
    config = SimulatorConfig(olts=OLTS, onus=ONUS, life=STILL, started_at=BEGIN)
    async with Simulation.start(config) as simulation, open_parts(ENGINE) as parts:
        clock, gateway, coordinator = LoopClock(BEGIN), DirectGateway(), ExecutionCoordinator()
        for simulated in simulation.olts:
            apply_ready_made_jobs(add_simulated_olt(simulated), now=clock.now())
        joined: Any = {"database": gateway, "clock": clock}
        engine = build_engine(replace(parts, **joined))
        stop = asyncio.Event()
        loop = asyncio.create_task(engine.scheduler.scheduler_loop(stop))
        while clock.now() < BEGIN + PLAYED:
            coordinator.run_pass(clock.now())
            await asyncio.sleep(PASS_SECONDS)
        stop.set()
        await loop
        await engine.executor.drain(timeout_seconds=1_000)
        coordinator.run_pass(clock.now())
        # A running loop has a connection of its own, which nobody else would close.
        connection.close()


def first_discoveries() -> dict[int, Execution]:
    """Return the run of each OLT's first complete discovery."""
    ended = Execution.objects.filter(task_type="discovery", status=ExecutionState.SUCCESS).order_by("-finished_at")
    return {run.olt_id: run for run in ended}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
async def test_a_new_olt_is_discovered_before_its_onus_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """S4-16, S1-04: no read of ONUs before it, light right after it, and nothing empty is counted or learned from."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "yes")
    # It also looks when a run has ended; a look each second would take a minute.
    monkeypatch.setattr(scheduler, "TICK_SECONDS", 5.0)

    await play()

    first = first_discoveries()
    of_onus = Execution.objects.filter(node__job__slug__in=OF_ONUS).order_by("created_at")
    assert len(first) == OLTS
    assert [run for run in of_onus if run.created_at < first[run.olt_id].finished_at] == []
    _assert_light_comes_right_after(first)
    _assert_light_is_on_the_page()
    _assert_nothing_empty_counts()
    connection.close()


def _assert_light_comes_right_after(first: dict[int, Execution]) -> None:
    """The optical pass is the first thing that an OLT does after the chain of its first discovery."""
    for olt_id, discovery in first.items():
        chain = Execution.objects.filter(master_execution=discovery).order_by("-finished_at").first()
        free_at = chain.finished_at if chain else discovery.finished_at
        passes = Execution.objects.filter(olt_id=olt_id, node__job__slug="potencia").order_by("created_at")
        light = passes.first()
        assert light is not None
        assert light.status == ExecutionState.SUCCESS
        assert free_at <= light.created_at <= free_at + AT_ONCE
        # Its grid begins there: the next pass is a whole interval later.
        node = WorkflowNode.objects.get(id=light.node_id)
        assert node.next_run_at == light.slot_at + passes.count() * timedelta(seconds=node.interval_seconds)


def _assert_light_is_on_the_page() -> None:
    online = OnuReading.objects.filter(run_state=RunStateChoice.ONLINE)
    assert online.count() > OLTS * ONUS / 2
    assert not online.filter(rx_power_cdbm__isnull=True).exists()
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.VIEWER))
    for olt_id in Olt.objects.values_list("id", flat=True):
        assert "dBm" in client.get(f"/onus/?olt={olt_id}").content.decode()


def _assert_nothing_empty_counts() -> None:
    counted = Execution.objects.filter(slot_at__isnull=False, status=ExecutionState.SUCCESS)
    assert [run.id for run in counted if not run.result or run.result["packets"] == 0] == []
    for tracker in QuotaTracker.objects.all():
        runs = counted.filter(olt=tracker.olt_id, task_type=tracker.task_type, slot_at__gte=tracker.period_start)
        assert tracker.quota_completed == runs.filter(slot_at__lt=tracker.period_end).count()
        assert (tracker.quota_failed, tracker.quota_skipped, tracker.will_miss_at) == (0, 0, None)
    assert not QuotaViolation.objects.exists()
    assert not CoordinatorLog.objects.filter(event_type=EventType.QUOTA_WARNING).exists()
    lengths = load_lengths()
    for node in WorkflowNode.objects.filter(job__slug="potencia"):
        runs = list(counted.filter(node=node))
        assert all(run.result and run.result["onus"] > 0 for run in runs)
        taken = [run.duration_ms / 1000 for run in runs]
        assert min(taken) <= (lengths[node.id].seconds or 0.0) <= max(taken)
