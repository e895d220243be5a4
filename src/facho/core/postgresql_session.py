"""How sessions with PostgreSQL are set up: every one, and those of a process that polls."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.adapt import Loader

if TYPE_CHECKING:
    from psycopg.abc import Buffer


class _UtcLoader(Loader):
    """Reads times as sessions of Django get them, in UTC; its own way takes a dozen times as long."""

    # By this Django knows that it need not bring its own.
    timezone = UTC

    def load(self, data: "Buffer") -> datetime:
        """Return an aware time."""
        return datetime.fromisoformat(bytes(data).decode())


def prefer_indexes(connection: BaseDatabaseWrapper, **_about: object) -> None:
    """Tell the true price of a random page, since the default is that of a spinning disk, and of help from workers.

    Otherwise whole tables are read to update the ONUs of a poll, and processes started to list fifty of a million.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET random_page_cost = 1.1; SET max_parallel_workers_per_gather = 0")


def set_up(connection: BaseDatabaseWrapper) -> None:
    """Let the session not outlive a lease in the middle of a transaction, and read times quickly.

    A process that is stopped there would keep its rows locked, and its OLT closed, until it goes on.
    """
    connection.connection.adapters.register_loader("timestamptz", _UtcLoader)
    milliseconds = max(int(settings.FACHO_LEASE_SECONDS * 1000), 1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, false)", [f"{milliseconds}ms"])
