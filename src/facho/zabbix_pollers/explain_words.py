"""Says in sentences why a node waits, or when it runs."""

from collections.abc import Callable
from datetime import datetime

from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from facho.executions.models import Origin
from facho.polling.domain.planning import WaitReason
from facho.zabbix_pollers.activity import Holder
from facho.zabbix_pollers.explain import Explanation, Place, Situation


def sentences(explanation: Explanation) -> list[str]:
    """Tell where the node stands, the most important first; times are local."""
    said = _SAY[explanation.situation](explanation)
    if not explanation.is_polling and explanation.situation in _WOULD_START:
        said.append(_("Polling is stopped: nothing starts until the engine runs."))
    return said


def describe_holder(holder: Holder) -> str:
    """Say who holds an OLT and since when."""
    words = {"name": holder.name, "since": _time(holder.since), "poller": holder.poller_id}
    if holder.node_id is None and holder.origin == Origin.PROBE:
        return _("a probe holds it since %(since)s") % words
    if holder.node_id is None:
        return _('a question by hand ("%(name)s") holds it since %(since)s') % words
    if holder.poller_id is None:
        return _("%(name)s holds it since %(since)s") % words
    return _("%(name)s holds it since %(since)s, on poller #%(poller)s") % words


def _running(explanation: Explanation) -> list[str]:
    holder = explanation.holder
    words = {"since": _time(explanation.since), "poller": holder.poller_id if holder else "-"}
    said = [_("It is running since %(since)s, on poller #%(poller)s.") % words]
    if holder and holder.node_id != holder.master_node_id:
        said.append(_("The member of the chain that runs now: %(name)s.") % {"name": holder.name})
    return said


def _olt_disabled(explanation: Explanation) -> list[str]:
    return [_("Its OLT is disabled.")]


def _disabled(explanation: Explanation) -> list[str]:
    return [_("It is disabled.")]


def _suspended(explanation: Explanation) -> list[str]:
    words = {"since": _time(explanation.since), "reason": explanation.reason, "probe": _time(explanation.until)}
    said = [_("It is suspended since %(since)s, after failing too often (%(reason)s).") % words]
    if explanation.until:
        return [*said, _("Its OLT is asked next at %(probe)s; if it answers, the node goes on.") % words]
    return [*said, _("A person has to resume it.")]


def _chained(explanation: Explanation) -> list[str]:
    if explanation.master is None:
        return []
    words = {"id": explanation.master.node_id, "name": explanation.master.name}
    with_master = _("It runs after its master, node %(id)s (%(name)s). Of the master:") % words
    return [with_master, *sentences(explanation.master)]


def _paused(explanation: Explanation) -> list[str]:
    words = {"until": _time(explanation.until), "note": explanation.reason}
    said = [_("It is paused until %(until)s.") % words]
    if explanation.reason:
        said = [_("It is paused until %(until)s: %(note)s.") % words]
    return said + _runs_at(explanation)


def _between_tries(explanation: Explanation) -> list[str]:
    return [_("Its last try failed; it is tried again at %(at)s.") % {"at": _time(explanation.until)}]


def _gave_way(explanation: Explanation) -> list[str]:
    return [_("It gave way to others and goes on as soon as its OLT is free."), *_waits(explanation)]


def _queued(explanation: Explanation) -> list[str]:
    return [_("It is due since %(since)s and waits.") % {"since": _time(explanation.since)}, *_waits(explanation)]


def _outside_hours(explanation: Explanation) -> list[str]:
    opening = _("It is outside the hours in which it may run; they begin at %(at)s.")
    return [opening % {"at": _time(explanation.until)}, *_runs_at(explanation)]


def _not_due(explanation: Explanation) -> list[str]:
    return [_("It is not due yet."), *_runs_at(explanation)]


def _not_scheduled(explanation: Explanation) -> list[str]:
    return [_("It has no next run: enable it again to give it one.")]


def _waits(explanation: Explanation) -> list[str]:
    """Say what it waits for, and at which place."""
    if explanation.place is None:
        return []
    said = [_for_what(explanation.place, explanation.holder)]
    place = {"number": explanation.place.number, "size": explanation.place.size, "on_olt": explanation.place.on_olt}
    return [*said, _("Place %(number)s of %(size)s in the queue, %(on_olt)s on its OLT.") % place]


def _for_what(place: Place, holder: Holder | None) -> str:
    if place.reason is WaitReason.OLT_BUSY and holder:
        return _("Its OLT is busy: %(holder)s.") % {"holder": describe_holder(holder)}
    return {
        None: _("Nothing keeps it: it starts at once."),
        WaitReason.OLT_BUSY: _("Another node of its OLT goes first."),
        WaitReason.NO_POLLER: _("No poller is free."),
        WaitReason.OLT_UNREACHABLE: _("Its OLT does not answer; another node is trying whether it is back."),
    }[place.reason]


def _runs_at(explanation: Explanation) -> list[str]:
    return [_("Next run: %(at)s.") % {"at": _time(explanation.runs_at)}] if explanation.runs_at else []


def _time(moment: datetime | None) -> str:
    return f"{localtime(moment):%Y-%m-%d %H:%M:%S}" if moment else "-"


_SAY: dict[Situation, Callable[[Explanation], list[str]]] = {
    Situation.RUNNING: _running,
    Situation.OLT_DISABLED: _olt_disabled,
    Situation.DISABLED: _disabled,
    Situation.SUSPENDED: _suspended,
    Situation.CHAINED: _chained,
    Situation.PAUSED: _paused,
    Situation.RETRY: _between_tries,
    Situation.GAVE_WAY: _gave_way,
    Situation.QUEUED: _queued,
    Situation.OUTSIDE_HOURS: _outside_hours,
    Situation.NOT_DUE: _not_due,
    Situation.NOT_SCHEDULED: _not_scheduled,
}
_WOULD_START = frozenset(
    {Situation.RETRY, Situation.GAVE_WAY, Situation.QUEUED, Situation.OUTSIDE_HOURS, Situation.NOT_DUE}
)
