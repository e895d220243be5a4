"""The messages of the distributed mode, each with what a worker does when it arrives.

A message carries an execution's id and nothing else: the row decides. What beat sends repeats what the leader does by
itself.
"""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from facho.core.processes.celery_app import app
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.models import CoordinatorLog

LOGS_DELETED_AT_ONCE = 1_000


@app.task(name="snmp_jobs.tasks.execute_one")
def execute_one(execution_id: int) -> None:
    """Carry out an execution that is handed out for its first try, or that gave way."""
    app.worker.run(execution_id)


@app.task(name="snmp_jobs.tasks.execute_one_retry")
def execute_one_retry(execution_id: int) -> None:
    app.worker.run(execution_id)


@app.task(name="snmp_get.tasks.get_poller_task")
def get_poller_task(execution_id: int) -> None:
    """Carry out the GET that a person waits for, such as the read of one ONU, with all its batches in this process."""
    app.worker.run(execution_id)


@app.task(name="hosts.tasks.probe_one")
def probe_one(execution_id: int) -> None:
    app.worker.probe(execution_id)


@app.task(name="zabbix_pollers.tasks.zabbix_scheduler_loop_task")
def zabbix_scheduler_loop_task() -> int:
    """Do one bounded tick under the leader's lease, and return how many nodes started."""
    return app.worker.tick()


@app.task(name="execution_coordinator.tasks.coordinator_loop_task")
def coordinator_loop_task() -> bool:
    """Look once at changes, quotas and plans, unless another process leads."""
    return app.worker.as_leader(ExecutionCoordinator().run_pass)


@app.task(name="execution_coordinator.tasks.check_quota_violations_task")
def check_quota_violations_task() -> bool:
    """Count all quotas and raise what fell short, unless another process leads."""
    return app.worker.as_leader(ExecutionCoordinator().run_pass)


@app.task(name="execution_coordinator.tasks.cleanup_old_coordinator_logs_task")
def cleanup_old_coordinator_logs_task(days_old: int | None = None) -> int:
    """Delete log lines older than so many days, by default what the setting says, in small batches; return how many."""
    kept_for = timedelta(days=settings.FACHO_COORDINATOR_LOG_DAYS if days_old is None else days_old)
    expired = CoordinatorLog.objects.filter(timestamp__lt=timezone.now() - kept_for).order_by()
    deleted = 0
    while ids := list(expired.values_list("pk", flat=True)[:LOGS_DELETED_AT_ONCE]):
        deleted += CoordinatorLog.objects.filter(pk__in=ids).delete()[0]
    return deleted
