"""The coordinator's log tells of every execution that it started and how it ended: once, whoever looks and whenever."""

from collections import Counter
from datetime import datetime, timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import translation
from past_runs import add_run

from facho.execution_coordinator import logger as execution_coordinator_logger
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.logger import describe, log_executions
from facho.execution_coordinator.models import CoordinatorLog
from facho.executions.models import Execution, Origin
from facho.executions.store import ClaimRequest, claim, interrupt
from facho.infrastructure.statements import Select
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import SnmpJob
from facho.zabbix_pollers.store import release_orphans, renew_leadership
from factories import NOW, make_node, make_olt

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
EXECUTION = "EXECUTION_"


def entries(execution: Execution | None = None) -> list[CoordinatorLog]:
    rows = CoordinatorLog.objects.filter(event_type__startswith=EXECUTION).order_by("id")
    return [row for row in rows if execution is None or row.details["execution"] == execution.id]


def events(execution: Execution | None = None) -> list[tuple[str, str, datetime]]:
    return [(row.event_type.removeprefix(EXECUTION), row.level, row.timestamp) for row in entries(execution)]


@pytest.mark.parametrize(
    ("status", "event", "level"),
    [
        (ExecutionState.SUCCESS, "COMPLETED", "DEBUG"),
        (ExecutionState.FAILED, "FAILED", "ERROR"),
        (ExecutionState.INTERRUPTED, "ABORTED", "WARNING"),
    ],
)
def test_a_run_is_reported_by_its_start_and_its_end_when_they_happened(
    status: ExecutionState, event: str, level: str
) -> None:
    run = add_run(make_node(), NOW, status, seconds=7)

    ExecutionCoordinator().run_pass(NOW + 10 * SECOND)

    assert events(run) == [("STARTED", "DEBUG", NOW), (event, level, NOW + 7 * SECOND)]
    assert {row.olt_id for row in entries()} == {run.olt_id}


def test_a_run_under_way_has_started_and_ends_in_a_later_pass() -> None:
    coordinator = ExecutionCoordinator()
    run = add_run(make_node(), NOW, ExecutionState.RUNNING)
    coordinator.run_pass(NOW + 2 * SECOND)
    assert events(run) == [("STARTED", "DEBUG", NOW)]

    Execution.objects.filter(id=run.id).update(status=ExecutionState.SUCCESS, finished_at=NOW + 6 * SECOND)
    coordinator.run_pass(NOW + 7 * SECOND)

    assert events(run) == [("STARTED", "DEBUG", NOW), ("COMPLETED", "DEBUG", NOW + 6 * SECOND)]


def test_a_run_that_never_started_or_is_a_probe_or_was_skipped_has_no_start() -> None:
    node = make_node()
    pending = add_run(node, NOW, ExecutionState.PENDING)
    Execution.objects.filter(id=pending.id).update(started_at=None)
    skipped = add_run(make_node(), NOW, ExecutionState.SKIPPED)
    Execution.objects.filter(id=skipped.id).update(started_at=None)
    probe = add_run(make_node(), None, ExecutionState.SUCCESS)
    Execution.objects.filter(id=probe.id).update(origin=Origin.PROBE, node=None, task_type="probe")

    log_executions(None, NOW + 10 * SECOND)

    assert entries() == []


def test_it_is_reported_with_what_a_person_calls_the_job_and_why_it_failed() -> None:
    node = make_node()
    SnmpJob.objects.filter(id=node.job_id).update(name="GET Descripción")
    run = add_run(node, NOW, ExecutionState.FAILED, failure_kind="timeout")
    Execution.objects.update(error="no answer to 3 requests")

    log_executions(None, NOW + 10 * SECOND)

    started, failed = entries(run)
    shared = {"task_type": run.task_type, "task": "GET Descripción", "node_id": node.id, "execution": run.id}
    assert started.details == shared
    assert failed.details == {**shared, "reason": "no answer to 3 requests", "failure_kind": "timeout"}
    with translation.override("es"):
        assert describe(started.event_type, started.details) == "Ejecución de 'GET Descripción' iniciada"
        assert describe(failed.event_type, failed.details) == "Ejecución de 'GET Descripción' fallida: sin respuesta"


def test_a_completed_run_tells_how_long_it_took() -> None:
    run = add_run(make_node(), NOW, seconds=7)

    log_executions(None, NOW + 10 * SECOND)

    assert entries(run)[1].details["duration_ms"] == 7000


def test_it_is_reported_once_whoever_looks_and_however_often() -> None:
    """Another leader, the same one again, and one whose clock is behind or ahead."""
    run = add_run(make_node(), NOW)
    coordinator = ExecutionCoordinator()

    for seconds in (10, 15, 8, 100, 3600, 20):
        coordinator.run_pass(NOW + seconds * SECOND)
        ExecutionCoordinator().run_pass(NOW + seconds * SECOND)

    assert len(events(run)) == 2


@pytest.mark.django_db(transaction=True)
def test_it_is_reported_once_when_two_leaders_write_at_the_same_time() -> None:
    """One that was frozen comes back while its successor is at work."""
    renew_leadership("scheduler/1", now=NOW)
    node = make_node()
    runs = [add_run(node, NOW + number * SECOND) for number in range(200)]
    start = Barrier(4)

    def lead() -> None:
        start.wait(timeout=60)
        try:
            log_executions(None, NOW + 300 * SECOND)
        finally:
            connections.close_all()

    threads = [Thread(target=lead) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)

    assert Counter(row.details["execution"] for row in entries()) == Counter({run.id: 2 for run in runs})


def test_a_worker_whose_clock_is_behind_is_reported_once() -> None:
    """It starts before it was claimed, by what its clock says."""
    run = add_run(make_node(), NOW, seconds=5)
    Execution.objects.update(created_at=NOW + 8 * SECOND)

    for seconds in (10, 15, 20):
        log_executions(None, NOW + seconds * SECOND)

    assert events(run) == [("STARTED", "DEBUG", NOW + 8 * SECOND), ("COMPLETED", "DEBUG", NOW + 5 * SECOND)]


def test_nothing_is_missed_by_who_was_away_for_hours() -> None:
    """The last runs before a stop end after the last pass; the next leader comes hours later."""
    first = add_run(make_node(), NOW)
    log_executions(None, NOW + 10 * SECOND)
    missed = [add_run(first.node, NOW + number * SECOND) for number in (20, 30, 7000) if first.node]

    ExecutionCoordinator().run_pass(NOW + timedelta(hours=9))

    assert [len(events(run)) for run in missed] == [2, 2, 2]


def test_what_ended_just_before_the_last_look_and_was_seen_after_it_is_reported() -> None:
    """The transaction of another process may last, and its clock may be behind."""
    node = make_node()
    add_run(node, NOW + 90 * SECOND)
    log_executions(None, NOW + 100 * SECOND)
    late = add_run(node, NOW)

    log_executions(None, NOW + 105 * SECOND)

    assert len(events(late)) == 2


def test_a_killed_pass_leaves_whole_entries_and_the_next_one_writes_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_coordinator_logger, "BATCH", 2)
    monkeypatch.setattr(
        execution_coordinator_logger, "_UNLOGGED", Select(execution_coordinator_logger._select_unlogged)
    )
    node = make_node()
    runs = [add_run(node, NOW + number * SECOND, seconds=5) for number in range(5)]
    written: list[int] = []
    write = execution_coordinator_logger._write_to_file

    def die_in_the_second_batch(*reported: object) -> None:
        written.append(1)
        if len(written) == 6:
            raise KeyboardInterrupt
        write(*reported)  # type: ignore[arg-type]

    monkeypatch.setattr(execution_coordinator_logger, "_write_to_file", die_in_the_second_batch)
    with pytest.raises(KeyboardInterrupt):
        log_executions(None, NOW + 20 * SECOND)
    assert 0 < len(entries()) < 10

    ExecutionCoordinator().run_pass(NOW + timedelta(hours=5))

    assert [len(events(run)) for run in runs] == [2] * 5


def test_a_log_that_tells_of_no_run_yet_begins_with_the_last_hour() -> None:
    node = make_node()
    old = add_run(node, NOW - timedelta(hours=3))
    lately = add_run(node, NOW - timedelta(minutes=30))

    log_executions(None, NOW)

    assert (len(events(old)), len(events(lately))) == (0, 2)


def test_a_run_that_goes_on_after_a_pause_started_once() -> None:
    run = add_run(make_node(), NOW, ExecutionState.WAITING)
    Execution.objects.update(resume_at=NOW)
    log_executions(None, NOW + 5 * SECOND)

    Execution.objects.update(status=ExecutionState.RUNNING, started_at=NOW + 60 * SECOND, poller_id=0)
    log_executions(None, NOW + 65 * SECOND)

    assert events(run) == [("STARTED", "DEBUG", NOW)]


def test_the_file_has_what_went_wrong_and_not_every_run(caplog: pytest.LogCaptureFixture) -> None:
    node = make_node()
    add_run(node, NOW)
    add_run(node, NOW + SECOND, ExecutionState.FAILED)
    with caplog.at_level("DEBUG", logger="coordinator"):
        log_executions(None, NOW + 10 * SECOND)

    reported = [
        (record.levelname, str(record.msg)) for record in caplog.records if record.name.startswith("coordinator.")
    ]
    assert [level for level, _line in reported] == ["ERROR"]
    assert reported[0][1].endswith(f"({node.workflow.olt.name})")
    assert len(entries()) == 4


def break_off(*, has_slot: bool = True) -> Execution:
    node = make_node()
    olt_id = node.workflow.olt_id
    slot_at = NOW if has_slot else None
    request = ClaimRequest(olt_id, node.job.task_type, Origin.SCHEDULE, node_id=node.id, slot_at=slot_at)
    [claimed] = claim([request], owner="worker/1", now=NOW)
    release_orphans([claimed.execution_id], reason="no worker took it", now=NOW + 90 * SECOND)
    return Execution.objects.get(id=claimed.execution_id)


def test_a_run_that_nobody_took_has_lost_its_slot_and_both_logs_say_so(caplog: pytest.LogCaptureFixture) -> None:
    execution = break_off()

    ExecutionCoordinator().run_pass(NOW + 95 * SECOND)

    [entry] = entries()
    assert (entry.event_type, entry.level, entry.olt_id) == ("EXECUTION_ABORTED", "WARNING", execution.olt_id)
    assert entry.details == {
        "task_type": execution.task_type,
        "task": execution.node.job.name if execution.node else "",
        "slot": NOW.isoformat(),
        "reason": "no worker took it",
        "failure_kind": "internal",
        "node_id": execution.node_id,
        "execution": execution.id,
    }
    assert "aborted, its slot of 2026-03-01" in entry.message
    assert f"slot.lost olt={execution.olt_id} node={execution.node_id}" in caplog.text


def test_a_run_for_no_slot_is_aborted_and_loses_none(caplog: pytest.LogCaptureFixture) -> None:
    break_off(has_slot=False)

    log_executions(None, NOW + 95 * SECOND)

    [entry] = entries()
    assert entry.message.endswith("aborted: no worker took it")
    assert "slot.lost" not in caplog.text


def test_the_reasons_of_the_product_s_own_are_reported_in_spanish() -> None:
    run = add_run(make_node(), None, ExecutionState.RUNNING)
    interrupt([run.id], reason="its OLT was disabled", now=NOW + SECOND)

    log_executions(None, NOW + 5 * SECOND)

    with translation.override("es"):
        assert describe("EXECUTION_ABORTED", entries()[-1].details).endswith("abortada: su OLT fue deshabilitada")


def test_a_pass_costs_the_same_few_queries_however_many_runs_there_are() -> None:
    nodes = [make_node(make_olt()) for _ in range(3)]

    def queries(count: int, at: datetime) -> int:
        for number in range(count):
            add_run(nodes[number % 3], at + number * SECOND)
        with CaptureQueriesContext(connection) as captured:
            log_executions(None, at + timedelta(minutes=5))
        return len(captured)

    few, many = queries(2, NOW), queries(60, NOW + timedelta(hours=1))
    assert many <= few + 2
    assert many <= 8


def test_an_olt_that_hides_its_onus_is_logged_with_what_shows_them() -> None:
    run = add_run(make_node(), NOW, ExecutionState.FAILED, failure_kind="hiddenOnus")
    Execution.objects.update(error="the PON ports count 125 ONUs", result={"onus": 0, "counted_onus": 125})

    log_executions(None, NOW + 10 * SECOND)

    _, failed = entries(run)
    assert failed.details["counted_onus"] == 125
    with translation.override("en"):
        assert "Its PON ports count 125 ONUs, but its tables" in describe(failed.event_type, failed.details)
    with translation.override("es"):
        assert "Sus puertos PON cuentan 125 ONU, pero sus tablas" in describe(failed.event_type, failed.details)
