"""What people read of an alert, in the language that is active: a sentence, the title and the text of a message."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.formats import number_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from facho.alerts.conditions.finding import Facts
from facho.alerts.models import Alert, Kind, NoticeKind, Severity
from facho.alerts.rules import Rule
from facho.execution_coordinator.models import Severity as ViolationSeverity
from facho.executions.failure_words import FAILURES
from facho.onus.words import OutageCauses, OutageScopes
from facho.polling.domain.suspension import UNREACHABLE

MAX_TITLE = 200
# A message on a telephone; machines get them all.
LINES = 20

_REASONS = {UNREACHABLE: gettext_lazy("its OLT does not answer"), **FAILURES}


class _Known(dict[str, Any]):
    """Facts of a version that may have known less."""

    def __missing__(self, name: str) -> str:
        return "?"


def sentence_of(kind: str, facts: Facts) -> str:
    """Say what is wrong, in one line."""
    return _SENTENCES[Kind(kind)](_Known(facts))


def title_of(rule: Rule, kind: NoticeKind, alerts: Sequence[Alert]) -> str:
    """Write the line that is read first: what is wrong if it is one thing, else how much of it and where."""
    what = sentence_of(rule.kind, alerts[0].facts) if len(alerts) == 1 else _sum_of(rule, alerts)
    return _cut(_TITLES[kind](alerts) % {"what": what}, MAX_TITLE)


def body_of(rule: Rule, kind: NoticeKind, alerts: Sequence[Alert]) -> str:
    """Write the text: each alert on a line with its time, and by which rule."""
    lines = [_line(rule, alert) for alert in alerts[:LINES]]
    left = len(alerts) - len(lines)
    if left:
        lines.append(ngettext("and %(count)s more", "and %(count)s more", left) % {"count": left})
    if any(alert.facts.get("ended_by") == "rule" for alert in alerts):
        lines.append(_("The rule was switched off."))
    rule_words = {"rule": rule.name, "severity": Severity(rule.severity).label}
    return "\n".join([*lines, "", _("Rule: %(rule)s (%(severity)s)") % rule_words])


def _line(rule: Rule, alert: Alert) -> str:
    line = f"{sentence_of(rule.kind, alert.facts)} ({_when(alert)})"
    # On each line: of others in the same message it may be really over.
    return f"{line} · {_('its OLT is disabled')}" if alert.facts.get("ended_by") == "olt" else line


def _sum_of(rule: Rule, alerts: Sequence[Alert]) -> str:
    words = {"what": Kind(rule.kind).label, "count": len(alerts), "where": _common_place(alerts)}
    return _("%(what)s: %(count)s on %(where)s") % words if words["where"] else _("%(what)s: %(count)s") % words


def _common_place(alerts: Sequence[Alert]) -> str:
    olts = {alert.facts.get("olt", "") for alert in alerts}
    places = {alert.facts.get("place", "") for alert in alerts}
    if len(olts) > 1:
        return ngettext("%(count)s OLT", "%(count)s OLTs", len(olts)) % {"count": len(olts)}
    return " ".join([*olts, *(places if len(places) == 1 else ())]).strip()


def _opened(alerts: Sequence[Alert]) -> str:
    return _("Flapping: %(what)s") if all(alert.is_flapping for alert in alerts) else "%(what)s"


def _resolved(alerts: Sequence[Alert]) -> str:
    is_unwatched = all(alert.facts.get("ended_by") for alert in alerts)
    return _("Not watched any more: %(what)s") if is_unwatched else _("Over: %(what)s")


_TITLES: Mapping[NoticeKind, Callable[[Sequence[Alert]], str]] = {
    NoticeKind.OPENED: _opened,
    NoticeKind.RESOLVED: _resolved,
    NoticeKind.ESCALATED: lambda alerts: _("Nobody has acknowledged: %(what)s"),
}


def _when(alert: Alert) -> str:
    times = {"begin": _time(alert.began_at), "end": _time(alert.resolved_at) if alert.resolved_at else ""}
    return _("from %(begin)s to %(end)s") % times if alert.resolved_at else _("since %(begin)s") % times


def _time(moment: datetime) -> str:
    return f"{localtime(moment):%Y-%m-%d %H:%M}"


def _hour(facts: _Known) -> str:
    moment = parse_datetime(facts["hour"])
    return _time(moment) if moment else "?"


def _violated(facts: _Known) -> str:
    hours, severity = facts.get("hours", 1), str(facts["severity"])
    words = {**facts, "hour": _hour(facts), "severity": dict(ViolationSeverity.choices).get(severity, severity)}
    return (
        ngettext(
            "%(olt)s missed its quota in the hour from %(hour)s (%(severity)s)",
            "%(olt)s missed its quotas in %(hours)s hours from %(hour)s on (%(severity)s)",
            hours,
        )
        % words
    )


def _outage(facts: _Known) -> str:
    names = {
        "scope": dict(OutageScopes.choices).get(facts["scope"], "?"),
        "cause": dict(OutageCauses.choices).get(facts["cause"], "?"),
    }
    text = _("%(olt)s, %(scope)s %(place)s: %(affected)s ONUs out, probably: %(cause)s")
    return text % _Known({**facts, **names})


def _unreachable(facts: _Known) -> str:
    if not facts.get("affected"):
        return _("%(olt)s does not answer") % facts
    return _("%(olt)s does not answer; %(affected)s ONUs were online behind it") % facts


def _suspended(facts: _Known) -> str:
    reason = _REASONS.get(facts["reason"], facts["reason"])
    return _("%(olt)s: the node %(node)s is suspended: %(reason)s") % _Known({**facts, "reason": reason})


def _saturated(facts: _Known) -> str:
    words = _Known({**facts, "busy": number_format(facts["busy"], 0)})
    if facts.get("group"):
        return _("The pollers of the group %(group)s are busy for %(busy)s %% of their time") % words
    return _("The pollers are busy for %(busy)s %% of their time") % words


def _untaken(facts: _Known) -> str:
    if facts.get("has_worker"):
        text = _("Claimed executions have waited for %(seconds)s s: no worker takes them")
    else:
        text = _("No worker is heard of, so nothing is polled")
    words = {"what": text % facts, "group": facts["group"]}
    return _("%(what)s (group %(group)s)") % words if facts.get("group") else words["what"]


def _weak(facts: _Known) -> str:
    return _("%(olt)s %(place)s: the ONU %(onu)s receives %(dbm)s dBm") % _in_dbm(facts)


def _stepped(facts: _Known) -> str:
    return _("%(olt)s %(place)s: the ONU %(onu)s receives %(dbm)s dBm, and %(usual_dbm)s before") % _in_dbm(facts)


def _in_dbm(facts: _Known) -> _Known:
    powers = {name: number_format(facts[name], 2) for name in ("dbm", "usual_dbm") if name in facts}
    # Customers are known by what their OLT calls them.
    onu = " · ".join(str(name) for name in (facts["onu"], facts.get("description")) if name)
    return _Known({**facts, **powers, "onu": onu})


_SENTENCES: Mapping[Kind, Callable[[_Known], str]] = {
    Kind.QUOTA_VIOLATED: _violated,
    Kind.QUOTA_AT_RISK: lambda facts: (
        _("%(olt)s will miss its quota of %(task_type)s: %(completed)s of %(required)s") % facts
    ),
    Kind.NODE_SUSPENDED: _suspended,
    Kind.OLT_UNREACHABLE: _unreachable,
    Kind.NETWORK_LOST: lambda facts: _("The poller lost its network: %(affected_olts)s OLTs do not answer") % facts,
    Kind.POLLERS_SATURATED: _saturated,
    Kind.QUEUE_OVERLOAD: lambda facts: (
        _("%(late)s nodes are late by more than their interval; %(waiting)s wait") % facts
    ),
    Kind.NO_LEADER: lambda facts: _("No scheduler leads, so nothing is polled"),
    Kind.MESSAGES_NOT_TAKEN: _untaken,
    Kind.PON_OUTAGE: _outage,
    Kind.WEAK_LIGHT: _weak,
    Kind.POWER_STEP: _stepped,
    Kind.ONU_WAITING: lambda facts: _("%(olt)s %(place)s: the ONU %(onu)s waits for authorisation") % facts,
}


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
