"""The engine end to end: simulated OLTs over real UDP, the real scheduler, the real database."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from pytest_django import Settings

from facho.core.wiring import probe_olt
from facho.executions.models import Execution, ExecutionAttempt
from facho.hosts.models import Olt, Reachability
from facho.onus.models import Onu, OnuReading
from facho.polling.domain.execution_state import ACTIVE, ExecutionState
from facho.simulator.server import Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.models import LeaderLease, Poller, PollerStatus
from factories import NOW, give_secrets, make_olt
from servers.modes import EmbeddedPolling, Polling, in_database

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _short_timeouts(settings: Settings) -> None:
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.2


PATIENCE_SECONDS = 60


def play(config: SimulatorConfig, scene: Callable[[Simulation], Awaitable[None]]) -> Simulation:
    """Run a scene against simulated OLTs; the simulation is returned for its counters."""

    async def run() -> Simulation:
        async with Simulation.start(config) as simulation:
            await scene(simulation)
            return simulation

    return asyncio.run(run())


def add_simulated(simulation: Simulation) -> None:
    for simulated in simulation.olts:
        olt = make_olt(port=simulated.port, vendor=simulated.vendor)
        apply_ready_made_jobs(olt, now=NOW)
    WorkflowNode.objects.filter(is_chain_node=False).update(run_requested_at=NOW)


async def poll_until(is_done: Callable[[], bool], polling: Polling) -> None:
    async with polling, asyncio.timeout(PATIENCE_SECONDS):
        while not await in_database(is_done):
            await polling.look()


def every_onu_has_light() -> bool:
    online = OnuReading.objects.filter(run_state="online")
    return online.exists() and not online.filter(rx_power_cdbm=None).exists()


def all_is_read() -> bool:
    """Tell whether nothing is due any more: between two runs of an OLT there is a moment without any, too."""
    has_waiting = WorkflowNode.objects.filter(is_chain_node=False, last_run_at=None).exists()
    return every_onu_has_light() and not has_waiting and not Execution.objects.filter(finished_at=None).exists()


def test_simulated_onus_are_found_and_read_one_question_at_a_time(polling: Polling) -> None:
    """S0-02, S1-01, S3-09, S3-10, S4-15: counted at the device."""

    async def scene(simulation: Simulation) -> None:
        await in_database(lambda: add_simulated(simulation))
        await poll_until(every_onu_has_light, polling)

    simulation = play(SimulatorConfig(vendor="huawei_smartax", olts=3, onus=40, life=STILL), scene)

    truth = {onu.serial for olt in simulation.olts for onu in olt.world.onus}
    assert set(Onu.objects.filter(is_present=True).values_list("serial", flat=True)) == truth
    assert not Onu.objects.filter(description="").exists()
    assert [olt.counters.max_in_flight for olt in simulation.olts] == [1, 1, 1]
    assert set(Olt.objects.values_list("reachability", flat=True)) == {Reachability.UP}


def test_a_chain_is_one_unit_on_one_poller(polling: Polling) -> None:
    """S0-03, S0-08, S2-01, S2-02, S2-03, S2-06, S2-12, S2-13, S2-16, D1: one poller from master to last member."""

    async def scene(simulation: Simulation) -> None:
        await in_database(lambda: add_simulated(simulation))
        await poll_until(all_is_read, polling)

    play(SimulatorConfig(vendor="huawei_smartax", onus=8, life=STILL), scene)

    master = Execution.objects.get(task_type="discovery")
    chain = Execution.objects.filter(master_execution=master).order_by("chain_position")
    assert [member.task_type for member in chain] == ["get_descripcion", "walk_estado", "table_por_autorizar"]
    assert {member.poller_id for member in chain} == {master.poller_id} == {0}
    assert {*chain.values_list("status", flat=True), master.status} == {ExecutionState.SUCCESS}
    assert set(Poller.objects.values_list("status", flat=True)) == {PollerStatus.FREE}
    masters = Execution.objects.filter(node__isnull=False, master_execution=None)
    assert sum(Poller.objects.values_list("tasks_completed", flat=True)) == masters.count()


def test_the_batches_of_a_get_take_no_poller_and_change_no_figure() -> None:
    """S0-04: its questions are on their way side by side, under the one poller of the run and as one task."""
    busy: set[tuple[int, ...]] = set()

    def is_done() -> bool:
        busy.add(tuple(Poller.objects.filter(status=PollerStatus.BUSY).values_list("poller_id", flat=True)))
        return all_is_read()

    async def scene(simulation: Simulation) -> None:
        await in_database(lambda: add_simulated(simulation))
        await in_database(lambda: Olt.objects.update(max_in_flight=4))
        await poll_until(is_done, EmbeddedPolling())

    simulation = play(SimulatorConfig(vendor="huawei_smartax", onus=64, life=STILL, latency_ms=20), scene)

    assert 1 < simulation.olts[0].counters.max_in_flight <= 4
    assert busy <= {(), (0,)}
    masters = Execution.objects.filter(node__isnull=False, master_execution=None).count()
    first, *others = Poller.objects.order_by("poller_id")
    assert (first.tasks_completed, first.busy_time > 0) == (masters, True)
    assert {(each.tasks_completed, each.tasks_delayed, each.busy_time) for each in others} == {(0, 0, 0.0)}


def test_a_silent_olt_fails_its_run_and_not_the_others(polling: Polling) -> None:
    """S3-14: its chain is not even tried."""

    async def scene(simulation: Simulation) -> None:
        await in_database(lambda: add_simulated(simulation))
        await in_database(lambda: give_secrets(Olt.objects.filter(port=simulation.olts[0].port), community="wrong"))
        await poll_until(lambda: Execution.objects.filter(status=ExecutionState.FAILED).exists(), polling)

    play(SimulatorConfig(vendor="huawei_smartax", olts=2, onus=8, life=STILL), scene)

    silent, healthy = Olt.objects.order_by("id")
    assert (silent.reachability, silent.consecutive_failures >= 1) == (Reachability.DOWN, True)
    assert healthy.reachability == Reachability.UP
    assert not ExecutionAttempt.objects.filter(execution__olt=silent, execution__chain_position__gt=0).exists()


def test_a_stop_leaves_no_claim_no_busy_poller_and_no_leader(polling: Polling) -> None:
    async def scene(simulation: Simulation) -> None:
        await in_database(lambda: add_simulated(simulation))
        await poll_until(lambda: Execution.objects.filter(status=ExecutionState.RUNNING).exists(), polling)

    play(SimulatorConfig(vendor="huawei_smartax", onus=200, latency_ms=30, life=STILL), scene)

    assert not Execution.objects.filter(status__in=ACTIVE).exists()
    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()
    assert not LeaderLease.objects.exists()


def test_a_new_olt_is_recognised_and_gets_its_jobs(polling: Polling) -> None:
    async def scene(simulation: Simulation) -> None:
        await in_database(lambda: make_olt(port=simulation.olts[0].port, vendor=""))
        await poll_until(WorkflowNode.objects.exists, polling)

    play(SimulatorConfig(vendor="huawei_smartax", onus=4, life=STILL), scene)

    olt = Olt.objects.get()
    assert (olt.vendor, olt.reachability) == ("huawei_smartax", Reachability.UP)
    assert Execution.objects.get(task_type="probe").status == ExecutionState.SUCCESS


def test_a_probe_recognises_the_olt_and_gives_it_its_jobs() -> None:
    async def scene(simulation: Simulation) -> None:
        olt = await in_database(lambda: make_olt(port=simulation.olts[0].port, vendor=""))
        report = await asyncio.to_thread(probe_olt, olt.id)
        assert report.answered

    play(SimulatorConfig(vendor="huawei_smartax", onus=4, life=STILL), scene)

    olt = Olt.objects.get()
    assert olt.vendor == "huawei_smartax"
    assert olt.model is not None
    assert WorkflowNode.objects.filter(workflow__olt=olt).exists()
    assert Execution.objects.get().status == ExecutionState.SUCCESS
