"""The explanation of a node as its rows tell it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import time, timedelta
from typing import Any

import pytest

from api.rows import NOW, make_execution, make_leader, make_node, make_olt, make_pollers
from facho.executions.models import Execution, Origin
from facho.hosts.models import Reachability
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import WaitReason
from facho.snmp_jobs.store import UnknownNode
from facho.zabbix_pollers.explain import Situation, load_explanation

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def waiting_run(node: Any, **fields: Any) -> Execution:
    return make_execution(node, ExecutionState.WAITING, at=NOW - MINUTE, **fields)


def test_an_unknown_node_is_refused() -> None:
    with pytest.raises(UnknownNode):
        load_explanation(987_654, NOW)


def test_a_node_behind_a_running_one_names_the_holder_and_its_place() -> None:
    make_pollers(2)
    olt = make_olt("North")
    holder = make_execution(make_node(olt, name="Light"), poller_id=1, at=NOW - MINUTE)
    make_node(next_run_at=NOW - 2 * MINUTE)
    node = make_node(olt, next_run_at=NOW - MINUTE)
    first = make_node(olt, next_run_at=NOW - MINUTE, query_type="discovery")

    reported = load_explanation(node.id, NOW)

    assert reported.situation is Situation.QUEUED
    assert reported.holder is not None
    assert (reported.holder.execution_id, reported.holder.name, reported.holder.poller_id) == (holder.id, "Light", 1)
    assert reported.place is not None
    assert (reported.place.number, reported.place.size, reported.place.on_olt) == (2, 3, 2)
    assert reported.place.reason is WaitReason.OLT_BUSY
    ahead = load_explanation(first.id, NOW)
    assert ahead.place is not None
    assert ahead.place.on_olt == 1


def test_a_node_without_a_free_poller_says_so() -> None:
    make_pollers(1)
    make_execution(make_node(), poller_id=0)
    node = make_node(next_run_at=NOW)

    reported = load_explanation(node.id, NOW)

    assert (reported.reason, reported.holder) == (WaitReason.NO_POLLER, None)


def test_a_probe_that_holds_the_olt_is_named_with_its_origin() -> None:
    make_pollers(1)
    node = make_node(next_run_at=NOW)
    probe = make_execution(node, task_type="probe", origin=Origin.PROBE)
    Execution.objects.filter(id=probe.id).update(node=None)

    holder = load_explanation(node.id, NOW).holder

    assert holder is not None
    assert (holder.node_id, holder.origin, holder.name) == (None, Origin.PROBE, "probe")


def test_other_nodes_of_a_silent_olt_wait_for_the_one_that_tries() -> None:
    make_pollers(1)
    olt = make_olt(reachability=Reachability.DOWN)
    make_node(olt, next_run_at=NOW + MINUTE, consecutive_failures=1)
    node = make_node(olt, next_run_at=NOW)

    assert load_explanation(node.id, NOW).reason == WaitReason.OLT_UNREACHABLE


def test_a_master_runs_while_its_chain_does_from_the_start_of_the_master() -> None:
    master = make_node()
    member = make_node(master=master, name="Description")
    ran = make_execution(master, ExecutionState.SUCCESS, at=NOW - 3 * MINUTE)
    runs = make_execution(member, at=NOW - MINUTE, poller_id=4, master_execution=ran, chain_position=1)

    reported = load_explanation(master.id, NOW)

    assert (reported.situation, reported.since, reported.execution_id) == (Situation.RUNNING, NOW - 3 * MINUTE, runs.id)
    assert reported.holder is not None
    assert (reported.holder.name, reported.holder.poller_id) == ("Description", 4)


def test_a_chain_member_waits_with_its_master() -> None:
    master = make_node(next_run_at=NOW + MINUTE)
    member = make_node(master=master)

    reported = load_explanation(member.id, NOW)

    assert (reported.situation, reported.runs_at) == (Situation.CHAINED, NOW + MINUTE)
    assert reported.master is not None
    assert reported.master.node_id == master.id


@pytest.mark.parametrize("everything", [True, False])
def test_a_pause_of_the_olt_or_of_everything_is_reported_until_the_later_end(everything: bool) -> None:
    node = make_node(next_run_at=NOW)
    pause(node.workflow.olt, minutes=5, note="", now=NOW)
    pause(None if everything else node.workflow.olt, minutes=10, note="works", now=NOW)
    pause(make_olt(), minutes=60, note="elsewhere", now=NOW)

    reported = load_explanation(node.id, NOW)

    assert (reported.situation, reported.until, reported.reason) == (Situation.PAUSED, NOW + 10 * MINUTE, "works")


def test_a_failed_try_tells_when_it_is_tried_again() -> None:
    node = make_node(next_run_at=NOW + 9 * MINUTE)
    run = waiting_run(node, failure_kind="timeout", resume_at=NOW + MINUTE)

    reported = load_explanation(node.id, NOW)

    assert (reported.situation, reported.execution_id, reported.runs_at) == (Situation.RETRY, run.id, NOW + MINUTE)


def test_a_read_that_gave_way_has_a_place_in_the_queue() -> None:
    make_pollers(1)
    node = make_node(next_run_at=NOW + 9 * MINUTE)
    run = waiting_run(node, resume_at=NOW - MINUTE)

    reported = load_explanation(node.id, NOW)

    assert (reported.situation, reported.execution_id) == (Situation.GAVE_WAY, run.id)
    assert reported.place is not None
    assert reported.place.number == 1


def test_hours_are_local_time(settings: Any) -> None:
    settings.TIME_ZONE = "America/Bogota"
    node = make_node(next_run_at=NOW + timedelta(hours=18))
    node.job.hours_from, node.job.hours_to = time(1), time(5)
    node.job.save()

    reported = load_explanation(node.id, NOW)

    assert (reported.situation, reported.until) == (Situation.OUTSIDE_HOURS, NOW + timedelta(hours=18))


def test_whether_anyone_polls_is_reported() -> None:
    node = make_node(next_run_at=NOW)
    assert not load_explanation(node.id, NOW).is_polling

    make_leader(NOW)

    assert load_explanation(node.id, NOW).is_polling


@pytest.mark.parametrize("nodes", [1, 8])
def test_an_explanation_costs_the_same_however_much_waits(
    nodes: int, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    make_pollers(4)
    for _ in range(nodes):
        master = make_node(next_run_at=NOW)
        make_execution(make_node(next_run_at=NOW))
    member = make_node(master=master)

    with django_assert_max_num_queries(18):
        load_explanation(member.id, NOW)
