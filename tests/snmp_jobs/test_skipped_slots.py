"""Slots that go by without a run are written down with their reason, by whoever moves the node past them."""

import re
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

import facho
from facho.executions.models import Execution
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import WaitReason
from facho.polling.domain.schedule import Span
from facho.snmp_jobs import store
from facho.snmp_jobs.job_form import carry_chain
from facho.snmp_jobs.models import Cadence, SkippedSlot, SnmpJob, WorkflowNode
from facho.snmp_jobs.store import owed_slots
from factories import NOW, chain_to, claim_nodes, make_node

pytestmark = pytest.mark.django_db

FIVE_MINUTES = timedelta(minutes=5)
SOURCES = Path(facho.__file__).parent


def skipped(node: WorkflowNode) -> list[tuple[datetime, str]]:
    return list(SkippedSlot.objects.filter(node=node).order_by("slot_at").values_list("slot_at", "reason"))


def claim(node: WorkflowNode, now: datetime, waited: WaitReason | None = None) -> None:
    """Start the node; its run ends at once."""
    claim_nodes([node], now=now, waited=waited)
    Execution.objects.update(status=ExecutionState.SUCCESS, finished_at=now)


def test_a_start_on_time_skips_nothing() -> None:
    node = make_node()

    claim(node, NOW + timedelta(seconds=4))

    assert skipped(node) == []


def test_a_late_start_serves_the_latest_slot_and_tells_why_the_others_went_by() -> None:
    node = make_node()

    claim(node, NOW + timedelta(minutes=11), WaitReason.OLT_BUSY)

    assert skipped(node) == [(NOW, "olt_busy"), (NOW + FIVE_MINUTES, "olt_busy")]


def test_nobody_saw_it_wait_because_nobody_polled() -> None:
    node = make_node()

    claim(node, NOW + FIVE_MINUTES)

    assert skipped(node) == [(NOW, "not_polling")]


def test_a_run_that_outlasts_its_interval_misses_its_own_slots() -> None:
    node = make_node()
    claim(node, NOW)

    store.save_ended(node.id, failures_in_a_row=0, now=NOW + timedelta(minutes=6))

    assert skipped(node) == [(NOW + FIVE_MINUTES, "own_run")]


def test_a_job_that_follows_its_own_end_misses_nothing_by_a_long_run() -> None:
    node = make_node()
    SnmpJob.objects.update(cadence=Cadence.FIXED_DELAY)
    claim(node, NOW)

    store.save_ended(node.id, failures_in_a_row=0, now=NOW + timedelta(minutes=6))

    assert skipped(node) == []


@pytest.mark.parametrize(("suspended_for", "reason"), [("unreachable", "olt_unreachable"), ("parse", "suspended")])
def test_slots_of_a_suspended_node_are_skipped_as_they_come(suspended_for: str, reason: str) -> None:
    node = make_node()
    store.suspend(WorkflowNode.objects.filter(id=node.id), reason=suspended_for, now=NOW - timedelta(seconds=9))

    for minute in range(7):
        store.pass_suspended(NOW + timedelta(minutes=minute))

    assert skipped(node) == [(NOW, reason), (NOW + FIVE_MINUTES, reason)]
    node.refresh_from_db()
    assert (node.slots_skipped, node.next_run_at) == (2, NOW + 2 * FIVE_MINUTES)


def test_a_chain_misses_what_its_master_misses() -> None:
    node = make_node()
    member, disabled = chain_to(node), chain_to(node, enabled=False)

    claim(node, NOW + FIVE_MINUTES)

    assert skipped(member) == skipped(node)
    assert skipped(disabled) == []


def test_a_week_without_polling_leaves_the_slots_of_two_hours_and_one_row_for_all_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = make_node(next_run_at=NOW - timedelta(days=7))
    member = chain_to(node)

    claim(node, NOW + timedelta(minutes=30))

    gap, *slots = SkippedSlot.objects.filter(node=node).order_by("slot_at")
    an_hour_ago = NOW - timedelta(hours=1)
    assert (gap.first_slot_at, gap.slot_at) == (NOW - timedelta(days=7), an_hour_ago - FIVE_MINUTES)
    assert (gap.reason, gap.count) == ("not_polling", 7 * 288 - 12)
    assert ([slot.count for slot in slots], slots[0].slot_at) == ([1] * 18, an_hour_ago)
    node.refresh_from_db()
    assert node.slots_skipped == 7 * 288 + 6 == gap.count + len(slots)
    assert skipped(member) == skipped(node)
    assert "slots.skipped_long_ago nodes=1 slots=2004" in caplog.text


def test_quotas_count_slots_and_not_the_row_of_a_gap() -> None:
    node = make_node(next_run_at=NOW - timedelta(days=7))
    claim(node, NOW + timedelta(minutes=30))

    assert owed_slots(Span(NOW - timedelta(days=8), NOW + timedelta(days=1))).count() == 18


def test_a_gap_in_hours_of_a_job_counts_only_slots_in_them(settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    node = make_node(next_run_at=NOW - timedelta(days=2, hours=11))
    SnmpJob.objects.update(hours_from=time(1), hours_to=time(2))

    claim(node, NOW)

    [gap] = SkippedSlot.objects.filter(node=node)
    assert (gap.count, gap.slot_at, gap.reason) == (36, NOW - timedelta(hours=10, minutes=5), "out_of_hours")


def test_what_had_come_when_a_task_was_disabled_is_reported() -> None:
    node = make_node()
    member = chain_to(node)

    store.take_off_grid(WorkflowNode.objects.all(), NOW + timedelta(minutes=6))

    assert skipped(node) == [(NOW, "rescheduled"), (NOW + FIVE_MINUTES, "rescheduled")] == skipped(member)
    node.refresh_from_db()
    assert (node.next_run_at, node.slots_skipped) == (None, 2)


def test_what_a_person_took_away_is_not_owed() -> None:
    make_node()
    store.take_off_grid(WorkflowNode.objects.all(), NOW)

    assert SkippedSlot.objects.exists()
    assert not owed_slots(Span(NOW, NOW + timedelta(hours=1))).exists()


def test_what_came_while_a_coordinator_looked_is_reported() -> None:
    """It asks for the time, and then finds a task disabled that was due in between."""
    node = make_node(next_run_at=NOW + timedelta(seconds=20))

    store.take_off_grid(WorkflowNode.objects.all(), NOW)

    assert skipped(node) == [(NOW + timedelta(seconds=20), "rescheduled")]


def test_a_task_that_was_not_due_is_disabled_without_a_trace() -> None:
    node = make_node(next_run_at=NOW + FIVE_MINUTES)

    store.take_off_grid(WorkflowNode.objects.all(), NOW)

    assert skipped(node) == []


def test_what_had_come_when_a_task_got_another_rhythm_is_reported() -> None:
    node = make_node()
    WorkflowNode.objects.update(interval_seconds=600)

    store.give_first_slots(WorkflowNode.objects.filter(id=node.id), NOW + timedelta(seconds=20))

    assert skipped(node) == [(NOW, "rescheduled")]
    node.refresh_from_db()
    assert node.next_run_at
    assert node.next_run_at >= NOW + timedelta(seconds=80)


def test_what_had_come_when_a_task_was_put_into_a_chain_is_reported() -> None:
    master = make_node()
    late = make_node(master.workflow.olt)
    late.job.master_job = master.job
    late.job.save()

    assert carry_chain([late.job], now=NOW) == 1

    assert skipped(late) == [(NOW, "rescheduled")]
    late.refresh_from_db()
    assert (late.master_node_id, late.next_run_at) == (master.id, None)


def test_a_slot_off_the_grid_that_comes_during_a_run_is_reported() -> None:
    """An interval was changed: the next run still stands where the old grid had it."""
    node = make_node(next_run_at=NOW + timedelta(minutes=3))

    store.save_ended(node.id, failures_in_a_row=0, now=NOW + timedelta(minutes=4))

    assert skipped(node) == [(NOW + timedelta(minutes=3), "own_run")]
    node.refresh_from_db()
    assert (node.slots_skipped, node.next_run_at) == (1, NOW + FIVE_MINUTES)


@pytest.mark.parametrize("is_of_everything", [True, False])
def test_what_went_by_in_a_pause_has_that_reason(*, is_of_everything: bool) -> None:
    node, other = make_node(), make_node()
    pause(None if is_of_everything else node.workflow.olt, minutes=6, note="", now=NOW)

    for late in (node, other):
        claim(late, NOW + timedelta(minutes=11))

    assert skipped(node) == [(NOW, "paused"), (NOW + FIVE_MINUTES, "paused")]
    assert (skipped(other) == skipped(node)) is is_of_everything


def test_only_the_claim_and_the_store_of_nodes_move_them() -> None:
    """Who writes a next run elsewhere passes slots in silence."""
    write = re.compile(r"\.next_run_at\s*=[^=]|update\([^)]*next_run_at=|\bnext_run_at=Given\(")
    sources = [path for path in SOURCES.rglob("*.py") if not {"migrations", "domain"} & set(path.parts)]

    moving = {str(path.relative_to(SOURCES)) for path in sources if write.search(path.read_text())}
    assert moving == {"snmp_jobs/store.py", "zabbix_pollers/store.py"}


def test_a_slot_is_written_down_once() -> None:
    node = make_node()
    claim(node, NOW + FIVE_MINUTES)
    WorkflowNode.objects.update(next_run_at=NOW)

    claim(node, NOW + FIVE_MINUTES)

    assert len(skipped(node)) == 1
