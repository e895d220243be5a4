"""The runs that are next on the grid, for the lines that the queue leaves empty."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from facho.accounts.scope import OltScope
from facho.snmp_jobs.due import startable_nodes


@dataclass(frozen=True, slots=True)
class ComingRun:
    """A master that is not due yet."""

    olt: str
    name: str
    chain_nodes_count: int
    next_run_at: datetime | None


def load_coming_runs(now: datetime, scope: OltScope, *, count: int) -> list[ComingRun]:
    """Load the next `count` runs of nodes that may start; none is asked for when no line is left."""
    if count < 1:
        return []
    rows = (
        scope.narrow(startable_nodes(now), "workflow__olt")
        .filter(next_run_at__gt=now)
        .annotate(chained=Count("chain_nodes", filter=Q(chain_nodes__enabled=True)))
        .order_by("next_run_at", "id")
        .values_list("workflow__olt__name", "job__name", "chained", "next_run_at")
    )
    return [ComingRun(*row) for row in rows[:count]]
