"""Quotas that were missed, and those that will be."""

from collections import defaultdict
from datetime import timedelta
from itertools import pairwise, takewhile

from django.db.models import Q

from facho.alerts.conditions.finding import Finding, Findings, Question, olt_place, plain
from facho.execution_coordinator.models import QuotaStatus, QuotaTracker, QuotaViolation
from facho.hosts.models import Reachability
from facho.polling.domain.quota import Severity, hour_of

# An hour is judged a little after its end, so until then the one before it is the latest.
JUDGED_WITHIN = timedelta(hours=1, minutes=10)
# A look back over more hours would find more to tell, and nobody who wants to know.
HOURS_BACK = timedelta(hours=25)

_RANK = {severity.value: rank for rank, severity in enumerate(Severity)}


def find_violations(question: Question) -> Findings:
    """Find OLTs whose latest hour fell short, with the hours before it that did so too."""
    rows = QuotaViolation.objects.filter(period_end__gt=question.now - HOURS_BACK, olt__enabled=True)
    columns = ("severity", "period_start", "period_end", "acknowledged_at", "olt__name")
    by_olt: defaultdict[int, list[QuotaViolation]] = defaultdict(list)
    for row in rows.select_related("olt").only(*columns).order_by("-period_start"):
        by_olt[row.olt_id].append(row)
    latest = question.now - JUDGED_WITHIN
    return {f"olt {olt_id}": _missed(its) for olt_id, its in by_olt.items() if its[0].period_end > latest}


def _missed(violations: list[QuotaViolation]) -> Finding:
    """Tell of violations, the latest first, as far back as they follow each other."""
    last = violations[0]
    row = [
        last,
        *(
            older
            for _, older in takewhile(lambda pair: pair[1].period_end == pair[0].period_start, pairwise(violations))
        ),
    ]
    facts = {
        "olt": plain(last.olt.name),
        "severity": max((violation.severity for violation in row), key=lambda code: _RANK.get(code, 0)),
        "hours": len(row),
        "hour": row[-1].period_start.isoformat(),
        "violations": [violation.id for violation in row],
    }
    return Finding(
        facts,
        olt_id=last.olt_id,
        place=olt_place(last.olt_id),
        since=row[-1].period_end,
        is_acknowledged=last.acknowledged_at is not None,
    )


def find_quotas_at_risk(question: Question) -> Findings:
    """Find the quotas of this hour that will be missed; that an OLT is silent is told of the OLT."""
    is_short = Q(will_miss_at__isnull=False) | Q(status=QuotaStatus.AT_RISK)
    trackers = QuotaTracker.objects.filter(is_short, period_start=hour_of(question.now).start, olt__enabled=True)
    columns = ("olt_id", "olt__name", "olt__reachability", "task_type", "quota_completed", "quota_required")
    return {
        f"quota {olt_id} {task_type}": Finding(
            {"olt": plain(olt), "task_type": task_type, "completed": completed, "required": required},
            olt_id=olt_id,
            place=olt_place(olt_id),
            since=will_miss_at,
            is_known=reachability != Reachability.DOWN,
        )
        for olt_id, olt, reachability, task_type, completed, required, will_miss_at in trackers.order_by().values_list(
            *columns, "will_miss_at"
        )
    }
