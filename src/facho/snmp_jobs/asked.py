"""What a person asks of a node, written down with who did: a run now, the return to the schedule."""

from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.utils.translation import gettext_lazy

from facho.accounts.audit import Action, record
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import request_run, return_to_schedule


@transaction.atomic
def ask_run(user: AbstractBaseUser | AnonymousUser, node_id: int, *, now: datetime) -> WorkflowNode:
    """Leave the wish for a run; UnknownNode and IsChainNode as `request_run` raises them."""
    node = request_run(node_id, now=now)
    record(user, node, Action.CHANGED, gettext_lazy("run now"))
    return node


@transaction.atomic
def resume(user: AbstractBaseUser | AnonymousUser, node: WorkflowNode, *, now: datetime) -> bool:
    """Return a suspended node to its schedule: it goes on at its next slot. False when it is not suspended."""
    is_resumed = bool(return_to_schedule(WorkflowNode.objects.filter(id=node.id), now=now))
    if is_resumed:
        record(user, node, Action.CHANGED, gettext_lazy("resumed"))
    return is_resumed
