"""Why a node waits, decided from values alone."""

from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from facho.executions.models import Origin
from facho.hosts.models import Olt, Pause
from facho.polling.domain.planning import DueNode, WaitReason
from facho.polling.domain.schedule import Window
from facho.snmp_jobs.models import SnmpJob, Workflow, WorkflowNode
from facho.zabbix_pollers.activity import Holder
from facho.zabbix_pollers.explain import (
    Facts,
    QueuePlace,
    Situation,
    describe_holder,
    explain,
    explain_member,
    sentences,
)
from factories import NOW

MINUTE = timedelta(minutes=1)
SUSPENDED = {"suspended_at": NOW - MINUTE, "suspend_reason": "timeout", "probe_at": NOW + MINUTE}
PAUSE = Pause(starts_at=NOW - MINUTE, ends_at=NOW + 30 * MINUTE, note="fibre works")
ANOTHER = Holder(90, 8, 8, "Optical power", Origin.SCHEDULE, 3, NOW - MINUTE, "engine/x", "get_power")
AT_NIGHT = Window(time(1), time(5), ZoneInfo("UTC"))


def facts(*, is_polling: bool = True, **changes: object) -> Facts:
    olt = Olt(id=1, name="North", enabled=changes.pop("olt_enabled", True), next_probe_at=changes.pop("probe_at", None))
    columns = {field.attname for field in WorkflowNode._meta.concrete_fields}
    own = {name: changes.pop(name) for name in list(changes) if name in columns}
    values: dict[str, Any] = {"id": 7, "enabled": True, "next_run_at": NOW + 5 * MINUTE} | own
    node = WorkflowNode(job=SnmpJob(name="State", query_type="get"), workflow=Workflow(olt=olt), **values)
    return Facts(node, is_polling, **changes)  # type: ignore[arg-type]


def due(reason: WaitReason | None, holder: Holder | None = None) -> Facts:
    return facts(next_run_at=NOW - MINUTE, place=QueuePlace(4, 9, 2, reason), holder=holder)


def waiting(*, is_retry: bool, due_at: datetime, **changes: object) -> Facts:
    next_run_at: Any = changes.get("next_run_at", NOW + 5 * MINUTE)
    run = DueNode(7, 1, due_at, 300, 50, 0, execution_id=55, is_retry=is_retry, next_run_at=next_run_at)
    return facts(waiting=run, **changes)


@pytest.mark.parametrize(
    ("stands", "situation"),
    [
        (facts(), Situation.NOT_DUE),
        (facts(enabled=False), Situation.DISABLED),
        (facts(olt_enabled=False, enabled=False), Situation.OLT_DISABLED),
        (facts(**SUSPENDED), Situation.SUSPENDED),
        (facts(pause=PAUSE), Situation.PAUSED),
        (facts(window=AT_NIGHT), Situation.OUTSIDE_HOURS),
        (waiting(is_retry=True, due_at=NOW + MINUTE), Situation.RETRY),
        (waiting(is_retry=False, due_at=NOW - MINUTE), Situation.GAVE_WAY),
        (waiting(is_retry=True, due_at=NOW - MINUTE), Situation.QUEUED),
        (due(None), Situation.QUEUED),
        (facts(run_requested_at=NOW, window=AT_NIGHT), Situation.QUEUED),
        (facts(next_run_at=None), Situation.NOT_SCHEDULED),
        (facts(next_run_at=None, window=AT_NIGHT), Situation.NOT_SCHEDULED),
        # A slot within the hours that got no turn in them is still served; what goes on later waits for them.
        (facts(next_run_at=NOW - MINUTE, window=AT_NIGHT), Situation.QUEUED),
        (waiting(is_retry=False, due_at=NOW - MINUTE, window=AT_NIGHT), Situation.OUTSIDE_HOURS),
        (waiting(is_retry=True, due_at=NOW + MINUTE, window=AT_NIGHT), Situation.OUTSIDE_HOURS),
        (facts(holder=ANOTHER), Situation.NOT_DUE),
        (facts(holder=replace(ANOTHER, node_id=7, master_node_id=7)), Situation.RUNNING),
        # What runs although it was stopped meanwhile still runs, until its next packet.
        (facts(holder=replace(ANOTHER, node_id=7, master_node_id=7), enabled=False), Situation.RUNNING),
        # A pause keeps even a wish and a retry from starting.
        (facts(pause=PAUSE, run_requested_at=NOW), Situation.PAUSED),
        (waiting(is_retry=True, due_at=NOW + MINUTE, pause=PAUSE), Situation.PAUSED),
        (facts(pause=PAUSE, **SUSPENDED), Situation.SUSPENDED),
    ],
)
def test_each_node_stands_in_one_situation(stands: Facts, situation: Situation) -> None:
    assert explain(stands, NOW).situation is situation


def test_a_node_that_is_not_due_names_its_next_run() -> None:
    assert explain(facts(), NOW).runs_at == NOW + 5 * MINUTE


def test_a_suspended_node_tells_since_when_why_and_when_its_olt_is_asked_again() -> None:
    reported = explain(facts(**SUSPENDED), NOW)

    assert (reported.since, reported.reason, reported.until) == (NOW - MINUTE, "timeout", NOW + MINUTE)


@pytest.mark.parametrize(("minutes", "runs_in"), [(-3, 30), (5, 30), (45, 45)])
def test_a_paused_node_runs_when_the_pause_ends_or_at_its_slot_after_it(minutes: int, runs_in: int) -> None:
    reported = explain(facts(pause=PAUSE, next_run_at=NOW + minutes * MINUTE), NOW)

    assert (reported.until, reported.runs_at) == (NOW + 30 * MINUTE, NOW + runs_in * MINUTE)
    assert reported.reason == "fibre works"


def test_a_node_outside_its_hours_tells_when_they_begin_and_when_it_runs() -> None:
    first_slot = NOW + timedelta(hours=13, minutes=7)

    reported = explain(facts(window=AT_NIGHT, next_run_at=first_slot), NOW)

    assert (reported.until, reported.runs_at) == (NOW + timedelta(hours=13), first_slot)


def test_a_read_that_gave_way_goes_on_when_its_hours_begin() -> None:
    reported = explain(waiting(is_retry=False, due_at=NOW - MINUTE, window=AT_NIGHT), NOW)

    assert reported.until == reported.runs_at == NOW + timedelta(hours=13)


def test_a_queued_node_tells_its_place_and_who_holds_its_olt() -> None:
    reported = explain(due(WaitReason.OLT_BUSY, ANOTHER), NOW)

    assert reported.place == QueuePlace(4, 9, 2, WaitReason.OLT_BUSY)
    assert (reported.holder, reported.since) == (ANOTHER, NOW - MINUTE)


def test_a_retry_names_its_execution_and_its_time() -> None:
    reported = explain(waiting(is_retry=True, due_at=NOW + MINUTE), NOW)

    assert (reported.execution_id, reported.runs_at) == (55, NOW + MINUTE)


def test_a_slot_that_comes_before_the_retry_queues_the_node() -> None:
    reported = explain(waiting(is_retry=True, due_at=NOW + MINUTE, next_run_at=NOW), NOW)

    assert (reported.situation, reported.execution_id) == (Situation.QUEUED, None)


def test_a_running_master_names_the_member_of_its_chain() -> None:
    member = replace(ANOTHER, node_id=9, master_node_id=7, name="Description")

    reported = explain(facts(holder=member), NOW)

    assert (reported.situation, reported.since) == (Situation.RUNNING, ANOTHER.since)
    assert sentences(reported)[1] == "Chain member running now: Description."


def test_a_chain_member_is_explained_by_its_master() -> None:
    master = explain(facts(), NOW)

    reported = explain_member(facts(id=9, master_node_id=7, next_run_at=None), master, NOW)

    assert (reported.situation, reported.master, reported.runs_at) == (Situation.CHAINED, master, master.runs_at)
    assert sentences(reported)[0] == "It runs after its master, node 7 (State). Of the master:"


@pytest.mark.parametrize(
    ("change", "situation"),
    [
        ({"enabled": False}, Situation.DISABLED),
        (SUSPENDED, Situation.SUSPENDED),
        ({"holder": replace(ANOTHER, node_id=7, master_node_id=5)}, Situation.RUNNING),
    ],
)
def test_a_chain_member_that_was_stopped_or_runs_itself_says_so(
    change: dict[str, object], situation: Situation
) -> None:
    reported = explain_member(facts(next_run_at=None, **change), explain(facts(), NOW), NOW)

    assert reported.situation is situation


@pytest.mark.parametrize(
    ("stands", "expected"),
    [
        (due(WaitReason.OLT_BUSY, ANOTHER), "Its OLT is busy: Optical power has held it since 2026-03-01 11:59:00, "),
        (due(WaitReason.OLT_BUSY), "Another node of its OLT goes first."),
        (due(WaitReason.NO_POLLER), "No poller is free."),
        (due(WaitReason.OLT_UNREACHABLE), "Its OLT does not answer; another node is checking"),
        (due(None), "Nothing holds it back: it starts at once."),
        (due(WaitReason.NO_POLLER), "Place 4 of 9 in the queue, 2 on its OLT."),
        (facts(is_polling=False), "Polling is stopped"),
        (facts(), "Next run: 2026-03-01 12:05:00."),
        (facts(pause=PAUSE), "It is paused until 2026-03-01 12:30:00: fibre works."),
        (
            facts(pause=Pause(starts_at=NOW - MINUTE, ends_at=NOW + 30 * MINUTE)),
            "It is paused until 2026-03-01 12:30:00. ",
        ),
        (facts(**SUSPENDED), "Its OLT is asked next at 2026-03-01 12:01:00"),
        (facts(**SUSPENDED | {"probe_at": None}), "It must be resumed by hand."),
        (facts(window=AT_NIGHT), "they begin at 2026-03-02 01:00:00."),
        (facts(next_run_at=None), "It has no next run"),
        (facts(enabled=False), "It is disabled."),
        (facts(olt_enabled=False), "Its OLT is disabled."),
        (waiting(is_retry=True, due_at=NOW + MINUTE), "it is tried again at 2026-03-01 12:01:00."),
        (waiting(is_retry=False, due_at=NOW), "It yielded to other runs"),
    ],
)
def test_every_situation_is_said_in_sentences(stands: Facts, expected: str) -> None:
    assert expected in " ".join(sentences(explain(stands, NOW))) + " "


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"poller_id": None}, "Optical power has held it since"),
        ({"node_id": None, "origin": Origin.PROBE, "name": "probe"}, "a probe has held it since"),
        ({"node_id": None, "origin": Origin.MANUAL, "name": "snmp_walk"}, 'a manual query ("snmp_walk") has held it'),
    ],
)
def test_a_holder_without_a_node_is_named_by_its_origin(changes: dict[str, object], expected: str) -> None:
    assert describe_holder(replace(ANOTHER, **changes)).startswith(expected)  # type: ignore[arg-type]
