"""`facho node …`: what is polled when, run it now, why it waits; `facho execution …`: what runs, and ending it."""

from argparse import Namespace
from datetime import datetime
from gettext import gettext as _

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from facho.accounts.audit import changed_words
from facho.core.cli.output import cell, dump, find_olt, print_rows, write_down
from facho.core.product import OperatorError
from facho.executions.models import Execution
from facho.executions.store import cancel
from facho.hosts.store import load_pause
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.safety import check_change
from facho.snmp_jobs.store import IsChainNode, NodeChange, UnknownNode, change_nodes, request_run, return_to_schedule
from facho.zabbix_pollers.explain import load_explanation, sentences
from facho.zabbix_pollers.views import ExplanationSerializer


def explain(arguments: Namespace) -> None:
    try:
        explanation = load_explanation(arguments.node, timezone.now())
    except UnknownNode as error:
        raise _no_node(arguments.node) from error
    if arguments.as_json:
        dump(ExplanationSerializer(explanation).data)
        return
    print(cell(f"{explanation.olt} · {explanation.name}"))
    for sentence in sentences(explanation):
        print(cell(sentence))


def change(arguments: Namespace) -> None:
    """Change all that were named, or none when one of them cannot be changed."""
    wanted = NodeChange(arguments.enabled, arguments.interval, arguments.priority)
    with transaction.atomic():
        nodes = WorkflowNode.objects.filter(id__in=arguments.nodes).order_by("id")
        stored = list(nodes.select_related("job", "workflow__olt", "master_node"))
        known = {node.id for node in stored}
        refused = [line for each in arguments.nodes if each not in known for line in _no_node(each).lines]
        for node in stored:
            try:
                check_change(node, wanted.values)
            except ValidationError as error:
                why = " ".join(error.messages)
                refused.append(_("Node %(id)s cannot be changed: %(why)s") % {"id": node.id, "why": why})
        if refused:
            raise OperatorError(*refused)
        change_nodes(nodes, wanted, now=timezone.now())
        for node in stored:
            before = {name: getattr(node, name) for name in wanted.values}
            write_down("CHANGED", [node], changed_words(before, wanted.values))
    timed = _("node %(id)s (%(name)s) is changed; it runs next at %(at)s")
    _print_next_runs(nodes, timed, _("node %(id)s (%(name)s) is changed"))


def resume(arguments: Namespace) -> None:
    """Resume all that were named, or none when one of them is not suspended."""
    if arguments.nodes:
        known = dict(WorkflowNode.objects.filter(id__in=arguments.nodes).values_list("id", "suspended_at"))
        wanted = list(dict.fromkeys(arguments.nodes))
        refused = [
            _("Node %s is not suspended.") % node_id if node_id in known else _no_node(node_id).lines[0]
            for node_id in wanted
            if not known.get(node_id)
        ]
        if refused:
            raise OperatorError(*refused)
        node_ids = wanted
    else:
        node_ids = list(_nodes_of(arguments.olt).filter(suspended_at__isnull=False).values_list("id", flat=True))
        if not node_ids:
            raise OperatorError(_("No node of OLT %s is suspended.") % arguments.olt)
    nodes = WorkflowNode.objects.filter(id__in=node_ids)
    with transaction.atomic():
        return_to_schedule(nodes, now=timezone.now())
        write_down("CHANGED", nodes.select_related("job", "workflow__olt"), _("resumed"))
    timed = _("node %(id)s (%(name)s) continues at %(at)s")
    _print_next_runs(nodes, timed, _("node %(id)s (%(name)s) runs again with its master"))


def _print_next_runs(nodes: QuerySet[WorkflowNode], timed: str, timeless: str) -> None:
    for node in nodes.select_related("job", "workflow__olt").only("next_run_at", "job__name", "workflow__olt__name"):
        words = {"id": node.id, "name": cell(node), "at": cell(node.next_run_at)}
        print((timed if node.next_run_at else timeless) % words)


def list_nodes(arguments: Namespace) -> None:
    last_result = Execution.objects.filter(node=OuterRef("id")).order_by("-id").values("status")[:1]
    nodes = (
        _nodes_of(arguments.olt)
        .annotate(last_result=Subquery(last_result))
        .order_by("workflow__olt__name", Coalesce("master_node_id", "id"), "is_chain_node", "id")
    )
    fields = {
        "id": "id",
        "olt": "workflow__olt__name",
        "job": "job__slug",
        "master": "master_node_id",
        "enabled": "enabled",
        "interval_seconds": "interval_seconds",
        "next_run_at": "next_run_at",
        "last_run_at": "last_run_at",
        "last_result": "last_result",
        "suspended": "suspend_reason",
    }
    print_rows(list(fields), nodes.values_list(*fields.values()), as_json=arguments.as_json)


def run_nodes(arguments: Namespace) -> None:
    """Ask for runs: for all that were named, or for none when one of them cannot run."""
    runnable = {"is_chain_node": False, "enabled": True, "suspended_at": None, "workflow__olt__enabled": True}
    node_ids = arguments.nodes or list(
        _nodes_of(arguments.olt).filter(**runnable).order_by("id").values_list("id", flat=True)
    )
    if not node_ids:
        raise OperatorError(_("There is no node to run: `facho node list` shows which are disabled or suspended."))
    asked: list[str] = []
    refused: list[str] = []
    with transaction.atomic():
        for node_id in dict.fromkeys(node_ids):
            try:
                asked.append(_request_run(node_id, timezone.now()))
            except OperatorError as error:
                refused += error.lines
        if refused:
            raise OperatorError(*refused)
    print("\n".join(asked))


def _no_node(node_id: int) -> OperatorError:
    return OperatorError(_("There is no node %s; `facho node list` shows them.") % node_id)


def _nodes_of(olt: str | None) -> QuerySet[WorkflowNode]:
    if olt is None:
        return WorkflowNode.objects.all()
    return WorkflowNode.objects.filter(workflow__olt=find_olt(olt))


def _request_run(node_id: int, now: datetime) -> str:
    try:
        node = request_run(node_id, now=now)
    except UnknownNode as error:
        raise _no_node(node_id) from error
    except IsChainNode as error:
        raise OperatorError(
            _("Node %(node)s is part of a chain: run its master, node %(master)s.")
            % {"node": node_id, "master": error.master_id}
        ) from error
    # Better to refuse than to accept a request that never runs.
    if not (node.enabled and node.workflow.olt.enabled):
        raise OperatorError(_("Node %s or its OLT is disabled: enable it first.") % node.id)
    if node.suspended_at:
        raise OperatorError(
            _("Node %(id)s is suspended (%(reason)s): it runs again once its OLT answers, or `facho node resume` it.")
            % {"id": node.id, "reason": node.suspend_reason}
        )
    write_down("CHANGED", [node], _("run now"))
    pause = load_pause(node.workflow.olt_id, now)
    words = {"id": node.id, "name": node, "until": cell(pause and pause.ends_at)}
    if pause:
        return _("node %(id)s (%(name)s) runs when the pause is over, at %(until)s") % words
    return _("node %(id)s (%(name)s) runs as soon as its OLT is free") % words


def list_executions(arguments: Namespace) -> None:
    columns = ("id", "olt", "task", "origin", "status", "attempt", "poller", "started", "resumes")
    fields = ("id", "olt__name", "task_type", "origin", "status", "attempt", "poller_id", "started_at", "resume_at")
    unfinished = Execution.objects.filter(finished_at__isnull=True).order_by("id").values_list(*fields)
    print_rows(columns, unfinished, as_json=arguments.as_json)


def cancel_execution(arguments: Namespace) -> None:
    """Ask one execution to end; the rest of its chain is skipped."""
    number = arguments.execution
    execution = Execution.objects.only("olt_id", "task_type").filter(id=number).first()
    if execution is None:
        raise OperatorError(_("There is no execution %s; `facho execution list` shows what runs.") % number)
    with transaction.atomic():
        if not cancel(number, now=timezone.now()):
            raise OperatorError(_("Execution %s has already ended.") % number)
        write_down("CHANGED", [execution], _("cancelled"))
    print(_("execution %s ends before its next packet") % number)
