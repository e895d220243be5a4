"""ONTs of an OLT that tells no ports, from the device to the page: each is reported by itself, and no port is out."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from facho.onus.models import Onu, OnuEvent, Outage
from facho.polling.domain.onu_events import EventKind
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL
from truth.polled_fleet import polled

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_a_cut_fibre_is_reported_of_each_ont_and_of_no_port(client: Client) -> None:
    client.force_login(User.objects.create_superuser("admin"))
    with polled(SimulatorConfig(vendor="calix_axos", onus=24, offline_share=0.0, life=STILL)) as fleet:
        world = fleet.olts[0].world
        world.cut(next(iter(world.ports)))
        fleet.poll()

    assert list(OnuEvent.objects.values_list("kind", flat=True)) == [EventKind.DOWN] * 24
    assert not Outage.objects.exists()
    listed = client.get("/onus/", {"port": "?"}).content.decode()
    assert all(f"?/{onu.onu_id}" in listed for onu in Onu.objects.all())
    assert "0/0/0" not in listed
