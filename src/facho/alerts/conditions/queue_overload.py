"""Nodes that wait for longer than their interval."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, Question, Threshold
from facho.alerts.models import Severity
from facho.polling.domain.planning import OVERLOAD_LENGTH
from facho.zabbix_pollers.read_model import load_candidates


def find_overload(question: Question) -> Findings:
    """Find how many due nodes are late by more than their interval, or how many wait if the queue is too long.

    Nodes of an unreachable OLT are not counted: the OLT has an alert of its own.
    """
    due = load_candidates(question.now).due
    late = sum(node.is_delayed(question.now) and not node.is_olt_silent for node in due)
    value = len(due) if len(due) > OVERLOAD_LENGTH else late
    return {"queue": Finding({"waiting": len(due), "late": late}, value=value)}


QUEUE_OVERLOAD = Condition(
    code="queue_overload",
    label=gettext_lazy("queue overload"),
    looks_for=gettext_lazy("Nodes that wait for longer than their interval."),
    find=find_overload,
    sentence=lambda facts: _("%(late)s nodes are late by more than their interval; %(waiting)s wait") % facts,
    threshold=Threshold(
        usual=0,
        low=0.0,
        high=100_000.0,
        unit=gettext_lazy("nodes that are late by more than their interval; usually more than 0"),
    ),
    has_olt=False,
    default_rule=DefaultRule(gettext_lazy("Nodes are late"), Severity.WARNING, hold_minutes=10, clear_minutes=10),
)
