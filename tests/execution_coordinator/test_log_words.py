"""Every event has words in each language, and no value can make them anything but one line of text."""

from typing import Any

import pytest
from django.utils import translation
from pytest_django import Settings

from facho.execution_coordinator.logger import describe
from facho.execution_coordinator.models import EventType

HOUR = "2026-03-01T12:00:00+00:00"
FULL = {
    "task_type": "get_descripcion",
    "node_id": 7,
    "interval_seconds": 300,
    "interval_before_seconds": 600,
    "severity": "HIGH",
    "completed": 2,
    "required": 4,
    "hour": HOUR,
    "runs": 12,
    "reason": "olt_unreachable",
    "olt": "OLT-CENTRAL-01",
}


@pytest.mark.parametrize(
    ("event_type", "details", "words"),
    [
        ("TASK_ADDED", FULL, "Task 'get_descripcion' added to the plan, every 300 s"),
        ("TASK_ADDED", {"task_type": "discovery"}, "Task 'discovery' added to the plan"),
        ("TASK_REMOVED", FULL, "Task 'get_descripcion' removed from the plan"),
        ("TASK_MODIFIED", FULL, "Task 'get_descripcion' runs every 300 s, before every 600 s"),
        ("TASK_MODIFIED", {"task_type": "x", "interval_seconds": 300}, "Task 'x' runs every 300 s, before in a chain"),
        (
            "TASK_MODIFIED",
            {"task_type": "x", "interval_before_seconds": 6},
            "Task 'x' runs in a chain, before every 6 s",
        ),
        ("PLAN_CREATED", FULL, "Plan from 2026-03-01 12:00 created, runs: 12"),
        ("PLAN_ADJUSTED", FULL, "Plan from 2026-03-01 12:00 adjusted, runs: 12"),
        ("EXECUTION_ABORTED", FULL, "Execution of 'get_descripcion' aborted: the OLT does not answer"),
        ("EXECUTION_FAILED", {"task_type": "x", "reason": "own words"}, "Execution of 'x' failed: own words"),
        (
            "QUOTA_WARNING",
            FULL,
            "The quota of 'get_descripcion' will be missed: 2 of 4 so far, hour from 2026-03-01 12:00",
        ),
        ("QUOTA_VIOLATION", FULL, "Quota violation [HIGH]: get_descripcion, 2 of 4, hour from 2026-03-01 12:00"),
        ("OLT_UNREACHABLE", {}, "The OLT does not answer"),
        ("CHANGES_DETECTED", FULL, "Changes detected in OLT-CENTRAL-01"),
        ("TASK_REMOVED", {**FULL, "task": "GET Descripción"}, "Task 'GET Descripción' removed from the plan"),
        ("OLT_DISABLED", {}, "The OLT was disabled: its runs were aborted"),
        ("OLT_DISABLED", {"aborted": []}, "The OLT was disabled, runs aborted: none"),
        ("OLT_DISABLED", {"aborted": [{"task": "A"}, "?", {"task": "B"}]}, "The OLT was disabled, runs aborted: A, B"),
        ("EMERGENCY_REPLAN", FULL, "Emergency replan: the OLT does not answer"),
    ],
)
def test_an_event_is_reported_with_the_values_it_has(event_type: str, details: Any, words: str) -> None:
    assert describe(event_type, details) == words


def test_an_hour_is_reported_in_local_time(settings: Settings) -> None:
    settings.TIME_ZONE = "America/Bogota"

    assert "2026-03-01 07:00" in describe("PLAN_CREATED", {"hour": HOUR, "runs": 1})


def test_every_event_has_a_sentence_beside_its_name() -> None:
    assert [event for event in EventType if describe(event, FULL).lower() == event.label.lower()] == []


def test_an_event_without_its_values_is_reported_by_its_name_in_the_reader_s_language() -> None:
    with translation.override("es"):
        assert describe("TASK_ADDED", {}) == "Tarea agregada"


@pytest.mark.parametrize(
    "details",
    [
        None,
        [],
        "text",
        {},
        dict.fromkeys(FULL),
        dict.fromkeys(FULL, ("list", {"of": "things"})),
        dict.fromkeys(FULL, "a\n\x1b[2J\x00�\u202e%s%(x)s" + "x" * 9999),
        {"hour": "0001-01-01T00:00:00+14:00", "runs": float("nan"), 7: True},
        {"hour": "9999-12-31T23:59:59-12:00", "runs": 1},
    ],
)
def test_no_value_makes_it_more_than_one_line_of_text(details: Any) -> None:
    for event_type in (*EventType.values, "SOMETHING_OLD", "bad\nname"):
        reported = describe(event_type, details)

        assert reported.isprintable()
        assert 0 < len(reported) < 2000


def test_markup_stays_text_that_a_page_escapes() -> None:
    reported = describe("EMERGENCY_REPLAN", {"reason": "<script>alert(1)</script>"})

    assert reported == "Emergency replan: <script>alert(1)</script>"
    assert not hasattr(reported, "__html__")
