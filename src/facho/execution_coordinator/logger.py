"""The coordinator's log: what it decided and why, as codes and values in a table and as lines in a file."""

import logging

from django.conf import settings
from django.db import connection
from django.db.transaction import TransactionManagementError
from django.utils import translation

from facho.execution_coordinator.log_entry import Entry, one_line
from facho.execution_coordinator.log_words import describe
from facho.execution_coordinator.models import EventType, Level
from facho.hosts.models import Olt


class CoordinatorLogger:
    """Takes events; the handlers of the `coordinator` logger carry them on. See LOGGING in the settings."""

    def log_event(
        self,
        event_type: EventType,
        *,
        olt_id: int | None = None,
        level: Level = Level.INFO,
        name: str = "coordinator_loop",
        **values: str | int,
    ) -> None:
        """Log an event with its values, about one OLT or about everything; a failing log does not fail the caller."""
        details = {key: value if isinstance(value, int) else one_line(value) for key, value in values.items()}
        with translation.override(settings.LANGUAGE_CODE):
            sentence = describe(event_type, details)
        was_lost = connection.needs_rollback
        entry = Entry(event_type, sentence, details, olt_id)
        logging.getLogger(f"coordinator.{name}").log(logging.getLevelNamesMapping()[level], entry)
        if connection.needs_rollback and not was_lost:
            # Its connection went away. Left alone, the caller's transaction would end without error and without rows.
            raise TransactionManagementError("the transaction was lost while an event was logged")

    def log_task_added(self, task_name: str, olt: Olt | None = None) -> None:
        """Log that a task runs from now on."""
        self.log_event(EventType.TASK_ADDED, olt_id=olt.pk if olt else None, task_type=task_name)

    def log_quota_violation(self, olt: Olt | None, task_type: str, severity: str) -> None:
        """Log that an hour fell short of its quota."""
        self.log_event(
            EventType.QUOTA_VIOLATION,
            olt_id=olt.pk if olt else None,
            level=Level.CRITICAL,
            task_type=task_type,
            severity=severity,
        )

    def log_emergency_replan(self, olt: Olt | None, reason: str) -> None:
        """Log that plans are made anew because something went wrong."""
        self.log_event(EventType.EMERGENCY_REPLAN, olt_id=olt.pk if olt else None, level=Level.WARNING, reason=reason)


coordinator_logger = CoordinatorLogger()
