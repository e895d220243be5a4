"""The message by which a GET is carried out on its own: all its batches in the process that receives it."""

from celery import Task, shared_task

from facho.polling.domain.worker import worker_of


@shared_task(bind=True, name="snmp_get.tasks.get_poller_task")
def get_poller_task(task: "Task[[int], None]", execution_id: int) -> None:
    """Carry out the execution of a GET; its batches never become messages."""
    worker_of(task.app).run(execution_id)
