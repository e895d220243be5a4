"""OLTs that do not answer, unless the poller itself lost its network."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from facho.alerts.condition import Condition, DefaultRule, KnownFacts
from facho.alerts.conditions.pon_outage import find_outages
from facho.alerts.models import Severity
from facho.onus.words import OutageScopes


def sentence(facts: KnownFacts) -> str:
    if not facts.get("affected"):
        return _("%(olt)s does not answer") % facts
    return _("%(olt)s does not answer; %(affected)s ONUs were online behind it") % facts


OLT_UNREACHABLE = Condition(
    code="olt_unreachable",
    label=gettext_lazy("OLT unreachable"),
    looks_for=gettext_lazy("OLTs that do not answer, unless the poller itself lost its network."),
    find=lambda question: find_outages(OutageScopes.OLT),
    sentence=sentence,
    default_rule=DefaultRule(
        pgettext_lazy("rule", "OLT does not answer"), Severity.CRITICAL, hold_minutes=2, clear_minutes=2
    ),
)
