"""PON ports over the API: counts by state in the list, and the light of one port."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rest_framework.test import APIClient

from api.rows import NOW, make_olt, make_onu
from facho.hosts.models import Reachability


def test_a_port_counts_its_onus_by_what_may_be_said_of_them(viewer: APIClient) -> None:
    olt = make_olt(reachability=Reachability.UP)
    for number, state in enumerate(["online", "online", "offline", "unknown"]):
        make_onu(olt, (0, 1, 0, number), run_state=state)
    make_onu(olt, (0, 1, 0, 9), run_state="online", is_present=False, absent_since=NOW)

    (row,) = viewer.get("/api/v1/pon-ports/").json()["results"]

    counts = {name: row[f"onus_{name}"] for name in ("total", "online", "offline", "unknown", "absent")}
    assert counts == {"total": 4, "online": 2, "offline": 1, "unknown": 1, "absent": 1}


def test_a_port_of_a_silent_olt_counts_nobody_as_down(viewer: APIClient) -> None:
    make_onu(make_olt(reachability=Reachability.DOWN), run_state="offline")

    (row,) = viewer.get("/api/v1/pon-ports/").json()["results"]

    assert (row["onus_offline"], row["onus_unknown"]) == (0, 1)


def test_one_query_counts_all_ports_of_a_page(
    viewer: APIClient, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for port in range(10):
        make_onu(make_olt(), (0, 1, port, 0))

    with django_assert_max_num_queries(6):
        assert len(viewer.get("/api/v1/pon-ports/").json()["results"]) == 10


def test_a_port_tells_how_its_light_is_spread_and_who_gets_the_least(viewer: APIClient) -> None:
    olt = make_olt()
    for number, power in enumerate([-2010, -1999, -2250, None]):
        make_onu(olt, (0, 1, 0, number), serial=f"LIT{number}", run_state="online", rx_power_cdbm=power)
    # What was read of it before it fell is no light of now.
    make_onu(olt, (0, 1, 0, 8), run_state="offline", rx_power_cdbm=-3900)
    onu = make_onu(olt, (0, 1, 1, 0), run_state="online", rx_power_cdbm=-900)

    row = viewer.get(f"/api/v1/pon-ports/{onu.pon_port_id - 1}/").json()

    assert [(band["from_dbm"], band["to_dbm"], band["onus"]) for band in row["rx_power"]["bands"]] == [
        (-23, -22, 1),
        (-22, -21, 0),
        (-21, -20, 1),
        (-20, -19, 1),
    ]
    light = row["rx_power"]
    assert (light["lowest_dbm"], light["average_dbm"], light["highest_dbm"]) == (-22.5, -20.86, -19.99)
    assert [worst["serial"] for worst in row["worst_onus"]] == ["LIT2", "LIT0", "LIT1"]


def test_a_dark_port_has_no_light(viewer: APIClient) -> None:
    onu = make_onu(make_olt(), run_state="offline")

    row = viewer.get(f"/api/v1/pon-ports/{onu.pon_port_id}/").json()

    assert row["rx_power"] == {"lowest_dbm": None, "average_dbm": None, "highest_dbm": None, "bands": []}
    assert row["worst_onus"] == []
