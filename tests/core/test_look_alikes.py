"""A device that answers like an OLT and is none: no jobs, no packets, and a sentence wherever one looks."""

import asyncio
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.utils import translation

from facho.accounts.roles import Role, give_role
from facho.core.wiring import probe_olt
from facho.dashboard.shared.olt_rows import load_olt_row
from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.hosts.store import refusal_of
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.vendors.decoders import parse_oid
from facho.simulator import server
from facho.simulator.personality import SystemIdentity
from facho.simulator.server import Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.store import load_unidentified
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db(transaction=True)

SWITCH = SystemIdentity(parse_oid("1.3.6.1.4.1.3709.1.2.137"), "DM4770 32CX DmOS version 7.2.0")
SENTENCE = "This Datacom device is not an OLT of the DM46 series"


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> Olt:
    """The row of a switch that was added as an OLT and has been asked who it is."""
    monkeypatch.setattr(server, "identity_of", lambda _definition, _number: SWITCH)

    def ask(port: int) -> None:
        try:
            probe_olt(make_olt(vendor="", port=port).id)
        finally:
            connections.close_all()

    async def play() -> None:
        async with Simulation.start(SimulatorConfig(vendor="generic", life=STILL)) as simulation:
            await asyncio.to_thread(ask, simulation.olts[0].port)

    asyncio.run(play())
    return Olt.objects.get()


def test_a_look_alike_gets_no_vendor_no_jobs_and_no_further_question(probed: Olt) -> None:
    assert (probed.vendor, probed.sys_descr) == ("", SWITCH.description)
    assert Execution.objects.get().status == ExecutionState.SUCCESS
    assert not WorkflowNode.objects.exists()
    assert load_unidentified(NOW + timedelta(days=1)) == []


def test_page_and_api_say_why_it_is_not_polled(probed: Olt, client: Client) -> None:
    viewer = User.objects.create_user("viewer")
    give_role(viewer, Role.VIEWER)
    client.force_login(viewer)

    with translation.override("en"):
        row = load_olt_row(probed.id, NOW)
    reported = client.get(f"/api/v1/olts/{probed.id}/", headers={"accept-language": "en"}).json()

    assert row
    assert row.error.startswith(SENTENCE)
    assert reported["last_error"].startswith(SENTENCE)


def test_the_admin_says_it_too(probed: Olt, admin_client: Client) -> None:
    page = admin_client.get(f"/admin/hosts/olt/{probed.id}/change/", headers={"accept-language": "en"})

    assert SENTENCE in page.content.decode()


def test_who_names_the_vendor_by_hand_is_not_contradicted(probed: Olt) -> None:
    probed.vendor = "datacom_dmos"

    assert refusal_of(probed) == ""


def test_a_refused_device_is_asked_again_when_a_definition_knows_it(probed: Olt) -> None:
    Olt.objects.update(sys_descr="DM4610 OLT DmOS version 5.0.0")

    assert load_unidentified(NOW + timedelta(days=1)) == [probed.id]
