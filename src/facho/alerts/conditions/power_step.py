"""ONUs that receive much less light than within the last day."""

from datetime import timedelta

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Findings, Question, Threshold
from facho.alerts.conditions.weak_light import judged_readings, light_finding, load_light, unjudged, write_powers
from facho.alerts.models import Severity
from facho.onus.models import OnuEvent
from facho.onus.words import EventKinds
from facho.polling.domain.onu_events import POWER_STEP_CDBM

# A step older than this is the new normal.
USUAL = timedelta(days=1)


def find_power_steps(question: Question) -> Findings:
    """Find ONUs that receive less than within the last day; the value is by how many dB; three queries."""
    drops = OnuEvent.objects.filter(kind=EventKinds.POWER_DROP, at__gt=question.now - USUAL).order_by()
    # If the light dropped twice, the higher level is the usual one.
    usual: dict[int, float] = {}
    for onu_id, before in drops.values_list("onu_id", "before"):
        usual[onu_id] = max(float(before), usual.get(onu_id, float("-inf")))
    rows = load_light(judged_readings().filter(onu_id__in=usual)) if usual else ()
    found = {
        f"onu {row['onu_id']}": light_finding(row, value=round(dropped, 2), usual_dbm=usual[row["onu_id"]])
        for row in rows
        if (dropped := usual[row["onu_id"]] - row["rx_power_cdbm"] / 100) > 0
    }
    return found | unjudged(question.open_subjects - found.keys())


POWER_STEP = Condition(
    code="power_step",
    label=gettext_lazy("power step"),
    looks_for=gettext_lazy("ONUs that receive much less than within the last day."),
    find=find_power_steps,
    sentence=lambda facts: (
        _("%(olt)s %(place)s: ONU %(onu)s receives %(dbm)s dBm, down from %(usual_dbm)s") % write_powers(facts)
    ),
    threshold=Threshold(
        usual=POWER_STEP_CDBM / 100,
        # Smaller steps are not recorded.
        low=POWER_STEP_CDBM / 100,
        high=30.0,
        unit=gettext_lazy("dB of light lost; usually more than 3, and never less"),
    ),
    default_rule=DefaultRule(
        gettext_lazy("Light fell"), Severity.WARNING, hold_minutes=10, clear_minutes=15, clear_margin=1.0
    ),
)
