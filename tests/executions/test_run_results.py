"""The result of an execution covers all of its slices and tries."""

import pytest

from facho.executions import store
from facho.executions.models import Execution, Origin
from facho.executions.run import Ending, Run
from facho.executions.store import ClaimRequest
from facho.polling.domain.collection import Failure
from facho.polling.domain.execution_state import ExecutionState, FailureKind
from factories import NOW, claim_waiting, make_node

pytestmark = pytest.mark.django_db

PORT = {"frame": 0, "slot": 1, "port": 3}
DONE = Ending(ExecutionState.SUCCESS)


@pytest.fixture
def run() -> Run:
    node = make_node()
    request = ClaimRequest(node.workflow.olt_id, "get_x", Origin.SCHEDULE, node.id, poller_id=0, slot_at=NOW)
    [claimed] = store.claim([request], owner="engine/test", now=NOW)
    return take(claimed.execution_id, claimed.token)


def take(execution_id: int, token: int) -> Run:
    run = store.take(execution_id, token, owner="engine/test", now=NOW)
    assert run is not None
    return run


def go_on(run: Run) -> Run:
    [claimed] = claim_waiting(Execution.objects.get(id=run.execution_id))
    return take(claimed.execution_id, claimed.token)


def result() -> object:
    return Execution.objects.get().result


def test_slices_of_a_long_read_add_up_whoever_died_in_between(run: Run) -> None:
    gave_way = Ending(ExecutionState.WAITING, resume_at=NOW, cursor=PORT)

    store.close(run, gave_way, summary={"onus": 30, "packets": 9}, now=NOW)
    run = go_on(run)
    store.close(run, gave_way, summary={}, now=NOW)
    store.close(go_on(run), DONE, summary={"onus": 12, "packets": 4}, now=NOW)

    assert result() == {"onus": 42, "packets": 13}


def test_a_try_after_a_failed_one_counts_its_onus_anew(run: Run) -> None:
    failed = Ending(ExecutionState.WAITING, Failure(FailureKind.TIMEOUT, "silence"), resume_at=NOW)

    store.close(run, failed, summary={"onus": 30, "packets": 9}, now=NOW)
    store.close(go_on(run), DONE, summary={"onus": 42, "packets": 13}, now=NOW)

    assert result() == {"onus": 42, "packets": 22}
