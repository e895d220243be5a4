"""The poller group of an OLT, as a file, a form or the API names it; an unknown one is refused with a sentence."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from facho.hosts.csv import import_file, write_entries
from facho.hosts.inventory import InventoryError, export_entries
from facho.hosts.models import Olt
from factories import make_olt

pytestmark = pytest.mark.django_db

HEADER = "name,host,port,vendor,version,community,poller_group\n"
UNKNOWN = 'poller group "oeste" is unknown; known are: norte, sur'


@pytest.fixture(autouse=True)
def _groups(settings: Settings) -> None:
    settings.FACHO_POLLER_GROUPS = {"sur": 1, "norte": 2}


def load_row(group: str) -> str:
    import_file(f"{HEADER}centro,192.0.2.1,,,,public,{group}\n".encode())
    return Olt.objects.get().poller_group


def test_a_file_sets_it_keeps_it_and_takes_it_away() -> None:
    assert [load_row(written) for written in ("norte", "", "none", "sur")] == ["norte", "norte", "", "sur"]


def test_a_file_with_an_unknown_group_is_refused(settings: Settings) -> None:
    with pytest.raises(InventoryError, match=UNKNOWN):
        load_row("oeste")
    settings.FACHO_POLLER_GROUPS = {}
    with pytest.raises(InventoryError, match="FACHO_POLLER_GROUPS names none"):
        load_row("norte")

    assert not Olt.objects.exists()


def test_an_export_has_the_column_when_an_olt_needs_it() -> None:
    olt = make_olt()
    assert "poller_group" not in write_entries(export_entries())

    Olt.objects.filter(id=olt.id).update(poller_group="norte")

    header, row = write_entries(export_entries()).splitlines()
    assert (header.split(",")[-1], row.split(",")[-1]) == ("poller_group", "norte")


@pytest.mark.parametrize(("group", "stored"), [("norte", "norte"), ("oeste", "")])
def test_the_form_takes_a_known_group(admin_client: Client, group: str, stored: str) -> None:
    olt = make_olt()
    inputs = {"name": olt.name, "host": "127.0.0.1", "port": "161", "snmp_version": "2c", "new_community": "public"}

    page = admin_client.post(
        f"/admin/hosts/olt/{olt.id}/change/", inputs | {"poller_group": group}, headers={"accept-language": "en"}
    )

    assert Olt.objects.get().poller_group == stored
    assert (page.status_code == 302) == (stored == group)
    assert page.status_code == 302 or "is unknown; known are: norte, sur" in page.content.decode()


@pytest.mark.parametrize(("group", "status"), [("norte", 200), ("", 200), ("oeste", 400)])
def test_the_api_takes_a_known_group(admin_user: User, group: str, status: int) -> None:
    olt = make_olt()
    client = Client(headers={"accept-language": "en"})
    client.force_login(admin_user)

    answer = client.patch(f"/api/v1/olts/{olt.id}/", {"poller_group": group}, content_type="application/json")

    assert answer.status_code == status
    assert (Olt.objects.get().poller_group == group) == (status == 200)
    assert status == 200 or UNKNOWN in str(answer.json()["errors"])
