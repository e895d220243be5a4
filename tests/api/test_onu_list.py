"""The list of ONUs: what it tells, how it is narrowed, searched and sorted, and where its count ends."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from api.rows import NOW, make_olt, make_onu
from facho.hosts.models import Olt, Reachability
from facho.onus import search
from facho.onus.models import Onu, OnuCustomer


def listed(client: APIClient, query: str = "") -> list[str]:
    """Return the serials of a list in their order."""
    answer = client.get(f"/api/v1/onus/{query}")
    assert answer.status_code == 200, answer.content
    return [row["serial"] for row in answer.json()["results"]]


@pytest.fixture
def fleet(db: None) -> None:
    """Five ONUs of which no two are alike: one behind a silent OLT, one gone."""
    north, south = make_olt("North", reachability=Reachability.UP), make_olt("South", reachability=Reachability.DOWN)
    since = NOW - timedelta(hours=1)
    make_onu(north, (0, 1, 0, 1), serial="AAAA1", run_state="online", rx_power_cdbm=-2010, state_since=since)
    make_onu(north, (0, 1, 1, 2), serial="CCCC2", run_state="online", rx_power_cdbm=-2750, description="north roof")
    fallen = make_onu(north, (0, 2, 0, 3), serial="BBBB3", run_state="offline", last_down_cause="los", state_since=NOW)
    OnuCustomer.objects.create(onu=fallen, label="Ana Ñúñez", address="5 Mill Lane", phone="+1 555 0100", tags="vip")
    make_onu(south, (1, 1, 0, 4), serial="DDDD4", run_state="offline", name="Router Four")
    make_onu(south, (1, 1, 0, 5), serial="EEEE5", is_present=False, absent_since=NOW, mac="00:11:22:AA:BB:CC")


@pytest.mark.parametrize(
    ("query", "serials"),
    [
        ("?olt=South", ["DDDD4", "EEEE5"]),
        ("?frame=0&slot=1&port=1", ["CCCC2"]),
        ("?state=online", ["AAAA1", "CCCC2"]),
        ("?state=offline", ["BBBB3"]),
        ("?state=unknown", ["DDDD4"]),
        ("?state=absent", ["EEEE5"]),
        ("?present=false", ["EEEE5"]),
        ("?cause=los", ["BBBB3"]),
        ("?rx_power_max=-27.5", ["CCCC2"]),
        ("?rx_power_min=-20.1", ["AAAA1"]),
        ("?rx_power_min=-30&rx_power_max=-20.11", ["CCCC2"]),
        ("?serial=ccc", ["CCCC2"]),
        ("?search=ROOF", ["CCCC2"]),
        ("?search=router four", ["DDDD4"]),
        ("?search=aa:bb", ["EEEE5"]),
        ("?search=mill", ["BBBB3"]),
        ("?search=ana", ["BBBB3"]),
        ("?search=555 01", ["BBBB3"]),
        ("?search=vip&state=offline", ["BBBB3"]),
        ("?search=vip&state=online", []),
        ("?search=100%25", []),
    ],
)
def test_a_list_is_narrowed(viewer: APIClient, fleet: None, query: str, serials: list[str]) -> None:
    assert listed(viewer, query) == serials


@pytest.mark.usefixtures("fleet")
def test_nothing_is_known_behind_an_olt_that_is_not_polled(viewer: APIClient) -> None:
    Olt.objects.filter(name="North").update(enabled=False)

    assert listed(viewer, "?state=unknown") == ["AAAA1", "CCCC2", "BBBB3", "DDDD4"]


@pytest.mark.parametrize("query", ["?search=AAA", "?state=unknown"])
def test_who_is_found_does_not_depend_on_how_many_there_are(
    viewer: APIClient, fleet: None, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one = listed(viewer, query)
    monkeypatch.setattr(search, "MANY", 0)

    assert listed(viewer, query) == one_by_one != []


@pytest.mark.parametrize(
    ("ordering", "serials"),
    [
        ("place", ["AAAA1", "CCCC2", "BBBB3", "DDDD4", "EEEE5"]),
        ("serial", ["AAAA1", "BBBB3", "CCCC2", "DDDD4", "EEEE5"]),
        ("rx_power", ["CCCC2", "AAAA1", "BBBB3", "DDDD4", "EEEE5"]),
        ("-state_since", ["BBBB3", "AAAA1", "EEEE5", "DDDD4", "CCCC2"]),
        ("-description", ["CCCC2", "EEEE5", "DDDD4", "BBBB3", "AAAA1"]),
    ],
)
def test_a_list_is_sorted(viewer: APIClient, fleet: None, ordering: str, serials: list[str]) -> None:
    assert listed(viewer, f"?ordering={ordering}") == serials


@pytest.mark.parametrize("name", search.SORTS)
def test_a_minus_gives_the_reverse(viewer: APIClient, fleet: None, name: str) -> None:
    assert listed(viewer, f"?ordering=-{name}") == listed(viewer, f"?ordering={name}")[::-1]


def test_pages_neither_repeat_nor_leave_out(viewer: APIClient, fleet: None) -> None:
    Onu.objects.update(description="the same")

    pages = [listed(viewer, f"?ordering=description&page_size=2&page={page}") for page in (1, 2, 3)]

    assert [len(page) for page in pages] == [2, 2, 1]
    assert len({serial for page in pages for serial in page}) == 5


@pytest.mark.parametrize(
    ("query", "field", "sentence"),
    [
        ("search=ab", "search", "Enter at least 3 characters."),
        ("search=%20%20ab%20", "search", "Enter at least 3 characters."),
        ("serial=a", "serial", "Enter at least 3 characters."),
        ("state=down", "state", "Choose one of: online, offline, unknown, absent."),
        ("rx_power_min=dark", "rx_power_min", "Enter a power in dBm, such as -27.5."),
        ("rx_power_max=NaN", "rx_power_max", "Enter a power in dBm, such as -27.5."),
        ("rx_power_max=1e9", "rx_power_max", "Enter a power in dBm, such as -27.5."),
    ],
)
def test_what_cannot_be_meant_is_said(viewer: APIClient, query: str, field: str, sentence: str) -> None:
    answer = viewer.get(f"/api/v1/onus/?{query}", headers={"accept-language": "en"})

    assert answer.status_code == 400
    assert [(error["field"], error["detail"]) for error in answer.json()["errors"]] == [(field, sentence)]


@pytest.mark.parametrize("ordering", ["firmware", "olt__community", "--serial", "serial,place"])
def test_other_orders_are_refused(viewer: APIClient, ordering: str) -> None:
    answer = viewer.get(f"/api/v1/onus/?ordering={ordering}")

    assert answer.status_code == 400
    assert "rx_power" in answer.json()["errors"][0]["detail"]


def test_nobody_is_down_behind_a_silent_olt(viewer: APIClient, fleet: None) -> None:
    (row,) = viewer.get("/api/v1/onus/?search=DDDD4").json()["results"]

    assert (row["run_state"], row["last_known_state"]) == ("unknown", "offline")
    assert {olt["name"]: olt["onus_online"] for olt in viewer.get("/api/v1/olts/").json()["results"]} == {
        "North": 2,
        "South": 0,
    }


def test_an_onu_shows_its_customer_and_its_values(viewer: APIClient, fleet: None) -> None:
    onu = Onu.objects.get(serial="BBBB3")

    row = viewer.get(f"/api/v1/onus/{onu.id}/").json()

    assert row["customer"]["label"] == "Ana Ñúñez"
    assert (row["pon_port"], row["last_down_cause"], row["is_flapping"]) == ("0/2/0", "los", False)


@pytest.mark.parametrize("query", ["", "?search=AAA", "?state=unknown&search=DDD", "?ordering=rx_power&olt=North"])
def test_a_page_takes_the_same_queries_however_long_it_is(
    viewer: APIClient,
    fleet: None,
    query: str,
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    north = Onu.objects.get(serial="AAAA1").olt
    for number in range(20):
        make_onu(north, (0, 3, number, 1), serial=f"AAAA{number}DDDD")

    # Session, user, two parts of each of two conditions, count, ids and rows.
    with django_assert_max_num_queries(10):
        assert listed(viewer, query)


@pytest.mark.parametrize("query", ["", "?search=AAAA", "?state=online"])
def test_a_long_list_says_that_it_was_not_counted_to_its_end(
    viewer: APIClient, fleet: None, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MANY", 3)
    monkeypatch.setattr("facho.api.shared.filters.MANY", 3)
    north = Onu.objects.get(serial="AAAA1").olt
    for number in range(4):
        make_onu(north, (0, 3, number, 1), serial=f"AAAA0{number}", run_state="online")

    body = viewer.get(f"/api/v1/onus/{query}").json()

    assert (body["count"], body["count_is_exact"]) == (3, False)
    assert viewer.get("/api/v1/onus/?page_size=3&page=2").status_code == 404


def test_a_short_list_was_counted(viewer: APIClient, fleet: None) -> None:
    body = viewer.get("/api/v1/onus/?page_size=2").json()

    assert (body["count"], body["count_is_exact"]) == (5, True)
