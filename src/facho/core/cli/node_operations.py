"""`facho node explain` and `facho node resume`: why a node waits, and back to its schedule."""

from argparse import Namespace
from collections.abc import Sequence
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli.arguments import Subparsers, add_command, add_json_flag, whole_number
from facho.core.cli.failure import CliError
from facho.core.cli.output import cell, dump
from facho.core.cli.product import database_command
from facho.core.cli.written import write_down

if TYPE_CHECKING:
    from facho.snmp_jobs.models import WorkflowNode
    from facho.zabbix_pollers.explain import Explanation


def register(nodes: Subparsers) -> None:
    """Add both to `node`."""
    command = add_command(nodes, "explain", _("say why a node waits, and when it runs"), explain)
    command.add_argument("node", metavar=_("NODE"), type=whole_number, help=_("number of the node"))
    add_json_flag(command)
    command = add_command(nodes, "resume", _("return suspended nodes to their schedule"), resume)
    command.add_argument("nodes", metavar=_("NODE"), nargs="*", type=whole_number, help=_("number of the node"))
    command.add_argument("--olt", metavar=_("NAME"), help=_("all suspended nodes of this OLT"))


@database_command
def explain(arguments: Namespace) -> int:
    """Explain one node in sentences, or in the API's shape."""
    from facho.zabbix_pollers.explain_words import sentences
    from facho.zabbix_pollers.serializers import ExplanationSerializer

    explanation = _load(arguments.node)
    if arguments.as_json:
        dump(ExplanationSerializer(explanation).data)
        return 0
    print(cell(f"{explanation.olt} · {explanation.name}"))
    for sentence in sentences(explanation):
        print(cell(sentence))
    return 0


def resume(arguments: Namespace) -> int:
    """Resume all that were named, or none when one of them is not suspended."""
    if bool(arguments.nodes) == bool(arguments.olt):
        arguments.usage_error(_("name the nodes, or give --olt NAME"))
    return _resume(arguments)


@database_command
def _resume(arguments: Namespace) -> int:
    from django.db import transaction
    from django.utils import timezone

    from facho.snmp_jobs.models import WorkflowNode
    from facho.snmp_jobs.store import return_to_schedule

    node_ids = _suspended(arguments.nodes) if arguments.nodes else _suspended_of(arguments.olt)
    nodes = WorkflowNode.objects.filter(id__in=node_ids)
    with transaction.atomic():
        return_to_schedule(nodes, now=timezone.now())
        write_down("CHANGED", nodes.select_related("job", "workflow__olt"), _("resumed"))
    for node in nodes.select_related("job", "workflow__olt").only("next_run_at", "job__name", "workflow__olt__name"):
        print(_sentence(node))
    return 0


def _load(node_id: int) -> "Explanation":
    from django.utils import timezone

    from facho.snmp_jobs.store import UnknownNode
    from facho.zabbix_pollers.explain_read_model import load_explanation

    try:
        return load_explanation(node_id, timezone.now())
    except UnknownNode as error:
        raise CliError(_("There is no node %s; `facho node list` shows them.") % node_id) from error


def _suspended(node_ids: Sequence[int]) -> list[int]:
    from facho.snmp_jobs.models import WorkflowNode

    known = dict(WorkflowNode.objects.filter(id__in=node_ids).values_list("id", "suspended_at"))
    wanted = list(dict.fromkeys(node_ids))
    refused = [
        _("Node %s is not suspended.") % node_id
        if node_id in known
        else _("There is no node %s; `facho node list` shows them.") % node_id
        for node_id in wanted
        if not known.get(node_id)
    ]
    if refused:
        raise CliError(*refused)
    return wanted


def _suspended_of(olt: str) -> list[int]:
    from facho.hosts.models import Olt
    from facho.snmp_jobs.models import WorkflowNode

    if not Olt.objects.filter(name=olt).exists():
        raise CliError(_('There is no OLT "%s"; `facho olt list` shows them.') % olt)
    suspended = WorkflowNode.objects.filter(workflow__olt__name=olt, suspended_at__isnull=False)
    node_ids = list(suspended.values_list("id", flat=True))
    if not node_ids:
        raise CliError(_("No node of OLT %s is suspended.") % olt)
    return node_ids


def _sentence(node: "WorkflowNode") -> str:
    words = {"id": node.id, "name": cell(node), "at": cell(node.next_run_at)}
    if node.next_run_at is None:
        return _("node %(id)s (%(name)s) runs again with its master") % words
    return _("node %(id)s (%(name)s) goes on at %(at)s") % words
