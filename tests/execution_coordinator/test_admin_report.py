"""A violation's report in words: all of it, and as much as there is of one that lacks something."""

from datetime import UTC, datetime
from typing import Any

import pytest

from facho.execution_coordinator.violations import read_report, read_time
from facho.executions.run import FAILURES
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.quota import SkipReason
from facho.snmp_jobs.models import SkipReasons

SLOT = {"slot_at": "2030-05-06T12:15:00+00:00", "node_id": 7}


def report_of(*slots: dict[str, Any], **task: Any) -> dict[str, Any]:
    return {"tasks": [{"task_type": "discovery", "slots": list(slots), **task}]}


@pytest.mark.parametrize("reason", SkipReason)
def test_every_reason_of_a_skipped_slot_has_its_words(reason: SkipReason) -> None:
    (task,) = read_report(report_of(SLOT | {"outcome": "skipped", "reason": reason.value})).tasks

    assert task.slots[0].why == SkipReasons(reason).label


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_of_failure_has_its_words(kind: FailureKind) -> None:
    (task,) = read_report(report_of(SLOT | {"outcome": "failed", "reason": kind.value})).tasks

    assert task.slots[0].why == str(FAILURES[kind])


def test_equal_reasons_are_counted_and_the_most_frequent_comes_first() -> None:
    busy = {"outcome": "skipped", "reason": "olt_busy", "busy_with": "get_potencia"}
    (task,) = read_report(
        report_of({"outcome": "failed", "reason": "loop"}, busy, busy, {"outcome": "completed"})
    ).tasks

    assert [number for _why, number in task.reasons] == [2, 1]
    assert task.reasons[0][0] == "the OLT was busy with other work: get_potencia"


def test_a_report_is_reported_in_short() -> None:
    tasks = [{"task_type": "discovery", "completed": 2, "required": 4}, {"task_type": "get_x", "required": 12}]

    assert read_report({"tasks": tasks}).in_short == "discovery 2/4, get_x 0/12"


@pytest.mark.parametrize(
    "report",
    [
        None,
        [],
        "text",
        {},
        {"tasks": None, "paused": 3},
        {"tasks": [None, "x"], "paused": [None]},
    ],
)
def test_a_report_that_says_nothing_has_no_tasks(report: object) -> None:
    read = read_report(report)

    assert (read.tasks, read.pauses, read.in_short) == ((), (), "")


def test_whatever_a_task_lacks_is_left_out() -> None:
    odd = {"slot_at": "noon", "node_id": "x", "outcome": "unheard_of", "reason": "of_later", "execution_id": None}

    (task,) = read_report({"tasks": [{"required": "many", "slots": [odd, None]}]}).tasks

    (slot,) = task.slots
    assert (task.task_type, task.severity, task.required, task.tally.required) == ("", "", 0, 0)
    assert (slot.at, slot.node_id, slot.outcome_words, slot.why) == (None, None, "unheard_of", "of_later")


def test_a_time_is_read_or_is_none() -> None:
    assert read_time("2030-05-06T12:00:00+00:00") == datetime(2030, 5, 6, 12, tzinfo=UTC)
    assert [read_time(value) for value in (None, "", "soon", "2030-05-06T12:00:00", 5)] == [None] * 5
