"""Nothing is polled, or one engine polls nothing: none leads, or nothing can be stored. The leader watch reports it."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, KnownFacts, Question
from facho.alerts.models import Severity
from facho.infrastructure.standstill import WORDS, Standstill


def find_missing_leader(question: Question) -> Findings:
    """Find whether the leader watch saw that nothing is polled."""
    stall = question.stall
    if stall is None:
        return {}
    engines = {"engines": stall.engines} if stall.engines else {}
    return {"leader": Finding({"reason": stall.reason, **engines}, since=stall.since)}


def sentence(facts: KnownFacts) -> str:
    # Alerts of older versions have no reason: there was only one.
    words = WORDS.get(facts.get("reason", Standstill.NO_LEADER))
    words_given = {"reason": str(words.what).rstrip(".") if words else "?", "engines": facts["engines"]}
    if "engines" in facts:
        return _("Engine %(engines)s does not poll. %(reason)s") % words_given
    return _("Nothing is polled. %(reason)s") % words_given


NO_LEADER = Condition(
    code="no_leader",
    label=gettext_lazy("nothing is polled"),
    looks_for=gettext_lazy(
        "Nothing is polled, or an engine polls nothing: no scheduler leads, or nothing can be stored."
        " Checked by the web and by standby schedulers."
    ),
    find=find_missing_leader,
    sentence=sentence,
    has_olt=False,
    default_rule=DefaultRule(gettext_lazy("Nothing is polled"), Severity.CRITICAL, hold_minutes=2),
)
