"""Poller groups without a worker, or whose claimed executions wait too long."""

from datetime import timedelta

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, KnownFacts, Question
from facho.alerts.models import Severity
from facho.executions.processes import load_live_processes, load_longest_waits
from facho.zabbix_pollers.models import Poller

# By then a claim was handed out a second time, and every worker has looked for it.
LONG_WAIT = timedelta(seconds=60)


def find_untaken_messages(question: Question) -> Findings:
    """Find groups that no worker serves or whose claims wait too long; without any process, none is expected."""
    waits, processes = load_longest_waits(question.now), load_live_processes()
    served = {group for process in processes for group in process.groups}
    unserved = set(Poller.objects.order_by().values_list("group", flat=True)) - served if processes else set()
    stuck = {group for group, wait in waits.items() if wait > LONG_WAIT}
    return {
        f"messages {group}".rstrip(): Finding(
            {
                "group": group,
                "has_worker": group not in unserved,
                "seconds": int(waits.get(group, timedelta(0)).total_seconds()),
            }
        )
        for group in unserved | stuck
    }


def sentence(facts: KnownFacts) -> str:
    if facts.get("has_worker"):
        text = _("Claimed executions have waited for %(seconds)s s: no worker takes them")
    else:
        text = _("No worker reports, so nothing is polled")
    words = {"what": text % facts, "group": facts["group"]}
    return _("%(what)s (group %(group)s)") % words if facts.get("group") else words["what"]


MESSAGES_NOT_TAKEN = Condition(
    code="messages_not_taken",
    label=gettext_lazy("no worker takes messages"),
    looks_for=gettext_lazy("No worker of a group reports, or none takes claimed executions."),
    find=find_untaken_messages,
    sentence=sentence,
    has_olt=False,
    default_rule=DefaultRule(gettext_lazy("No worker works"), Severity.CRITICAL, hold_minutes=2, clear_minutes=10),
)
