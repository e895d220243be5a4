"""A run that a person asks for: the wish, and a short look whether it is granted at once."""

from dataclasses import dataclass, replace
from datetime import datetime
from time import sleep

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _

from facho.executions.models import Execution
from facho.polling.domain.shard import shard_of
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import ask_run
from facho.zabbix_pollers.activity import our_shards
from facho.zabbix_pollers.explain import Explanation, Situation
from facho.zabbix_pollers.explain_read_model import load_explanation
from facho.zabbix_pollers.poller_manager import PollerManager

# The scheduler looks every second; a person who pressed a button waits about as long.
LOOKS = 6
LOOK_SECONDS = 0.2

_MAY_START = frozenset({Situation.QUEUED, Situation.GAVE_WAY})


@dataclass(frozen=True, slots=True)
class Asked:
    """The state of the request: the execution that grants it, or why there is none yet."""

    node: WorkflowNode
    chain_nodes_count: int
    explanation: Explanation
    execution_id: int | None = None


def ask_for_run(user: AbstractBaseUser | AnonymousUser, node_id: int, *, now: datetime) -> Asked:
    """Leave the wish, with who had it, and look for about a second whether it is granted; it stays when it is not.

    UnknownNode and IsChainNode as `request_run` raises them.
    """
    asked = leave_wish(user, node_id, now=now)
    if not _can_start_now(asked):
        return asked
    for _look in range(LOOKS):
        sleep(LOOK_SECONDS)
        # Return the node's latest execution once its request is gone: the claim clears it.
        latest = Execution.objects.filter(node=OuterRef("id")).order_by("-created_at", "-id").values("id")[:1]
        granted = WorkflowNode.objects.filter(id=node_id, run_requested_at__isnull=True)
        if (
            execution_id := granted.annotate(latest_id=Subquery(latest)).values_list("latest_id", flat=True).first()
        ) is not None:
            return replace(asked, execution_id=execution_id)
    return asked


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
        Situation.AWAITS_DISCOVERY: _("Queued: it runs right after the first complete discovery of its OLT."),
    }.get(asked.explanation.situation)
    if explained is None and not asked.explanation.is_polling:
        return _("Queued: polling is stopped; it runs when the engine is started.")
    return explained or _("Queued: it starts as soon as its OLT and a poller are free.")


def _can_start_now(asked: Asked) -> bool:
    """Tell whether the next look of the scheduler grants the wish; else nobody is kept waiting for the answer."""
    if not asked.explanation.is_polling or asked.explanation.situation not in _MAY_START:
        return False
    olt = asked.node.workflow.olt
    return not PollerManager.is_olt_busy(olt.id) and PollerManager.has_free_poller(
        olt.poller_group, shard_of(olt.id, our_shards())
    )
