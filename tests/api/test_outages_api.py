"""Outages over the API."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from api.rows import NOW, make_olt, make_onu
from facho.hosts.models import Olt
from facho.onus.models import Onu, Outage

OUTAGES = "/api/v1/outages/"
MINUTE = timedelta(minutes=1)


def make_outage(olt: Olt | None, scope: str = "pon", **fields: Any) -> Outage:
    started_at = fields.pop("started_at", NOW)
    values = {"cause": "fibre", "started_at": started_at, "resumed_at": started_at, "affected": 3, "down": 2, **fields}
    return Outage.objects.create(olt=olt, scope=scope, **values)


def get(client: APIClient, address: str) -> dict[str, Any]:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def ids(client: APIClient, query: str = "") -> list[int]:
    return [row["id"] for row in get(client, OUTAGES + query)["results"]]


def names(client: APIClient, outage: Outage) -> list[str]:
    return [row["onu"] for row in get(client, f"{OUTAGES}{outage.id}/onus/")["results"]]


def test_an_outage_says_what_where_why_and_for_how_long(viewer: APIClient) -> None:
    olt = make_olt("North")
    card = make_outage(olt, "card", slot=1, cause="card", ended_at=NOW + 7 * MINUTE)
    port = make_outage(olt, slot=1, port=4, ended_at=NOW + 90 * MINUTE, part_of=card)

    row = get(viewer, f"{OUTAGES}{port.id}/")

    assert (row["scope"], row["olt"], row["place"]) == ("pon", "North", "0/1/4")
    assert (row["cause"], row["probable_cause"]) == ("fibre", "fibre cut")
    assert (row["affected"], row["down"], row["duration_seconds"], row["is_open"]) == (3, 2, 5_400, False)
    assert row["part_of_id"] == card.id
    assert get(viewer, f"{OUTAGES}{card.id}/")["parts"] == 1


def test_one_that_goes_on_is_measured_up_to_now(viewer: APIClient) -> None:
    make_outage(None, "network", cause="network", started_at=timezone.now() - 10 * MINUTE, affected_olts=2)

    (row,) = get(viewer, OUTAGES)["results"]

    assert (row["is_open"], row["olt"], row["place"], row["affected_olts"]) == (True, None, "", 2)
    assert 600 <= row["duration_seconds"] < 660


def test_outages_are_found_by_what_they_are(viewer: APIClient) -> None:
    north, south = make_olt("North"), make_olt("South")
    silent = make_outage(south, "olt", cause="olt", started_at=NOW + MINUTE)
    cut = make_outage(north, port=1, ended_at=NOW + 5 * MINUTE, part_of=silent)

    assert ids(viewer) == [silent.id, cut.id]
    assert ids(viewer, "?open=true") == ids(viewer, "?scope=olt") == ids(viewer, "?olt=South") == [silent.id]
    assert ids(viewer, "?open=false") == ids(viewer, "?cause=fibre") == ids(viewer, f"?part_of={silent.id}") == [cut.id]


def test_a_time_finds_what_was_going_on(viewer: APIClient) -> None:
    olt = make_olt()
    over = make_outage(olt, port=1, ended_at=NOW + 5 * MINUTE)
    going_on = make_outage(olt, port=2, started_at=NOW + 10 * MINUTE)

    assert ids(viewer, "?from=2030-05-06T12:05:00Z") == [going_on.id]
    assert ids(viewer, "?from=2030-05-06T12:04:59Z") == [going_on.id, over.id]
    assert ids(viewer, "?to=2030-05-06T12:10:00Z") == [over.id]


def test_an_outage_of_a_port_lists_whom_it_took_down(viewer: APIClient) -> None:
    olt = make_olt(reachability="up")
    outage = make_outage(olt)
    make_onu(olt, (0, 1, 0, 2), serial="B", outage=outage, run_state="offline", last_down_cause="los")
    make_onu(olt, (0, 1, 0, 1), serial="A", outage=outage, run_state="online")
    make_onu(olt, (0, 1, 0, 3), serial="C", run_state="offline")

    rows = get(viewer, f"{OUTAGES}{outage.id}/onus/")["results"]

    assert [(row["onu"], row["onu_number"], row["state"], row["last_down_cause"]) for row in rows] == [
        ("A", 1, "online", ""),
        ("B", 2, "offline", "los"),
    ]


def test_behind_a_silent_olt_are_all_who_were_there_and_nobody_is_called_down(viewer: APIClient) -> None:
    olt = make_olt(reachability="down")
    network = make_outage(None, "network", cause="network")
    silent = make_outage(olt, "olt", cause="olt", part_of=network)
    before, after = {"first_seen_at": NOW - MINUTE}, {"first_seen_at": NOW + MINUTE}
    make_onu(olt, (0, 1, 0, 1), serial="A", run_state="offline", **before)
    make_onu(olt, (0, 1, 0, 2), serial="left before", is_present=False, absent_since=NOW - MINUTE, **before)
    make_onu(olt, (0, 1, 0, 3), serial="left after", is_present=False, absent_since=NOW + MINUTE, **before)
    make_onu(olt, (0, 1, 0, 4), serial="came after", **after)
    make_onu(make_olt(), serial="elsewhere", **before)

    rows = get(viewer, f"{OUTAGES}{silent.id}/onus/")["results"]

    assert [(row["onu"], row["state"]) for row in rows] == [("A", "unknown"), ("left after", "absent")]
    assert names(viewer, network) == ["A", "left after"]


@pytest.mark.parametrize(
    ("query", "field"), [("open=yes", "open"), ("scope=city", "scope"), ("cause=magic", "cause"), ("from=now", "from")]
)
def test_what_cannot_be_meant_is_refused(viewer: APIClient, query: str, field: str) -> None:
    answer = viewer.get(f"{OUTAGES}?{query}")

    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]


@pytest.mark.parametrize("path", ["outages/", "outages/{outage_id}/onus/"])
def test_outages_are_for_who_may_read_and_cost_so_many_queries(
    anonymous: APIClient,
    viewer: APIClient,
    path: str,
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    outage = make_outage(None, "network", cause="network")
    for number in range(3):
        olt = make_olt()
        make_outage(olt, "olt", cause="olt", part_of=outage)
        make_onu(olt, (0, 1, 0, number), serial="", first_seen_at=NOW - MINUTE)
    Onu.objects.first().reading.delete()  # type: ignore[union-attr]
    document = viewer.get("/api/v1/schema/?format=json").json()
    address = "/api/v1/" + path.format(outage_id=outage.id)

    assert anonymous.get(address).status_code == 401
    with django_assert_max_num_queries(6):
        body = get(viewer, address)

    assert body["count"] >= 3
    assert "canary" not in json.dumps(body)
    success = document["paths"][f"/api/v1/{path}"]["get"]["responses"]["200"]["content"]["application/json"]
    Draft202012Validator({**success["schema"], "components": document["components"]}).validate(body)


def test_an_outage_that_does_not_exist_is_not_found(viewer: APIClient) -> None:
    assert viewer.get(f"{OUTAGES}999999/").status_code == 404
    assert viewer.get(f"{OUTAGES}999999/onus/").status_code == 404
