"""ONUs of a port that lost light together: a splitter, its box or the fibre to it."""

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, KnownFacts, Question, Threshold, plain
from facho.alerts.models import Severity
from facho.plant.store import load_open_steps

# Losses in common from this size on notify, unless a rule sets another one.
USUAL_DB = 1.0


def find_branch_steps(question: Question) -> Findings:
    """Find open losses in common; the value is how many dB were lost; two queries."""
    findings = {}
    for step in load_open_steps():
        facts = {"finding_id": step.id, "olt": plain(step.olt), "place": step.place, "hit": step.hit, "read": step.read}
        findings[f"light {step.id}"] = Finding(
            facts | {"db": round(step.lost_db, 1)},
            olt_id=step.olt_id,
            port=step.place,
            value=round(step.lost_db, 2),
            since=step.since,
        )
    return findings


def sentence(facts: KnownFacts) -> str:
    text = _("%(olt)s %(place)s: %(hit)s of %(read)s ONUs lost %(db)s dB at once: a splitter, or the fibre to it")
    return text % KnownFacts({**facts, "db": number_format(facts["db"], 1)})


BRANCH_STEP = Condition(
    code="branch_step",
    label=gettext_lazy("light lost in common"),
    looks_for=gettext_lazy("ONUs of a PON port that lost light at the same moment."),
    find=find_branch_steps,
    sentence=sentence,
    threshold=Threshold(usual=USUAL_DB, low=0.5, high=30.0, unit=gettext_lazy("dB of light lost; usually more than 1")),
    default_rule=DefaultRule(gettext_lazy("Branch lost light"), Severity.WARNING, hold_minutes=10, clear_minutes=10),
)
