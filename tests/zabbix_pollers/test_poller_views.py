"""The four poller endpoints: their exact shapes, who may use them, and what they are computed from."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from api.rows import (
    make_execution,
    make_leader,
    make_node,
    make_olt,
    make_pollers,
    make_user,
)
from facho.accounts.roles import Role
from facho.api.tokens import create_token
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers import run_now
from facho.zabbix_pollers.models import Poller, PollerStats

pytestmark = pytest.mark.django_db

READS = ["/api/v1/pollers/", "/api/v1/pollers/queue/", "/api/v1/pollers/stats/"]
NO_SUCH_RUN = "/api/v1/pollers/nodes/987654321/run/"


def client_of(role: Role) -> APIClient:
    client = APIClient()
    client.force_login(make_user(role))
    return client


@pytest.fixture
def viewer() -> APIClient:
    return client_of(Role.VIEWER)


@pytest.fixture
def operator() -> APIClient:
    return client_of(Role.OPERATOR)


@pytest.mark.parametrize("path", READS)
def test_nobody_reads_without_logging_in(path: str) -> None:
    """S0-36"""
    answer = APIClient().get(path)

    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"


def test_nobody_runs_a_node_without_logging_in() -> None:
    """S0-36"""
    assert APIClient().post(NO_SUCH_RUN).status_code == 401


def test_a_viewer_runs_nothing(viewer: APIClient) -> None:
    """S0-36"""
    node = make_node()

    answer = viewer.post(f"/api/v1/pollers/nodes/{node.id}/run/")

    assert answer.status_code == 403
    assert not WorkflowNode.objects.filter(run_requested_at__isnull=False).exists()


def test_pollers_have_the_specified_members(viewer: APIClient) -> None:
    """S0-05 S0-16 S0-32"""
    make_pollers(2)

    body = viewer.get("/api/v1/pollers/").json()

    assert set(body) == {"pollers", "global_stats"}
    assert [poller["poller_id"] for poller in body["pollers"]] == [0, 1]
    assert body["pollers"][0] | {"status": "FREE", "busy_percentage": 0.0, "tasks_completed": 0} == body["pollers"][0]
    assert body["pollers"][0] | {"tasks_delayed": 0, "current_node_id": None} == body["pollers"][0]
    assert body["pollers"][0]["current_node_name"] is None


def test_statistics_have_the_specified_members(viewer: APIClient) -> None:
    """S0-21 S0-34"""
    make_pollers(3)
    Poller.objects.filter(poller_id=1).update(tasks_completed=5, tasks_delayed=2)
    Poller.objects.filter(poller_id=2).update(tasks_completed=4)
    make_execution(make_node(), poller_id=0, at=timezone.now())
    make_node(next_run_at=timezone.now())

    body = viewer.get("/api/v1/pollers/stats/").json()

    expected = {"total_pollers": 3, "free_pollers": 2, "busy_pollers": 1, "queue_size": 1}
    expected |= {"is_saturated": False, "total_tasks_completed": 9, "total_tasks_delayed": 2}
    assert body | expected == body
    assert 0 <= body["busy_percentage"] < 50
    again = viewer.get("/api/v1/pollers/").json()["global_stats"]
    assert (set(again), again | expected) == (set(body), again)


@pytest.mark.parametrize("status", [ExecutionState.PENDING, ExecutionState.RUNNING])
def test_a_poller_is_busy_by_its_active_execution_whatever_its_row_says(
    viewer: APIClient, status: ExecutionState
) -> None:
    """S2-04 S2-10"""
    make_pollers(2)
    node = make_node(make_olt("North"), name="Discovery")
    execution = make_execution(node, status, poller_id=1, at=timezone.now() - timedelta(seconds=5))

    free, busy = viewer.get("/api/v1/pollers/").json()["pollers"]

    assert free["status"] == "FREE"
    assert busy["status"] == "BUSY"
    assert (busy["olt"], busy["current_node_id"], busy["current_node_name"]) == ("North", node.id, "Discovery")
    assert busy["current_execution_id"] == execution.id
    assert 5 <= busy["elapsed_seconds"] < 60


def test_a_poller_is_busy_while_its_chain_runs_and_names_all_its_executions(viewer: APIClient) -> None:
    """S2-15"""
    make_pollers(1)
    master = make_node(make_olt("North"), name="Discovery")
    first, second = make_node(master=master, name="State"), make_node(master=master, name="Power")
    ran = make_execution(master, ExecutionState.SUCCESS, poller_id=0)
    runs = make_execution(first, poller_id=0, master_execution=ran, chain_position=1)

    (poller,) = viewer.get("/api/v1/pollers/").json()["pollers"]

    assert poller["status"] == "BUSY"
    assert poller["current_node_id"] == first.id
    assert poller["master_execution_id"] == ran.id
    assert poller["execution_ids"] == [ran.id, runs.id]
    reported = viewer.get(f"/api/v1/executions/{runs.id}/").json()
    assert poller["chain_position"] == reported["chain_position"] == 1
    assert [(step["name"], step["status"]) for step in poller["steps"]] == [
        ("Discovery", "SUCCESS"),
        ("State", "RUNNING"),
        ("Power", None),
    ]
    assert poller["steps"][2]["node_id"] == second.id


def test_busy_share_counts_the_last_sixty_seconds_only(viewer: APIClient) -> None:
    """S0-16"""
    make_pollers(1)
    now = timezone.now()
    long_ago = {"at": now - timedelta(seconds=600), "finished_at": now - timedelta(seconds=120)}
    make_execution(make_node(), ExecutionState.SUCCESS, poller_id=0, **long_ago)
    half = {"at": now - timedelta(seconds=90), "finished_at": now - timedelta(seconds=30)}
    make_execution(make_node(), ExecutionState.SUCCESS, poller_id=0, **half)

    (poller,) = viewer.get("/api/v1/pollers/").json()["pollers"]

    assert poller["busy_percentage"] == pytest.approx(50, abs=5)


def test_pollers_busy_for_over_three_quarters_of_a_minute_are_saturated(viewer: APIClient) -> None:
    """S0-14"""
    make_pollers(1)
    make_execution(make_node(), poller_id=0, at=timezone.now() - timedelta(seconds=50))

    body = viewer.get("/api/v1/pollers/stats/").json()

    assert body["is_saturated"] is True
    assert body["busy_percentage"] > 75


def test_queue_is_what_is_due_and_not_active(viewer: APIClient) -> None:
    """S0-33"""
    now = timezone.now()
    waiting = make_node(make_olt("North"), name="State", next_run_at=now - timedelta(seconds=20), priority=70)
    make_node(master=waiting)
    make_node(next_run_at=now + timedelta(hours=1))
    make_node(next_run_at=now, enabled=False)
    make_node(next_run_at=now, suspended_at=now, suspend_reason="timeout")
    make_node(make_olt(enabled=False), next_run_at=now)
    make_execution(make_node(next_run_at=now))

    body = viewer.get("/api/v1/pollers/queue/").json()

    assert (body["size"], body["is_overload"]) == (1, False)
    (node,) = body["next_nodes"]
    assert (node["id"], node["name"], node["olt"], node["priority"]) == (waiting.id, "State", "North", 70)
    assert (node["delayed"], node["chain_nodes_count"]) == (False, 1)
    assert node["delay_time"] == pytest.approx(20, abs=10)


def test_queue_begins_with_what_was_asked_for_then_with_what_is_delayed(viewer: APIClient) -> None:
    """S0-22"""
    now = timezone.now()
    late = make_node(next_run_at=now - timedelta(seconds=30))
    delayed = make_node(next_run_at=now - timedelta(seconds=20), interval_seconds=10)
    important = make_node(next_run_at=late.next_run_at, priority=90)
    asked = make_node(run_requested_at=now)

    body = viewer.get("/api/v1/pollers/queue/").json()

    assert [node["id"] for node in body["next_nodes"]] == [asked.id, delayed.id, important.id, late.id]
    assert body["is_overload"] is True


def test_queue_shows_ten_nodes_and_counts_all(viewer: APIClient) -> None:
    """S0-33"""
    for _ in range(12):
        make_node(next_run_at=timezone.now())

    body = viewer.get("/api/v1/pollers/queue/").json()

    assert (body["size"], len(body["next_nodes"])) == (12, 10)


def test_queue_says_why_a_node_waits(viewer: APIClient) -> None:
    make_pollers(1)
    olt = make_olt()
    make_execution(make_node(olt), poller_id=0)
    same_olt = make_node(olt, next_run_at=timezone.now() - timedelta(seconds=9))
    other_olt = make_node(next_run_at=timezone.now() - timedelta(seconds=5))

    body = viewer.get("/api/v1/pollers/queue/").json()

    reasons = {node["id"]: node["reason"] for node in body["next_nodes"]}
    assert reasons == {same_olt.id: "olt_busy", other_olt.id: "no_poller"}


def test_queue_gives_the_reason_that_the_scheduler_has(viewer: APIClient) -> None:
    """The second node of a free OLT waits for the first; those of a silent one for the node that tries."""
    make_pollers(5)
    now = timezone.now()
    olt, silent = make_olt(), make_olt(reachability="down")
    first, second = make_node(olt, next_run_at=now - timedelta(seconds=9)), make_node(olt, next_run_at=now)
    make_node(silent, next_run_at=now + timedelta(minutes=2), consecutive_failures=1)
    spared = make_node(silent, next_run_at=now)

    body = viewer.get("/api/v1/pollers/queue/").json()

    reasons = {node["id"]: node["reason"] for node in body["next_nodes"]}
    assert reasons == {first.id: None, second.id: "olt_busy", spared.id: "olt_unreachable"}


def test_queue_shows_runs_that_go_on_and_retries_to_come(viewer: APIClient) -> None:
    now = timezone.now()
    ready, later = make_node(name="Ready"), make_node(make_olt("North"), name="Later")
    going_on = make_execution(ready, ExecutionState.WAITING, resume_at=now - timedelta(seconds=5))
    retry = make_execution(later, ExecutionState.WAITING, resume_at=now + timedelta(seconds=60), failure_kind="timeout")

    body = viewer.get("/api/v1/pollers/queue/").json()

    assert [(node["id"], node["execution_id"]) for node in body["next_nodes"]] == [(ready.id, going_on.id)]
    (row,) = body["retries"]
    assert (row["execution_id"], row["node_id"], row["name"], row["olt"]) == (retry.id, later.id, "Later", "North")
    assert body["size"] == 1


@pytest.mark.parametrize("path", READS[1:])
def test_lateness_counts_the_nodes_that_are_at_least_so_late(viewer: APIClient, path: str) -> None:
    for seconds in (1, 7, 40, 400, 4_000):
        make_node(next_run_at=timezone.now() - timedelta(seconds=seconds))

    body = viewer.get(path).json()

    assert body["lateness"] == {"5": 4, "10": 3, "30": 3, "60": 2, "300": 2, "600": 1}


@pytest.mark.parametrize("was_saturated", [True, False])
def test_saturation_between_its_bounds_stays_what_it_was(viewer: APIClient, was_saturated: bool) -> None:
    """S0-14: above 75 % it begins, below 65 % it ends."""
    make_pollers(1)
    PollerStats.objects.create(is_saturated=was_saturated)
    make_execution(make_node(), poller_id=0, at=timezone.now() - timedelta(seconds=42))

    body = viewer.get("/api/v1/pollers/stats/").json()

    assert 65 < body["busy_percentage"] < 75
    assert body["is_saturated"] is was_saturated


def test_a_run_that_starts_at_once_is_answered_with_its_execution(
    operator: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-35"""
    make_leader()
    make_pollers(1)
    node = make_node()
    started: list[int] = []

    def grant(seconds: float) -> None:
        """What the scheduler does between two looks: claim, and take the wish back."""
        WorkflowNode.objects.update(run_requested_at=None)
        started.append(make_execution(node, poller_id=0).id)

    monkeypatch.setattr(run_now, "sleep", grant)

    body = operator.post(f"/api/v1/pollers/nodes/{node.id}/run/", headers={"accept-language": "en"}).json()

    assert (body["status"], body["execution_id"], body["message"]) == ("started", started[0], "Started.")


@pytest.mark.parametrize("is_olt_busy", [True, False])
def test_a_run_that_has_to_wait_for_its_olt_or_for_a_poller_is_answered_at_once(
    operator: APIClient, monkeypatch: pytest.MonkeyPatch, is_olt_busy: bool
) -> None:
    """S0-29, S0-35: there is nothing to look for until the OLT or a poller is free."""
    make_leader()
    make_pollers(2 if is_olt_busy else 1)
    node = make_node()
    make_execution(make_node(node.workflow.olt if is_olt_busy else None), poller_id=0)

    def look_again(seconds: float) -> None:
        raise AssertionError("nobody is kept waiting")

    monkeypatch.setattr(run_now, "sleep", look_again)

    body = operator.post(f"/api/v1/pollers/nodes/{node.id}/run/", headers={"accept-language": "en"}).json()

    assert (body["status"], body["execution_id"]) == ("queued", None)
    assert body["message"] == "Queued: it starts as soon as its OLT and a poller are free."


def test_running_a_node_leaves_a_wish_that_survives_a_restart(
    operator: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-35"""
    monkeypatch.setattr(run_now, "LOOKS", 1)
    make_leader()
    master = make_node(make_olt("North"), name="Discovery")
    make_node(master=master)
    make_node(master=master, enabled=False)

    answer = operator.post(f"/api/v1/pollers/nodes/{master.id}/run/")

    assert answer.status_code == 202
    body = answer.json()
    assert set(body) == {"status", "node_id", "node_name", "olt", "chain_nodes_count", "message", "execution_id"}
    assert (body["status"], body["execution_id"], body["chain_nodes_count"]) == ("queued", None, 1)
    assert (body["node_id"], body["node_name"], body["olt"]) == (master.id, "Discovery", "North")
    master.refresh_from_db()
    assert master.run_requested_at is not None


def test_running_a_chain_node_names_its_master(operator: APIClient) -> None:
    """S0-35"""
    master = make_node()
    member = make_node(master=master)

    answer = operator.post(f"/api/v1/pollers/nodes/{member.id}/run/", headers={"accept-language": "en"})

    assert answer.status_code == 400
    assert answer.json()["detail"] == f"This node runs in a chain: run its master, node {master.id}."


def test_running_an_unknown_node_is_not_found(operator: APIClient) -> None:
    """S0-35"""
    answer = operator.post(NO_SUCH_RUN)

    assert answer.status_code == 404
    assert answer.json()["status"] == 404


@pytest.mark.parametrize(
    ("fields", "olt_fields", "words"),
    [
        ({"enabled": False}, {}, "when the node is enabled"),
        ({}, {"enabled": False}, "when its OLT is enabled"),
        ({"suspended_at": timezone.now(), "suspend_reason": "timeout"}, {}, "no longer suspended"),
        ({}, {}, "polling is stopped"),
    ],
)
def test_a_run_that_must_wait_says_for_what(
    operator: APIClient, fields: dict[str, Any], olt_fields: dict[str, Any], words: str
) -> None:
    node = make_node(make_olt(**olt_fields), **fields)

    answer = operator.post(f"/api/v1/pollers/nodes/{node.id}/run/", headers={"accept-language": "en"})

    assert words in answer.json()["message"]


def test_a_run_on_a_paused_olt_waits_for_the_end_of_the_pause(operator: APIClient) -> None:
    make_leader()
    node = make_node()
    pause(node.workflow.olt, minutes=5, note="", now=timezone.now())

    answer = operator.post(f"/api/v1/pollers/nodes/{node.id}/run/", headers={"accept-language": "en"})

    assert answer.json()["message"] == "Queued: it runs when the pause is over."


def test_a_token_of_an_operator_runs_a_node() -> None:
    """S0-36"""
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {create_token(make_user(Role.OPERATOR))}")

    assert client.post(f"/api/v1/pollers/nodes/{make_node().id}/run/").status_code == 202


@pytest.mark.parametrize("path", READS)
def test_the_number_of_queries_does_not_grow(
    path: str, viewer: APIClient, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    make_pollers(8)
    for poller_id in range(6):
        master = make_node(next_run_at=timezone.now() - timedelta(seconds=3))
        member = make_node(master=master)
        ran = make_execution(master, ExecutionState.SUCCESS, poller_id=poller_id)
        make_execution(member, poller_id=poller_id, master_execution=ran, chain_position=1)

    with django_assert_max_num_queries({READS[0]: 14, READS[1]: 10, READS[2]: 14}[path]):
        assert viewer.get(path).status_code == 200
