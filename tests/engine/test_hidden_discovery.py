"""An OLT whose view hides its ONUs, through the whole engine: each slot fails with the reason until the view is open.

As on the first day, only the clock is ours.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from bench.virtual_engine import DirectGateway, LoopClock, add_simulated_olt
from django.db import connection
from django.test import Client
from django.utils import translation

from api.rows import make_user
from facho.accounts.roles import Role
from facho.core.wiring import ENGINE, build_engine, open_parts
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.logger import describe
from facho.execution_coordinator.models import CoordinatorLog, EventType
from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.onus.models import Onu
from facho.polling.domain.execution_state import ExecutionState, FailureKind
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers import scheduler
from snmp_get.closed_views import onu_keys

BEGIN = datetime(2030, 1, 1, 12, 5, tzinfo=UTC)
LIMIT = timedelta(hours=1)
PASS_SECONDS = 15.0
ONUS = 12
REASON = f"Its PON ports count {ONUS} ONUs, but its tables of ONUs are empty. Is its SNMP view closed for them?"


def discoveries() -> list[Execution]:
    return list(Execution.objects.filter(task_type="discovery", finished_at__isnull=False).order_by("slot_at"))


async def play(after_two: Callable[[SimulatedOlt], None]) -> None:
    """Run two slots of a discovery, change the world, and run a third."""
    config = SimulatorConfig(onus=ONUS, life=STILL, started_at=BEGIN)
    async with Simulation.start(config) as simulation, open_parts(ENGINE) as parts:
        [simulated] = simulation.olts
        simulated.close_columns(onu_keys(simulated.definition))
        clock, coordinator = LoopClock(BEGIN), ExecutionCoordinator()
        apply_ready_made_jobs(add_simulated_olt(simulated), now=clock.now())
        joined: Any = {"database": DirectGateway(), "clock": clock}
        engine = build_engine(replace(parts, **joined))
        stop = asyncio.Event()
        loop = asyncio.create_task(engine.scheduler.scheduler_loop(stop))
        is_changed = False
        while len(ended := discoveries()) < 3 and clock.now() < BEGIN + LIMIT:
            if len(ended) == 2 and not is_changed:
                is_changed = True
                coordinator.run_pass(clock.now())
                after_two(simulated)
            await asyncio.sleep(PASS_SECONDS)
        stop.set()
        await loop
        await engine.executor.drain(timeout_seconds=1_000)
        coordinator.run_pass(clock.now())
        connection.close()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
async def test_hidden_onus_fail_each_slot_with_the_reason_until_the_view_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "yes")
    monkeypatch.setattr(scheduler, "TICK_SECONDS", 5.0)
    seen: list[tuple[int, str]] = []

    def look_and_open(simulated: SimulatedOlt) -> None:
        seen.append((Onu.objects.count(), page()))
        simulated.close_columns(())

    await play(look_and_open)

    ends = [(run.status, run.failure_kind) for run in discoveries()]
    hidden = (ExecutionState.FAILED, FailureKind.HIDDEN_ONUS)
    assert ends == [hidden, hidden, (ExecutionState.SUCCESS, "")]
    # It is not tried again in between: the next slot looks.
    interval = timedelta(seconds=WorkflowNode.objects.get(job__slug="descubrimiento").interval_seconds)
    slots = [run.slot_at for run in discoveries()]
    assert [later - earlier for earlier, later in pairwise(slots)] == [interval, interval]
    assert [(run.attempt, run.result["counted_onus"]) for run in discoveries()[:2]] == [(1, ONUS), (1, ONUS)]
    [(onus, reported)] = seen
    assert onus == 0
    assert REASON in reported
    assert REASON not in page()
    assert logged_reasons() == 2
    assert Onu.objects.count() == ONUS
    connection.close()


def page() -> str:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.VIEWER))
    return client.get(f"/olts/{Olt.objects.get().id}/").content.decode()


def logged_reasons() -> int:
    failed = CoordinatorLog.objects.filter(event_type=EventType.EXECUTION_FAILED)
    with translation.override("en"):
        return sum(REASON in describe(entry.event_type, entry.details) for entry in failed)
