"""An OLT's first day as rows tell it: reads of ONUs wait for the first discovery, and begin when it is over."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

import pytest
from scheduler_world import World, play

from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.models import ExecutionPlan, QuotaTracker
from facho.executions import store as executions
from facho.executions.models import Execution, Origin
from facho.executions.runner import NodeRunner, Times
from facho.executions.store import ClaimRequest
from facho.hosts.models import Olt
from facho.infrastructure.gateway import ThreadGateway
from facho.onus.models import Onu
from facho.polling.domain.collection import Collected, CollectRequest, Failure, Rows, RunControl
from facho.polling.domain.execution_state import ExecutionState, FailureKind, QueryType
from facho.polling.domain.onu_presence import OnuIdentity, Walk
from facho.polling.domain.onu_state import OnuPlace
from facho.polling.domain.ports import ClockReading
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import SkippedSlot, SnmpJob, SnmpJobOid, WorkflowNode
from facho.zabbix_pollers import store
from facho.zabbix_pollers.explain import Situation, load_explanation, sentences
from factories import NOW, chain_to, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = timedelta(minutes=1)
LATER = NOW + 17 * MINUTE + timedelta(seconds=5.5)
ONE_ONU: Mapping[OnuPlace, OnuIdentity] = {(0, 1, 2, 3): OnuIdentity("HWTC00000001", "")}
BROKEN_OFF = Failure(FailureKind.MALFORMED, "not SNMP")


@pytest.fixture
def olt() -> Olt:
    return make_olt(discovered_at=None)


def discovery_on(olt: Olt, **fields: object) -> WorkflowNode:
    node = make_node(olt, make_job(query_type=QueryType.DISCOVERY, columns=("onu.serial",)))
    WorkflowNode.objects.filter(id=node.id).update(**{"next_run_at": NOW + 10 * MINUTE, **fields})
    return node


def reported(node: WorkflowNode) -> str:
    return " ".join(sentences(load_explanation(node.id, NOW)))


class _At:
    """A clock that stands still."""

    def now(self) -> object:
        return LATER

    def monotonic(self) -> float:
        return 1.0

    def reading(self) -> ClockReading:
        return ClockReading(1.0, 1.0, 1.0)


def run(node: WorkflowNode, collected: Collected) -> None:
    """Let the runner carry out the node and its chain, each with this outcome, and what follows an end."""
    kind = node.job.task_type
    wish = ClaimRequest(node.workflow.olt_id, kind, Origin.SCHEDULE, node_id=node.id, slot_at=NOW)
    [claimed] = executions.claim([wish], owner="engine/test", now=LATER)

    class Scripted:
        async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
            return collected if request.query_type is QueryType.DISCOVERY else Collected(was_heard=True)

    async def scene() -> None:
        database = ThreadGateway()
        steps = (store.end_first_discovery, store.save_node_ended)
        runner = NodeRunner(Scripted(), database, _At(), "engine/test", Times(60, 60), steps)  # type: ignore[arg-type]
        await runner.run(claimed.execution_id, claimed.token)
        await database.close()

    asyncio.run(scene())


def walked(olt: Olt, *, is_complete: bool = True, failure: Failure | None = None) -> Collected:
    """What a discovery brings that found one ONU."""
    walk = Walk(ONE_ONU, is_complete, frozenset({(0, 1, 2)}))
    return Collected(was_heard=True, failure=failure, rows=(Rows(walk=walk),))


# Who waits


def test_a_read_of_onus_does_not_start_before_the_first_discovery(olt: Olt) -> None:
    """S4-16: due, late, or asked for."""
    discovery_on(olt)
    due, asked = make_node(olt), make_node(olt, next_run_at=NOW + MINUTE)
    WorkflowNode.objects.filter(id=asked.id).update(run_requested_at=NOW)

    async def scene(world: World) -> None:
        assert await world.scheduler.tick() == 0

    play(scene)

    assert {load_explanation(node.id, NOW).situation for node in (due, asked)} == {Situation.AWAITS_DISCOVERY}


def test_what_is_about_the_olt_itself_does_not_wait(olt: Olt) -> None:
    make_node(olt, make_job(query_type=QueryType.TABLE, columns=("board.cpu",)))

    async def scene(world: World) -> None:
        assert await world.scheduler.tick() == 1

    play(scene)


def test_an_oid_that_is_a_column_of_onus_waits_like_the_column(olt: Olt) -> None:
    job = make_job(query_type=QueryType.WALK, columns=())
    node = make_node(olt, job)
    column = load_definitions()[olt.vendor].column("onu.description")
    SnmpJobOid.objects.create(job=job, oid=f".{format_oid(column.oid)}")

    assert load_explanation(node.id, NOW).situation is Situation.AWAITS_DISCOVERY


# What it says


def test_it_says_that_the_discovery_comes_first_and_when(olt: Olt) -> None:
    discovery, node = discovery_on(olt), make_node(olt)

    words = reported(node)

    assert "waits for the first complete discovery of its OLT; it runs right after that." in words
    assert f"The discovery is node {discovery.id}" in words
    assert "It is not due yet." in words
    assert load_explanation(node.id, NOW).runs_at == NOW + 10 * MINUTE


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (None, "This OLT has no discovery: put a discovery job on it."),
        ({"enabled": False}, "Enable the discovery, or no ONU of this OLT is read."),
        (
            {"suspended_at": NOW, "suspend_reason": "malformed"},
            "Find out why the discovery fails: until it succeeds, no ONU of this OLT is read.",
        ),
    ],
)
def test_it_says_what_to_do_when_no_discovery_is_coming(
    olt: Olt, fields: dict[str, object] | None, expected: str
) -> None:
    if fields is not None:
        discovery_on(olt, **fields)
    node = make_node(olt)

    assert expected in reported(node)


def test_a_member_of_another_chain_says_that_it_waits_too(olt: Olt) -> None:
    discovery = discovery_on(olt)
    master = make_node(olt, make_job(query_type=QueryType.TABLE, columns=("board.cpu",)))
    member, of_discovery = chain_to(master), chain_to(discovery)

    assert load_explanation(member.id, NOW).situation is Situation.AWAITS_DISCOVERY
    assert load_explanation(of_discovery.id, NOW).situation is Situation.CHAINED


# When it is over


def test_after_the_first_discovery_reads_begin_at_once_on_a_grid_of_their_own(olt: Olt) -> None:
    """S4-11. What came before was not owed, and the next slot is a whole interval later."""
    discovery = discovery_on(olt)
    late = make_node(olt, next_run_at=NOW + 2 * MINUTE)
    early = make_node(olt, interval_seconds=1800, next_run_at=NOW + 20 * MINUTE)

    run(discovery, walked(olt))

    second = LATER.replace(microsecond=0)
    late.refresh_from_db()
    early.refresh_from_db()
    assert (late.next_run_at, early.next_run_at) == (second, second)
    assert early.offset_seconds == second.timestamp() % 1800
    skipped = SkippedSlot.objects.values_list("node_id", "slot_at", "reason")
    assert set(skipped) >= {(late.id, NOW + minutes * MINUTE, "first_discovery") for minutes in (2, 5, 10, 15)}

    async def scene(world: World) -> None:
        world.clock.wall = LATER
        assert await world.scheduler.tick() == 1

    play(scene)
    assert {"first_discovery"} == set(SkippedSlot.objects.filter(node=late).values_list("reason", flat=True))


def test_a_second_discovery_moves_nobody(olt: Olt) -> None:
    discovery = discovery_on(olt)
    run(discovery, walked(olt))
    Execution.objects.all().delete()
    Olt.objects.update(discovered_at=NOW)
    node = make_node(olt, next_run_at=NOW + 30 * MINUTE)

    run(discovery, walked(olt))

    node.refresh_from_db()
    assert node.next_run_at == NOW + 30 * MINUTE


def test_a_discovery_that_broke_off_ends_no_waiting(olt: Olt) -> None:
    discovery, node = discovery_on(olt), make_node(olt)

    run(discovery, walked(olt, is_complete=False, failure=BROKEN_OFF))

    assert Onu.objects.exists()
    assert load_explanation(node.id, NOW).situation is Situation.AWAITS_DISCOVERY


def test_what_a_discovery_found_before_it_was_given_up_is_read(olt: Olt) -> None:
    discovery, node = discovery_on(olt), make_node(olt)
    SnmpJob.objects.update(max_attempts=1)

    run(discovery, walked(olt, is_complete=False, failure=BROKEN_OFF))

    discovery.refresh_from_db()
    assert discovery.suspended_at is not None
    assert load_explanation(node.id, LATER).situation is Situation.QUEUED


def test_a_discovery_that_was_given_up_without_an_onu_ends_no_waiting(olt: Olt) -> None:
    discovery, node = discovery_on(olt), make_node(olt)
    SnmpJob.objects.update(max_attempts=1)

    run(discovery, Collected(was_heard=True, failure=BROKEN_OFF))

    assert load_explanation(node.id, LATER).situation is Situation.AWAITS_DISCOVERY


@pytest.mark.parametrize(
    ("is_complete", "expected"),
    [(True, ("SUCCESS", "")), (False, ("SKIPPED", "noOnus"))],
)
def test_a_chain_member_that_reads_onus_needs_a_discovery_too(
    olt: Olt, is_complete: bool, expected: tuple[str, str]
) -> None:
    discovery = discovery_on(olt)
    member = chain_to(discovery)
    SnmpJob.objects.update(max_attempts=1)

    run(discovery, walked(olt, is_complete=is_complete, failure=None if is_complete else BROKEN_OFF))

    row = Execution.objects.get(node=member)
    assert (row.status, row.failure_kind) == expected


# What is owed


def passes(*moments: float) -> None:
    coordinator = ExecutionCoordinator()
    for minute in moments:
        coordinator.run_pass(NOW + minute * MINUTE)


def test_nothing_of_onus_is_owed_while_the_first_discovery_is_coming(olt: Olt) -> None:
    discovery, node = discovery_on(olt), make_node(olt)
    member = chain_to(discovery)

    passes(0, 12)

    kinds = set(QuotaTracker.objects.values_list("task_type", flat=True))
    assert kinds == {"discovery"}
    assert not {node.job.task_type, member.job.task_type} & kinds


def test_a_read_without_a_discovery_is_owed_and_missed(olt: Olt) -> None:
    """An OLT that nobody discovers is not green: the slots are skipped, with the reason."""
    node = make_node(olt)

    passes(0, 12)

    tracker = QuotaTracker.objects.get(task_type=node.job.task_type)
    assert (tracker.quota_required, tracker.quota_completed, tracker.quota_skipped) == (12, 0, 3)
    assert set(SkippedSlot.objects.values_list("reason", flat=True)) == {"no_discovery"}


def test_a_plan_names_reads_of_onus_only_after_the_first_discovery(olt: Olt) -> None:
    discovery, node = discovery_on(olt), make_node(olt)
    coordinator = ExecutionCoordinator()
    coordinator.run_pass(NOW)
    before = planned()

    run(discovery, walked(olt))
    coordinator.run_pass(LATER)

    assert node.id not in before
    assert node.id in planned()


def planned() -> set[int]:
    plans = ExecutionPlan.objects.filter(status="ACTIVE")
    return {entry["node_id"] for plan in plans for entry in plan.plan_data}


# Runs that have nothing to ask


def test_a_run_with_nothing_to_ask_is_no_success_and_counts_for_nothing() -> None:
    """A discovered OLT without an ONU: neither green nor violated."""
    olt = make_olt()
    job = make_job(query_type=QueryType.DISCOVERY)
    node = make_node(olt, job, interval_seconds=3600, next_run_at=NOW + 60 * MINUTE)

    run(node, Collected({"packets": 0, "onus": 0}, is_empty=True))

    execution = Execution.objects.get()
    assert (execution.status, execution.failure_kind) == (ExecutionState.SKIPPED, FailureKind.NO_ONUS)
    olt.refresh_from_db()
    assert (olt.consecutive_failures, olt.last_error) == (0, "")
    passes(20)
    assert not QuotaTracker.objects.exists()
