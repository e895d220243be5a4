"""Customers written by billing systems: by any key, all or nothing, and the same list twice changes nothing."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from rest_framework.test import APIClient

from accounts.two_groups import make_limited, make_world
from api.rows import make_olt, make_onu
from facho.onus.models import OnuCustomer

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/customers/"


def put(client: APIClient, *customers: dict[str, Any]) -> Any:
    return client.put(ADDRESS, {"customers": customers}, format="json", headers={"accept-language": "en"})


def test_customers_are_written_by_serial_address_and_place(operator: APIClient) -> None:
    olt = make_olt("North")
    make_onu(olt, (0, 1, 3, 1), serial="HWTC12345678")
    make_onu(olt, (0, 1, 3, 2), serial="", mac="00:1B:44:11:3A:B7")
    make_onu(olt, (0, 1, 3, 3), serial="")

    answer = put(
        operator,
        {"serial": "HWTC-12345678", "label": "Ana", "contract": "C-1"},
        {"mac": "001b.4411.3ab7", "label": "Luz", "latitude": 4.6, "longitude": -74.08},
        {"olt": "North", "place": "0/1/3/3", "label": "Eva", "tags": "vip,,vip"},
        {"serial": "ZTEG00000000", "label": "Sol"},
    )

    assert answer.json() == {
        "written": 3,
        "unchanged": 0,
        "left_out": [{"index": 3, "reason": "no ONU has this serial"}],
    }
    rows = set(OnuCustomer.objects.values_list("label", "contract", "tags", "latitude"))
    assert rows == {("Ana", "C-1", "", None), ("Luz", "", "", 4.6), ("Eva", "", "vip", None)}


def test_the_same_list_again_changes_nothing(operator: APIClient) -> None:
    onu = make_onu(make_olt(), serial="HWTC12345678")
    put(operator, {"serial": onu.serial, "label": "Ana", "phone": "555"})
    written_at = OnuCustomer.objects.get().updated_at

    again = put(operator, {"serial": onu.serial, "label": "Ana"})

    assert again.json() == {"written": 0, "unchanged": 1, "left_out": []}
    assert OnuCustomer.objects.get().updated_at == written_at
    assert LogEntry.objects.filter(content_type__model="onucustomer").count() == 1


def test_one_bad_entry_refuses_all(operator: APIClient) -> None:
    onu = make_onu(make_olt(), serial="HWTC12345678")

    answer = put(
        operator,
        {"serial": onu.serial, "label": "Ana"},
        {"label": "Luz"},
        {"serial": "HWTC1", "latitude": 4},
        {"serial": "HWTC2", "phone": "5" * 41},
    )

    assert answer.status_code == 400
    assert [(each["field"], each["detail"]) for each in answer.json()["errors"]] == [
        ("customers.1.serial", "the serial is missing"),
        ("customers.2.latitude", "latitude and longitude belong together"),
        ("customers.3.phone", "phone is longer than 40 characters"),
    ]
    assert not OnuCustomer.objects.exists()


def test_unknown_fields_and_too_many_entries_are_refused(operator: APIClient) -> None:
    assert put(operator, {"serial": "X", "name": "Ana"}).status_code == 400
    assert put(operator, *[{"serial": str(number)} for number in range(1_001)]).status_code == 400
    assert put(operator).status_code == 400


def test_onus_of_other_groups_are_as_if_they_were_not_there() -> None:
    world, client = make_world(), APIClient()
    client.force_login(make_limited(world))

    answer = put(client, {"serial": "ShownSERIAL01", "label": "a"}, {"serial": "HiddenSERIAL01", "label": "b"})

    assert answer.json()["left_out"] == [{"index": 1, "reason": "no ONU has this serial"}]
    assert [customer.onu.olt for customer in OnuCustomer.objects.all()] == [world.shown.olt]
