"""ONUs whose light falls day by day and will soon be too weak."""

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, KnownFacts, Question, Threshold, plain
from facho.alerts.conditions.weak_light import write_powers
from facho.alerts.models import Severity
from facho.plant.store import load_open_decays


def find_decays(question: Question) -> Findings:
    """Find ONUs whose light decays; the value is in how many days it is likely to be too weak; one query."""
    findings = {}
    for decay in load_open_decays(question.now):
        facts = {
            "finding_id": decay.id,
            "olt": plain(decay.olt),
            "place": decay.place,
            "onu_id": decay.onu_id,
            "onu": plain(decay.serial) or decay.place,
            "description": plain(decay.description),
            "rate": round(decay.rate_db, 2),
            "soonest": round(decay.days_soonest),
            "latest": round(decay.days_latest),
        }
        findings[f"onu {decay.onu_id}"] = Finding(
            facts,
            olt_id=decay.olt_id,
            port=decay.place,
            value=round(decay.days_likely, 1),
            since=decay.since,
        )
    return findings


def sentence(facts: KnownFacts) -> str:
    text = _(
        "%(olt)s %(place)s: ONU %(onu)s loses %(rate)s dB a day and falls below -27 dBm in "
        "%(soonest)s to %(latest)s days"
    )
    return text % KnownFacts({**write_powers(facts), "rate": number_format(facts["rate"], 2)})


LIGHT_DECAY = Condition(
    code="light_decay",
    label=gettext_lazy("decaying light"),
    looks_for=gettext_lazy("ONUs whose light falls day by day and will soon be too weak."),
    find=find_decays,
    sentence=sentence,
    threshold=Threshold(
        usual=14.0,
        low=1.0,
        high=30.0,
        unit=gettext_lazy("days until it is too weak; usually less than 14"),
        is_low_wrong=True,
    ),
    default_rule=DefaultRule(gettext_lazy("Light decays"), Severity.WARNING, clear_margin=7.0),
)
