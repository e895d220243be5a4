"""What changed about an OLT between two looks (S1-07, S1-15)."""

from dataclasses import replace
from itertools import permutations

import pytest

from facho.polling.domain.changes import (
    Change,
    ChangeType,
    OltView,
    Task,
    detect_changes,
    from_json,
    state_hash,
    to_json,
)

STATE = Task(1, "get_estado", 300)
DISCOVERY = Task(2, "discovery", 900)
VIEW = OltView(enabled=True, is_silent=False, tasks=(STATE, DISCOVERY))


def test_nothing_changes_while_nothing_changes() -> None:
    assert detect_changes(VIEW, VIEW) == []
    assert state_hash(VIEW) == state_hash(OltView(enabled=True, is_silent=False, tasks=(STATE, DISCOVERY)))


def test_the_order_of_tasks_does_not_matter() -> None:
    assert len({state_hash(replace(VIEW, tasks=tasks)) for tasks in permutations(VIEW.tasks)}) == 1


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (
            replace(VIEW, tasks=(*VIEW.tasks, Task(3, "walk_x", 60))),
            [Change(ChangeType.TASK_ADDED, Task(3, "walk_x", 60))],
        ),
        (replace(VIEW, tasks=(STATE,)), [Change(ChangeType.TASK_REMOVED, DISCOVERY)]),
        (
            replace(VIEW, tasks=(replace(STATE, interval_seconds=60), DISCOVERY)),
            [Change(ChangeType.TASK_INTERVAL_CHANGED, replace(STATE, interval_seconds=60), 300)],
        ),
        (replace(VIEW, enabled=False), [Change(ChangeType.OLT_DISABLED)]),
        (replace(VIEW, is_silent=True), [Change(ChangeType.OLT_UNREACHABLE)]),
    ],
    ids=["added", "removed", "interval", "disabled", "unreachable"],
)
def test_each_change_is_found_and_moves_the_hash(now: OltView, expected: list[Change]) -> None:
    assert detect_changes(VIEW, now) == expected
    assert state_hash(VIEW) != state_hash(now)


def test_what_was_undone_is_a_change_too() -> None:
    assert detect_changes(replace(VIEW, enabled=False), VIEW) == [Change(ChangeType.OLT_ENABLED)]
    assert detect_changes(replace(VIEW, is_silent=True), VIEW) == [Change(ChangeType.OLT_BACK)]


def test_the_last_task_of_an_olt_can_go() -> None:
    assert detect_changes(replace(VIEW, tasks=(STATE,)), replace(VIEW, tasks=())) == [
        Change(ChangeType.TASK_REMOVED, STATE)
    ]


def test_several_changes_at_once_are_all_found() -> None:
    now = OltView(enabled=False, is_silent=True, tasks=(replace(STATE, interval_seconds=60), Task(9, "walk_x", 60)))

    assert sorted(change.type for change in detect_changes(VIEW, now)) == [
        "olt_disabled",
        "olt_unreachable",
        "task_added",
        "task_interval_changed",
        "task_removed",
    ]


def test_an_olt_that_was_never_seen_has_only_new_tasks() -> None:
    assert detect_changes(None, VIEW) == [Change(ChangeType.TASK_ADDED, task) for task in VIEW.tasks]


def test_a_view_survives_its_storage() -> None:
    assert from_json(to_json(VIEW)) == VIEW
