"""The message of a GET on its own, such as the read of one ONU that a person waits for."""

from celery import Task, shared_task

from facho.polling.domain.ports import worker_of


@shared_task(bind=True, name="snmp_get.tasks.get_poller_task")
def get_poller_task(task: "Task[[int], None]", execution_id: int) -> None:
    """Carry out the GET with all its batches in this process: batches never become messages, nor take pollers."""
    worker_of(task.app).run(execution_id)
