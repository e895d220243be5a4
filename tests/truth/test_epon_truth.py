"""ONUs of EPON from the OLT to the page: without a serial, by their hardware addresses, wherever an ONU is shown."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from facho.accounts.roles import Role, give_role
from facho.onus.models import Onu, OnuEvent
from facho.polling.domain.onu_events import EventKind
from facho.polling.domain.onu_state import DownCause
from facho.simulator.readings import ONU_READINGS
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL, SimulatedOnu
from truth.polled_fleet import Fleet, polled
from truth.stored_truth import assert_rows_are_true

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def mac_of(onu: SimulatedOnu) -> str:
    return str(ONU_READINGS["mac"](onu)[0])


def trouble(fleet: Fleet) -> tuple[SimulatedOnu, SimulatedOnu, SimulatedOnu]:
    """Let one ONU go down, another move and a third vanish."""
    world = fleet.olts[0].world
    down, moved, gone, *_ = world.onus
    world.take_down(down, DownCause.LOS)
    world.move(moved, list(world.ports)[-1])
    world.remove(gone)
    fleet.poll(2)
    return down, moved, gone


@pytest.mark.parametrize("family", ["vsol_epon_v1600d", "bdcom_epon"])
def test_onus_of_epon_are_followed_and_found_by_their_hardware_addresses(family: str, client: Client) -> None:
    viewer = User.objects.create_user("viewer")
    give_role(viewer, Role.VIEWER)
    client.force_login(viewer)
    with polled(SimulatorConfig(vendor=family, onus=24, offline_share=0.0, life=STILL)) as fleet:
        down, moved, gone = trouble(fleet)
        assert_rows_are_true(fleet)

    reported = {(event.kind, event.onu.mac) for event in OnuEvent.objects.select_related("onu")}
    assert reported == {
        (EventKind.DOWN, mac_of(down)),
        (EventKind.MOVED, mac_of(moved)),
        (EventKind.GONE, mac_of(gone)),
    }
    assert not Onu.objects.exclude(serial="").exists()
    assert Onu.objects.filter(reading__rx_power_cdbm__isnull=False).count() >= 22
    row = Onu.objects.get(mac=mac_of(moved))
    [found] = client.get("/api/v1/onus/", {"search": row.mac}).json()["results"]
    assert (found["id"], found["serial"], found["mac"]) == (row.id, "", row.mac)
    dashed = client.get("/search/", {"q": row.mac.replace(":", "-").lower()}, follow=True)
    pages = [client.get("/onus/", {"q": row.mac}), client.get(f"/onus/{row.id}/"), dashed]
    assert [row.mac in page.content.decode() for page in pages] == [True] * 3
