"""The messages of runs, and the scheduler's tick as a message; the worker of the Celery app does what they ask.

A message carries an execution's id and nothing else: the row decides.
"""

from typing import Any

from celery import shared_task


@shared_task(bind=True, name="snmp_jobs.tasks.execute_one")
def execute_one(task: Any, execution_id: int) -> None:
    """Carry out an execution that is handed out for its first try, or that gave way."""
    task.app.worker.run(execution_id)


@shared_task(bind=True, name="snmp_jobs.tasks.execute_one_retry")
def execute_one_retry(task: Any, execution_id: int) -> None:
    task.app.worker.run(execution_id)


@shared_task(bind=True, name="snmp_get.tasks.get_poller_task")
def get_poller_task(task: Any, execution_id: int) -> None:
    """Carry out the GET that a person waits for, such as the read of one ONU, with all its batches in this process."""
    task.app.worker.run(execution_id)


@shared_task(bind=True, name="hosts.tasks.probe_one")
def probe_one(task: Any, execution_id: int) -> None:
    task.app.worker.probe(execution_id)


@shared_task(bind=True, name="zabbix_pollers.tasks.zabbix_scheduler_loop_task")
def zabbix_scheduler_loop_task(task: Any) -> int:
    """Do one bounded tick under the leader's lease, and return how many nodes started: none next to a scheduler."""
    started: int = task.app.worker.tick()
    return started
