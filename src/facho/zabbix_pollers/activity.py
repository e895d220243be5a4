"""What happens now: active executions, how busy they kept each poller, and whether anyone leads."""

from collections import defaultdict
from datetime import datetime, timedelta

from django.db.models import Max, Q, QuerySet
from django.db.models.functions import Coalesce

from facho.executions.models import Execution
from facho.polling.domain.execution_state import ACTIVE
from facho.zabbix_pollers.models import LeaderLease

BUSY_WINDOW = timedelta(seconds=60)

# The leader renews every few seconds; half a minute without is no hiccup.
LEADER_SILENCE = timedelta(seconds=30)

# Active implies unfinished. Saying so lets both databases use a plain index on the end of a run: SQLite cannot
# match bound parameters with the condition of the partial one.
_IS_ACTIVE = Q(status__in=sorted(ACTIVE), finished_at__isnull=True)


def active_executions() -> QuerySet[Execution]:
    """Select the executions that hold an OLT and a poller."""
    return Execution.objects.filter(_IS_ACTIVE).order_by()


def load_busy_percentages(now: datetime) -> dict[int, float]:
    """Measure, per poller, the share of the last 60 s in which an execution held it."""
    since = now - BUSY_WINDOW
    held = Execution.objects.filter(_IS_ACTIVE | Q(finished_at__gt=since), poller_id__isnull=False).order_by()
    seconds: dict[int | None, float] = defaultdict(float)
    # From the start of the last slice: a run that waited in between held no poller.
    spans = held.annotate(held_from=Coalesce("started_at", "created_at"))
    for poller_id, held_from, finished_at in spans.values_list("poller_id", "held_from", "finished_at"):
        span = min(finished_at or now, now) - max(held_from, since)
        seconds[poller_id] += max(span.total_seconds(), 0.0)
    return {poller_id: _percent(busy) for poller_id, busy in seconds.items() if poller_id is not None}


def load_is_polling(now: datetime) -> bool:
    """Tell whether a scheduler leads: a lease that nobody renews means that nothing will start."""
    renewed_at = LeaderLease.objects.aggregate(latest=Max("renewed_at"))["latest"]
    return renewed_at is not None and now - renewed_at <= LEADER_SILENCE


def _percent(busy_seconds: float) -> float:
    return round(min(100.0 * busy_seconds / BUSY_WINDOW.total_seconds(), 100.0), 1)
