"""What operators do through the API: explain and resume nodes, cancel executions, pause OLTs."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from api.rows import make_execution, make_node, make_olt, make_pollers
from facho.hosts.models import Pause
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import SnmpJobOid, WorkflowNode

pytestmark = pytest.mark.django_db

ENGLISH = {"accept-language": "en"}


def suspended_node(**fields: Any) -> WorkflowNode:
    past = timezone.now() - timedelta(minutes=9)
    return make_node(suspended_at=past, suspend_reason="timeout", next_run_at=past, **fields)


def test_a_node_is_explained_in_values_and_in_words(viewer: APIClient) -> None:
    make_pollers(1)
    olt = make_olt("North")
    held = make_execution(make_node(olt, name="Light"), poller_id=0)
    node = make_node(olt, name="State", next_run_at=timezone.now())

    body = viewer.get(f"/api/v1/nodes/{node.id}/explain/", headers=ENGLISH).json()

    assert (body["node_id"], body["name"], body["olt"], body["situation"]) == (node.id, "State", "North", "queued")
    assert body["place"] == {"number": 1, "size": 1, "on_olt": 1, "reason": "olt_busy"}
    assert (body["holder"]["execution_id"], body["holder"]["name"]) == (held.id, "Light")
    assert "owner" not in body["holder"]
    assert "Light has held it since" in body["message"]
    assert body["master"] is None


def test_a_chain_member_is_explained_with_its_master(viewer: APIClient) -> None:
    master = make_node(enabled=False)
    member = make_node(master=master)

    body = viewer.get(f"/api/v1/nodes/{member.id}/explain/").json()

    assert (body["situation"], body["master"]["situation"]) == ("chained", "disabled")


@pytest.mark.parametrize("path", ["nodes/987654/explain/", "nodes/x/explain/", "nodes/99999999999999999999/explain/"])
def test_an_unknown_node_cannot_be_explained(viewer: APIClient, path: str) -> None:
    assert viewer.get(f"/api/v1/{path}").status_code == 404


def test_a_suspended_node_is_resumed_by_hand(operator: APIClient) -> None:
    """D8."""
    node = suspended_node()

    answer = operator.post(f"/api/v1/nodes/{node.id}/resume/")

    assert answer.status_code == 200
    body = answer.json()
    assert (body["suspended_at"], body["suspend_reason"]) == (None, "")
    node.refresh_from_db()
    assert node.next_run_at is not None
    assert node.next_run_at > timezone.now()


def test_a_node_that_is_not_suspended_cannot_be_resumed(operator: APIClient) -> None:
    answer = operator.post(f"/api/v1/nodes/{make_node().id}/resume/", headers=ENGLISH)

    assert answer.status_code == 409
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:facho:problem:conflict"
    assert answer.json()["detail"] == "This node is not suspended."


def test_a_running_execution_is_asked_to_end(operator: APIClient) -> None:
    execution = make_execution(make_node())

    answer = operator.post(f"/api/v1/executions/{execution.id}/cancel/")

    assert (answer.status_code, answer.json()["status"]) == (202, "RUNNING")
    assert answer.json()["cancel_requested_at"] is not None


def test_a_waiting_execution_ends_at_once(operator: APIClient) -> None:
    execution = make_execution(make_node(), ExecutionState.WAITING, resume_at=timezone.now())

    answer = operator.post(f"/api/v1/executions/{execution.id}/cancel/")

    assert (answer.status_code, answer.json()["status"]) == (202, "INTERRUPTED")


def test_an_execution_that_is_over_cannot_be_cancelled(operator: APIClient) -> None:
    execution = make_execution(make_node(), ExecutionState.SUCCESS)

    answer = operator.post(f"/api/v1/executions/{execution.id}/cancel/", headers=ENGLISH)

    assert (answer.status_code, answer.json()["detail"]) == (409, "This execution has ended.")


@pytest.mark.parametrize("path", ["executions/987654/cancel/", "nodes/987654/resume/", "pauses/987654/end/"])
def test_what_does_not_exist_is_not_found(operator: APIClient, path: str) -> None:
    assert operator.post(f"/api/v1/{path}").status_code == 404


@pytest.mark.parametrize("path", ["executions/{}/cancel/", "nodes/{}/resume/", "pauses/{}/end/", "pauses/"])
def test_a_viewer_changes_nothing(viewer: APIClient, path: str) -> None:
    node = suspended_node()
    ids = {"executions": make_execution(node).id, "nodes": node.id}
    held = pause(None, minutes=5, note="", now=timezone.now())

    answer = viewer.post(f"/api/v1/{path.format(ids.get(path.partition('/')[0], held.id))}")

    assert answer.status_code == 403
    assert WorkflowNode.objects.get(id=node.id).suspended_at is not None
    assert node.executions.get().cancel_requested_at is None
    assert Pause.objects.get().ends_at == held.ends_at


def test_nobody_operates_without_logging_in(anonymous: APIClient) -> None:
    assert anonymous.post("/api/v1/pauses/", {"olt_id": None, "minutes": 5}, format="json").status_code == 401


def test_masters_are_listed_with_their_chain_in_order_and_their_poller(viewer: APIClient) -> None:
    """S2-14, S0-19."""
    master = make_node(name="Discovery")
    first, second = make_node(master=master, name="State"), make_node(master=master, name="Power")
    ran = make_execution(master, ExecutionState.SUCCESS, poller_id=3, duration_ms=1_000)
    for position, node in ((2, second), (1, first)):
        links = {"master_execution": ran, "chain_position": position, "poller_id": 3, "duration_ms": 100}
        make_execution(node, ExecutionState.SUCCESS, **links)

    body = viewer.get("/api/v1/executions/?chained=false").json()

    (row,) = body["results"]
    assert (row["id"], row["poller_id"]) == (ran.id, 3)
    assert [(member["node_name"], member["poller_id"]) for member in row["chain_executions"]] == [
        ("State", 3),
        ("Power", 3),
    ]
    assert row["chain"] == [member["id"] for member in row["chain_executions"]]
    assert (row["duration_ms"], row["total_duration_ms"]) == (1_000, 1_200)


def test_a_composite_is_found_by_its_master(viewer: APIClient) -> None:
    master = make_node()
    ran = make_execution(master, ExecutionState.SUCCESS)
    member = make_execution(make_node(master=master), master_execution=ran, chain_position=1)
    make_execution(make_node())

    rows = viewer.get(f"/api/v1/executions/?master={ran.id}").json()["results"]

    assert [row["id"] for row in rows] == [member.id, ran.id]
    assert [row["id"] for row in viewer.get("/api/v1/executions/?chained=true").json()["results"]] == [member.id]


@pytest.mark.parametrize("everything", [True, False])
def test_an_olt_or_everything_is_paused_for_some_minutes(operator: APIClient, everything: bool) -> None:
    olt_id = None if everything else make_olt("North").id

    answer = operator.post("/api/v1/pauses/", {"olt_id": olt_id, "minutes": 30, "note": "works"}, format="json")

    assert answer.status_code == 201
    body = answer.json()
    assert (body["olt_id"], body["olt"], body["note"]) == (olt_id, None if everything else "North", "works")
    stored = Pause.objects.get()
    assert (stored.olt_id, stored.ends_at - stored.starts_at) == (olt_id, timedelta(minutes=30))


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"minutes": 5}, "olt_id"),
        ({"olt_id": 987654, "minutes": 5}, "olt_id"),
        ({"olt_id": None}, "minutes"),
        ({"olt_id": None, "minutes": 0}, "minutes"),
        ({"olt_id": None, "minutes": 10_000_000}, "minutes"),
        ({"olt_id": None, "minutes": 5, "note": "x" * 201}, "note"),
        ({"olt_id": None, "minutes": 5, "note": "\x00"}, "note"),
    ],
)
def test_a_pause_that_cannot_be_meant_is_refused(operator: APIClient, wish: dict[str, Any], field: str) -> None:
    answer = operator.post("/api/v1/pauses/", wish, format="json")

    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert not Pause.objects.exists()


def test_a_pause_is_ended_once(operator: APIClient) -> None:
    held = pause(make_olt(), minutes=30, note="", now=timezone.now() - timedelta(minutes=1))

    ended = operator.post(f"/api/v1/pauses/{held.id}/end/")
    again = operator.post(f"/api/v1/pauses/{held.id}/end/", headers=ENGLISH)

    assert (ended.status_code, again.status_code) == (204, 409)
    assert again.json()["detail"] == "This pause has ended."
    held.refresh_from_db()
    assert held.ends_at <= timezone.now()


def test_a_pause_to_come_is_dropped(operator: APIClient) -> None:
    planned = pause(make_olt(), minutes=30, note="", now=timezone.now() + timedelta(hours=1))

    assert operator.post(f"/api/v1/pauses/{planned.id}/end/").status_code == 204
    assert not Pause.objects.exists()


@pytest.mark.parametrize(("active", "expected"), [("true", ["now"]), ("false", ["later", "over"])])
def test_pauses_are_narrowed_to_those_that_hold(viewer: APIClient, active: str, expected: list[str]) -> None:
    now = timezone.now()
    for note, hours in (("over", -2), ("now", 0), ("later", 2)):
        pause(None, minutes=60, note=note, now=now + timedelta(hours=hours))

    rows = viewer.get(f"/api/v1/pauses/?active={active}").json()["results"]

    assert [row["note"] for row in rows] == expected


def test_a_node_is_disabled_and_slowed_down_from_outside(operator: APIClient) -> None:
    node = make_node()

    answer = operator.patch(f"/api/v1/nodes/{node.id}/", {"enabled": False, "interval_seconds": 900}, format="json")

    assert (answer.status_code, answer.data["enabled"], answer.data["interval_seconds"]) == (200, False, 900)
    node.refresh_from_db()
    assert (node.enabled, node.interval_seconds) == (False, 900)


def test_an_olt_is_disabled_from_outside(operator: APIClient) -> None:
    node = make_node()

    answer = operator.patch(f"/api/v1/olts/{node.workflow.olt_id}/", {"enabled": False}, format="json")

    assert (answer.status_code, answer.data["enabled"]) == (200, False)


@pytest.mark.parametrize(
    "changes", [{"interval_seconds": 0}, {"interval_seconds": 10**12}, {"priority": 101}, {"enabled": "perhaps"}]
)
def test_a_change_that_makes_no_sense_is_refused(operator: APIClient, changes: dict[str, object]) -> None:
    node = make_node()

    answer = operator.patch(f"/api/v1/nodes/{node.id}/", changes, format="json")

    assert (answer.status_code, [error["field"] for error in answer.data["errors"]]) == (400, list(changes))


def test_a_pace_that_would_hurt_the_olt_is_refused(operator: APIClient) -> None:
    node = make_node(make_olt(vendor="huawei_smartax"), interval_seconds=3600)
    SnmpJobOid.objects.create(job=node.job, column_key="onu.rx_power")

    answer = operator.patch(f"/api/v1/nodes/{node.id}/", {"interval_seconds": 5}, format="json")

    [error] = answer.data["errors"]
    assert (answer.status_code, error["field"]) == (400, "interval_seconds")
    assert "onu.rx_power" in error["detail"]


def test_viewers_change_nothing(viewer: APIClient) -> None:
    node = make_node()

    assert viewer.patch(f"/api/v1/nodes/{node.id}/", {"enabled": False}, format="json").status_code == 403
    assert viewer.patch(f"/api/v1/olts/{node.workflow.olt_id}/", {"enabled": False}, format="json").status_code == 403
