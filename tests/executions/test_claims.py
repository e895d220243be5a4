"""The claim: one active execution per OLT, decided by the database."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from facho.executions import store
from facho.executions.models import Execution, ExecutionAttempt, Origin
from facho.executions.run import Ending, Run
from facho.executions.store import Active, ClaimRequest, Renewal, open_next
from facho.polling.domain.collection import Failure
from facho.polling.domain.execution_state import TERMINAL, ExecutionState, FailureKind
from factories import NOW, chain_to, claim_waiting, make_node, make_olt

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(minutes=1)


def claim_olt(olt_id: int, **wishes: int) -> list[Active]:
    return store.claim([ClaimRequest(olt_id, "get_x", Origin.SCHEDULE, **wishes)], owner="engine/test", now=NOW)


def running(olt_id: int) -> Run:
    [claimed] = claim_olt(olt_id)
    run = store.take(claimed.execution_id, claimed.token, owner="engine/test", now=NOW)
    assert run is not None
    return run


def renew(run: Run) -> Renewal:
    """Renew one claim."""
    held = run.execution_id, run.token
    return store.renew([held])[held]


def test_the_database_refuses_a_second_active_execution_of_an_olt() -> None:
    """S0-02, S1-01, D7: whatever the code does, the constraint holds."""
    run = running(make_olt().id)

    with pytest.raises(IntegrityError), transaction.atomic():
        Execution.objects.create(
            olt_id=run.olt_id,
            address="127.0.0.9",
            port=161,
            task_type="x",
            status=ExecutionState.PENDING,
            token=99,
            created_at=NOW,
        )


def test_a_device_that_passed_to_another_olt_is_not_asked_before_the_first_is_done() -> None:
    """The promise is per device, whatever an operator edits meanwhile."""
    first = make_olt(port=1_161)
    run = running(first.id)
    type(first).objects.filter(id=first.id).update(port=1_162)
    second = make_olt(port=1_161)

    assert claim_olt(second.id) == []
    store.interrupt([run.execution_id], reason="test", now=NOW)
    assert len(claim_olt(second.id)) == 1


def test_a_run_is_asked_for_at_the_address_of_its_claim() -> None:
    olt = make_olt(port=1_161)
    [claimed] = claim_olt(olt.id)
    type(olt).objects.filter(id=olt.id).update(port=1_162)

    run = store.take(claimed.execution_id, claimed.token, owner="engine/test", now=NOW)

    assert run is not None
    assert (run.request.address, run.request.port) == ("127.0.0.1", 1_161)


def test_an_olt_that_was_deleted_is_not_claimed() -> None:
    assert claim_olt(999_999) == []


def test_of_two_claims_on_one_olt_one_wins() -> None:
    """S4-17: who lost asks again when the OLT is free, and needs nobody for it."""
    olt = make_olt()

    [first] = claim_olt(olt.id)
    assert claim_olt(olt.id) == []
    store.interrupt([first.execution_id], reason="test", now=NOW)
    assert len(claim_olt(olt.id)) == 1


def test_one_batch_claims_many_olts_and_skips_those_that_are_held() -> None:
    olts = [make_olt() for _ in range(3)]
    claim_olt(olts[1].id)

    won = store.claim([ClaimRequest(olt.id, "get_x", Origin.SCHEDULE) for olt in olts], owner="engine/test", now=NOW)

    assert [claimed.olt_id for claimed in won] == [olts[0].id, olts[2].id]


def test_a_slot_gets_one_execution_for_ever() -> None:
    """D2: at most one start per slot, also after the first one has ended."""
    node = make_node()
    request = ClaimRequest(node.workflow.olt_id, "get_x", Origin.SCHEDULE, node_id=node.id, slot_at=NOW)
    [claimed] = store.claim([request], owner="engine/test", now=NOW)
    store.interrupt([claimed.execution_id], reason="test", now=NOW)

    assert store.claim([request], owner="engine/test", now=NOW) == []


def test_a_poller_holds_one_execution() -> None:
    """S2-11."""
    assert claim_olt(make_olt().id, poller_id=3)
    assert claim_olt(make_olt().id, poller_id=3) == []


def test_tokens_of_an_olt_only_grow() -> None:
    olt = make_olt()
    first = running(olt.id)
    store.interrupt([first.execution_id], reason="test", now=NOW)

    assert running(olt.id).token > first.token


def test_a_pending_execution_is_taken_by_one_runner() -> None:
    """S2-05, S3-08: delivered twice, the second take changes nothing."""
    [claimed] = claim_olt(make_olt().id)

    assert store.take(claimed.execution_id, claimed.token, owner="a", now=NOW)
    assert store.take(claimed.execution_id, claimed.token, owner="b", now=NOW) is None
    assert Execution.objects.get().owner == "a"


def test_each_try_leaves_an_attempt_counted_from_one() -> None:
    """D18, S3-08."""
    run = running(make_olt().id)

    store.close(run, Ending(ExecutionState.FAILED, Failure(FailureKind.TIMEOUT, "silence")), summary={}, now=NOW)

    attempt = ExecutionAttempt.objects.get()
    assert (attempt.number, attempt.status, attempt.failure_kind) == (1, "FAILED", "timeout")


def test_a_late_result_is_refused() -> None:
    """D7: who lost the claim stores nothing."""
    run = running(make_olt().id)
    store.interrupt([run.execution_id], reason="its owner stopped renewing", now=NOW)

    assert not store.close(run, Ending(ExecutionState.SUCCESS), summary={}, now=NOW)
    assert Execution.objects.get().status == ExecutionState.INTERRUPTED


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_an_execution_that_is_over_stays_as_it_is(state: ExecutionState) -> None:
    """D9, S3-17: whoever still has its number and its token takes, renews, ends, resumes and cancels nothing."""
    run = running(make_olt().id)
    assert store.close(run, Ending(state), summary={}, now=NOW)
    before = Execution.objects.values().get()

    store.take(run.execution_id, run.token, owner="late", now=LATER)
    renew(run)
    store.close(run, Ending(ExecutionState.WAITING, resume_at=LATER), summary={}, now=LATER)
    store.interrupt([run.execution_id], reason="test", now=LATER)
    claim_waiting(Execution.objects.get(), now=LATER, poller_id=1)
    store.cancel(run.execution_id, now=LATER)

    assert Execution.objects.values().get() == before


def test_a_pending_execution_does_not_succeed_unseen() -> None:
    """Who was never handed it cannot have carried it out."""
    run = running(make_olt().id)
    Execution.objects.update(status=ExecutionState.PENDING)

    assert not store.close(run, Ending(ExecutionState.SUCCESS), summary={}, now=NOW)


def test_a_renewal_raises_the_counter_until_the_claim_is_lost() -> None:
    run = running(make_olt().id)

    assert renew(run) is Renewal.RENEWED
    assert [(active.execution_id, active.lease_counter) for active in store.load_active()] == [(run.execution_id, 2)]
    store.interrupt([run.execution_id], reason="test", now=NOW)
    assert renew(run) is Renewal.LOST


def test_disabling_an_olt_cancels_its_run_at_the_next_renewal() -> None:
    """D15: a running execution is cancelled cooperatively."""
    olt = make_olt()
    run = running(olt.id)
    type(olt).objects.filter(id=olt.id).update(enabled=False)

    assert renew(run) is Renewal.CANCELLED


def test_a_long_error_is_cut_to_its_column() -> None:
    """S3-14."""
    run = running(make_olt().id)

    store.close(run, Ending(ExecutionState.FAILED, Failure(FailureKind.LOOP, "x" * 5_000)), summary={}, now=NOW)

    assert len(Execution.objects.get().error) == 300


def take_node(node_id: int, olt_id: int) -> Run:
    [claimed] = store.claim(
        [ClaimRequest(olt_id, "get_x", Origin.SCHEDULE, node_id=node_id, poller_id=0, slot_at=NOW)],
        owner="engine/test",
        now=NOW,
    )
    run = store.take(claimed.execution_id, claimed.token, owner="engine/test", now=NOW)
    assert run is not None
    return run


def follow(run: Run, *, succeeded: bool = True) -> Run | None:
    garbage = Failure(FailureKind.MALFORMED, "not SNMP")
    ending = Ending(ExecutionState.SUCCESS) if succeeded else Ending(ExecutionState.FAILED, garbage)
    assert store.close(run, ending, summary={}, now=NOW)
    return open_next(run, ending, owner="engine/test", now=NOW)


def test_a_chain_runs_in_order_of_priority_then_id_and_skips_disabled_members() -> None:
    """S0-24, S0-27, S2-08, S2-12, S2-13, D1: same poller, linked to the master's execution."""
    master = make_node()
    last = chain_to(master, priority=60)
    first = chain_to(master, priority=10)
    chain_to(master, priority=20, enabled=False)
    run = take_node(master.id, master.workflow.olt_id)

    one = follow(run)
    assert one is not None
    two = follow(one)

    assert two is not None
    assert [one.node_id, two.node_id] == [first.id, last.id]
    assert follow(two) is None
    rows = Execution.objects.order_by("id")
    assert [row.chain_position for row in rows] == [0, 1, 2]
    assert [row.master_execution_id for row in rows] == [None, run.execution_id, run.execution_id]
    assert {row.poller_id for row in rows} == {0}
    assert {row.slot_at for row in rows} == {NOW}


def test_a_failed_master_is_followed_unless_the_member_wants_success() -> None:
    """S2-07."""
    master = make_node()
    chain_to(master, priority=10, on_success=True)
    always = chain_to(master, priority=20)

    following = follow(take_node(master.id, master.workflow.olt_id), succeeded=False)

    assert following is not None
    assert following.node_id == always.id
