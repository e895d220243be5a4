"""What an OLT and an ONU reported, and who waits, over the API."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from api.rows import make_node, make_olt, make_olt_value, make_onu, make_waiting_onu
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import SnmpJobOid
from raw_rows import make_raw_value

STATE = format_oid(load_definitions()["huawei_smartax"].column("onu.run_state").oid)


def results(client: APIClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.content
    rows: list[dict[str, Any]] = answer.json()["results"]
    return rows


def test_an_olt_tells_its_values_under_names_and_with_units(viewer: APIClient) -> None:
    olt = make_olt()
    make_olt_value(olt, "board.cpu")
    make_olt_value(olt, "Uptime", unit="cs", place="", index="")
    make_olt_value(make_olt(), "board.cpu")

    rows = results(viewer, f"olts/{olt.id}/data/")

    reported = [(row["name"], row["title"], row["place"], row["value"], row["unit"]) for row in rows]
    assert reported == [
        ("Uptime", "Uptime", "", "23", "cs"),
        ("board.cpu", "Processor load", "0/1", "23", "percent"),
    ]
    assert [row["name"] for row in results(viewer, f"olts/{olt.id}/data/?name=cpu")] == ["board.cpu"]


def test_the_values_of_an_onu_have_the_names_under_which_they_were_asked_for(viewer: APIClient) -> None:
    olt = make_olt(vendor="huawei_smartax")
    onu = make_onu(olt)
    job = make_node(olt).job
    SnmpJobOid.objects.create(job=job, oid=".1.3.6.1.4.1.9.1", name="Errors", unit="frames")
    for oid, value in ((STATE, "1"), ("1.3.6.1.4.1.9.1.7", "12"), ("1.3.6.1.4.1.8", "?")):
        make_raw_value(onu, oid, value)

    rows = results(viewer, f"onus/{onu.id}/data/")

    assert {row["name"]: (row["value"], row["unit"]) for row in rows} == {
        "onu.run_state": ("1", ""),
        "Errors": ("12", "frames"),
        "": ("?", ""),
    }


def test_who_waits_is_listed_the_latest_first_and_by_port(viewer: APIClient) -> None:
    north, south = make_olt("North"), make_olt("South")
    make_waiting_onu(north, serial="HWTC00000001")
    make_waiting_onu(south, serial="ZTEG00000002", port=9)

    rows = results(viewer, "waiting-onus/")

    assert [(row["serial"], row["olt"], row["pon_port"]) for row in rows] == [
        ("ZTEG00000002", "South", "0/1/9"),
        ("HWTC00000001", "North", "0/1/3"),
    ]
    assert [row["serial"] for row in results(viewer, "waiting-onus/?port=9&olt=South")] == ["ZTEG00000002"]
    assert [row["serial"] for row in results(viewer, "waiting-onus/?search=hwtc")] == ["HWTC00000001"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["olts/{}/data/", "onus/{}/data/"])
def test_values_are_read_by_who_may_read_and_in_so_many_queries(
    anonymous: APIClient,
    viewer: APIClient,
    path: str,
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    olt = make_olt()
    onu = make_onu(olt)
    for number in range(5):
        make_olt_value(olt)
        make_raw_value(onu, f"1.3.{number}", "canary")
    address = path.format(olt.id if path.startswith("olts") else onu.id)
    document = viewer.get("/api/v1/schema/?format=json").json()

    assert anonymous.get(f"/api/v1/{address}").status_code == 401
    assert viewer.get(f"/api/v1/{path.format(999_999)}").status_code == 404
    with django_assert_max_num_queries(7):
        body = viewer.get(f"/api/v1/{address}").json()

    assert body["count"] == 5
    assert "canary-7f3a" not in json.dumps(body)
    name = "{olt_id}" if path.startswith("olts") else "{onu_id}"
    success = document["paths"][f"/api/v1/{path.format(name)}"]["get"]["responses"]["200"]["content"]
    schema = {**success["application/json"]["schema"], "components": document["components"]}
    Draft202012Validator(schema).validate(body)
