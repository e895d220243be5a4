"""Time that passed between a column and now, worked out by the database so that nothing has to be read first."""

from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, FloatField, Func, Value
from django.db.models.functions import Coalesce, Greatest
from django.db.models.sql.compiler import SQLCompiler


class _Seconds(Func):
    """A duration as a number of seconds."""

    template = "EXTRACT(EPOCH FROM %(expressions)s)"
    output_field = FloatField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """SQLite has durations as microseconds."""
        return self.as_sql(compiler, connection, template="(%(expressions)s) / 1000000.0", **context)


def seconds_between(column: str, now: datetime) -> Greatest:
    """Build the seconds from the time in a column until now; none when it has no time, or one to come."""
    moment = Value(now, DateTimeField())
    elapsed = ExpressionWrapper(moment - Coalesce(F(column), moment), DurationField())
    return Greatest(_Seconds(elapsed), Value(0.0))
