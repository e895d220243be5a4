"""A run that a person asks for: the wish, and a short look whether it is granted at once."""

from dataclasses import dataclass
from datetime import datetime
from time import sleep

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext_lazy

from facho.accounts.audit import Action, record
from facho.executions.models import Execution
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import request_run
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
    execution_id: int | None


def ask_for_run(user: AbstractBaseUser | AnonymousUser, node_id: int, *, now: datetime) -> Asked:
    """Leave the wish, with who had it, and look for about a second whether it is granted; it stays when it is not.

    UnknownNode and IsChainNode as `request_run` raises them.
    """
    with transaction.atomic():
        node = request_run(node_id, now=now)
        record(user, node, Action.CHANGED, gettext_lazy("run now"))
    explanation = load_explanation(node_id, now)
    may_start = explanation.is_polling and explanation.situation in _MAY_START
    return Asked(
        node,
        chain_nodes_count=node.chain_nodes.filter(enabled=True).count(),
        explanation=explanation,
        execution_id=_wait_for_start(node_id) if may_start else None,
    )


def _wait_for_start(node_id: int) -> int | None:
    for _ in range(LOOKS):
        sleep(LOOK_SECONDS)
        if (execution_id := _load_granted(node_id)) is not None:
            return execution_id
    return None


def _load_granted(node_id: int) -> int | None:
    """Return the node's latest execution once its wish is gone: the claim takes it back."""
    latest = Execution.objects.filter(node=OuterRef("id")).order_by("-created_at", "-id").values("id")[:1]
    granted = WorkflowNode.objects.filter(id=node_id, run_requested_at__isnull=True)
    return granted.annotate(latest_id=Subquery(latest)).values_list("latest_id", flat=True).first()
