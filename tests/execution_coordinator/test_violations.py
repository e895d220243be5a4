"""Hours that fell short become violations, with every slot that was due (S1-17, S1-25)."""

from datetime import timedelta

import pytest
from past_runs import add_run

from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.models import CoordinatorLog, QuotaTracker, QuotaViolation
from facho.executions.models import Execution
from facho.hosts.models import Olt, Pause, Reachability
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.snmp_jobs.models import SkippedSlot, WorkflowNode
from factories import NOW, chain_to, make_job, make_node

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def look(now: object) -> None:
    ExecutionCoordinator().run_pass(now)  # type: ignore[arg-type]


def discovery(*, next_run_at: object = NOW + HOUR) -> WorkflowNode:
    job = make_job(query_type=QueryType.DISCOVERY)
    return make_node(job=job, interval_seconds=900, next_run_at=next_run_at)  # type: ignore[arg-type]


def test_two_of_four_discoveries_are_a_high_violation() -> None:
    """S1-17, S1-25: scenario 2."""
    node = discovery()
    add_run(node, NOW)
    add_run(node, NOW + 15 * MINUTE, ExecutionState.FAILED, failure_kind="timeout")
    add_run(node, NOW + 30 * MINUTE)
    SkippedSlot.objects.create(node=node, slot_at=NOW + 45 * MINUTE, reason="no_poller")

    look(NOW + HOUR + timedelta(seconds=5))

    violation = QuotaViolation.objects.get()
    assert (violation.olt, violation.severity, violation.notified) == (node.workflow.olt, "HIGH", False)
    assert (violation.period_start, violation.period_end) == (NOW, NOW + HOUR)
    [task] = violation.report["tasks"]
    assert [(slot["outcome"], slot["reason"]) for slot in task["slots"]] == [
        ("completed", ""),
        ("failed", "timeout"),
        ("completed", ""),
        ("skipped", "no_poller"),
    ]
    entry = CoordinatorLog.objects.get(event_type="QUOTA_VIOLATION")
    assert (entry.level, entry.olt) == ("CRITICAL", node.workflow.olt)
    assert QuotaTracker.objects.get(period_start=NOW).status == "QUOTA_NOT_MET"


def test_four_of_five_is_enough() -> None:
    node = make_node(interval_seconds=720, next_run_at=NOW + HOUR)
    for number in range(4):
        add_run(node, NOW + number * 12 * MINUTE)
    SkippedSlot.objects.create(node=node, slot_at=NOW + 48 * MINUTE, reason="olt_busy")

    look(NOW + HOUR)

    assert not QuotaViolation.objects.exists()
    assert QuotaTracker.objects.get(period_start=NOW).status == "PARTIAL"


def test_a_certain_loss_is_raised_before_the_last_run_has_ended() -> None:
    """Within a minute after the hour, and the report is brought up to date when the rest is known."""
    node = discovery()
    SkippedSlot.objects.create(node=node, slot_at=NOW, reason="olt_busy")
    add_run(node, NOW + 15 * MINUTE)
    add_run(node, NOW + 30 * MINUTE)
    last = add_run(node, NOW + 45 * MINUTE, ExecutionState.RUNNING)

    coordinator = ExecutionCoordinator()
    coordinator.run_pass(NOW + HOUR)
    assert QuotaViolation.objects.get().severity == "HIGH"

    Execution.objects.filter(id=last.id).update(status=ExecutionState.SUCCESS, finished_at=NOW + 61 * MINUTE)
    coordinator.run_pass(NOW + HOUR + MINUTE)

    violation = QuotaViolation.objects.get()
    assert [slot["outcome"] for slot in violation.report["tasks"][0]["slots"]].count("completed") == 3
    assert violation.severity == "MEDIUM"
    assert CoordinatorLog.objects.filter(event_type="QUOTA_VIOLATION").count() == 1


def test_an_hour_is_judged_by_the_first_pass_after_it() -> None:
    """Also when everything was counted a moment before its end."""
    discovery()
    SkippedSlot.objects.create(node=WorkflowNode.objects.get(), slot_at=NOW, reason="olt_busy")
    coordinator = ExecutionCoordinator()
    coordinator.run_pass(NOW + 59.9 * MINUTE)
    assert not QuotaViolation.objects.exists()

    coordinator.run_pass(NOW + HOUR)

    assert QuotaViolation.objects.get().created_at == NOW + HOUR


def test_a_loss_that_is_not_certain_waits_for_the_last_run() -> None:
    node = discovery()
    for minute in (0, 15, 30):
        add_run(node, NOW + minute * MINUTE)
    last = add_run(node, NOW + 45 * MINUTE, ExecutionState.WAITING)
    coordinator = ExecutionCoordinator()
    coordinator.run_pass(NOW + HOUR)
    assert not QuotaViolation.objects.exists()

    Execution.objects.filter(id=last.id).update(status=ExecutionState.FAILED, finished_at=NOW + 62 * MINUTE)
    coordinator.run_pass(NOW + HOUR + 3 * MINUTE)

    assert QuotaViolation.objects.get().severity == "MEDIUM"


def test_a_dead_olt_is_one_violation_as_bad_as_its_worst_task() -> None:
    node = discovery(next_run_at=NOW)
    chain_to(node)
    Olt.objects.update(reachability=Reachability.DOWN)
    WorkflowNode.objects.update(suspended_at=NOW, suspend_reason="unreachable")

    look(NOW + HOUR)

    violation = QuotaViolation.objects.get()
    assert (violation.severity, len(violation.report["tasks"])) == ("CRITICAL", 2)
    reasons = {slot["reason"] for task in violation.report["tasks"] for slot in task["slots"]}
    assert reasons == {"olt_unreachable"}
    assert set(QuotaTracker.objects.filter(period_start=NOW).values_list("status", flat=True)) == {"QUOTA_NOT_MET"}


def test_the_report_names_what_kept_the_olt_busy_and_lists_pauses_apart() -> None:
    node = discovery()
    other = make_node(node.workflow.olt, next_run_at=None)
    add_run(other, None, started_at=NOW - 5 * MINUTE, seconds=1500)
    for minute in (0, 15, 30):
        SkippedSlot.objects.create(node=node, slot_at=NOW + minute * MINUTE, reason="olt_busy")
    SkippedSlot.objects.create(node=node, slot_at=NOW + 45 * MINUTE, reason="olt_busy")
    Pause.objects.create(starts_at=NOW + 40 * MINUTE, ends_at=NOW + 2 * HOUR)

    look(NOW + HOUR)

    report = QuotaViolation.objects.get().report
    [task] = report["tasks"]
    assert [slot["busy_with"] for slot in task["slots"]] == [other.job.task_type, other.job.task_type, ""]
    assert report["paused"] == [
        {"from": (NOW + 40 * MINUTE).isoformat(), "to": (NOW + HOUR).isoformat()},
    ]


def test_an_hour_is_raised_once_however_often_it_is_looked_at() -> None:
    node = discovery()
    for minute in (0, 15, 30, 45):
        SkippedSlot.objects.create(node=node, slot_at=NOW + minute * MINUTE, reason="olt_busy")

    for minute in range(4):
        look(NOW + HOUR + minute * MINUTE)

    assert QuotaViolation.objects.count() == 1
    assert CoordinatorLog.objects.filter(event_type="QUOTA_VIOLATION").count() == 1


def test_an_hour_in_which_polling_ended_is_raised_when_it_begins_again() -> None:
    node = discovery(next_run_at=NOW + 15 * MINUTE)
    add_run(node, NOW)
    look(NOW + 10 * MINUTE)

    look(NOW + 5 * HOUR)

    violation = QuotaViolation.objects.get(period_start=NOW)
    assert (violation.severity, violation.report["tasks"][0]["skipped"]) == ("HIGH", 3)
