"""Search from anywhere: by code, text, customer and place; one hit is gone to; odd input is answered calmly."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_onu, make_user, make_waiting_onu
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import OltGroup
from facho.onus.models import Onu, OnuCustomer

pytestmark = pytest.mark.django_db


@pytest.fixture
def onu(db: None) -> Onu:
    """One customer among others."""
    olt = make_olt("Cerro Norte", host="norte.example")
    for number in range(3):
        make_onu(olt, (0, 1, 3, number), serial=f"ZTEG0000000{number}", description="Vecino")
    onu = make_onu(olt, (0, 1, 3, 12), serial="HWTC1A2B3C4D", mac="00:1B:2C:3D:4E:5F", description="Panadería Sol")
    OnuCustomer.objects.create(onu=onu, label="C-1042 Ana Pérez")
    return onu


def search(client: Client, text: str) -> Any:
    return client.get(f"/search/?q={quote(text)}")


@pytest.mark.parametrize(
    "text",
    [
        "HWTC1A2B3C4D",
        " hwtc1a2b3c4d ",
        "485754431A2B3C4D",
        "1A2B3C",
        "001b.2c3d.4e5f",
        "00-1B-2C-3D-4E-5F",
        "panader",
        "panaderia sol",
        "PANADERÍA",
        "C-1042",
        "ana pérez",
        "ANA PEREZ",
        "0/1/3/12",
        "norte 0/1/3/12",
        "Cerro Norte: 0/1/3/12",
    ],
)
def test_what_means_one_onu_leads_to_its_page(viewer: Client, onu: Onu, text: str) -> None:
    assert search(viewer, text).headers["Location"] == f"/onus/{onu.id}/"


@pytest.mark.parametrize("text", ["Cerro Norte", "cerro", "CÉRRO", "norte.example"])
def test_what_means_one_olt_leads_to_its_page(viewer: Client, onu: Onu, text: str) -> None:
    assert search(viewer, text).headers["Location"] == f"/olts/{onu.olt_id}/"


@pytest.mark.parametrize(("text", "hits"), [("0/1/3", 4), ("0/1", 4), ("ZTEG", 3), ("vecino", 3), ("0/9/9", 0)])
def test_what_may_be_several_is_listed(viewer: Client, onu: Onu, text: str, hits: int) -> None:
    answer = search(viewer, text)

    assert answer.status_code == 200
    assert answer.content.decode().count('<th scope="row" class="mono"><a id="onu-') == hits


def test_an_onu_that_nobody_has_authorised_is_found_where_it_waits(viewer: Client, onu: Onu) -> None:
    make_waiting_onu(onu.olt, serial="GPON5EED0001")

    page = search(viewer, "5eed").content.decode()

    assert 'href="/waiting/?q=GPON5EED0001"' in page
    assert f'href="/olts/{onu.olt_id}/"' in page


def test_an_onu_that_also_waits_elsewhere_is_listed_with_both(viewer: Client, onu: Onu) -> None:
    make_waiting_onu(make_olt("South"), serial=onu.serial)

    page = search(viewer, onu.serial).content.decode()

    assert f'href="/onus/{onu.id}/"' in page
    assert f'href="/waiting/?q={onu.serial}"' in page


def test_of_two_rows_of_a_serial_the_present_one_is_meant(viewer: Client, onu: Onu) -> None:
    make_onu(onu.olt, (0, 1, 9, 1), serial=onu.serial, is_present=False, absent_since=timezone.now())

    assert search(viewer, onu.serial).headers["Location"] == f"/onus/{onu.id}/"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a",
        "%",
        "%%%",
        "___",
        "'; DROP TABLE onus_onu; --",
        '"><script>alert(1)</script>',
        "\x00",
        "ab\x00cd",
        "\u202e\u0007\x1b[31m",
        "x" * 5000,
        "99999/99999/99999/99999",
        "0/1/3/12/7",
        "{{ 7|add:7 }}",
        "\\",
        "ñandú 🦤",
    ],
)
@pytest.mark.parametrize("path", ["/search/", "/search/suggestions/"])
def test_odd_input_finds_nothing_and_harms_nobody(viewer: Client, onu: Onu, path: str, text: str) -> None:
    answer = viewer.get(f"{path}?q={quote(text)}")

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "<script>alert" not in page
    assert "HWTC1A2B3C4D" not in page


def test_suggestions_come_while_one_types(viewer: Client, onu: Onu) -> None:
    part = viewer.get("/search/suggestions/?q=HWTC").content.decode()

    assert f'href="/onus/{onu.id}/"' in part
    assert "C-1042 Ana Pérez" in part
    assert "<html" not in part
    assert f'href="/olts/{onu.olt_id}/"' in viewer.get("/search/suggestions/?q=ce").content.decode()


def test_whose_word_begins_so_comes_first(viewer: Client, onu: Onu) -> None:
    for number in range(8):
        make_onu(onu.olt, (0, 7, 0, number), serial=f"AAAA{number:08}", description=f"Manzana {number}")

    part = viewer.get("/search/suggestions/?q=ana").content.decode()

    assert part.index("C-1042 Ana Pérez") < part.index("Manzana")


def test_only_what_one_may_see_is_found(onu: Onu) -> None:
    user = make_user(Role.VIEWER)
    Profile.objects.create(user=user).olt_groups.add(OltGroup.objects.create(name="elsewhere"))
    visitor = Client()
    visitor.force_login(user)
    make_waiting_onu(onu.olt, serial="GPON5EED0001")

    assert "GPON5EED0001" not in search(visitor, "5eed").content.decode()
    for text in ("HWTC1A2B3C4D", "panader", "0/1/3/12", "Cerro Norte"):
        page = search(visitor, text)
        assert page.status_code == 200
        assert f"/onus/{onu.id}/" not in page.content.decode()
        assert f"/olts/{onu.olt_id}/" not in page.content.decode()


def test_the_field_is_on_every_page_and_keeps_what_was_searched(viewer: Client, onu: Onu) -> None:
    assert 'id="search-text"' in viewer.get("/").content.decode()
    assert 'value="vecino"' in search(viewer, "vecino").content.decode()
    assert Client().get("/search/?q=x").headers["Location"].startswith("/login/")


def test_the_number_of_queries_does_not_grow(
    viewer: Client, onu: Onu, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for number in range(60):
        make_onu(onu.olt, (0, 2, 0, number), serial=f"HWTC{number:08}")

    with django_assert_max_num_queries(15):
        search(viewer, "HWTC")
