"""The runner: whatever happens to a run, its OLT is let go and its chain obeys the outcome."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from facho.executions import runner, store
from facho.executions.models import Execution, ExecutionAttempt, Origin
from facho.executions.runner import Claim, NodeRunner, Times
from facho.executions.store import ClaimRequest
from facho.hosts.models import LearnedSize
from facho.infrastructure.gateway import SystemClock, ThreadGateway
from facho.polling.domain.collection import Collected, Collector, CollectRequest, Failure, Rows, RunControl, RunProgress
from facho.polling.domain.execution_state import ExecutionState, FailureKind
from facho.polling.snmp.errors import OwnershipUnproven
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, WorkflowNode
from factories import NOW, chain_to, make_node

pytestmark = pytest.mark.django_db(transaction=True)

SILENCE = Collected(failure=Failure(FailureKind.TIMEOUT, "no answer"))
GARBAGE = Collected(failure=Failure(FailureKind.MALFORMED, "not SNMP"), was_heard=True)


@dataclass
class Scripted:
    """A collector that does what a test says, one step for each node it is asked for."""

    steps: list[Callable[[RunControl], Collected]]
    asked: list[int] = field(default_factory=list)

    async def collect(self, request: CollectRequest, permit: RunControl) -> Collected:
        self.asked.append(request.olt_id)
        return self.steps.pop(0)(permit)


@dataclass
class Patient:
    """A collector that sends for ever, until its permit ends."""

    async def collect(self, request: CollectRequest, permit: RunControl) -> Collected:
        while True:
            try:
                permit.check()
            except OwnershipUnproven:
                # On a busy machine a short lease may be over before it is renewed.
                await permit.confirm()
            await asyncio.sleep(0)


def run_node(node: WorkflowNode, collector: Collector, *, lease_seconds: float = 60) -> None:
    # One try, so that a failed run is over.
    SnmpJob.objects.update(max_attempts=1)
    [claimed] = store.claim(
        [ClaimRequest(node.workflow.olt_id, "get_x", Origin.SCHEDULE, node_id=node.id, poller_id=0, slot_at=NOW)],
        owner="engine/test",
        now=NOW,
    )

    async def run() -> None:
        database = ThreadGateway()
        times = Times(lease_seconds, yield_after_seconds=60)
        runs = NodeRunner(collector, database, SystemClock(), "engine/test", times, finishing_steps=())
        await runs.run(claimed.execution_id, claimed.token)
        await database.close()

    asyncio.run(run())


def states() -> list[str]:
    return list(Execution.objects.order_by("id").values_list("status", flat=True))


@pytest.mark.parametrize(
    ("outcome", "end"), [(Collected(was_heard=True), ExecutionState.SUCCESS), (GARBAGE, ExecutionState.FAILED)]
)
def test_a_run_goes_from_pending_over_running_to_its_end(outcome: Collected, end: ExecutionState) -> None:
    """S3-17: the states of the specification, in its order."""
    seen: list[str] = []

    def look(_permit: RunControl) -> Collected:
        seen.extend(states())
        return outcome

    node = make_node()
    [claimed] = store.claim([ClaimRequest(node.workflow.olt_id, "get_x", Origin.SCHEDULE)], owner="x", now=NOW)
    seen.extend(states())
    store.interrupt([claimed.execution_id], reason="test", now=NOW)
    Execution.objects.all().delete()
    run_node(node, _in_thread(look))
    seen.extend(states())

    assert seen == ["PENDING", "RUNNING", end]


def test_a_run_stores_its_rows_in_the_finishing_transaction() -> None:
    """S3-10, S3-11: and what it was all in all in its execution."""
    node = make_node()
    found = Collected({"onus": 3}, was_heard=True, rows=(Rows(learned_sizes={"found": 25}),))

    run_node(node, Scripted([lambda permit: found]))

    assert states() == [ExecutionState.SUCCESS]
    assert Execution.objects.get().result == {"onus": 3}
    assert LearnedSize.objects.filter(subject="found", rows=25).exists()


@dataclass
class HandingOver:
    """A collector that hands rows over and then fails; before that it does what a test says."""

    before: Callable[[], object] = lambda: None

    async def collect(self, request: CollectRequest, permit: RunControl) -> Collected:
        database = ThreadGateway(1)
        try:
            await database.run(self.before)
            permit.show(RunProgress(3, 5))
            await permit.hand_over(Rows(learned_sizes={"part": 25}))
            while not await database.run(Execution.objects.exclude(progress=None).exists):  # noqa: ASYNC110 the database tells nobody
                await asyncio.sleep(0)
        finally:
            await database.close()
        raise ZeroDivisionError


def test_rows_that_were_handed_over_outlive_their_run() -> None:
    run_node(make_node(), HandingOver())

    assert states() == [ExecutionState.FAILED]
    assert LearnedSize.objects.filter(subject="part", rows=25).exists()
    assert Execution.objects.get().progress == {"rows": 3, "rows_in_all": 5, "ports": 0, "ports_in_all": 0}


def test_who_lost_its_claim_hands_nothing_over() -> None:
    def end() -> None:
        store.interrupt(Execution.objects.values_list("id", flat=True), reason="test", now=NOW)

    run_node(make_node(), HandingOver(before=end))

    assert states() == [ExecutionState.INTERRUPTED]
    assert not LearnedSize.objects.exists()


def test_a_short_run_hands_nothing_over() -> None:
    def look(permit: RunControl) -> Collected:
        wanted.append(permit.wants_rows())
        return Collected(was_heard=True)

    wanted: list[bool] = []

    run_node(make_node(), Scripted([look]))

    assert wanted == [False]


@dataclass
class Watched:
    """A collector that takes note of how often its control wants rows."""

    seconds: float = 0.0

    async def collect(self, request: CollectRequest, permit: RunControl) -> Collected:
        assert isinstance(permit, Claim)
        self.seconds = permit.hand_over_seconds
        return Collected(was_heard=True)


@pytest.mark.parametrize(
    ("last_run_at", "seconds"), [(None, runner.FIRST_HAND_OVER_SECONDS), (NOW, runner.HAND_OVER_SECONDS)]
)
def test_what_the_first_run_of_a_node_reads_is_there_port_by_port(last_run_at: datetime | None, seconds: float) -> None:
    node = make_node()
    WorkflowNode.objects.update(last_run_at=last_run_at)
    # A node without anything to read has no request of its own.
    SnmpJobOid.objects.get_or_create(job=node.job, column_key="onu.rx_power")
    watched = Watched()

    run_node(node, watched)

    assert watched.seconds == seconds


class Showing:
    """A collector that shows how far it has come, and waits until it is written."""

    async def collect(self, request: CollectRequest, permit: RunControl) -> Collected:
        database = ThreadGateway(1)
        try:
            for rows in (3, 4):
                permit.show(RunProgress(rows, 5))
                written = Execution.objects.filter(progress__rows=rows)
                # Renewals alone would write it twenty seconds later.
                async with asyncio.timeout(10):
                    while not await database.run(written.exists):  # noqa: ASYNC110 the database tells nobody
                        await asyncio.sleep(0)
        finally:
            await database.close()
        return Collected(was_heard=True)


def test_how_far_a_run_has_come_is_written_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "PROGRESS_SECONDS", 0.01)

    run_node(make_node(), Showing())

    assert states() == [ExecutionState.SUCCESS]


def test_a_collector_that_crashes_fails_its_run_and_frees_the_olt() -> None:
    """S3-13: released in every outcome."""

    def crash(permit: RunControl) -> Collected:
        raise ZeroDivisionError

    run_node(make_node(), Scripted([crash]))

    execution = Execution.objects.get()
    assert (execution.status, execution.failure_kind) == (ExecutionState.FAILED, FailureKind.INTERNAL)
    assert execution.error == "ZeroDivisionError"
    assert store.load_busy_olts() == set()


def test_a_store_that_fails_keeps_nothing_of_the_run_and_fails_it() -> None:
    """S3-11: all of a run's data or none, and the OLT is free at once."""
    half = Rows(learned_sizes={"half": 25, "no size": None})  # type: ignore[dict-item]  # the database refuses it

    run_node(make_node(), Scripted([lambda permit: Collected(rows=(half,))]))

    execution = Execution.objects.get()
    assert (execution.status, execution.failure_kind) == (ExecutionState.FAILED, FailureKind.INTERNAL)
    assert not LearnedSize.objects.exists()


def test_a_chain_follows_a_failed_master() -> None:
    """S2-07."""
    master = make_node()
    chain_to(master)

    run_node(master, Scripted([lambda permit: GARBAGE, lambda permit: Collected(was_heard=True)]))

    assert states() == [ExecutionState.FAILED, ExecutionState.SUCCESS]


def test_a_chain_is_not_asked_of_an_olt_that_is_silent() -> None:
    """D14: the members are recorded as skipped."""
    master = make_node()
    chain_to(master)
    collector = Scripted([lambda permit: SILENCE])

    run_node(master, collector)

    assert states() == [ExecutionState.FAILED, ExecutionState.SKIPPED]
    assert len(collector.asked) == 1


def test_on_success_asks_about_the_master_and_not_about_the_member_before() -> None:
    """D14: what may not run is recorded."""
    master = make_node()
    chain_to(master, priority=10)
    chain_to(master, priority=20, on_success=True)

    run_node(master, Scripted([lambda permit: GARBAGE, lambda permit: Collected(was_heard=True)]))

    assert states() == [ExecutionState.FAILED, ExecutionState.SUCCESS, ExecutionState.SKIPPED]
    assert list(Execution.objects.order_by("id").values_list("chain_position", flat=True)) == [0, 1, 2]


def test_a_failed_member_keeps_no_other_from_running() -> None:
    master = make_node()
    chain_to(master, priority=10)
    chain_to(master, priority=20, on_success=True)
    good = Collected(was_heard=True)

    run_node(master, Scripted([lambda permit: good, lambda permit: GARBAGE, lambda permit: good]))

    assert states() == [ExecutionState.SUCCESS, ExecutionState.FAILED, ExecutionState.SUCCESS]


def test_an_error_that_the_olt_sent_is_no_silence() -> None:
    """The chain is asked all the same: the OLT answers."""
    refused = Collected(failure=Failure(FailureKind.REFUSED, "genErr"), was_heard=True)
    master = make_node()
    chain_to(master)

    run_node(master, Scripted([lambda permit: refused, lambda permit: Collected(was_heard=True)]))

    assert states() == [ExecutionState.FAILED, ExecutionState.SUCCESS]


def test_a_run_whose_claim_was_taken_sends_nothing_more_and_stores_nothing() -> None:
    """The permit ends before the next packet, and the late result is refused."""

    def lose(permit: RunControl) -> Collected:
        store.interrupt([Execution.objects.get().id], reason="its owner stopped renewing", now=NOW)
        return Collected(rows=(Rows(learned_sizes={"late": 25}),))

    run_node(make_node(), _in_thread(lose))

    assert states() == [ExecutionState.INTERRUPTED]
    assert not LearnedSize.objects.exists()


def test_a_cancelled_run_ends_before_its_next_packet() -> None:
    """An OLT that is disabled is left alone at the next renewal."""
    node = make_node()
    type(node.workflow.olt).objects.update(enabled=False)

    run_node(node, Patient(), lease_seconds=3)

    execution = Execution.objects.get()
    assert (execution.status, execution.failure_kind) == (ExecutionState.INTERRUPTED, FailureKind.CANCELLED)


def test_an_execution_that_someone_else_took_is_left_alone() -> None:
    """A message delivered twice does nothing the second time."""
    node = make_node()
    run_node(node, Scripted([lambda permit: Collected()]))
    first = Execution.objects.get()

    async def again() -> None:
        database = ThreadGateway()
        runner = NodeRunner(Scripted([]), database, SystemClock(), "engine/other", Times(60, 60), finishing_steps=())
        await runner.run(first.id, first.token)
        await database.close()

    asyncio.run(again())

    assert states() == [ExecutionState.SUCCESS]
    assert ExecutionAttempt.objects.count() == 1


def _in_thread(step: Callable[[RunControl], Collected]) -> "Scripted":
    """Let a step use the database although it is called on the event loop."""

    class Threaded(Scripted):
        async def collect(self, request: CollectRequest, permit: RunControl) -> Collected:
            database = ThreadGateway()
            try:
                return await database.run(self.steps.pop(0), permit)
            finally:
                await database.close()

    return Threaded([step])
