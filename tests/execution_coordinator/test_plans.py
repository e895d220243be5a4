"""Plans of the hour: what they hold, how they follow changes and runs, and what keeping them costs."""

import tracemalloc
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from past_runs import add_run
from remembered_runs import remember

from facho.execution_coordinator import coordinator
from facho.execution_coordinator.coordinator import keep_plans, rebuild_plans
from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, OltState
from facho.execution_coordinator.state import load_olts
from facho.executions.models import Execution
from facho.hosts.models import Olt, Pause
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.snmp_jobs.models import WorkflowNode
from factories import NOW, chain_to, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
COUNTING = timedelta(seconds=30)


def keep(now: datetime = NOW) -> None:
    keep_plans(load_olts(), now)


def plan_of(olt: Olt, *, start: datetime = NOW, status: str = "ACTIVE") -> ExecutionPlan:
    return ExecutionPlan.objects.get(olt=olt, period_start=start, status=status)


def starts(plan: ExecutionPlan) -> list[tuple[int, float, float]]:
    """Return node, slot and predicted start of each run, in seconds after the start of the hour."""
    return [
        (run["node_id"], _seconds(run["slot_at"], plan), _seconds(run["starts_at"], plan)) for run in plan.plan_data
    ]


def _seconds(text: str, plan: ExecutionPlan) -> float:
    return (datetime.fromisoformat(text) - plan.period_start).total_seconds()


def events(kind: str) -> Sequence[dict[str, Any]]:
    return [entry.details for entry in CoordinatorLog.objects.filter(event_type=kind).order_by("id")]


def test_every_olt_has_a_plan_for_this_hour_and_the_next() -> None:
    """D3: the coming hour with predicted start and length of every run, the chain with its master."""
    node = make_node(interval_seconds=1_800, next_run_at=NOW + 5 * MINUTE)
    WorkflowNode.objects.update(offset_seconds=300)
    member = chain_to(node)
    remember(node, 20, 21, 400)
    remember(member, 7)

    keep()

    olt = node.workflow.olt
    [first, _] = plan_of(olt).plan_data
    assert first == {
        "node_id": node.id,
        "task_type": node.job.task_type,
        "slot_at": "2026-03-01T12:05:00+00:00",
        "starts_at": "2026-03-01T12:05:00+00:00",
        "seconds": 28.0,
        "members": [{"node_id": member.id, "task_type": member.job.task_type, "seconds": 7.0}],
    }
    assert starts(plan_of(olt)) == [(node.id, 300, 300), (node.id, 2_100, 2_100)]
    assert starts(plan_of(olt, start=NOW + HOUR)) == [(node.id, 300, 300), (node.id, 2_100, 2_100)]
    assert plan_of(olt).total_tasks == 2
    assert [event["runs"] for event in events("PLAN_CREATED")] == [2, 2]


def test_who_never_runs_has_no_plan() -> None:
    make_node(make_olt(enabled=False))
    make_olt()

    keep()

    assert not ExecutionPlan.objects.exists()


def test_discovery_is_planned_first_and_the_other_behind_what_runs_now() -> None:
    olt = make_olt()
    read = make_node(olt, interval_seconds=3_600)
    discovery = make_node(olt, make_job(query_type=QueryType.DISCOVERY), interval_seconds=3_600)
    busy = make_node(olt, interval_seconds=3_600, next_run_at=NOW + HOUR)
    for node, seconds in ((read, 10), (discovery, 10), (busy, 30)):
        remember(node, seconds)
    add_run(busy, NOW - MINUTE / 3, ExecutionState.RUNNING, seconds=0)

    keep()

    assert starts(plan_of(olt)) == [(discovery.id, 0, 10), (read.id, 0, 20)]


def test_a_chain_that_is_under_way_is_planned_to_its_end() -> None:
    olt = make_olt()
    master = make_node(olt, interval_seconds=3_600, next_run_at=NOW + HOUR)
    members, other = [chain_to(master), chain_to(master)], make_node(olt, interval_seconds=3_600)
    for node in (master, *members, other):
        remember(node, 10)
    ran = add_run(master, NOW - MINUTE / 4, seconds=10)
    add_run(members[0], NOW - MINUTE / 4, ExecutionState.RUNNING, seconds=0, started_at=NOW - MINUTE / 12, master=ran)

    keep()

    assert starts(plan_of(olt)) == [(other.id, 0, 15)]


def test_a_long_read_that_gave_way_goes_on_behind_who_is_due() -> None:
    """Of 100 s it has had 60 before it waited: the node after the next finds the OLT free."""
    olt = make_olt()
    long = make_node(olt, interval_seconds=3_600, next_run_at=NOW + HOUR)
    due, later = make_node(olt, interval_seconds=3_600), make_node(olt, next_run_at=NOW + MINUTE / 6)
    WorkflowNode.objects.filter(id=later.id).update(interval_seconds=3_600, offset_seconds=10)
    for node, seconds in ((long, 100), (due, 5), (later, 5)):
        remember(node, seconds)
    waiting = add_run(long, NOW - 2 * MINUTE, ExecutionState.WAITING, seconds=60)
    Execution.objects.filter(id=waiting.id).update(resume_at=NOW)

    keep()

    assert starts(plan_of(olt)) == [(due.id, 0, 0), (later.id, 10, 45)]


def test_a_node_without_history_takes_as_long_as_elsewhere_and_else_an_unknown_time() -> None:
    job, other_job = make_job(columns=()), make_job(columns=())
    remember(make_node(job=job), 12)
    olt = make_olt()
    known, unknown = make_node(olt, job, interval_seconds=3_600), make_node(olt, other_job, interval_seconds=3_600)

    keep()

    lengths = {run["node_id"]: run["seconds"] for run in plan_of(olt).plan_data}
    assert lengths == {known.id: 12, unknown.id: None}


def test_nothing_is_planned_in_a_pause_nor_of_a_suspended_node() -> None:
    olt = make_olt()
    node = make_node(olt, interval_seconds=600)
    WorkflowNode.objects.filter(id=make_node(olt).id).update(suspended_at=NOW, suspend_reason="timeout")
    Pause.objects.create(olt=olt, starts_at=NOW, ends_at=NOW + 25 * MINUTE)

    keep()

    slots = [(node.id, float(s), float(max(s, 1_500))) for s in (1_200, 1_800, 2_400, 3_000)]
    assert starts(plan_of(olt)) == slots


def test_a_change_supersedes_the_plan_and_is_reported() -> None:
    """D3."""
    """Rebuilt without the node that was disabled."""
    olt = make_olt()
    gone, stays = make_node(olt, interval_seconds=1_800), make_node(olt, interval_seconds=1_800)
    keep()
    WorkflowNode.objects.filter(id=gone.id).update(enabled=False)

    rebuild_plans([olt.id], NOW)

    assert {run["node_id"] for run in plan_of(olt, status="SUPERSEDED").plan_data} == {gone.id, stays.id}
    assert {run["node_id"] for run in plan_of(olt).plan_data} == {stays.id}
    assert ExecutionPlan.objects.filter(status="ACTIVE").count() == 2
    assert [event["runs"] for event in events("PLAN_ADJUSTED")] == [2]


def test_the_plans_of_a_disabled_olt_are_aborted() -> None:
    node = make_node()
    keep()
    Olt.objects.update(enabled=False)

    rebuild_plans([node.workflow.olt_id], NOW)

    assert set(ExecutionPlan.objects.values_list("status", flat=True)) == {"ABORTED"}


def test_an_olt_that_lost_its_last_task_has_no_plan_and_takes_nobodys_place() -> None:
    node = make_node()
    keep()
    WorkflowNode.objects.update(enabled=False)

    rebuild_plans([node.workflow.olt_id], NOW)
    assert not ExecutionPlan.objects.filter(status="ACTIVE").exists()

    other = make_node()
    keep()
    assert plan_of(other.workflow.olt)


def test_runs_are_counted_as_they_end_and_the_plan_completes_with_its_hour() -> None:
    """Also the run that ends when its hour is over."""
    node = make_node(interval_seconds=900)
    keep()
    olt = node.workflow.olt
    for minutes, state in ((0, ExecutionState.SUCCESS), (15, ExecutionState.FAILED), (30, ExecutionState.SUCCESS)):
        add_run(node, NOW + minutes * MINUTE, state)
        keep(NOW + minutes * MINUTE + COUNTING)

    plan = plan_of(olt)
    assert (plan.total_tasks, plan.completed_tasks, plan.failed_tasks) == (4, 2, 1)

    keep(NOW + HOUR)
    assert plan_of(olt, status="COMPLETED").completed_tasks == 2
    add_run(node, NOW + 45 * MINUTE, started_at=NOW + HOUR)
    keep(NOW + HOUR + COUNTING)
    assert plan_of(olt, status="COMPLETED").completed_tasks == 3
    assert plan_of(olt, start=NOW + 2 * HOUR)


def test_keeping_plans_costs_one_statement_while_nothing_is_missing() -> None:
    for _ in range(20):
        make_node()
    keep()
    olts = load_olts()

    with CaptureQueriesContext(
        connection,
    ) as asked:
        keep_plans(olts, NOW + timedelta(seconds=5))

    assert len(asked) == 1


def test_many_olts_get_their_plans_in_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "OLTS_PER_PASS", 2)
    for _ in range(3):
        make_node()

    keep()
    assert ExecutionPlan.objects.count() == 4
    keep()
    assert ExecutionPlan.objects.count() == 6


def test_making_plans_costs_the_same_for_any_number_of_olts() -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as asked:
            keep()
        logged = [query for query in asked if "coordinator_logs" in query["sql"] or "hosts_olt" in query["sql"]]
        return len([query for query in asked if "SAVEPOINT" not in query["sql"]]) - len(logged)

    make_node()
    one = cost()
    for _ in range(10):
        make_node()

    assert cost() == one


@pytest.mark.thorough("postgresql")
def test_the_turn_of_an_hour_takes_no_more_memory_for_many_olts_than_for_few() -> None:
    def peak_bytes(now: datetime) -> int:
        tracemalloc.start()
        keep(now)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    for _ in range(3):
        make_node(interval_seconds=10)
    keep(NOW)
    few = peak_bytes(NOW + HOUR)
    for _ in range(15):
        make_node(interval_seconds=10)
    keep(NOW + HOUR)

    many = peak_bytes(NOW + 2 * HOUR)

    assert ExecutionPlan.objects.filter(status="COMPLETED").count() == 3 + 18
    assert many < 3 * few


def colliding(olt: Olt) -> list[WorkflowNode]:
    """Two nodes of 40 s that begin together every five minutes, on an OLT that was seen before."""
    OltState.objects.create(olt=olt, state_hash="a" * 64, saved_at=NOW)
    nodes = [make_node(olt, interval_seconds=300) for _ in range(2)]
    for node in nodes:
        remember(node, 40, 40)
    return nodes


def test_runs_that_would_wait_for_each_other_move_apart_after_their_next_slot() -> None:
    """D12: only the offset is written, the next run stays, and from the slot after it on nobody waits."""
    olt = make_olt()
    first, second = colliding(olt)

    keep()

    offsets = dict(WorkflowNode.objects.values_list("id", "offset_seconds"))
    assert offsets == {first.id: 0, second.id: 250}
    assert set(WorkflowNode.objects.values_list("next_run_at", flat=True)) == {NOW}
    waits = [start - slot for _, slot, start in starts(plan_of(olt))]
    assert waits == [0, 40, *[0] * (len(waits) - 2)]
    assert [event["moved"] for event in events("PLAN_ADJUSTED")] == [1]


def test_an_olt_is_packed_at_most_once_an_hour() -> None:
    olt = make_olt()
    colliding(olt)
    keep()
    WorkflowNode.objects.update(offset_seconds=0)
    CoordinatorLog.objects.all().delete()  # what the log holds, or failed to write, decides nothing

    rebuild_plans([olt.id], NOW + HOUR - MINUTE)
    assert set(WorkflowNode.objects.values_list("offset_seconds", flat=True)) == {0}

    rebuild_plans([olt.id], NOW + HOUR)
    assert WorkflowNode.objects.exclude(offset_seconds=0).count() == 1


def test_what_follows_the_end_of_its_runs_or_has_hours_never_moves() -> None:
    olt = make_olt()
    first, second = colliding(olt)
    first.job.cadence = "fixed_delay"
    first.job.save()
    second.job.hours_from, second.job.hours_to = NOW.time(), NOW.time()
    second.job.save()

    keep()

    assert set(WorkflowNode.objects.values_list("offset_seconds", flat=True)) == {0}
