"""The coordinator's pass: what changed since the last one, what follows from it, and what it costs."""

from datetime import datetime, timedelta
from unittest.mock import Mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, OltState, QuotaTracker, QuotaViolation
from facho.execution_coordinator.state import load_olts
from facho.executions.models import Execution
from facho.hosts.models import Olt, Reachability
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import Assignment
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from facho.snmp_jobs.store import NodeChange, change_nodes, grid_of
from facho.zabbix_pollers.models import Poller, PollerStatus
from facho.zabbix_pollers.store import claim_assignments, release_orphans, save_poller_count
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
    """Return the events of the next pass, without those about plans and that something changed at all."""
    CoordinatorLog.objects.all().delete()
    coordinator.run_pass(now)
    return [event for event in events(olt) if not event.startswith(("PLAN", "CHANGES"))]


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

    assert events(node.workflow.olt) == ["CHANGES_DETECTED", "TASK_ADDED"]
    assert coordinator.detect_changes(state.view, state) == []


def test_what_is_as_before_is_not_made_anew_and_all_else_is_as_loaded(coordinator: ExecutionCoordinator) -> None:
    same, moved, undiscovered, gone = (make_node() for _ in range(4))
    before = coordinator.get_system_state()

    WorkflowNode.objects.filter(id=moved.id).update(next_run_at=NOW + 7 * SECONDS)
    Olt.objects.filter(id=gone.workflow.olt_id).delete()
    Olt.objects.filter(id=undiscovered.workflow.olt_id).update(discovered_at=None)
    after = coordinator.get_system_state()

    assert after == load_olts()
    assert list(after) == sorted(after)
    assert after[same.workflow.olt_id] is before[same.workflow.olt_id]
    assert after[moved.workflow.olt_id].tasks[0].next_run_at == NOW + 7 * SECONDS
    assert gone.workflow.olt_id not in after


def test_nothing_is_reported_while_nothing_changes(coordinator: ExecutionCoordinator) -> None:
    """S1-07: not when runs start and end, nor when their times move."""
    node = make_node()
    coordinator.run_pass(NOW)
    start_all()
    Olt.objects.update(last_answer_at=NOW, consecutive_failures=2, reachability=Reachability.UP)
    WorkflowNode.objects.update(last_run_at=NOW, slots_skipped=3)

    assert news(coordinator, node.workflow.olt, NOW + 5 * SECONDS) == []
    assert OltState.objects.get().saved_at == NOW  # not even compared


def test_a_pass_looks_at_every_olt(coordinator: ExecutionCoordinator) -> None:
    """S1-06: however many changed since the last one."""
    nodes = [make_node() for _ in range(30)]
    coordinator.run_pass(NOW)
    assert OltState.objects.filter(saved_at=NOW).count() == len(nodes)
    WorkflowNode.objects.update(interval_seconds=600)

    coordinator.run_pass(NOW + 5 * SECONDS)

    assert OltState.objects.filter(saved_at=NOW + 5 * SECONDS).count() == len(nodes)
    reported = CoordinatorLog.objects.filter(event_type="TASK_MODIFIED").values_list("olt_id", flat=True)
    assert sorted(reported) == sorted(node.workflow.olt_id for node in nodes)


def test_a_pass_starts_nothing(coordinator: ExecutionCoordinator) -> None:
    """D19: not what is due, nor what a person asked for, nor what waits for its next try."""
    due, wanted, failed = make_node(), make_node(next_run_at=NOW + 60 * SECONDS), make_node()
    WorkflowNode.objects.filter(id=wanted.id).update(run_requested_at=NOW)
    olt = failed.workflow.olt
    Execution.objects.create(
        olt=olt,
        node=failed,
        task_type="x",
        status=ExecutionState.WAITING,
        failure_kind="timeout",
        resume_at=NOW,
        address=olt.address,
        port=olt.port,
        token=1,
        created_at=NOW,
    )

    for seconds in range(0, 300, 5):
        coordinator.run_pass(NOW + seconds * SECONDS)

    assert Execution.objects.get().status == ExecutionState.WAITING
    assert {due.id, wanted.id} <= {node.node_id for node in load_due_nodes(NOW + 300 * SECONDS)}


@pytest.mark.parametrize("is_reported_while_stopped", [False, True])
def test_a_disabled_task_is_aborted_adjusted_reported_and_planned_away(
    coordinator: ExecutionCoordinator, is_reported_while_stopped: bool
) -> None:
    """S1-03, S1-24, S1-29, D15: also when it was disabled while everything was stopped."""
    node = make_node()
    olt = node.workflow.olt
    other = make_node(olt, next_run_at=NOW + 60 * SECONDS)
    coordinator.run_pass(NOW)
    start_all()
    WorkflowNode.objects.filter(id=node.id).update(enabled=False)

    after = ExecutionCoordinator() if is_reported_while_stopped else coordinator
    assert news(after, olt, NOW + 5 * SECONDS) == ["TASK_REMOVED", "EXECUTION_ABORTED"]

    assert Execution.objects.get().status == ExecutionState.INTERRUPTED
    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()
    assert WorkflowNode.objects.get(id=node.id).next_run_at is None
    tracker = QuotaTracker.objects.get(task_type=node.job.task_type)
    assert (tracker.quota_required, tracker.status) == (tracker.quota_completed, "ADJUSTED")
    plans = ExecutionPlan.objects.filter(olt=olt, status="ACTIVE")
    planned = {run["node_id"] for plan in plans for run in plan.plan_data}
    assert planned == {other.id}
    assert ExecutionPlan.objects.filter(olt=olt, status="SUPERSEDED").exists()


def test_a_removed_task_begins_anew_when_it_comes_back(coordinator: ExecutionCoordinator) -> None:
    """D12, S4-08: a minute later and its spread, whoever enabled it and however."""
    node = make_node(interval_seconds=3_600)
    coordinator.run_pass(NOW)
    WorkflowNode.objects.update(enabled=False)
    coordinator.run_pass(NOW + 5 * SECONDS)
    node.refresh_from_db()
    assert node.next_run_at is None

    WorkflowNode.objects.update(enabled=True)
    assert news(coordinator, node.workflow.olt, NOW + 10 * SECONDS) == ["TASK_ADDED"]

    node.refresh_from_db()
    assert node.next_run_at is not None
    assert NOW + 70 * SECONDS <= node.next_run_at < NOW + 370 * SECONDS
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
    change_nodes(WorkflowNode.objects.all(), NodeChange(interval_seconds=60), now=NOW)

    assert news(coordinator, node.workflow.olt, NOW + 5 * SECONDS) == ["TASK_MODIFIED"]

    node.refresh_from_db()
    assert node.next_run_at == NOW + 60 * SECONDS


def test_a_disabled_olt_is_cleared(coordinator: ExecutionCoordinator) -> None:
    """S1-26, D15: claims aborted, what runs told to stop, nothing due, quotas interrupted, plans aborted."""
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

    claimed = Execution.objects.get(node=node)
    assert news(coordinator, olt, NOW + 5 * SECONDS) == ["OLT_DISABLED", "EXECUTION_ABORTED", "EXECUTION_ABORTED"]

    reported = CoordinatorLog.objects.get(event_type="OLT_DISABLED")
    assert [(run["execution"], run["task"], run["status"]) for run in reported.details["aborted"]] == [
        (claimed.id, node.job.name, "PENDING"),
        (claimed.id + 1, waiting.job.name, "WAITING"),
    ]
    assert reported.message == f"The OLT was disabled, runs aborted: {node.job.name}, {waiting.job.name}"
    assert set(Execution.objects.values_list("status", flat=True)) == {ExecutionState.INTERRUPTED}
    assert set(QuotaTracker.objects.values_list("status", flat=True)) == {"INTERRUPTED"}
    assert set(ExecutionPlan.objects.values_list("status", flat=True)) == {"ABORTED"}
    assert not WorkflowNode.objects.filter(next_run_at__isnull=False).exists()


def test_what_runs_on_a_disabled_olt_is_asked_to_stop(coordinator: ExecutionCoordinator) -> None:
    """S1-26, D15."""
    make_node()
    coordinator.run_pass(NOW)
    start_all()
    Execution.objects.update(status=ExecutionState.RUNNING)
    Olt.objects.update(enabled=False)

    coordinator.run_pass(NOW + 5 * SECONDS)

    run = Execution.objects.get()
    assert run.cancel_requested_at == NOW + 5 * SECONDS
    [reported] = CoordinatorLog.objects.get(event_type="OLT_DISABLED").details["aborted"]
    assert (reported["execution"], reported["status"]) == (run.id, "RUNNING")


def test_a_disabled_olt_lists_what_the_scheduler_ended_before_the_pass(coordinator: ExecutionCoordinator) -> None:
    """A tick ends the claims of a disabled OLT within a second; the coordinator looks every five."""
    make_node()
    coordinator.run_pass(NOW)
    start_all()
    Olt.objects.update(enabled=False)
    run = Execution.objects.get()
    release_orphans([run.id], reason="cancelled", now=NOW + SECONDS)

    coordinator.run_pass(NOW + 5 * SECONDS)

    [reported] = CoordinatorLog.objects.get(event_type="OLT_DISABLED").details["aborted"]
    assert (reported["execution"], reported["status"]) == (run.id, "INTERRUPTED")


def test_changes_are_announced_as_the_document_has_it_and_tasks_have_their_names(
    coordinator: ExecutionCoordinator, settings: Settings
) -> None:
    """S1-23: in the order of the specification's sample."""
    settings.LANGUAGE_CODE = "es"
    node = make_node()
    SnmpJob.objects.filter(id=node.job_id).update(name="GET Descripción")
    Olt.objects.update(name="OLT-CENTRAL-01")
    coordinator.run_pass(NOW)
    CoordinatorLog.objects.all().delete()
    WorkflowNode.objects.update(enabled=False)

    coordinator.run_pass(NOW + 5 * SECONDS)

    rows = CoordinatorLog.objects.order_by("id").values_list("level", "message")
    assert list(rows)[:2] == [
        ("INFO", "Cambios detectados en OLT-CENTRAL-01"),
        ("WARNING", "Tarea 'GET Descripción' removida del plan"),
    ]


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


def test_an_olt_that_falls_silent_and_comes_back_is_reported(coordinator: ExecutionCoordinator) -> None:
    node = make_node()
    olt = node.workflow.olt
    coordinator.run_pass(NOW)
    Olt.objects.update(reachability=Reachability.DOWN)
    assert news(coordinator, olt, NOW + 5 * SECONDS) == ["OLT_UNREACHABLE", "EMERGENCY_REPLAN"]

    Olt.objects.update(reachability=Reachability.UP)
    assert news(coordinator, olt, NOW + 10 * SECONDS) == ["OLT_BACK"]


def test_several_changes_at_once_are_all_handled(coordinator: ExecutionCoordinator) -> None:
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


def reported(event_type: str) -> list[dict[str, object]]:
    """Return the details of each entry of a kind."""
    entries = CoordinatorLog.objects.filter(event_type=event_type).order_by("id")
    assert all(entry.message for entry in entries)
    return [entry.details for entry in entries]


def holds(event_type: str, **wanted: object) -> bool:
    """Tell whether an entry of this kind has these details, among others."""
    return any(wanted.items() <= details.items() for details in reported(event_type))


def test_every_change_is_logged_with_what_it_was_about(coordinator: ExecutionCoordinator) -> None:
    """S1-05: tasks with their rhythm before and after, OLTs with their state, and the runs that were given up."""
    olt = make_olt()
    gone, faster = make_node(olt), make_node(olt, interval_seconds=900, next_run_at=NOW + 60 * SECONDS)
    coordinator.run_pass(NOW)
    assert holds("TASK_ADDED", node_id=gone.id, interval_seconds=300)
    assert holds("TASK_ADDED", node_id=faster.id, interval_seconds=900)

    start_all()
    WorkflowNode.objects.filter(id=gone.id).update(enabled=False)
    WorkflowNode.objects.filter(id=faster.id).update(interval_seconds=300)
    coordinator.run_pass(NOW + 5 * SECONDS)
    Olt.objects.update(reachability=Reachability.DOWN)
    coordinator.run_pass(NOW + 10 * SECONDS)
    Olt.objects.update(reachability=Reachability.UP, enabled=False)
    coordinator.run_pass(NOW + 15 * SECONDS)
    Olt.objects.update(enabled=True)
    coordinator.run_pass(NOW + 20 * SECONDS)

    aborted = Execution.objects.get()
    assert holds("TASK_REMOVED", node_id=gone.id)
    assert holds("TASK_MODIFIED", node_id=faster.id, interval_seconds=300, interval_before_seconds=900)
    assert holds("EXECUTION_ABORTED", execution=aborted.id, node_id=gone.id, slot=NOW.isoformat(), reason=aborted.error)
    assert holds("EMERGENCY_REPLAN", reason="olt_unreachable")
    assert [len(reported(kind)) for kind in ("OLT_UNREACHABLE", "OLT_BACK", "OLT_DISABLED", "OLT_ENABLED")] == [1] * 4


def test_every_plan_and_judgement_is_logged_with_its_figures(coordinator: ExecutionCoordinator) -> None:
    """S1-05: how many runs an hour has, that it will be missed, and that it was."""
    node = make_node(interval_seconds=900)
    hour = NOW.isoformat()
    coordinator.run_pass(NOW)
    assert holds("PLAN_CREATED", hour=hour, runs=4)

    WorkflowNode.objects.update(interval_seconds=1_800)
    coordinator.run_pass(NOW + 5 * SECONDS)
    assert holds("PLAN_ADJUSTED", hour=hour, runs=2)

    WorkflowNode.objects.update(suspended_at=NOW, suspend_reason="malformed")
    coordinator.run_pass(NOW + 65 * SECONDS)
    figures = {"completed": 0, "required": 2, "hour": hour}
    assert holds("QUOTA_WARNING", **figures)

    coordinator.run_pass(NOW + 3_600 * SECONDS)
    assert holds("QUOTA_VIOLATION", severity="CRITICAL", **figures)
    assert {entry.olt_id for entry in CoordinatorLog.objects.all()} == {node.workflow.olt_id}


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
def test_a_pass_over_unchanged_olts_costs_eleven_statements(coordinator: ExecutionCoordinator, later: int) -> None:
    for _ in range(40):
        make_node(next_run_at=NOW + 120 * SECONDS)
    coordinator.run_pass(NOW)
    coordinator.run_pass(NOW + 5 * SECONDS)

    with CaptureQueriesContext(connection) as captured:
        coordinator.run_pass(NOW + (5 + later) * SECONDS)

    statements = [query["sql"] for query in captured.captured_queries if "SAVEPOINT" not in query["sql"]]
    assert len(statements) <= 11, statements
