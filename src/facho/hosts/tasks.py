"""The message that hands a claimed probe to a worker that reaches the OLT."""

from celery import Task, shared_task

from facho.polling.domain.ports import worker_of


@shared_task(bind=True, name="hosts.tasks.probe_one")
def probe_one(task: "Task[[int], None]", execution_id: int) -> None:
    """Probe the OLT of the execution, and handle its answer or silence."""
    worker_of(task.app).probe(execution_id)
