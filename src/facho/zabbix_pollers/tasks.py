"""The scheduler's tick as a message; with a scheduler process alive it finds nothing to do."""

from celery import Task, shared_task

from facho.polling.domain.ports import worker_of


@shared_task(bind=True, name="zabbix_pollers.tasks.zabbix_scheduler_loop_task")
def zabbix_scheduler_loop_task(task: "Task[[], int]") -> int:
    """Do one bounded tick under the leader's lease, and return how many nodes started."""
    return worker_of(task.app).tick()
