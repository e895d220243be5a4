"""Branches of a PON port whose ONUs lose light together, day by day: water in a box, or its feed."""

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, KnownFacts, Question, Threshold, plain
from facho.alerts.models import Severity
from facho.plant.store import load_open_branch_decays

# Branches that lost so much so far notify, unless a rule sets another size.
USUAL_DB = 1.0


def find_branch_decays(question: Question) -> Findings:
    """Find degraded branches; the value is how many dB they lost so far; one query."""
    findings = {}
    for decay in load_open_branch_decays(question.now):
        facts = {"finding_id": decay.id, "olt": plain(decay.olt), "place": decay.place, "hit": decay.hit}
        findings[f"branch {decay.id}"] = Finding(
            facts | {"db": round(decay.lost_db, 1), "rate": round(decay.rate_db, 2)},
            olt_id=decay.olt_id,
            port=decay.place,
            value=round(decay.lost_db, 2),
            since=decay.since,
        )
    return findings


def sentence(facts: KnownFacts) -> str:
    text = _(
        "%(olt)s %(place)s: %(hit)s ONUs of a branch lose %(rate)s dB a day, %(db)s dB so far: water in a box, "
        "or its feed"
    )
    numbers = {"db": number_format(facts["db"], 1), "rate": number_format(facts["rate"], 2)}
    return text % KnownFacts({**facts, **numbers})


BRANCH_DECAY = Condition(
    code="branch_decay",
    label=gettext_lazy("degraded branch"),
    looks_for=gettext_lazy("ONUs of a PON port that lose light together, day by day."),
    find=find_branch_decays,
    sentence=sentence,
    threshold=Threshold(
        usual=USUAL_DB, low=0.5, high=30.0, unit=gettext_lazy("dB of light lost so far; usually more than 1")
    ),
    default_rule=DefaultRule(gettext_lazy("Branch degrades"), Severity.WARNING),
)
