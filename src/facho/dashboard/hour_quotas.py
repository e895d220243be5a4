"""The quotas of this hour: what all OLTs got of each task type, and those that fall or will fall short."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Count, F, Q, QuerySet, Sum, Value, When

from facho.accounts.scope import OltScope
from facho.dashboard.svg import Bar, coordinate, stack
from facho.execution_coordinator.models import QuotaStatus, QuotaTracker
from facho.polling.domain.quota import Span, Tally, hour_of

SHORT_LINES = 8
_FALLS_SHORT = Q(will_miss_at__isnull=False) | Q(
    status__in=[QuotaStatus.AT_RISK, QuotaStatus.QUOTA_NOT_MET, QuotaStatus.FAILED]
)


@dataclass(frozen=True, slots=True)
class QuotaBar:
    """What is owed in this hour, what became of it, and since when the forecast says that it will be missed."""

    task_type: str
    tally: Tally
    olts: int = 0
    olt_id: int | None = None
    olt: str = ""
    status: str = ""
    status_words: str = ""
    will_miss_at: datetime | None = None
    # Of a whole task type: on how many OLTs it will be missed.
    will_miss: int = 0

    @property
    def bars(self) -> list[Bar]:
        """The bar, on a width of 100; what is pending stays empty."""
        tally = self.tally
        parts = (("completed", tally.completed), ("failed", tally.failed), ("skipped", tally.skipped))
        return stack(parts, total=tally.required)


@dataclass(frozen=True, slots=True)
class HourQuotas:
    """The hour so far, how much of it is gone, and how many quotas will be missed."""

    hour: Span
    types: list[QuotaBar]
    short: list[QuotaBar]
    short_count: int
    will_miss_count: int
    elapsed_x: str

    @property
    def more(self) -> int:
        """How many fall short beyond the lines."""
        return self.short_count - len(self.short)


def load_hour_quotas(now: datetime, scope: OltScope) -> HourQuotas:
    """Load the quotas of the hour of the OLTs in scope; three queries."""
    hour = hour_of(now)
    owed = QuotaTracker.objects.filter(period_start=hour.start, olt__enabled=True, quota_required__gt=0)
    trackers = scope.narrow(owed)
    short = trackers.filter(_FALLS_SHORT)
    counts = short.aggregate(all=Count("id"), will_miss=Count("id", filter=Q(will_miss_at__isnull=False)))
    return HourQuotas(
        hour,
        list(_types(trackers)),
        list(_short(short)),
        counts["all"],
        counts["will_miss"],
        coordinate((now - hour.start) / (hour.end - hour.start) * 100),
    )


def load_olt_quotas(olt_id: int, now: datetime) -> list[QuotaBar]:
    """Load the quotas of one OLT in this hour; one query."""
    return list(
        _bars(QuotaTracker.objects.filter(period_start=hour_of(now).start, olt_id=olt_id).order_by("task_type"))
    )


def _types(trackers: QuerySet[QuotaTracker]) -> Iterable[QuotaBar]:
    rows = (
        trackers.order_by("task_type")
        .values_list("task_type")
        .annotate(
            Sum("quota_completed"),
            Sum("quota_failed"),
            Sum("quota_skipped"),
            Sum("quota_pending"),
            Count("olt"),
            will_miss=Count("id", filter=Q(will_miss_at__isnull=False)),
        )
    )
    for task_type, completed, failed, skipped, pending, olts, will_miss in rows:
        yield QuotaBar(task_type, Tally(completed, failed, skipped, pending), olts, will_miss=will_miss)


def _short(trackers: QuerySet[QuotaTracker]) -> Iterable[QuotaBar]:
    """Order those that will be missed first, then by the share that is done."""
    is_foreseen = Case(When(will_miss_at__isnull=False, then=Value(0)), default=Value(1))
    lost = F("quota_failed") + F("quota_skipped")
    return _bars(trackers.order_by(is_foreseen, -lost, "olt__name", "task_type")[:SHORT_LINES])


def _bars(trackers: QuerySet[QuotaTracker]) -> Iterable[QuotaBar]:
    columns = ("quota_completed", "quota_failed", "quota_skipped", "quota_pending")
    rows = trackers.values_list("task_type", "olt_id", "olt__name", "status", "will_miss_at", *columns)
    for task_type, olt_id, olt, status, will_miss_at, *counts in rows:
        words = str(QuotaStatus(status).label)
        yield QuotaBar(task_type, Tally(*counts), 1, olt_id, olt, status, words, will_miss_at)
