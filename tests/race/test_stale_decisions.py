"""Between a look at the database and the act that follows, others act: what was decided holds only if it still fits."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from facho.executions import store as executions
from facho.executions.models import Execution
from facho.executions.store import Renewal, load_unfinished
from facho.hosts.models import Olt
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import Assignment
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import SkippedSlot, WorkflowNode
from facho.snmp_jobs.store import put_all_on_grid, request_run
from facho.zabbix_pollers.store import claim_assignments, end_dead_tries, release_as_seen, save_poller_count
from factories import NOW, make_node

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(seconds=5)


def plan() -> list[Assignment]:
    """Decide what to start, as a scheduler does that is about to be overtaken."""
    return [Assignment(node, poller_id) for poller_id, node in enumerate(load_due_nodes(NOW))]


def start(assignments: list[Assignment]) -> int:
    save_poller_count(3)
    return len(claim_assignments(assignments, owner="engine/test", now=NOW))


def take_only() -> Execution:
    execution = Execution.objects.get()
    assert executions.take(execution.id, execution.token, owner="engine/test", now=NOW)
    return execution


def test_an_owner_that_renews_after_the_look_keeps_its_claim() -> None:
    """Otherwise it would go on sending beside its successor."""
    make_node()
    start(plan())
    run = take_only()
    seen_as_dead = executions.load_active()
    assert executions.renew([(run.id, run.token)]) == {(run.id, run.token): Renewal.RENEWED}

    assert end_dead_tries(seen_as_dead, reason="its owner stopped renewing", now=LATER) == 0

    assert Execution.objects.get().status == ExecutionState.RUNNING


def test_an_owner_that_was_ended_first_learns_it_at_its_next_renewal() -> None:
    make_node()
    start(plan())
    run = take_only()

    assert end_dead_tries(executions.load_active(), reason="its owner stopped renewing", now=LATER) == 1

    assert executions.renew([(run.id, run.token)]) == {(run.id, run.token): Renewal.LOST}


def test_a_claim_that_is_taken_after_the_look_is_neither_given_up_nor_cancelled() -> None:
    """Its runner may be sending already: it is asked to stop, not ended."""
    make_node()
    start(plan())
    seen_as_pending = executions.load_active()
    take_only()

    assert release_as_seen(seen_as_pending, reason="no worker took it", now=LATER) == 0

    assert Execution.objects.get().status == ExecutionState.RUNNING


def test_a_plan_older_than_the_whole_run_of_another_scheduler_starts_nothing() -> None:
    """At most one start per slot, however late a scheduler acts."""
    make_node()
    late = plan()
    start(plan())
    end_dead_tries([take_and_load()], reason="its owner stopped renewing", now=LATER)

    assert start(late) == 0

    assert Execution.objects.count() == 1


def test_a_wish_that_another_scheduler_has_granted_is_not_granted_twice() -> None:
    node = make_node(next_run_at=NOW + timedelta(hours=1))
    request_run(node.id, now=NOW)
    late = plan()
    start(plan())
    end_dead_tries([take_and_load()], reason="its owner stopped renewing", now=LATER)

    assert start(late) == 0


def take_and_load() -> executions.Active:
    take_only()
    [active] = executions.load_active()
    return active


def disable_node() -> None:
    WorkflowNode.objects.update(enabled=False)


def suspend_node() -> None:
    WorkflowNode.objects.update(suspended_at=NOW, suspend_reason="timeout")


def disable_olt() -> None:
    Olt.objects.update(enabled=False)


def pause_everything() -> None:
    pause(None, minutes=10, note="", now=NOW)


CHANGES = [disable_node, suspend_node, disable_olt, pause_everything]


@pytest.mark.parametrize("change", CHANGES)
def test_what_may_no_longer_run_does_not_start_although_it_was_planned(change: Callable[[], None]) -> None:
    make_node()
    planned = plan()
    change()

    assert start(planned) == 0


@pytest.mark.parametrize("change", CHANGES)
def test_what_may_no_longer_run_does_not_go_on_although_it_was_planned(change: Callable[[], None]) -> None:
    """The same for an execution that waited."""
    make_node(interval_seconds=3_600)
    start(plan())
    end_dead_tries([take_and_load()], reason="its owner stopped renewing", now=NOW)
    [waiting] = load_unfinished(NOW + timedelta(minutes=2)).waiting
    change()

    assert start([Assignment(waiting, 0)]) == 0

    assert Execution.objects.get().status == ExecutionState.WAITING


def interrupted_by(act: Callable[[], object], *, at: str, table: str) -> AbstractContextManager[None]:
    """Let somebody else act right after the first statement of this kind on the table."""
    left = [act]

    def after(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        if left and sql.startswith(at) and f'"{table}"' in sql:
            left.pop()()
        return answer

    return connection.execute_wrapper(after)


def test_a_slot_that_is_skipped_while_it_is_being_claimed_does_not_start() -> None:
    """What is still due starts in the next tick; a slot is served or skipped, never both."""
    make_node()
    planned = plan()

    with interrupted_by(lambda: put_all_on_grid(NOW), at="INSERT", table=Execution._meta.db_table):
        started = start(planned)

    assert started == 0
    assert not Execution.objects.exists()


def test_a_wish_is_granted_although_its_node_is_moved_meanwhile() -> None:
    """A run by hand serves no slot: it leaves the schedule to whoever changes it."""
    node = make_node(next_run_at=NOW + timedelta(hours=1))
    request_run(node.id, now=NOW)
    planned = plan()

    with interrupted_by(lambda: put_all_on_grid(NOW), at="INSERT", table=Execution._meta.db_table):
        started = start(planned)

    node.refresh_from_db()
    assert started == 1
    assert (node.next_run_at, node.run_requested_at) == (NOW + timedelta(minutes=5), None)


def test_a_slot_that_is_claimed_while_its_node_is_put_on_its_grid_is_not_skipped() -> None:
    node = make_node(next_run_at=NOW - timedelta(minutes=10))
    planned = plan()

    with interrupted_by(lambda: start(planned), at="SELECT", table=WorkflowNode._meta.db_table):
        put_all_on_grid(NOW)

    node.refresh_from_db()
    assert node.slots_skipped == SkippedSlot.objects.count() == 2
    assert Execution.objects.get().slot_at == NOW
    assert not SkippedSlot.objects.filter(slot_at=NOW).exists()
