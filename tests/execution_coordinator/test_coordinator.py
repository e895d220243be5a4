"""The coordinator's pass: what changed since the last one, what follows from it, and what it costs."""

from datetime import datetime, timedelta
from unittest.mock import Mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, OltState, QuotaTracker, QuotaViolation
from facho.executions.models import Execution
from facho.hosts.models import Olt, Reachability
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import Assignment
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import grid_of
from facho.zabbix_pollers.models import Poller, PollerStatus
from facho.zabbix_pollers.store import claim_assignments, save_poller_count
from factories import NOW, chain_to, make_node, make_olt

pytestmark = pytest.mark.django_db

SECONDS = timedelta(seconds=1)


@pytest.fixture
def coordinator() -> ExecutionCoordinator:
    """A coordinator that has looked once."""
    return ExecutionCoordinator()


def events(olt: Olt) -> list[str]:
    return list(CoordinatorLog.objects.filter(olt=olt).order_by("id").values_list("event_type", flat=True))


def news(coordinator: ExecutionCoordinator, olt: Olt, now: datetime) -> list[str]:
    """Return the events of the next pass, without those about plans."""
    CoordinatorLog.objects.all().delete()
    coordinator.run_pass(now)
    return [event for event in events(olt) if not event.startswith("PLAN")]


def start_all(now: datetime = NOW) -> None:
    """Claim every due node, and let the claims lie."""
    save_poller_count(10)
    claim_assignments([Assignment(node, number) for number, node in enumerate(load_due_nodes(now))], owner="x", now=now)


def test_the_first_pass_knows_every_task(coordinator: ExecutionCoordinator) -> None:
    """S1-16."""
    node = make_node()

    assert news(coordinator, node.workflow.olt, NOW) == ["TASK_ADDED"]

    saved = OltState.objects.get()
    assert (saved.olt_id, saved.saved_at) == (node.workflow.olt_id, NOW)
    [state] = coordinator.get_system_state().values()
    assert saved.state_hash == coordinator.calculate_state_hash(state)


def test_the_specifications_methods_do_one_olt_by_hand(coordinator: ExecutionCoordinator) -> None:
    """S1-14."""
    node = make_node()
    [state] = coordinator.get_system_state().values()
    assert coordinator.calculate_state_hash(state) == coordinator.calculate_state_hash(state)

    changes = coordinator.detect_changes(None, state)
    coordinator.handle_changes(state, changes, NOW)

    assert events(node.workflow.olt) == ["TASK_ADDED"]
    assert coordinator.detect_changes(state.view, state) == []


def test_nothing_is_told_while_nothing_changes(coordinator: ExecutionCoordinator) -> None:
    """S1-07: not when runs start and end, nor when their times move."""
    node = make_node()
    coordinator.run_pass(NOW)
    start_all()
    Olt.objects.update(last_answer_at=NOW, consecutive_failures=2, reachability=Reachability.UP)
    WorkflowNode.objects.update(last_run_at=NOW, slots_skipped=3)

    assert news(coordinator, node.workflow.olt, NOW + 5 * SECONDS) == []


@pytest.mark.parametrize("is_told_while_stopped", [False, True])
def test_a_disabled_task_is_aborted_adjusted_told_and_planned_away(
    coordinator: ExecutionCoordinator, is_told_while_stopped: bool
) -> None:
    """S1-03, S1-24, S1-29, D15: also when it was disabled while everything was stopped."""
    node = make_node()
    olt = node.workflow.olt
    other = make_node(olt, next_run_at=NOW + 60 * SECONDS)
    coordinator.run_pass(NOW)
    start_all()
    WorkflowNode.objects.filter(id=node.id).update(enabled=False)

    after = ExecutionCoordinator() if is_told_while_stopped else coordinator
    assert news(after, olt, NOW + 5 * SECONDS) == ["TASK_REMOVED"]

    assert Execution.objects.get().status == ExecutionState.INTERRUPTED
    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()
    tracker = QuotaTracker.objects.get(task_type=node.job.task_type)
    assert (tracker.quota_required, tracker.status) == (tracker.quota_completed, "ADJUSTED")
    plans = ExecutionPlan.objects.filter(olt=olt, status="ACTIVE")
    planned = {run["node_id"] for plan in plans for run in plan.plan_data}
    assert planned == {other.id}
    assert ExecutionPlan.objects.filter(olt=olt, status="SUPERSEDED").exists()


def test_a_removed_task_begins_anew_when_it_comes_back(coordinator: ExecutionCoordinator) -> None:
    """D12: on a slot of its own, whoever enabled it and however."""
    node = make_node()
    coordinator.run_pass(NOW)
    WorkflowNode.objects.update(enabled=False)
    coordinator.run_pass(NOW + 5 * SECONDS)
    node.refresh_from_db()
    assert node.next_run_at is None

    WorkflowNode.objects.update(enabled=True)
    assert news(coordinator, node.workflow.olt, NOW + 10 * SECONDS) == ["TASK_ADDED"]

    node.refresh_from_db()
    assert node.next_run_at is not None
    assert NOW + 10 * SECONDS < node.next_run_at <= NOW + 310 * SECONDS
    assert node.next_run_at == grid_of(node).next_after(NOW + 10 * SECONDS)


def test_the_last_task_of_an_olt_can_be_removed(coordinator: ExecutionCoordinator) -> None:
    node = make_node()
    coordinator.run_pass(NOW)
    olt = node.workflow.olt
    node.delete()

    assert news(coordinator, olt, NOW + 5 * SECONDS) == ["TASK_REMOVED"]
    assert not ExecutionPlan.objects.filter(olt=olt, status="ACTIVE").exclude(total_tasks=0).exists()


def test_a_master_takes_its_chain_along(coordinator: ExecutionCoordinator) -> None:
    master = make_node()
    chain_to(master)
    coordinator.run_pass(NOW)
    WorkflowNode.objects.filter(id=master.id).update(enabled=False)

    assert news(coordinator, master.workflow.olt, NOW + 5 * SECONDS) == ["TASK_REMOVED", "TASK_REMOVED"]


def test_a_shorter_interval_holds_at_once(coordinator: ExecutionCoordinator) -> None:
    node = make_node(interval_seconds=3600, next_run_at=NOW + 3000 * SECONDS)
    coordinator.run_pass(NOW)
    WorkflowNode.objects.update(interval_seconds=60)

    assert news(coordinator, node.workflow.olt, NOW + 5 * SECONDS) == ["TASK_MODIFIED"]

    node.refresh_from_db()
    assert node.next_run_at == NOW + 60 * SECONDS


def test_a_disabled_olt_is_cleared(coordinator: ExecutionCoordinator) -> None:
    """S1-26: claims aborted, what runs told to stop, nothing due, quotas interrupted, plans aborted."""
    node = make_node()
    olt = node.workflow.olt
    waiting = make_node(olt, next_run_at=NOW + 60 * SECONDS)
    coordinator.run_pass(NOW)
    start_all()
    Execution.objects.create(
        olt=olt,
        node=waiting,
        task_type="x",
        status=ExecutionState.WAITING,
        resume_at=NOW,
        address=olt.address,
        port=olt.port,
        token=1,
        created_at=NOW,
    )
    Olt.objects.update(enabled=False)

    assert news(coordinator, olt, NOW + 5 * SECONDS) == ["OLT_DISABLED"]

    assert set(Execution.objects.values_list("status", flat=True)) == {ExecutionState.INTERRUPTED}
    assert set(QuotaTracker.objects.values_list("status", flat=True)) == {"INTERRUPTED"}
    assert set(ExecutionPlan.objects.values_list("status", flat=True)) == {"ABORTED"}
    assert not WorkflowNode.objects.filter(next_run_at__isnull=False).exists()


def test_what_runs_on_a_disabled_olt_is_asked_to_stop(coordinator: ExecutionCoordinator) -> None:
    make_node()
    coordinator.run_pass(NOW)
    start_all()
    Execution.objects.update(status=ExecutionState.RUNNING)
    Olt.objects.update(enabled=False)

    coordinator.run_pass(NOW + 5 * SECONDS)

    assert Execution.objects.get().cancel_requested_at == NOW + 5 * SECONDS


def test_an_enabled_olt_begins_anew(coordinator: ExecutionCoordinator) -> None:
    node = make_node()
    coordinator.run_pass(NOW)
    Olt.objects.update(enabled=False)
    coordinator.run_pass(NOW + 5 * SECONDS)
    Olt.objects.update(enabled=True)

    assert news(coordinator, node.workflow.olt, NOW + 10 * SECONDS) == ["OLT_ENABLED"]

    node.refresh_from_db()
    assert node.next_run_at is not None
    assert node.next_run_at > NOW + 10 * SECONDS
    coordinator.run_pass(NOW + 80 * SECONDS)
    assert QuotaTracker.objects.get().status == "IN_PROGRESS"


def test_an_olt_that_falls_silent_and_comes_back_is_told(coordinator: ExecutionCoordinator) -> None:
    node = make_node()
    olt = node.workflow.olt
    coordinator.run_pass(NOW)
    Olt.objects.update(reachability=Reachability.DOWN)
    assert news(coordinator, olt, NOW + 5 * SECONDS) == ["OLT_UNREACHABLE", "EMERGENCY_REPLAN"]

    Olt.objects.update(reachability=Reachability.UP)
    assert news(coordinator, olt, NOW + 10 * SECONDS) == ["OLT_BACK"]


def test_several_changes_at_once_are_all_handled(coordinator: ExecutionCoordinator) -> None:
    """S1-05: each is logged, with what it was about."""
    olt = make_olt()
    gone, faster = make_node(olt), make_node(olt, interval_seconds=900)
    coordinator.run_pass(NOW)
    WorkflowNode.objects.filter(id=gone.id).update(enabled=False)
    WorkflowNode.objects.filter(id=faster.id).update(interval_seconds=300)
    make_node(olt)
    Olt.objects.update(reachability=Reachability.DOWN)

    assert sorted(news(coordinator, olt, NOW + 5 * SECONDS)) == [
        "EMERGENCY_REPLAN",
        "OLT_UNREACHABLE",
        "TASK_ADDED",
        "TASK_MODIFIED",
        "TASK_REMOVED",
    ]
    modified = CoordinatorLog.objects.get(event_type="TASK_MODIFIED")
    assert modified.details["interval_seconds"] == 300
    assert modified.details["interval_before_seconds"] == 900


def test_an_error_with_one_olt_does_not_stop_the_others(
    coordinator: ExecutionCoordinator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """S1-31: and the one that failed is handled in the next pass."""
    bad, good = make_node(), make_node()
    handle = ExecutionCoordinator.handle_changes

    def fail(self: ExecutionCoordinator, state: object, changes: object, now: datetime) -> None:
        if getattr(state, "olt_id", 0) == bad.workflow.olt_id:
            raise RuntimeError
        handle(self, state, changes, now)  # type: ignore[arg-type]

    monkeypatch.setattr(ExecutionCoordinator, "handle_changes", fail)
    coordinator.run_pass(NOW)
    assert list(OltState.objects.values_list("olt_id", flat=True)) == [good.workflow.olt_id]
    assert "coordinator.olt_failed" in caplog.text

    monkeypatch.undo()
    assert news(coordinator, bad.workflow.olt, NOW + 5 * SECONDS) == ["TASK_ADDED"]


@pytest.mark.parametrize("step", ["quotas.refresh_quotas", "violations.build_report", "keep_plans"])
def test_a_pass_that_failed_anywhere_is_done_again(
    coordinator: ExecutionCoordinator, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Its first one too, and what it had judged of hours gone by is not lost."""
    node = make_node()
    tracker = QuotaTracker.objects.create(
        olt=node.workflow.olt,
        task_type=node.job.task_type,
        period_start=NOW - timedelta(hours=5),
        period_end=NOW - timedelta(hours=4),
        quota_required=4,
        quota_pending=4,
    )

    monkeypatch.setattr(f"facho.execution_coordinator.coordinator.{step}", Mock(side_effect=RuntimeError))
    with pytest.raises(RuntimeError):
        coordinator.run_pass(NOW)
    monkeypatch.undo()
    coordinator.run_pass(NOW + 5 * SECONDS)

    assert QuotaTracker.objects.filter(period_start=NOW).exists()
    assert QuotaViolation.objects.get().period_start == tracker.period_start
    assert ExecutionPlan.objects.exists()


def test_a_run_that_ended_is_counted_in_the_next_pass(coordinator: ExecutionCoordinator) -> None:
    """S1-30: not only when everything is counted."""
    node = make_node()
    coordinator.run_pass(NOW)
    start_all()
    Execution.objects.update(status=ExecutionState.SUCCESS, finished_at=NOW + 7 * SECONDS)
    coordinator.run_pass(NOW + 5 * SECONDS)

    coordinator.run_pass(NOW + 10 * SECONDS)

    assert QuotaTracker.objects.get(task_type=node.job.task_type).quota_completed == 1


@pytest.mark.parametrize("later", [5, 60], ids=["between", "counting everything"])
def test_a_pass_over_unchanged_olts_costs_ten_statements(coordinator: ExecutionCoordinator, later: int) -> None:
    for _ in range(40):
        make_node(next_run_at=NOW + 120 * SECONDS)
    coordinator.run_pass(NOW)
    coordinator.run_pass(NOW + 5 * SECONDS)

    with CaptureQueriesContext(connection) as captured:
        coordinator.run_pass(NOW + (5 + later) * SECONDS)

    statements = [query["sql"] for query in captured.captured_queries if "SAVEPOINT" not in query["sql"]]
    assert len(statements) <= 10, statements
