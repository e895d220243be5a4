"""The pollers' figures, minute by minute, so that a look back shows when they were saturated."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Avg, Case, FloatField, Func, IntegerField, Max, Min, When
from django.db.models.sql.compiler import SQLCompiler

from facho.zabbix_pollers.models import PollerStats
from facho.zabbix_pollers.poller_manager import PollerManager

# A look back has as many points at most, whatever its length: the database sums them up. Rows come a little less
# often than each minute, so that a shorter step would have gaps.
STEPS_SECONDS = (120, 300, 900, 1_800, 3_600, 10_800)
MOST_POINTS = 360
LONGEST = timedelta(days=31)


def save_poller_stats(now: datetime) -> PollerStats:
    """Add one row to the series; its saturation is what the next look remembers."""
    stats = PollerManager.get_stats(now).global_stats
    names = {field.name for field in PollerStats._meta.concrete_fields} - {"id", "timestamp"}
    return PollerStats.objects.create(**{name: getattr(stats, name) for name in names})


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """All pollers in the step of time that begins at `at`; nothing was stored in a step without figures."""

    at: datetime
    total_pollers: int | None = None
    busy_percentage: float | None = None
    busy_percentage_min: float | None = None
    busy_percentage_max: float | None = None
    queue_size: float | None = None
    queue_size_max: int | None = None
    # Of the minutes in it.
    saturated_share: float | None = None


@dataclass(frozen=True, slots=True)
class LoadHistory:
    start: datetime
    end: datetime
    step_seconds: int
    points: tuple[LoadPoint, ...]


class _StepNumber(Func):
    """Counts steps of so many seconds since 1970; Django itself would do it in Python on SQLite, for each row."""

    output_field = IntegerField()
    template = "CAST(FLOOR(EXTRACT(EPOCH FROM %(expressions)s) / %(step)s) AS bigint)"

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """Ask SQLite's own reader of times; whole numbers are divided without a rest."""
        template = "CAST(strftime('%%%%s', %(expressions)s) AS integer) / %(step)s"
        return self.as_sql(compiler, connection, template=template, **context)


def load_history(start: datetime, end: datetime) -> LoadHistory:
    """Load the figures between two moments, summed up so that there are few; one query."""
    step = choose_step(end - start)
    is_saturated = Case(When(is_saturated=True, then=1.0), default=0.0, output_field=FloatField())
    rows = (
        PollerStats.objects.filter(timestamp__gte=start, timestamp__lte=end)
        .annotate(number=_StepNumber("timestamp", step=step))
        .order_by()
        .values("number")
        .annotate(
            pollers=Max("total_pollers"),
            busy=Avg("busy_percentage"),
            least_busy=Min("busy_percentage"),
            most_busy=Max("busy_percentage"),
            queue=Avg("queue_size"),
            longest_queue=Max("queue_size"),
            saturated=Avg(is_saturated),
        )
    )
    known = {row["number"]: row for row in rows}
    numbers = range(int(start.timestamp()) // step, int(end.timestamp()) // step + 1)
    return LoadHistory(start, end, step, tuple(_point(number * step, known.get(number)) for number in numbers))


def choose_step(length: timedelta) -> int:
    """Choose the shortest step that makes few enough points."""
    return next((step for step in STEPS_SECONDS if length.total_seconds() / step <= MOST_POINTS), STEPS_SECONDS[-1])


def _point(epoch: int, row: Mapping[str, Any] | None) -> LoadPoint:
    at = datetime.fromtimestamp(epoch, UTC)
    if row is None:
        return LoadPoint(at)
    return LoadPoint(
        at,
        total_pollers=row["pollers"],
        busy_percentage=round(row["busy"], 1),
        busy_percentage_min=row["least_busy"],
        busy_percentage_max=row["most_busy"],
        queue_size=round(float(row["queue"]), 1),
        queue_size_max=row["longest_queue"],
        saturated_share=round(row["saturated"], 3),
    )
