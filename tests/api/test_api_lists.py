"""Lists and details of OLTs, nodes, executions, PON ports and ONUs."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from api.rows import make_execution, make_node, make_olt, make_onu, make_waiting_onu
from facho.executions.models import ExecutionAttempt
from facho.hosts.models import Brand, Olt, OltModel
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState
from factories import give_secrets

LISTS = ["olts", "nodes", "executions", "pon-ports", "onus", "waiting-onus", "pauses"]


def results(client: APIClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.content
    rows: list[dict[str, Any]] = answer.json()["results"]
    return rows


def populate() -> None:
    olt = make_olt(model=OltModel.objects.get_or_create(brand=Brand.objects.get_or_create(name="B")[0], name="M")[0])
    make_onu(olt, run_state="online")
    make_waiting_onu(olt)
    master = make_node(olt)
    ran = make_execution(master, ExecutionState.SUCCESS)
    make_execution(make_node(master=master), master_execution=ran, chain_position=1)
    pause(olt, minutes=5, note="", now=timezone.now())


@pytest.mark.parametrize("path", LISTS)
def test_a_list_has_count_next_previous_and_results(viewer: APIClient, path: str) -> None:
    populate()

    body = viewer.get(f"/api/v1/{path}/").json()

    assert [name for name in body if name != "count_is_exact"] == ["count", "next", "previous", "results"]
    assert body["count"] == len(body["results"]) > 0


@pytest.mark.parametrize("path", LISTS)
def test_a_detail_is_a_row_of_its_list(viewer: APIClient, path: str) -> None:
    populate()
    (row, *_) = results(viewer, f"{path}/")

    detail = viewer.get(f"/api/v1/{path}/{row['id']}/").json()

    assert detail | row == detail


@pytest.mark.parametrize("path", LISTS)
def test_a_long_list_has_pages(viewer: APIClient, path: str) -> None:
    populate()
    populate()

    body = viewer.get(f"/api/v1/{path}/?page_size=1").json()

    assert len(body["results"]) == 1
    assert body["next"] == f"http://testserver/api/v1/{path}/?page=2&page_size=1"


@pytest.mark.parametrize("path", ["olts", "onus", "events"])
def test_a_page_has_a_size_that_can_be_meant(viewer: APIClient, path: str) -> None:
    statuses = {
        text: viewer.get(f"/api/v1/{path}/?page_size={text}").status_code for text in ("0", "-1", "ten", "9" * 9)
    }

    assert statuses == {"0": 400, "-1": 400, "ten": 400, "9" * 9: 200}


@pytest.mark.parametrize("path", [*LISTS, "pollers"])
def test_no_secret_is_in_any_answer(viewer: APIClient, path: str) -> None:
    """S3-24"""
    populate()
    give_secrets(v3_auth_key="canary-7f3a", v3_priv_key="canary-7f3a")

    body = json.dumps(viewer.get(f"/api/v1/{path}/").json())

    assert "canary" not in body
    assert "community" not in body
    assert "v3_" not in body


@pytest.mark.parametrize("path", [*LISTS, "pollers"])
def test_secrets_that_cannot_be_decrypted_hide_nothing_else(viewer: APIClient, path: str, settings: Any) -> None:
    populate()
    settings.FACHO_ENCRYPTION_KEYS = ("Jx3QbnrjJgKn4JhcmxgVqrJKAGQIb8XYEq9XpQqz0hE=",)

    assert viewer.get(f"/api/v1/{path}/").status_code == 200


@pytest.mark.parametrize("path", LISTS)
def test_the_number_of_queries_does_not_grow(
    viewer: APIClient, path: str, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for _ in range(5):
        populate()

    with django_assert_max_num_queries(6):
        results(viewer, f"{path}/")


def test_an_olt_tells_its_model_and_counts_the_onus_that_are_present(viewer: APIClient) -> None:
    populate()
    olt = Olt.objects.get()
    make_onu(olt, (0, 1, 0, 5), run_state="offline")
    make_onu(olt, (0, 1, 0, 6), is_present=False, absent_since=timezone.now())

    (row,) = results(viewer, "olts/")

    assert (row["brand"], row["model"]) == ("B", "M")
    assert (row["onus_total"], row["onus_online"]) == (2, 1)


def test_an_execution_tells_poller_master_and_chain(viewer: APIClient) -> None:
    """S2-12 S2-13 S2-16"""
    master = make_node(name="Discovery")
    ran = make_execution(master, ExecutionState.SUCCESS, poller_id=3)
    member = make_execution(make_node(master=master), poller_id=3, master_execution=ran, chain_position=1)

    rows = {row["id"]: row for row in results(viewer, "executions/")}

    assert (rows[ran.id]["poller_id"], rows[ran.id]["chain"]) == (3, [member.id])
    assert (rows[member.id]["master_execution_id"], rows[member.id]["chain_position"]) == (ran.id, 1)


def test_an_execution_shows_its_attempts(viewer: APIClient) -> None:
    execution = make_execution(make_node(), ExecutionState.FAILED, failure_kind="timeout")
    now = timezone.now()
    ExecutionAttempt.objects.create(execution=execution, number=1, status="FAILED", started_at=now, finished_at=now)

    body = viewer.get(f"/api/v1/executions/{execution.id}/").json()

    assert [attempt["number"] for attempt in body["attempts"]] == [1]


def test_an_onu_that_was_never_read_is_unknown(viewer: APIClient) -> None:
    make_onu(make_olt()).reading.delete()

    (row,) = results(viewer, "onus/")

    assert (row["run_state"], row["rx_power_dbm"], row["pon_port"]) == ("unknown", None, "0/1/0")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("olts/?state=down", ["South"]),
        ("olts/?enabled=false", ["South"]),
        ("olts/?search=nor", ["North"]),
        ("olts/?search=NÓR", ["North"]),
        ("onus/?olt=South", ["South"]),
        ("onus/?state=online", ["North"]),
        ("onus/?search=baker", ["South"]),
        ("onus/?state=unknown", ["South"]),
        ("onus/?present=true&serial=aaaa", ["North"]),
        ("pon-ports/?olt=South&slot=2", ["South"]),
        ("nodes/?olt=North&chained=false", ["North"]),
        ("nodes/?query_type=discovery", ["North"]),
        ("executions/?status=RUNNING", ["North"]),
        ("executions/?olt=South", []),
    ],
)
def test_lists_are_narrowed_by_query_string(viewer: APIClient, query: str, expected: list[str]) -> None:
    north = make_olt("North", reachability="up")
    south = make_olt("South", reachability="down", enabled=False)
    make_onu(north, serial="AAAA0001", run_state="online")
    make_onu(south, (0, 2, 0, 1), description="Baker", run_state="offline")
    make_execution(make_node(north, query_type="discovery"))

    assert [row.get("olt", row.get("name")) for row in results(viewer, query)] == expected


def test_an_olt_is_named_by_id_as_well_as_by_name(viewer: APIClient) -> None:
    make_onu(make_olt())
    wanted = make_olt()
    make_onu(wanted)

    assert [row["olt_id"] for row in results(viewer, f"onus/?olt={wanted.id}")] == [wanted.id]


@pytest.mark.parametrize(
    "query",
    ["onus/?state=x", "onus/?pon_port=-1", "olts/?enabled=maybe", "executions/?status=DONE", "onus/?search=%00"],
)
def test_a_value_that_cannot_be_meant_is_an_error(viewer: APIClient, query: str) -> None:
    assert viewer.get(f"/api/v1/{query}").status_code == 400


@pytest.mark.parametrize(
    "path", ["olts/99999999999999999999/", "onus/x/", "onus/?page=99", "onus/?olt=99999999999999999999"]
)
def test_odd_ids_are_no_fault_of_ours(viewer: APIClient, path: str) -> None:
    assert viewer.get(f"/api/v1/{path}").status_code in (200, 404)
