"""The coordinator's background tasks as messages; each repeats what the leader does anyway, and starts no node."""

from datetime import timedelta
from typing import Any

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.models import CoordinatorLog

DELETED_AT_ONCE = 1_000


@shared_task(bind=True, name="execution_coordinator.tasks.coordinator_loop_task")
def coordinator_loop_task(task: Any) -> bool:
    """Look once at changes, quotas and plans, unless another process leads."""
    leads: bool = task.app.worker.as_leader(ExecutionCoordinator().run_pass)
    return leads


@shared_task(bind=True, name="execution_coordinator.tasks.check_quota_violations_task")
def check_quota_violations_task(task: Any) -> bool:
    """Count all quotas and raise what fell short, unless another process leads."""
    leads: bool = task.app.worker.as_leader(ExecutionCoordinator().run_pass)
    return leads


@shared_task(name="execution_coordinator.tasks.cleanup_old_coordinator_logs_task")
def cleanup_old_coordinator_logs_task(days_old: int | None = None) -> int:
    """Delete log lines older than so many days, by default what the setting says, in small batches; return how many."""
    kept_for = timedelta(days=settings.FACHO_COORDINATOR_LOG_DAYS if days_old is None else days_old)
    expired = CoordinatorLog.objects.filter(timestamp__lt=timezone.now() - kept_for).order_by()
    deleted = 0
    while ids := list(expired.values_list("pk", flat=True)[:DELETED_AT_ONCE]):
        deleted += CoordinatorLog.objects.filter(pk__in=ids).delete()[0]
    return deleted
