"""What is out now: the largest first, each with its probable cause, its place and since when."""

from typing import Any

from django.db.models import Count, Min, Q, QuerySet, Sum

from facho.accounts.scope import OltScope
from facho.onus.models import Outage

OUTAGE_LINES = 12
_COLUMNS = (
    "scope",
    "cause",
    "frame",
    "slot",
    "port",
    "started_at",
    "resumed_at",
    "ended_at",
    "breaks",
    "affected",
    "down",
    "affected_olts",
    "part_of_id",
    "acknowledged_at",
    "acknowledgement",
    "acknowledged_by__username",
    "olt__name",
    "olt__enabled",
)


def load_outages_now(scope: OltScope) -> dict[str, Any]:
    """Load open outages, parts of a larger one folded into it; two queries."""
    now_out = whole_outages(scope).filter(ended_at__isnull=True)
    sums = now_out.aggregate(count=Count("id"), affected=Sum("affected"), first_at=Min("started_at"))
    largest = with_names(now_out.order_by("-affected", "started_at", "id"))[:OUTAGE_LINES]
    rows = list(largest) if sums["count"] else []
    return {**sums, "rows": rows, "more": sums["count"] - len(rows)}


def count_unseen(scope: OltScope) -> int:
    """Count open, unacknowledged outages; one query."""
    return whole_outages(scope).filter(ended_at__isnull=True, acknowledged_at__isnull=True).count()


def whole_outages(scope: OltScope) -> QuerySet[Outage]:
    """Return outages in scope, without those that are part of a larger outage also in scope."""
    is_whole = Q(part_of__isnull=True)
    # The poller's own network has no OLT: users limited to some OLTs see only its parts.
    return scope.narrow(Outage.objects.filter(is_whole if scope.is_everything else is_whole | Q(part_of__olt=None)))


def load_outages_of(olt_id: int, count: int) -> list[Outage]:
    """Load an OLT's outages, open ones first, then the latest."""
    of_olt = with_names(Outage.objects.filter(olt_id=olt_id, part_of__isnull=True))
    going_on = of_olt.filter(ended_at__isnull=True).order_by("-affected", "started_at", "id")[:count]
    over = of_olt.filter(ended_at__isnull=False).order_by("-started_at", "-id")[:count]
    return [*going_on, *over][:count]


def with_names(outages: QuerySet[Outage]) -> QuerySet[Outage]:
    return outages.select_related("olt", "acknowledged_by").only(*_COLUMNS)
