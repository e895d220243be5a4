"""How long runs are expected to take: the median of the last ones, scaled to the ONUs of the OLT."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from past_runs import add_run
from remembered_runs import remember

from facho.execution_coordinator.feasibility import Length, load_lengths
from facho.hosts.models import Olt
from facho.onus.models import Onu, OnuReading, PonPort
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.snmp_jobs.models import WorkflowNode
from factories import NOW, chain_to, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db


def add_onus(olt: Olt, *, present: int, online: int, ports: int = 1, absent: int = 0) -> None:
    for number in range(present + absent):
        port, _ = PonPort.objects.get_or_create(olt=olt, frame=0, slot=0, port=number % ports)
        is_present = number < present
        onu = Onu.objects.create(
            olt=olt,
            pon_port=port,
            onu_id=number,
            first_seen_at=NOW,
            is_present=is_present,
            absent_since=None if is_present else NOW,
        )
        OnuReading.objects.create(onu=onu, run_state="online" if number < online else "offline")


def test_the_middle_of_the_last_runs_counts_and_failures_do_not() -> None:
    node = make_node()
    remember(node, 10, 12, 300, 11, 13)
    add_run(node, None, ExecutionState.FAILED, seconds=900)

    assert load_lengths() == {node.id: Length(12)}


def test_only_the_last_twenty_slots_count_however_long_ago_they_were() -> None:
    """Counted back from the last run: a weekend without polling forgets nothing."""
    node = make_node()
    remember(node, *[10] * 20, *[99] * 25)

    assert load_lengths() == {node.id: Length(10)}


def test_a_length_grows_with_the_onus_that_are_present() -> None:
    node = make_node()
    remember(node, 10, onus=5)
    add_onus(node.workflow.olt, present=8, online=2, absent=3)

    assert load_lengths()[node.id].seconds == 16


def test_a_live_read_grows_with_the_onus_that_are_online_and_may_give_way_at_each_port() -> None:
    node = make_node(job=make_job(columns=("onu.rx_power",)))
    remember(node, 10, onus=2)
    add_onus(node.workflow.olt, present=8, online=4, ports=3)

    assert load_lengths() == {node.id: Length(20, ports=3)}


def test_a_read_of_the_olt_itself_takes_as_long_as_before_however_many_onus_there_are() -> None:
    node = make_node(job=make_job(columns=("pon.status",)))
    remember(node, 10, onus=1)
    add_onus(node.workflow.olt, present=8, online=8)

    assert load_lengths()[node.id].seconds == 10


def test_a_node_that_never_ran_takes_as_long_as_its_job_elsewhere_scaled_by_the_onus() -> None:
    job = make_job()
    for seconds in (10, 12, 14):
        remember(make_node(job=job), seconds, onus=4)
    remember(make_node(make_olt(vendor="zte_c600_titan"), job), 500, onus=4)
    new, unknown = make_node(job=job), make_node(job=make_job())
    add_onus(new.workflow.olt, present=2, online=2)

    lengths = load_lengths([new.workflow.olt_id, unknown.workflow.olt_id])

    assert lengths == {new.id: Length(6), unknown.id: Length(None)}


def test_a_chain_member_is_remembered_at_the_pace_of_its_master() -> None:
    master = make_node(interval_seconds=3_600)
    member = chain_to(master)
    remember(member, *[7] * 10)
    WorkflowNode.objects.filter(id=member.id).update(interval_seconds=60)

    assert load_lengths()[member.id].seconds == 7


def test_lengths_cost_the_same_for_any_number_of_olts() -> None:
    job, fresh = make_job(), make_job(query_type=QueryType.WALK)

    def cost() -> int:
        olt = make_olt()
        remember(make_node(olt, job), 10)
        make_node(olt, fresh)
        with CaptureQueriesContext(connection) as asked:
            load_lengths()
        return len(asked)

    assert [cost() for _ in range(5)] == [6] * 5
