"""Further addresses that the traps of an OLT come from, as the form of the admin and the inventory's file take them."""

import pytest
from django.test import Client
from django.urls import reverse

from facho.hosts.csv import read_entries, write_entries
from facho.hosts.inventory import export_entries
from facho.hosts.models import Olt
from factories import make_olt

pytestmark = pytest.mark.django_db


def enter(client: Client, olt: Olt, addresses: str) -> str:
    inputs = {"name": olt.name, "host": "127.0.0.1", "port": str(olt.port), "snmp_version": "2c", "enabled": "on"}
    place = reverse("admin:hosts_olt_change", args=[olt.pk])
    return client.post(place, {**inputs, "trap_addresses": addresses}).content.decode()


def test_further_addresses_are_stored_and_read_in_their_usual_form(admin_client: Client) -> None:
    olt = make_olt()

    enter(admin_client, olt, "192.0.2.7, 2001:DB8::1")

    assert Olt.objects.get().trap_sources == ["192.0.2.7", "2001:db8::1"]


def test_what_is_not_an_address_is_named_and_kept_in_the_form(admin_client: Client) -> None:
    olt = make_olt()

    page = enter(admin_client, olt, "192.0.2.7, olt.example.net")

    assert "olt.example.net is not an IP address." in page
    assert 'value="192.0.2.7, olt.example.net"' in page
    assert Olt.objects.get().trap_addresses == ""


def test_the_file_of_the_inventory_has_them_only_where_an_olt_does() -> None:
    make_olt()
    assert "trap_addresses" not in write_entries(export_entries())
    Olt.objects.update(trap_addresses="192.0.2.7, 192.0.2.8")

    file = write_entries(export_entries())

    [entry], problems = read_entries(file.encode())
    assert (entry.trap_addresses, problems) == ("192.0.2.7, 192.0.2.8", [])
