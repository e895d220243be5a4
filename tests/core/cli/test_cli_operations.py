"""`facho node explain|resume`, `facho execution` and `facho pause`: what operators do between two runs."""

import json
from datetime import timedelta
from typing import Any

import pytest
from cli_runner import Command
from django.utils import timezone

from api.rows import make_execution, make_leader, make_node, make_olt, make_pollers
from facho.hosts.models import Pause
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import WorkflowNode

pytestmark = pytest.mark.django_db

UNKNOWN_OLT = 'facho: There is no OLT "sur"; `facho olt list` shows them.\n'


def suspended_node(olt: Any = None, **fields: Any) -> WorkflowNode:
    past = timezone.now() - timedelta(minutes=9)
    return make_node(olt, suspended_at=past, suspend_reason="timeout", **fields)


def test_a_node_is_explained_in_sentences(facho: Command) -> None:
    make_leader()
    make_pollers(1)
    olt = make_olt("centro")
    make_execution(make_node(olt, name="Light"), poller_id=0)
    node = make_node(olt, name="State", next_run_at=timezone.now())

    done = facho("node", "explain", str(node.id))

    heading, due, holder, place = done.out.splitlines()
    assert (done.status, heading, due[:24]) == (0, "centro · State", "It has been due since 20")
    assert holder.startswith("Its OLT is busy: Light has held it since ")
    assert place == "Place 1 of 1 in the queue, 1 on its OLT."


def test_an_explanation_for_programs_has_the_shape_of_the_api(facho: Command) -> None:
    node = make_node(make_olt("centro"), enabled=False)

    body = json.loads(facho("node", "explain", str(node.id), "--json").out)

    assert (body["node_id"], body["olt"], body["situation"]) == (node.id, "centro", "disabled")
    assert body["message"] == "It is disabled."


def test_an_explanation_speaks_to_a_terminal_only_in_letters(facho: Command) -> None:
    node = make_node(make_olt("cen\x1b[2Jtro"))

    assert "\x1b" not in facho("node", "explain", str(node.id)).out


@pytest.mark.parametrize("command", ["explain", "resume"])
def test_an_unknown_node_is_named(facho: Command, command: str) -> None:
    done = facho("node", command, "987654")

    assert (done.status, done.err) == (1, "facho: There is no node 987654; `facho node list` shows them.\n")


def test_a_suspended_node_goes_on_at_its_next_slot(facho: Command) -> None:
    """D8."""
    node = suspended_node(next_run_at=timezone.now() - timedelta(minutes=9))

    done = facho("node", "resume", str(node.id))

    assert (done.status, done.out.startswith(f"node {node.id} (")) == (0, True)
    node.refresh_from_db()
    assert (node.suspended_at, node.suspend_reason) == (None, "")
    assert node.next_run_at is not None
    assert node.next_run_at > timezone.now()


def test_all_suspended_nodes_of_an_olt_are_resumed(facho: Command) -> None:
    olt = make_olt("centro")
    master = suspended_node(olt)
    member = make_node(master=master, suspended_at=timezone.now(), suspend_reason="malformed")
    elsewhere = suspended_node()

    done = facho("node", "resume", "--olt", "centro")

    assert (done.status, len(done.out.splitlines())) == (0, 2)
    assert "runs again with its master" in done.out
    still = WorkflowNode.objects.filter(suspended_at__isnull=False)
    assert set(still.values_list("id", flat=True)) == {elsewhere.id}
    assert member.id != master.id


def test_one_node_that_is_not_suspended_keeps_the_others_as_they_are(facho: Command) -> None:
    suspended, running = suspended_node(), make_node()

    done = facho("node", "resume", str(suspended.id), str(running.id))

    assert (done.status, done.err) == (1, f"facho: Node {running.id} is not suspended.\n")
    suspended.refresh_from_db()
    assert suspended.suspended_at is not None


def test_an_olt_without_suspended_nodes_is_said(facho: Command) -> None:
    make_node(make_olt("centro"))

    assert facho("node", "resume", "--olt", "centro").err == "facho: No node of OLT centro is suspended.\n"
    assert facho("node", "resume", "--olt", "sur").err == UNKNOWN_OLT


@pytest.mark.parametrize("arguments", [(), ("1", "--olt", "centro"), ("x",)])
def test_what_is_to_be_resumed_must_be_said_once(facho: Command, arguments: tuple[str, ...]) -> None:
    assert facho("node", "resume", *arguments).status == 2


def test_what_is_not_over_is_listed(facho: Command) -> None:
    now = timezone.now()
    runs = make_execution(make_node(make_olt("centro")), poller_id=3)
    waits = make_execution(make_node(), ExecutionState.WAITING, attempt=2, resume_at=now)
    make_execution(make_node(), ExecutionState.SUCCESS)

    rows = json.loads(facho("execution", "list", "--json").out)

    assert [(row["id"], row["status"], row["poller"]) for row in rows] == [
        (runs.id, "RUNNING", 3),
        (waits.id, "WAITING", None),
    ]
    assert (rows[0]["olt"], rows[1]["attempt"], rows[1]["resumes"]) == ("centro", 2, now.isoformat())


def test_a_run_is_asked_to_end(facho: Command) -> None:
    execution = make_execution(make_node())

    done = facho("execution", "cancel", str(execution.id))

    assert (done.status, done.out) == (0, f"execution {execution.id} ends before its next packet\n")
    execution.refresh_from_db()
    assert execution.cancel_requested_at is not None


def test_a_run_that_waits_ends_at_once(facho: Command) -> None:
    execution = make_execution(make_node(), ExecutionState.WAITING, resume_at=timezone.now())

    assert facho("execution", "cancel", str(execution.id)).status == 0
    execution.refresh_from_db()
    assert execution.status == ExecutionState.INTERRUPTED


def test_a_run_that_is_over_or_never_was_cannot_be_ended(facho: Command) -> None:
    execution = make_execution(make_node(), ExecutionState.SUCCESS)

    assert (
        facho("execution", "cancel", str(execution.id)).err == f"facho: Execution {execution.id} has already ended.\n"
    )
    assert "There is no execution 9876543210123" in facho("execution", "cancel", "9876543210123").err


@pytest.mark.parametrize("number", ["x", "0", "9999999999999999999"])
def test_a_number_that_no_execution_can_have_is_wrong_use(facho: Command, number: str) -> None:
    assert facho("execution", "cancel", number).status == 2


def test_an_olt_is_paused_and_its_pause_listed_and_ended(facho: Command) -> None:
    olt = make_olt("centro")

    added = facho("pause", "add", "--olt", "centro", "--minutes", "30", "--note", "fibre works")
    (row,) = json.loads(facho("pause", "list", "--json").out)
    ended = facho("pause", "end", "--olt", "centro")

    held = Pause.objects.get()
    assert (added.status, added.out.startswith("OLT centro paused until 20")) == (0, True)
    assert (row["olt"], row["note"]) == ("centro", "fibre works")
    assert (held.olt_id, ended.out) == (olt.id, "pause of OLT centro ended\n")
    assert json.loads(facho("pause", "list", "--json").out) == []


def test_everything_is_paused_only_on_purpose(facho: Command) -> None:
    assert facho("pause", "add", "--minutes", "5").status == 2
    assert facho("pause", "end").status == 2
    assert not Pause.objects.exists()

    assert facho("pause", "add", "--all", "--minutes", "5").out.startswith("everything paused until 20")
    assert Pause.objects.get().olt is None


def test_an_olt_that_stays_paused_with_everything_is_said(facho: Command) -> None:
    olt, past = make_olt("centro"), timezone.now() - timedelta(minutes=1)
    pause(olt, minutes=30, note="", now=past)
    pause(None, minutes=30, note="", now=past)

    assert "OLT centro stays paused" in facho("pause", "end", "--olt", "centro").out


def test_nothing_to_end_is_a_failure(facho: Command) -> None:
    make_olt("centro")

    done = facho("pause", "end", "--olt", "centro")

    assert (done.status, done.err) == (
        1,
        "facho: OLT centro is not paused; `facho pause list` shows what is.\n",
    )
    assert facho("pause", "end", "--all").status == 1


@pytest.mark.parametrize("command", [("add", "--minutes", "5"), ("end",)])
def test_a_pause_of_an_unknown_olt_is_refused(facho: Command, command: tuple[str, ...]) -> None:
    done = facho("pause", *command, "--olt", "sur")

    assert (done.status, done.err) == (1, UNKNOWN_OLT)


def test_a_pause_has_an_end_within_a_year(facho: Command) -> None:
    done = facho("pause", "add", "--all", "--minutes", "999999")

    assert (done.status, Pause.objects.exists()) == (1, False)
    assert "A pause lasts at most" in done.err


@pytest.mark.parametrize("note", ["x" * 201, "a\nb", "\x1b[2J"])
def test_a_note_is_one_short_line(facho: Command, note: str) -> None:
    assert facho("pause", "add", "--all", "--minutes", "5", "--note", note).status == 2


def test_a_run_asked_for_during_a_pause_says_when_it_comes(facho: Command) -> None:
    node = make_node()
    pause(node.workflow.olt, minutes=30, note="", now=timezone.now())

    done = facho("node", "run", str(node.id))

    assert (done.status, "runs when the pause is over, at 20" in done.out) == (0, True)
