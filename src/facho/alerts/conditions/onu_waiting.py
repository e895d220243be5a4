"""ONUs that an OLT detects and that are not authorised yet."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, Question, plain
from facho.alerts.models import Severity
from facho.hosts.models import WaitingOnu
from facho.infrastructure.statements import Select

_ANY = Select(lambda: WaitingOnu.objects.order_by().values_list("id")[:1])


def find_waiting_onus(question: Question) -> Findings:
    """Find the ONUs that wait for authorisation; one query."""
    if not _ANY.rows():
        return {}
    waiting = WaitingOnu.objects.filter(olt__enabled=True).select_related("olt").order_by()
    columns = ("frame", "slot", "port", "serial", "model", "first_seen_at", "olt__name")
    return {
        f"waiting {row.olt_id} {row.pon_port} {plain(row.serial)}": Finding(
            {"olt": plain(row.olt.name), "place": row.pon_port, "onu": plain(row.serial), "model": plain(row.model)},
            olt_id=row.olt_id,
            port=row.pon_port,
            since=row.first_seen_at,
        )
        for row in waiting.only(*columns)
    }


ONU_WAITING = Condition(
    code="onu_waiting",
    label=gettext_lazy("ONU waits for authorisation"),
    looks_for=gettext_lazy("ONUs that an OLT detects and that are not authorised yet."),
    find=find_waiting_onus,
    sentence=lambda facts: _("%(olt)s %(place)s: ONU %(onu)s waits for authorisation") % facts,
    default_rule=DefaultRule(gettext_lazy("ONU waits for authorisation"), Severity.INFO, sends_resolved=False),
)
