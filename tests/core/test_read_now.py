"""One ONU read by hand, end to end in both modes: simulated OLTs over real UDP, the real scheduler, the database."""

import asyncio

import pytest
from django.utils import timezone
from pytest_django import Settings

from api.rows import make_onu
from facho.executions.models import Execution, OnuRead
from facho.executions.onu_reads import request_read
from facho.infrastructure.secrets import Secret
from facho.onus.models import Onu
from facho.polling.domain.execution_state import ExecutionState
from facho.simulator.server import Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.zabbix_pollers.models import Poller, PollerStatus
from factories import make_olt
from servers.modes import EmbeddedPolling, Polling, in_database

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

PATIENCE_SECONDS = 60


def wish(simulation: Simulation, *, community: str = "") -> None:
    """Have a row of the first simulated ONU, without any job, and somebody who wants to know how it is."""
    [simulated] = simulation.olts
    reported = next(iter(simulated.world.onus))
    olt = make_olt(port=simulated.port, vendor=simulated.vendor)
    olt.community = Secret(community or simulated.community)
    # Known already: nothing but the wish makes anyone ask it.
    olt.sys_object_id = "1.3.6.1.4.1.2011"
    olt.save()
    place = reported.place
    onu = make_onu(olt, (place.frame, place.slot, place.port, place.onu), serial=reported.serial)
    request_read(onu.id, now=timezone.now())


def is_over() -> bool:
    return OnuRead.objects.filter(execution__finished_at__isnull=False).exists()


def play(polling: Polling, *, community: str = "") -> Simulation:
    async def run() -> Simulation:
        config = SimulatorConfig(vendor="huawei_smartax", onus=8, life=STILL, offline_share=0.0)
        async with Simulation.start(config) as simulation:
            await in_database(lambda: wish(simulation, community=community))
            async with polling, asyncio.timeout(PATIENCE_SECONDS):
                while not await in_database(is_over):
                    await polling.look()
            return simulation

    return asyncio.run(run())


def test_a_wish_is_read_from_the_device_under_the_claim(polling: Polling) -> None:
    simulation = play(polling)

    reading = Onu.objects.get().reading
    assert (reading.run_state, reading.rx_power_cdbm is None) == ("online", False)
    execution = Execution.objects.get()
    assert (execution.task_type, execution.status) == ("onu_read", ExecutionState.SUCCESS)
    assert simulation.olts[0].counters.max_in_flight == 1
    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()


def test_an_olt_that_does_not_answer_ends_the_wish_with_a_reason(settings: Settings) -> None:
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.2

    play(EmbeddedPolling(), community="wrong")

    execution = OnuRead.objects.select_related("execution").get().execution
    assert execution is not None
    assert (execution.status, execution.failure_kind) == (ExecutionState.FAILED, "timeout")
