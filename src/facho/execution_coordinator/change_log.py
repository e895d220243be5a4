"""Tells the changes that the coordinator finds as events of its log."""

from typing import Any

from facho.execution_coordinator.logger import coordinator_logger
from facho.execution_coordinator.models import EventType, Level
from facho.polling.domain.changes import Change, ChangeType

_EVENTS = {
    ChangeType.TASK_ADDED: (EventType.TASK_ADDED, Level.INFO),
    ChangeType.TASK_REMOVED: (EventType.TASK_REMOVED, Level.WARNING),
    ChangeType.TASK_INTERVAL_CHANGED: (EventType.TASK_MODIFIED, Level.INFO),
    ChangeType.OLT_ENABLED: (EventType.OLT_ENABLED, Level.INFO),
    ChangeType.OLT_DISABLED: (EventType.OLT_DISABLED, Level.WARNING),
    ChangeType.OLT_UNREACHABLE: (EventType.OLT_UNREACHABLE, Level.ERROR),
    ChangeType.OLT_BACK: (EventType.OLT_BACK, Level.INFO),
}


def log_change(olt_id: int, change: Change) -> None:
    """Log a change of an OLT; one that went silent makes its plan worthless, which is an event of its own."""
    event_type, level = _EVENTS[change.type]
    coordinator_logger.log_event(event_type, olt_id=olt_id, level=level, **_values(change))
    if change.type is ChangeType.OLT_UNREACHABLE:
        coordinator_logger.log_event(
            EventType.EMERGENCY_REPLAN, olt_id=olt_id, level=Level.WARNING, reason=change.type.value
        )


def _values(change: Change) -> dict[str, Any]:
    if change.task is None:
        return {}
    values: dict[str, Any] = {"task_type": change.task.task_type, "node_id": change.task.node_id}
    # A chain member has no interval of its own, so there is none to tell.
    if change.task.interval_seconds:
        values["interval_seconds"] = change.task.interval_seconds
    if change.interval_before_seconds:
        values["interval_before_seconds"] = change.interval_before_seconds
    return values
