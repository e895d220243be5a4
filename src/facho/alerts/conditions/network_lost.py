"""Most OLTs stopped answering at once: the poller's own network."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule
from facho.alerts.conditions.pon_outage import find_outages
from facho.alerts.models import Severity
from facho.onus.words import OutageScopes

NETWORK_LOST = Condition(
    code="network_lost",
    label=gettext_lazy("poller lost its network"),
    looks_for=gettext_lazy("Most OLTs stopped answering at once: the poller's own network."),
    find=lambda question: find_outages(OutageScopes.NETWORK),
    sentence=lambda facts: _("The poller lost its network: %(affected_olts)s OLTs do not answer") % facts,
    has_olt=False,
    default_rule=DefaultRule(gettext_lazy("Poller lost its network"), Severity.CRITICAL, clear_minutes=2),
)
