"""`facho node …`: what is polled when, run it now, why it waits."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli import node_operations
from facho.core.cli.arguments import Subparsers, add_command, add_group, add_json_flag, whole_number
from facho.core.cli.failure import CliError
from facho.core.cli.output import cell, print_rows
from facho.core.cli.product import database_command
from facho.core.cli.written import write_down

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from facho.snmp_jobs.models import WorkflowNode


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node as lists show it; `master` is the node that a chained one runs after."""

    id: int
    olt: str
    job: str
    master: int | None
    enabled: bool
    interval_seconds: int
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_result: str | None
    suspended: str


def register(subparsers: Subparsers) -> None:
    """Add `node` with its commands."""
    nodes = add_group(subparsers, "node", _("nodes: one job on one OLT, with its schedule"))
    command = add_command(nodes, "list", _("list the nodes"), list_nodes)
    command.add_argument("--olt", metavar=_("NAME"), help=_("only those of this OLT"))
    add_json_flag(command)
    command = add_command(nodes, "run", _("run nodes as soon as their OLT is free"), run_nodes)
    command.add_argument("nodes", metavar=_("NODE"), nargs="*", type=whole_number, help=_("number of the node"))
    command.add_argument("--olt", metavar=_("NAME"), help=_("all nodes of this OLT"))
    command.add_argument("--all", action="store_true", dest="every", help=_("all nodes of all OLTs"))
    node_operations.register(nodes)


@database_command
def list_nodes(arguments: Namespace) -> int:
    """List nodes, masters before their chain."""
    from django.db.models import F, OuterRef, Subquery
    from django.db.models.functions import Coalesce

    from facho.executions.models import Execution

    last_result = Execution.objects.filter(node=OuterRef("id")).order_by("-id").values("status")[:1]
    nodes = (
        _nodes_of(arguments.olt)
        .annotate(olt=F("workflow__olt__name"), slug=F("job__slug"), last_result=Subquery(last_result))
        .order_by("olt", Coalesce("master_node_id", "id"), "is_chain_node", "id")
    )
    rows = [
        NodeRow(
            id=node.id,
            olt=node.olt,
            job=node.slug,
            master=node.master_node_id,
            enabled=node.enabled,
            interval_seconds=node.interval_seconds,
            next_run_at=node.next_run_at,
            last_run_at=node.last_run_at,
            last_result=node.last_result,
            suspended=node.suspend_reason,
        )
        for node in nodes
    ]
    print_rows(NodeRow, rows, as_json=arguments.as_json)
    return 0


def run_nodes(arguments: Namespace) -> int:
    """Ask for runs: for all that were named, or for none when one of them cannot run."""
    if [bool(arguments.nodes), bool(arguments.olt), arguments.every].count(True) != 1:
        arguments.usage_error(_("name the nodes, or give --olt NAME, or --all"))
    return _run_nodes(arguments)


@database_command
def _run_nodes(arguments: Namespace) -> int:
    node_ids = arguments.nodes or _runnable(arguments.olt)
    for line in _request_runs(node_ids):
        print(line)
    return 0


def _nodes_of(olt: str | None) -> "QuerySet[WorkflowNode]":
    from facho.hosts.models import Olt
    from facho.snmp_jobs.models import WorkflowNode

    if olt is None:
        return WorkflowNode.objects.all()
    if not Olt.objects.filter(name=olt).exists():
        raise CliError(_('There is no OLT "%s"; `facho olt list` shows them.') % olt)
    return WorkflowNode.objects.filter(workflow__olt__name=olt)


def _runnable(olt: str | None) -> list[int]:
    nodes = _nodes_of(olt).filter(
        is_chain_node=False, enabled=True, suspended_at__isnull=True, workflow__olt__enabled=True
    )
    node_ids = list(nodes.order_by("id").values_list("id", flat=True))
    if not node_ids:
        raise CliError(_("There is no node to run: `facho node list` shows which are disabled or suspended."))
    return node_ids


def _request_runs(node_ids: Sequence[int]) -> list[str]:
    from django.db import transaction
    from django.utils import timezone

    asked: list[str] = []
    refused: list[str] = []
    with transaction.atomic():
        for node_id in dict.fromkeys(node_ids):
            try:
                asked.append(_request_run(node_id, timezone.now()))
            except CliError as error:
                refused += error.lines
        if refused:
            raise CliError(*refused)
    return asked


def _request_run(node_id: int, now: datetime) -> str:
    from facho.snmp_jobs.store import IsChainNode, UnknownNode, request_run

    try:
        node = request_run(node_id, now=now)
    except UnknownNode as error:
        raise CliError(_("There is no node %s; `facho node list` shows them.") % node_id) from error
    except IsChainNode as error:
        raise CliError(
            _("Node %(node)s is part of a chain: run its master, node %(master)s.")
            % {"node": node_id, "master": error.master_id}
        ) from error
    _refuse_stopped(node)
    write_down("CHANGED", [node], _("run now"))
    paused_until = _paused_until(node, now)
    words = {"id": node.id, "name": node, "until": cell(paused_until)}
    if paused_until:
        return _("node %(id)s (%(name)s) runs when the pause is over, at %(until)s") % words
    return _("node %(id)s (%(name)s) runs as soon as its OLT is free") % words


def _paused_until(node: "WorkflowNode", now: datetime) -> datetime | None:
    from facho.hosts.pauses import load_pause

    pause = load_pause(node.workflow.olt_id, now)
    return pause.ends_at if pause else None


def _refuse_stopped(node: "WorkflowNode") -> None:
    """A wish that nobody would grant is worse than a refusal."""
    if not (node.enabled and node.workflow.olt.enabled):
        raise CliError(_("Node %s or its OLT is disabled: enable it first.") % node.id)
    if node.suspended_at:
        raise CliError(
            _("Node %(id)s is suspended (%(reason)s): it runs again once its OLT answers, or `facho node resume` it.")
            % {"id": node.id, "reason": node.suspend_reason}
        )
