"""`facho node`: what is polled when, and run it now."""

import json

import pytest
from cli_runner import Command
from django.utils import timezone

from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.snmp_jobs.models import SnmpJob, Workflow, WorkflowNode

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def make_node(olt: str = "centro", slug: str = "descubrimiento", **more: object) -> WorkflowNode:
    number = Olt.objects.count() + 1
    row, _ = Olt.objects.get_or_create(name=olt, defaults={"host": "h", "address": f"192.0.2.{number}"})
    workflow, _ = Workflow.objects.get_or_create(olt=row)
    job, _ = SnmpJob.objects.get_or_create(slug=slug, defaults={"name": slug, "query_type": "get"})
    return WorkflowNode.objects.create(workflow=workflow, job=job, interval_seconds=300, **more)


def asked_for() -> set[int]:
    return set(WorkflowNode.objects.filter(run_requested_at__isnull=False).values_list("id", flat=True))


def test_nodes_are_listed_with_their_last_result(facho: Command) -> None:
    node = make_node(next_run_at=NOW)
    for state in ("SUCCESS", "FAILED"):
        Execution.objects.create(
            olt=node.workflow.olt,
            address="192.0.2.1",
            port=161,
            node=node,
            task_type="t",
            status=state,
            token=1,
            created_at=NOW,
            finished_at=NOW,
        )

    (row,) = json.loads(facho("node", "list", "--json").out)

    assert row == {
        "id": node.id,
        "olt": "centro",
        "job": "descubrimiento",
        "master": None,
        "enabled": True,
        "interval_seconds": 300,
        "next_run_at": NOW.isoformat(),
        "last_run_at": None,
        "last_result": "FAILED",
        "suspended": "",
    }


def test_a_chain_stands_below_its_master(facho: Command) -> None:
    first = make_node(slug="a")
    second = make_node(slug="b")
    chained = make_node(slug="c", is_chain_node=True, master_node=first)

    rows = json.loads(facho("node", "list", "--json").out)

    assert [(row["id"], row["master"]) for row in rows] == [(first.id, None), (chained.id, first.id), (second.id, None)]


def test_a_list_may_be_of_one_olt(facho: Command) -> None:
    make_node("centro")
    make_node("norte")

    assert [row["olt"] for row in json.loads(facho("node", "list", "--olt", "norte", "--json").out)] == ["norte"]


@pytest.mark.parametrize("command", [("list", "--olt", "sur"), ("run", "--olt", "sur")])
def test_an_unknown_olt_is_named(facho: Command, command: tuple[str, ...]) -> None:
    done = facho("node", *command)

    assert (done.status, done.err) == (1, 'facho: There is no OLT "sur"; `facho olt list` shows them.\n')


def test_named_nodes_are_asked_for(facho: Command) -> None:
    nodes = [make_node(slug=slug) for slug in "abc"]

    done = facho("node", "run", str(nodes[0].id), str(nodes[2].id), str(nodes[0].id))

    assert (done.status, len(done.out.splitlines())) == (0, 2)
    assert asked_for() == {nodes[0].id, nodes[2].id}


def test_all_nodes_of_an_olt_that_can_run_are_asked_for(facho: Command) -> None:
    runnable = make_node(slug="a")
    make_node(slug="b", is_chain_node=True, master_node=runnable)
    make_node(slug="c", enabled=False)
    make_node(slug="d", suspended_at=NOW, suspend_reason="failures")
    make_node("norte", slug="a")

    assert facho("node", "run", "--olt", "centro").status == 0
    assert asked_for() == {runnable.id}


def test_all_nodes_of_all_olts_are_asked_for(facho: Command) -> None:
    nodes = {make_node("centro").id, make_node("norte").id}

    assert facho("node", "run", "--all").status == 0
    assert asked_for() == nodes


def test_nothing_to_run_is_a_failure(facho: Command) -> None:
    assert facho("node", "run", "--all").status == 1


def test_a_chained_node_names_its_master(facho: Command) -> None:
    master = make_node(slug="a")
    chained = make_node(slug="b", is_chain_node=True, master_node=master)

    done = facho("node", "run", str(chained.id))

    assert done.status == 1
    assert done.err == f"facho: Node {chained.id} is part of a chain: run its master, node {master.id}.\n"


def test_one_bad_node_keeps_the_others_from_running(facho: Command) -> None:
    good = make_node(slug="a")
    disabled = make_node(slug="b", enabled=False)
    suspended = make_node(slug="c", suspended_at=NOW, suspend_reason="failures")

    done = facho("node", "run", str(good.id), str(disabled.id), str(suspended.id), "999999")

    assert (done.status, done.out) == (1, "")
    assert done.err.splitlines() == [
        f"facho: Node {disabled.id} or its OLT is disabled: enable it first.",
        f"facho: Node {suspended.id} is suspended (failures): it runs again once its OLT answers, or"
        " `facho node resume` it.",
        "facho: There is no node 999999; `facho node list` shows them.",
    ]
    assert asked_for() == set()


def test_a_node_of_a_disabled_olt_is_refused(facho: Command) -> None:
    node = make_node()
    Olt.objects.update(enabled=False)

    assert "is disabled" in facho("node", "run", str(node.id)).err


@pytest.mark.parametrize("arguments", [(), ("1", "--all"), ("--olt", "centro", "--all"), ("0",), ("x",), ("-1",)])
def test_what_is_to_run_must_be_said_once(facho: Command, arguments: tuple[str, ...]) -> None:
    assert facho("node", "run", *arguments).status == 2
