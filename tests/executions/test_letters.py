"""To whom the message of a claimed execution is addressed: its task and its queue."""

import pytest

from api.rows import make_execution, make_node
from facho.executions.celery_executor import Letter, load_letters, queues_of
from facho.executions.models import Origin
from facho.polling.domain.execution_state import ExecutionState

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("origin", "attempt", "task", "queue"),
    [
        (Origin.SCHEDULE, 1, "execute_one", "snmp_default"),
        (Origin.MANUAL, 1, "execute_one", "snmp_highprio"),
        (Origin.SCHEDULE, 2, "execute_one_retry", "snmp_retry"),
        (Origin.MANUAL, 2, "execute_one_retry", "snmp_highprio"),
    ],
)
def test_a_run_goes_to_the_queue_of_its_kind(origin: Origin, attempt: int, task: str, queue: str) -> None:
    """S3-05, S3-15, S3-23: what a person asked for has the high-priority queue, another try that of retries."""
    run = make_execution(make_node(), ExecutionState.PENDING, origin=origin, attempt=attempt)

    assert load_letters([run.id]) == [Letter(run.id, f"snmp_jobs.tasks.{task}", queue)]
    assert queue in queues_of("")
