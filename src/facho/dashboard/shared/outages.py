"""What is out now: the largest first, each with its probable cause, its place and since when."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Q, QuerySet, Sum

from facho.accounts.acknowledge import who_acknowledged
from facho.accounts.scope import OltScope
from facho.onus.models import Outage
from facho.onus.words import OutageCauses, OutageScopes

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


@dataclass(frozen=True, slots=True)
class OutageRow:
    """One line of the outage list; without an OLT it is the poller's own network."""

    id: int
    scope: str
    scope_words: str
    cause: str
    cause_words: str
    olt_id: int | None
    olt: str
    is_olt_enabled: bool
    place: str
    started_at: datetime
    ended_at: datetime | None
    affected: int
    down: int
    affected_olts: int
    acknowledged_at: datetime | None
    acknowledged_by: str

    @property
    def lasted_seconds(self) -> float:
        """0 while it still lasts."""
        return (self.ended_at - self.started_at).total_seconds() if self.ended_at else 0.0

    @property
    def is_unasked(self) -> bool:
        """Whether its end is unknown because its OLT was disabled first."""
        return not self.ended_at and not self.is_olt_enabled


@dataclass(frozen=True, slots=True)
class OutagesNow:
    rows: list[OutageRow]
    count: int
    affected: int
    first_at: datetime | None

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


def load_outages_now(scope: OltScope) -> OutagesNow:
    """Load open outages, parts of a larger one folded into it; two queries."""
    now_out = whole_outages(scope).filter(ended_at__isnull=True)
    sums = now_out.aggregate(count=Count("id"), affected=Sum("affected"), first_at=Min("started_at"))
    rows = outage_rows(now_out.order_by("-affected", "started_at", "id")[:OUTAGE_LINES]) if sums["count"] else []
    return OutagesNow(rows, sums["count"], sums["affected"] or 0, sums["first_at"])


def count_unseen(scope: OltScope) -> int:
    """Count open, unacknowledged outages; one query."""
    return whole_outages(scope).filter(ended_at__isnull=True, acknowledged_at__isnull=True).count()


def whole_outages(scope: OltScope) -> QuerySet[Outage]:
    """Return outages in scope, without those that are part of a larger outage also in scope."""
    is_whole = Q(part_of__isnull=True)
    # The poller's own network has no OLT: users limited to some OLTs see only its parts.
    return scope.narrow(Outage.objects.filter(is_whole if scope.is_everything else is_whole | Q(part_of__olt=None)))


def load_outages_of(olt_id: int, count: int) -> list[OutageRow]:
    """Load an OLT's outages, open ones first, then the latest."""
    of_olt = Outage.objects.filter(olt_id=olt_id, part_of__isnull=True)
    going_on = of_olt.filter(ended_at__isnull=True).order_by("-affected", "started_at", "id")[:count]
    over = of_olt.filter(ended_at__isnull=False).order_by("-started_at", "-id")[:count]
    return (outage_rows(going_on) + outage_rows(over))[:count]


def outage_rows(outages: QuerySet[Outage]) -> list[OutageRow]:
    return shape_outages(with_names(outages))


def with_names(outages: QuerySet[Outage]) -> QuerySet[Outage]:
    return outages.select_related("olt", "acknowledged_by").only(*_COLUMNS)


def shape_outages(outages: Iterable[Outage]) -> list[OutageRow]:
    return [
        OutageRow(
            id=outage.id,
            scope=outage.scope,
            scope_words=str(OutageScopes(outage.scope).label),
            cause=outage.cause,
            cause_words=str(OutageCauses(outage.cause).label),
            olt_id=outage.olt_id,
            olt=outage.olt.name if outage.olt else "",
            is_olt_enabled=outage.olt is None or outage.olt.enabled,
            place=outage.place,
            started_at=outage.started_at,
            ended_at=outage.ended_at,
            affected=outage.affected,
            down=outage.down,
            affected_olts=outage.affected_olts,
            acknowledged_at=outage.acknowledged_at,
            acknowledged_by=who_acknowledged(outage) if outage.acknowledged_at else "",
        )
        for outage in outages
    ]
