"""Executions that were claimed and that nobody has begun."""

from datetime import datetime, timedelta

from django.db.models import Min

from facho.executions.models import Execution
from facho.polling.domain.execution_state import ExecutionState


def load_longest_waits(now: datetime) -> dict[str, timedelta]:
    """Measure, per poller group, how long the oldest claim has been waiting; one query."""
    # What was taken before was claimed again since, at a time that nobody wrote down.
    waiting = Execution.objects.filter(status=ExecutionState.PENDING, finished_at=None, started_at=None)
    oldest = waiting.order_by("poller_group").values_list("poller_group").annotate(at=Min("created_at"))
    return {group: max(now - at, timedelta(0)) for group, at in oldest}
