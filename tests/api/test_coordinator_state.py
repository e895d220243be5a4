"""What the coordinator sees of each OLT, over the API."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from rest_framework.test import APIClient

from api.rows import make_execution, make_node, make_olt, make_pollers
from facho.execution_coordinator.models import OltState
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ExecutionState

PATH = "/api/v1/coordinator/state/"


def states(client: APIClient) -> dict[str, dict[str, Any]]:
    answer = client.get(PATH)
    assert answer.status_code == 200, answer.content
    return {state["olt"]: state for state in answer.json()["results"]}


def busy_olt(name: str = "") -> Olt:
    """Make an OLT with a run under way, a node that waits for it, and a state that was remembered."""
    olt = make_olt(name)
    master = make_node(olt, query_type="discovery", next_run_at=timezone.now() + timedelta(minutes=5))
    ran = make_execution(master, ExecutionState.SUCCESS)
    member = make_node(master=master, slug=f"descripcion_{olt.id}")
    make_execution(member, master_execution=ran, chain_position=1, poller_id=olt.id, owner="engine/x")
    make_node(olt, slug=f"estado_{olt.id}", next_run_at=timezone.now() - timedelta(seconds=9))
    OltState.objects.create(olt=olt, state_hash="a" * 64, saved_at=timezone.now())
    return olt


def test_an_olt_at_rest_has_its_tasks_and_nothing_else(viewer: APIClient) -> None:
    later = timezone.now() + timedelta(minutes=3)
    node = make_node(make_olt("North"), slug="estado", next_run_at=later, interval_seconds=600)
    make_node(node.workflow.olt, enabled=False)

    state = states(viewer)["North"]

    (task,) = state["tasks"]
    assert (task["node_id"], task["task_type"], task["interval_seconds"]) == (node.id, "get_estado", 600)
    assert (task["master_node_id"], task["suspended_at"]) == (None, None)
    assert datetime.fromisoformat(task["next_run_at"]) == later
    assert (state["enabled"], state["is_silent"], state["active_execution"], state["queue"]) == (True, False, None, [])
    assert (state["state_hash"], state["saved_at"]) == (None, None)


def test_a_suspended_task_and_a_silent_olt_are_seen(viewer: APIClient) -> None:
    olt = make_olt("North", enabled=False, reachability="down", last_answer_at=timezone.now())
    make_node(olt, suspended_at=timezone.now(), suspend_reason="timeout")

    state = states(viewer)["North"]

    assert (state["enabled"], state["is_silent"]) == (False, True)
    assert state["last_answer_at"]
    assert state["tasks"][0]["suspended_at"]


def test_who_holds_an_olt_is_seen_with_the_process_that_runs_it(viewer: APIClient) -> None:
    olt = busy_olt("North")
    run = olt.executions.get(status="RUNNING")

    active = states(viewer)["North"]["active_execution"]

    assert (active["execution_id"], active["owner"]) == (run.id, "engine/x")
    assert active["task_type"] == f"get_descripcion_{olt.id}"
    assert datetime.fromisoformat(active["since"]) == run.master_execution.started_at


def test_the_nodes_that_wait_are_seen_with_their_reason(viewer: APIClient) -> None:
    make_pollers(1)
    olt = busy_olt("North")
    asked = make_node(make_olt("South"), slug="potencia", run_requested_at=timezone.now())

    seen = states(viewer)

    (waiting,) = seen["North"]["queue"]
    assert (waiting["task_type"], waiting["reason"], waiting["run_now"]) == (f"get_estado_{olt.id}", "olt_busy", False)
    (wished,) = seen["South"]["queue"]
    assert (wished["node_id"], wished["task_type"], wished["run_now"]) == (asked.id, "get_potencia", True)
    assert wished["reason"] is None


def test_what_was_remembered_is_seen(viewer: APIClient) -> None:
    busy_olt("North")

    state = states(viewer)["North"]

    assert state["state_hash"] == "a" * 64
    assert state["saved_at"]


def test_the_number_of_queries_does_not_grow(
    viewer: APIClient, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    make_pollers(3)
    for _ in range(6):
        busy_olt()

    with django_assert_max_num_queries(13):
        assert len(states(viewer)) == 6
