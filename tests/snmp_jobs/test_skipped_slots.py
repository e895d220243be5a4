"""Slots that go by without a run are written down with their reason, by whoever moves the node past them."""

from datetime import datetime, timedelta

import pytest

from facho.polling.domain.quota import SkipReason
from facho.snmp_jobs import store
from facho.snmp_jobs.models import Cadence, SkippedSlot, SnmpJob, WorkflowNode
from factories import NOW, chain_to, make_node

pytestmark = pytest.mark.django_db

FIVE_MINUTES = timedelta(minutes=5)


def skipped(node: WorkflowNode) -> list[tuple[datetime, str]]:
    return list(SkippedSlot.objects.filter(node=node).order_by("slot_at").values_list("slot_at", "reason"))


def claim(node: WorkflowNode, now: datetime, waited: dict[int, SkipReason] | None = None) -> None:
    store.save_claimed(store.load_schedules([node.id], now), waited or {}, now=now)


def test_a_start_on_time_skips_nothing() -> None:
    node = make_node()

    claim(node, NOW + timedelta(seconds=4))

    assert skipped(node) == []


def test_a_late_start_serves_the_latest_slot_and_tells_why_the_others_went_by() -> None:
    node = make_node()

    claim(node, NOW + timedelta(minutes=11), {node.id: SkipReason.OLT_BUSY})

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


def test_a_week_without_polling_leaves_the_slots_of_two_hours() -> None:
    node = make_node(next_run_at=NOW - timedelta(days=7))

    claim(node, NOW + timedelta(minutes=30))

    slots = [slot for slot, _ in skipped(node)]
    assert (min(slots), len(slots)) == (NOW - timedelta(hours=1), 18)
    node.refresh_from_db()
    assert node.slots_skipped == 7 * 288 + 6


def test_a_slot_is_written_down_once() -> None:
    node = make_node()
    claim(node, NOW + FIVE_MINUTES)
    WorkflowNode.objects.update(next_run_at=NOW)

    claim(node, NOW + FIVE_MINUTES)

    assert len(skipped(node)) == 1
