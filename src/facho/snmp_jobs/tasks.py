"""The messages that hand a claimed execution to a worker. They carry its id and nothing else: the row decides."""

from celery import Task, shared_task

from facho.polling.domain.ports import worker_of


@shared_task(bind=True, name="snmp_jobs.tasks.execute_one")
def execute_one(task: "Task[[int], None]", execution_id: int) -> None:
    """Carry out an execution that is handed out for its first try, or that gave way."""
    worker_of(task.app).run(execution_id)


@shared_task(bind=True, name="snmp_jobs.tasks.execute_one_retry")
def execute_one_retry(task: "Task[[int], None]", execution_id: int) -> None:
    """Carry out an execution that is handed out for another try."""
    worker_of(task.app).run(execution_id)


@shared_task(bind=True, name="hosts.tasks.probe_one")
def probe_one(task: "Task[[int], None]", execution_id: int) -> None:
    """Probe the OLT of the execution, and handle its answer or silence."""
    worker_of(task.app).probe(execution_id)
