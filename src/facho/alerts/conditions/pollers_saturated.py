"""Pollers that are nearly always busy, by poller group."""

from collections import defaultdict

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, KnownFacts, Question, Threshold
from facho.alerts.models import Severity
from facho.polling.domain.planning import SATURATED_ABOVE
from facho.zabbix_pollers.activity import load_busy_percentages
from facho.zabbix_pollers.models import Poller


def find_saturated_pollers(question: Question) -> Findings:
    """Find how busy each group of pollers was over the last minute, in per cent."""
    busy, groups = load_busy_percentages(question.now), defaultdict(list)
    for poller_id, group in Poller.objects.order_by().values_list("poller_id", "group"):
        groups[group].append(busy.get(poller_id, 0.0))
    return {
        f"pollers {group}".rstrip(): Finding(
            {"group": group, "pollers": len(shares), "busy": (share := round(sum(shares) / len(shares), 1))},
            value=share,
        )
        for group, shares in groups.items()
    }


def sentence(facts: KnownFacts) -> str:
    words = KnownFacts({**facts, "busy": number_format(facts["busy"], 0)})
    if facts.get("group"):
        return _("The pollers of the group %(group)s are busy %(busy)s %% of the time") % words
    return _("The pollers are busy %(busy)s %% of the time") % words


POLLERS_SATURATED = Condition(
    code="pollers_saturated",
    label=gettext_lazy("pollers saturated"),
    looks_for=gettext_lazy("Pollers that are nearly always busy, by poller group."),
    find=find_saturated_pollers,
    sentence=sentence,
    threshold=Threshold(
        usual=SATURATED_ABOVE,
        low=1.0,
        high=99.0,
        unit=gettext_lazy("per cent of the pollers' time in the last minute; usually more than 75"),
    ),
    has_olt=False,
    default_rule=DefaultRule(
        gettext_lazy("Pollers saturated"), Severity.WARNING, hold_minutes=15, clear_minutes=15, clear_margin=10.0
    ),
)
