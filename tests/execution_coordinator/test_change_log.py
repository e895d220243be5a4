"""Each change that the coordinator finds is an event with its values."""

import pytest

from facho.execution_coordinator.coordinator import log_change
from facho.execution_coordinator.models import CoordinatorLog
from facho.polling.domain.changes import Change, ChangeType, Task
from factories import make_olt

TASK = Task(node_id=7, task_type="get_descripcion", interval_seconds=300)
MEMBER = Task(node_id=8, task_type="get_estado", interval_seconds=0)
VALUES = {"task_type": "get_descripcion", "task": "get_descripcion", "node_id": 7, "interval_seconds": 300}
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("change", "events"),
    [
        (Change(ChangeType.TASK_ADDED, TASK), [("TASK_ADDED", "INFO", VALUES)]),
        (
            Change(ChangeType.TASK_ADDED, MEMBER),
            [("TASK_ADDED", "INFO", {"task_type": "get_estado", "task": "get_estado", "node_id": 8})],
        ),
        (Change(ChangeType.TASK_REMOVED, TASK), [("TASK_REMOVED", "WARNING", VALUES)]),
        (
            Change(ChangeType.TASK_INTERVAL_CHANGED, TASK, 600),
            [("TASK_MODIFIED", "INFO", {**VALUES, "interval_before_seconds": 600})],
        ),
        (Change(ChangeType.OLT_ENABLED), [("OLT_ENABLED", "INFO", {})]),
        (Change(ChangeType.OLT_DISABLED), [("OLT_DISABLED", "WARNING", {"aborted": []})]),
        (
            Change(ChangeType.OLT_UNREACHABLE),
            [("OLT_UNREACHABLE", "ERROR", {}), ("EMERGENCY_REPLAN", "WARNING", {"reason": "olt_unreachable"})],
        ),
        (Change(ChangeType.OLT_BACK), [("OLT_BACK", "INFO", {})]),
    ],
)
def test_a_change_is_reported_with_its_values(change: Change, events: list[tuple[str, str, dict[str, object]]]) -> None:
    olt = make_olt()

    log_change(olt.pk, change)

    rows = CoordinatorLog.objects.filter(olt=olt).order_by("id").values_list("event_type", "level", "details")
    assert list(rows) == events


def test_every_type_of_change_is_reported() -> None:
    olt = make_olt()

    for kind in ChangeType:
        log_change(olt.pk, Change(kind, TASK))

    assert CoordinatorLog.objects.count() == len(ChangeType) + 1
