"""OLTs that got fewer runs in an hour than required, until an hour meets its quota."""

from collections import defaultdict
from datetime import timedelta
from itertools import pairwise, takewhile

from django.db.models import DateTimeField
from django.utils.dateparse import parse_datetime
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy, ngettext

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, KnownFacts, Question, plain
from facho.alerts.models import Severity
from facho.execution_coordinator.models import QuotaViolation, ViolationSeverity
from facho.infrastructure.statements import Given, Select
from facho.polling.domain.quota import LossSeverity

# An hour is judged a little after its end; until then the one before it is the latest.
JUDGED_WITHIN = timedelta(hours=1, minutes=10)
# How many hours in a row are counted at most.
HOURS_BACK = timedelta(hours=25)

_RANK = {severity.value: rank for rank, severity in enumerate(LossSeverity)}


_ANY = Select(
    lambda: (
        QuotaViolation.objects.filter(period_end__gt=Given("since", DateTimeField())).order_by().values_list("id")[:1]
    )
)


def find_violations(question: Question) -> Findings:
    """Find OLTs whose latest hour fell short, with the hours right before it that did so too; one query."""
    if not _ANY.rows(since=question.now - HOURS_BACK):
        return {}
    rows = QuotaViolation.objects.filter(period_end__gt=question.now - HOURS_BACK, olt__enabled=True)
    columns = ("severity", "period_start", "period_end", "acknowledged_at", "olt__name")
    by_olt: defaultdict[int, list[QuotaViolation]] = defaultdict(list)
    for row in rows.select_related("olt").only(*columns).order_by("-period_start"):
        by_olt[row.olt_id].append(row)
    latest = question.now - JUDGED_WITHIN
    findings = {}
    for olt_id, violations in by_olt.items():
        last = violations[0]
        if last.period_end <= latest:
            continue
        adjoining = takewhile(lambda pair: pair[1].period_end == pair[0].period_start, pairwise(violations))
        missed = [last, *(older for _newer, older in adjoining)]
        facts = {
            "olt": plain(last.olt.name),
            "severity": max((each.severity for each in missed), key=lambda code: _RANK.get(code, 0)),
            "hours": len(missed),
            "hour": missed[-1].period_start.isoformat(),
            "violations": [each.id for each in missed],
        }
        findings[f"olt {olt_id}"] = Finding(
            facts,
            olt_id=olt_id,
            since=missed[-1].period_end,
            is_acknowledged=last.acknowledged_at is not None,
        )
    return findings


def sentence(facts: KnownFacts) -> str:
    severity, hour = str(facts["severity"]), parse_datetime(facts["hour"])
    words = {
        **facts,
        "hour": f"{localtime(hour):%Y-%m-%d %H:%M}" if hour else "?",
        "severity": dict(ViolationSeverity.choices).get(severity, severity),
    }
    text = ngettext(
        "%(olt)s violated its quota in the hour from %(hour)s (%(severity)s)",
        "%(olt)s violated its quotas in %(hours)s hours from %(hour)s on (%(severity)s)",
        facts.get("hours", 1),
    )
    return text % KnownFacts(words)


QUOTA_VIOLATED = Condition(
    code="quota_violated",
    label=gettext_lazy("quota violated"),
    looks_for=gettext_lazy("OLTs that got fewer runs in an hour than required, until an hour meets its quota."),
    find=find_violations,
    sentence=sentence,
    default_rule=DefaultRule(gettext_lazy("Quota violation"), Severity.WARNING),
)
