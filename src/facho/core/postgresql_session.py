"""How a process that polls sets up its sessions with PostgreSQL."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.adapt import Loader

if TYPE_CHECKING:
    from psycopg.abc import Buffer

_SETTINGS = """
    SELECT set_config('idle_in_transaction_session_timeout', %s, false), set_config('random_page_cost', '1.1', false)
"""


class _UtcLoader(Loader):
    """Reads times as sessions of Django get them, in UTC; its own way takes a dozen times as long."""

    # By this Django knows that it need not bring its own.
    timezone = UTC

    def load(self, data: "Buffer") -> datetime:
        """Return an aware time."""
        return datetime.fromisoformat(bytes(data).decode())


def set_up(connection: BaseDatabaseWrapper) -> None:
    """Let the session not outlive a lease in the middle of a transaction, and find the rows of a poll quickly.

    A process that is stopped there would keep its rows locked, and its OLT closed, until it goes on. The default
    price of a random page is that of a spinning disk: whole tables would be read to update some hundred rows.
    """
    connection.connection.adapters.register_loader("timestamptz", _UtcLoader)
    milliseconds = max(int(settings.FACHO_LEASE_SECONDS * 1000), 1)
    with connection.cursor() as cursor:
        cursor.execute(_SETTINGS, [f"{milliseconds}ms"])
