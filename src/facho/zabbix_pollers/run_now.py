"""A run that a person asks for: the wish, and a short look whether it is granted at once."""

from dataclasses import dataclass, replace
from datetime import datetime
from time import sleep

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _

from facho.executions.models import Execution
from facho.snmp_jobs.asked import ask_run
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.explain import Explanation, Situation
from facho.zabbix_pollers.explain_read_model import load_explanation

# The scheduler looks every second; a person who pressed a button waits about as long.
LOOKS = 6
LOOK_SECONDS = 0.2

_MAY_START = frozenset({Situation.QUEUED, Situation.GAVE_WAY})


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of the wish so far: the execution that grants it, or why there is none yet."""

    node: WorkflowNode
    chain_nodes_count: int
    explanation: Explanation
    execution_id: int | None = None


def ask_for_run(user: AbstractBaseUser | AnonymousUser, node_id: int, *, now: datetime) -> Asked:
    """Leave the wish, with who had it, and look for about a second whether it is granted; it stays when it is not.

    UnknownNode and IsChainNode as `request_run` raises them.
    """
    asked = leave_wish(user, node_id, now=now)
    may_start = asked.explanation.is_polling and asked.explanation.situation in _MAY_START
    return replace(asked, execution_id=_wait_for_start(node_id)) if may_start else asked


def leave_wish(user: AbstractBaseUser | AnonymousUser, node_id: int, *, now: datetime) -> Asked:
    """Leave the wish as `ask_for_run` does, and wait for nothing: for pages, which see the start when they refresh."""
    node = ask_run(user, node_id, now=now)
    return Asked(node, node.chain_nodes.filter(enabled=True).count(), load_explanation(node_id, now))


def describe_asked(asked: Asked) -> str:
    """Say when the run will come; a wish on a node that cannot run is kept, and that must not be a surprise."""
    if asked.execution_id is not None:
        return _("Started.")
    explained = {
        Situation.OLT_DISABLED: _("Queued: it runs when its OLT is enabled again."),
        Situation.DISABLED: _("Queued: it runs when the node is enabled again."),
        Situation.SUSPENDED: _("Queued: it runs when the node is no longer suspended."),
        Situation.PAUSED: _("Queued: it runs when the pause is over."),
    }.get(asked.explanation.situation)
    if explained is None and not asked.explanation.is_polling:
        return _("Queued: polling is stopped; it runs when the engine is started.")
    return explained or _("Queued: it starts as soon as its OLT and a poller are free.")


def _wait_for_start(node_id: int) -> int | None:
    for _look in range(LOOKS):
        sleep(LOOK_SECONDS)
        if (execution_id := _load_granted(node_id)) is not None:
            return execution_id
    return None


def _load_granted(node_id: int) -> int | None:
    """Return the node's latest execution once its wish is gone: the claim takes it back."""
    latest = Execution.objects.filter(node=OuterRef("id")).order_by("-created_at", "-id").values("id")[:1]
    granted = WorkflowNode.objects.filter(id=node_id, run_requested_at__isnull=True)
    return granted.annotate(latest_id=Subquery(latest)).values_list("latest_id", flat=True).first()
