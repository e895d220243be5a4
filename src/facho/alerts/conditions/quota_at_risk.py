"""Task types that will miss their quota of this hour."""

from django.db.models import DateTimeField, Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, Question, plain
from facho.alerts.models import Severity
from facho.execution_coordinator.models import QuotaStatus, QuotaTracker
from facho.hosts.models import Reachability
from facho.infrastructure.statements import Given, Select
from facho.polling.domain.schedule import hour_of

_IS_SHORT = Q(will_miss_at__isnull=False) | Q(status=QuotaStatus.AT_RISK)
_COLUMNS = ("olt_id", "olt__name", "olt__reachability", "task_type", "quota_completed", "quota_required")
_AT_RISK = Select(
    lambda: (
        QuotaTracker.objects.filter(_IS_SHORT, period_start=Given("hour", DateTimeField()), olt__enabled=True)
        .order_by()
        .values_list(*_COLUMNS, "will_miss_at")
    )
)


def find_quotas_at_risk(question: Question) -> Findings:
    """Find the quotas of this hour that will be missed; an unreachable OLT has an alert of its own."""
    rows = _AT_RISK.rows(hour=hour_of(question.now).start)
    return {
        f"quota {olt_id} {task_type}": Finding(
            {"olt": plain(olt), "task_type": task_type, "completed": completed, "required": required},
            olt_id=olt_id,
            since=will_miss_at,
            is_known=reachability != Reachability.DOWN,
        )
        for olt_id, olt, reachability, task_type, completed, required, will_miss_at in rows
    }


QUOTA_AT_RISK = Condition(
    code="quota_at_risk",
    label=gettext_lazy("quota at risk"),
    looks_for=gettext_lazy("Task types that will miss their quota of this hour. OLTs that are silent are left out."),
    find=find_quotas_at_risk,
    sentence=lambda facts: _("%(olt)s will miss its %(task_type)s quota: %(completed)s of %(required)s") % facts,
    # No message when it is over: a missed quota is a violation, which has a rule of its own.
    default_rule=DefaultRule(gettext_lazy("Quota at risk"), Severity.INFO, hold_minutes=5, sends_resolved=False),
)
